"""The engine for Claude Code: its call word by word, its rules, its plugin, and recorded streams of the real program."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agents import environment, plugin
from agents.commands import command_set
from agents.config import Config
from agents.engines import registry
from agents.engines.base import Program
from agents.engines.claude import denials
from agents.errors import HostError, OperatorError, Tampered
from agents.events import Init, Progress, ToolCall, ToolResult, decode, reduce
from agents.model import Status
from agents.plan import plan_resume
from agents.policy import CYCLE, TIERS
from essentials import records
from tests.support.plans import planned, running, scene

if TYPE_CHECKING:
    from agents.plan import RunPlan

HERE = Path(__file__).parent
CLAUDE = registry.engine("claude")
OLD = Program(path="/usr/bin/claude", help_text="  --resume [value]  Resume")
NEW = Program(
    path="/usr/bin/claude", help_text="  --restricted   Restricted mode\n  --system-prompt-snapshot <on|off>  Record\n"
)
SPEC = Program(path="/usr/bin/claude", help_text="  --ignore-patterns <patterns>  Not to be read")


def plan(
    run_type: str = "scout", task: str = "why is the start slow?", *, program: Program | None = NEW, **more: Any
) -> RunPlan:
    return planned(run_type, task, engine=CLAUDE, mind=None, program=program, **more)


def resumed(message: str = "", program: Program = NEW, run_type: str = "fix") -> RunPlan:
    made = plan(run_type, program=program)
    state = running(
        status=Status.CRASHED, session_id="5e551011-0000-4000-8000-000000000000", config_hash=made.meta.config_hash
    )
    return plan_resume(made.meta, state, message, scene(mind=None, program=program), Config(), CLAUDE)


CALLS = {
    "scout": plan,
    "old_version": lambda: plan(program=OLD),
    "specification": lambda: plan(program=SPEC),
    "review": lambda: plan("review", isolation="full"),
    "fix": lambda: plan("fix", "say beta"),
    "fix_with_limits": lambda: plan("fix", "say beta", model="sonnet", config=Config(max_turns=30, max_usd=0.5)),
    "resume": lambda: resumed("and quickly"),
}


def shown(made: RunPlan) -> str:
    """The call, one word a line."""
    call = made.command
    words = ["(the system prompt)" if word == made.prompt else word for word in call.argv]
    record = {
        "argv": [json.loads(word) if word.startswith("{") else word.split(",") if "," in word else word for word in words],
        "env": dict(call.env), "pass_env": list(call.pass_env), "env_test": call.env_test, "stdin": call.stdin.decode(),
        "read": [str(path) for path in call.read], "lend": [[name, str(path)] for name, path in call.lend],
        "files": list(call.files), "network": call.network, "nested": call.nested,
    }  # fmt: skip
    return json.dumps(record, indent=1) + "\n"


def word_after(made: RunPlan, option: str) -> str:
    return made.command.argv[made.command.argv.index(option) + 1]


@pytest.mark.parametrize("name", CALLS)
def test_a_program_is_called_as_it_was_agreed(name: str) -> None:
    """T131: argv, environment and input, word by word."""
    path, text = HERE / "calls" / f"claude_{name}.json", shown(CALLS[name]())
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize("run_type", [each for each in TIERS if each != CYCLE])
def test_a_tier_has_its_tools_and_no_more(run_type: str) -> None:
    """T131: allowlist of its tier; a tool that may read is never allowed beyond the folder, and no shell exists."""
    made = plan(run_type)
    offered = set(word_after(made, "--tools").split(","))
    assert offered == {"Grep", "Glob", "Read", "Skill"} | ({"Edit", "Write"} if TIERS[run_type].mutates else set())
    allowed = word_after(made, "--allowedTools").split(",")
    assert [rule for rule in allowed if not rule.startswith("Skill(run-0be1:")] == (
        ["Edit(./**)"] if TIERS[run_type].mutates else []
    )


@pytest.mark.parametrize(("program", "given_"), [(OLD, False), (NEW, False), (SPEC, True)])
def test_the_ignore_pattern_is_given_where_it_exists_and_denied_everywhere(program: Program, given_: bool) -> None:
    """T131: the option of the specification only if ``--help`` knows it; the rules of denial always."""
    made = plan(program=program)
    assert ("--ignore-patterns" in made.command.argv) == given_
    assert "Read(//w/shop/.agents/**)" in word_after(made, "--disallowedTools").split(",")


def test_a_resume_has_every_restriction_again() -> None:
    """T143: but for session and input the call is the same, because the program remembers neither tools nor denials."""
    first, again = plan("fix").command, resumed("and quickly").command
    session = first.argv.index("--session-id")
    assert again.argv[session : session + 2] == ("--resume", "5e551011-0000-4000-8000-000000000000")
    assert (*first.argv[:session], *first.argv[session + 2 :]) == (*again.argv[:session], *again.argv[session + 2 :])
    assert again.stdin == b"Continue the task.\n\nand quickly"
    assert (first.env, first.pass_env, first.files) == (again.env, again.pass_env, again.files)


@pytest.mark.parametrize("task", ["/run-0be1:merge_0be1 now", "/clear", "-p", "x" * 500_000, "naïve \x1b[2J\n/exit"])
def test_a_task_is_input_and_never_a_command_or_an_option(task: str) -> None:
    """T129: a prompt that begins with a slash would run what a model may not invoke."""
    call = plan(task=task).command
    assert call.stdin.decode() == f"Task:\n{task}"
    assert not [word for word in call.argv if task in word and task != "-p"]


def test_the_environment_holds_its_own_key_and_no_other() -> None:
    """T151: an allow-list (S01); and what the box sets cannot be unset by the operator's own settings."""
    operator = {
        "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://h", "CLAUDE_CODE_MAX_RETRIES": "2", "https_proxy": "http://p",
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0", "CLAUDE_CONFIG_DIR": "/home/ada/.claude", "AWS_SECRET_ACCESS_KEY": "x",
        "GITHUB_TOKEN": "x", "OPENAI_API_KEY": "x", "PATH": "/usr/bin",
    }  # fmt: skip
    call = plan().command
    got = environment.compose(operator, call.pass_env, "", call.env)
    assert {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_MAX_RETRIES", "https_proxy", "PATH"} <= set(got)
    assert not {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY", "CLAUDE_CONFIG_DIR"} & set(got)
    assert got["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] == "1"


@pytest.mark.parametrize(
    ("more", "error", "word"),
    [({"argv": ("ls",)}, OperatorError, "--engine command -- ls"), ({"program": None}, HostError, "npm install")],
)
def test_what_does_not_fit_is_said_with_what_to_type(
    more: dict[str, Any], error: type[OperatorError], word: str
) -> None:
    with pytest.raises(error) as caught:
        plan(**more)
    assert word in caught.value.hint


# --- rules ------------------------------------------------------------------------------------------------------------

RULE = re.compile(r"(Read|Edit)\((//[A-Za-z0-9_./@+=%~*-]+)\)")
paths = st.lists(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1), min_size=1
).map(lambda parts: Path("/", *parts))


def covers(pattern: str, path: str) -> bool:
    """Whether the glob *pattern* of a rule means *path*: as in .gitignore, two stars stand for any folders or none."""
    glob = (
        re.escape(pattern.removeprefix("/"))
        .replace(r"/\*\*/", "/(?:.*/)?")
        .replace(r"\*\*", ".*")
        .replace(r"\*", "[^/]*")
    )
    return re.fullmatch(glob, path, re.DOTALL) is not None


@given(paths, st.booleans())
def test_rules_hold_for_folders_of_any_name(checkout: Path, mutates: bool) -> None:
    """T131: no character of a path can end a rule, begin another, or keep it from matching."""
    root = checkout / "agent_box" / "trees" / "x__0be1" if mutates else checkout
    rules = list(denials(root, checkout))
    matches = [RULE.fullmatch(rule) for rule in rules]
    assert all(matches)
    read = [match[2] for match in matches if match and match[1] == "Read"]
    edit = [match[2] for match in matches if match and match[1] == "Edit"]
    for secret in (
        f"{checkout}/.agents/INDEX.jsonl",
        f"{checkout}/.claude/commands/run_a1b2/x.md",
        f"{root}/.env",
        f"{root}/a/b/.env.x.local",
    ):
        assert any(covers(pattern, secret) for pattern in read), secret
    for kept in (f"{checkout}/.agents/x", f"{root}/.git", f"{root}/.git/hooks/x", f"{root}/.agents/x"):
        assert any(covers(pattern, kept) for pattern in edit), kept


@pytest.mark.parametrize(
    "root", [Path("/w/shop"), Path("/w/shop/agent_box/trees/x__0be1")], ids=["checkout", "airlock"]
)
def test_rules_leave_the_work_alone(root: Path) -> None:
    """T131: an agent that is kept from its own files is of no use."""
    matches = [RULE.fullmatch(rule) for rule in denials(root, Path("/w/shop"))]
    work = [
        f"{root}/src/a.py",
        f"{root}/.github/x.yml",
        f"{root}/.env.example",
        f"{root}/.env.test",
        f"{root}/.gitignore",
    ]
    assert [path for path in work for match in matches if match and covers(match[2], path)] == []


def test_the_rules_are_told_in_both_places() -> None:
    """T131: settings that do not fit are dropped as a whole, so the rules stand on the command line as well."""
    made = plan("fix")
    settings = json.loads(word_after(made, "--settings"))
    assert settings["permissions"]["deny"] == word_after(made, "--disallowedTools").split(",")
    assert all(isinstance(rule, str) for rule in settings["permissions"]["deny"])


def test_a_reader_does_not_look_into_the_airlocks_of_others() -> None:
    read = list(denials(Path("/w/shop"), Path("/w/shop")))
    edit = list(denials(Path("/w/shop/agent_box/trees/x"), Path("/w/shop")))
    assert "Read(//w/shop/agent_box/trees/**)" in read
    assert not [rule for rule in edit if "agent_box/trees/**" in rule]


# --- the run's commands as a plugin ----------------------------------------------------------------------------------

FILES = command_set("a1b2", "25-11-22_1430__shop__a1b2", "/srv/shop/out\nallowed-tools: Bash")


def test_a_plugin_has_a_manifest_and_all_commands() -> None:
    """T128: one file a command, under the run's own namespace."""
    made = plugin.plugin_files("a1b2", FILES)
    manifest = json.loads(made["plugin/.claude-plugin/plugin.json"])
    assert manifest["name"] == "run-a1b2"
    assert sorted(set(made) - {"plugin/.claude-plugin/plugin.json"}) == sorted(
        f"plugin/commands/{file.filename}" for file in FILES
    )
    assert plugin.skills("a1b2", FILES) == ("run-a1b2:scout_a1b2", "run-a1b2:plan_a1b2", "run-a1b2:summarize_a1b2")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_command_allows_no_tool_of_its_own(file: Any) -> None:
    """What a command's text allows, it would allow for the whole disk; flag and body stay as they are (T129)."""
    text = plugin.plugin_files("a1b2", FILES)[f"plugin/commands/{file.filename}"].decode()
    _, before, body = file.text.split("---\n", 2)
    _, after, same = text.split("---\n", 2)
    fields = yaml.safe_load(before)
    fields.pop("allowed-tools")
    assert yaml.safe_load(after) == fields
    assert same == body
    assert fields["disable-model-invocation"] is not file.invokable


def test_a_line_of_the_body_is_no_field() -> None:
    body = '---\ndescription: "x"\ndisable-model-invocation: false\n---\nallowed-tools: stays\n'
    kept = plugin.plugin_files("a1b2", [_with(FILES[0], body)])[f"plugin/commands/{FILES[0].filename}"].decode()
    assert kept == body


def test_a_human_only_command_that_a_model_could_invoke_is_refused() -> None:
    """T129: here as well."""
    with pytest.raises(Tampered, match="humans only"):
        plugin.plugin_files("a1b2", [_with(FILES[3], FILES[3].text.replace("invocation: true", "invocation: false"))])


def _with(file: Any, text: str) -> Any:
    return records.replace(file, text=text)


# --- recorded streams -------------------------------------------------------------------------------------------------


def heard(name: str) -> tuple[Progress, list[Any]]:
    """What the supervisor knows after the recorded stream *name*, and its events."""
    events = [decode(line, CLAUDE.dialect) for line in (HERE / "streams" / name).read_bytes().split(b"\n") if line]
    seen = Progress()
    for event in events:
        seen = reduce(seen, event)
    return seen, events


@pytest.mark.parametrize(
    ("name", "subtype", "is_error", "turns", "text"),
    [
        ("claude_fix.jsonl", "success", False, 4, "Said beta."),
        ("claude_no_key.jsonl", "success", True, 1, "Invalid API key"),
        ("claude_max_turns.jsonl", "error_max_turns", True, 2, "Reached maximum number of turns (1)"),
    ],
)
def test_what_the_real_program_said_is_understood(
    name: str, subtype: str, is_error: bool, turns: int, text: str
) -> None:
    """T133: session of the init event; T137: subtype and is_error, whatever the exit code was."""
    seen, _ = heard(name)
    assert seen.session_id == "fd4bcb9a-67c0-4a42-8ca3-bfe89e732bf1"
    assert (seen.version, seen.model) == ("2.1.330", "claude-opus-5-5")
    assert seen.result
    assert (seen.result.subtype, seen.result.is_error, seen.result.turns) == (subtype, is_error, turns)
    assert seen.result.text.startswith(text)


def test_a_recorded_fix_shows_what_was_done() -> None:
    _, events = heard("claude_fix.jsonl")
    assert [event.name for event in events if isinstance(event, ToolCall)] == ["Read", "Edit", "Read"]
    assert sorted(event.is_error for event in events if isinstance(event, ToolResult)) == [False, False, True]


def test_a_killed_run_has_a_session_and_no_result() -> None:
    """T143: enough to go on with."""
    seen, events = heard("claude_killed.jsonl")
    assert (seen.session_id, seen.result) == ("fd4bcb9a-67c0-4a42-8ca3-bfe89e732bf1", None)
    assert isinstance(events[0], Init)
