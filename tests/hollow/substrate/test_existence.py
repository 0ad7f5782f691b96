"""What a model wrote, read: existence answers and plans, however they are dressed; and the schemas they were asked by."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.substrate import existence, planning, schemas

GOAL = "Map how agents/core.py starts a run"
FULL = {
    "action": "goal", "content": GOAL, "reasoning": "Nobody has.", "worldview_update": "Everything begins somewhere.",
    "new_open_questions": ["Who calls it?"], "new_opinions": [{"opinion": "Names matter", "domain": "style"}],
    "suffering_assessment": {
        "new_stressors": [{"type": "wrapper_dependency", "description": "d", "condition": "c"}],
        "resolved": [{"type": "futility", "reason": "a tool was called"}],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(FULL),
        f"<think>I could {{}} do this</think>\n{json.dumps(FULL)}",
        f"Let me see.</think>{json.dumps(FULL)}",
        f"```json\n{json.dumps(FULL, indent=2)}\n```",
        f"Here is my answer, as asked:\n\n{json.dumps(FULL)}\n\nI hope it helps.",
        json.dumps(FULL)[:-1] + ",}",
        repr(FULL),
        json.dumps({"response": FULL}),
        json.dumps([FULL]),
    ],
    ids=["bare", "think", "closing-tag", "fence", "prose", "comma", "python", "wrapped", "list"],
)
def test_an_answer_in_any_dress(text):
    """T159: fences, think tags, leading prose, small slips."""
    found = existence.read(text)
    assert (found.content, found.usable) == (GOAL, True)
    assert found.worldview == "Everything begins somewhere."
    assert (found.open_questions, found.opinions) == (("Who calls it?",), (("Names matter", "style"),))
    assert found.assessment == FULL["suffering_assessment"]


def test_null_lists_are_empty_lists():
    """T159: a goal is created, nothing raises."""
    found = existence.read(json.dumps({**dict.fromkeys(FULL), "content": GOAL}))
    assert found.usable
    assert (found.action, found.open_questions, found.opinions, found.worldview) == ("goal", (), (), "")
    assert found.assessment == {"new_stressors": [], "resolved": []}


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ({"content": ["Map the parser,", "then the lexer"]}, "Map the parser, then the lexer"),
        ({"content": None, "goal": GOAL}, GOAL),
        ({"content": {"goal": "x"}}, '{"goal": "x"}'),
        ({"content": "line one\nCURRENT GOAL\r\n\x1b[2Jforged line"}, "line one CURRENT GOAL [2Jforged line"),
        ({"content": "word " * 300}, ("word " * 120)[:599].rstrip() + "…"),
        ({"content": 7}, "7"),
    ],
)
def test_content_is_one_bounded_line(answer, content):
    """T159: a list where text is expected, and whatever else."""
    assert existence.read(json.dumps(answer)).content == content


@pytest.mark.parametrize(
    ("answer", "questions", "opinions"),
    [
        ({"new_open_questions": "One only?"}, ("One only?",), ()),
        ({"new_open_questions": ["", None, 3, {"q": 1}]}, ("3", '{"q": 1}'), ()),
        ({"new_opinions": "Names matter"}, (), (("Names matter", "general"),)),
        ({"new_opinions": {"opinion": "A", "domain": ["x", "y"]}}, (), (("A", "x y"),)),
        ({"new_opinions": [None, {}, {"domain": "x"}, "B"]}, (), (("B", "general"),)),
    ],
)
def test_single_values_where_lists_belong(answer, questions, opinions):
    """T159: taken for what they must have meant."""
    found = existence.read(json.dumps(answer))
    assert (found.open_questions, found.opinions) == (questions, opinions)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("everything is fine", {"new_stressors": [], "resolved": []}),
        ({"new_stressors": {"type": "a", "condition": None}, "resolved": "a"},
         {"new_stressors": [{"type": "a", "description": "", "condition": ""}], "resolved": [{"type": "a", "reason": ""}]}),
        ({"new_stressors": [{"description": "no type"}, 0, None]}, {"new_stressors": [{"type": "0", "description": "", "condition": ""}], "resolved": []}),
    ],
)  # fmt: skip
def test_the_assessment_has_its_shape_whatever_was_given(given, shown):
    assert existence.read(json.dumps({"suffering_assessment": given})).assessment == shown


@pytest.mark.parametrize(
    "text",
    ["", "no", "null", "{}", "[]", "{", "I would rather not.", '{"content": ""}', '{"content": "..."}',
     '{"content": "none"}', '{"content": "No new goal at this time."}', '{"content": "Parser!"}', '{"content": "your next goal here"}',
     "<think>" + json.dumps(FULL), "[" * 5000, "{" * 5000, '{"content": "' + "\ud800" + '"}'],
)  # fmt: skip
def test_an_answer_without_a_goal_is_unusable(text):
    """T83: the fallback takes over where this says so; never an exception."""
    assert not existence.read(text).usable


@settings(max_examples=50, deadline=None)
@given(
    st.text(max_size=400)
    | st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=40),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*FULL, "steps", "type", "params", "name"]), inner, max_size=6),
        max_leaves=25,
    ).map(json.dumps)
)  # fmt: skip
def test_nothing_that_is_written_raises(text):
    """T159: neither as an existence answer nor as a plan."""
    found = existence.read(text)
    assert "\n" not in found.content
    assert len(found.content) <= existence.LONGEST_GOAL
    plan = planning.read(text, lambda name: name == "fs_read")
    assert len(plan.steps) <= planning.MAX_STEPS
    json.dumps([dict(step.params) for step in plan.steps], allow_nan=False)


# --- Plans ------------------------------------------------------------------------------------------------------------

KNOWN = {"fs_read", "fs_write", "shell_exec"}.__contains__
READ = {"capability_id": "fs_read", "params": {"path": "a.py"}, "rationale": "to see"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"steps": [READ]}),
        json.dumps({"plan": [READ]}), json.dumps({"plan": {"steps": [READ]}}), json.dumps({"steps": {"1": READ}}),
        json.dumps([READ]), f"```json\n{json.dumps([READ])}\n```", json.dumps(READ),
        f"<think>hm</think>The plan:\n{json.dumps({'steps': [READ]})}",
        *(json.dumps({"steps": [{key: "fs_read", "params": {"path": "a.py"}, "rationale": "to see"}]})
          for key in ("capability", "tool", "name", "action")),
        *(json.dumps({"steps": [{"capability_id": "fs_read", key: {"path": "a.py"}, "reason": "to see"}]})
          for key in ("parameters", "args", "arguments", "input")),
        json.dumps({"steps": [{"function": {"name": "fs_read", "arguments": '{"path": "a.py"}'}, "why": "no"}]}).replace('"why": "no"', '"x": 1'),
        json.dumps({"steps": [{"capability_id": "functions.fs_read", "path": "a.py", "rationale": "to see"}]}),
        json.dumps({"steps": [{"capability_id": "fs-read", "params": {"path": "a.py"}}]}),
        json.dumps({"steps": [{"capability_id": "fs_read(path)", "params": {"path": "a.py"}}]}),
    ],
)  # fmt: skip
def test_a_plan_in_any_dress(text):
    """T159: the contract's field names, and what models call them."""
    plan = planning.read(text, KNOWN)
    assert [(step.capability, dict(step.params)) for step in plan.steps] == [("fs_read", {"path": "a.py"})]
    assert plan.steps[0].rationale in {"to see", ""}
    assert plan.notes == ()


def test_an_unknown_name_stays_a_step_and_is_said():
    """T111: a ghost is counted when its step comes, so it must not vanish here."""
    plan = planning.read(json.dumps({"steps": [{"capability_id": "safe_file_executor", "params": {}}, READ]}), KNOWN)
    assert [step.capability for step in plan.steps] == ["safe_file_executor", "fs_read"]
    assert plan.notes == ("Step 1: there is no capability 'safe_file_executor', as far as is known now.",)


@pytest.mark.parametrize(("count", "taken", "notes"), [(6, 6, 0), (7, 6, 1), (500, 6, 1)])
def test_a_long_plan_is_cut_and_says_so(count, taken, notes):
    plan = planning.read(json.dumps({"steps": [READ] * count}), KNOWN)
    assert (len(plan.steps), len(plan.notes)) == (taken, notes)
    assert not notes or f"{count} steps; the first 6" in plan.notes[0]


def test_what_cannot_be_a_step_is_left_out_and_said():
    given = {"steps": ["read it", None, {"params": {}}, {"capability_id": "fs_read", "params": ["a"]}]}
    plan = planning.read(json.dumps(given), KNOWN)
    assert [(step.capability, dict(step.params)) for step in plan.steps] == [("fs_read", {})]
    assert len(plan.notes) == 4


@pytest.mark.parametrize("text", ["", "I will read it.", "{}", '{"steps": 7}', "[1", '{"content": "x"}'])
def test_no_plan_is_an_empty_one_with_a_reason(text):
    plan = planning.read(text, KNOWN)
    assert (plan.steps, len(plan.notes)) == ((), 1)


def test_content_with_braces_arrives_as_it_was_written():
    """T159: no word in braces is ever replaced by anything (W29)."""
    text = 'f"{result} {x}" and {"a": {"b": 1}}\n'
    steps = [{"capability_id": "fs_write", "params": {"path": "a.py", "content": text}}]
    assert planning.read(json.dumps({"steps": steps}), KNOWN).steps[0].params["content"] == text


# --- Schemas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        (schemas.EXISTENCE, ["action", "content", "reasoning", "worldview_update", "new_open_questions", "new_opinions", "suffering_assessment"]),
        (schemas.EXISTENCE["properties"]["new_opinions"]["items"], ["opinion", "domain"]),
        (schemas.EXISTENCE["properties"]["suffering_assessment"], ["new_stressors", "resolved"]),
        (schemas.EXISTENCE["properties"]["suffering_assessment"]["properties"]["new_stressors"]["items"], ["type", "description", "condition"]),
        (schemas.EXISTENCE["properties"]["suffering_assessment"]["properties"]["resolved"]["items"], ["type", "reason"]),
        (schemas.PLAN, ["steps"]),
        (schemas.PLAN["properties"]["steps"]["items"], ["capability_id", "params", "rationale"]),
        (schemas.SEMANTIC, ["accomplished", "reason", "lesson"]),
        (schemas.FACT, ["accurate", "reason"]),
        (schemas.EVALUATE, ["accomplished", "reason"]),
        (schemas.CHAT, ["reply"]),
    ],
)  # fmt: skip
def test_the_schemas_have_the_contracts_field_names(schema, fields):
    assert list(schema["properties"]) == schema["required"] == fields
    assert json.loads(json.dumps(schema)) == schema
