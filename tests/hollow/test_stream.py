from __future__ import annotations

import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.mind import Answer, Usage
from hollow.stream import Talk

TEXT = st.text(st.characters())


def told(*steps) -> list[dict]:
    out = io.BytesIO()
    talk = Talk(out, session_id="s-1", model="m")
    for step in steps:
        step(talk)
    data = out.getvalue()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.decode("utf-8").split("\n")[:-1]]


def test_a_cycle_has_the_shapes_of_the_claude_dialect():
    events = told(
        lambda t: t.init(cwd="/r", tools=["Ls"]),
        lambda t: t.generation({"input_tokens": 3, "output_tokens": 1}),
        lambda t: t.outcome(t.call("Ls", {"path": "."}), "a\nb", is_error=False),
        lambda t: t.result(Answer(text="ok", turns=2, usage=Usage(input_tokens=5, output_tokens=7)), 12),
    )
    assert [(e["type"], e.get("subtype")) for e in events] == [
        ("system", "init"), ("assistant", None), ("user", None), ("result", "success"),
    ]  # fmt: skip
    assert {e["session_id"] for e in events} == {"s-1"}
    call = events[1]["message"]["content"][0]
    result = events[2]["message"]["content"][0]
    assert (call["type"], call["id"]) == ("tool_use", result["tool_use_id"])
    assert events[1]["message"]["usage"] == {"input_tokens": 3, "output_tokens": 1}
    assert events[3]["usage"] == {"input_tokens": 5, "output_tokens": 7}
    assert (events[3]["is_error"], events[3]["num_turns"], events[3]["duration_ms"]) == (False, 2, 12)


def test_call_ids_are_distinct():
    events = told(*[lambda t: t.call("Ls", {})] * 3)
    assert len({e["message"]["content"][0]["id"] for e in events}) == 3


def test_every_failure_subtype_is_an_error():
    for subtype in ("error_max_turns", "error_during_execution"):
        (event,) = told(lambda t, s=subtype: t.result(Answer(text="no", subtype=s), 1))
        assert (event["is_error"], event["subtype"]) == (True, subtype)


@settings(max_examples=60)
@given(text=TEXT, key=TEXT)
def test_any_text_stays_one_line_and_valid_json(text, key):
    said, called = told(lambda t: t.say(text), lambda t: t.call(key, {key: text}))
    assert said["message"]["content"][0]["text"] == text
    assert called["message"]["content"][0]["input"] == {key: text}


def test_a_lone_surrogate_does_not_break_the_stream():
    (event,) = told(lambda t: t.say("a\udc80b"))
    assert event["message"]["content"][0]["text"] == "a\udc80b"


def test_every_event_of_a_message_has_its_id_and_usage_and_no_two_messages_share_one():
    """A live budget adds up usage by message id; a resumed session must not repeat an id."""
    steps = [
        lambda t: t.say("before any model"),
        lambda t: t.generation({"input_tokens": 3, "output_tokens": 1}),
        lambda t: t.say("one"),
        lambda t: t.call("Ls", {}),
        lambda t: t.generation({"input_tokens": 9, "output_tokens": 2}),
        lambda t: t.say("two"),
    ]
    first, again = ([event["message"] for event in told(*steps)] for _ in range(2))
    assert [message.get("usage", {}).get("input_tokens") for message in first] == [None, 3, 3, 9]
    ids = [message["id"] for message in first]
    assert (ids[1] == ids[2], len(set(ids))) == (True, 3)
    assert not set(ids) & {message["id"] for message in again}
