"""Engines: how each one's program is called, and how other packages add theirs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents import __version__
from agents.config import Config
from agents.engines import registry
from agents.engines.base import Brief
from agents.engines.stream_json import STREAM_JSON, TEXT_OR_JSON
from agents.errors import HostError, OperatorError
from agents.policy import TIERS
from tests.support.plans import planned

if TYPE_CHECKING:
    from agents.engines.base import Command
    from agents.model import RunMeta

PROJECT = Path(__file__).resolve().parents[1]
GOLDEN = Path(__file__).parent / "golden"

CALLS: dict[str, dict[str, Any]] = {
    "hollow_reflex": {},
    "hollow_ollama": {"run_type": "review", "mind": "ollama", "model": "qwen3.5:9b", "config": Config(num_ctx=8192, keep_alive="-1", call_timeout=2.5, max_turns=3)},
    "hollow_model_without_ollama": {"mind": "reflex", "model": "qwen3.5:9b"},
    "command": {"engine": registry.engine("command"), "mind": None, "argv": ("ruff", "check", "--fix", ".")},
    "scripted": {"engine": registry.engine("scripted"), "mind": None, "argv": ("history.jsonl",)},
}  # fmt: skip


def shown(command: Command, prompt: str) -> str:
    """The call as one word a line."""
    words = ["(the system prompt)" if word == prompt else word for word in command.argv]
    env = {name: value if len(value) < 200 else f"({len(value)} characters)" for name, value in command.env.items()}
    record = {"argv": words, "env": env, "pass_env": list(command.pass_env), "stdin": command.stdin.decode()}
    return json.dumps(record, indent=1) + "\n"


@pytest.mark.parametrize("name", CALLS)
def test_a_program_is_called_as_it_was_agreed(name: str) -> None:
    """T131: argv, environment and input of each engine, word by word."""
    made = planned(**CALLS[name])
    path = GOLDEN / f"call_{name}.json"
    text = shown(made.command, made.prompt)
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize("run_type", ["scout", "plan", "review", "benchmark"])
def test_hollow_has_a_tool_for_every_name_of_a_tier_that_reads(run_type: str) -> None:
    """T131: the logical names of the tier lead to real ones (D15)."""
    assert set(TIERS[run_type].tools) <= set(registry.engine("hollow").tools)


def test_what_each_engine_is() -> None:
    facts = {
        name: (each.output, each.confined, each.dialect is STREAM_JSON, each.version_argv)
        for name, each in registry.BUILT_IN.items()
    }
    assert facts == {
        "hollow": ("pipe", True, True, ()),
        "command": ("pipe", False, False, ()),
        "scripted": ("pipe", False, True, ()),
        "claude": ("spool", False, False, ("--version",)),
        "codex": ("pipe", False, False, ("--version",)),
    }
    programs = {name: (each.program, each.help_argv, each.session_files) for name, each in registry.BUILT_IN.items()}
    assert programs == {
        "hollow": ("", (), ""), "command": ("", (), ""), "scripted": ("", (), ""),
        "claude": ("claude", ("--help",), ".claude/projects/*/{session}.jsonl"),
        "codex": ("codex", ("exec", "--help"), ".codex/sessions/*/*/*/rollout-*-{session}.jsonl"),
    }  # fmt: skip
    assert registry.engine("command").dialect is TEXT_OR_JSON
    assert getattr(registry.engine("hollow"), "version", None) == __version__


@pytest.mark.parametrize(("engine", "argv"), [("command", ()), ("scripted", ()), ("scripted", ("a", "b"))])
def test_what_is_missing_after_the_dashes_is_said_with_an_example(engine: str, argv: tuple[str, ...]) -> None:
    with pytest.raises(OperatorError, match="needs") as caught:
        planned("review", engine=registry.engine(engine), mind=None, argv=argv)
    assert f'./agent review "…" --engine {engine} -- ' in caught.value.hint


@pytest.mark.parametrize(
    ("length", "in_environment"), [(10, True), (99_999, True), (100_000, False), (1024 * 1024, False)]
)
def test_a_task_too_long_for_a_variable_is_on_standard_input_alone(length: int, in_environment: bool) -> None:
    """The kernel refuses to start a program with a variable of 128 KiB."""
    made = planned(task="x" * length, engine=registry.engine("command"), mind=None, argv=("true",))
    assert (made.command.env.get("AGENT_BOX_TASK") == "x" * length) == in_environment
    assert len(made.command.stdin) == length


@pytest.mark.parametrize("name", ["", "claud", "Hollow", "../x", "x\x1b[2J", "y" * 10_000])
def test_an_unknown_engine_is_the_operators_error(name: str) -> None:
    with pytest.raises(OperatorError, match="no engine") as caught:
        registry.engine(name)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 100
    assert all(known in caught.value.hint for known in registry.BUILT_IN)


# --- engines of other packages ----------------------------------------------------------------------------------------

WORKING = """
from agents.engines.base import BASE_ENV, Command
from agents.events import PLAIN

class Parrot:
    name = "parrot"
    output = "pipe"
    confined = False
    dialect = PLAIN
    tools = {}
    version_argv = ("parrot", "--version")

    def command(self, brief):
        return Command(argv=("echo", brief.meta.task), pass_env=BASE_ENV)
"""
ASK = """
import json, sys
from agents.engines import registry
from agents.errors import BoxError
from tests.support.plans import planned
try:
    engine = registry.engine(sys.argv[1])
    made = planned("scout", "hello", engine=engine, mind=None, argv=("x",))
    print(json.dumps({"argv": made.command.argv, "engine": made.meta.engine, "type": type(engine).__name__}))
except BoxError as why:
    print(json.dumps({"code": why.code, "message": why.message, "hint": why.hint}))
"""


def installed(folder: Path, code: str, target: str = "parrot_engine:Parrot", name: str = "parrot") -> Path:
    """A package in *folder* as an installer leaves it, with one entry point."""
    (folder / "parrot_engine.py").write_text(code)
    info = folder / "agent_box_parrot-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agent-box-parrot\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agent_box.engines]\n{name} = {target}\n")
    return folder


def asked(folder: Path, name: str) -> dict[str, Any]:
    """What another interpreter with *folder* on its path finds under *name*."""
    env = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": os.pathsep.join([str(folder), str(PROJECT)])}
    done = subprocess.run([sys.executable, "-c", ASK, name], env=env, capture_output=True, timeout=60, cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_another_package_adds_an_engine(tmp_path: Path) -> None:
    found = asked(installed(tmp_path, WORKING), "parrot")
    assert found == {"argv": ["echo", "hello"], "engine": "parrot", "type": "Parrot"}


def test_an_engine_of_another_package_is_named_among_the_known_ones(tmp_path: Path) -> None:
    found = asked(installed(tmp_path, WORKING), "carrot")
    assert found["code"] == 2
    assert found["hint"] == "Engines: claude, codex, command, hollow, parrot, scripted."


def test_a_built_in_engine_cannot_be_replaced(tmp_path: Path) -> None:
    assert asked(installed(tmp_path, WORKING, name="command"), "command")["type"] == "AnyCommand"


BROKEN = {
    "its module raises": ("raise RuntimeError('no luck')", "parrot_engine:Parrot", "RuntimeError: no luck"),
    "its module is gone": (WORKING, "nowhere:Parrot", "ModuleNotFoundError"),
    "its class is gone": (WORKING, "parrot_engine:Carrot", "AttributeError"),
    "its class wants something": (
        WORKING + "\n    def __init__(self, x):\n        pass\n",
        "parrot_engine:Parrot",
        "TypeError",
    ),
    "it is no engine": ("class Parrot:\n    name = 'parrot'\n", "parrot_engine:Parrot", "it has no output, confined"),
}


@pytest.mark.parametrize(("code", "target", "why"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_package_is_named_and_breaks_nothing_else(tmp_path: Path, code: str, target: str, why: str) -> None:
    folder = installed(tmp_path, code, target)
    found = asked(folder, "parrot")
    assert found["code"] == 4
    assert "agent-box-parrot" in found["message"]
    assert why in found["message"]
    assert asked(folder, "command")["type"] == "AnyCommand"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("nowhere_at_all:Parrot", "ModuleNotFoundError"),
        ("types:NoSuchThing", "AttributeError"),
        ("types:SimpleNamespace", "it has no name, output, confined"),
    ],
)
def test_an_entry_that_leads_nowhere_is_the_hosts_failure(value: str, why: str) -> None:
    with pytest.raises(HostError, match=why) as caught:
        registry._loaded(EntryPoint("parrot", value, registry.GROUP))
    assert value in caught.value.message


def test_an_entry_that_leads_to_an_engine_is_one() -> None:
    found = registry._loaded(EntryPoint("any", "agents.engines.command:AnyCommand", registry.GROUP))
    assert found.name == "command"


def brief(meta: RunMeta, **changes: Any) -> Brief:
    """What an engine is told of the run *meta*, with *changes*."""
    usual: dict[str, Any] = {
        "root": Path("/w/shop"), "checkout": Path("/w/shop"), "private": Path("/p"), "home_dir": Path("/p/home"), "mutates": False,
        "run_dir": Path("/r"), "index": Path("/i"), "prompt": "p", "session_id": "s", "python": "python3", "home": Path("/opt"),
    }  # fmt: skip
    return Brief(meta=meta, **{**usual, **changes})


def test_hollow_is_only_told_the_options_that_there_are() -> None:
    argv = registry.engine("hollow").command(brief(planned().meta, options={"max_turns": "3"})).argv
    assert argv[-2:] == ("--max-turns", "3")
    assert "--num-ctx" not in argv


def test_hollows_own_limit_of_turns_holds_unless_one_is_set() -> None:
    assert "--max-turns" not in planned().command.argv
    argv = planned(config=Config(max_turns=7)).command.argv
    assert argv[argv.index("--max-turns") + 1] == "7"


@pytest.mark.parametrize("level", ["none", "partial", "full"])
@pytest.mark.parametrize("run_type", sorted(TIERS))
def test_hollow_knows_how_it_is_walled_in(run_type: str, level: str) -> None:
    """T147: its shell must not take a wall for granted that is not there."""
    argv = planned(run_type, isolation=level).command.argv
    assert argv[argv.index("--sandbox") + 1] == level


def test_what_hollow_needs_of_the_machine_is_little() -> None:
    """T131: a reflex needs no network, and only an agent that runs commands makes sandboxes of its own."""
    reflex, model, fix = planned(), planned(mind="ollama", model="m"), planned("fix")
    assert (reflex.command.network, model.command.network) == (False, True)
    assert (reflex.command.nested, fix.command.nested) == (False, True)
    assert reflex.command.read == (Path("/opt/agent-box/hollow"), Path("/opt/agent-box/essentials"))
    assert reflex.command.write == (Path("/w/shop/.agents/hollow"),)
    assert not reflex.command.env_test
