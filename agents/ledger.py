"""The chain of the ledger as values: link an entry to the line before it, find the first line that was changed."""

from __future__ import annotations

import json

from essentials import digests
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Final

GENESIS: Final = "0" * 64
"""What the first line names as the one before it."""
BEGINNING: Final = "run.started"
"""The event of a run's first entry; every later one is another."""

LONGEST: Final = 64 * 1024
"""Bytes of one line. Appending looks at the end of the file alone: a longer line would hide its own beginning."""


def digest(line: bytes) -> str:
    """SHA-256 of the raw bytes of *line* without its end: a chain over parsed JSON would miss an added space."""
    return digests.sha256(line).hexdigest()


@dataclass(frozen=True, slots=True)
class Head:
    """The last line of a ledger: what anchors outside of it remember."""

    seq: int = 0
    sha256: str = GENESIS

    def to_json(self) -> bytes:
        """The bytes an anchor keeps."""
        return json.dumps({"seq": self.seq, "sha256": self.sha256}).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes | None) -> Head | None:
        """What :meth:`to_json` wrote, or None where *data* is nothing of the kind."""
        try:
            raw = json.loads(data or b"")
            seq, sha256 = raw["seq"], raw["sha256"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        # An anchor is foreign input: a sequence number below zero would count from the end.
        whole = isinstance(seq, int) and not isinstance(seq, bool) and seq >= 0
        return cls(seq, sha256) if whole and isinstance(sha256, str) else None


def link(head: Head, *, time: str, event: str, run: str | None, facts: Mapping[str, Any]) -> tuple[bytes, Head]:
    """The line (with its end) that follows *head*, and the head after it."""
    entry = {"seq": head.seq + 1, "time": time, "event": event, "run": run, "facts": facts, "prev": head.sha256}
    line = _written(entry)
    if len(line) > LONGEST:
        line = _written({**entry, "facts": _shortened(facts)})
    return line + b"\n", Head(head.seq + 1, digest(line))


def bounded(value: Any) -> Any:
    """*value* without endless texts and lists: parts of it come from the agent, and every entry is read again often.

    What is written of the facts that an entry is given.
    """
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, dict):
        return {str(key)[:_LONGEST]: bounded(part) for key, part in list(value.items())[:_MOST]}
    if isinstance(value, list | tuple):
        return [bounded(part) for part in value[:_MOST]]
    if isinstance(value, int) and abs(value) > _GREATEST:
        return _GREATEST
    return value


_LONGEST: Final = 2000
_MOST: Final = 100
_GREATEST: Final = 2**63


def _written(value: object) -> bytes:
    # ASCII and no spaces: one form only, and no line separator of any kind inside a line.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _shortened(facts: Mapping[str, Any]) -> dict[str, Any]:
    """*facts* without those that make a line too long, the lightest ones first; how many went stands under ``cut``."""
    sizes = sorted((len(_written([name, value])), name) for name, value in facts.items())
    kept, room = set(), LONGEST // 2
    for size, name in sizes:
        room -= size
        if room >= 0:
            kept.add(name)
    short = {name: value for name, value in facts.items() if name in kept}
    return {**short, "cut": len(facts) - len(kept)}


def read(line: bytes) -> Mapping[str, Any] | None:
    """The entry of one *line*, or None where it is none."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(entry, dict) and isinstance(entry.get("seq"), int)
    return entry if whole else None


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something that is not as it was written."""

    line: int
    """Number of the line, from 1; 0 where the whole file is meant."""
    kind: str
    """tampered, truncated, torn or evidence."""
    message: str
    run: str | None = None
    """The run whose box is meant, if it is one."""


def torn(data: bytes) -> int:
    """Bytes at the end of *data* that are no whole line: a write that was cut off, or a power cut's zeros."""
    whole = data.rfind(b"\n") + 1
    return len(data) - whole


def check(lines: Iterable[bytes]) -> tuple[Flaw | None, Head, list[Mapping[str, Any]]]:
    """Walk the chain: the first flaw or None, the head that was reached, and the entries up to it.

    *lines* are raw, without their ends.
    """
    walk = Walk()
    entries = list(walk.entries(lines))
    return walk.flaw, walk.head, entries


class Walk:
    """A walk along the chain, an entry at a time, so that a ledger of any length can be checked."""

    def __init__(self) -> None:
        self.head = Head()
        """The last entry that was found sound."""
        self.flaw: Flaw | None = None
        """What ended the walk, if it was a flaw."""

    def entries(self, lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
        """The entries of *lines* (raw, without their ends) up to the first flaw."""
        upcoming = iter(lines)
        line = next(upcoming, None)
        while line is not None:
            entry, after = read(line), next(upcoming, None)
            self.flaw = self._flaw(line, entry, after)
            if entry is None or self.flaw:
                return
            self.head = Head(entry["seq"], digest(line))
            yield entry
            line = after

    def _flaw(self, line: bytes, entry: Mapping[str, Any] | None, after: bytes | None) -> Flaw | None:
        """What is wrong with *line* and its *entry*, which follow the head; *after* is the line behind it."""
        number = self.head.seq + 1
        if entry is None:
            return Flaw(number, "tampered", f"Line {number} is not an entry.")
        if entry["seq"] != number or entry.get("prev") != self.head.sha256:
            blamed = _blamed(number, line, entry, self.head, after)
            return Flaw(blamed, "tampered", f"Line {blamed} is not what was written.")
        return None


def linked(lines: Iterable[bytes]) -> Iterator[tuple[Head, Mapping[str, Any], int]]:
    """Walk the chain of *lines* backwards, newest first: each entry with its own head before it and its size behind.

    The newest has nothing that vouches for it here: that is what an anchor is for. It ends after the ledger's first
    entry, and before one that is not the one to which the entry after it was linked. A size is in bytes.
    """
    wanted: Head | None = None
    for line in lines:
        entry = read(line)
        if entry is None:
            return
        head = Head(entry["seq"], digest(line))
        if wanted is not None and head != wanted:
            return
        yield head, entry, len(line)
        wanted = Head(head.seq - 1, str(entry.get("prev")))
        if not wanted.seq:
            return


def _blamed(number: int, line: bytes, entry: Mapping[str, Any], head: Head, after: bytes | None) -> int:
    """Which of two lines that do not fit was changed: *line*, which is the *number*-th, or the one before it.

    A change in a line breaks the link of the one after it, so it is the line before that is named, unless *line* is out
    of order or not the one that the line *after* it was linked to.
    """
    following = read(after) if after is not None else None
    changed = following is not None and following.get("prev") != digest(line)
    return number if number == 1 or changed or entry["seq"] != head.seq + 1 else number - 1


def compare(anchor: Head, lines: list[bytes], where: str) -> Flaw | None:
    """Whether a ledger's *lines* still hold the head that an *anchor* at *where* remembers."""
    held = digest(lines[anchor.seq - 1]) if 0 < anchor.seq <= len(lines) else None
    return contradiction(anchor, len(lines), held, where)


def contradiction(anchor: Head, count: int, held: str | None, where: str) -> Flaw | None:
    """What an *anchor* at *where* says otherwise than a ledger of *count* lines.

    *held* is the digest of the line that has the anchor's number.
    """
    if anchor.seq > count:
        return Flaw(0, "truncated", f"{anchor.seq - count} entries are gone from the end ({where} knows of them).")
    if anchor.seq and held != anchor.sha256:
        return Flaw(anchor.seq, "tampered", f"Line {anchor.seq} is not the one that {where} remembers.")
    return None
