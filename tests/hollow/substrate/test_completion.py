"""The completion gate: five checks in order, none of them to be talked round."""

from __future__ import annotations

import pytest

from essentials.records import replace
from hollow.substrate import completion, goals, mechanical
from hollow.substrate.completion import Look, judge
from hollow.substrate.model import Artifact, GoalStatus, Result

NOW = 1_777_777_777.0
PATH = "workspace/cedar/report.md"
PROSE = "The index keeps one row for each file and finds words in them by rank. " * 5
REPO = {"hollow/index.py": "class Index:\n    pass\n"}


def goal_with(*artifacts, outputs=(), objective="Describe the index", progress=1000):
    goal, _ = goals.new("cedar", objective, "existence", "b" * 40, "0" * 12, NOW)
    files = tuple(Artifact(path=path, sha256="a" * 64, created=True, step=1) for path in artifacts)
    return replace(goal, progress=progress, artifacts=files, outputs=outputs)


class Mind:
    """Answers as told, and knows what it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def __call__(self, text):
        self.asked.append(text)
        return self.answer


YES = {"accomplished": True, "reason": "It does.", "lesson": "Look before you speak."}
TRUE = {"accurate": True, "reason": "It agrees."}


def gate(goal, files=None, keys=None, semantic=YES, facts=TRUE):
    files = {PATH: PROSE} if files is None else files
    minds = Mind(semantic), Mind(facts)
    look = Look(read={**REPO, **files}.get, value=(keys or {}).get)
    return judge(goal, look, *minds, look.read), minds


def test_a_goal_that_holds_up_passes_all_five():
    verdict, (semantic, facts) = gate(goal_with(PATH), {PATH: PROSE + "\nIt is hollow/index.py:1 `Index`."})
    assert (verdict.passed, verdict.check, verdict.lesson) == (True, "facts", "Look before you speak.")
    assert PROSE[:200] in semantic.asked[0]
    assert "class Index" in facts.asked[0]


def test_a_document_that_claims_nothing_is_not_put_to_the_mind_for_its_facts():
    verdict, (_, facts) = gate(goal_with(PATH))
    assert verdict.passed
    assert facts.asked == []


def test_the_gate_is_asked_at_exactly_one():
    """T85: 10 x .10 -> progress 1.0 and gate fires"""
    goal = goal_with(PATH, progress=0)
    for number in range(10):
        verdict, _ = gate(goal)
        assert (verdict.passed, verdict.check, verdict.counts) == (False, "threshold", False)
        goal, _ = goals.advance(goal, "fs_read", Result(ok=True), NOW, call=str(number))
    assert gate(goal)[0].passed


def test_exploring_alone_completes_nothing():
    """T86: 12 read-only steps -> not completed"""
    goal, _ = goals.new("cedar", "Look around", "existence", "", "0" * 12, NOW)
    for number in range(12):
        goal, _ = goals.advance(goal, "fs_read", Result(ok=True), NOW, call=str(number))
    verdict, (semantic, _) = gate(goal)
    assert (goal.progress, verdict.passed, verdict.check, verdict.counts) == (1000, False, "output", True)
    assert semantic.asked == []


@pytest.mark.parametrize("capability", ["shell_exec", "test_exec", "ollama_chat", "self_evaluate"])
def test_evidence_alone_is_no_output(capability):
    """W18: an exit code of 0 or a chat completes nothing"""
    goal, _ = goals.advance(goal_with(), capability, Result(ok=True, output="exit code 0"), NOW, call="x")
    assert gate(goal)[0].check == "output"


CODE = "def count(words):\n    return len(words)\n"
WRONG = [
    ("report.md", None, "does not exist"),
    ("report.md", "", "is empty"),
    ("report.md", " \n\t\n", "is empty"),
    ("report.md", "Too short.", "bytes of text"),
    ("report.md", "ab " * 50 + " " * 9000, "149 bytes"),
    ("report.md", PROSE + "\nTODO: the rest", "TODO"),
    ("report.md", PROSE + "\nLorem ipsum dolor", "Lorem ipsum"),
    ("report.md", PROSE + "\nThis is a placeholder.", "placeholder"),
    ("report.md", PROSE + "\n- ...\n", "ellipsis"),
    ("report.md", PROSE + "\n<insert findings>", "<insert"),
    ("report.md", PROSE + "\nTo be written", "promise"),
    ("report.md", PROSE + "\nraise NotImplementedError", "not written"),
    ("tool.py", "def broken(:\n    pass\n", "cannot be read as py"),
    ("tool.py", CODE + "\n\ndef later():\n    raise NotImplementedError\n", "not written"),
    ("tool.py", CODE + "\n\ndef later():\n    ...\n", "later at line 5"),
    ("tool.py", CODE + '\n\ndef later():\n    """Count."""\n', "without a body"),
    ("tool.py", "import os\n", "defines nothing"),
    ("tool.py", '"""Words."""\n', "defines nothing"),
    ("tool.py", CODE + "# TODO more\n", "TODO"),
    ("tool.py", "\0", "cannot be read as py"),
    ("data.json", '{"a": 1', "cannot be read as json"),
    ("data.json", "[" * 100_000, "cannot be read as json"),
    ("data.json", "{}", "holds nothing"),
    ("data.toml", "a = = 1", "cannot be read as toml"),
]


@pytest.mark.parametrize(("name", "text", "named"), WRONG)
def test_what_has_no_substance_is_rejected_with_the_reason(name, text, named):
    """T87: missing file / placeholder text / empty body / bad syntax -> rejected with reason"""
    path = f"workspace/cedar/{name}"
    verdict, (semantic, _) = gate(goal_with(path), {path: text})
    assert (verdict.passed, verdict.check, verdict.counts) == (False, "mechanical", True)
    assert path in verdict.reason
    assert named in verdict.reason
    assert semantic.asked == []


RIGHT = [
    ("report.md", PROSE + "\n```python\ndef f(): ...\n# TODO\n```\n"),
    ("report.md", PROSE + "\nThe mark `TODO` stands there, and f(...) is called.\n> TODO in a quotation\n"),
    ("report.md", PROSE + "\n- hollow/index.py:1 says TODO there"),
    ("tool.py", CODE),
    ("tool.py", "LIMIT = 3\n"),
    ("tool.py", "class Mind(Protocol):\n    def think(self): ...\n" + CODE),
    ("tool.py", "class Base:\n    @abstractmethod\n    def think(self): ...\n"),
    ("tool.py", "import re\nPATTERN = '\\d'\n"),
    ("data.json", '{"a": 1}'),
    ("data.toml", "a = 1\n"),
    ("notes", PROSE),
]


@pytest.mark.parametrize(("name", "text"), RIGHT)
def test_what_has_substance_passes(name, text):
    assert mechanical.file_fault(f"workspace/cedar/{name}", text) is None


def test_a_goal_about_such_marks_may_name_them():
    text = PROSE + "\nThere is one TODO in the launcher."
    assert mechanical.file_fault(PATH, text) is not None
    assert mechanical.file_fault(PATH, text, "Survey every TODO of the repository") is None


def test_every_file_of_a_goal_counts():
    """T87: missing file -> rejected with reason"""
    other = "workspace/cedar/notes.md"
    assert other in gate(goal_with(PATH, other), {PATH: PROSE})[0].reason


@pytest.mark.parametrize(
    ("objective", "delivered"),
    [
        ("Write workspace/cedar/map.md", False),
        ("Write the result to /agentOS/workspace/cedar/map.md.", False),
        ("Read design/plan.md and write workspace/cedar/map.md", False),
        ("Write workspace/cedar/report.md", True),
        ("Extend workspace/cedar/report.md by what workspace/cedar/map.md lacks", True),
        ("Read workspace/cipher/map.md and design/plan.md", True),
        ("Move on from workspace/cedar/map.md", True),
        ("Have cipher write workspace/cipher/map.md", True),
        ("Document docs/design/plan.md", True),
        ("Write something into workspace/cedar", True),
    ],
)
def test_a_goal_must_deliver_what_it_declares(objective, delivered):
    """W18: the gate looks for the declared deliverable"""
    verdict, _ = gate(goal_with(PATH, objective=objective))
    assert verdict.passed is delivered
    assert delivered or "map.md" in verdict.reason


@pytest.mark.parametrize(
    ("outputs", "keys", "fault"),
    [
        (("memory:a",), {"a": PROSE}, None),
        (("memory:a", "memory:b"), {"a": PROSE, "b": "short"}, None),
        (("memory:a",), {"a": "short"}, "'a' has 5 characters"),
        (("memory:a",), {"a": "   "}, "nothing under 'a'"),
        (("memory:a",), {}, "nothing under 'a'"),
        (("memory:a",), {"a": PROSE + " TODO"}, "unfinished"),
        (("memory:a", "request:req-1"), {"a": "short"}, None),
        (("request:req-1",), {}, None),
        (("agent_message:3",), {}, None),
    ],
)
def test_values_alone_must_say_something(outputs, keys, fault):
    verdict, _ = gate(goal_with(outputs=outputs), keys=keys)
    assert verdict.passed is (fault is None)
    assert fault is None or fault in verdict.reason


@pytest.mark.parametrize(
    ("answer", "counts", "away"),
    [
        ({"accomplished": False, "reason": "No ranks.", "lesson": ""}, True, False),
        ({"accomplished": False}, True, False),
        (None, False, True),
        ({}, False, False),
        ({"accomplished": "yes"}, False, False),
        ({"accomplished": 1, "reason": ["x"]}, False, False),
    ],
)
def test_only_a_plain_yes_of_the_mind_passes(answer, counts, away):
    """T88: fake LLM says no -> rejected; LLM down -> not completed"""
    verdict, (_, facts) = gate(goal_with(PATH), semantic=answer)
    assert (verdict.passed, verdict.check, verdict.counts, verdict.away) == (False, "semantic", counts, away)
    assert verdict.reason
    assert facts.asked == []


@pytest.mark.parametrize(
    ("answer", "counts", "away"),
    [
        ({"accurate": False, "reason": "It is no list."}, True, False),
        (None, False, True),
        ({"accurate": None}, False, False),
    ],
)
def test_only_a_plain_yes_bears_out_the_facts(answer, counts, away):
    """T88: LLM down -> not completed"""
    verdict, _ = gate(goal_with(PATH), {PATH: PROSE + "\nSee hollow/index.py:1."}, facts=answer)
    assert (verdict.passed, verdict.check, verdict.counts, verdict.away) == (False, "facts", counts, away)


@pytest.mark.parametrize(
    ("claim", "named"),
    [
        ("The function `frobnicate` in `hollow/index.py` ranks.", "frobnicate"),
        ("It stands at hollow/index.py:77.", "hollow/index.py:77"),
        ("It stands in hollow/phantom.py.", "hollow/phantom.py"),
    ],
)
def test_a_false_claim_is_rejected_whatever_the_mind_says(claim, named):
    """T89: report claiming function absent from file -> rejected naming it"""
    verdict, (_, facts) = gate(goal_with(PATH), {PATH: f"{PROSE}\n{claim}"})
    assert (verdict.passed, verdict.check, verdict.counts) == (False, "facts", True)
    assert named in verdict.reason
    assert facts.asked == []


def test_values_make_claims_and_programs_do_not():
    verdict, _ = gate(goal_with(outputs=("memory:a",)), keys={"a": PROSE + " See hollow/phantom.py:3"})
    assert "hollow/phantom.py" in verdict.reason
    tool = "workspace/cedar/tool.py"
    assert gate(goal_with(tool), {tool: CODE + "PATH = 'hollow/phantom.py:3'\n"})[0].passed


def test_a_no_counts_and_an_absence_does_not():
    """T90: 4 failures -> active; 5th -> abandoned"""
    goal = goal_with(PATH)
    for answer, failures in [
        (YES | {"accomplished": False}, 1),
        (None, 1),
        ({}, 1),
        (YES | {"accomplished": False}, 2),
    ]:
        verdict, _ = gate(replace(goal, progress=1000), semantic=answer)
        goal = goals.fail(goal, verdict.reason, NOW, check=verdict.check)[0] if verdict.counts else goal
        assert (goal.failures, goal.status) == (failures, GoalStatus.ACTIVE)


def test_evidence_is_bounded_and_cannot_speak_for_us():
    files = {f"workspace/cedar/{at}.md": f"GOAL {at}\n" + "x" * 5000 for at in range(8)}
    outputs = (*(f"memory:{at}" for at in range(8)), "request:req-1")
    look = Look(read=files.get, value=lambda _key: "v" * 900)
    text = completion.evidence(goal_with(*files, outputs=outputs), look)
    assert text.count("FILE ") == text.count("MEMORY ") == 5
    assert "FILE workspace/cedar/7.md" in text
    assert "workspace/cedar/2.md" not in text
    assert "LEFT request:req-1" in text
    assert len(text) < 5 * 1200 + 5 * 450
    assert all(line.startswith(("| ", "FILE ", "MEMORY ", "LEFT ")) for line in text.splitlines())
    assert "(not there)" in completion.evidence(goal_with("workspace/cedar/gone.md"), look)


def test_the_prompts_begin_with_who_one_is_and_the_rules():
    goal = goal_with(PATH)
    rules = "RULES OF YOUR ENVIRONMENT\n- Look first."
    for text in (
        completion.semantic_prompt("You are cedar, the scout.", rules, goal, "| it"),
        completion.fact_prompt("You are cedar, the scout.", rules, goal, "1. it"),
    ):
        assert text.startswith(f"You are cedar, the scout.\n\n{rules}\n\nGOAL\n| Describe the index\n")
    assert "accomplished" in completion.semantic_prompt("You are cedar", "", goal, "")
    assert "accurate" in completion.fact_prompt("You are cedar", "", goal, "")
