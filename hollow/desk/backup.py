"""Backup and restore of all that the environment remembers: consistent, checked, swapped in one step."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import gzip
import io
import json
import os
import secrets
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from essentials.digests import sha256
from hollow.desk.trouble import Broken, Forged, Trouble
from hollow.memory.files import LOCK, Files, sync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO, Final

MANIFEST: Final = "backup.json"
_FORMAT: Final = 1
_MOST_FILES: Final = 200_000
_MOST_BYTES: Final = 4 * 1024**3
"""Bytes that a backup may unpack to; a small file can claim to be endless."""
_DERIVED: Final = "index"
"""Made anew from the rest."""
# What unpacking raises for files that are none, are cut off or changed, or hold one name twice.
_NO_BACKUP: Final = (
    tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, RecursionError, FileExistsError,
    NotADirectoryError,
)  # fmt: skip
_NURSERY: Final = "staging"
"""The folder beside the memory from which `./agent` removes what nobody has made ready in ten minutes."""
_AT: Final = -100
_EXCHANGE: Final = 2
"""AT_FDCWD and RENAME_EXCHANGE of renameat2(2)."""


def backup(state: Path, target: Path, now: float) -> dict[str, Any]:
    """Write everything below *state* into the new file *target*, a gzipped tar; returns what went into it.

    It is one moment's state: nobody can write while it is made. Locks, half-written files and what is derived stay
    out. *now* is in seconds since the epoch. Raises :class:`Trouble` where there is nothing, or *target* exists.
    """
    if not state.is_dir():
        raise Trouble("There is nothing to back up: no agent has lived here yet.", "Type: ./agent live")
    if target.exists() or target.is_symlink():
        raise Trouble(f"{target} exists already; nothing was written.", "Give another name.")
    if target.parent.resolve().is_relative_to(state.resolve()):
        raise Trouble("The backup would lie inside of what it backs up.", "Give a path elsewhere.")
    try:
        with _unnamed(target) as (file, name), file:
            with Files(state).hold():
                size = _write(state, file, now)
            # A hard link never replaces what somebody has put there meanwhile.
            os.link(name, target, src_dir_fd=file.fileno(), follow_symlinks=True)
        # It has been said to be kept: its name has to survive a power cut like its bytes.
        sync(target.parent)
    except OSError as why:
        raise Broken(f"{target} cannot be written: {why.strerror}.", "Give a path that you can write.") from why
    return {"file": str(target), **size}


@contextlib.contextmanager
def _unnamed(target: Path) -> Iterator[tuple[BinaryIO, str]]:
    """A new file on the disk of *target*, and a path that leads to it; without its ``with`` nothing is left of it.

    It has no name as yet, so that a process that is killed leaves nothing either; a hidden one beside *target* where
    the file system cannot do that.
    """
    try:
        handle = os.open(target.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except (OSError, AttributeError):
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            yield os.fdopen(handle, "wb"), str(temporary.absolute())
        finally:
            temporary.unlink()
    else:
        yield os.fdopen(handle, "wb"), f"/proc/self/fd/{handle}"


def _write(state: Path, file: BinaryIO, now: float) -> dict[str, int]:
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as archive:
        sums, total = {}, 0
        for path in _kept(state):
            data = path.read_bytes()
            name = path.relative_to(state).as_posix()
            sums[name], total = sha256(data).hexdigest(), total + len(data)
            _put(archive, name, data, now)
        # Last: by then every sum is known, and an archive that was cut off has none.
        manifest = {"format": _FORMAT, "made_at": now, "files": sums}
        _put(archive, MANIFEST, json.dumps(manifest, indent=1).encode(), now)
    file.flush()
    os.fsync(file.fileno())
    return {"files": len(sums), "bytes": total}


def _put(archive: tarfile.TarFile, name: str, data: bytes, now: float) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(data), 0o600, int(now)
    archive.addfile(entry, io.BytesIO(data))


def _kept(state: Path) -> Iterator[Path]:
    """The files of *state* that belong into a backup, in order; links and what is hidden (locks, halves) do not."""
    for folder, folders, names in os.walk(state):
        here = Path(folder)
        folders[:] = sorted(each for each in folders if not (here == state and each == _DERIVED) and each[0] != ".")
        for name in sorted(names):
            path = here / name
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def restore(state: Path, source: Path, swap: Callable[[bytes, bytes], bool] | None = None) -> dict[str, Any]:
    """Put the backup *source* in the place of *state*, which is kept aside; returns where, and what was restored.

    It is unpacked and checked beside first, and then exchanged in one step. The caller sees to it that no agent lives
    meanwhile. Raises :class:`Trouble` where *source* is no backup, :class:`Forged` where its contents are not what
    was backed up; nothing has changed then. *swap* is as in :func:`exchange`.
    """
    staged = state.with_name(f".{state.name}.restore.{secrets.token_hex(6)}")
    before = None
    try:
        state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        finish(state)
        before = _inode(state)
        count = _stage(source, staged)
        aside = _put_in_place(staged, state, swap)
        sync(state.parent)
    except OSError as why:
        raise Broken(f"The backup cannot be put in place: {why.strerror}.", f"Type: ls -ld {state.parent}") from why
    finally:
        # Once they have changed places it is all that the agents knew: no signal and no full disk may cost it.
        if _inode(staged) not in {None, before}:
            shutil.rmtree(staged, ignore_errors=True)
    return {"files": count, "aside": str(aside) if aside else None}


def finish(state: Path) -> None:
    """Finish what a restore of *state* that was killed has left beside it; nobody else may restore it meanwhile.

    What the agents knew is put aside, or back in its place where there is nothing; what never was there is removed.
    """
    named = glob.escape(state.name)
    for left in (*state.parent.glob(f".{named}.between.*"), *state.parent.glob(f".{named}.restore.*")):
        # Only what was in its place has been locked, which is the last thing before the exchange.
        if not (left / LOCK).exists():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.rename(_aside(state) if state.exists() else state)


def _stage(source: Path, staged: Path) -> int:
    """Unpack and check *source*, and put it at *staged*; returns the number of files."""
    nursery = staged.parent / _NURSERY
    # Not there for the exchange: what the agents knew must never lie where it is taken for nobody's.
    unpacked = nursery / staged.name if nursery.is_dir() else staged
    try:
        count = _unpack(source, unpacked)
        if unpacked != staged:
            unpacked.rename(staged)
    except BaseException:  # a signal counts too
        shutil.rmtree(unpacked, ignore_errors=True)
        raise
    return count


def _put_in_place(staged: Path, state: Path, swap: Callable[[bytes, bytes], bool] | None) -> Path | None:
    """Let *staged* be *state*; returns where what was there is now, or None where nothing was."""
    if not state.is_dir():
        staged.rename(state)
        return None
    with Files(state).hold():
        exchange(staged, state, swap)
    aside = _aside(state)
    staged.rename(aside)
    return aside


def _aside(state: Path) -> Path:
    return state.with_name(f"{state.name}.before-{secrets.token_hex(4)}")


def _inode(folder: Path) -> int | None:
    try:
        return folder.stat().st_ino
    except OSError:
        return None


def _unpack(source: Path, staged: Path) -> int:
    """Unpack and check *source* into the new folder *staged*; returns the number of files."""
    found: dict[str, str] = {}
    manifest: Any = None
    if not source.is_file():
        raise Trouble(f"There is no file {source}.", "Type: ls")
    try:
        with tarfile.open(source, "r:gz") as archive:
            staged.mkdir(mode=0o700)
            for name, data in _members(archive):
                if name == MANIFEST:
                    manifest = json.loads(data)
                else:
                    found[name] = sha256(data).hexdigest()
                    _place(staged / name, data)
    except _NO_BACKUP as why:
        raise Trouble(f"{source} is no whole backup.", "Give a file that `./agent hollow backup` has made.") from why
    _check(source, manifest, found)
    return len(found)


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    total = 0
    for number, entry in enumerate(archive):
        parts = PurePosixPath(entry.name).parts
        plain = parts and not entry.name.startswith("/") and not any(part[0] == "." for part in parts)
        total += entry.size
        if not plain or not entry.isreg() or number > _MOST_FILES or total > _MOST_BYTES:
            raise tarfile.TarError("not what a backup holds")
        content = archive.extractfile(entry)
        yield entry.name, content.read() if content else b""


def _place(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _check(source: Path, manifest: Any, found: dict[str, str]) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise Trouble(f"{source} is no whole backup.", "Give a file that `./agent hollow backup` has made.")
    if manifest.get("files") != found:
        raise Forged(f"{source} does not hold what was backed up.", "Give an earlier backup.")


def exchange(one: Path, other: Path, swap: Callable[[bytes, bytes], bool] | None = None) -> None:
    """Let *one* and *other* change places; in one step where *swap* (the kernel's) can, else with a way back.

    Raises :class:`OSError`, with *other* as it was.
    """
    if (swap or _swapped)(os.fsencode(one), os.fsencode(other)):
        return
    between = other.with_name(f".{other.name}.between.{secrets.token_hex(6)}")
    other.rename(between)
    try:
        one.rename(other)
    except BaseException:
        between.rename(other)
        raise
    between.rename(one)


def _swapped(one: bytes, other: bytes) -> bool:
    """Whether the kernel let the two change places; not every file system can."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    return swap is not None and swap(_AT, one, _AT, other, _EXCHANGE) == 0
