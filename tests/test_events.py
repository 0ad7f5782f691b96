"""What agents say: nothing raises, everything that is kept is bounded, the first session and the last result count."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.budget import Spend
from agents.engines.stream_json import STREAM_JSON
from agents.events import (
    PARSE_LIMIT,
    PLAIN,
    Dialect,
    Event,
    Fact,
    Garbage,
    Init,
    Output,
    Progress,
    Result,
    Said,
    ToolCall,
    ToolResult,
    Unread,
    decode,
    reduce,
)
from agents.loops import digest

SESSION = "0a0a0a0a-1111-4222-8333-444444444444"


def read(event: Any, dialect: Dialect = STREAM_JSON) -> Event:
    """The event that the object *event* decodes to."""
    return decode(json.dumps(event).encode(), dialect)


def heard(*events: Event) -> Progress:
    """What is known after *events*."""
    seen = Progress()
    for event in events:
        seen = reduce(seen, event)
    return seen


def assistant(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "assistant",
        "message": {"id": "msg_1", "role": "assistant", "content": list(blocks)},
        "session_id": SESSION,
        **more,
    }


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": content}, "session_id": SESSION, **more}


# --- the dialect, event by event --------------------------------------------------------------------------------------

# The shapes that real programs print, typed anew: what each one has to be taken for.
INIT = {
    "type": "system", "subtype": "init", "cwd": "/w/r", "session_id": SESSION, "tools": ["Glob", "Grep", "Read"], "mcp_servers": [],
    "model": "claude-opus-5-5", "permissionMode": "dontAsk", "slash_commands": ["x"], "apiKeySource": "ANTHROPIC_API_KEY",
    "claude_code_version": "2.1.330", "agents": [], "skills": [], "plugins": [], "memory_paths": {"auto": "/h/memory/"}, "uuid": "u-1",
}  # fmt: skip
RESULT = {
    "subtype": "success", "is_error": False, "api_error_status": None, "duration_ms": 435, "duration_api_ms": 187, "num_turns": 3,
    "type": "result", "result": "Done.", "stop_reason": "end_turn", "session_id": SESSION, "total_cost_usd": 0.0018,
    "usage": {"input_tokens": 300, "output_tokens": 30, "cache_read_input_tokens": 0, "service_tier": "standard", "server_tool_use": {"n": 0}},
    "modelUsage": {"claude-opus-5-5": {"inputTokens": 300, "costUSD": 0.0018, "contextWindow": 1_000_000}},
    "permission_denials": [{"tool_name": "Read", "tool_use_id": "toolu_1", "tool_input": {"file_path": "/etc/hostname"}}],
    "terminal_reason": "completed", "uuid": "u-9",
}  # fmt: skip
ONE = Spend("msg_1")
"""What :func:`assistant` tells of its usage: a message, and no number."""


def called(name: str, argument: str, given: Any, **more: Any) -> ToolCall:
    """The call of one tool in a message of :func:`assistant`."""
    return ToolCall(name, argument, digest=digest([[name, given]]), spend=ONE, **more)


def answer(content: Any, error: bool | None = None, **more: Any) -> ToolResult:
    return ToolResult(error is True, digest([[content, error]]), **more)


SHAPES = {
    "init": (INIT, Init(SESSION, "claude-opus-5-5", "2.1.330")),
    "init of the seed": ({"type": "init", "session_id": "x"}, Init("x")),
    "init of hollow": ({**INIT, "claude_code_version": None, "hollow_version": "0.1.0"}, Init(SESSION, "claude-opus-5-5", "0.1.0")),
    "text": (assistant({"type": "text", "text": "Looking."}, parent_tool_use_id=None, request_id="req_1"), Said("Looking.", ONE)),
    "text as a bare string": ({"type": "assistant", "message": {"content": "Looking."}}, Said("Looking.")),
    "thinking": (assistant({"type": "thinking", "thinking": "Hm.", "signature": "s"}), Output("assistant", ONE)),
    "several blocks": (
        assistant({"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": "Grep", "input": {"pattern": "x"}}),
        called("Grep", "x", {"pattern": "x"}, id="t"),
    ),
    "a message and its usage": (
        {"type": "assistant", "message": {"id": "m", "content": "x", "usage": {"input_tokens": 3, "service_tier": "s"}}},
        Said("x", Spend("m", {"input_tokens": 3})),
    ),
    "a usage without a message": ({"type": "assistant", "message": {"content": "x", "usage": {"output_tokens": 3}}}, Said("x", Spend(None, {"output_tokens": 3}))),
    "a subagent": (assistant({"type": "text", "text": "a"}, parent_tool_use_id="toolu_1"), Said("a", Spend("msg_1", turn=False))),
    "several calls": (
        assistant({"type": "tool_use", "id": "t", "name": "Ls", "input": {}}, {"type": "tool_use", "id": "u", "name": "Grep", "input": {"pattern": "x"}}),
        ToolCall("Grep", "x", digest=digest([["Ls", {}], ["Grep", {"pattern": "x"}]]), id="u", spend=ONE),
    ),
    "tool call": (assistant({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/w/r/a.txt"}}), called("Read", "/w/r/a.txt", {"file_path": "/w/r/a.txt"}, id="toolu_1")),
    "tool call with a number first": (assistant({"type": "tool_use", "name": "Read", "input": {"limit": 3, "path": "a"}}), called("Read", "a", {"limit": 3, "path": "a"})),
    "tool call without input": (assistant({"type": "tool_use", "name": "Ls"}), called("Ls", "", None)),
    "tool result": (user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "1\talpha\n"}], tool_use_result={"type": "text"}), answer("1\talpha\n", id="toolu_1")),
    "tool result of blocks": (user([{"type": "tool_result", "content": [{"type": "text", "text": "x"}], "is_error": False}]), answer([{"type": "text", "text": "x"}], False)),
    "tool error": (user([{"type": "tool_result", "content": "<tool_use_error>", "is_error": True}], tool_use_result="Error: x"), answer("<tool_use_error>", True)),
    "the harness talking": (user([{"type": "text", "text": "Output token limit hit."}], isSynthetic=True), Output("user")),
    "the harness talking plainly": (user("Resume directly.", isSynthetic=True), Output("user")),
    "permission denied": ({"type": "system", "subtype": "permission_denied", "tool_name": "Read", "message": "no"}, Output("system")),
    "api retry": ({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "error_status": 500}, Output("system")),
    "tool progress": ({"type": "tool_progress", "tool_use_id": "t-heartbeat-0", "elapsed_time_seconds": 30}, Output("tool_progress")),
    "task updated": ({"type": "system", "subtype": "task_updated", "session_id": SESSION}, Output("system")),
    "api error": (
        assistant({"type": "text", "text": "API Error: 401"}, error="authentication_failed", model="<synthetic>"), Said("API Error: 401", ONE),
    ),
    "an unknown type": ({"type": "rate_limit_event"}, Output("rate_limit_event")),
    "a fact": ({"type": "system", "subtype": "hollow", "kind": "goal.set", "goal": "g", "session_id": SESSION}, Fact("goal.set", {"goal": "g"})),
    "result": (
        RESULT,
        Result(
            text="Done.", turns=3, session_id=SESSION,
            usage={"input_tokens": 300, "output_tokens": 30, "cache_read_input_tokens": 0, "cost_usd": 0.0018},
            duration=0.435,
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("event", "expected"), SHAPES.values(), ids=SHAPES.keys())
def test_a_real_event_is_read_for_what_it_is(event: dict[str, Any], expected: Event) -> None:
    assert read(event) == expected
    # Neither the order of keys nor blanks between them mean anything.
    turned = json.dumps(dict(reversed(event.items())), indent=None, separators=(" , ", " : ")).encode()
    assert decode(turned, STREAM_JSON) == expected


@pytest.mark.parametrize(
    ("changes", "subtype", "is_error"),
    [
        ({}, "success", False),
        ({"is_error": True, "api_error_status": 401}, "success", True),
        ({"subtype": "error_max_turns", "is_error": False}, "error_max_turns", True),
        ({"subtype": "error_max_budget_usd", "is_error": True}, "error_max_budget_usd", True),
        ({"subtype": "error_during_execution", "is_error": True, "result": None}, "error_during_execution", True),
        ({"subtype": None}, "success", False),
        ({"subtype": ""}, "success", True),
        ({"is_error": "yes"}, "success", False),
    ],
)
def test_a_result_is_clean_only_if_both_signs_say_so(changes: dict[str, Any], subtype: str, is_error: bool) -> None:
    """T137: an API error comes as subtype success with is_error true."""
    event = read(RESULT | changes)
    assert isinstance(event, Result)
    assert (event.subtype, event.is_error) == (subtype, is_error)


@pytest.mark.parametrize(
    ("changes", "usage", "turns"),
    [
        ({"usage": None, "total_cost_usd": None}, {}, 3),
        ({"usage": [], "total_cost_usd": 0}, {}, 3),
        ({"usage": {"input_tokens": True, "output_tokens": 1.5, "cache_read_input_tokens": "3", "d": 4, "cache_creation_input_tokens": 5},
          "total_cost_usd": "free"}, {"cache_creation_input_tokens": 5}, 3),
        ({"usage": {}, "total_cost_usd": math.nan, "num_turns": True}, {}, None),
        ({"usage": {}, "total_cost_usd": math.inf, "num_turns": "3"}, {}, None),
        ({"usage": {}, "total_cost_usd": 2, "num_turns": None}, {"cost_usd": 2}, None),
        ({"usage": {}, "total_cost_usd": True, "num_turns": 0}, {}, 0),
    ],
)  # fmt: skip
def test_only_numbers_count_as_usage(changes: dict[str, Any], usage: dict[str, Any], turns: int | None) -> None:
    event = read(RESULT | changes)
    assert isinstance(event, Result)
    assert (event.usage, event.turns) == (usage, turns)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"errors": ["Reached maximum number of turns (2)"], "result": None}, "Reached maximum number of turns (2)"),
        ({"errors": ["one", 2, "three"], "result": ""}, "one\nthree"), ({"errors": ["x"], "result": "said"}, "said"),
        ({"errors": "x", "result": None}, ""), ({"errors": {}, "result": None}, ""),
    ],
)  # fmt: skip
def test_a_result_without_a_text_says_its_errors(changes: dict[str, Any], text: str) -> None:
    event = read(RESULT | changes)
    assert isinstance(event, Result)
    assert event.text == text


@pytest.mark.parametrize(
    ("lasted", "seconds"), [(1500, 1.5), (None, None), ("1", None), (True, None), (math.inf, None)]
)
def test_the_duration_is_in_seconds(lasted: Any, seconds: float | None) -> None:
    event = read(RESULT | {"duration_ms": lasted})
    assert isinstance(event, Result)
    assert event.duration == seconds


def test_every_marker_stands_in_the_events_that_decide() -> None:
    """The follower decodes marked lines only: a result, an init or a fact without its mark would be lost."""
    for name, (event, expected) in SHAPES.items():
        line = json.dumps(event).encode()
        if isinstance(expected, Init | Result | Fact):
            marks = (*STREAM_JSON.markers, *STREAM_JSON.last, *STREAM_JSON.opening)
            assert any(marker in line for marker in marks), name
        if isinstance(expected, Said | ToolCall | ToolResult):
            assert any(marker in line for marker in STREAM_JSON.counted), name


# --- nothing raises ---------------------------------------------------------------------------------------------------

HOSTILE = {
    "nothing": b"",
    "zeros": b"\0" * 64,
    "deep nesting": b"[" * 100_000,
    "deep objects": b'{"type":' * 100_000,
    "a number of 5000 digits": b'{"type":"result","num_turns":' + b"9" * 5000 + b"}",
    "a type of 5000 digits": b'{"type":' + b"9" * 5000 + b"}",
    "no UTF-8": b'{"type":"\xff\xfe"}',
    "UTF-16": '{"type":"result"}'.encode("utf-16"),
    "cut off": b'{"type":"result","resu',
    "a list": b"[]", "null": b"null", "a number": b"3", "a text": b'"init"', "true": b"true",
    "no type": b"{}",
    "type is a list": b'{"type":[]}', "type is an object": b'{"type":{}}', "type is null": b'{"type":null}',
    "subtype is a list": b'{"type":"result","subtype":["x"]}',
    "message is null": b'{"type":"assistant","message":null}',
    "no content": b'{"type":"assistant","message":{}}',
    "empty content": b'{"type":"assistant","message":{"content":[]}}',
    "content is a number": b'{"type":"user","message":{"content":3}}',
    "block is a text": b'{"type":"assistant","message":{"content":["x"]}}',
    "block without type": b'{"type":"user","message":{"content":[{}]}}',
    "call without name": b'{"type":"assistant","message":{"content":[{"type":"tool_use"}]}}',
    "fact without kind": b'{"type":"system","subtype":"hollow"}',
}  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_line_that_is_no_event_is_garbage_or_output(line: bytes) -> None:
    """T135: P18, P19: a stranger's output cannot raise."""
    event = decode(line, STREAM_JSON)
    assert isinstance(event, Garbage | Output)
    if isinstance(event, Garbage):
        assert event.head == line[:200]
        assert 0 < len(event.why) <= 200


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"type":"init","session_id":"a","session_id":"b"}', Init("b")),
        (b'\xef\xbb\xbf{"type":"init","session_id":"a"}', Init("a")),
        (b'{"type":"init","session_id":"a"}\r', Init("a")),
        (b'{"type":"result","result":"\\ud800"}', Result(text="\ud800")),
        (b'{"type":"result","total_cost_usd":NaN,"result":"x"}', Result(text="x")),
        (b'{"type":"result","total_cost_usd":1e999,"result":"x"}', Result(text="x")),
        (b'{"type":"init","session_id":7,"model":[]}', Init()),
        (b'{"type":"result","result":"caf\xe9"}', Result(text="caf\ufffd")),
        ('{"type":"result","result":"a\u2028b"}'.encode(), Result(text="a\u2028b")),
    ],
)
def test_an_odd_line_that_is_an_event_counts(line: bytes, expected: Event) -> None:
    """P16, P17, P19: a bad byte, a byte order mark, a carriage return, a doubled key (the last one wins), half a surrogate pair."""
    assert decode(line, STREAM_JSON) == expected


def test_a_line_above_the_limit_is_never_parsed() -> None:
    """P15: memory is bounded by the parse limit."""
    line = b'{"type":"result","result":"' + b"x" * PARSE_LIMIT + b'"}'
    assert decode(line, STREAM_JSON) == Garbage(line[:200], f"line of {len(line)} bytes")


def test_plain_text_is_output_whatever_it_looks_like() -> None:
    assert decode(json.dumps(RESULT).encode(), PLAIN) == Output(json.dumps(RESULT))
    assert decode(b"caf\xe9", PLAIN) == Output("caf\ufffd")


@pytest.mark.parametrize(
    "error",
    [ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, ZeroDivisionError, RecursionError],
)
def test_the_reader_of_another_package_cannot_break_the_stream(error: type[Exception]) -> None:
    def reader(_: Any) -> Event:
        raise error("as strangers do")

    event = read({"type": "x"}, Dialect(readers={("x", None): reader}, markers=()))
    assert event == Garbage(b'{"type": "x"}', f"{error.__name__}: " + str(error("as strangers do")))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_never_raise(line: bytes) -> None:
    """T135: any bytes at all."""
    reduce(Progress(), decode(line, STREAM_JSON))
    assert isinstance(decode(line, PLAIN), Output)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["init", "text", "tool_use", "tool_result"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "content", "text", "name", "input", "x"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
keys = [
    "subtype",
    "session_id",
    "model",
    "message",
    "is_error",
    "result",
    "num_turns",
    "usage",
    "total_cost_usd",
    "kind",
]
lines = st.builds(
    lambda kind, subtype, rest: {**rest, "type": kind, **({"subtype": subtype} if subtype is not None else {})},
    st.sampled_from(["init", "system", "assistant", "user", "result", "x"]) | values,
    st.sampled_from(["init", "hollow", "success", None]) | values,
    st.dictionaries(st.sampled_from(keys), values, max_size=6),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(lines | values, max_size=5))
def test_random_json_never_raises_and_what_is_kept_can_be_written(objects: list[Any]) -> None:
    """T135: any JSON value at all, alone and one after the other."""
    seen = heard(*(decode(json.dumps(each).encode(), STREAM_JSON) for each in objects))
    assert seen.session_id is None or isinstance(seen.session_id, str)
    if seen.result:
        json.dumps(dict(seen.result.usage), allow_nan=False)


# --- what is known ----------------------------------------------------------------------------------------------------


def test_the_first_session_id_wins() -> None:
    """T133: both forms of init are read; a later, different id is ignored and noted."""
    seed, real = read({"type": "init", "session_id": "x"}), read(INIT)
    assert heard(seed).session_id == "x"
    assert heard(real).session_id == SESSION
    seen = heard(seed, real)
    assert seen.session_id == "x"
    assert seen.notes == (f"a second session id was announced and ignored: {SESSION}",)
    assert heard(seed, seed).notes == ()


def test_a_result_names_the_session_only_where_nobody_else_did() -> None:
    """T133: programs exist whose only mention of it is the result."""
    assert heard(Result(session_id="r")).session_id == "r"
    assert heard(Init("x"), Result(session_id="r")).session_id == "x"


def test_the_last_result_wins() -> None:
    seen = heard(Result(text="first", subtype="error_max_turns", is_error=True), Said("more"), Result(text="second"))
    assert seen.result == Result(text="second")


def test_model_and_version_are_those_first_announced() -> None:
    seen = heard(Init("x"), Init("x", "m1", "1"), Init("x", "m2", "2"))
    assert (seen.model, seen.version) == ("m1", "1")


@pytest.mark.parametrize("end", [ToolResult(), ToolResult(is_error=True), Said("done"), Result()])
def test_a_tool_call_is_in_flight_until_something_follows(end: Event) -> None:
    seen = heard(ToolCall("Bash", "make"))
    assert (seen.in_flight, seen.said) == ("Bash", "Bash(make)")
    assert reduce(seen, Output("tool_progress")) == seen
    assert reduce(seen, end).in_flight is None


@pytest.mark.parametrize("event", [Output("x"), Garbage(b"x", "y")])
def test_what_says_nothing_changes_nothing(event: Event) -> None:
    seen = heard(Init("x"), Said("hello"))
    assert reduce(seen, event) is seen


def test_facts_are_kept_in_order() -> None:
    facts = [Fact("goal.set", {"n": n}) for n in range(3)]
    assert heard(*facts).facts == tuple(facts)


def size_of(value: Any) -> int:
    """Bytes of *value* as text: what it would take in memory, state and ledger."""
    return sys.getsizeof(repr(value))


HUGE = "A" * 1_000_000
FLOODS = {
    "session ids": [Init(f"s{n}") for n in range(1000)],
    "a huge session id": [Init(HUGE)],
    "a huge session id in the result": [Result(session_id=HUGE)],
    "a huge model": [Init("x", HUGE, HUGE)],
    "a huge tool name": [ToolCall(HUGE, HUGE)],
    "many messages": [Said("x", Spend(f"m{n}", {"input_tokens": 2**52})) for n in range(1000)],
    "huge messages": [Said("x", Spend(HUGE + str(n))) for n in range(40)],
    "many floods": [Unread(10**12)] * 1000,
    "a huge text": [Said(HUGE)],
    "many facts": [Fact("x", {"n": n}) for n in range(5000)],
    "huge facts": [Fact("x", {"n": HUGE})] * 20,
    "a huge kind": [Fact(HUGE, {})] * 300,
    "a usage of many": [Result(usage={f"k{n}": n for n in range(100_000)})],
    "a usage of huge names and numbers": [Result(usage={HUGE: 1, "n": 10**4000, "f": math.inf, "x": math.nan})],
    "a huge subtype": [Result(subtype=HUGE)],
}


@pytest.mark.parametrize("events", FLOODS.values(), ids=FLOODS.keys())
def test_what_outlives_a_line_is_bounded(events: list[Event]) -> None:
    """P21: nothing the agent says can grow memory, the state file or the ledger."""
    seen = heard(*events)
    assert size_of(seen) < 20_000
    assert len(seen.notes) <= 20
    assert len(seen.facts) <= 200


def test_an_id_that_is_too_long_is_noted_and_not_cut_to_another() -> None:
    seen = heard(Init("y" * 129), Init("x"))
    assert seen.session_id == "x"
    assert seen.notes == ("a session id of 129 characters was ignored",)


def test_a_fact_that_is_nested_beyond_writing_is_dropped() -> None:
    nested: dict[str, Any] = {}
    for _ in range(200_000):
        nested = {"in": nested}
    assert heard(Fact("x", nested)).facts == ()
    while nested:
        # Taken apart by hand: freeing it in one go would recurse as well.
        nested = nested.pop("in", {})
