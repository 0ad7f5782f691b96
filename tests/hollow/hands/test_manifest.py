from __future__ import annotations

import contextlib
import inspect
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.hands.call import Failed
from hollow.hands.manifest import bind
from hollow.hands.registry import BUILT_IN
from hollow.substrate import goals
from hollow.substrate.model import Effect, Trouble
from hollow.substrate.settings import LOCKS, PATH_OUT

CONTRACT = {
    "fs_read": "path, offset=1, limit=400",
    "fs_write": "path, content",
    "fs_edit": "path, old, new",
    "shell_exec": "command",
    "test_exec": "code",
    "memory_set": "key, value",
    "memory_get": "key",
    "ollama_chat": 'message, system=""',
    "self_evaluate": "paths=[], keys=[]",
    "agent_message": "to, message",
    "read_peer": 'agent, path=""',
    "invoke_claude": 'description="", spec="", design_path="", request_type="implement"',
    "check_claude_status": 'request_id=""',
    "propose_change": 'path, description, diff="", old="", new=""',
    "synthesize_capability": 'name, description="", implementation="", code=""',
    "retire_capability": "name",
    "research_topic": "topic",
}
"""The names of the parameters are a contract: minds are told of them, and the seeds use them."""


def test_there_are_these_capabilities_and_no_others():
    assert {each.name: each.form.partition("(")[2][:-1] for each in BUILT_IN.values()} == CONTRACT


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_the_manifest_is_the_signature(name):
    """C27: schema, form and function cannot say different things, and every parameter is explained."""
    capability = BUILT_IN[name]
    signature = list(inspect.signature(capability.function).parameters.values())[1:]
    schema = capability.schema()
    assert list(schema["properties"]) == [each.name for each in signature]
    assert schema["required"] == [each.name for each in signature if each.default is inspect.Parameter.empty]
    assert all(each["description"] for each in schema["properties"].values())
    assert schema["additionalProperties"] is False
    assert json.loads(json.dumps(schema)) == schema
    assert capability.name == capability.function.__name__ == name
    assert capability.description.endswith(".")
    assert "\n" not in capability.description


def test_code_is_taken_under_both_names():
    """C27: the gap between manifest and signature that lasted for weeks."""
    properties = BUILT_IN["synthesize_capability"].schema()["properties"]
    assert {"implementation", "code"} <= set(properties)


def test_the_tables_agree():
    """T84: what is worth twice, and what counts as output, is the same everywhere."""
    assert {each.name for each in BUILT_IN.values() if each.high} == goals.HIGH_VALUE
    assert {each.name for each in BUILT_IN.values() if each.output} == goals.OUTPUT
    assert set(LOCKS) | PATH_OUT <= set(BUILT_IN)
    assert {each.name for each in BUILT_IN.values() if Effect.NET in each.effects} == {"research_topic"}
    assert {each.name for each in BUILT_IN.values() if Effect.WRITE in each.effects} == {"fs_write", "fs_edit"}


GOOD = [
    ("fs_read", {"file_path": "a", "start": "3", "count": None}, {"path": "a", "offset": 3}),
    ("fs_read", {"path": "a", "file": "b", "limit": ""}, {"path": "a"}),
    ("fs_read", {"Path": "a", "offset": 2.0}, {"path": "a", "offset": 2}),
    ("fs_write", {"path": "a", "content": {"x": 1}}, {"path": "a", "content": '{\n "x": 1\n}'}),
    ("fs_write", {"path": "a", "text": "null"}, {"path": "a", "content": "null"}),
    ("fs_edit", {"path": "a", "old_string": "x", "new_string": ""}, {"path": "a", "old": "x", "new": ""}),
    ("memory_set", {"name": "k", "content": [1, {"a": None}]}, {"key": "k", "value": [1, {"a": None}]}),
    ("memory_set", {"key": "k", "value": False}, {"key": "k", "value": False}),
    ("self_evaluate", {"paths": "a.md, b.md"}, {"paths": ("a.md", "b.md")}),
    ("self_evaluate", {"path": ["a.md"], "keys": []}, {"paths": ("a.md",), "keys": ()}),
    ("agent_message", {"recipient": "vault", "text": "hi"}, {"to": "vault", "message": "hi"}),
    ("agent_message", {"to": "vault", "agent": "x", "message": "hi"}, {"to": "vault", "message": "hi"}),
    ("synthesize_capability", {"name": "t", "code": "x"}, {"name": "t", "code": "x"}),
    ("fs_write", {"path": "a\ud800", "content": "b"}, {"path": "a?", "content": "b"}),
]


@pytest.mark.parametrize(("name", "params", "meant"), GOOD)
def test_what_is_nearly_right_is_put_right(name, params, meant):
    assert bind(BUILT_IN[name], params) == meant


BAD = [
    ("fs_read", {}, "needs path"),
    ("fs_read", {"path": None}, "needs path"),
    ("fs_read", {"path": "a", "colour": "red"}, "no parameter colour"),
    ("fs_read", {"path": "a", "offset": "many"}, "offset of fs_read must be a whole number"),
    ("fs_read", {"path": "a", "offset": True}, "must be a whole number"),
    ("fs_read", {"path": "a", "offset": float("nan")}, "needs"),
    ("fs_read", ["a"], "no JSON object"),
    ("fs_read", "a", "no JSON object"),
    ("fs_read", None, "no JSON object"),
    ("self_evaluate", {"paths": [1]}, "must be a list of text"),
    ("memory_set", {"key": "k"}, "needs value"),
]


@pytest.mark.parametrize(("name", "params", "why"), BAD)
def test_what_makes_no_sense_is_a_matter_of_usage(name, params, why):
    """W16: a plan's wrong arguments are its own, never the tool's."""
    if why == "needs":  # a number that is none is left out, like null
        assert bind(BUILT_IN[name], params) == {"path": "a"}
        return
    with pytest.raises(Failed, match=why) as failed:
        bind(BUILT_IN[name], params)
    assert failed.value.trouble is Trouble.USAGE
    assert "The " in str(failed.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["path", "content", "key", "value", "file", "text", "x", "", "PATHS", "name"])


@given(name=st.sampled_from(sorted(BUILT_IN)), params=st.dictionaries(NAMES, JSON, max_size=4) | JSON)
@settings(max_examples=50, deadline=None)
def test_binding_gives_arguments_or_a_refusal(name, params):
    capability = BUILT_IN[name]
    with contextlib.suppress(Failed):
        inspect.signature(capability.function).bind(None, **bind(capability, params))
