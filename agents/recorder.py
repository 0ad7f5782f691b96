"""The evidence: bytes from the agent's pipe or spool file to the box, before anyone looks at them."""

from __future__ import annotations

import errno
import os

from agents import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Final

CHUNK: Final = 1024 * 1024
# What one call takes at most, so that the loop looks at its timers and parses in between.
BURST: Final = 8 * CHUNK


class _Evidence:
    """The file that a recorder writes: appended to, at most *limit* bytes in all."""

    def __init__(self, path: Path, limit: int) -> None:
        # splice(2) refuses a file opened for appending, so the end is sought by hand.
        self._file = files.open_regular(path, os.O_WRONLY | os.O_CREAT)
        self.size = os.lseek(self._file, 0, os.SEEK_END)
        self._limit = limit

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return self.size >= self._limit

    def close(self, *, sync: bool = True) -> None:
        """Close the file, after making it survive a power cut."""
        try:
            if sync:
                os.fsync(self._file)
        finally:
            os.close(self._file)


class PipeRecorder(_Evidence):
    """Moves a pipe's bytes into a file without looking at them.

    *source* is a non-blocking descriptor, *path* the file, appended to. At most *limit* bytes are recorded; what comes
    beyond is left in the pipe, or read and counted in :attr:`dropped` where *drop* is set (stderr must not block).
    """

    def __init__(self, source: int, path: Path, limit: int, *, drop: bool = False) -> None:
        super().__init__(path, limit)
        self._source = source
        self._drop = drop
        self.dropped = 0
        self.ended = False
        """Whether every writer has closed the pipe."""
        self._splices = True

    def drain(self) -> int:
        """Record what is there, at most a burst; returns its size in bytes. Raises OSError when the disk fails."""
        taken = 0
        while taken < BURST and not self.ended:
            moved = self._move(min(CHUNK, self._limit - self.size)) if not self.full else self._discard()
            if not moved:
                break
            taken += moved
        return taken

    def _move(self, count: int) -> int:
        try:
            moved = os.splice(self._source, self._file, count) if self._splices else self._copy(count)
        except BlockingIOError:
            return 0
        except OSError as why:
            # Some file systems have no splice: the bytes still are in the pipe.
            if why.errno not in {errno.EINVAL, errno.ENOSYS} or not self._splices:
                raise
            self._splices = False
            return self._move(count)
        self.ended = moved == 0
        self.size += moved
        return moved

    def _copy(self, count: int) -> int:
        data = os.read(self._source, count)
        files.write_all(self._file, data)
        return len(data)

    def _discard(self) -> int:
        if not self._drop:
            return 0
        try:
            gone = len(os.read(self._source, CHUNK))
        except BlockingIOError:
            return 0
        self.ended = gone == 0
        self.dropped += gone
        return gone


class SpoolRecorder(_Evidence):
    """Follows a file that the agent writes and copies what it appended into the box.

    The agent could rewrite its own file; what was copied is safe. A spool that became shorter than what was read from
    it is noted in :attr:`tampered`, and following goes on where it was.
    """

    def __init__(self, spool: Path, path: Path, limit: int) -> None:
        super().__init__(path, limit)
        self._source = files.open_regular(spool)
        self._read = 0
        self.dropped = 0
        self.tampered = False
        self.ended = False
        """A file has no end that could be seen: the agent's death is it."""

    def drain(self) -> int:
        """Copy what was appended since, at most a burst; returns its size in bytes. Raises OSError on a full disk."""
        there = os.fstat(self._source).st_size
        self.tampered = self.tampered or there < self._read
        taken = 0
        while taken < BURST and not self.full:
            data = os.pread(self._source, min(CHUNK, self._limit - self.size), self._read)
            if not data:
                break
            files.write_all(self._file, data)
            self._read += len(data)
            self.size += len(data)
            taken += len(data)
        return taken

    def close(self, *, sync: bool = True) -> None:
        """Close both files, after making the copy survive a power cut."""
        try:
            super().close(sync=sync)
        finally:
            os.close(self._source)


Recorder = PipeRecorder | SpoolRecorder
