"""Reads the recorded stream behind the recorder: counts every line, decodes those that say how the run stands.

What decides (a result, an init) is found in any flood. What is counted (usage, repetitions) is told in so many lines
that reading them all would let a flood keep the supervisor busy: of these as much is read as an agent that thinks can
say, and of what is passed over it is said that it was.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from agents import files
from agents.events import PARSE_LIMIT, Unread, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from agents.events import Dialect, Event

_CHUNK: Final = 256 * 1024
_LONG: Final = 64 * 1024
_OPENING: Final = 1024 * 1024
EFFORT: Final = 256 * 1024
"""Bytes of counted lines that are read out of bursts between two calls of :meth:`Follower.rest`, about a second: some
ten milliseconds of work. An agent that thinks says less; what comes line by line is read anyway."""
_FINAL_EFFORT: Final = 128 * EFFORT
"""The same at the end, when nobody waits; and where the whole of a dead run's stream is read again."""
_LINE: Final = 256
"""Bytes that reading one more line counts for, however short it is."""
_LONGEST_COUNTED: Final = 256 * 1024
# What the answer of a program that prints plain text may be at most: the end of its output.
TAIL: Final = 64 * 1024


class Follower:
    r"""Follows the file *path* in *dialect* from its byte *start* on.

    Memory is bounded by a chunk and the parse limit whatever the lines are: an unfinished line is remembered by its
    place in the file, not by its bytes. Lines end at ``\n`` alone, since agents print other line separators raw.
    """

    def __init__(self, path: Path, dialect: Dialect, start: int = 0) -> None:
        self._file = files.open_regular(path, os.O_RDONLY | os.O_CREAT)
        self._dialect = dialect
        self._markers: tuple[bytes, ...] = ()
        self._start = self._line = start
        self._read = start
        self._effort = EFFORT
        self.lines = 0
        """Lines seen, the last one included even if it never ended."""

    def rest(self) -> None:
        """A second has passed: as much as :data:`EFFORT` may be read of what is only counted."""
        self._effort = max(self._effort, EFFORT)

    def advance(self) -> Iterator[Event]:
        """The events of what was recorded since the last call that matter: marked lines and the last one of a chunk."""
        while data := os.pread(self._file, _CHUNK, self._read):
            base, self._read = self._read, self._read + len(data)
            self._markers = self._dialect.markers + (self._dialect.opening if base - self._start < _OPENING else ())
            cut = data.rfind(b"\n")
            if cut < 0:
                continue
            self.lines += data.count(b"\n")
            yield from self._chunk(data[: cut + 1], base)
            self._line = base + cut + 1

    def _chunk(self, data: bytes, base: int) -> Iterator[Event]:
        """Events of *data*, which ends with a line's end and begins at *base* in the file."""
        first = data.find(b"\n") + 1
        head = data[:first] if self._line == base else self._reread(base + first)
        yield from self._event(head, only_marked=first < len(data))
        last = data.rfind(b"\n", 0, len(data) - 1) + 1
        yield from self._inner(data, first, last)
        if last >= first:
            yield from self._event(data[last:], only_marked=False)

    def _reread(self, end: int) -> bytes:
        length = end - self._line
        return (
            os.pread(self._file, length, self._line) if length <= PARSE_LIMIT else os.pread(self._file, 200, self._line)
        )

    def _event(self, line: bytes, *, only_marked: bool) -> Iterator[Event]:
        # What is shown of a long line is not worth reading all of it.
        needed = only_marked or len(line) > _LONG
        if not line.strip():
            return
        if not needed or _holds(line, self._markers):
            yield decode(line.rstrip(b"\n"), self._dialect)
        elif _holds(line[:_LONG], self._dialect.counted):
            yield decode(line.rstrip(b"\n"), self._dialect) if self._affords(len(line)) else Unread(len(line))

    def _affords(self, length: int) -> bool:
        """Whether a counted line of *length* bytes may be read; it is paid for."""
        if length > _LONGEST_COUNTED or self._effort <= 0:
            return False
        self._effort -= length + _LINE
        return True

    def _inner(self, data: bytes, start: int, end: int) -> Iterator[Event]:
        """Events of the whole lines of data[start:end] that hold a marker, in order."""
        found = self._marked(data, start, end, self._markers)
        counted = self._marked(data, start, end, self._dialect.counted) - found if self._effort > 0 else set()
        passed = 0 if self._effort > 0 or not self._dialect.counted else end - start
        for begin, stop in sorted(found | counted):
            if (begin, stop) in counted and not self._affords(stop - begin):
                passed += stop - begin
                continue
            if passed:
                yield Unread(passed)
                passed = 0
            yield decode(data[begin:stop], self._dialect)
        if passed:
            yield Unread(passed)

    def _marked(self, data: bytes, start: int, end: int, markers: Iterable[bytes]) -> set[tuple[int, int]]:
        """Places of the whole lines of data[start:end] that hold one of *markers*."""
        found = set()
        for marker in markers:
            at = data.find(marker, start, end)
            while at >= 0:
                stop = data.find(b"\n", at)
                found.add((data.rfind(b"\n", 0, at) + 1, stop))
                at = data.find(marker, stop, end)
        return found

    def finish(self) -> Iterator[Event]:
        """The events left at the end of the stream; a last line needs no end to count, a torn one is garbage."""
        self._effort = _FINAL_EFFORT
        yield from self.advance()
        rest = os.pread(self._file, PARSE_LIMIT + 1, self._line)
        if rest:
            self.lines += 1
            yield decode(rest, self._dialect)

    def tail(self) -> str:
        """The end of what was recorded, as text: the answer of a program that prints plain text."""
        size = os.fstat(self._file).st_size
        start = max(0, size - TAIL)
        text = os.pread(self._file, TAIL, start).decode("utf-8", "replace")
        if start == 0:
            return text
        # From the first whole line on, if there is one at all.
        return f"… ({start} bytes before this: raw/stream.jsonl)\n{text.partition(chr(10))[2] or text}"

    def free(self) -> int:
        """Bytes of free disk space where the stream is recorded; what is kept for the administrator does not count."""
        disk = os.fstatvfs(self._file)
        return disk.f_bavail * disk.f_frsize

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _holds(line: bytes, markers: Iterable[bytes]) -> bool:
    return any(marker in line for marker in markers)
