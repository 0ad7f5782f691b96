"""Runs one shell command of the operator's in a cell: `setup:`, `check:` and `verify:` of agent.yaml."""

from __future__ import annotations

import contextlib
import os
import select
import time
from pathlib import Path

from agents import files, procs
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Final

    from agents.cell import Cell

GRACE: Final = 5.0
"""Seconds between TERM and KILL for a command that is ended."""
_TICK: Final = 0.2
_DRAIN: Final = 2.0
"""Seconds to go on reading after the end of a command whose children hold its output open (P07)."""
_TAIL: Final = 4000
_PIECE: Final = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """How a command ended."""

    command: str
    exit_code: int | None
    """As the shell gave it (negative for a signal); None for one that was ended by us."""
    seconds: float
    timed_out: bool
    stopped: bool
    """Whether somebody asked to stop."""
    tail: str
    """The last of what it printed, at most 4000 bytes."""


def run_command(
    command: str,
    cell: Cell,
    env: Mapping[str, str],
    *,
    timeout: float,
    log: Path,
    limit: int,
    stop: Callable[[], bool] = lambda: False,
) -> Checked:
    """Run *command* with /bin/sh in *cell*, with nothing but *env* as environment, and end all it has started.

    *timeout* is in seconds. What it prints is appended to *log* until that file has *limit* bytes; the rest is read
    and dropped. *stop* is asked every 0.2 s. Raises HostError where it cannot be started, OSError where *log* cannot be
    written.
    """
    begun = time.monotonic()
    with contextlib.ExitStack() as undo:
        record = undo.enter_context(_Record(log, limit))
        record.take(f"$ {command}\n".encode())
        # One stream in the order in which it was written.
        argv = ("/bin/sh", "-c", f"exec 2>&1\n{command}")
        child = procs.spawn(argv, cwd=cell.cwd, env=env, stdin=Path(os.devnull), spool=None, grace=GRACE, cell=cell)
        undo.callback(child.close)
        watch = _Watch(child, record, begun + timeout, stop)
        child.release()
        watch.run()
    seconds, code = time.monotonic() - begun, None if watch.timed_out or watch.stopped else watch.exit_code
    return Checked(
        command=command, exit_code=code, seconds=seconds, timed_out=watch.timed_out, stopped=watch.stopped,
        tail=record.tail.decode("utf-8", "replace"),
    )  # fmt: skip


class _Record(contextlib.AbstractContextManager["_Record"]):
    """A log of limited size, and the last of what was to be written to it."""

    def __init__(self, path: Path, limit: int) -> None:
        self._handle = files.open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._room = max(0, limit - os.fstat(self._handle).st_size)
        self._dropped = 0
        self.tail = b""

    def take(self, data: bytes, *, show: bool = False) -> None:
        """Write *data*; with *show* it counts for the tail."""
        kept = data[: self._room]
        files.write_all(self._handle, kept)
        self._room -= len(kept)
        self._dropped += len(data) - len(kept)
        if show:
            self.tail = (self.tail + data)[-_TAIL:]

    def __exit__(self, *_: object) -> None:
        try:
            if self._dropped:
                files.write_all(self._handle, f"\n[{self._dropped} more bytes were left out]\n".encode())
        finally:
            os.close(self._handle)


class _Watch:
    """Stays with a command until it is over."""

    def __init__(self, child: procs.Child, record: _Record, deadline: float, stop: Callable[[], bool]) -> None:
        self._child = child
        self._record = record
        self._deadline = deadline
        self._stop = stop
        self._open = {handle for handle in (child.stdout, child.stderr) if handle is not None}
        self.exit_code: int | None = None
        self.timed_out = False
        self.stopped = False

    def run(self) -> None:
        """Read until the command has ended, is out of time or is to stop; then end its tree and read the rest."""
        alive = True
        while alive and not self._over():
            alive = self._step()
        if self.timed_out or self.stopped:
            self._child.end(politely=True)
        until = time.monotonic() + (GRACE + _DRAIN if self.timed_out or self.stopped else _DRAIN)
        # Its children may hold the output open, and write on without end: what comes later is not waited for.
        while alive and self._open and time.monotonic() < until:
            alive = self._step()

    def _over(self) -> bool:
        if self._said("exit") is not None:
            self.exit_code = self._said("exit")
            return True
        self.timed_out = time.monotonic() >= self._deadline
        self.stopped = not self.timed_out and self._stop()
        return self.timed_out or self.stopped

    def _said(self, word: str) -> int | None:
        return next((said[word] for said in self._child.told if word in said), None)

    def _step(self) -> bool:
        """Wait a moment for news; returns whether the guard is still there."""
        line = self._child.line.fileno()
        ready = select.select([line, *self._open], [], [], _TICK)[0]
        for handle in ready:
            if handle != line:
                self._read(handle)
        return line not in ready or self._child.listen()

    def _read(self, handle: int) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(handle, _PIECE)
            self._record.take(data, show=True)
            if not data:
                self._open.discard(handle)
