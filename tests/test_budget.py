"""What a run has used, from messages and result, and the budgets that it may not overstep."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import views
from agents.budget import TOKENS, Spend, Tally, add, counts, spent, tokens, usage
from agents.engines.stream_json import STREAM_JSON
from agents.events import Init, Progress, Result, decode, reduce
from agents.timers import Limits


def tallied(*spends: Spend) -> Tally:
    tally = Tally()
    for spend in spends:
        tally = tally.plus(spend)
    return tally


def heard(*events: Any) -> Progress:
    seen = Progress()
    for event in events:
        seen = reduce(seen, decode(json.dumps(event).encode(), STREAM_JSON) if isinstance(event, dict) else event)
    return seen


def block(message: str | None, used: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    """One block of a message, as Claude Code prints it, or hollow where *message* is None."""
    named = {"id": message} if message else {}
    told = {"usage": used} if used else {}
    return {"type": "assistant", "message": {**named, "content": [{"type": "text", "text": "x"}], **told}, **more}


def used(read: int, wrote: int) -> dict[str, int]:
    return {"input_tokens": read, "output_tokens": wrote}


def ended(turns: int | None = None, cost: float | None = None, told: dict[str, int] | None = None) -> Result:
    return Result(turns=turns, usage={**(told or {}), **({} if cost is None else {"cost_usd": cost})})


# --- the tally --------------------------------------------------------------------------------------------------------

TALLIES = {
    "blocks of one message repeat its usage": ([block("m", used(100, 1)), block("m", used(100, 1))], 1, used(100, 1)),
    "the last block knows more": ([block("m", used(100, 1)), block("m", used(100, 40))], 1, used(100, 40)),
    "an older number of a message is no correction": ([block("m", used(100, 40)), block("m", used(90, 1))], 1, used(100, 40)),
    "two messages add up": ([block("a", used(100, 10)), block("b", used(200, 20))], 2, used(300, 30)),
    "interleaved": ([block("a", used(1, 1)), block("b", used(2, 2)), block("a", used(1, 9))], 2, used(3, 11)),
    "without ids every usage is a message": ([block(None, used(5, 1)), block(None), block(None, used(6, 1))], 2, used(11, 2)),
    "a message without usage is a turn all the same": ([block("a"), block("b")], 2, {}),
    "neither id nor usage": ([block(None)], 0, {}),
    "a subagent's message costs but is no turn": (
        [block("a", used(1, 1)), block("b", used(2, 2), parent_tool_use_id="toolu_1")], 1, used(3, 3),
    ),
    "cached tokens have their own names": (
        [block("a", {**used(1, 1), "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3})], 1,
        {**used(1, 1), "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("events", "turns", "total"), TALLIES.values(), ids=TALLIES.keys())
def test_messages_add_up_and_their_parts_do_not(events: list[Any], turns: int, total: dict[str, int]) -> None:
    tally = heard(*events).tally
    assert (tally.turns, tally.tokens()) == (turns, total)


def test_what_the_harness_says_for_the_model_is_no_turn() -> None:
    event = block("m")
    event["message"]["model"] = "<synthetic>"
    assert heard(event).tally.turns == 0


def test_a_tally_is_bounded_and_complete_whatever_the_number_of_messages() -> None:
    """P21: the oldest messages are closed; what they used stays."""
    tally = tallied(*(Spend(f"m{number}", {"input_tokens": 1}) for number in range(10_000)))
    assert (tally.turns, tally.tokens()) == (10_000, {"input_tokens": 10_000})
    assert len(repr(tally)) < 3_000


@pytest.mark.parametrize("odd", [None, [], 3, {"input_tokens": -1}, {"input_tokens": True}, {"input_tokens": "9"},
                                 {"input_tokens": 2**80}, {"input_tokens": math.inf}, {"other": 3}, {7: 7}])  # fmt: skip
def test_only_counts_are_counted(odd: Any) -> None:
    assert counts(odd) == {}


spends = st.builds(
    Spend,
    st.none() | st.sampled_from("abc"),
    st.dictionaries(st.sampled_from([*TOKENS, "x"]), st.integers(-5, 2**60) | st.text(max_size=2), max_size=4),
    st.booleans(),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(spends, max_size=12))
def test_a_tally_never_shrinks_and_can_be_written(told: list[Spend]) -> None:
    before, tally = 0, Tally()
    for spend in told:
        tally = tally.plus(spend)
        now = tokens(tally.tokens())
        assert now >= before
        before = now
    assert set(tally.tokens()) <= set(TOKENS)
    json.dumps(tally.tokens(), allow_nan=False)


# --- usage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], {}),
        ([Init("s")], {}),
        ([block("a", used(100, 1))], {**used(100, 1), "turns": 1}),
        # The result knows what the parts of messages could not know yet.
        ([block("a", used(100, 1)), ended(1, 0.5, used(100, 80))], {**used(100, 80), "turns": 1, "cost_usd": 0.5}),
        # What follows a result is in the tally alone, as are attempts before this one.
        ([block("a", used(100, 1)), ended(1, None, used(100, 80)), block("b", used(300, 2))], {**used(400, 80), "turns": 2}),
        ([ended(0)], {"turns": 0}),
        ([ended(None, 0.25)], {"cost_usd": 0.25}),
        ([Result(usage={"cost_usd": math.nan, "input_tokens": -4, "x": 3})], {}),
    ],
)  # fmt: skip
def test_usage_is_what_is_known_and_nothing_else(events: list[Any], expected: dict[str, Any]) -> None:
    assert usage(heard(*events)) == expected


def test_a_result_of_a_real_program_gives_the_usage_of_the_ledger() -> None:
    """C: turns, cost and all four kinds of tokens; what else stands there does not reach state and ledger."""
    event = {
        "type": "result", "subtype": "success", "is_error": False, "num_turns": 3, "duration_ms": 435, "result": "Done.",
        "total_cost_usd": 0.0018, "usage": {
            **used(300, 30), "cache_read_input_tokens": 5, "cache_creation_input_tokens": 6, "service_tier": "standard",
            "iterations": 9,
        },
    }  # fmt: skip
    seen = heard(event)
    assert usage(seen) == {
        **used(300, 30), "cache_read_input_tokens": 5, "cache_creation_input_tokens": 6, "turns": 3, "cost_usd": 0.0018,
    }  # fmt: skip
    assert seen.result is not None
    assert seen.result.duration == 0.435


@pytest.mark.parametrize(
    ("before", "more", "total"),
    [
        ({}, {}, {}),
        ({}, {**used(1, 2), "turns": 1}, {**used(1, 2), "turns": 1}),
        ({**used(1, 2), "turns": 1, "cost_usd": 0.5}, {**used(3, 4), "turns": 2}, {**used(4, 6), "turns": 3, "cost_usd": 0.5}),
        ({"cost_usd": 0.5}, {"cost_usd": 0.25}, {"cost_usd": 0.75}),
        ({"input_tokens": "x", "turns": None, "cost_usd": math.inf, "old": 1}, {"turns": 2}, {"turns": 2}),
    ],
)  # fmt: skip
def test_attempts_add_up(before: dict[str, Any], more: dict[str, Any], total: dict[str, Any]) -> None:
    assert add(before, more) == total


def test_people_are_shown_the_tokens_that_are_counted() -> None:
    """The lean views name the kinds themselves, since importing this module costs."""
    told = {name: 10**place for place, name in enumerate(TOKENS)}
    assert views.spent(told) == f"{tokens(told) / 1000:.1f}k tok"


# --- budgets ----------------------------------------------------------------------------------------------------------

FIVE = [block(str(number), used(100, 10)) for number in range(5)]


@pytest.mark.parametrize(
    ("limits", "events", "sentence"),
    [
        (Limits(), FIVE, None),
        (Limits(max_turns=5), FIVE, None),
        (Limits(max_turns=4), FIVE, "Its budget of 4 turns is spent."),
        (Limits(max_tokens=550), FIVE, None),
        (Limits(max_tokens=549), FIVE, "Its budget of 549 tokens is spent: it used 550."),
        (Limits(max_turns=1, max_tokens=1), FIVE, "Its budget of 1 turns is spent."),
        (Limits(max_usd=0.5), [ended(cost=0.5)], None),
        (Limits(max_usd=0.5), [ended(cost=0.75)], "Its budget of $0.5 is spent: it used $0.75."),
        (Limits(max_usd=0.5), FIVE, None),
        (Limits(max_tokens=6), [block("a", {"cache_read_input_tokens": 7})], "Its budget of 6 tokens is spent: it used 7."),
    ],
)  # fmt: skip
def test_a_budget_is_spent_with_the_first_beyond_it(limits: Limits, events: list[Any], sentence: str | None) -> None:
    """P12: turns, tokens, dollars: what it may use it may use up."""
    assert spent(limits, heard(*events)) == sentence
