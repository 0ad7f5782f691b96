"""The door to the disk: whole-file writes that are old or new, exclusive creation, links swapped at once, locks."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from agents import lockorder
from agents.errors import HostError
from agents.layout import DATA, STAGED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from agents.lockorder import Rank

DIR_MODE: Final = 0o700
FILE_MODE: Final = 0o600


@contextlib.contextmanager
def reported(doing: str) -> Iterator[None]:
    """Turn an OSError into a HostError that says what was being done: *doing* completes “Cannot …”."""
    try:
        yield
    except OSError as why:
        raise HostError(f"Cannot {doing}: {why.strerror or why}.", _hint(why)) from why


def _hint(why: OSError) -> str:
    hints = {
        errno.ENOSPC: "Free some disk space; `./agent gc` removes old runs.",
        errno.EDQUOT: "Free some of your disk quota; `./agent gc` removes old runs.",
        errno.EACCES: "Check who owns the folder: ls -ld .agents",
        errno.EPERM: "Check who owns the folder: ls -ld .agents",
        errno.EROFS: "The file system is mounted read-only.",
    }
    return hints.get(why.errno or 0, "")


def make_folder(path: Path) -> None:
    """Create *path* and its parents, private to the user."""
    path.mkdir(mode=DIR_MODE, parents=True, exist_ok=True)


def free(path: Path) -> int:
    """Bytes that this user can still write on the disk that holds *path*."""
    seen = os.statvfs(path)
    return seen.f_bavail * seen.f_frsize


def sync_folder(path: Path) -> None:
    """Make the names in *path* survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Make what *path* holds now survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write every byte: on a full disk the kernel writes a part and reports no error until the next call."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _temporary(path: Path, *, alone: bool = False, aside: Path | None = None) -> Path:
    """A name for the making of *path* that no other writer uses; hidden, so that no listing takes it for the file."""
    return _nursery(path, aside) / (f".{path.name}.tmp" if alone else f".{path.name}.{os.urandom(8).hex()}.tmp")


def _nursery(path: Path, aside: Path | None) -> Path:
    """The folder in which *path* is made: the staging folder of the data folder that it or *aside* is in, else its own.

    A writer that is killed leaves what it was making. Every sweep looks through the staging folder, and no other,
    because there are too many boxes. One on another disk is of no use: nothing can be renamed out of it.
    """
    for folder in (aside or path).parents:
        if folder.name == DATA:
            staging = folder / STAGED
            with contextlib.suppress(OSError):
                if staging.stat().st_dev == path.parent.stat().st_dev:
                    return staging
            break
    return path.parent


def _fill(path: Path, parts: Iterable[bytes], *, durable: bool) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    try:
        for part in parts:
            write_all(handle, part)
        if durable:
            os.fsync(handle)
    finally:
        os.close(handle)


def write(path: Path, data: bytes, *, durable: bool = True, ordered: bool = False, alone: bool = False) -> None:
    """Replace *path* by *data* in one step: a reader, a crash or a full disk finds the old file or the new one.

    *durable* makes it survive a power cut as well; heartbeats do without, but are *ordered*: a power cut leaves the old
    or the new. With neither it may leave an empty file: for what is nothing without its process. Who is *alone*, as
    a lock keeps other writers away, clears away what a killed one has left. Raises OSError, the old file untouched.
    """
    write_parts(path, (data,), durable=durable, ordered=ordered, alone=alone)


def write_parts(
    path: Path, parts: Iterable[bytes], *, durable: bool = True, ordered: bool = False, alone: bool = False
) -> None:
    """Like :func:`write`, for data that need not be in memory all at once: *parts* in their order."""
    temporary = _temporary(path, alone=alone)
    if alone:
        temporary.unlink(missing_ok=True)
    try:
        # A file system may bring the new name to the disk long before the bytes that it is for.
        _fill(temporary, parts, durable=durable or ordered)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def create(path: Path, data: bytes, *, aside: Path | None = None) -> bool:
    """Create *path* with *data* unless it exists; returns whether this call did. Exclusive between processes.

    Like :func:`write` it is whole or not there, also after a crash: it gets its name when its bytes are on disk. What
    lies outside of the data folder is made where *aside*, a path in it, would be: nothing is left in a checkout.
    """
    if path.exists() or path.is_symlink():
        return False
    temporary = _temporary(path, aside=aside)
    try:
        _fill(temporary, (data,), durable=True)
        # Unlike a rename a hard link never replaces what another process has put there meanwhile.
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def open_regular(path: Path, flags: int = os.O_RDONLY, *, follow: bool = False) -> int:
    """Descriptor of the regular file *path*, opened with *flags*; raises OSError for anything else.

    A link is not followed unless *follow*, and a pipe, which would block for ever, is not waited for: what lies in a
    folder that an agent can write may be either.
    """
    link = 0 if follow else os.O_NOFOLLOW
    handle = os.open(path, flags | link | os.O_NONBLOCK | os.O_CLOEXEC, FILE_MODE)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return handle


def read_capped(path: Path, limit: int, *, follow: bool = False) -> bytes | None:
    """At most *limit* bytes of the regular file *path*, or None where there is none; a link counts to *follow* only."""
    try:
        handle = open_regular(path, follow=follow)
    except OSError:
        return None
    try:
        # A read sets aside as much memory as it is asked for.
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(min(limit, os.fstat(handle).st_size))
    finally:
        os.close(handle)


def point(link: Path, target: str) -> None:
    """Make *link* a symbolic link to *target* in one step; raises HostError where something else stands there."""
    if link.exists() and not link.is_symlink():
        raise HostError(f"{link.name} in the data folder is not a link.", f"Move it away: mv {link} {link}.old")
    temporary = _temporary(link)
    try:
        temporary.symlink_to(target)
        temporary.replace(link)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_tree(path: Path) -> None:
    """Remove the folder *path* and all in it without following links; what is already gone is fine.

    An agent may have had it in its hands: it may be nested deeper than a path can be long or a function call itself,
    and the rights may have been taken from its folders. So each is moved to the top before it is emptied.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    path.chmod(DIR_MODE)
    top = os.open(path, _FOLDER)
    try:
        while folders := _empty(top):
            for name in folders:
                _remove_folder(name, top)
    finally:
        os.close(top)
    path.rmdir()


_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _remove_folder(name: str, top: int) -> None:
    folder = os.open(name, _FOLDER, dir_fd=top)
    try:
        for inner in _empty(folder):
            os.rename(inner, os.urandom(16).hex(), src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _empty(folder: int) -> list[str]:
    """Remove the files in *folder*; returns the names of the folders in it, which may be moved now."""
    folders = []
    with os.scandir(folder) as listing:
        for entry in listing:
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.name, DIR_MODE, dir_fd=folder)
                folders.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=folder)
    return folders


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
