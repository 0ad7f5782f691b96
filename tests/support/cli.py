"""The real command line as a process, in a sealed environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MAIN = [sys.executable, str(ROOT / "agents" / "__main__.py")]
LEAN = [sys.executable, "-IS", str(ROOT / "agents" / "__main__.py")]


def environment(home: Path, **more: str) -> dict[str, str]:
    """What the operator's shell would give, with a home of the test's own and no model server anywhere."""
    return {
        "PATH": os.environ["PATH"], "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "LANG": "C.UTF-8",
        "OLLAMA_HOST": "127.0.0.1:9", "GIT_CONFIG_NOSYSTEM": "1", "COLUMNS": "100",
        # The supervisor must keep its promises without a sandbox too; tests of the sandbox ask for it.
        "AGENT_BOX_ISOLATION": "none", **more,
    }  # fmt: skip


def agent(cwd: Path, *words: str, home: Path | None = None, stdin: bytes = b"", **more: str):
    """Run the command line *words* in *cwd*; stdout and stderr as text."""
    return subprocess.run(
        [*MAIN, *words], cwd=cwd, env=environment(home or cwd.parent / "home", **more), input=stdin, timeout=90,
        capture_output=True, check=False,
    )  # fmt: skip


def git(cwd: Path, *words: str) -> str:
    """Run git as a person with a name would."""
    identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *words], cwd=cwd, capture_output=True, check=True, env=environment(cwd))
    return done.stdout.decode()


def make_repository(path: Path) -> Path:
    """A small repository with one commit."""
    path.mkdir(parents=True)
    git(path, "init", "-q", ".")
    (path / "shop.py").write_text(
        '"""The shop."""\n\n\ndef total(items):\n    """Sum of all prices."""\n    return sum(items)\n'
    )
    (path / "README.md").write_text("# Shop\n")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "Add the shop")
    return path
