"""A bounded log of messages with a number each, and how far every reader has come: nothing is lost by reading it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TypeGuard

    from hollow.memory.files import Files

KEPT: Final = 200
"""Newest lines that stay when the log is compacted, which is when there are twice as many."""


class NumberedLog:
    """The log *name* and, beside it, the file *cursors* with the number up to which each reader has read (W12).

    The number stands in each line as ``n``, so that it outlives compaction; lines that somebody placed by hand have
    none and count on from the one before. Reading moves no cursor: whoever could not use what it read sees it again.
    *kept* is how many lines stay at least.
    """

    def __init__(self, files: Files, name: str, cursors: str, kept: int = KEPT) -> None:
        self._files = files
        self._name = name
        self._cursors = cursors
        self._kept = kept

    def lines(self) -> list[tuple[int, dict[str, Any]]]:
        """Return every line with its number, oldest first."""
        found: list[tuple[int, dict[str, Any]]] = []
        last = 0
        for line in self._files.lines(self._name):
            given = line.get("n")
            last = given if _counts(given) and given > last else last + 1
            found.append((last, line))
        return found

    def unread(self, reader: str) -> list[tuple[int, dict[str, Any]]]:
        """Return what *reader* has not acknowledged, oldest first."""
        return _after(self.lines(), self._cursor(reader))

    def append(self, line: dict[str, Any]) -> int:
        """Append *line* under the lock, which the caller holds; returns its number. Old lines go beyond a bound."""
        before = self.lines()
        number = before[-1][0] + 1 if before else 1
        if len(before) >= 2 * self._kept:
            self._files.compact(self._name, [{**each, "n": at} for at, each in before[-self._kept + 1 :]])
        self._files.append(self._name, {**line, "n": number})
        return number

    def acknowledge(self, reader: str, upto: int) -> None:
        """Note under the lock, which the caller holds, that *reader* has used everything up to number *upto*."""
        lines = self.lines()
        last = lines[-1][0] if lines else 0
        known = self._known()
        # Never beyond what is there, or the next message would count as read before it was written.
        reached = min(upto, last)
        if reached > self._cursor(reader) or known.get(reader, 0) > last:
            self._files.write(self._cursors, {**known, reader: max(0, reached)})

    def _cursor(self, reader: str) -> int:
        return self._known().get(reader, 0)

    def _known(self) -> dict[str, int]:
        value = self._files.read(self._cursors).value
        return {str(name): at for name, at in value.items() if _counts(at)} if isinstance(value, dict) else {}


def _after(lines: list[tuple[int, dict[str, Any]]], cursor: int) -> list[tuple[int, dict[str, Any]]]:
    # A cursor beyond the end belongs to a log that somebody has replaced: what stands there now was read by nobody.
    cursor = cursor if lines and cursor <= lines[-1][0] else 0
    return [(number, line) for number, line in lines if number > cursor]


def _counts(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
