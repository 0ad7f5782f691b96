"""What tests of the supervisor share: the real command line, conditions that are waited for, processes by their mark."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from agents.context import Context, open_context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROJECT = Path(__file__).resolve().parents[2]
AGENT = (sys.executable, "-IS", str(PROJECT / "agents" / "__main__.py"))
"""The command line as the launcher starts it."""
OPEN_AGENT = (sys.executable, "-P", str(PROJECT / "agents" / "__main__.py"))
"""The command line with PYTHONPATH honoured, as where packages of others are installed beside it."""
IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}
FILES = {
    "README.md": "# Shop\n\nSells things.\n",
    "shop/__init__.py": "",
    "shop/db.py": "def connect():\n    return {}\n",
    "shop/cart.py": "from shop.db import connect\n\n\ndef total(items):\n    return sum(connect().get(i, 0) for i in items)\n",
}


def eventually(condition: Callable[[], Any], deadline: float = 30.0) -> Any:
    """The first true value of *condition*, asked again and again for at most *deadline* seconds; fails after that."""
    end, pause = time.monotonic() + deadline, 0.005
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {deadline} s: {condition}"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    return value


def new_mark() -> str:
    """A word that no other process carries."""
    return f"mark-{uuid.uuid4().hex}"


def tree_of(*marks: str) -> list[int]:
    """Pids of the living processes (this one aside) whose environment or command line carries one of *marks*."""
    found = []
    for name in filter(str.isdigit, [path.name for path in Path("/proc").iterdir()]):
        with contextlib.suppress(OSError):
            process = Path("/proc") / name
            dead = process.joinpath("stat").read_bytes().rpartition(b")")[2].split()[0] in {b"Z", b"X"}
            text = process.joinpath("environ").read_bytes() + process.joinpath("cmdline").read_bytes()
            if not dead and any(mark.encode() in text for mark in marks) and int(name) != os.getpid():
                found.append(int(name))
    return found


def end_tree_of(mark: str) -> None:
    """Kill whatever carries *mark*: the net below a test that failed."""
    for pid in tree_of(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def make_repo(root: Path, files: Mapping[str, str] = FILES) -> Path:
    """A repository at *root* with *files* in its one commit."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=root, env={**os.environ, **IDENTITY}, check=True, capture_output=True)
    return root


def git(root: Path, *words: str) -> str:
    """What git says in *root*."""
    done = subprocess.run(["git", *words], cwd=root, env={**os.environ, **IDENTITY}, check=True, capture_output=True)
    return done.stdout.decode()


def context_of(repo: Path, *, said: list[str] | None = None, **flags: Any) -> Context:
    """The context of *repo* with *flags* as settings; what is said goes to *said*."""
    return open_context(repo, flags=flags, environ=dict(os.environ), say=[].append if said is None else said.append)


def boxes(repo: Path) -> list[Path]:
    """All boxes of *repo*, oldest first."""
    runs = repo / ".agents" / "runs"
    return sorted(path for path in runs.glob("*") if not path.name.startswith(".")) if runs.is_dir() else []


def state_of(repo: Path, box: Path | None = None) -> dict[str, Any]:
    """state.json of *box*, or of the latest run."""
    return json.loads(((box or repo / ".agents" / "latest") / "state.json").read_bytes())


def meta_of(repo: Path, box: Path | None = None) -> dict[str, Any]:
    """meta.yaml of *box*, or of the latest run."""
    return yaml.safe_load(((box or repo / ".agents" / "latest") / "meta.yaml").read_bytes())


def stream_of(repo: Path) -> bytes:
    """What the latest run's agent said."""
    return (repo / ".agents" / "latest" / "raw" / "stream.jsonl").read_bytes()


def ledger_of(repo: Path) -> list[dict[str, Any]]:
    """The entries of the ledger."""
    return [json.loads(line) for line in (repo / ".agents" / "INDEX.jsonl").read_bytes().splitlines()]


def published(repo: Path) -> list[str]:
    """Names of the command folders that runs have in the checkout."""
    return [path.name for path in (repo / ".claude" / "commands").glob("run_*")]


def status_is(repo: Path, *wanted: str) -> Callable[[], bool]:
    """A condition: the latest run has one of the statuses *wanted*."""

    def condition() -> bool:
        try:
            return state_of(repo)["status"] in wanted
        except (OSError, ValueError):
            return False

    return condition


def runs_now(repo: Path) -> Callable[[], bool]:
    """A condition: the latest run's agent is released."""

    def condition() -> bool:
        try:
            return state_of(repo)["phase"] == "running"
        except (OSError, ValueError):
            return False

    return condition
