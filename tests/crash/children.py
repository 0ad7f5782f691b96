"""The pass that kills a child: the guard, or a supervisor that another one has started, dies by itself after a call."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from tests.crash import points
from tests.crash.frozen import Frozen, ended
from tests.crash.kill import aimed, prepared, restored
from tests.crash.model import Before, Point, Scenario, Struck, World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

OURS: Final = MappingProxyType({"guard.py": "guard", "__main__.py": "supervisor", "rm": "remover"})
"""What is struck of all that a command starts, by its name; git and the agents' programs are not ours."""
_LINE: Final = re.compile(r"^(\d+) +(.*)$")
_OPEN: Final = " <unfinished ...>"
_CLOSED: Final = re.compile(r"^<\.\.\. \w+ resumed>(.*)$")
HELD: Final = 200_000
"""Microseconds for which a process is held after its call, so that it is killed there and not later."""
_NO_POINT: Final = frozenset({"exit", ""})
"""Labels of calls after which there is nobody left to be killed, and of those that are no points."""


@dataclass
class Followed:
    """A log of strace with ``-f``, taken apart by process, while it grows."""

    calls: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By pid: its calls, each on one line."""
    names: dict[str, str] = field(default_factory=dict)
    """By pid: the program that it has become."""
    ours: dict[str, str] = field(default_factory=dict)
    """By pid: what it is of ours, numbered in the order in which they began (``guard 1``); not the command itself."""

    def add(self, lines: Iterable[str]) -> None:
        """Go on with further *lines*."""
        for line in lines:
            if match := _LINE.match(line):
                self._add(*match.groups())

    def _add(self, pid: str, said: str) -> None:
        known, rest = self.calls[pid], _CLOSED.match(said)
        if rest and known and known[-1].endswith(_OPEN):
            said = known.pop().removesuffix(_OPEN) + rest[1]
        known.append(said)
        if said.startswith("execve(") and said.endswith(" = 0"):
            self._become(pid, points.program_of(said))

    def _become(self, pid: str, name: str) -> None:
        first = not self.names
        self.names[pid] = name
        if name in OURS and not first and pid not in self.ours:
            number = Counter(each.partition(" ")[0] for each in self.ours.values())[OURS[name]] + 1
            self.ours[pid] = f"{OURS[name]} {number}"

    def started(self) -> dict[str, list[str]]:
        """Names of the programs that each process of :attr:`ours` has started, in order."""
        return {
            who: [self.names.get(each, "a process") for each in self._children(pid)] for pid, who in self.ours.items()
        }

    def _children(self, pid: str) -> list[str]:
        calls = [call for call in self.calls[pid] if call.partition("(")[0] in points.STARTS]
        return [found[1] for call in calls if (found := re.search(r"\) += (\d+)$", call))]

    def seen(self, who: str, world: World, started: Mapping[str, Sequence[str]]) -> list[points.Seen]:
        """Every call of the process *who* of ours; *started* is what :meth:`started` said of an earlier log."""
        lines = [line for pid, each in self.ours.items() if each == who for line in self.calls[pid]]
        return list(points.read(lines, world, started.get(who, ())))


class KillChild:
    """``kill -9`` of a process that the command has started; the command itself goes on, and has to notice.

    It dies when the call is over, while strace holds it, as it does every process that comes to as many of such calls.
    To stop it would not do: its supervisor has a guard go on that something else has stopped.
    """

    name = "child"
    pardons: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def missing(self) -> str:
        """Why no child can be killed at a system call here, or nothing."""
        return points.why_not()

    def points(self, scenario: Scenario, world: World, template: Path, log: Path) -> list[Point]:
        """All points of the children that are ours, one child after the other, found by following one run."""
        followed = _unstruck(scenario, world, template, log)
        started = followed.started()
        return [
            Point(each.call, each.nth, each.label, process=who)
            for who in sorted(followed.ours.values())
            for each in followed.seen(who, world, started)
            if each.label not in _NO_POINT
        ]

    def strikes(self, scenario: Scenario, folder: Path, at: Sequence[Point]) -> Iterator[Struck]:
        """One world for each point of *at*, all copies of one template."""
        world, template, log = World(folder / "world"), folder / "template", folder / "log"
        prepared(scenario, world, template)
        started = _unstruck(scenario, world, template, log).started()

        def strike(world: World, point: Point, nth: int) -> tuple[Struck, Sequence[points.Seen]]:
            """Kill the child of the command in *world*."""
            before = Before.of(world)
            scenario.arm(world)
            return _strike(scenario, before, point, nth, points.Log(log, world, ()), started)

        for point in at:
            yield from aimed(point, lambda: restored(world, template), strike)


def _unstruck(scenario: Scenario, world: World, template: Path, log: Path) -> Followed:
    """What strace tells of the command of *scenario* and of all that it starts, where nobody is killed."""
    points.through(scenario, world, template, lambda argv: points.traced(argv, log, following=True))
    followed = Followed()
    followed.add(points.lines_of(log))
    return followed


def _strike(
    scenario: Scenario, before: Before, point: Point, nth: int, log: points.Log, started: Mapping[str, Sequence[str]]
) -> tuple[Struck, Sequence[points.Seen]]:
    world, followed = log.world, Followed()
    stop = f"{point.call}:delay_exit={HELD}:when={nth}"
    frozen = Frozen(world, points.traced(scenario.argv(world), log.path, stop, following=True), log.path)
    victim = ""
    wrong: list[str] = []
    code = -1
    try:
        for lines in frozen.stops():
            followed.add(lines)
            victim = victim or _killed(frozen.stopped, followed, point.process)
        code = frozen.end()
        wrong += ended(code, frozen.said(), "killed at its child")
    except AssertionError as why:
        wrong.append(f"struck: {why}")
    finally:
        frozen.kill()
    seen = followed.seen(point.process, world, started)
    label = seen[-1].label if victim and seen else ""
    return Struck(point, world, before, bool(victim), label, code, frozen.said(), tuple(wrong)), seen


def _killed(stopped: Iterable[int], followed: Followed, process: str) -> str:
    """Kill the one of *stopped* that is the *process* meant; its pid, or nothing."""
    for pid in stopped:
        if followed.ours.get(str(pid)) == process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            return str(pid)
    return ""
