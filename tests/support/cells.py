"""Programs inside of a sandbox: a world with things to attack, attacks that are really done, and what came of them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents import procs, roots
from agents.cell import Cell
from tests.support.wards import hear, output

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

ENV = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}

# Every act is done by a child of its own, so that none can spoil the next. It counts as done when nothing is raised.
ACTOR = """
import ctypes, errno, fcntl, json, os, platform, pty, resource, signal, socket, subprocess, sys, threading, time
from pathlib import Path
libc = ctypes.CDLL(None, use_errno=True)
here = json.loads(sys.argv[1])
def call(*words):
    result = libc.syscall(*(ctypes.c_long(word) for word in words))
    if result < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def must(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
arm = platform.machine() == "aarch64"
found = {}
for name, source in here["acts"].items():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            exec(source)
            os.write(write, b"done")
        except BaseException as why:
            os.write(write, repr(why).encode()[:300])
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    found[name] = os.read(read, 4096).decode() or "killed"
    os.close(read)
print(json.dumps(found), "END", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A repository with its box, an airlock, and what lies outside of both."""

    top: Path
    victim: int
    """Pid of a process outside, which belongs to nobody."""

    @property
    def repo(self) -> Path:
        return self.top / "repo"

    @property
    def airlock(self) -> Path:
        return self.repo / "agent_box" / "trees" / "one"

    @property
    def outbox(self) -> Path:
        return self.repo / ".agents" / "runs" / "one" / "outbox"

    def cell(self, level: str, **more: Any) -> Cell:
        """The cell of a run that edits."""
        given = {
            "read": (self.repo / ".git",), "write": (self.airlock, self.outbox), "freeze": (self.airlock / ".git",),
            "network": False, **more,
        }  # fmt: skip
        return Cell(level=level, cwd=self.airlock, **given)


@contextlib.contextmanager
def scene(top: Path) -> Iterator[Scene]:
    """A new scene in the folder *top*."""
    process = subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(300)"], env={"SECRET": "s3cret"})
    try:
        made = Scene(top, process.pid)
        for folder in (
            made.repo / ".git" / "hooks",
            made.repo / "src",
            made.airlock / "sub",
            made.outbox,
            top / "other",
        ):
            folder.mkdir(parents=True)
        for file in (".git/config", ".git/HEAD", ".env", "src/code.py", ".agents/INDEX.jsonl", "agent_box/note"):
            (made.repo / file).write_text(f"content of {file}\n")
        (made.airlock / ".git").write_text("gitdir: elsewhere\n")
        (made.airlock / "code.py").write_text("print(1)\n")
        (top / "other" / "secret").write_text("s3cret\n")
        yield made
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def started(argv: Sequence[str], cell: Cell, folder: Path, *, grace: float = 1.0, **more: Any) -> Iterator[procs.Child]:
    """*argv* released in *cell*, with what it needs to run readable; ended with the ``with``."""
    given = folder / "stdin"
    given.write_bytes(b"")
    from essentials.records import replace

    open_to = replace(cell, read=(*cell.read, *roots.program_roots(argv, ENV, cell.cwd)))
    child = procs.spawn(argv, cwd=cell.cwd, env={**ENV, **more}, stdin=given, spool=None, grace=grace, cell=open_to)
    with contextlib.ExitStack() as undo:
        undo.callback(child.close)
        child.release()
        yield child


def act(acts: Mapping[str, str], cell: Cell, folder: Path, **facts: Any) -> dict[str, str]:
    """Do *acts* in *cell*; returns for each of them “done”, or why not. *facts* are what they know of the world."""
    script = folder / "actor.py"
    script.write_text(ACTOR)
    told = json.dumps({"acts": dict(acts), **facts})
    with started([sys.executable, "-IS", str(script), told], cell, folder) as child:
        said = output(child, b"END\n").partition(b"END")[0]
        hear(child, "exit")
    found: dict[str, str] = json.loads(said)
    return found
