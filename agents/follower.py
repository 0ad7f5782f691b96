"""Reads the recorded stream behind the recorder: counts every line, decodes those that say how the run stands.

Nothing but a flood says more than a person could read in a minute each second. Of one only the beginning and what it
said last are looked at; the rest is passed over and counted, and its last result is looked for from behind once there
is time, or somebody would act on there being none. What is counted (usage, repetitions) is told in so many lines that
reading them all would keep the supervisor busy too: of these as much is read as an agent that thinks can say. Of what
was passed over it is said that it was.
"""

from __future__ import annotations

import itertools
import math
import os

from agents import files
from agents.events import PARSE_LIMIT, Fact, Init, Output, Result, Said, ToolCall, Unread, decode
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Final

    from agents.events import Dialect, Event

_CHUNK: Final = 256 * 1024
_LONG: Final = 64 * 1024
OPENING: Final = 1024 * 1024
SIGHT: Final = OPENING
"""Bytes that are looked at between two calls of :meth:`Follower.rest`: some five milliseconds of work. No less than an
opening, all of which is looked at."""
EFFORT: Final = 256 * 1024
"""Bytes of counted lines that are read out of bursts between two calls of :meth:`Follower.rest`, about a second: some
ten milliseconds of work. An agent that thinks says less; what comes line by line is read anyway."""
_FINAL_EFFORT: Final = 128 * EFFORT
"""The same at the end, when nobody waits; and where the whole of a dead run's stream is read again."""
LINE: Final = 256
"""Bytes that reading one more line counts for, however short it is."""
_SAMPLE: Final = 4096
"""Bytes of a piece from which it is told how long its lines are."""
_SHORT: Final = 40
"""Bytes of a line below which looking at every byte costs less than looking for each line's end (measured)."""
_LONGEST_COUNTED: Final = 256 * 1024
# What the answer of a program that prints plain text may be at most: the end of its output.
TAIL: Final = 64 * 1024


class Follower:
    r"""Follows the file *path* in *dialect* from its byte *start* on, up to its byte *end* where one is given.

    Memory is bounded by a chunk and the parse limit whatever the lines are: an unfinished line is remembered by its
    place in the file, not by its bytes. Lines end at ``\n`` alone, since agents print other line separators raw.
    """

    def __init__(self, path: Path, dialect: Dialect, start: int = 0, end: int | None = None) -> None:
        self._file = files.open_regular(path, os.O_RDONLY | os.O_CREAT)
        self._end = end
        self._dialect = dialect
        self._markers: tuple[bytes, ...] = ()
        self._start = self._line = start
        self._read = start
        self._effort = EFFORT
        # Where every marked line has to be heard nothing can be left out.
        self._most = math.inf if dialect.markers else SIGHT
        self._sight = self._most
        self._lines = 0
        self._uncounted: list[tuple[int, int]] = []
        self._passed: list[tuple[int, int]] = []
        """Pieces of whole lines, oldest first, that nobody has looked at and that came after the last result known."""

    @property
    def lines(self) -> int:
        """Lines in what was looked at or passed over, the last one included, once it is over, even if it never ended.

        What was passed over is counted when it is asked for.
        """
        while self._uncounted:
            self._lines += sum(map(_ends, self._pieces(*self._uncounted.pop())))
        return self._lines

    def rest(self) -> None:
        """A second has passed: :data:`SIGHT` may be looked at, and :data:`EFFORT` read of what is only counted."""
        self._effort = max(self._effort, EFFORT)
        self._sight = max(self._sight, self._most)

    def advance(self) -> Iterator[Event]:
        """The events of what was recorded since the last call that matter: marked lines and the last one of a chunk.

        Once all that may be looked at was, the rest waits for :meth:`rest`; of what is too much then, the end counts.
        """
        while self._sight > 0:
            yield from self._pass_over()
            data = self._pread(_CHUNK, self._read)
            if not data:
                break
            yield from self._look(data)

    def _look(self, data: bytes) -> Iterator[Event]:
        """Events of *data*, which was read at the place that is reached."""
        base, self._read = self._read, self._read + len(data)
        self._sight -= len(data)
        dialect = self._dialect
        opening = dialect.opening if base - self._start < OPENING else ()
        self._markers = (*dialect.markers, *dialect.last, *opening)
        cut = data.rfind(b"\n")
        if cut >= 0:
            self._lines += _ends(data)
            yield from map(self._superseding, self._chunk(data[: cut + 1], base))
            self._line = base + cut + 1

    def _superseding(self, event: Event) -> Event:
        """*event*, before which no result counts any more if it is one."""
        if isinstance(event, Result):
            self._passed.clear()
        return event

    def _pass_over(self) -> Iterator[Event]:
        """Leave out what is too much to be looked at, but for the opening and the end of it."""
        reached = self._read
        if math.isinf(self._sight) or reached - self._start < OPENING:
            return
        target = self._size() - int(self._sight)
        if target <= reached:
            return
        begin = self._beginning(target, reached)
        self._uncounted.append((reached, target))
        self._read = target
        # Without an end in it all of that is part of a line that is not over, and which is known by its beginning.
        if begin > reached:
            self._passed.append((self._line, begin))
            self._line = begin
        if self._dialect.counted:
            yield Unread(target - reached)

    def _beginning(self, place: int, least: int) -> int:
        """Where the line begins that goes on at *place*; *least* if no line ends between the two."""
        while place > least:
            piece = self._pread(min(_CHUNK, place - least), max(least, place - _CHUNK))
            place -= len(piece)
            cut = piece.rfind(b"\n")
            if cut >= 0:
                return place + cut + 1
            if not piece:
                break
        return least

    def _pieces(self, start: int, end: int) -> Iterator[bytes]:
        while start < end and (data := self._pread(min(_CHUNK, end - start), start)):
            yield data
            start += len(data)

    def recall(self) -> Iterator[Event]:
        """The last result in what was passed over, if there is none behind it: one event or none."""
        passed = [*self._passed]
        self._passed.clear()
        found = (event for piece in reversed(passed) for event in self._backwards(*piece) if isinstance(event, Result))
        yield from itertools.islice(found, 1)

    def _backwards(self, start: int, end: int) -> Iterator[Event]:
        """Events of the whole lines from *start* to *end* that may be results, the last one first."""
        while end > start:
            place = max(start, end - _CHUNK)
            data = self._pread(end - place, place)
            first = 0 if place == start else data.find(b"\n") + 1
            if first == len(data):
                # All of it is the end of one long line.
                place = self._beginning(place, start)
                data, first = self._pread(min(end - place, PARSE_LIMIT + 1), place), 0
            yield from self._last(data, first)
            end = place + first

    def _last(self, data: bytes, start: int) -> Iterator[Event]:
        """Events of the lines of data[start:] with the marker of a result, the last one first."""
        end = len(data)
        while (at := max((data.rfind(marker, start, end) for marker in self._dialect.last), default=-1)) >= 0:
            end, over = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
            yield decode(data[end : over if over >= 0 else len(data)], self._dialect)

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
        return self._pread(length, self._line) if length <= PARSE_LIMIT else self._pread(200, self._line)

    def _event(self, line: bytes, *, only_marked: bool) -> Iterator[Event]:
        # What is shown of a long line is not worth reading all of it.
        shown = not only_marked and len(line) <= _LONG
        if _holds(line, self._markers):
            yield decode(line.rstrip(b"\n"), self._dialect)
        elif _holds(line[:_LONG], self._dialect.counted):
            yield decode(line.rstrip(b"\n"), self._dialect) if shown or self._affords(len(line)) else Unread(len(line))
        elif shown and line.strip():
            yield from _unmarked(decode(line.rstrip(b"\n"), self._dialect))

    def _affords(self, length: int) -> bool:
        """Whether a counted line of *length* bytes may be read; it is paid for."""
        if length > _LONGEST_COUNTED or self._effort <= 0:
            return False
        self._effort -= length + LINE
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
        """The events left at the end of the stream; a last line needs no end to count, a torn one is garbage.

        All that was not passed over before is looked at.
        """
        self._effort, self._sight = _FINAL_EFFORT, math.inf
        yield from self.advance()
        rest = self._pread(PARSE_LIMIT + 1, self._line)
        if rest:
            self._lines += 1
            yield self._superseding(decode(rest, self._dialect))
        yield from self.recall()

    def _size(self) -> int:
        return os.fstat(self._file).st_size if self._end is None else self._end

    def _pread(self, size: int, place: int) -> bytes:
        """At most *size* bytes from *place* on, none of them behind the end."""
        return os.pread(self._file, size if self._end is None else min(size, max(self._end - place, 0)), place)

    def tail(self) -> str:
        """The end of what was recorded, as text: the answer of a program that prints plain text."""
        size = self._size()
        start = max(0, size - TAIL)
        text = self._pread(TAIL, start).decode("utf-8", "replace")
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


def _unmarked(event: Event) -> Iterator[Event]:
    """*event*, of a line without a marker, as far as it is for show.

    Where such a line stands last in a piece it is read, elsewhere it is not; and a reader sees through an escaped
    letter where a search for bytes does not. What a run comes to must not depend on how its output was cut into pieces.
    """
    if not isinstance(event, Init | Result | Fact):
        yield records.replace(event, spend=None) if isinstance(event, Said | ToolCall | Output) else event


def _holds(line: bytes, markers: Iterable[bytes]) -> bool:
    return any(marker in line for marker in markers)


def _ends(data: bytes) -> int:
    """How many lines end in *data*."""
    if data.count(b"\n", 0, _SAMPLE) * _SHORT > min(len(data), _SAMPLE):
        return data.count(b"\n")
    # Counting compares byte by byte. Taking the ends out searches for them, and copying is nothing beside it.
    return len(data) - len(data.replace(b"\n", b""))
