"""The door to processes: who is alive, on which machine and boot, and how a tree is started and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from agents import guard, sandbox
from agents.errors import HostError
from essentials import digests
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from agents.cell import Cell
else:
    # What `socket` puts around it takes longer to make than an agent takes to start.
    import _socket as socket

RUN_MARK: Final = "AGENT_BOX_MARK"
"""Environment variable that names the run in every process of its tree."""
PIPE_SIZE: Final = 1024 * 1024
_F_SETPIPE_SZ: Final = 1031


def mark(box: Path) -> str:
    """What :data:`RUN_MARK` says in the processes of the run with this *box*: unlike a name it is the only one."""
    return str(box.resolve())


def boot_id() -> str:
    """Identity of this boot: a pid of another one means nothing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return "unknown"


def host_id() -> str:
    """Identity of this machine, hashed: a pid of another one means nothing in a shared folder."""
    try:
        name = Path("/etc/machine-id").read_text("ascii").strip()
    except OSError:
        name = ""
    return digests.sha256(f"{name} {os.uname().nodename}".encode()).hexdigest()[:16]


def start_of(pid: int | None) -> int | None:
    """Start time of *pid* in clock ticks since boot, or None when it is dead."""
    return guard.start_ticks(pid) if pid else None


def is_alive(pid: int | None, start: int | None) -> bool:
    """Whether *pid* lives and is the process that was started at *start*; a reused pid is not (T140)."""
    return start is not None and start_of(pid) == start


def busy_ticks(pid: int | None, start: int | None) -> int:
    """CPU time in clock ticks that the tree of *pid* has used: a silent tree that works is not stalled."""
    if pid is None or not is_alive(pid, start):
        return 0
    return sum(_cpu_ticks(each) for each in (pid, *guard.descendants(pid)))


def _cpu_ticks(pid: int) -> int:
    fields = guard.stat_fields(pid)
    return int(fields[11]) + int(fields[12]) if fields else 0


@dataclass(frozen=True, slots=True)
class Rescue:
    """Where the guard records what a supervisor that died has not: all descriptors are the caller's to close."""

    target: int
    """Descriptor of the file in the box, open for writing and not for appending."""
    limit: int
    """Bytes that the file may have."""
    spool: int | None = None
    """Descriptor of the spool file to read from; None for a pipe."""
    before: int = 0
    """Bytes that the file had before this attempt."""


@dataclass(slots=True)
class Child:
    """A guarded agent: handles, never serialised."""

    process: subprocess.Popen[bytes]
    line: socket.socket
    stdout: int | None
    """Read end of the agent's stdout, or None where it writes to a spool file."""
    stderr: int
    pid: int
    start: int | None
    kin: frozenset[int]
    """Children that this process had before: they are none of this run's."""
    told: list[dict[str, Any]] = field(default_factory=list)
    _heard: bytes = b""

    def release(self) -> None:
        """Let the agent go; everything about it must be on disk by now."""
        self._say(b"G")

    def end(self, *, politely: bool) -> None:
        """Ask the guard to end the tree: TERM and grace, or KILL at once."""
        self._say(b"T" if politely else b"K")
        self.wake()

    def wake(self) -> None:
        """Let a guard go on that its own ward has stopped; without it nobody would see the ward's end."""
        with contextlib.suppress(OSError):
            self.process.send_signal(signal.SIGCONT)

    def _say(self, word: bytes) -> None:
        # A guard that was killed is noticed as the end of its socket.
        with contextlib.suppress(OSError):
            self.line.sendall(word)

    def listen(self) -> bool:
        """Read what the guard says into :attr:`told`; returns False once it is gone."""
        try:
            data = self.line.recv(65536)
        except BlockingIOError:
            return True
        except OSError:
            return False
        *lines, self._heard = (self._heard + data).split(b"\n")
        self.told += map(_told, lines)
        return bool(data)

    def reap(self) -> None:
        """End what is left of the tree, with or without the guard's help; afterwards nothing can write to the pipes."""
        # That it was said tells our going from our death, after which the guard would record what we have not.
        self._say(b"Q")
        self.line.close()
        self.wake()
        try:
            self.process.wait(timeout=_GUARD_PATIENCE)
        except subprocess.TimeoutExpired:
            # Stuck, or stopped again and again. Its wards first: with it gone they would become our children, and one
            # that stops its parent without end would stop us.
            self._end_wards()
            self.process.kill()
            self.process.wait()
        if self.process.returncode != 0:
            _end_strays(self.kin)

    def _end_wards(self) -> None:
        """Kill all that descends from the guard, while it is still there to be their parent."""
        deadline = time.monotonic() + _WARDS_PATIENCE
        while (wards := guard.descendants(self.process.pid)) and time.monotonic() < deadline:
            guard.signal_all(wards, signal.SIGSTOP)
            guard.signal_all(wards, signal.SIGKILL)
            time.sleep(0.01)

    def close(self) -> None:
        """Like :meth:`reap`, and close all handles."""
        self.reap()
        for handle in (self.stdout, self.stderr):
            if handle is not None:
                os.close(handle)


def _told(line: bytes) -> dict[str, Any]:
    """What a *line* of the guard says (see :mod:`agents.guard`)."""
    word, *rest = line.decode("utf-8", "replace").split(" ", 2)
    if word == "pid":
        return {"pid": int(rest[0]), "start": int(rest[1]) or None}
    if word == "error":
        return {"error": int(rest[0]), "message": rest[1]}
    return {"exit": int(rest[0])} if word == "exit" else {word: True}


_GUARD_PATIENCE: Final = 12.0
_WARDS_PATIENCE: Final = 5.0


def _children() -> frozenset[int]:
    if not guard.has_children():
        return frozenset()
    me = str(os.getpid()).encode()
    names = [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]
    return frozenset(int(name) for name in names if (fields := guard.stat_fields(name)) and fields[1] == me)


def _end_strays(kin: frozenset[int], patience: float = 10.0) -> None:
    """Kill the children that this process has adopted beside its *kin*, and theirs, waiting *patience* seconds."""
    deadline = time.monotonic() + patience
    while (strays := _children() - kin) and time.monotonic() < deadline:
        victims = [*strays, *(below for stray in strays for below in guard.descendants(stray))]
        guard.signal_all(victims, signal.SIGSTOP)
        guard.signal_all(victims, signal.SIGKILL)
        for stray in strays:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(stray, os.WNOHANG)
        time.sleep(0.01)


def spawn(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: Path,
    spool: Path | None,
    grace: float,
    cell: Cell | None = None,
    rescue: Sequence[Rescue] = (),
) -> Child:
    """Start *argv* behind a guard, held before its first instruction until :meth:`Child.release`.

    It gets its own session, *env* and nothing else as environment, the file *stdin*, and no other open file. *spool* is
    the file for its stdout, or None for a pipe. *grace* is in seconds. *cell* is the sandbox that it runs in, None for
    no sandbox and no limits. *rescue* says where the guard puts what is left of stdout and of stderr if this process
    dies. Raises HostError where nothing can be started, AgentError where the agent of an earlier attempt has put
    something in the way of its sandbox.
    """
    wrapped = sandbox.wrap(argv, cell, env) if cell else sandbox.Wrapped(argv=tuple(argv), spec={})
    guard.adopt_orphans()
    kin = _children()
    ours, theirs = socket.socketpair()
    out_read, out_write = _output(spool)
    err_read, err_write = _pipe()
    left = _left(rescue, (out_read, err_read))
    spec = sandbox.in_memory(guard.packed({**wrapped.spec, "rescue": left}))
    handed = [theirs.fileno(), spec, *(handle for each in left for handle in each[:2])]
    command = guard.command(theirs.fileno(), grace, spec, wrapped.argv)
    try:
        with stdin.open("rb") as given:
            process = subprocess.Popen(
                command, cwd=cwd, env=dict(env), stdin=given, stdout=out_write, stderr=err_write,
                pass_fds=handed, start_new_session=True,
            )  # fmt: skip
    except OSError as why:
        ours.close()
        for handle in filter(None, (out_read, err_read)):
            os.close(handle)
        raise HostError(f"The agent cannot be started: {why.strerror}.", "Type: ./agent doctor") from why
    finally:
        theirs.close()
        os.close(spec)
        os.close(out_write)
        os.close(err_write)
    child = Child(process=process, line=ours, stdout=out_read, stderr=err_read, pid=0, start=None, kin=kin)
    return _introduced(child)


def _left(rescues: Sequence[Rescue], pipes: Sequence[int | None]) -> list[tuple[Any, int, int, int]]:
    """*rescues* in the words of :func:`agents.guard.rescue`; *pipes* are the read ends, None where there is none."""
    return [
        (pipe, each.target, each.limit, -1)
        if each.spool is None
        else (each.spool, each.target, each.limit, each.before)
        for each, pipe in zip(rescues, pipes, strict=False)
    ]


def _introduced(child: Child) -> Child:
    child.line.settimeout(30)
    while not child.told:
        if not child.listen():
            child.close()
            raise HostError("The guard of the agent did not start.", "Type: ./agent doctor")
    first = child.told.pop(0)
    child.pid, child.start = first["pid"], first["start"]
    child.line.setblocking(False)
    return child


def _output(spool: Path | None) -> tuple[int | None, int]:
    if spool is None:
        return _pipe()
    return None, os.open(spool, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _pipe() -> tuple[int, int]:
    import fcntl

    read, write = os.pipe2(os.O_CLOEXEC)
    # A deep pipe: a program that exits right after a burst has handed it over (and one wake-up drains much).
    with contextlib.suppress(OSError):
        fcntl.fcntl(read, _F_SETPIPE_SZ, PIPE_SIZE)
    os.set_blocking(read, False)
    return read, write


def end_remains(mark: str, processes: Sequence[tuple[int | None, int | None]], wait: float = 3.0) -> int:
    """End what a dead supervisor left of a run; returns how many processes were killed.

    *processes* are (pid, start) of guard and agent. The guard ends the tree by itself as soon as its lifeline is gone,
    so it is given *wait* seconds first. Killed is what carries the run's mark in its environment, and what descends
    from such a process; never anything else. A recorded pid is not enough: the record may be a forgery (T140).
    """
    deadline = time.monotonic() + wait
    while any(is_alive(*known) for known in processes) and time.monotonic() < deadline:
        time.sleep(0.02)
    victims = _marked_trees(mark)
    guard.signal_all(sorted(victims), signal.SIGSTOP)
    guard.signal_all(sorted(victims | _marked_trees(mark)), signal.SIGKILL)
    return len(victims)


def _marked_trees(mark: str) -> set[int]:
    found = marked(mark)
    return {*found, *(below for pid in found for below in guard.descendants(pid))} - {os.getpid()}


def marked(mark: str) -> list[int]:
    """Pids of this user's processes whose environment carries the mark *mark*."""
    import psutil

    found = []
    for process in psutil.process_iter():
        # Another user's process may not be read, and one may end while it is looked at.
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(RUN_MARK) == mark and process.pid != os.getpid():
                found.append(process.pid)
    return found


def lock_holder(path: Path) -> int | None:
    """Pid of the process that holds the lock *path*, by the kernel's word; None where nobody is known to."""
    try:
        here = path.stat()
        held = Path("/proc/locks").read_text("ascii")
    except OSError:
        return None
    place = f"{os.major(here.st_dev):02x}:{os.minor(here.st_dev):02x}:{here.st_ino}"
    found = [line.split() for line in held.splitlines() if f" {place} " in line and " -> " not in line]
    return next((int(fields[4]) for fields in found if fields[1] == "FLOCK" and int(fields[4]) > 0), None)


def interrupt(pid: int, start: int | None) -> bool:
    """Send SIGTERM to *pid* if it still is the process started at *start*; returns whether it was sent."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # The handle holds the identity: between this look and the signal the pid cannot become somebody else's.
        if not is_alive(pid, start):
            return False
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        # One that was stopped would hear it only when somebody wakes it.
        signal.pidfd_send_signal(handle, signal.SIGCONT)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
