"""What a command costs: time, memory and bytes read of its whole tree, and its system calls on one folder's files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support import world
from tests.support.cli import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB: Final = 1024 * 1024
_SPAWN: Final = (sys.executable, "-IS", str(Path(__file__).with_name("spawn.py")))
_PATIENCE: Final = 1800.0
"""Seconds after which a command is given up; the longest one takes a few minutes."""
_LOOKED_AT: Final = "trace=%file,getdents64,read,pread64"
_RETURNED: Final = re.compile(rb"\b(?:read|pread64)\(.* = (\d+)$")


@dataclass(frozen=True, slots=True)
class Spent:
    """What one command has cost, everything that it started and waited for included."""

    code: int
    """Exit code; negative is a signal."""
    wall: float
    """Seconds on the clock."""
    cpu: float
    """Seconds of processor time."""
    peak: int
    """Most memory that its largest process had at once, in bytes."""
    read: int
    """Bytes read, from a cache or from elsewhere."""
    said: str
    """The end of what it printed."""


@dataclass(frozen=True, slots=True)
class Touched:
    """System calls of a command on the files of one folder."""

    calls: int
    """Names looked up, folders listed, pieces read."""
    read: int
    """Bytes read of them."""
    code: int
    """Exit code of the command."""


class Place:
    """A repository in which the real command line is used, as an operator with a home of its own and no wall."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        home.mkdir(parents=True, exist_ok=True)
        self._scratch = home
        # Approving by hash what was made without a wall is the operator's own decision, as it is here.
        self._env = {**environment(home, AGENT_BOX_TRUST_UNSANDBOXED="true"), **world.IDENTITY}

    @contextlib.contextmanager
    def setting(self, name: str, value: str) -> Iterator[None]:
        """The variable *name* set to *value* for what is run meanwhile."""
        before, self._env = self._env, {**self._env, name: value}
        try:
            yield
        finally:
            self._env = before

    def command(self, *words: str) -> tuple[str, ...]:
        """The program that the command line *words* is."""
        return (*world.AGENT, *words)

    def agent(self, *words: str) -> Spent:
        """Cost of the command line *words*."""
        return self.run(*self.command(*words))

    def run(self, *argv: str) -> Spent:
        """Cost of the program *argv*."""
        with self.running(*argv) as running:
            return running.wait()

    @contextlib.contextmanager
    def running(self, *argv: str) -> Iterator[Running]:
        """The program *argv* at work; it is killed if it is not waited for."""
        out = self._scratch / f"said-{os.urandom(6).hex()}"
        process = subprocess.Popen(
            [*_SPAWN, str(out), *argv], cwd=self.root, env=self._env, stdout=subprocess.PIPE, start_new_session=True
        )
        try:
            yield Running(process, out)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9) if process.poll() is None else None
            process.communicate()
            out.unlink(missing_ok=True)

    def until_running(self) -> None:
        """Wait until the latest run's agent is at work."""
        world.eventually(world.runs_now(self.root), 120)

    def touched(self, *words: str) -> Touched:
        """What the command line *words* does with this repository's files; needs strace."""
        log = self._scratch / f"calls-{os.urandom(6).hex()}"
        program = shutil.which("strace") or "strace"
        command = [
            program,
            "-f",
            "--seccomp-bpf",
            "-y",
            "-qq",
            "-s",
            "0",
            "-e",
            _LOOKED_AT,
            "-e",
            "signal=none",
            "-o",
            str(log),
        ]
        done = subprocess.run(
            [*command, *self.command(*words)], cwd=self.root, env=self._env, timeout=_PATIENCE, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        root = os.fsencode(self.root)
        # Where it stands is told with every name, also with one that leads elsewhere.
        told = log.read_bytes().replace(b'AT_FDCWD<%b>, "/' % root, b'"/')
        log.unlink()
        lines = [line for line in told.splitlines() if root in line]
        read = sum(int(found[1]) for line in lines if (found := _RETURNED.search(line)))
        return Touched(len(lines), read, done.returncode)


class Running:
    """A program that was started by :meth:`Place.running`."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path) -> None:
        self._process = process
        self._out = out

    def wait(self) -> Spent:
        """Its cost when it has ended."""
        account, _ = self._process.communicate(timeout=_PATIENCE)
        data = self._out.read_bytes() if self._out.stat().st_size < MIB else b""
        return Spent(**json.loads(account), said=data.decode("utf-8", "replace"))
