"""The verdict on a strike: the operator's next commands must work and leave the truth, no litter, and a way on."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from tests.crash import rules

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crash.model import Before, Scenario, World

AGE: Final = 3600.0
"""Seconds by which what a dead start may have left is made older: until ten minutes a living one may still own it."""


def judge(scenario: Scenario, world: World, before: Before) -> list[str]:
    """What is wrong in *world* after a strike: as the next `status` leaves it, then after going on where it came.

    Sentences, each led by the name of the rule that is broken; none where all is well.
    """
    scenario.calm(world)
    found = [f"processes: {len(left)} are still alive." for left in [world.quiet()] if left]
    found += _looks(world)
    found += [f"truth: {each}" for each in scenario.truth(world)]
    # What is wrong already would only be found again, in other words.
    found = found or rules.standing(scenario, world, before) or _kept_clean(world)
    return found or _goes_on(scenario, world, before)


def _looks(world: World) -> list[str]:
    """The command that looks must work, and say so in sentences."""
    done = world.agent("status")
    said = f"{done.stdout}{done.stderr}"
    wrong = done.returncode or "Traceback" in said or "Agent Box itself failed" in said
    return [f"status: it ended with {done.returncode}: {said.strip()}"] if wrong else []


def _kept_clean(world: World) -> list[str]:
    """Nothing is left lying about; what a living start could still own is gone ten minutes later."""
    if not litter(world):
        return []
    age(world)
    return _looks(world) or litter(world)


def _goes_on(scenario: Scenario, world: World, before: Before) -> list[str]:
    """What was struck can be gone on with, and ends as if it had never been."""
    words = scenario.again(world)
    if words is None:
        return [f"end: {each}" for each in scenario.end(world)]
    done = world.run([*scenario.program, *words])
    if done.returncode not in scenario.exits:
        return [f"again: {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}".strip()]
    found = [f"end: {each}" for each in scenario.end(world)]
    return found or rules.standing(scenario, world, before) or litter(world)


def age(world: World) -> None:
    """Make older what dead starts may have left where living ones put it."""
    then = time.time() - AGE
    data = world.repo / ".agents"
    for folder in (data / "staging", data / "active"):
        for path in folder.iterdir() if folder.is_dir() else ():
            os.utime(path, (then, then), follow_symlinks=False)


def litter(world: World) -> list[str]:
    """What a strike has left lying about: files half made, marks of what is over, locks, scratch of a gate."""
    # Whoever empties a large folder behind the operator's back is waited for: it is neither litter nor to be looked into.
    world.quiet()
    data, trees, commands = world.repo / ".agents", world.repo / "agent_box", world.repo / ".claude"
    found: list[Path] = []
    for folder in (data / "staging", data / "active", trees / "verify"):
        found += folder.iterdir() if folder.is_dir() else ()
    for top in (data, world.home, commands, world.repo / ".git"):
        found += top.rglob(".*.tmp")
    found += world.repo.glob(".*.tmp")
    found += commands.glob("commands/run_*")
    found += [path for path in (world.repo / ".git").rglob("*.lock") if path.name != "agent-box.lock"]
    for private in (data / "runs").glob("*/private"):
        found += [
            *private.glob("reserve"),
            *private.glob("room.git/scratch-*"),
            *private.glob("landing/*"),
            *private.glob("gate.git"),
        ]
    return [f"litter: {path.relative_to(world.path)}" for path in sorted(set(found))]
