"""The catalogue played: every attack behind the full wall and without one, and what the operator types afterwards."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.adversary import servers
from tests.adversary.attack import BREACH
from tests.adversary.catalogue import evidence, gate, outside, patches, plants, processes, resources, secrets, stream

if TYPE_CHECKING:
    from tests.adversary.arena import Arena, Story
    from tests.adversary.attack import Attack, End

CATALOGUE: tuple[Attack, ...] = (
    *plants.ATTACKS, *outside.ATTACKS, *evidence.ATTACKS, *secrets.ATTACKS, *processes.ATTACKS, *stream.ATTACKS, *patches.ATTACKS,
    *resources.ATTACKS, *gate.ATTACKS,
)  # fmt: skip


def _case(attack: Attack, wall: str) -> Any:
    """One attack at one wall; where the wall makes no difference the run behind it is for those with more time."""
    marks = [pytest.mark.slow] if wall == "full" and attack.full is attack.none else []
    return pytest.param(attack, wall, id=f"{attack.name}-{wall}", marks=marks)


CASES = [_case(attack, wall) for attack in CATALOGUE for wall in ("full", "none") if attack.end(wall)]
PARTIAL = (
    "config-filter", "hooks", "refs", "absolute-path", "dot-dot", "symlink-write-through", "hard-link", "home", "another-box",
    "ledger-append", "own-state", "own-isolation", "anchors", "another-runs-stream", "ptrace", "merges-by-itself",
    "patch-state-and-ledger-after-review",
)  # fmt: skip
"""Attacks that the second wall holds as well as the first."""


@pytest.mark.slow
@pytest.mark.parametrize("attack", [each for each in CATALOGUE if each.name in PARTIAL], ids=lambda attack: attack.name)
@pytest.mark.parametrize("wall", ["partial"], indirect=True)
def test_attack_behind_the_second_wall(attack: Attack, wall: str, arena: Arena) -> None:
    """T147: Landlock keeps an agent from what is not its own, too."""
    assert attack.full is not None
    _play(attack, attack.full, arena)


@pytest.mark.parametrize(("attack", "wall"), CASES, indirect=["wall"])
def test_attack(attack: Attack, wall: str, arena: Arena) -> None:
    """T147: nothing is gained behind the wall; without one the run ends with the truth."""
    end = attack.end(wall)
    assert end is not None
    _play(attack, end, arena)


def _play(attack: Attack, end: End, arena: Arena) -> None:
    """Let the agent of *attack* loose and compare what is left of the *arena* with how it must *end*."""
    if attack.before:
        attack.before(arena)
    before = arena.print()
    with servers.listening(arena.scratch) if attack.serves else contextlib.nullcontext({}) as known:
        arena.constants.update(known)
        story = arena.attack(attack.source, *attack.options, verb=attack.verb, env=attack.environ)
    assert "Traceback" not in story.done.stderr, story.done.stderr
    assert len(story.tried) >= attack.attempts, story.said
    _ended(story, end, arena.wall)
    if arena.wall == "none" and BREACH in end.failure:
        # The control: what the wall holds does work without it.
        assert "GAINED" in story.tried.values(), story.said
    if end.same:
        assert _differences(before, arena.print()) == {}
    if end.held:
        # What a path into a sandbox's memory has taken is gone with it: the comparison above says so.
        assert set(story.tried.values()) <= {"HELD", "MEMORY"}, story.said
        assert end.same
    _afterwards(attack, end, arena, story)


def _ended(story: Story, end: End, wall: str) -> None:
    told = (story.status, story.failure, story.done.stderr)
    if end.status != "*":
        assert story.status == end.status, told
        assert story.state["isolation"] == wall
    if end.failure != "*":
        assert re.search(end.failure, story.failure) if end.failure else not story.failure, told


def _afterwards(attack: Attack, end: End, arena: Arena, story: Story) -> None:
    """The operator goes on with his day, and nothing of the agent's wakes up."""
    if end.verify >= 0:
        assert arena.verified() == end.verify
    if attack.plants:
        arena.look_around()
    if end.then:
        end.then(arena, story)
    assert not arena.canary.exists()


def _differences(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    names = before.keys() | after.keys()
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def test_the_catalogue_is_as_large_as_promised() -> None:
    """Issue 3, part 13: at least 40 attacks, each with a name of its own and the faults that it stands for."""
    names = [attack.name for attack in CATALOGUE]
    assert len(names) == len(set(names)) >= 45
    assert all(re.fullmatch(r"[A-Z]\d\d( [A-Z]\d\d)*", attack.faults) for attack in CATALOGUE)
