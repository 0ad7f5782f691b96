"""The pass that kills: the supervisor dies by SIGKILL just before the system call, which then never happens."""

from __future__ import annotations

import signal
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from tests.crash import points
from tests.crash.model import Before, Point, Scenario, Struck, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


TRIES: Final = 4
"""Strikes at one point: how often a process is waited for, or another one looked at, differs from run to run."""


STEP: Final = 5
"""Calls to go further where the point was not yet reached."""


class Kill:
    """``kill -9`` of the supervisor; what it started lives or dies by its own rules."""

    name = "kill"
    pardons: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def missing(self) -> str:
        """Why nothing can be killed at a system call here, or nothing."""
        return points.why_not()

    def strikes(self, scenario: Scenario, folder: Path, at: Sequence[Point]) -> Iterator[Struck]:
        """One world for each point of *at*, all copies of one template."""
        world, template, log = World(folder / "world"), folder / "template", folder / "log"
        prepared(scenario, world, template)
        started = points.started_by(scenario, world, template, log)
        for point in at:
            nth = point.nth
            for _ in range(TRIES):
                world.restore(template)
                before = Before.of(world)
                scenario.arm(world)
                struck, log_ = _strike(scenario, world, before, point, nth, points.Log(log, world, started))
                if struck.label == point.label:
                    break
                nth = closer(point, nth, log_)
            yield struck


def closer(point: Point, nth: int, seen: Sequence[points.Seen]) -> int:
    """Where to strike instead of at *nth*, where that was not the *point*: how often some calls are made is chance."""
    passed = [each.nth for each in seen[:-1] if (each.call, each.label) == (point.call, point.label)]
    return min(passed, key=lambda each: abs(each - point.nth)) if passed else nth + STEP


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
