"""A small agent with a life of its own, brought by a package: the engine ``small``, whose cycles do what a script says."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import textwrap
from typing import TYPE_CHECKING, Any

from tests.support.world import OPEN_AGENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SESSION = "5e551017-0000-4000-8000-000000000000"

PLUGIN = """
import sys
from agents.engines.base import BASE_ENV, Command
from agents.engines.stream_json import STREAM_JSON

class Small:
    name, output, confined, dialect, tools, version_argv = "small", "pipe", True, STREAM_JSON, {}, ()
    program, help_argv, session_files, lives = "", (), "", True

    def command(self, brief):
        words = (sys.executable, "-IS", PROGRAM, brief.meta.agent or "", str(brief.memory))
        return Command(argv=words, pass_env=BASE_ENV, write=(brief.memory,), read=(FOLDER,), stdin=b"live")
"""

# What every cycle's program begins with: words to speak in, and the agent's own folder.
PROGRAM = """
import json, os, pathlib, signal, sys, time
agent, memory = sys.argv[1], pathlib.Path(sys.argv[2])
own, shared = pathlib.Path("workspace", agent), pathlib.Path("design")
def say(**event): print(json.dumps({{"session_id": {session!r}, **event}}), flush=True)
def fact(kind, **facts): say(type="system", subtype="hollow", kind=kind, **facts)
def write(path, text):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(text)
def end(goal, outcome="progressed", turns=2):
    fact("cycle.ended", goal_id=goal, outcome=outcome)
    say(type="result", subtype="success", is_error=False, result="# A cycle", num_turns=turns)
def count(name):
    file = memory / name
    file.write_text(str(number := int(file.read_text() if file.exists() else 0) + 1))
    return number
say(type="system", subtype="init", model="small")
"""


class Small:
    """The engine, and the environment in which the command line finds it."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / "small.py"
        self._folder = folder / "plugin"
        info = self._folder / "small-1.0.dist-info"
        info.mkdir(parents=True)
        info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
        info.joinpath("entry_points.txt").write_text("[agent_box.engines]\nsmall = small_life:Small\n")
        told = f"PROGRAM = {str(self._program)!r}\nimport pathlib\nFOLDER = pathlib.Path({str(folder)!r})\n"
        self._folder.joinpath("small_life.py").write_text(told + PLUGIN)

    def does(self, source: str) -> None:
        """From now on every cycle does *source*, in the words of ``PROGRAM``."""
        self._program.write_text(PROGRAM.format(session=SESSION) + textwrap.dedent(source))

    @property
    def env(self) -> dict[str, str]:
        """Variables with which the command line takes it for its engine."""
        return {"PYTHONPATH": str(self._folder), "AGENT_BOX_ENGINE": "small"}

    def runner(self, agent: Callable[..., Any]) -> Callable[..., Any]:
        """The fixture ``agent`` with this engine."""
        return lambda *words, **more: agent(*words, launch=OPEN_AGENT, env={**self.env, **more.pop("env", {})}, **more)

    @contextlib.contextmanager
    def background(self, repo: Path, *words: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
        """The command line *words* in *repo* with this engine, at work for the time of the ``with``; killed after it."""
        process = subprocess.Popen(
            [*OPEN_AGENT, *words], cwd=repo, env={**os.environ, **self.env, **env}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def outcome(done: Any) -> dict[str, Any]:
    """What a verb with ``--json`` said."""
    assert done.stdout.strip(), done.stderr
    return json.loads(done.stdout)
