"""Locks on files: given back by the kernel with their process, waited for in one order, held by who opened them."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from functools import partial

from agents import lockorder
from agents.errors import HostError
from agents.files import FILE_MODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Final, Self

    from agents.lockorder import Rank


class Lock:
    """An exclusive lock on a file, held until :meth:`release`, the end of the ``with``, or the end of the process.

    *rank* says where it stands in the order of :mod:`agents.lockorder`. The file is never removed: a lock on an
    unlinked file would not be seen by the next process that comes.
    """

    __slots__ = ("_depth", "_give_back", "_path", "_process", "_rank", "_ranks")

    def __init__(self, path: Path, rank: Rank) -> None:
        self._depth = 0
        self._path = path
        self._rank = rank

    def acquire(self, timeout: float = -1) -> bool:
        """Take the lock, waiting at most *timeout* seconds (forever if negative); returns whether it is ours.

        Taken again by its holder it has to be released as often. Raises LockOrderError for a wait that could be one for
        ever, HostError where the file system has no locks, and the OSError of a folder that is not there.
        """
        if not self._depth:
            lockorder.check(self._rank, timeout)
            give_back = _take(self._path, timeout)
            if give_back is None:
                return False
            self._give_back, self._process = give_back, os.getpid()
            self._ranks = lockorder.taken(self._rank)
        self._depth += 1
        return True

    def release(self) -> None:
        """Give the lock back; one that is not held stays so."""
        if not self._depth:
            return
        self._depth -= 1
        # What a fork has copied is its parent's: giving that back would take it from under the parent.
        if not self._depth and self._process == os.getpid():
            self._ranks.remove(self._rank)
            self._give_back()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        # One that was dropped on the way of an error must not stay held for the rest of the process.
        while self._depth:
            self.release()


def _take(path: Path, timeout: float) -> Callable[[], None] | None:
    """Lock the file *path* within *timeout* seconds; returns what gives it back, or None where somebody else has it."""
    try:
        import fcntl  # noqa: F401 - asked for, not used: without it the package below does what can be done
    except ImportError:
        return _take_elsewhere(path, timeout)
    try:
        return _take_here(path, timeout)
    except OSError as why:
        if why.errno not in {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}:
            raise
        raise HostError("This file system has no locks.", "Use a repository on a local file system.") from why


def _take_here(path: Path, timeout: float) -> Callable[[], None] | None:
    """By the kernel's own call: the package costs five times the start of Python to import."""
    deadline = time.monotonic() + timeout
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, FILE_MODE)
        kept = False
        try:
            if not _waited(handle, timeout, deadline):
                return None
            # Moved or replaced while we waited, it guards nothing that the next one would find here (N11).
            kept = _is_at(path, handle)
        finally:
            if not kept:
                os.close(handle)
        if kept:
            return partial(_unlock, handle)


def _waited(handle: int, timeout: float, deadline: float) -> bool:
    """Lock *handle*, for ever with a negative *timeout*, else until *deadline*; returns whether it is ours."""
    import fcntl

    if timeout < 0:
        # The kernel keeps those who wait in a queue and wakes them: nobody has to look again and again.
        fcntl.flock(handle, fcntl.LOCK_EX)
        return True
    while True:
        with contextlib.suppress(BlockingIOError, PermissionError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK)


_LOOK: Final = 0.01
"""Seconds between two looks at a lock that is waited for with an end: the kernel knows no such wait."""


def _is_at(path: Path, handle: int) -> bool:
    """Whether *handle* is the file that *path* leads to."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _unlock(handle: int) -> None:
    import fcntl

    try:
        # Closing alone would not do while a child that is being started has a copy.
        fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _take_elsewhere(path: Path, timeout: float) -> Callable[[], None] | None:
    """By filelock, where Python has no ``fcntl``; where both are, each sees the other's locks."""
    from filelock import FileLock, Timeout

    # A soft lock (a file that merely exists) would outlive its process, so a file system without locks is an error.
    lock = FileLock(path, mode=FILE_MODE, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(timeout=timeout, poll_interval=_LOOK)
    except Timeout:
        return None
    return lock.release


def is_locked(path: Path | str) -> bool:
    """Whether some process holds the lock *path*; nothing is left behind, a missing file is not locked.

    A file that may not be looked at is another user's: it counts as held, so that no live run is ended.
    """
    import fcntl

    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except PermissionError:
        return True
    except OSError:
        return False
    try:
        # Shared: two that probe at the same moment must not take each other for the owner.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
