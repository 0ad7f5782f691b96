"""What a command costs, counted instead of timed: modules that it loads, system calls, processes of git."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.support import needs
from tests.support.cli import LEAN, ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

HEAVY: Final = frozenset({
    "typer", "click", "rich", "yaml", "git", "psutil", "filelock", "ollama", "httpx", "pydantic", "_hashlib", "asyncio",
    "argparse", "ctypes", "dataclasses", "datetime", "difflib", "email", "http", "importlib.metadata", "inspect",
    "logging", "multiprocessing", "pathlib", "platform", "random", "secrets", "shutil", "site", "socket", "sqlite3",
    "ssl", "subprocess", "tempfile", "typing", "unittest", "urllib.request", "uuid", "xml", "zipfile",
})  # fmt: skip
"""Packages of others, and modules of the standard library whose import is felt."""
_TELLING: Final = """
import atexit, sys
sys.argv = ["{program}", *{words!r}]
sys.path.insert(0, {root!r})
def tell():
    with open({place!r}, "w") as file:
        file.write(" ".join(sys.modules))
atexit.register(tell)
from {program}.__main__ import main
main()
"""
_LOGGING: Final = """#!/bin/sh
echo git "$@" >> '{log}'
exec '{git}' "$@"
"""
_WRITING: Final = re.compile(r"^(?:write|pwrite64|writev|splice|sendfile|copy_file_range)\(.* = (\d+)$", re.MULTILINE)


def loaded(
    words: Sequence[str], repo: Path, env: Mapping[str, str], program: str = "agents", given: str = ""
) -> tuple[set[str], int]:
    """The modules that `agent WORDS` has loaded at its end in *repo*, as the launcher starts it, and its exit code.

    *program* is the package whose command line it is, *given* what it reads.
    """
    place = repo.parent / "modules"
    code = _TELLING.format(program=program, words=list(words), root=str(ROOT), place=str(place))
    done = subprocess.run(
        [sys.executable, "-IS", "-c", code], cwd=repo, env=dict(env), input=given.encode(), capture_output=True,
        timeout=90, check=False,
    )  # fmt: skip
    return set(place.read_text().split()), done.returncode


class Git:
    """A `git` that keeps a log, for the front of PATH."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        folder.mkdir()
        self.log = folder / "log"
        real = shutil.which("git", path=env["PATH"])
        program = folder / "git"
        program.write_text(_LOGGING.format(log=self.log, git=real))
        program.chmod(0o755)
        self.env = {**env, "PATH": f"{folder}:{env['PATH']}"}

    def taken(self) -> list[str]:
        """The lines of the log, which begins anew."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines


def traced(words: Sequence[str], repo: Path, env: Mapping[str, str], *options: str) -> str:
    """The system calls of `agent WORDS` in *repo*, without those of its children; strace shows paths of descriptors."""
    strace = shutil.which("strace")
    if strace is None:
        needs.lacking("strace is not installed")
    log = repo.parent / "strace"
    done = subprocess.run(
        [str(strace), "-qq", "-y", "-e", "signal=none", *options, "-o", str(log), *LEAN, *words], cwd=repo,
        env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    text = log.read_text("utf-8", "replace") if log.exists() else ""
    if not text:
        needs.lacking(f"strace cannot trace here: {done.stderr.decode()[-200:]}")
    assert done.returncode == 0, done.stderr.decode()
    return text


def written(trace: str) -> int:
    """Bytes that the calls of a *trace* have written."""
    return sum(map(int, _WRITING.findall(trace)))
