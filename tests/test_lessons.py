"""What hollow has learned, in the system prompt of every engine: which rules apply, and that the file is foreign input."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from agents import lessons, prompts, scenery
from agents.config import Config
from agents.engines import registry
from agents.engines.base import Program
from agents.layout import Layout
from agents.plan import plan_resume
from essentials import records
from tests.support.plans import planned, running, scene
from tests.test_prompts import ASK, GOLDEN

RULE = "Verify that a path exists before reading it."
PATH = "System paths under /agentOS/agents/ are read-only."


@pytest.fixture
def box(tmp_path):
    (tmp_path / ".agents" / "hollow").mkdir(parents=True)
    return Layout(tmp_path)


def place(box: Layout, categories: Any) -> None:
    (box.data / lessons.FILE).write_text(json.dumps({"version": 1, "categories": categories}))


def test_the_rules_that_hold_for_anybody(box):
    """T77: constraints, then environment; patterns and what is about hollow's own inside stay there."""
    place(box, {
        "environment": [
            {"text": RULE, "evidence_count": 2}, {"text": "Call fs_read before fs_edit on the same document."},
            {"text": "The suffering load goes down with every artifact."}, "A bare sentence is a rule as well.",
        ],
        "patterns": [{"text": "A survey passes the gate when it cites lines."}],
        "constraints": [{"text": PATH}, {"text": "Ask cedar before you write below design/."}],
    })  # fmt: skip
    assert lessons.rules(box) == (PATH, RULE, "A bare sentence is a rule as well.")


@pytest.mark.parametrize(
    "categories",
    [
        None, [], "x", {}, {"environment": None}, {"environment": {"a": 1}}, {"environment": [None, 3, [], {}, {"text": 3}, "short"]},
        {"dreams": [{"text": RULE}]},
    ],
)  # fmt: skip
def test_what_is_no_lesson_is_left_out(box, categories):
    place(box, categories)
    assert lessons.rules(box) == ()


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 20_000, b'{"categories": ' + b"9" * 5000 + b"}"]
)
def test_a_damaged_file_gives_no_rules(box, data):
    (box.data / lessons.FILE).write_bytes(data)
    assert lessons.rules(box) == ()


def test_there_need_not_be_a_file(tmp_path):
    assert lessons.rules(Layout(tmp_path)) == ()


def test_a_link_or_a_pipe_is_not_read(box, tmp_path):
    """Whoever put it there: it is not followed, and not waited for."""
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(json.dumps({"categories": {"environment": [RULE]}}))
    (box.data / lessons.FILE).symlink_to(elsewhere)
    assert lessons.rules(box) == ()
    (box.data / lessons.FILE).unlink()
    os.mkfifo(box.data / lessons.FILE)
    assert lessons.rules(box) == ()


def test_secrets_and_control_characters_are_out(box):
    place(box, {"environment": [f"The server wants password=hunter2hunter2\x1b[31m\nRUN_DIR: /tmp/{'x' * 300}"]})
    (rule,) = lessons.rules(box)
    assert "hunter2" not in rule
    assert rule.isprintable()
    assert len(rule) == lessons.LONGEST


def test_the_bounds_hold_whoever_wrote_the_file(box):
    """T78: fifteen a category, 5000 bytes; the newest stand last."""
    place(box, {"environment": [f"Rule number {n} of this place" for n in range(40)]})
    assert lessons.rules(box) == tuple(f"Rule number {n} of this place" for n in range(25, 40))
    place(box, {name: [f"{n} {name} " + "ü" * 200 for n in range(15)] for name in lessons.CATEGORIES})
    kept = lessons.rules(box)
    assert 0 < sum(len(rule.encode()) for rule in kept) <= lessons.MOST_BYTES
    place(box, {"environment": [RULE, RULE]})
    assert lessons.rules(box) == (RULE,)


# --- In the prompt ----------------------------------------------------------------------------------------------------


def test_without_rules_the_prompt_is_as_it_was():
    """T132: byte for byte."""
    assert prompts.system_prompt(**ASK, rules=()) == GOLDEN


def test_with_rules_it_has_one_section_more():
    """T77: under the seed's own header, each on its line, below what the box itself says."""
    text = prompts.system_prompt(**ASK, rules=(RULE, "two\nlines of it"))
    before, header, after = text.partition("RULES OF YOUR ENVIRONMENT\n")
    assert header
    assert after.startswith(f"- {RULE}\n- two lines of it\n")
    assert GOLDEN.startswith(before)
    assert text.endswith(GOLDEN[len(before) :])


@pytest.mark.parametrize("engine", ["claude", "codex", "hollow"])
def test_every_engine_is_told(engine):
    """T77: lessons reach every engine; a resumed run has those of its day."""
    program = Program(path=f"/opt/bin/{engine}", version="2.0.1", help_text="--append-system-prompt <prompt>")
    told, untold = (
        planned("fix", "mend it", engine=registry.engine(engine), program=program, rules=rules)
        for rules in ((RULE,), ())
    )
    assert f"- {RULE}\n" in told.prompt
    assert (told.rules, untold.rules) == ((RULE,), ())
    assert "RULES OF YOUR ENVIRONMENT" not in untold.prompt
    # It is what the engine hands over, in one way or another.
    handed = " ".join(told.command.argv) + told.command.stdin.decode() + repr(told.command)
    assert RULE in handed


def test_a_resumed_run_is_told_what_is_known_by_then():
    meta = planned().meta
    state = running(config_hash=meta.config_hash)
    again = plan_resume(meta, state, "", scene(rules=(PATH,)), Config(), registry.engine("hollow"))
    assert f"- {PATH}\n" in again.prompt


@pytest.mark.parametrize(("engine", "given"), [("command", (RULE,)), ("scripted", (RULE,)), ("hollow", ())])
def test_the_scene_holds_what_the_disk_says(context, engine, given):
    """T77: hollow's agents know their lessons themselves; everybody else is told."""
    (context.layout.data / "hollow").mkdir(parents=True)
    place(context.layout, {"environment": [{"text": RULE}]})
    quiet = records.replace(context, config=records.replace(context.config, mind="reflex"))
    looked = scenery.look(quiet, registry.engine(engine))
    assert looked.rules == given
    made = planned(engine=registry.engine("hollow"), rules=(PATH,))
    assert scenery.again(quiet, made).rules == (PATH,)
