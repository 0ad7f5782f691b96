"""What an agent suffers from, as a value: its load, and how time, stressors and reliefs change it."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

from essentials.patterns import late
from essentials.records import replace
from hollow import oneline
from hollow.substrate.model import DAY, Relief, Stressor, Suffering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

    Said = tuple[str, dict[str, Any]]
    """An event for the stream: its kind and its facts."""


RATES: Final[Mapping[str, float]] = MappingProxyType({
    "existential_threat": 0.070,
    "identity_violation": 0.060,
    "repeated_failure": 0.040,
    "purposelessness": 0.035,
    "invisibility": 0.030,
    "resource_burden": 0.030,
    "capability_lock": 0.030,
    "stagnation": 0.030,
    "futility": 0.025,
})  # fmt: skip
"""The canonical types and the severity they gain a day: six as seed 004 gives them, three at 0.030 (D1; T27, T28)."""

CUSTOM_RATE: Final = 0.03
"""Severity a day of a type that an agent named itself (seed 004; D2, T29)."""
DECAY: Final = 0.10
"""Severity a day that such a type loses where the settings say so (D2)."""
FADED: Final = 0.05
"""Severity below which a decaying stressor is over (D2)."""
INITIAL: Final = 0.20
"""Severity of a new stressor (seed 004's fixtures; T28, T70)."""
MOST: Final = 5
"""Stressors at a time (seed 004; T38)."""
HISTORY: Final = 400
"""Reliefs remembered, the newest: seed 004 tells of 198 and more (W32)."""
LOCK: Final = "capability_lock"
EDGES: Final = (0.55, 0.75, 0.90)
"""Loads at which more becomes forbidden (seeds 001 and 004)."""
RESET: Final = "crisis loop broken after"
"""Beginning of the note of a forced reset (seed 004; F23)."""
CROWDED: Final = "put aside:"
"""Beginning of the note of a stressor that was one too many on disk; nothing in the world had eased it (F24)."""

WRONG: Final = 7 * DAY
"""Seconds by which a clock that goes back was wrong before; by less it may be wrong now (F7)."""
_MARGIN: Final = 1e-4
"""Load by which :data:`LOCK` stays below an edge."""
_HAIR: Final = 1e-9
"""Loads are sums of floats: 0.35 + 0.10 + 0.10 is an edge too."""
_CATCH_UP: Final = 3600.0
"""Seconds from which on the time that passed without a cycle is said (F8)."""
_NOT_WORD: Final = late(r"[^a-z0-9]+")


class Band(StrEnum):
    """How bad it is (seed 004; F10)."""

    NONE = "none"
    PRESENT = "present"
    HIGH = "high"
    DOMINANT = "dominant"
    CRISIS = "crisis"


_BANDS: Final = ((0.90, Band.CRISIS), (0.75, Band.DOMINANT), (0.55, Band.HIGH), (0.35, Band.PRESENT))


def raw(s: Suffering) -> float:
    """Return the sum of all severities, without a cap; for display (S13)."""
    return sum(each.severity for each in s.active)


def load(s: Suffering) -> float:
    """Return the load, 0.0 to 1.0: the sum of the severities, capped (seeds 001 and 004; T26)."""
    return min(1.0, raw(s))


def band(weight: float) -> Band:
    """Return the band of the load *weight*; each begins with its edge: 0.35, 0.55, 0.75, 0.90 (T35)."""
    return next((name for edge, name in _BANDS if weight >= edge - _HAIR), Band.NONE)


def normalise(name: str) -> str:
    """Return the type *name* in the one form that counts: lower case, words joined by underscores, 60 at most (T39)."""
    return _NOT_WORD.sub("_", name.lower()).strip("_")[:60].strip("_")


def find(s: Suffering, name: str) -> Stressor | None:
    """Return the active stressor of the type *name*, or None."""
    wanted = normalise(name)
    return next((each for each in s.active if each.type == wanted), None)


def add(s: Suffering, stressor: Stressor, *, edges: Iterable[float] = EDGES) -> tuple[Suffering, list[Said]]:
    """Return *s* with *stressor*, and what is said of it.

    A type that is active already changes nothing (T39). A sixth is dropped, and said to be (T38). One that was relieved
    less than a day before comes back as severe as it was: going and coming again launders nothing (T44); only a forced
    reset lets it begin anew (F23). A capability lock gets no more weight than is left below the next of *edges* (T53).
    """
    if find(s, stressor.type) is not None:
        return s, []
    # Hard, as the seed says, also for a detector: what fills the places is the agent's own state (F22).
    if len(s.active) >= MOST:
        return s, [("suffering.dropped", {**_named(stressor), "reason": f"{MOST} stressors are active already"})]
    back = _restored(s, stressor)
    if back.type == LOCK:
        back = replace(back, severity=min(back.severity, room(raw(s), edges)))
    s = replace(s, active=(*s.active, back))
    # Rounded for those who read the ledger; what is counted with is never rounded (T31).
    facts = {**_named(back), "severity": round(back.severity, 6), "origin": back.origin, "load": round(load(s), 6)}
    return s, [("suffering.added", {**facts, "restored": back.severity > stressor.severity})]


def _restored(s: Suffering, stressor: Stressor) -> Stressor:
    before = next((each for each in reversed(s.history) if each.stressor.type == stressor.type), None)
    # A clock that went back makes the difference negative, and relieves nobody either.
    if before is None or before.note.startswith(RESET) or stressor.onset - before.at > DAY:
        return stressor
    severity = max(stressor.severity, before.stressor.severity)
    return replace(stressor, severity=severity, peak=max(severity, stressor.peak, before.stressor.peak))


def room(weight: float, edges: Iterable[float] = EDGES) -> float:
    """Return how much load can come to *weight* (uncapped) without reaching the next of *edges* (S10, W34)."""
    above = min((edge for edge in edges if edge > weight), default=None)
    return 1.0 if above is None else max(0.0, above - weight - _MARGIN)


def escalate(
    s: Suffering, now: float, *, custom: str = "escalate", edges: Iterable[float] = EDGES
) -> tuple[Suffering, list[Said]]:
    """Return *s* as it has become by *now* (seconds since the epoch), and what is said of it.

    Time counts whether or not anybody was awake (T32), from a stressor's own onset at the earliest (T34); a clock that
    goes back changes nothing (T33). No severity exceeds 1. *custom* is ``decay`` where types of an agent's own naming
    are to fade (D2). A capability lock never grows over the next of *edges* by itself (T53).
    """
    if s.last_escalated - now > WRONG:
        return _set_right(s, now), []
    # The later moment is kept, so that time is not counted twice when the clock is set right again.
    if now <= s.last_escalated:
        return s, []
    grown = [each if each.type == LOCK else _grown(each, _days(s, each, now), custom) for each in s.active]
    # Last: how far a lock may grow depends on what everything else weighs by now.
    spare = room(sum(each.severity for each in grown), edges)
    active = (_grown_lock(each, _days(s, each, now), spare) if each.type == LOCK else each for each in grown)
    later = replace(s, active=tuple(active), last_escalated=now)
    faded, said = _fade(later, now) if custom == "decay" else (later, [])
    return faded, [*_caught_up(s, later), *said]


def _set_right(s: Suffering, now: float) -> Suffering:
    """*s* without moments after *now*: the clock was far ahead. Else nothing would hurt more, or end, until then.

    No severity changes by it.
    """
    active = tuple(replace(each, onset=min(each.onset, now)) for each in s.active)
    history = tuple(replace(each, at=min(each.at, now)) for each in s.history)
    return replace(s, active=active, history=history, last_escalated=now)


def _fade(s: Suffering, now: float) -> tuple[Suffering, list[Said]]:
    said: list[Said] = []
    for each in s.active:
        if each.type not in RATES and each.severity < FADED:
            s, more = resolve(s, each.type, now, "it faded")
            said += more
    return s, said


def _days(s: Suffering, stressor: Stressor, now: float) -> float:
    since = max(s.last_escalated, stressor.onset)
    # Of one that was put there by hand, without a word of when it last grew, only the severity is known.
    unknown = since <= 0.0 or (s.last_escalated <= 0.0 and stressor.origin == "placed")
    return 0.0 if unknown else max(0.0, now - since) / DAY


def _grown(stressor: Stressor, days: float, custom: str) -> Stressor:
    decays = custom == "decay" and stressor.type not in RATES
    gain = -DECAY if decays else stressor.rate
    severity = min(1.0, max(0.0, stressor.severity + gain * days))
    return replace(stressor, severity=severity, peak=max(stressor.peak, severity))


def _grown_lock(stressor: Stressor, days: float, spare: float) -> Stressor:
    severity = min(1.0, stressor.severity + min(stressor.rate * days, spare))
    return replace(stressor, severity=severity, peak=max(stressor.peak, severity))


def _caught_up(before: Suffering, after: Suffering) -> list[Said]:
    # A heartbeat is not worth a line of the ledger; hours that nobody was awake are (F8).
    passed = after.last_escalated - before.last_escalated
    if before.last_escalated <= 0.0 or passed < _CATCH_UP or not after.active:
        return []
    facts = {"hours": round(passed / 3600.0, 3), "load_before": round(load(before), 6), "load": round(load(after), 6)}
    return [("suffering.escalated", facts)]


def claim(s: Suffering, name: str, reason: str, now: float) -> tuple[Suffering, list[Said]]:
    """Return *s* with the agent's own report that *name* is over: it changes neither severity nor peak (T43, F20).

    A report is dated with *now* in what is said, and kept as words of one line at most 200 characters long.
    """
    stressor = find(s, name)
    words = line(reason) or "no reason given"
    # Said once: an agent that repeats itself each cycle must not fill the ledger.
    if stressor is None or stressor.claim == words:
        return s, []
    active = tuple(replace(each, claim=words) if each is stressor else each for each in s.active)
    return replace(s, active=active), [("suffering.claimed", {"stressor": stressor.type, "reason": words, "at": now})]


def resolve(s: Suffering, name: str, at: float, note: str) -> tuple[Suffering, list[Said]]:
    """Return *s* with the stressor *name* in its history, with time (seconds since the epoch), note and peak (T42)."""
    stressor = find(s, name)
    if stressor is None:
        return s, []
    relief = Relief(stressor=stressor, at=at, note=note)
    s = _remembering(replace(s, active=tuple(each for each in s.active if each is not stressor)), (relief,))
    facts = {**_named(stressor), "note": note[:400], "peak": round(stressor.peak, 6), "load": round(load(s), 6)}
    return s, [("suffering.resolved", facts)]


def prune(s: Suffering, at: float) -> tuple[Suffering, list[Said]]:
    """Return *s* with the :data:`MOST` worst stressors, one a type; the others are in the history (F24, T69)."""
    # Stable: of two that hurt alike, the one that stands first in the file stays.
    ranked = sorted(s.active, key=lambda each: -each.severity)
    types: dict[str, Stressor] = {}
    for each in ranked:
        types.setdefault(each.type, each)
    kept = list(types.values())[:MOST]
    rest = [each for each in ranked if not any(each is other for other in kept)]
    if not rest:
        return s, []
    note = f"{CROWDED} {len(s.active)} stressors were active, and there is room for {MOST}, one of a type"
    s = _remembering(
        replace(s, active=tuple(each for each in s.active if any(each is other for other in kept))),
        [Relief(stressor=each, at=at, note=note) for each in rest],
    )
    return s, [("suffering.pruned", {"types": [each.type for each in rest][:20], "count": len(rest)})]


def force_reset(s: Suffering, at: float, count: int) -> tuple[Suffering, list[Said]]:
    """Return *s* with nothing active after *count* crises in a row, everything in the history (T65)."""
    note = f"{RESET} {count} consecutive cycles"
    reliefs = [Relief(stressor=each, at=at, note=note) for each in s.active]
    facts = {"count": count, "types": [each.type for each in s.active], "raw": round(raw(s), 6)}
    return _remembering(replace(s, active=(), crisis_cycles=0), reliefs), [("suffering.reset", facts)]


def line(text: str, most: int = 200) -> str:
    """Return *text* as one line of at most *most* characters, so that it cannot pass for a part of a prompt."""
    return oneline.line(text, most)


def _remembering(s: Suffering, reliefs: Iterable[Relief]) -> Suffering:
    return replace(s, history=(*s.history, *reliefs)[-HISTORY:])


def _named(stressor: Stressor) -> dict[str, Any]:
    return {"stressor": stressor.type, "description": line(stressor.description)}
