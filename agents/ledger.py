"""The chain of the ledger as values: link an entry to the line before it, find the first line that was changed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GENESIS: Final = "0" * 64
"""What the first line names as the one before it."""


LONGEST: Final = 64 * 1024
"""Bytes of one line. Appending looks at the end of the file alone: a longer line would hide its own beginning."""


def digest(line: bytes) -> str:
    """SHA-256 of the raw bytes of *line* without its end: a chain over parsed JSON would miss an added space."""
    return hashlib.sha256(line).hexdigest()


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
    head = Head()
    entries: list[Mapping[str, Any]] = []
    upcoming = iter(lines)
    line = next(upcoming, None)
    while line is not None:
        entry, after = read(line), next(upcoming, None)
        number = len(entries) + 1
        if entry is None:
            return Flaw(number, "tampered", f"Line {number} is not an entry."), head, entries
        if entry["seq"] != head.seq + 1 or entry.get("prev") != head.sha256:
            blamed = _blamed(number, line, entry, head, after)
            return Flaw(blamed, "tampered", f"Line {blamed} is not what was written."), head, entries
        head = Head(entry["seq"], digest(line))
        entries.append(entry)
        line = after
    return None, head, entries


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
    if anchor.seq > len(lines):
        return Flaw(0, "truncated", f"{anchor.seq - len(lines)} entries are gone from the end ({where} knows of them).")
    if anchor.seq and digest(lines[anchor.seq - 1]) != anchor.sha256:
        return Flaw(anchor.seq, "tampered", f"Line {anchor.seq} is not the one that {where} remembers.")
    return None
