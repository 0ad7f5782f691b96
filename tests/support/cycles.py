"""Runs the agent process as the supervisor does, and reads its stream."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
SESSION = "00000000-0000-4000-8000-00000000000a"


@dataclass(frozen=True)
class Cycle:
    """What a cycle left behind."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """Its stream, every line of which must be JSON."""
        return [json.loads(line) for line in self.stdout.decode().split("\n")[:-1]]

    @property
    def result(self) -> dict[str, Any]:
        """Its one result, which must be the last event."""
        results = [event for event in self.events if event["type"] == "result"]
        assert len(results) == 1
        assert self.events[-1] is not None
        assert self.events[-1]["type"] == "result"
        return results[0]

    def facts(self, kind: str) -> list[dict[str, Any]]:
        """The system/hollow facts of *kind*."""
        return [e for e in self.events if e.get("subtype") == "hollow" and e["kind"] == kind]

    @property
    def tool_results(self) -> list[dict[str, Any]]:
        """Content blocks of the tool results."""
        return [e["message"]["content"][0] for e in self.events if e["type"] == "user"]


def argv(repo: Path, *options: str, mind: str = "scripted") -> list[str]:
    """Return the command line of a cycle on *repo*; later *options* win over the usual ones."""
    usual = {"--mind": mind, "--run-type": "scout", "--agent": "cedar", "--repo": str(repo), "--index": str(repo.parent / "index"), "--session-id": SESSION}  # fmt: skip
    return [sys.executable, "-m", "hollow", "cycle", *(word for pair in usual.items() for word in pair), *options]


def environment(**more: str) -> dict[str, str]:
    """Return an environment with nothing of this machine in it."""
    return {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(PROJECT), "HOME": "/nonexistent", **more}


def cycle(repo: Path, *options: str, mind: str = "scripted", task: bytes = b"where?", **env: str) -> Cycle:
    """Run a cycle to its end."""
    command = argv(repo, *options, mind=mind)
    done = subprocess.run(command, input=task, capture_output=True, cwd=repo, env=environment(**env), timeout=60)
    return Cycle(done.returncode, done.stdout, done.stderr.decode())
