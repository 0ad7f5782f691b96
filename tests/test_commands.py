"""Slash commands of a run: what the files hold, what can get into them, and what is refused."""

from __future__ import annotations

import itertools
import json
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.commands import (
    BUDGET,
    LONGEST_DESCRIPTION,
    CommandFile,
    check_budget,
    command_set,
    cost,
    digest,
    human_only_names,
    render,
    safe_names,
)
from agents.errors import OperatorError, Tampered
from essentials import records

ID = "a1b2"
NAME = "25-11-22_1430__rm-rf-your-secrets__a1b2"
DIR = "/srv/shop/.agents/runs/box"
FILES = command_set(ID, NAME, DIR)
KEYS = ["description", "disable-model-invocation", "allowed-tools", "argument-hint"]

ids = st.from_regex(r"[0-9a-f]{4,64}", fullmatch=True)


def split(text: str) -> tuple[dict[str, object], str]:
    """Return frontmatter and body as a reader of the file sees them."""
    before, front, body = text.split("---\n", 2)
    assert before == ""
    return yaml.safe_load(front), body


def test_the_names_of_a_run() -> None:
    """T128: the run's folder has scout_<id>.md and its companions."""
    assert safe_names(ID) == ("scout_a1b2", "plan_a1b2", "summarize_a1b2")
    assert human_only_names(ID) == ("merge_a1b2", "apply_a1b2")
    assert tuple(file.name for file in FILES) == safe_names(ID) + human_only_names(ID)
    assert [file.filename for file in FILES][:2] == ["scout_a1b2.md", "plan_a1b2.md"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_has_frontmatter_arguments_and_the_run_folder(file: CommandFile) -> None:
    """T128: frontmatter keys; $ARGUMENTS and RUN_DIR present."""
    fields, body = split(file.text)
    assert list(fields) == KEYS
    assert fields["description"] == file.description
    assert fields["disable-model-invocation"] is not file.invokable
    # The rule for `Read` holds for what searches, too; without a path it would be the whole disk.
    assert fields["allowed-tools"] == "Read(./**)"
    assert str(fields["argument-hint"]).startswith("[")
    assert body.count("$ARGUMENTS") == 1
    assert DIR in body


@pytest.mark.parametrize("file", FILES[:3], ids=lambda file: file.name)
def test_a_safe_command_is_read_only_and_keeps_the_root_clean(file: CommandFile) -> None:
    assert file.invokable
    assert "READ-ONLY" in file.text
    assert "Never write reports to the repository root." in file.text


@pytest.mark.parametrize("file", FILES[3:], ids=lambda file: file.name)
def test_a_risky_command_is_for_humans_and_knows_one_way(file: CommandFile) -> None:
    """T129: every merge_*/apply_* has disable-model-invocation true."""
    fields, body = split(file.text)
    assert fields["disable-model-invocation"] is True
    assert not file.invokable
    assert body.startswith("HUMAN ONLY.")
    assert "Do NOT invoke automatically" in body
    assert re.findall(r"\./agent \S+ \S+", body) == ["./agent merge a1b2"]
    assert "Bash" not in file.text


RISKY = FILES[3]


@pytest.mark.parametrize(
    "bad",
    [
        records.replace(RISKY, invokable=True),
        records.replace(RISKY, name="apply_a1b2", invokable=True),
        records.replace(RISKY, text=RISKY.text.replace("invocation: true", "invocation: false")),
        records.replace(RISKY, text=RISKY.text.replace("disable-model-invocation: true\n", "")),
        records.replace(
            RISKY, text=RISKY.text.replace("invocation: true\n", "invocation: true\ndisable-model-invocation: false\n")
        ),
        records.replace(
            RISKY,
            text=RISKY.text.replace("invocation: true\n", 'invocation: true\n"disable-model-invocation": false\n'),
        ),
        records.replace(RISKY, text="disable-model-invocation: true\n"),
        records.replace(RISKY, text="---\ndescription: x\n---\ndisable-model-invocation: true\n---\n"),
        records.replace(RISKY, text=""),
    ],
    ids=range(9),
)
def test_a_risky_command_that_a_model_could_invoke_is_refused(bad: CommandFile) -> None:
    """T129: generator refuses otherwise."""
    with pytest.raises(Tampered, match="humans only") as caught:
        render((*FILES[:3], bad))
    assert caught.value.code == 5


@pytest.mark.parametrize(
    "name", ["", "scout", "scout_a1", "../x_a1b2", "Merge_a1b2", "scout_a1b2\n", "scout_a1b2/x", "scout_A1B2"]
)
def test_a_file_with_another_name_is_refused(name: str) -> None:
    with pytest.raises(Tampered, match="cannot be the name"):
        render([records.replace(FILES[0], name=name)])


def test_two_files_of_one_name_are_refused() -> None:
    with pytest.raises(Tampered, match="scout_a1b2"):
        render((FILES[0], FILES[0]))


def test_what_is_rendered_is_what_was_made() -> None:
    assert render(FILES) == {file.filename: file.text for file in FILES}
    assert render(()) == {}


def test_the_task_never_appears() -> None:
    """T128: texts are fixed; the name of a run, which echoes its task, is only checked."""
    assert not any("rm-rf" in file.text for file in FILES)


@pytest.mark.parametrize("short_id", ["", "a1b", "A1B2", "a1b2\n", "../x", "a" * 65, "a1b2; rm"])
def test_only_a_short_id_gets_into_a_name(short_id: str) -> None:
    for make in (safe_names, human_only_names, lambda one: command_set(one, f"x__{one}", DIR)):
        with pytest.raises(ValueError, match="not a short id"):
            make(short_id)


def test_the_short_id_must_be_the_runs() -> None:
    with pytest.raises(ValueError, match="not the short id of"):
        command_set("beef", NAME, DIR)


@settings(max_examples=60)
@given(ids, st.text(max_size=60) | st.text("\n-'\"`!$@{}<>\\: id#\u202e\ud800", max_size=40))
def test_any_folder_name_stays_inside_its_quotes(short_id: str, run_dir: str) -> None:
    """T128: frontmatter parses with exactly the expected keys, and the body's shape never changes."""
    for file, plain in zip(
        command_set(short_id, f"x__{short_id}", run_dir), command_set(short_id, f"x__{short_id}", "DIR"), strict=True
    ):
        fields, body = split(file.text)
        assert list(fields) == KEYS
        assert len(str(fields["description"])) <= LONGEST_DESCRIPTION
        head, tail = split(plain.text)[1].split('"DIR"')
        assert body.startswith(head)
        assert body.endswith(tail)
        quoted = body[len(head) : len(body) - len(tail)]
        assert json.loads(quoted) == run_dir
        assert not set(quoted[1:-1]) & set('"`!$@<>{}\n')
        assert file.text.encode("utf-8")


def test_the_digest_knows_names_and_texts_but_no_order() -> None:
    assert {digest(order) for order in itertools.permutations(FILES)} == {digest(FILES)}
    assert re.fullmatch(r"[0-9a-f]{64}", digest(FILES))
    assert digest(FILES[:4]) != digest(FILES)
    assert digest(command_set(ID, NAME, DIR + "x")) != digest(FILES)
    renamed = records.replace(FILES[0], name="probe_a1b2")
    assert digest((renamed, *FILES[1:])) != digest(FILES)


def test_the_digest_keeps_name_and_text_apart() -> None:
    one, other = CommandFile("ab", "", True, "c\ud800"), CommandFile("a", "", True, "bc\ud800")
    assert digest([one]) != digest([other])


@pytest.mark.parametrize("short_id", [ID, "f" * 64])
def test_descriptions_are_tiny(short_id: str) -> None:
    """T130: each description has 80 characters at most."""
    assert all(len(file.description) <= 80 for file in command_set(short_id, f"x__{short_id}", DIR))


def test_only_invokable_commands_cost_context() -> None:
    assert cost(FILES) == sum(len(file.name + file.description) for file in FILES[:3])
    assert cost(FILES[3:]) == 0


def test_fifty_runs_fit_the_budget_and_then_some_do_not() -> None:
    """T130: 50 live runs stay below 15,000; a start that would not is refused with a message."""
    check_budget(49 * cost(FILES), FILES)
    check_budget(BUDGET - cost(FILES), FILES)
    with pytest.raises(OperatorError, match="would take 15001 characters") as caught:
        check_budget(BUDGET - cost(FILES) + 1, FILES)
    assert "./agent gc" in caught.value.hint
    assert "SLASH_COMMAND_TOOL_CHAR_BUDGET" in caught.value.hint
