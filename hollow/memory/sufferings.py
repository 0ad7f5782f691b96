"""Each agent's suffering on disk: ``identity/<agent>/suffering.json``, with the field names of seed 004."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from hollow.memory.moments import iso, seconds
from hollow.substrate.model import Relief, Stressor, Suffering
from hollow.substrate.suffering import CUSTOM_RATE, HISTORY, INITIAL, RATES, line, normalise, prune

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    from hollow.memory.files import Files

    Said = tuple[str, dict[str, Any]]

SCHEMA: Final = 1
_FASTEST: Final = 10.0
"""Severity a day; a rate on disk beyond it is no rate."""
_KNOWN: Final = frozenset(
    {"active_stressors", "resolved_history", "last_escalated", "crisis_cycles", "schema", "agent_id"}
)


class Sufferings:
    """The sufferings of all agents. No capability can name a path here: what hurts cannot be written away (W5)."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def load(self, agent: str) -> tuple[Suffering, bool]:
        """Return what *agent* suffers from, and whether its file was damaged, so that its load is not to be trusted.

        A damaged file is put aside and its last good copy returned; without one nothing is known, and whoever asks
        must fail closed (T60). Values that make no sense are replaced or left out one by one. A file with more
        stressors than there is room for keeps the worst (T69). Raises :class:`hollow.memory.files.MemoryFault`.
        """
        name = _name(agent)
        found = self._files.read(name)
        if found.damaged:
            # Once more under the lock, where the file is put aside and its last good copy put back.
            with self._files.hold():
                found = self._files.read(name)
            return _suffering(agent, found.value), True
        strange = found.value is not None and not _shaped(found.value)
        if strange:
            self._put_aside(name, found.value)
        return _suffering(agent, found.value), strange

    def look(self, agent: str) -> tuple[Suffering, bool]:
        """Return what :meth:`load` would, and change nothing: what is damaged is its owner's to find so (T60)."""
        found = self._files.read(_name(agent))
        strange = found.value is not None and not _shaped(found.value)
        return _suffering(agent, found.value), found.damaged or strange

    def save(self, s: Suffering) -> None:
        """Put *s* on disk; keys of the file that are not ours stay. Raises :class:`hollow.memory.files.MemoryFault`."""
        with self._files.hold():
            self._write(s)

    def change(self, agent: str, act: Callable[[Suffering], Suffering]) -> Suffering:
        """Put on disk what *act* makes of that which *agent* suffers now, and return it.

        It is one step: a task and a cycle of the same agent may be at it at once. *act* must not use the memory.
        Raises :class:`hollow.memory.files.MemoryFault`.
        """
        with self._files.hold():
            changed = act(_suffering(agent, self._files.read(_name(agent)).value))
            self._write(changed)
        return changed

    def feel(
        self, agent: str, act: Callable[[Suffering], tuple[Suffering, list[Said]]]
    ) -> tuple[Suffering, list[Said]]:
        """As :meth:`change`, for an *act* that has something to say of it: what *agent* suffers now, and its words.

        The words come back to the caller, to be said when the lock is let go.
        """
        said: list[Said] = []

        def change(felt: Suffering) -> Suffering:
            """Change *felt*, and keep the words."""
            changed, told = act(felt)
            said.extend(told)
            return changed

        return self.change(agent, change), said

    def _write(self, s: Suffering) -> None:
        before = self._files.read(_name(s.agent)).value
        others = {key: value for key, value in before.items() if key not in _KNOWN} if _shaped(before) else {}
        document = {**others, **_document(s)}
        # Most looks at what an agent suffers change nothing, and a write waits for the disk.
        if document != before:
            self._files.write(_name(s.agent), document)

    def _put_aside(self, name: str, value: Any) -> None:
        """Keep a file that is JSON but no suffering: the next save replaces it, and it may be all that is known."""
        kept = f"quarantine/{name.replace('/', '_')}.shape"
        with self._files.hold():
            self._files.write_bytes(kept, json.dumps(value, ensure_ascii=True).encode() + b"\n")


def _name(agent: str) -> str:
    return f"identity/{agent}/suffering.json"


def _shaped(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(key, []), list) for key in ("active_stressors", "resolved_history")
    )


# --- From disk --------------------------------------------------------------------------------------------------------


def _suffering(agent: str, value: Any) -> Suffering:
    data = value if _shaped(value) else {}
    last = _time(data.get("last_escalated"))
    entries = [each for each in data.get("active_stressors", []) if _named(each)]
    past = [each for each in data.get("resolved_history", []) if _named(each)]
    # A resolved one among the active ones is a hand's slip, and is history.
    past += [each for each in entries if each.get("resolved") is True]
    s = Suffering(
        agent=agent,
        active=tuple(_stressor(each, last) for each in entries if each.get("resolved") is not True),
        history=tuple(_relief(each, last) for each in past)[-HISTORY:],
        last_escalated=last,
        crisis_cycles=_count(data.get("crisis_cycles")),
    )
    pruned, _said = prune(s, max([last, *(each.onset for each in s.active)]))
    return pruned


def _named(entry: Any) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("type"), str) and bool(normalise(entry["type"]))


def _stressor(entry: Mapping[str, Any], last: float) -> Stressor:
    kind = normalise(entry["type"])
    # Unknown, it is taken for what a new one has: forgetting a number must not be a relief.
    severity = min(1.0, _number(entry.get("severity"), INITIAL))
    rate = _number(entry.get("escalation_per_day"), CUSTOM_RATE)
    return Stressor(
        type=kind,
        description=_text(entry, "description", 300) or kind.replace("_", " "),
        severity=severity,
        # Without an onset it is as old as the last time that everything grew: no older evidence ends it.
        onset=_time(entry.get("onset")) or last,
        condition=_text(entry, "observable_condition", 300) or _text(entry, "condition", 300),
        # Of the nine the environment knows the rate; a slower one on disk would be a relief that nobody earned.
        rate=RATES.get(kind, rate if rate <= _FASTEST else CUSTOM_RATE),
        peak=max(severity, min(1.0, _number(entry.get("peak_severity"), severity))),
        # A tuple: what stands there need not be something that a set can look for.
        origin=entry["origin"] if entry.get("origin") in ("system", "agent") else "placed",
        claim=_text(entry, "claim", 200),
    )


def _relief(entry: Mapping[str, Any], last: float) -> Relief:
    at = _time(entry.get("resolved_at")) or last
    return Relief(stressor=_stressor(entry, at), at=at, note=_text(entry, "resolution_note", 400))


def _text(entry: Mapping[str, Any], key: str, most: int) -> str:
    value = entry.get(key)
    return line(value, most) if isinstance(value, str) else ""


def _number(value: Any, default: float) -> float:
    """*value* as a number of at least 0, also where somebody wrote it in quotes; *default* where it is none."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else default
    except (ValueError, OverflowError):
        return default
    # JSON as Python writes it has NaN and Infinity too; a load with either would open or close every lock.
    return number if math.isfinite(number) and number >= 0.0 else default


def _count(value: Any) -> int:
    return int(min(_number(value, 0.0), 1e6))


def _time(value: Any) -> float:
    return seconds(value) or 0.0


# --- To disk ----------------------------------------------------------------------------------------------------------


def _document(s: Suffering) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "agent_id": s.agent,
        "active_stressors": [_entry(each) for each in s.active],
        "resolved_history": [
            {**_entry(each.stressor), "resolved": True, "resolved_at": iso(each.at), "resolution_note": each.note}
            for each in s.history
        ],
        "last_escalated": iso(s.last_escalated) if s.last_escalated else None,
        "crisis_cycles": s.crisis_cycles,
    }


def _entry(stressor: Stressor) -> dict[str, Any]:
    return {
        "type": stressor.type,
        "description": stressor.description,
        "severity": stressor.severity,
        "onset": iso(stressor.onset),
        "escalation_per_day": stressor.rate,
        "observable_condition": stressor.condition,
        "resolved": False,
        "resolved_at": None,
        "resolution_note": "",
        "peak_severity": stressor.peak,
        "origin": stressor.origin,
        "claim": stressor.claim,
    }
