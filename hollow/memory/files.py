"""The disk below ``.agents/hollow``: one lock, whole files that are never half written, logs that are never torn."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time

from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any, Final

LOCK: Final = ".lock"
"""The file whose lock is the one of a memory."""
LAST_GOOD: Final = ".last"
"""Suffix of the last good copy of a whole file."""
QUARANTINE: Final = "quarantine"
"""Folder for what could not be read; nothing in it is ever read again by us."""
LOCK_SECONDS: Final = 30.0
"""Seconds that somebody may have to wait for the lock: every hold of it is a matter of milliseconds."""
_STEP: Final = 0.01
_HALVES: Final = ".halves"
"""Folder for files that are being written."""


class MemoryFault(Exception):  # noqa: N818 - a fault of the machine, told as one sentence
    """The memory cannot be used; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A whole file as it was read."""

    value: Any
    """Its JSON value, or None where there is none."""
    damaged: bool = False
    """Whether it could not be read; *value* is then of the last good copy, if there was one."""


def _unheard(_kind: str, **_facts: Any) -> None:
    """Nobody listens."""


class Files:
    """Everything below *root*. *warn* is told of what was damaged, as a kind and facts.

    There is one lock for all of it (W11, W21): what changes more than one file is one step for everybody else, and no
    order of locks can be wrong. It is never held while a model thinks or a child runs.
    """

    def __init__(self, root: Path, warn: Callable[..., None] | None = None) -> None:
        self.root = root
        self._warn = _unheard if warn is None else warn
        self._held_by: int | None = None

    # --- The lock -----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the one lock. Raises :class:`MemoryFault` when it is not to be had, or this thread holds it already."""
        if self._held_by == threading.get_ident():
            raise MemoryFault("The memory's lock is held already; it is taken in one layer only.")
        self._make(self.root)
        handle = os.open(self.root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            self._wait(handle)
            self._held_by = threading.get_ident()
            self._sweep()
            yield
        finally:
            self._held_by = None
            os.close(handle)

    def _wait(self, handle: int) -> None:
        until = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise MemoryFault(f"{self.root} is locked by somebody else for {LOCK_SECONDS:g} s.") from None
                time.sleep(_STEP)
            else:
                return

    def _require_held(self) -> None:
        if self._held_by != threading.get_ident():
            raise MemoryFault("The memory is changed under its lock only.")

    # --- Whole files --------------------------------------------------------------------------------------------------

    def read(self, name: str) -> Loaded:
        """Return the JSON value of the file *name*; one that is damaged is put aside and its last good copy returned.

        The good copy is put back in its place where the lock is held; a reader alone changes nothing.
        """
        path = self.root / name
        value, bad = _decoded(path)
        if not bad:
            return Loaded(value)
        kept, lost = _decoded(path.with_name(path.name + LAST_GOOD))
        if self._held_by == threading.get_ident():
            self._put_aside(path)
            if kept is not None and not lost:
                self._replace(path, _encoded(kept))
        self._warn("memory.damaged", file=name, restored=kept is not None and not lost)
        return Loaded(None if lost else kept, damaged=True)

    def write(self, name: str, value: Any) -> None:
        """Put *value* into the file *name*: whoever reads it sees the old or the new, also after a power cut.

        What was there before is kept beside it as the last good copy.
        """
        self._require_held()
        path = self.root / name
        self._make(path.parent)
        before, bad = _decoded(path)
        if before is not None and not bad:
            self._keep(path)
        self._replace(path, _encoded(value))

    def write_bytes(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Put *data* into the file *name*, whole; no earlier copy is kept.

        Without *durable* a power cut may bring back what was there before: for what follows from other files.
        """
        self._require_held()
        self._make((self.root / name).parent)
        self._replace(self.root / name, data, durable=durable)

    def remove(self, name: str) -> None:
        """Remove the file *name*; one that is gone already is fine."""
        self._require_held()
        (self.root / name).unlink(missing_ok=True)

    # --- Logs ---------------------------------------------------------------------------------------------------------

    def append(self, name: str, record: Any) -> None:
        """Append *record* as one line to the log *name*, on disk when this returns; a torn last line goes first."""
        self._require_held()
        path = self.root / name
        self._make(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            self._mend(handle, name)
            data = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
            while data:
                data = data[os.write(handle, data) :]
            os.fsync(handle)
        finally:
            os.close(handle)

    def _mend(self, handle: int, name: str) -> None:
        size = os.fstat(handle).st_size
        if not size or os.pread(handle, 1, size - 1) == b"\n":
            return
        # Somebody died while writing: the line was never said to be there.
        start = max(0, size - (1 << 20))
        tail = os.pread(handle, size - start, start)
        keep = start + tail.rfind(b"\n") + 1
        self._make(self.root / QUARANTINE)
        aside = self.root / QUARANTINE / f"{name.replace('/', '_')}.{os.urandom(4).hex()}"
        aside.write_bytes(os.pread(handle, size - keep, keep))
        os.ftruncate(handle, keep)
        self._warn("memory.torn", file=name, bytes=size - keep)

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Return the records of the log *name*, oldest first; lines that are none are left out and told of (T21)."""
        try:
            data = (self.root / name).read_bytes()
        except FileNotFoundError:
            return []
        # A last line without its end was never said to be there: it may still be being written.
        lines = [line for line in data[: data.rfind(b"\n") + 1].split(b"\n") if line.strip()]
        records = _at_once(lines)
        if records is None:
            records = [record for line in lines if (record := _record(line)) is not None]
        if len(records) < len(lines):
            self._warn("memory.malformed", file=name, lines=len(lines) - len(records))
        return records

    def compact(self, name: str, records: list[dict[str, Any]]) -> None:
        """Replace the log *name* by *records*, so that it does not grow for ever."""
        self._require_held()
        self._make((self.root / name).parent)
        lines = (json.dumps(record, ensure_ascii=True, separators=(",", ":")) for record in records)
        self._replace(self.root / name, "".join(f"{line}\n" for line in lines).encode())

    # --- Underneath ---------------------------------------------------------------------------------------------------

    def _make(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _keep(self, path: Path) -> None:
        """Have the last good copy be what *path* holds now: one file under two names, which costs no write."""
        temporary = self._half()
        try:
            os.link(path, temporary)
        except OSError:
            # A file system without hard links.
            self._replace(path.with_name(path.name + LAST_GOOD), path.read_bytes())
            return
        temporary.replace(path.with_name(path.name + LAST_GOOD))

    def _put_aside(self, path: Path) -> None:
        self._make(self.root / QUARANTINE)
        name = str(path.relative_to(self.root)).replace("/", "_")
        with contextlib.suppress(FileNotFoundError):
            path.rename(self.root / QUARANTINE / f"{name}.{os.urandom(4).hex()}")

    def _half(self) -> Path:
        """A name for a file that is being written; what lies there when nobody holds the lock is nobody's."""
        self._make(self.root / _HALVES)
        return self.root / _HALVES / os.urandom(8).hex()

    def _sweep(self) -> None:
        """Remove what a process that was killed has left half written: under the lock it can be nobody's any more."""
        with contextlib.suppress(FileNotFoundError):
            for left in (self.root / _HALVES).iterdir():
                left.unlink(missing_ok=True)

    def _replace(self, path: Path, data: bytes, *, durable: bool = True) -> None:
        temporary = self._half()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                # Always: the name may come to the disk long before the bytes, and a power cut leave an empty file.
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:  # a signal counts too
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            sync(path.parent)


def sync(path: Path) -> None:
    """Have the names in the folder *path* survive a power cut."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _at_once(lines: list[bytes]) -> list[dict[str, Any]] | None:
    """The records of *lines*, read as one list, which takes a fifth of the time; None where a line is no record."""
    try:
        found = json.loads(b"[" + b",".join(lines) + b"]")
    except (ValueError, RecursionError):
        return None
    # A line that holds two records, or half of one, changes their number.
    whole = len(found) == len(lines) and all(isinstance(each, dict) for each in found)
    return found if whole else None


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode() + b"\n"


def _decoded(path: Path) -> tuple[Any, bool]:
    """The JSON value of *path* (None where there is no file) and whether it is damaged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None, False
    except OSError:
        return None, True
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None, True
    # A file that says null says nothing; nobody here writes one.
    return value, value is None
