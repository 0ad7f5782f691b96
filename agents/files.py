"""The door to the disk: whole-file writes that are old or new, exclusive creation, links swapped at once."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from agents.errors import HostError
from agents.layout import DATA, STAGED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Final


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


def _fill(path: Path, parts: Iterable[bytes], *, durable: bool, moment: int | None = None) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    try:
        for part in parts:
            write_all(handle, part)
        if moment is not None:
            os.utime(handle, ns=(moment, moment))
        if durable:
            os.fsync(handle)
    finally:
        os.close(handle)


def write(
    path: Path,
    data: bytes,
    *,
    durable: bool = True,
    ordered: bool = False,
    alone: bool = False,
    moment: int | None = None,
) -> None:
    """Replace *path* by *data* in one step: a reader, a crash or a full disk finds the old file or the new one.

    *durable* makes it survive a power cut as well; heartbeats do without, but are *ordered*: a power cut leaves the old
    or the new. With neither it may leave an empty file: for what is nothing without its process. Who is *alone*, as
    a lock keeps other writers away, clears away what a killed one has left. Raises OSError, the old file untouched.
    With *moment* (ns since the epoch) the file is dated so.
    """
    write_parts(path, (data,), durable=durable, ordered=ordered, alone=alone, moment=moment)


def write_parts(
    path: Path,
    parts: Iterable[bytes],
    *,
    durable: bool = True,
    ordered: bool = False,
    alone: bool = False,
    moment: int | None = None,
) -> None:
    """Like :func:`write`, for data that need not be in memory all at once: *parts* in their order."""
    temporary = _temporary(path, alone=alone)
    if alone:
        temporary.unlink(missing_ok=True)
    try:
        # A file system may bring the new name to the disk long before the bytes that it is for.
        _fill(temporary, parts, durable=durable or ordered, moment=moment)
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
