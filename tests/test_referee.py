"""What ends a run besides time: a spent budget, going in circles, a disk that is nearly full."""

from __future__ import annotations

from typing import Any

import pytest

from agents.budget import Spend
from agents.errors import HostError
from agents.events import Event, Progress, Result, Said, ToolCall, ToolResult, Unread, reduce
from agents.model import FailureKind
from agents.referee import Referee, unchanging
from agents.timers import Limits

GIB = 1024**3


def turn(number: int) -> Event:
    return Said(f"turn {number}", Spend(f"m{number}", {"input_tokens": 10}))


AGAIN: list[Event] = [ToolCall("Grep", "x", digest="c"), ToolResult(digest="a")]


def judged(events: list[Event], limits: Limits, stamp: Any = unchanging) -> tuple[Referee, Progress]:
    referee, seen = Referee(limits, stamp, lambda: GIB), Progress()
    for number, event in enumerate(events):
        seen = reduce(seen, event)
        referee.heard(event, number * 0.1)
    return referee, seen


@pytest.mark.parametrize(
    ("events", "limits", "kind", "words"),
    [
        ([turn(n) for n in range(9)], Limits(), None, ""),
        ([turn(n) for n in range(9)], Limits(max_turns=8), FailureKind.BUDGET, "8 turns"),
        ([turn(n) for n in range(9)], Limits(max_tokens=89), FailureKind.BUDGET, "89 tokens"),
        (AGAIN * 11, Limits(), None, ""),
        (AGAIN * 12, Limits(), FailureKind.NO_PROGRESS, "Grep(x)"),
        (AGAIN * 4, Limits(loop_after=4), FailureKind.NO_PROGRESS, "4 times"),
        (AGAIN * 99, Limits(loop_after=0), None, ""),
        # Both at once: the budget is what the operator asked for.
        ([*AGAIN * 12, turn(1), turn(2)], Limits(max_turns=1), FailureKind.BUDGET, "1 turns"),
        # Whoever has given a result has ended by itself.
        ([*(turn(n) for n in range(9)), Result()], Limits(max_turns=8), None, ""),
        ([*AGAIN * 12, Result()], Limits(), None, ""),
    ],
)
def test_the_verdict(events: list[Event], limits: Limits, kind: FailureKind | None, words: str) -> None:
    """P12: turns, tokens and circles; each with a sentence that says which."""
    referee, seen = judged(events, limits)
    verdict = referee.verdict(seen)
    assert (verdict and verdict[0]) == kind
    assert words in (verdict[1] if verdict else "")


@pytest.mark.parametrize("why", [OSError(5, "Input/output error"), HostError("git failed.", "look")])
def test_a_tree_that_cannot_be_looked_at_is_none_that_stands_still(why: Exception) -> None:
    """P12: no run is ended for what nobody could see."""

    def stamp() -> object:
        raise why

    referee, seen = judged(AGAIN * 50, Limits(), stamp)
    assert referee.verdict(seen) is None


def test_the_tree_is_not_looked_at_while_nothing_repeats() -> None:
    """A look at an airlock costs; an agent that works is not made slower by it."""
    looks = []
    steps = [event for n in range(50) for event in (ToolCall("Read", "x", digest=f"c{n}"), ToolResult(digest="a"))]
    judged(steps, Limits(), lambda: looks.append(1))
    assert looks == []


@pytest.mark.parametrize(
    ("left", "limits", "words"),
    [
        (GIB, Limits(), None), (64 * 1024**2, Limits(), None), (64 * 1024**2 - 1, Limits(), "less than 64.0 MiB"),
        (0, Limits(min_free=0), None), (0, Limits(min_free=1), "Only 0 B"),
    ],
)  # fmt: skip
def test_the_disk_has_to_have_room_for_the_end(left: int, limits: Limits, words: str | None) -> None:
    """C17: 64 MiB unless asked otherwise."""
    said = Referee(limits, unchanging, lambda: left).shortage()
    assert (said is None) == (words is None)
    assert (words or "") in (said or "")


@pytest.mark.parametrize(
    ("events", "limits", "words"),
    [
        ([turn(1), Result()], Limits(max_turns=1), None),
        ([turn(1), turn(2), Result()], Limits(max_turns=1), "had given its result already: Its budget of 1 turns"),
        ([turn(1), turn(2), Result(subtype="error_max_turns", is_error=True)], Limits(max_turns=1), None),
        ([turn(1), Unread(500)], Limits(), "may have used more"),
        ([turn(1), Unread(500), Result()], Limits(), None),
        ([Unread(500)], Limits(), None),
    ],
)
def test_what_is_odd_about_the_usage_is_noted(events: list[Event], limits: Limits, words: str | None) -> None:
    referee, seen = judged(events, limits)
    remark = referee.remark(seen)
    assert (remark is None) == (words is None)
    assert (words or "") in (remark or "")
