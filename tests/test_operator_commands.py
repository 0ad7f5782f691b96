"""The tracked commands for the operator's own Claude Code session: what they may run, and who may invoke them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from agents.commands import BUDGET, LONGEST_DESCRIPTION
from agents.parser import app

FOLDER = Path(__file__).resolve().parent.parent / ".claude" / "commands"
FILES = sorted(FOLDER.glob("*.md"))
VERBS = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
KEYS = {"description", "argument-hint", "allowed-tools", "disable-model-invocation"}
READING = {"status", "list", "show", "diff", "logs", "verify", "scout", "plan", "review", "doctor"}
"""Verbs that change neither the repository nor the fate of a run."""
GATE = {"merge", "reject", "undo", "gc", "stop"}
"""What only a human does, in a terminal."""


def parts(path: Path) -> tuple[dict[str, Any], str]:
    """Frontmatter and body as the reader of such a file sees them."""
    before, front, body = path.read_text("utf-8").split("---\n", 2)
    assert before == ""
    return yaml.safe_load(front), body


def allowed(path: Path) -> list[str]:
    """Verbs that the command may run without a question."""
    rules = [rule.strip() for rule in str(parts(path)[0]["allowed-tools"]).split(",")]
    found = [re.fullmatch(r"Bash\(\./agent ([a-z]+):\*\)", rule) for rule in rules]
    assert all(found), rules
    return [match[1] for match in found if match]


def test_there_is_one_for_each_thing_that_an_operator_does() -> None:
    names = {path.stem for path in FILES}
    assert {"box-status", "box-review", "box-verify", "box-scout", "box-resume", "box-merge"} <= names
    assert all(name.startswith("box-") for name in names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_command_says_what_it_does_in_one_short_line(path: Path) -> None:
    """T130: each description is at most 80 characters."""
    fields, body = parts(path)
    assert set(fields) <= KEYS
    assert 10 < len(fields["description"]) <= LONGEST_DESCRIPTION
    assert ("argument-hint" in fields) == ("$ARGUMENTS" in body)
    assert len(body) < 3000


def test_together_they_leave_the_budget_to_the_runs() -> None:
    """T130: what a model sees of them is names and descriptions."""
    assert sum(len(path.stem) + len(parts(path)[0]["description"]) for path in FILES) < BUDGET / 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_changes_something_is_for_humans_only(path: Path) -> None:
    """T129: a command that may run more than what reads is kept from models; the gate is in none of them."""
    fields, _ = parts(path)
    verbs = set(allowed(path))
    assert verbs <= VERBS
    assert not verbs & GATE
    if not verbs <= READING or path.stem == "box-merge":
        assert fields["disable-model-invocation"] is True


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_command_line_in_it_exists(path: Path) -> None:
    _, body = parts(path)
    assert set(re.findall(r"\./agent ([a-z]+)", body)) <= VERBS
    assert set(re.findall(r"`/(box-[a-z]+)`", body)) <= {each.stem for each in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_that_somebody_types_reaches_a_shell_unseen(path: Path) -> None:
    """What stands in !`…` is run before anybody looks, so it is fixed words, of a verb that the command may run."""
    _, body = parts(path)
    for line in re.findall(r"!`([^`]*)`", body):
        match = re.fullmatch(r"\./agent ([a-z]+)", line)
        assert match, line
        assert match[1] in allowed(path)


def test_no_command_approves_anything() -> None:
    """T149: an approval is typed by a human who has seen the patch."""
    texts = {path.stem: path.read_text("utf-8") for path in FILES}
    assert [name for name, text in texts.items() if "--approve" in text] == []
    assert "HUMAN ONLY" in texts["box-merge"]


@pytest.mark.parametrize("name", ["box-review", "box-scout"])
def test_an_agents_words_are_called_what_they_are(name: str) -> None:
    """A report or a patch that gives orders has no authority over whoever reads it."""
    assert re.search(r"no authority|word of an agent", (FOLDER / f"{name}.md").read_text("utf-8"))
