"""The door to the disk: whole-file writes that are old or new, exclusive creation, links swapped at once, locks."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from typing import TYPE_CHECKING, Final, Self

from agents.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


def write_all(handle: int, data: bytes) -> None:
    """Write every byte: on a full disk the kernel writes a part and reports no error until the next call."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _temporary(path: Path) -> Path:
    """A name beside *path* that no other writer uses; hidden, so that no listing takes it for the file itself."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def _fill(path: Path, data: bytes, *, durable: bool) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    try:
        write_all(handle, data)
        if durable:
            os.fsync(handle)
    finally:
        os.close(handle)


def write(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace *path* by *data* in one step: a reader, a crash or a full disk finds the old file or the new one.

    *durable* makes it survive a power cut as well; heartbeats do without. Raises OSError, the old file untouched.
    """
    temporary = _temporary(path)
    try:
        _fill(temporary, data, durable=durable)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def create(path: Path, data: bytes) -> bool:
    """Create *path* with *data* unless it exists; returns whether this call did. Exclusive between processes.

    Like :func:`write` it is whole or not there, also after a crash: it gets its name when its bytes are on disk.
    """
    if path.exists() or path.is_symlink():
        return False
    temporary = _temporary(path)
    try:
        _fill(temporary, data, durable=True)
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
            os.rename(inner, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=top)
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

    The file is never removed: a lock on an unlinked file would not be seen by the next process that comes.
    """

    def __init__(self, path: Path) -> None:
        from filelock import FileLock

        # A soft lock (a file that merely exists) would outlive its process, so a file system without locks is an error.
        self._lock = FileLock(path, mode=FILE_MODE, thread_local=False, fallback_to_soft=False)

    def acquire(self, timeout: float = -1) -> bool:
        """Take the lock, waiting at most *timeout* seconds (forever if negative); returns whether it is ours."""
        from filelock import Timeout

        try:
            self._lock.acquire(timeout=timeout, poll_interval=0.01)
        except Timeout:
            return False
        except OSError as why:
            if why.errno != errno.ENOSYS:
                raise
            raise HostError("This file system has no locks.", "Use a repository on a local file system.") from why
        return True

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


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
