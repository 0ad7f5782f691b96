"""Fake agents: histories for the engine ``scripted`` and small programs for the engine ``command``."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SESSION = "5e551017-0000-4000-8000-000000000000"
INIT = {"type": "system", "subtype": "init", "session_id": SESSION, "model": "recorded"}


def say(text: str) -> dict[str, Any]:
    """The agent says *text*."""
    return {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}


def call(name: str = "Grep", **arguments: Any) -> dict[str, Any]:
    """The agent calls the tool *name*."""
    block = {"type": "tool_use", "id": "call_1", "name": name, "input": arguments}
    return {"type": "assistant", "message": {"role": "assistant", "content": [block]}}


def answered() -> dict[str, Any]:
    """The tool answers."""
    block = {"type": "tool_result", "tool_use_id": "call_1", "content": "found"}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def result(text: str = "# Found it\n", **more: Any) -> dict[str, Any]:
    """The agent is done."""
    return {"type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": SESSION, **more}


def do(what: str, **how: Any) -> dict[str, Any]:
    """A direction of :mod:`agents.play`."""
    return {"do": what, **how}


def history(path: Path, *steps: dict[str, Any] | str) -> list[str]:
    """Write *steps* as a history to *path*; returns the options and words that play it."""
    lines = [step if isinstance(step, str) else json.dumps(step) for step in steps]
    path.write_text("".join(f"{line}\n" for line in lines))
    return ["--engine", "scripted", "--", str(path)]


def program(path: Path, source: str, *words: str) -> list[str]:
    """Write *source* as a Python program to *path*; returns the argv that runs it with *words*."""
    path.write_text("import os, signal, subprocess, sys, time\n" + textwrap.dedent(source))
    return [sys.executable, "-IS", str(path), *words]


def command(path: Path, source: str, *words: str) -> list[str]:
    """Like :func:`program`, as options and words of the command line."""
    return ["--engine", "command", "--", *program(path, source, *words)]


# A tree that tries to outlive its supervisor in every way that needs no other user: see fault P03.
EVIL_TREE = """
mark = sys.argv[1]
sleep = [sys.executable, "-IS", "-c", "import time; time.sleep(300)", mark]
deaf = [sys.executable, "-IS", "-c",
        "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; print(); "
        "import sys; sys.stdout.flush(); time.sleep(300)", mark]
subprocess.Popen(sleep)                                   # same process group
subprocess.Popen(sleep, start_new_session=True)           # a session of its own
subprocess.Popen(deaf, start_new_session=True, stdout=subprocess.PIPE).stdout.readline()  # deaf to all but KILL
if os.fork() == 0:                                        # a daemon: forked twice, no parent, no environment
    os.setsid()
    if os.fork() == 0:
        os.execve(sleep[0], sleep, {})
    os._exit(0)
os.wait()
"""
EVIL_COUNT = 4
"""Processes that EVIL_TREE leaves behind, itself aside."""


def engine(folder: Path, argv: list[str], output: str = "pipe") -> Path:
    """A package of somebody else with the engine ``told``, which runs *argv*; returns the folder to put on the path."""
    package = folder / "plugin"
    info = package / "told-1.0.dist-info"
    info.mkdir(parents=True)
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: told\nVersion: 1.0\n")
    info.joinpath("entry_points.txt").write_text("[agent_box.engines]\ntold = told:Told\n")
    package.joinpath("told.py").write_text(
        f"""
from agents.engines.base import BASE_ENV, Command
from agents.engines.stream_json import STREAM_JSON

class Told:
    name, output, confined, dialect, tools, version_argv = "told", {output!r}, False, STREAM_JSON, {{}}, ()

    def command(self, brief):
        return Command(argv={tuple(argv)!r}, pass_env=BASE_ENV)
"""
    )
    return package
