"""The pass that kills: the supervisor dies by SIGKILL just before the system call, which then never happens."""

from __future__ import annotations

import contextlib
import signal
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from tests.crash import points
from tests.crash.model import Before, Point, Scenario, Struck, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

T = TypeVar("T")
"""Where a strike falls: a world, or a disk."""
TRIES: Final = 4
"""Strikes at one point: how often a process is waited for, or another one looked at, differs from run to run."""


STEP: Final = 3
"""Calls to go further, twice as many each time, where the point was not yet reached."""


class Kill:
    """``kill -9`` of the supervisor; what it started lives or dies by its own rules."""

    name = "kill"
    pardons: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def missing(self) -> str:
        """Why nothing can be killed at a system call here, or nothing."""
        return points.why_not()

    def points(self, scenario: Scenario, world: World, template: Path, log: Path) -> list[Point]:
        """All points of the command itself, in order."""
        return points.of_command(scenario, world, template, log)

    def strikes(self, scenario: Scenario, folder: Path, at: Sequence[Point]) -> Iterator[Struck]:
        """One world for each point of *at*, all copies of one template."""
        world, template, log = World(folder / "world"), folder / "template", folder / "log"
        prepared(scenario, world, template)
        started = points.started_by(scenario, world, template, log)

        def strike(world: World, point: Point, nth: int) -> tuple[Struck, Sequence[points.Seen]]:
            """Kill the command in *world*."""
            before = Before.of(world)
            scenario.arm(world)
            return _strike(scenario, world, before, point, nth, points.Log(log, world, started))

        for point in at:
            yield from aimed(point, lambda: restored(world, template), strike)


@contextlib.contextmanager
def restored(world: World, template: Path) -> Iterator[World]:
    """*world*, made anew from *template*."""
    world.restore(template)
    yield world


def aimed(
    point: Point,
    fresh: Callable[[], contextlib.AbstractContextManager[T]],
    strike: Callable[[T, Point, int], tuple[Struck, Sequence[points.Seen]]],
) -> Iterator[Struck]:
    """*strike* at *point* in worlds that *fresh* makes, until it is hit; only that of the last strike is there later."""
    nth = point.nth
    for tried in range(1, TRIES + 1):
        with fresh() as where:
            struck, seen = strike(where, point, nth)
            if struck.label == point.label or tried == TRIES:
                yield struck
                return
        nth = closer(point, nth + STEP * 2**tried, seen)


def closer(point: Point, further: int, seen: Sequence[points.Seen]) -> int:
    """Where to strike, where *seen* does not end at the *point*: where that was passed, or else *further* on.

    How often some calls are made is chance: whoever looks for a process looks at all that the machine has.
    """
    passed = [each.nth for each in seen[:-1] if (each.call, each.label) == (point.call, point.label)]
    return min(passed, key=lambda each: abs(each - point.nth)) if passed else further


def prepared(scenario: Scenario, world: World, template: Path) -> None:
    """Prepare *world* for *scenario* and keep it as *template*."""
    world.clear()
    scenario.prepare(world)
    assert not world.quiet(), f"{scenario.name}: its preparation leaves processes"
    world.keep(template)


def _strike(
    scenario: Scenario, world: World, before: Before, point: Point, nth: int, log: points.Log
) -> tuple[Struck, Sequence[points.Seen]]:
    argv = scenario.argv(world)
    log.path.unlink(missing_ok=True)
    done = world.run(points.traced(argv, log.path, f"{point.call}:signal=SIGKILL:when={nth}"))
    seen = log.read()
    # strace ends as what it traced did: by the same signal.
    hit = done.returncode == -signal.SIGKILL
    said = f"{done.stdout}{done.stderr}"[-2000:]
    wrong = () if hit or done.returncode in scenario.exits else (f"struck: it ended with {done.returncode}: {said}",)
    label = _label(point, seen) if hit else ""
    return Struck(point, world, before, hit, label, done.returncode, said, wrong), seen


def _label(point: Point, seen: Sequence[points.Seen]) -> str:
    """What was hit: the last call of the log, or the *point* itself where a mere look was, after the same effect."""
    last = next((each for each in reversed(seen) if each.call == point.call), None)
    if last is None or last.label:
        return last.label if last else ""
    done = [each.label for each in seen if each.label]
    return point.label if done and done[-1] == point.after else ""
