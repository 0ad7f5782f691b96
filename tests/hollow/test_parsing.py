from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.parsing import Call, Step, _call, find_object, plain, prose, step, strip_thinking

TOOLS = ("Grep", "Ls", "ReadFile")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<think>a\nb</think>\n\nThe answer.", "The answer."),
        ("<thinking>a</thinking>x<think>b</think>y", "xy"),
        ("no opening tag</think>The answer.", "The answer."),
        ("<think>cut off in the middle", ""),
        ("The tag <think> in prose stays.", "The tag <think> in prose stays."),
        ("", ""),
    ],
)
def test_thinking_is_no_part_of_an_answer(text, kept):
    """T159: think tags, whole or half."""
    assert strip_thinking(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "Grep", "arguments": {"pattern": "x"}}',
        '```json\n{"tool": "Grep", "arguments": {"pattern": "x"}}\n```',
        '```\n{"tool": "Grep", "arguments": {"pattern": "x"}}```',
        'I look for it first:\n{"tool": "Grep", "arguments": {"pattern": "x"}} and then go on.',
        '<think>hm {"tool": "Ls"}</think>{"tool": "Grep", "arguments": {"pattern": "x"}}',
        '<tool_call>\n{"name": "Grep", "arguments": {"pattern": "x"}}\n</tool_call>',
        '<tool_call>{"name": "Grep", "arguments": {"pattern": "x"}}',
        '{"name": "Grep", "parameters": {"pattern": "x"}}',
        '{"function": {"name": "Grep", "arguments": {"pattern": "x"}}}',
        '{"tool_calls": [{"function": {"name": "Grep", "arguments": {"pattern": "x"}}}]}',
        '{"tool": "Grep", "arguments": {"pattern": "x",},}',
        "{'tool': 'Grep', 'arguments': {'pattern': 'x'}, 'answer': None}",
        'Set {a, b} aside. {"tool": "Grep", "args": {"pattern": "x"}}',
    ],
)
def test_a_call_is_found_in_every_spelling(text):
    """T159: fences, tags, leading prose, other keys, small mistakes."""
    assert step(text, TOOLS) == Step(call=Call("Grep", {"pattern": "x"}))


def test_a_regular_expression_in_pythons_spelling_gives_no_warning():
    assert step(r"{'tool': 'Grep', 'arguments': {'pattern': '\d+'}}", TOOLS).call == Call("Grep", {"pattern": r"\d+"})


def test_null_arguments_are_no_arguments():
    """T159: null where an object belongs."""
    assert step('{"tool": "Ls", "arguments": null}', TOOLS).call == Call("Ls", {})
    assert step('{"tool": null, "answer": null}', TOOLS) == Step(answer="")


def test_an_unknown_tool_is_still_a_call_so_that_the_model_can_be_told():
    assert step('{"tool": "Shell", "arguments": {}}', TOOLS).call == Call("Shell", {})


def test_an_answer_object_is_unpacked():
    assert step('{"answer": ["# Report", null, "a:1"]}', TOOLS) == Step(answer="# Report\na:1")


def test_a_report_that_quotes_json_is_the_report():
    report = 'See `package.json`:\n\n```json\n{"name": "left-pad", "answer": 1}\n```\n\nIt is small.\n'
    assert step(report, TOOLS) == Step(answer=report.strip())


@pytest.mark.parametrize("text", ['{"tool": "Grep", "arguments": {"pattern": ', "<tool_call>Grep x</tool_call>"])
def test_a_call_that_cannot_be_read_is_told_apart_from_an_answer(text):
    assert step(text, TOOLS) == Step(broken=True)


def test_raw_line_feeds_inside_a_string_are_accepted():
    assert find_object('{"answer": "a\nb"}') == {"answer": "a\nb"}


def test_a_literal_that_is_no_json_is_refused():
    assert find_object("{'a': {1, 2}}") is None
    assert find_object("{1: b'x'}") is None


WALLS = {
    "braces": "{" * 200_000,
    "objects": '{"a":' * 100_000,
    "brackets": "[" * 100_000,
    "fences": "```\n" * 50_000,
    "blanks": "```\n" + " \n" * 100_000,
    "commas": "{" + ", " * 100_000,
    "open": "<think>" * 50_000,
    "closed": "</think>" * 50_000,
    "tags": "<tool_call>" * 50_000,
}


@pytest.mark.parametrize("wall", WALLS.values(), ids=WALLS)
def test_a_wall_of_brackets_costs_neither_time_nor_an_exception(wall):
    started = time.monotonic()
    step(wall, TOOLS)
    assert time.monotonic() - started < 5


@settings(max_examples=150)
@given(st.text() | JSON.map(lambda value: json.dumps(value, default=str)))
def test_nothing_a_model_writes_raises(text):
    """T159: no exception, whatever comes."""
    found = step(text, TOOLS)
    assert isinstance(found.answer, str)


@settings(max_examples=100)
@given(JSON)
def test_plain_values_can_always_be_sent_on(value):
    sent = json.dumps(plain(value), allow_nan=False, ensure_ascii=False).encode("utf-8")
    assert json.loads(sent) == plain(value)


@settings(max_examples=60)
@given(
    pattern=st.text(st.characters(exclude_categories=["Cs"])),
    before=st.sampled_from(["", "Well: ", "```json\n", "<think>x</think>"]),
)
def test_a_call_survives_the_round_trip(pattern, before):
    text = before + json.dumps({"tool": "Grep", "arguments": {"pattern": pattern}})
    assert step(text, TOOLS).call == Call("Grep", {"pattern": pattern})


def test_prose_of_anything_is_text():
    assert prose({"a": [1]}) == '{"a": [1]}'
    assert prose(None) == ""
    assert prose(["a", ["b"], ""]) == "a\nb"


@pytest.mark.parametrize(
    ("found", "name", "arguments"),
    [
        ({"tool": "Grep", "arguments": {"pattern": "x"}}, "Grep", {"pattern": "x"}),
        ({"tool": " Grep ", "args": {"a": 1}}, "Grep", {"a": 1}),
        ({"name": "read_file", "parameters": {"a": 1}}, "read_file", {"a": 1}),
        ({"function": "Grep", "input": {"a": 1}}, "Grep", {"a": 1}),
        ({"function": {"name": "Grep", "arguments": "{}"}}, "Grep", "{}"),
        ({"tool_calls": [{"function": {"name": "Grep", "arguments": {"a": 1}}}]}, "Grep", {"a": 1}),
        ({"tool_calls": [{"name": "Grep", "arguments": None, "args": {"a": 1}}]}, "Grep", {"a": 1}),
        ({"tool_calls": [], "tool": "Grep"}, "Grep", {}),
        ({"tool_calls": ["Grep"], "tool": "Grep"}, "Grep", {}),
        ({"tool": "Dance"}, "Dance", {}),
        ({"name": "Dance"}, None, None),
        ({"name": "package", "version": "1"}, None, None),
        ({"tool": "", "name": ""}, None, None),
        ({"tool": 7}, None, None),
        ({"tool": None, "function": ["Grep"]}, None, None),
        ({}, None, None),
    ],
)
def test_every_wrapping_of_a_call_is_unwrapped(found, name, arguments):
    meant = _call(found, ("Grep", "ReadFile"))
    assert (meant and meant.name, meant and meant.arguments) == (name, arguments)
