from __future__ import annotations

import pytest

from hollow.substrate.model import GoalStatus, Trouble
from tests.support.hands import do, scene


def stage_with(tmp_path, answer):
    return scene(tmp_path, answers=lambda _question: answer)


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ({"reply": "a flame"}, "a flame"),
        ('<think>hm</think>```json\n{"reply": "a flame"}\n```', "a flame"),
        ("A flame.", "A flame."),
        ({"reply": ["one", "two"]}, "one\ntwo"),
    ],
)
def test_a_chat_gives_the_reply_however_it_is_written(tmp_path, answer, reply):
    stage = stage_with(tmp_path, answer)
    hands = stage.hands(rules="You are cedar.\n\nRULES OF YOUR ENVIRONMENT\n- trim the wick", step_seconds=7.0)
    assert do(hands, "ollama_chat", message="what burns?", system="Be brief.").output == reply
    asked = stage.thinker.asked[0]
    assert asked.prompt == "You are cedar.\n\nRULES OF YOUR ENVIRONMENT\n- trim the wick\n\nBe brief.\n\nwhat burns?"
    assert (asked.purpose, asked.seconds, asked.schema["required"]) == ("chat", 7.0, ["reply"])


@pytest.mark.parametrize("answer", ["", "<think>only thought", {"reply": ""}, {"reply": None}])
def test_an_empty_reply_is_a_failure(tmp_path, answer):
    assert do(stage_with(tmp_path, answer).hands(), "ollama_chat", message="x").trouble is Trouble.FAILED


def test_an_empty_message_asks_nobody(tmp_path):
    stage = stage_with(tmp_path, {"reply": "x"})
    assert do(stage.hands(), "ollama_chat", message="  ").trouble is Trouble.USAGE
    assert stage.thinker.asked == []


@pytest.mark.parametrize(
    ("answer", "accomplished"),
    [
        ({"accomplished": True, "reason": "It burns."}, True),
        ({"accomplished": False, "reason": "Dark."}, False),
        ({"accomplished": "true", "reason": "It burns."}, False),
        ("yes, it is accomplished", False),
        ({}, False),
    ],
)
def test_only_a_plain_yes_is_one(tmp_path, answer, accomplished):
    """W26: what cannot be read is no yes; and a yes completes nothing, it is the agent's own opinion."""
    stage = stage_with(tmp_path, answer)
    stage.memory.keys.set("cedar", "wick", {"length": 3})
    hands = stage.hands()
    result = do(hands, "self_evaluate", paths=["/agentOS/workspace/cedar/note.md"], keys=["wick"])
    assert result.ok
    assert result.output["accomplished"] is accomplished
    assert result.output["evidence"] == ["workspace/cedar/note.md", "memory:wick"]
    assert (result.left, result.wrote) == ((), ())
    assert hands._reach.goal.status is GoalStatus.ACTIVE
    asked = stage.thinker.asked[0]
    assert asked.purpose == "evaluate"
    assert asked.prompt.startswith("You are cedar.")
    assert all(word in asked.prompt for word in ("light the lamp", "one\ntwo\nthree", '{"length": 3}'))
    assert asked.facts["evidence"]["workspace/cedar/note.md"] == "one\ntwo\nthree\n"


def test_the_evidence_is_bounded(tmp_path):
    stage = stage_with(tmp_path, {"accomplished": True, "reason": "x"})
    for number in range(7):
        (stage.repo / f"workspace/cedar/{number}.md").write_text("é" * 5_000)
        stage.memory.keys.set("cedar", f"k{number}", "y" * 1_000)
    names = [f"workspace/cedar/{number}.md" for number in range(7)]
    do(stage.hands(), "self_evaluate", paths=names, keys=[f"k{number}" for number in range(7)])
    evidence = stage.thinker.asked[0].facts["evidence"]
    assert len(evidence) == 10
    assert evidence[names[0]] == "é" * 1_000 + " [… cut]"
    assert evidence["memory:k0"] == "y" * 300 + " [… cut]"


@pytest.mark.parametrize(
    "params", [{}, {"paths": ["none.md"]}, {"keys": ["none"]}, {"paths": [".git/config"]}, {"paths": ["workspace"]}]
)
def test_without_evidence_nothing_is_judged(tmp_path, params):
    stage = stage_with(tmp_path, {"accomplished": True, "reason": "x"})
    assert do(stage.hands(), "self_evaluate", **params).trouble is Trouble.USAGE
    assert stage.thinker.asked == []
