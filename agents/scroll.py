"""The ledger's file, read forwards by the line and backwards by the page; memory is bounded whatever its size."""

from __future__ import annotations

import os

from agents import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Final, Self

PAGE: Final = 256 * 1024
"""Bytes that are read at once."""
_HELD: Final = 16 * 1024 * 1024
"""Bytes of one line that are held; a longer one is none that the box has written."""
_UNREADABLE: Final = b"\0"
"""Stands at the beginning of what is left of a line that is not held: no JSON begins so."""


class Scroll:
    """The whole lines of the file *path* as they stand when this is made; none where there is no file.

    What is appended later is not seen, and what replaces the file later neither: the descriptor stays on the old one.
    To be closed, best by ``with``. Raises OSError where something else than a regular file stands there.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file: int | None = files.open_regular(path)
        except FileNotFoundError:
            self._file = None
        size = os.fstat(self._file).st_size if self._file is not None else 0
        self.end = self._last_end(size)
        """Bytes of the whole lines."""
        self.torn = size - self.end
        """Bytes of a torn last line: a write that was cut off, or a power cut's zeros."""

    def _last_end(self, size: int) -> int:
        """Where the last whole line of the first *size* bytes ends."""
        end = size
        while end:
            start = max(0, end - PAGE)
            found = self._bytes(start, end).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
        return 0

    def _bytes(self, start: int, end: int) -> bytes:
        return os.pread(self._file, end - start, start) if self._file is not None else b""

    def forwards(self) -> Iterator[bytes]:
        """Every line without its end, oldest first. May be called again."""
        at, rest = 0, b""
        while at < self.end and (data := self._bytes(at, min(at + PAGE, self.end))):
            at += len(data)
            first, *more = data.split(b"\n")
            rest += first
            if more:
                yield rest
                yield from more[:-1]
                rest = more[-1]
            rest = rest if len(rest) <= _HELD else _UNREADABLE

    def copied(self) -> Iterator[bytes]:
        """The bytes of all lines, some at a time, from the beginning."""
        for start in range(0, self.end, PAGE):
            yield self._bytes(start, min(start + PAGE, self.end))

    def pages(self) -> Iterator[bytes]:
        """All lines with their ends, some at a time, the newest first; lines stand in order within a page."""
        end, rest = self.end, b""
        while end:
            start = max(0, end - PAGE)
            data = self._bytes(start, end) + rest
            # What stands before the first line's end belongs to a line that begins on the page before.
            cut = data.find(b"\n") + 1 if start else 0
            if data[cut:]:
                yield data[cut:]
            rest = data[:cut] if cut <= _HELD else _UNREADABLE + b"\n"
            end = start

    def backwards(self) -> Iterator[bytes]:
        """Every line without its end, newest first. May be called again."""
        for page in self.pages():
            yield from reversed(page.split(b"\n")[:-1])

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
