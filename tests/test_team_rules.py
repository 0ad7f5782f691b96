"""Several agents on one task, the rules alone: which engine each has, and how the whole ends when its parts have."""

from __future__ import annotations

import itertools

import pytest

from agents import team
from agents.engines.base import Command
from agents.errors import OperatorError
from agents.model import TRANSITIONS, Actor, Failure, FailureKind, RunState, Status
from agents.pump import Ending
from tests.support.plans import planned

ENGINES = [
    (1, None, "hollow", ["hollow"]),
    (3, None, "hollow", ["hollow"] * 3),
    (3, "claude", "hollow", ["claude"] * 3),
    (2, "claude,codex", "hollow", ["claude", "codex"]),
    (5, "claude,codex", "hollow", ["claude", "codex", "claude", "codex", "claude"]),
    # Who names several means several.
    (1, "claude,codex,hollow", "hollow", ["claude", "codex", "hollow"]),
    (2, " claude , codex ,", "hollow", ["claude", "codex"]),
    (2, ",,", "hollow", ["hollow", "hollow"]),
    (2, "", "hollow", ["hollow", "hollow"]),
    (2, "codex,codex", "hollow", ["codex", "codex"]),
]


@pytest.mark.parametrize(("count", "named", "usual", "engines"), ENGINES)
def test_each_agent_has_one_of_the_named_engines_in_turn(
    count: int, named: str | None, usual: str, engines: list[str]
) -> None:
    """T156: the order is the one in which they were named."""
    assert team.engines_of(count, named, usual) == engines


@pytest.mark.parametrize(("count", "named"), [(2, "a,b,c"), (3, "a,b,c,d")])
def test_more_engines_than_agents_are_refused_with_the_number_to_type(count: int, named: str) -> None:
    wanted = len(named.split(","))
    with pytest.raises(OperatorError, match=f"{wanted} engines for {count} agents") as caught:
        team.engines_of(count, named, "hollow")
    assert caught.value.hint == f"Type: -n {wanted}"


def part(status: Status) -> RunState:
    """An agent's run that ended in *status*."""
    failed = status in {Status.CRASHED, Status.STALLED}
    return RunState(status=status, failure=Failure(kind=FailureKind.BUDGET, message="Spent.") if failed else None)


WHOLE = [
    ("DONE DONE", Status.DONE, None),
    ("REVIEW", Status.REVIEW, None),
    ("REVIEW DONE", Status.REVIEW, None),
    ("CRASHED REVIEW", Status.REVIEW, None),
    ("STOPPED REVIEW", Status.REVIEW, None),
    ("STALLED REVIEW CRASHED", Status.REVIEW, None),
    ("STOPPED DONE", Status.STOPPED, None),
    ("CRASHED STOPPED", Status.STOPPED, None),
    ("CRASHED DONE", Status.CRASHED, FailureKind.BUDGET),
    ("CRASHED CRASHED", Status.CRASHED, FailureKind.BUDGET),
    ("STALLED DONE", Status.CRASHED, FailureKind.BUDGET),
    ("", Status.CRASHED, FailureKind.AGENT_ABORT),
]


@pytest.mark.parametrize(("parts", "status", "kind"), WHOLE, ids=[parts or "none" for parts, *_ in WHOLE])
def test_the_whole_waits_for_review_as_soon_as_one_of_its_agents_does(
    parts: str, status: Status, kind: FailureKind | None
) -> None:
    """T156: what one of them made is not lost because another failed."""
    found = team._outcome([part(Status[word]) for word in parts.split()], Ending())
    assert found[:2] == (status, kind)
    assert bool(found[2]) == (status in {Status.CRASHED, Status.STOPPED})


@pytest.mark.parametrize("parts", [[], [Status.DONE], [Status.STOPPED, Status.CRASHED]])
def test_what_the_operator_stopped_is_stopped(parts: list[Status]) -> None:
    found = team._outcome([part(status) for status in parts], Ending(stopped=True))
    assert found == (Status.STOPPED, None, "You stopped it.")


def test_a_patch_that_was_made_before_the_stop_still_waits() -> None:
    """A part of the work is better than nothing."""
    assert team._outcome([part(Status.REVIEW)], Ending(stopped=True))[0] is Status.REVIEW


@pytest.mark.parametrize("parts", [[], [Status.DONE], [Status.REVIEW], [Status.STOPPED]])
def test_what_kept_the_agents_from_being_started_is_the_end(parts: list[Status]) -> None:
    ending = Ending(cause=FailureKind.SPAWN, message="No more processes.", stopped=True)
    found = team._outcome([part(status) for status in parts], ending)
    assert found == (Status.CRASHED, FailureKind.SPAWN, "No more processes.")


def test_every_end_of_the_whole_is_one_that_the_law_has() -> None:
    """Whatever the parts came to."""
    ends = [Status.DONE, Status.REVIEW, Status.CRASHED, Status.STALLED, Status.STOPPED, Status.MERGED, Status.REJECTED]
    for parts in itertools.chain.from_iterable(itertools.combinations(ends, size) for size in range(4)):
        status, kind, message = team._outcome([part(each) for each in parts], Ending())
        assert Actor.OWNER in TRANSITIONS[Status.ACTIVE][status], parts
        assert (kind is None) == (status is not Status.CRASHED), parts
        assert message.isprintable()


def test_the_engine_of_the_whole_starts_nothing() -> None:
    """Its agents are runs of their own, with engines of their own."""
    made = planned("fix", engine=team.Team(), mind=None, argv=("true",))
    assert made.command == Command(argv=())
    assert made.meta.engine == "team"
