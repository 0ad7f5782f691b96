"""Runs one command to its end or its time, keeps the head and tail of what it says, and leaves nothing of it alive."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from pathlib import Path

from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import IO, Final

_PR_SET_CHILD_SUBREAPER: Final = 36
"""From linux/prctl.h: orphans of whatever we start become our children instead of init's, so none gets away."""

MAX_OUTPUT: Final = 256 * 1024 * 1024
"""Bytes a command may print before it is ended; only a program that has run wild prints more."""

_STEP: Final = 0.05
"""Seconds between looks at whether a command has ended whose output a child of its own still holds open."""

_EMPTY_ROUNDS: Final = 2
_REAP_WITHIN: Final = 5.0
"""Seconds in which what was killed must be gone; only a process stuck in the kernel takes longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int | None
    """Exit code, negative for a signal; None if it was ended by us."""
    head: bytes
    tail: bytes
    """The beginning and the end of what it printed, both kinds of output in the order they came."""
    left_out: int
    """Bytes between the two that were not kept."""
    late: bool = False
    """Whether its time was up."""
    flood: bool = False
    """Whether it printed more than :data:`MAX_OUTPUT`."""


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    keep: int,
    beat: Callable[[float], None] = lambda _passed: None,
    every: float = 15.0,
    stdin: bytes = b"",
) -> Ended:
    """Run *argv* in *cwd* with exactly *env* for *timeout* seconds at most, keeping *keep* bytes of its output.

    It reads *stdin* and then the end of it. Everything it has started is ended with it, whatever process group or
    session it hid in (T158). *beat* is told every *every* seconds how many have passed. Raises :class:`OSError` if it
    cannot be started.
    """
    known = set(_descendants())
    with _orphans_come_here(), _given(stdin) as source, _started(argv, cwd, env, source) as process:
        told = _Told(keep)
        watch = _Watch(process, told, time.monotonic(), timeout, beat, every)
        try:
            over = watch.wait()
        finally:
            # Also when a signal ends the cycle here: no command may survive the agent that asked for it.
            _end(process, known)
        told.drain(process)
    return Ended(
        code=None if over else process.returncode,
        head=bytes(told.head),
        tail=bytes(told.tail),
        left_out=told.total - len(told.head) - len(told.tail),
        late=over == "late",
        flood=over == "flood",
    )


@contextlib.contextmanager
def _given(data: bytes) -> Iterator[IO[bytes] | None]:
    """Yield *data* as an open file without a name, or None where there is nothing to read.

    A file and not a pipe: nobody has to feed it, so a command that never reads cannot hold us up.
    """
    if not data:
        yield None
        return
    import tempfile  # here: most commands are given nothing

    with tempfile.NamedTemporaryFile() as kept:
        kept.write(data)
        kept.flush()
        # Opened once more for reading alone: what the command gets is no place to keep things in.
        source = open(kept.name, "rb")  # noqa: PTH123, SIM115 - it is closed below, after the name is gone
    with source:
        yield source


def _started(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], source: IO[bytes] | None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL if source is None else source,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # Its own session: a command that signals its group must not hit the agent.
        start_new_session=True,
    )


class _Told:
    """The head and tail of a stream, in bounded memory."""

    def __init__(self, keep: int) -> None:
        self.head, self.tail = bytearray(), bytearray()
        self.total = 0
        # The end says more: that is where a test runner prints its verdict.
        self._first, self._last = keep // 3, keep - keep // 3

    def add(self, data: bytes) -> None:
        """Take *data* in."""
        self.total += len(data)
        room = self._first - len(self.head)
        self.head += data[:room]
        self.tail += data[room:]
        del self.tail[: -self._last]

    def drain(self, process: subprocess.Popen[bytes]) -> None:
        """Take in what the pipe still holds; nobody is left to write into it."""
        if process.stdout is not None:
            while _readable(process.stdout.fileno(), 0) and (data := os.read(process.stdout.fileno(), 1 << 16)):
                self.add(data)


@dataclass(slots=True)
class _Watch:
    """Reads what *process* prints until it ends."""

    process: subprocess.Popen[bytes]
    told: _Told
    started: float
    timeout: float
    beat: Callable[[float], None]
    every: float
    _beats: int = field(default=1)

    def wait(self) -> str:
        """Return "late" or "flood" if it has to be ended, or nothing once it has ended by itself."""
        out = self.process.stdout.fileno() if self.process.stdout else -1
        is_open = True
        while self.process.poll() is None:
            passed = time.monotonic() - self.started
            if passed >= self.timeout:
                return "late"
            if passed >= self._beats * self.every:
                self._beats += 1
                self.beat(passed)
            step = min(_STEP, self.timeout - passed)
            if not is_open:
                # Most commands end as soon as they have said all: that is not slept through.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(step)
            elif _readable(out, step):
                data = os.read(out, 1 << 16)
                self.told.add(data)
                is_open = bool(data)
            if self.told.total > MAX_OUTPUT:
                return "flood"
        return ""


def _readable(descriptor: int, seconds: float) -> bool:
    # poll, not select: the agent may have more than 1,024 files open.
    asked = select.poll()
    asked.register(descriptor, select.POLLIN)
    return bool(asked.poll(seconds * 1000))


@contextlib.contextmanager
def _orphans_come_here() -> Iterator[None]:
    """While entered, orphans below this process become its children; where that is unknown, nothing changes."""
    import ctypes  # here: most tasks run no command

    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl is None:  # not Linux
        yield
        return
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _end(process: subprocess.Popen[bytes], known: set[int]) -> None:
    """End *process* and every descendant of ours that is not in *known*."""
    process.kill()
    process.wait()
    for number in (signal.SIGSTOP, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
    deadline = time.monotonic() + _REAP_WITHIN
    # In rounds: one that was forking while it was looked at is found in the next. Two empty ones in a row: a process
    # whose parent ends between the listing and the look hangs on nobody for that moment.
    empty = 0
    while empty < _EMPTY_ROUNDS and time.monotonic() < deadline:
        left = [pid for pid in _descendants() if pid not in known]
        empty = 0 if left else empty + 1
        for pid in left:
            # Stopped before the first dies: a shell would say of its child that it was killed.
            _signal(pid, signal.SIGSTOP)
        for pid in left:
            _kill(pid)
        if left:
            time.sleep(0.005)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _kill(pid: int) -> None:
    """Kill the process *pid*, and collect it if it has become our child."""
    _signal(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _childless() -> bool:
    """Whether this process has no child at all: then nothing hangs below it, for orphans come here.

    The kernel answers that at once and without a race; looking through /proc costs more than most commands.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _descendants() -> list[int]:
    """Process ids of everything below this process."""
    if _childless():
        return []
    parents: dict[int, list[int]] = {}
    for entry in _numbered(Path("/proc")):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name in parentheses may hold anything, parentheses included; the parent is the second field after it.
            facts = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            parents.setdefault(int(facts[1]), []).append(int(entry.name))
    found = [os.getpid()]
    for pid in found:
        found += parents.get(pid, [])
    return found[1:]


def _numbered(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.name.isdigit()]
    except OSError:  # no /proc on this system
        return []
