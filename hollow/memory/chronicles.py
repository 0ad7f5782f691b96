"""Each agent's chronicle on disk: ``chronicle/<agent>.jsonl``, a bounded window of what happened to it."""

from __future__ import annotations

import json
from collections import Counter

from hollow.memory.moments import seconds
from hollow.substrate.chronicle import Chronicle
from hollow.substrate.model import Happening, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from hollow.memory.files import Files

LIMIT: Final = 256 * 1024
"""Bytes from which on a chronicle is compacted, so that a cycle costs the same after years (W32)."""
KEPT: Final = 80
"""Happenings of one kind that survive: twice the window of goals. A flood of steps cannot wash away what is rare."""
KEPT_CYCLES: Final = 400
"""The same for cycles, which the settings may count far back."""
_LONGEST: Final = 500
"""Characters of one text in a happening."""
_KINDS: Final = {each.value: each for each in Kind}


class Chronicles:
    """The chronicles of all agents. Only what was done gets in here, and no capability can name a path here (W5)."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def read(self, agent: str) -> Chronicle:
        """Return the window of *agent*, oldest first; entries that are none, and unknown kinds, are left out."""
        return Chronicle(tuple(self._happenings(agent)))

    def add(self, agent: str, happenings: Iterable[Happening]) -> None:
        """Append *happenings* as one line, on disk when this returns: all of them or, after a kill, none.

        Raises :class:`hollow.memory.files.MemoryFault`.
        """
        records = [_record(each) for each in happenings]
        if not records:
            return
        name = _name(agent)
        with self._files.hold():
            self._files.append(name, records[0] if len(records) == 1 else {"happenings": records})
            # By size, which costs nothing to know: counting lines would mean reading them at every cycle.
            if (self._files.root / name).stat().st_size > LIMIT:
                self._files.compact(name, _window([_record(each) for each in self._happenings(agent)]))

    def _happenings(self, agent: str) -> list[Happening]:
        read = (_happening(each) for line in self._files.lines(_name(agent)) for each in _several(line))
        return [each for each in read if each is not None]


def _name(agent: str) -> str:
    return f"chronicle/{agent}.jsonl"


def _window(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest :data:`KEPT` of each kind of *records*, and of these the newest that fill half of :data:`LIMIT`."""
    seen: Counter[str] = Counter()
    kept: list[dict[str, Any]] = []
    size = 0
    # From the newest back, so that what is left out is always the oldest of its kind.
    for each in reversed(records):
        kind = each["kind"]
        seen[kind] += 1
        if seen[kind] > (KEPT_CYCLES if kind == Kind.CYCLE else KEPT):
            continue
        size += len(json.dumps(each)) + 1
        if size > LIMIT // 2:
            break
        kept.append(each)
    return kept[::-1]


def _several(line: dict[str, Any]) -> list[Any]:
    many = line.get("happenings")
    return many if isinstance(many, list) else [line]


# --- One happening ----------------------------------------------------------------------------------------------------


def _record(happening: Happening) -> dict[str, Any]:
    # Detectors read a few words; whole documents stay where they are.
    facts = {key: value[:_LONGEST] if isinstance(value, str) else value for key, value in happening.facts.items()}
    # A number and no date: thousands of these are read in every cycle.
    return {"kind": happening.kind.value, "at": round(happening.at, 6), "cycle": happening.cycle, "facts": facts}


def _happening(record: Any) -> Happening | None:
    """The happening in *record*, or None where it is none: one damaged entry costs no other."""
    if not isinstance(record, dict):
        return None
    named, at, facts = record.get("kind"), seconds(record.get("at")), record.get("facts", {})
    kind = _KINDS.get(named) if isinstance(named, str) else None
    if kind is None or at is None or not isinstance(facts, dict):
        return None
    return Happening(kind=kind, at=at, cycle=str(record.get("cycle", "")), facts=facts)
