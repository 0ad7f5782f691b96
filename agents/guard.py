"""The guard: a small process between supervisor and agent that ends the agent's whole tree, whatever happens.

It is a child subreaper, so every orphan of the tree becomes its child and none can slip away by forking twice or taking
a session of its own. A socket to the supervisor is its lifeline: when the other end is gone, even by SIGKILL, it kills
everything, moves what the agent had said and nobody had recorded yet to the evidence, and exits. Every agent waits for
it to start, so it imports next to nothing: not even `json` or `signal`.

Words on the socket. From the supervisor: ``G`` release the agent, ``T`` end the tree politely, ``K`` end it now, ``Q``
end it now and go: all is recorded. From the guard, a line each: ``pid PID START``, ``exit CODE``, ``error NUMBER
MESSAGE``, ``reaped``.

What is to be done before the agent's first instruction comes on a descriptor (:func:`packed`): ``files`` (descriptor to
hex of what can be read from it), ``limits`` (resource to soft and hard limit), ``wrapped`` (the program is the outer
half of a sandbox with a process namespace of its own), ``refused`` (number and text of the error to give instead) and
``rescue`` (see :func:`rescue`).
"""

from __future__ import annotations

import fcntl
import marshal
import os
import resource
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence
    from typing import Any
else:
    # The enumerations that `signal` puts around it take longer to make than an empty Python takes to start.
    import _signal as signal

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h
_TICK = 0.5
# Python ignores the first two, the guard the next three; whoever started us may have ignored any of them.
_DEFAULTED = (
    signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD,
)  # fmt: skip
_LAST_RESORT = 10.0
"""Seconds to wait for killed processes to vanish (one stuck in the kernel cannot be waited for)."""
_RESCUE = 2.0
"""Seconds that a rescue may take: whoever finds the run waits three for the guard to go."""
_PIECE = 65536
_START = "import sys; sys.path.append(sys.argv[1].rpartition('/')[0]); import guard; guard.main(sys.argv[2:])"


def command(line: int | str, grace: float, spec: int, argv: Sequence[str]) -> list[str]:
    """What starts the guard of *argv*; the arguments are those of :func:`main`."""
    # Without -S a broken site directory could keep the guard from starting; it needs none. A script would be compiled
    # anew for every agent: imported, it is not.
    return [sys.executable, "-IS", "-c", _START, __file__, str(line), str(grace), str(spec), *argv]


def packed(spec: Mapping[str, Any]) -> bytes:
    """The bytes of *spec* as the guard reads them, which is the same Python as this one."""
    return marshal.dumps(dict(spec))


def adopt_orphans() -> bool:
    """Make orphaned descendants children of this process; returns whether the kernel agreed."""
    try:
        return prctl(_SUBREAPER, 1) == 0
    except (OSError, AttributeError):
        return False


def prctl(option: int, value: int) -> int:
    """What the kernel answers to *option* and *value*; raises OSError or AttributeError where it cannot be asked."""
    try:
        # What the package `ctypes` puts around it takes half as long to load as an empty Python to start.
        import _ctypes
    except ImportError:
        import ctypes

        return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))
    function = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    return int(_ctypes.call_function(function, (option, value, 0, 0, 0)))


def stat_fields(pid: int | str) -> list[bytes]:
    """Fields of /proc/PID/stat from the third (state) on; empty for a process that is dead (a zombie is dead)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything, so the fields are counted from the last one.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return []
    return [] if fields[0] in {b"Z", b"X"} else fields


def start_ticks(pid: int) -> int | None:
    """Start time of *pid* in clock ticks since boot, or None when it is dead."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields else None


def descendants(root: int) -> list[int]:
    """Pids of all living descendants of *root*, parents before children."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        if fields := stat_fields(name):
            children.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [root]
    while todo:
        below = children.get(todo.pop(0), [])
        found += below
        todo += below
    return found


def signal_all(pids: list[int], number: int) -> None:
    """Send signal *number* to each of *pids*; one that is gone is fine."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def collect() -> dict[int, int]:
    """Reap every child that has ended; returns pid to wait status."""
    ended = {}
    while has_children():
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            break
        ended[pid] = status
    return ended


def has_children() -> bool:
    """Whether this process has a child, living or not yet reaped; a subreaper without one has no descendants."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def end_tree(root: int, grace: float, line: int, wrapper: int | None = None) -> dict[int, int]:
    """End all descendants of *root* (this process): TERM, at most *grace* seconds, then KILL until none is left.

    Any further word on *line*, or its end, cuts the grace short: a second Ctrl-C means now. They are stopped before
    they are killed, so that none can fork while the list is worked through. *wrapper* is the outer half of a sandbox:
    its death kills all inside at once, so it is not told to end while it has somebody inside.
    """
    ended = {}
    if grace > 0:
        spared = {wrapper} if wrapper and descendants(wrapper) else set()
        # One that is stopped hears TERM only when it goes on.
        signal_all([pid for pid in descendants(root) if pid not in spared], signal.SIGTERM)
        signal_all(descendants(root), signal.SIGCONT)
        ended = _await_end(root, grace, line)
    deadline = time.monotonic() + _LAST_RESORT
    while (left := descendants(root)) and time.monotonic() < deadline:
        signal_all(left, signal.SIGSTOP)
        signal_all(descendants(root), signal.SIGKILL)
        ended |= _await_end(root, 0.2)
    return ended | collect()


def _await_end(root: int, seconds: float, line: int | None = None) -> dict[int, int]:
    ended, deadline = collect(), time.monotonic() + seconds
    pause = 0.002
    while descendants(root) and time.monotonic() < deadline:
        if select.select([] if line is None else [line], [], [], pause)[0]:
            break
        pause = min(pause * 2, 0.05)
        ended |= collect()
    return ended | collect()


def become(argv: list[str], spec: dict[str, Any]) -> None:
    """Turn this process into the program *argv*, with files open and limits set as *spec* says (see above).

    Returns only by raising OSError or ValueError, also for what *spec* refuses. Limits above what this process may
    have are cut to that.
    """
    for name, (soft, hard) in spec.get("limits", {}).items():
        which = getattr(resource, f"RLIMIT_{name.upper()}")
        most = resource.getrlimit(which)[1]
        bounded = [value if most == resource.RLIM_INFINITY else min(value, most) for value in (soft, hard)]
        resource.setrlimit(which, (bounded[0], bounded[1]))
    for number, content in spec.get("files", {}).items():
        _provide(int(number), bytes.fromhex(content))
    if spec.get("refused"):
        raise OSError(*spec["refused"])
    os.execvp(argv[0], argv)  # noqa: S606 - the agent is what this program runs


def _provide(number: int, content: bytes) -> None:
    """Have *content* to read at the descriptor *number*; it lies in memory, under no name."""
    handle = os.memfd_create("given", 0)
    with os.fdopen(os.dup(handle), "wb") as file:
        file.write(content)
    os.lseek(handle, 0, os.SEEK_SET)
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)


def rescue(left: Sequence[Sequence[int]], seconds: float = _RESCUE) -> None:
    """Move to the evidence what a supervisor that died had not recorded, in at most *seconds*; all writers are dead.

    Each of *left* is the descriptor of a pipe or spool file, that of the file in the box, the most bytes that the file
    may have, and, for a spool file, how many bytes of the file were not copied from it (-1 for a pipe).
    """
    deadline = time.monotonic() + seconds
    for source, target, limit, before in left:
        try:
            size = os.lseek(target, 0, os.SEEK_END)
            if before >= 0:
                os.lseek(source, size - before, os.SEEK_SET)
            while size < limit and time.monotonic() < deadline and (data := os.read(source, min(_PIECE, limit - size))):
                size += _write(target, data)
            os.fsync(target)
        except OSError:
            # The disk is full, or a pipe is held open by a process that cannot be killed: what is there is there.
            continue


def _write(target: int, data: bytes) -> int:
    written = 0
    while written < len(data):
        written += os.write(target, data[written:])
    return written


def _launch(argv: list[str], spec: dict[str, Any]) -> tuple[int, int, int]:
    """Fork the agent, held at a gate; returns its pid, the gate's write end and the read end for an exec error."""
    gate_read, gate_write = os.pipe()
    error_read, error_write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(gate_read)
        os.close(error_write)
        return pid, gate_write, error_read
    os.setsid()
    os.close(gate_write)
    # Out of the way of the descriptors that the program is given.
    error_write = fcntl.fcntl(error_write, fcntl.F_DUPFD_CLOEXEC, max([2, *map(int, spec.get("files", {}))]) + 1)
    # The end of the pipe without a byte means that the guard died before it let the agent go.
    if os.read(gate_read, 1) == b"G":
        for number in _DEFAULTED:
            signal.signal(number, signal.SIG_DFL)
        try:
            become(argv, spec)
        except (OSError, ValueError) as why:
            os.write(error_write, f"{getattr(why, 'errno', 0) or 0} {why}".encode("utf-8", "replace"))
    os._exit(127)


class Guard:
    """One agent and its tree, watched until both are over."""

    def __init__(self, line: int, argv: list[str], grace: float, spec: dict[str, Any]) -> None:
        self._line = line
        self._grace = grace
        self._left: list[list[int]] = spec.get("rescue", [])
        self._pid, self._gate, self._error = _launch(argv, spec)
        self._wrapper = self._pid if spec.get("wrapped") else None
        self._exit: int | None = None

    def _tell(self, *words: object) -> None:
        try:
            os.write(self._line, " ".join(map(str, words)).replace("\n", " ").encode("utf-8", "replace") + b"\n")
        except OSError:
            # A supervisor that is gone is noticed by the next read.
            return

    def watch(self) -> None:
        """Serve the supervisor's words until it needs no guard any more."""
        self._tell("pid", self._pid, start_ticks(self._pid) or 0)
        poll = select.poll()
        poll.register(self._line, select.POLLIN | select.POLLHUP)
        poll.register(os.pidfd_open(self._pid), select.POLLIN)
        while True:
            # The agent's own end makes its pidfd readable for good, so it is looked at only until it was told.
            ready = [handle for handle, _ in poll.poll(_TICK * 1000)]
            self._notice(collect())
            if self._exit is not None and len(ready) == 1 and ready[0] != self._line:
                poll.unregister(ready[0])
            if self._line in ready and self._obey(self._word()):
                return

    def _word(self) -> bytes:
        """The supervisor's next word; empty once it is gone."""
        try:
            return os.read(self._line, 1)
        except OSError:
            # So ends a socket whose other end had not read all when it was closed, or killed.
            return b""

    def _obey(self, word: bytes) -> bool:
        if word == b"G":
            self._release()
            return False
        if has_children():
            grace = self._grace if word == b"T" else 0
            self._notice(end_tree(os.getpid(), grace, self._line, self._wrapper))
        self._tell("reaped")
        if not word:
            rescue(self._left)
        # After T and K the supervisor still has to record what was said: until then it can die.
        return word in {b"", b"Q"}

    def _release(self) -> None:
        try:
            os.write(self._gate, b"G")
        except BrokenPipeError:
            # It was killed at its gate; its end is told like any other.
            return
        finally:
            os.close(self._gate)
        # Closed by a successful exec, so this returns at once either way.
        said = os.read(self._error, 4096).decode("utf-8", "replace")
        if said:
            self._tell("error", said)

    def _notice(self, ended: dict[int, int]) -> None:
        if self._pid in ended and self._exit is None:
            self._exit = os.waitstatus_to_exitcode(ended[self._pid])
            self._tell("exit", self._exit)


def main(arguments: list[str]) -> None:
    """``SOCKET_FD GRACE SPEC_FD PROGRAM [ARGUMENT ...]``; a socket ``-`` runs the program unwatched."""
    descriptor, grace, given, *argv = arguments
    with os.fdopen(int(given), "rb") as file:
        spec = marshal.load(file)  # noqa: S302 - from the supervisor, over a descriptor that nobody else has
    if descriptor == "-":
        become(argv, spec)
    line = int(descriptor)
    # None of these is the agent's.
    for handle in (line, *(handle for source, target, *_ in spec.get("rescue", ()) for handle in (source, target))):
        os.set_inheritable(handle, False)
    adopt_orphans()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Ignored by whoever started us, it would make the kernel throw exit codes away.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    guard = Guard(line, argv, float(grace), spec)
    # The agent alone can write to the pipes: their end is then the end of its tree.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    guard.watch()


if __name__ == "__main__":
    main(sys.argv[1:])
