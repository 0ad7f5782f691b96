"""Stop a living run from another terminal, and start one that outlives this one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from types import MappingProxyType

from agents import procs
from agents.errors import HostError, OperatorError
from agents.model import Phase, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from agents.context import Context
    from agents.model import RunState

REPORT: Final = "AGENT_BOX_REPORT_FD"
"""Environment variable by which a detached supervisor knows where to say its run's name."""
_POLL: Final = 0.05
_PATIENCE: Final = 20.0


def stop(context: Context, target: str) -> RunState:
    """End the run *target* as Ctrl-C in its own terminal would, and wait for it; returns its state.

    Raises OperatorError where it is not running, HostError where its supervisor does not act in time.
    """
    name = context.store.resolve(target)
    state = context.store.load(name)
    if not _runs(state):
        raise OperatorError(f"Run {_id(name)} is not running: it is {state.status}.", "Type: ./agent list")
    # Who holds the owner lock is the supervisor, by the kernel's word; what a file says may be forged.
    pid = procs.lock_holder(context.store.box(name).owner_lock)
    supervisor = (pid, procs.start_of(pid))
    sent = pid is not None and procs.interrupt(pid, supervisor[1])
    deadline = time.monotonic() + context.config.grace + _PATIENCE
    while sent and procs.is_alive(*supervisor) and time.monotonic() < deadline:
        state = context.store.load(name)
        if not _runs(state) and name not in context.store.active().values():
            return state
        time.sleep(_POLL)
    from agents.sweep import sweep

    sweep(context)
    state = context.store.load(name)
    if _runs(state):
        hint = f"Type: kill -9 {pid}" if procs.is_alive(*supervisor) else "Type: ./agent status"
        raise HostError(f"The supervisor of {_id(name)} does not act.", hint)
    return state


def _runs(state: RunState) -> bool:
    """Whether somebody still is at it: a stalled run that was reaped is over, one that was only marked is not."""
    return state.status is Status.ACTIVE or (state.status is Status.STALLED and state.phase is not Phase.SETTLED)


def _id(name: str) -> str:
    return name.rpartition("__")[2]


def detach(arguments: Sequence[str], given: bytes, env: Mapping[str, str] = MappingProxyType({})) -> str:
    """Start the command line *arguments* as a supervisor of its own session; returns the name of its run.

    *given* is what it reads from its standard input, *env* further variables of its environment.

    Raises what it said, with its exit code, where it did not come as far as a box; HostError where it was killed first.
    """
    import tempfile

    read, write = os.pipe()
    with tempfile.TemporaryFile() as words, tempfile.TemporaryFile() as stdin, os.fdopen(read, "rb") as report:
        stdin.write(given)
        stdin.seek(0)
        program = [sys.executable, *_isolation(), str(Path(__file__).with_name("__main__.py")), *arguments]
        process = subprocess.Popen(
            program, stdin=stdin, stdout=subprocess.DEVNULL, stderr=words, pass_fds=[write],
            start_new_session=True, env={**os.environ, **env, REPORT: str(write)},
        )  # fmt: skip
        os.close(write)
        name = report.readline().decode().strip()
        if name:
            # It goes on without us: its end is recorded by itself, not by this object.
            process.returncode = 0
            return name
        if process.wait() < 0:
            raise HostError(f"Its supervisor was killed (signal {-process.returncode}).", "Type: ./agent status")
        words.seek(0)
        raise Refused(words.read().decode("utf-8", "replace"), process.returncode)


def _isolation() -> tuple[str, ...]:
    return ("-IS",) if sys.flags.no_site else ()


class Refused(Exception):  # noqa: N818 - it names what happened to the request
    """A detached supervisor refused: its own words and exit code."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.words = words
        self.code = code


def report_claim(name: str) -> None:
    """Tell whoever detached this process that the run *name* has its box."""
    given = os.environ.pop(REPORT, "")
    # Whoever wanted to know may have been killed meanwhile; the run goes on.
    with contextlib.suppress(OSError):
        if given.isdigit():
            with os.fdopen(int(given), "wb") as report:
                report.write(name.encode() + b"\n")
