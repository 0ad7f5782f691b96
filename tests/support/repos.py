"""Small real git repositories for tests of the agent process."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


def git(root: Path, *arguments: str) -> str:
    """Run git in *root*; returns its output."""
    done = subprocess.run(["git", *arguments], cwd=root, env=ENVIRONMENT, capture_output=True, check=True)
    return done.stdout.decode().strip()


def write(root: Path, files: dict[str, str | bytes]) -> None:
    """Write *files* (path to content) below *root*."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def commit(root: Path, files: dict[str, str | bytes], subject: str = "a change") -> str:
    """Write and commit *files*; returns the commit."""
    write(root, files)
    git(root, "add", "--all", "--force", "--", *files)
    git(root, "commit", "--quiet", "--message", subject)
    return git(root, "rev-parse", "HEAD")


def make_repo(root: Path, files: dict[str, str | bytes] | None = None) -> Path:
    """Make a repository at *root* whose first commit holds *files*; returns *root*."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    if files:
        commit(root, files, "first")
    return root
