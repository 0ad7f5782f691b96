"""Loops: the same again and again is one, waiting, polling and slow progress are none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.engines.stream_json import STREAM_JSON
from agents.events import Event, Init, Output, Said, ToolCall, ToolResult, Unread, decode
from agents.loops import WAITED, Loops, digest

AFTER = 4


def act(what: str, answer: str = "same", took: float = 0.1) -> list[tuple[float, Event]]:
    """A call of the tool *what* and its answer: how long each came after the one before, and the event."""
    return [(0.1, ToolCall(what, f"about {what}", digest=digest(what))), (took, ToolResult(digest=digest(answer)))]


def say(text: str) -> list[tuple[float, Event]]:
    return [(0.1, Said(text))]


def watch(
    steps: list[list[tuple[float, Event]]], trees: Any = "the tree", after: int = AFTER
) -> tuple[str | None, int]:
    """The first sentence about *steps* and how often the tree was looked at; *trees* is it, or an iterator of them."""
    loops, now, looks = Loops(after=after), 0.0, 0
    for event in [event for step in steps for event in step]:
        now += event[0]
        loops = loops.heard(event[1], now)
        if loops.is_suspicious:
            looks += 1
            loops, sentence = loops.judged(trees if isinstance(trees, str) else next(trees))
            if sentence:
                return sentence, looks
    return None, looks


def numbered(make: Any, count: int = 40) -> list[Any]:
    return [make(number) for number in range(count)]


LOOPS = {
    "one action": [act("Grep")] * AFTER,
    "one action after others": [act("Ls"), act("Cat"), *[act("Grep")] * AFTER],
    "two in turn": [act("Edit"), act("Test", "failed")] * AFTER,
    "three in turn": [act("Edit"), act("Test", "failed"), act("Undo")] * AFTER,
    "with words in between": [step for number in range(AFTER) for step in (say(f"try {number}"), act("Grep"))],
    "the same words": [say("I will look at it now.")] * AFTER,
    "two sentences in turn": [say("one"), say("two")] * AFTER,
    "after a wait": [act("Sleep", took=WAITED + 1), *[act("Grep")] * AFTER],
    "after a flood": [act("Grep"), [(0, Unread(1000))], *[act("Grep")] * AFTER],
    "with other events in between": [[*act("Grep"), (0, Output("tool_progress")), (0, Init("s"))]] * AFTER,
}
FREE = {
    "not often enough": [act("Grep")] * (AFTER - 1),
    "polling, each time another answer": numbered(lambda n: act("Status", f"{n} %")),
    "other arguments": numbered(lambda n: act(f"Read {n}")),
    "waiting for long commands": [act("Bash sleep", took=WAITED)] * 40,
    "progress in between": [step for n in range(10) for step in [*[act("Test", "failed")] * (AFTER - 1), act(f"Edit {n}")]],
    "a cycle of four": [act(name) for name in "abcd"] * 40,
    "two in turn, not often enough": ([act("Edit"), act("Test")] * AFTER)[:-1],
    "words that differ": numbered(lambda n: say(f"step {n}")),
    "the same words over work": [step for n in range(40) for step in (say("Next."), act(f"Read {n}"))],
    "nothing said": [say("  ")] * 40,
    "a flood in between": [step for _ in range(20) for step in ([(0, Unread(9))], act("Grep"), act("Grep"))],
    "answers to nothing": [[(0.1, ToolResult(digest="d"))]] * 40,
    "answers that are never given": [[(0.1, ToolCall("Bash", "x", digest="d"))]] * 40,
    "nobody made digests": [[(0.1, ToolCall("Bash", "x")), (0.1, ToolResult())]] * 40,
    "an answer that no digest can be made of": [[(0.1, ToolCall("Bash", "x", digest="d")), (0.1, ToolResult())]] * 40,
}  # fmt: skip


@pytest.mark.parametrize("steps", LOOPS.values(), ids=LOOPS.keys())
def test_the_same_again_and_again_is_a_loop(steps: list[Any]) -> None:
    """P12: the same actions with the same results while the tree stands still."""
    sentence, looks = watch(steps)
    assert sentence is not None
    assert f"the same {AFTER} times in a row" in sentence
    assert looks <= 6


@pytest.mark.parametrize("steps", FREE.values(), ids=FREE.keys())
def test_waiting_polling_and_working_are_no_loops(steps: list[Any]) -> None:
    """P12: an agent that waits for a long command, or asks until something has changed, is left alone."""
    assert watch(steps)[0] is None


def test_a_tree_that_changes_is_progress() -> None:
    """P12: whatever the tool answers; the tree is looked at once a round, not at every step."""
    steps = [act("Bash make next")] * 100
    sentence, looks = watch(steps, iter(range(1000)))
    assert sentence is None
    assert looks < 65
    # It changed at first and stands still now.
    assert watch(steps, iter([0, 1, *["still"] * 100]))[0] is not None


def test_a_loop_is_never_seen_where_nobody_asks_for_it() -> None:
    assert watch([act("Grep")] * 100, after=0) == (None, 0)


@pytest.mark.parametrize("after", [1, 2, 3])
def test_it_takes_three_to_compare(after: int) -> None:
    """Two may be chance, and a tree has to be looked at twice."""
    assert watch([act("Grep")] * 2, after=after)[0] is None
    assert watch([act("Grep")] * 3, after=after)[0] is not None


@pytest.mark.parametrize("after", [3, 12, 40])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_loop_is_seen_at_its_last_step_and_not_before(after: int, length: int) -> None:
    steps = [act(name) for name in "abc"[:length]] * after
    assert watch(steps[:-1], after=after)[0] is None
    assert watch(steps, after=after)[0] is not None


def test_the_sentence_names_the_actions_and_no_secret() -> None:
    """K08: what the agent passes to its tools is a stranger's text."""
    sentence, _ = watch([act("Grep"), act("Cat")] * AFTER)
    assert sentence == "It did the same 4 times in a row, each time with the same result, and nothing changed: Grep(about Grep); Cat(about Cat)."  # fmt: skip
    hostile = [[(0, ToolCall("Ba\x1b[2Jsh", "ghp_" + "a1B2" * 9, digest="d")), (0, ToolResult(digest="e"))]] * AFTER
    sentence, _ = watch(hostile)
    assert sentence is not None
    assert "\x1b" not in sentence
    assert "a1B2" not in sentence
    assert watch([say("word " * 1000)] * AFTER)[0] is not None
    assert len(watch([say("word " * 1000)] * AFTER)[0] or "") < 300


def test_calls_at_the_same_time_are_paired_by_their_ids() -> None:
    """The answers may come in another order than the calls."""

    def pair(number: int, *, turned: bool) -> list[tuple[float, Event]]:
        calls: list[tuple[float, Event]] = [(0, ToolCall(name, "", digest=name, id=f"{name}{number}")) for name in "ab"]
        answers: list[tuple[float, Event]] = [(0, ToolResult(digest=f"{name}!", id=f"{name}{number}")) for name in "ab"]
        return [*calls, *(answers[::-1] if turned else answers)]

    assert watch([pair(number, turned=False) for number in range(AFTER)])[0] is not None
    # Answers in another order are the same answers: only the order of the steps differs.
    assert watch([pair(number, turned=number % 2 == 1) for number in range(AFTER)])[0] is None


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True), ("a", "b", False), ("\ud800", "\ud800", True), (1, "1", False),
        ([["Read", {"p": 1}]], [["Read", {"p": 2}]], False), (None, None, True),
    ],
)  # fmt: skip
def test_a_digest_is_of_the_value(one: Any, other: Any, equal: bool) -> None:
    assert (digest(one) == digest(other)) is equal
    assert len(digest(one)) == 16


def test_what_cannot_be_written_has_no_digest() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    assert digest(nested) == ""
    assert digest({1, 2}) == ""
    while nested:
        nested = nested.pop()


def line(kind: str, number: int, **block: Any) -> bytes:
    """A line as Claude Code prints it: message ids, call ids and times are never the same twice."""
    event = {
        "type": kind,
        "message": {"id": f"msg_{number}", "content": [block]},
        "uuid": str(number),
        "timestamp": number,
    }
    return json.dumps(event).encode()


def test_lines_of_a_real_program_repeat_themselves_although_their_ids_differ() -> None:
    """P12: from the stream's bytes on."""
    loops = Loops(after=AFTER)
    for number in range(AFTER):
        call = line("assistant", number, type="tool_use", id=f"toolu_{number}", name="Read", input={"path": "a"})
        answer = line("user", number, type="tool_result", tool_use_id=f"toolu_{number}", content="1\talpha")
        for event in (decode(call, STREAM_JSON), decode(answer, STREAM_JSON)):
            loops = loops.heard(event, number)
        loops, sentence = loops.judged("tree") if loops.is_suspicious else (loops, None)
    assert sentence is not None
    assert "Read(a)" in sentence


events = st.one_of(
    st.builds(ToolCall, st.sampled_from("ab"), st.text(max_size=3), digest=st.sampled_from(["", "d", "e"]), id=st.sampled_from([None, "1", "2"])),
    st.builds(ToolResult, st.booleans(), st.sampled_from(["", "d", "e"]), st.sampled_from([None, "1", "2"])),
    st.builds(Said, st.text(max_size=3)), st.builds(Unread, st.integers(0, 9)),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(events, st.floats(0, 9), st.sampled_from("xy")), max_size=60))
def test_nothing_grows_and_a_loop_has_as_many_steps_as_it_says(told: list[tuple[Event, float, str]]) -> None:
    """P21: whatever the agent does."""
    loops, now = Loops(after=3), 0.0
    for number, (event, later, tree) in enumerate(told):
        now += later
        loops = loops.heard(event, now)
        if loops.is_suspicious:
            loops, sentence = loops.judged(tree)
            assert sentence is None or number >= 2
        assert len(loops.pending) <= 16
        assert len(loops.actions.recent) <= 3
