"""The supervisor's command line of a cycle is understood without Typer, exactly as Typer would have understood it."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow import cli, orders

ROOT = Path(__file__).resolve().parents[2]
CALLS = sorted((ROOT / "tests" / "golden").glob("call_hollow_*.json"))
SESSION = "fd4bcb9a-67c0-4a42-8ca3-bfe89e732bf1"
NEEDED = ["--mind", "reflex", "--run-type", "scout", "--agent", "cedar", "--repo", "/w", "--index", "/i", "--session-id", SESSION]  # fmt: skip
ODD = [
    [], ["version"], ["desk", "goals"], ["cycle"], ["cycle", "--help"], ["cycle", *NEEDED[:-2]],
    ["cycle", *NEEDED, "--session-id", "nobody"], ["cycle", *NEEDED, "--mind", "none"], ["cycle", *NEEDED, "--max-turns", "0"],
    ["cycle", *NEEDED, "--num-ctx", "2047"], ["cycle", *NEEDED, "--call-timeout", "nan"], ["cycle", *NEEDED, "--run"],
    ["cycle", *NEEDED, "--system-prompt-file", "/f"], ["cycle", *NEEDED, "more"], ["cycle", *NEEDED, "--run_type", "fix"],
]  # fmt: skip


def by_typer(words: list[str]) -> dict[str, Any] | None:
    """What Typer makes of *words*, as :func:`orders.begin` would get it, or None where it refuses them."""
    import typer.main

    command = typer.main.get_command(cli.app).commands["cycle"]  # type: ignore[attr-defined]
    try:
        found = dict(command.make_context("cycle", list(words[1:])).params)
    except Exception as why:
        if not hasattr(why, "format_message"):
            raise
        return None
    assert found.pop("system_prompt_file") is None
    # Typer makes paths of these on the way to the function.
    paths = {name: Path(found[name]) for name in ("repo", "index", "script", "state") if found[name] is not None}
    return {**found, **paths, "session_id": str(found["session_id"])}


def whole(values: dict[str, Any]) -> dict[str, Any]:
    """*values* with the defaults of :func:`orders.begin`."""
    return {name: values.get(name, each.default) for name, each in inspect.signature(orders.begin).parameters.items()}


@pytest.mark.parametrize("call", CALLS, ids=lambda path: path.stem)
def test_every_call_of_the_supervisor_is_understood(call: Path) -> None:
    argv = json.loads(call.read_text())["argv"]
    words = argv[argv.index("cycle") :]
    values = orders.plain(words)
    assert values is not None
    assert whole(values) == by_typer(words)


@pytest.mark.parametrize("line", ODD, ids=lambda line: " ".join(line)[-40:])
def test_any_other_line_is_left_to_typer(line: list[str]) -> None:
    assert orders.plain(line) is None


NAMES = st.sampled_from([f"--{name.replace('_', '-')}" for name in inspect.signature(orders.begin).parameters])
VALUES = st.sampled_from(["", "-", "--", "-1", "x y", "reflex", "ollama", "full", "cipher", "cycle", "1", "007", "4096", "2.5", "1e3", "٣", "--mind", SESSION, SESSION.upper(), '{"a": 1}'])  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.tuples(NAMES, VALUES), st.tuples(st.just("--resume"))), max_size=4))
def test_what_is_understood_is_what_typer_understands(more: list[tuple[str, ...]]) -> None:
    line = ["cycle", *NEEDED, *(word for each in more for word in each)]
    values = orders.plain(line)
    if values is not None:
        assert whole(values) == by_typer(line)


def test_a_cycle_of_the_reflex_mind_loads_no_package_of_others(tmp_path: Path) -> None:
    """The agent's start-up is felt in every run: what it loads of others is nothing."""
    words = ["cycle", *NEEDED[:6], "--repo", str(tmp_path), "--index", str(tmp_path / "index"), *NEEDED[-2:]]
    code = (
        f"import sys, atexit; sys.argv = ['hollow', *{words!r}]; sys.path.insert(0, {str(ROOT)!r}); "
        "atexit.register(lambda: sys.stderr.write('LOADED ' + ' '.join(sys.modules))); "
        "from hollow.__main__ import main; main()"
    )
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], input=b"where?", capture_output=True, cwd=tmp_path, timeout=60, check=False
    )
    loaded = set(done.stderr.decode().rpartition("LOADED ")[2].split())
    assert "hollow.cycle" in loaded
    assert (
        loaded & {"typer", "click", "rich", "ollama", "httpx", "pydantic", "git", "psutil", "asyncio", "yaml"} == set()
    )
