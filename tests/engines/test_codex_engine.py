"""The engine for Codex: its call word by word, its dialect, and recorded streams of the real program."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import budget, environment
from agents.config import Config
from agents.engines import registry
from agents.engines.base import Brief, Program
from agents.engines.codex_events import CODEX_JSON
from agents.errors import HostError, OperatorError
from agents.events import Garbage, Init, Output, Progress, Result, Said, ToolCall, ToolResult, decode, reduce
from agents.model import Status
from agents.plan import plan_resume
from tests.support.plans import planned, running, scene

if TYPE_CHECKING:
    from agents.plan import RunPlan

HERE = Path(__file__).parent
CODEX = registry.engine("codex")
OLD = Program(path="/usr/bin/codex", help_text="  -s, --sandbox <SANDBOX_MODE>")
NEW = Program(path="/usr/bin/codex", help_text="      --ignore-rules  Do not load")
THREAD = "01a20144-3674-7942-b6cf-54ece70cb147"


def plan(
    run_type: str = "scout", task: str = "why is the start slow?", *, program: Program | None = NEW, **more: Any
) -> RunPlan:
    return planned(run_type, task, engine=CODEX, mind=None, program=program, **more)


def resumed(message: str = "") -> RunPlan:
    made = plan("fix")
    state = running(status=Status.CRASHED, session_id=THREAD, config_hash=made.meta.config_hash)
    return plan_resume(made.meta, state, message, scene(mind=None, program=NEW), Config(), CODEX)


CALLS = {
    "scout": plan,
    "old_version": lambda: plan(program=OLD),
    "fix": lambda: plan("fix", "say beta", model="gpt-5-codex"),
    "fix_in_our_sandbox": lambda: plan("fix", "say beta", isolation="full"),
    "resume": lambda: resumed("and quickly"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_program_is_called_as_it_was_agreed(name: str) -> None:
    """T131: argv, environment and input, word by word."""
    made, path = CALLS[name](), HERE / "calls" / f"codex_{name}.json"
    call = made.command
    words = [
        "developer_instructions=(the system prompt)" if word.startswith("developer_") else word for word in call.argv
    ]
    record = {
        "argv": words, "env": dict(call.env), "pass_env": list(call.pass_env), "stdin": call.stdin.decode(),
        "lend": [[name, str(path)] for name, path in call.lend], "network": call.network, "nested": call.nested,
    }  # fmt: skip
    text = json.dumps(record, indent=1) + "\n"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize(
    ("run_type", "isolation", "mode"),
    [
        ("scout", "none", "read-only"), ("plan", "none", "read-only"), ("fix", "none", "workspace-write"),
        ("scout", "partial", "danger-full-access"), ("fix", "full", "danger-full-access"), ("review", "full", "danger-full-access"),
    ],
)  # fmt: skip
def test_one_sandbox_holds_it_and_not_two(run_type: str, isolation: str, mode: str) -> None:
    """Inside ours its own cannot be built; without ours its own is all there is."""
    argv = plan(run_type, isolation=isolation).command.argv
    assert argv[argv.index("-s") + 1] == mode


def test_a_resume_has_every_restriction_again_and_before_the_word() -> None:
    """T143: after ``resume`` the program does not know them."""
    first, again = plan("fix").command, resumed("and quickly").command
    assert again.argv == (*first.argv[:-1], "resume", THREAD, "-")
    assert again.stdin == b"Continue the task.\n\nand quickly"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f")))
def test_the_system_prompt_survives_as_a_value_of_toml(text: str) -> None:
    """T132: whatever a path in it holds."""
    made = plan()
    brief = Brief(
        meta=made.meta, root=Path("/w/shop"), checkout=Path("/w/shop"), private=Path("/p"), home_dir=Path("/p/home"),
        mutates=False, program=NEW, run_dir=Path("/r"), index=Path("/i"), prompt=text, session_id="s", python="python3",
        home=Path("/opt"),
    )  # fmt: skip
    settings = [word for word in CODEX.command(brief).argv if word.startswith("developer_instructions=")]
    assert [tomllib.loads(setting)["developer_instructions"] for setting in settings] == [text]


def test_the_environment_holds_its_own_key_and_no_other() -> None:
    """T151: an allow-list (S01)."""
    operator = {
        "CODEX_API_KEY": "k", "OPENAI_API_KEY": "k", "HTTPS_PROXY": "http://p", "CODEX_HOME": "/home/ada/.codex",
        "ANTHROPIC_API_KEY": "x", "AWS_SECRET_ACCESS_KEY": "x",
    }  # fmt: skip
    call = plan().command
    assert set(environment.compose(operator, call.pass_env, "", call.env)) == {
        "CODEX_API_KEY",
        "OPENAI_API_KEY",
        "HTTPS_PROXY",
    }


@pytest.mark.parametrize(
    ("more", "error", "word"),
    [
        ({"argv": ("ls",)}, OperatorError, "--engine command -- ls"),
        ({"program": None}, HostError, "npm install -g @openai/codex"),
        ({"config": Config(max_usd=1.0)}, OperatorError, "--max-tokens"),
    ],
)
def test_what_does_not_fit_is_said_with_what_to_type(
    more: dict[str, Any], error: type[OperatorError], word: str
) -> None:
    with pytest.raises(error) as caught:
        plan(**more)
    assert word in caught.value.hint


# --- the dialect ------------------------------------------------------------------------------------------------------


def event(**raw: Any) -> Any:
    return decode(json.dumps(raw).encode(), CODEX_JSON)


def item(state: str, **item_: Any) -> Any:
    return event(type=f"item.{state}", item=item_)


LINES = {
    "thread": (event(type="thread.started", thread_id="t1"), Init(session_id="t1")),
    "thread without an id": (event(type="thread.started"), Init()),
    "message": (item("completed", id="i", type="agent_message", text="Hello."), Said("Hello.")),
    "warning": (item("completed", id="i", type="error", message="no metadata"), Output("no metadata")),
    "reasoning": (item("completed", id="i", type="reasoning", text="hm"), Output("reasoning")),
    "notice": (event(type="error", message="Reconnecting... 1/5"), Output("Reconnecting... 1/5")),
    "failed": (
        event(type="turn.failed", error={"message": "401"}),
        Result(text="401", subtype="error_during_execution", is_error=True),
    ),
    "failed without a word": (event(type="turn.failed"), Result(subtype="error_during_execution", is_error=True)),
    "something new": (event(type="turn.paused"), Output("turn.paused")),
    "item update": (item("updated", id="i", type="todo_list"), Output("item.updated")),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_means_what_it_says(name: str) -> None:
    """T133: the thread is the session; T137: a failed turn is an error."""
    got, wanted = LINES[name]
    assert got == wanted


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"type": "command_execution", "command": "ls -l"}, "ls -l"),
        ({"type": "file_change", "changes": [{"path": "/w/a", "kind": "update"}]}, "/w/a"),
        ({"type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {}}, "t"),
        ({"type": "web_search", "query": "why"}, "why"),
        ({"type": "something_new"}, ""),
        ({"type": "file_change", "changes": "none"}, ""),
    ],
)
def test_a_tool_call_has_a_label_and_a_digest(fields: dict[str, Any], label: str) -> None:
    """P12: the same call again has the same digest, whatever its number; another call another one."""
    call, again = item("started", id="item_1", **fields), item("started", id="item_7", **fields)
    assert isinstance(call, ToolCall)
    assert (call.name, call.argument, call.id) == (fields["type"], label, "item_1")
    assert call.digest == again.digest
    assert call.digest != item("started", id="item_1", **fields, more="x").digest


def test_an_answer_belongs_to_its_call() -> None:
    """P12: the digest is that of what came out."""
    said = {"type": "command_execution", "command": "ls", "exit_code": 0, "status": "completed"}
    one = item("completed", id="item_1", aggregated_output="a", **said)
    other = item("completed", id="item_2", aggregated_output="b", **said)
    failed = item("completed", id="item_3", type="command_execution", exit_code=1, status="failed")
    assert (one.id, one.is_error, failed.is_error) == ("item_1", False, True)
    assert one.digest != other.digest
    assert isinstance(other, ToolResult)


@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        ({"input_tokens": 800, "cached_input_tokens": 600, "output_tokens": 80}, (200, 80, 600, 0)),
        (
            {"input_tokens": 800, "cached_input_tokens": 600, "cache_write_input_tokens": 100, "output_tokens": 80},
            (100, 80, 600, 100),
        ),
        ({"input_tokens": 1, "cached_input_tokens": 5}, (0, 0, 5, 0)),
        ({"input_tokens": True, "output_tokens": "many"}, (0, 0, 0, 0)),
        (None, (0, 0, 0, 0)),
        ([1], (0, 0, 0, 0)),
    ],
)
def test_cached_tokens_are_counted_once(told: Any, tokens: tuple[int, ...]) -> None:
    """A cached token is part of the input here, and a kind of its own in the ledger."""
    usage = event(type="turn.completed", usage=told).usage
    assert tuple(usage[name] for name in budget.TOKENS) == (tokens[0], tokens[1], tokens[2], tokens[3])


def test_every_use_of_a_tool_is_a_turn() -> None:
    """Requests to the model are not told; a budget of turns is kept by what follows each of them."""
    seen = Progress()
    for number in range(3):
        seen = reduce(seen, item("started", id=f"item_{number}", type="command_execution", command="ls"))
    assert budget.usage(seen)["turns"] == 3


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b'{"type": "item.started"}',
        b'{"type": "item.completed", "item": []}',
        b'{"type": "item.completed", "item": {"type": "agent_message"}}',
        b'{"type": []}',
        b"\xff\xfe",
    ],
)
def test_a_broken_line_cannot_raise(line: bytes) -> None:
    """T135: it is kept as what it is."""
    assert isinstance(decode(line, CODEX_JSON), Garbage)


# --- recorded streams -------------------------------------------------------------------------------------------------


def heard(name: str) -> tuple[Progress, list[Any]]:
    events = [decode(line, CODEX_JSON) for line in (HERE / "streams" / name).read_bytes().split(b"\n") if line]
    seen = Progress()
    for each in events:
        seen = reduce(seen, each)
    return seen, events


def test_a_recorded_fix_is_understood() -> None:
    """T133: the thread's id is the session; T136: a completed turn is the result."""
    seen, events = heard("codex_fix.jsonl")
    calls = [each.name for each in events if isinstance(each, ToolCall)]
    answers = [each.is_error for each in events if isinstance(each, ToolResult)]
    assert seen.session_id
    assert seen.result
    assert (seen.result.is_error, budget.usage(seen)["input_tokens"], seen.said) == (False, 400, "Said beta.")
    assert calls == ["command_execution", "file_change", "command_execution"]
    assert answers == [False, False, True]
    assert not [each for each in events if isinstance(each, Garbage)]


def test_a_recorded_failure_is_understood() -> None:
    """T137: attempts to connect again are no end; the failed turn is."""
    seen, events = heard("codex_no_key.jsonl")
    assert seen.result
    assert seen.result.is_error
    assert "401 Unauthorized: no such key" in seen.result.text
    assert [each.text for each in events if isinstance(each, Output) and "Reconnecting" in each.text]
