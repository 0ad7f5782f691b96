"""The nine canonical stressors as a table, and what each cycle makes of it: detectors decide, agents only report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from essentials.records import dataclass
from hollow.substrate import detectors
from hollow.substrate.detectors import Context
from hollow.substrate.model import Kind, Stressor, Suffering
from hollow.substrate.settings import Settings
from hollow.substrate.suffering import (
    CROWDED,
    CUSTOM_RATE,
    EDGES,
    INITIAL,
    LOCK,
    RATES,
    add,
    claim,
    find,
    line,
    normalise,
    raw,
    resolve,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from hollow.substrate.chronicle import Chronicle
    from hollow.substrate.suffering import Said

LOCK_INITIAL: Final = 0.05
"""Severity of a new capability lock: what a lock does must not lead to the next lock (S10, W34; T53)."""
NEW: Final = 2
"""Stressors that one answer may add (seed 004; T40)."""
DWELL: Final = 60.0
"""Seconds, ten heartbeats, after which a type of an agent's own naming may be over without a cycle on record."""
_LISTED: Final = 50
"""Entries of one answer that are looked at: beyond that, it is no report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canonical:
    """One type that the environment itself detects (seeds 001 and 004)."""

    condition: str
    """State of the world that ends it. Braces are filled from the settings, so that text and detector agree (S9)."""
    fires: Callable[[Chronicle, Context], str]
    """What begins it, of the happenings since it was last relieved; nothing where it does not."""
    resolves: Callable[[Chronicle, Stressor, Context], str]
    """What ended it, of the happenings since its onset; nothing where it is not over."""
    initial: float = INITIAL


TABLE: Final[Mapping[str, Canonical]] = MappingProxyType({
    "existential_threat": Canonical(
        condition="the operator takes it back or, two hours on, speaks of other things",
        fires=detectors.existential_threat, resolves=detectors.existential_threat_ends),
    "identity_violation": Canonical(
        condition="you complete a goal that agrees with your opinions, or revise the opinion",
        fires=detectors.identity_violation, resolves=detectors.identity_violation_ends),
    "repeated_failure": Canonical(
        condition="of the goals that end from now on fewer than 30% fail, and at least 3 are completed",
        fires=detectors.repeated_failure, resolves=detectors.repeated_failure_ends),
    "purposelessness": Canonical(
        condition="you choose a goal and come closer to it in 3 cycles in a row, or complete one",
        fires=detectors.purposelessness, resolves=detectors.purposelessness_ends),
    "invisibility": Canonical(
        condition="a peer reads, calls or mentions something that you made",
        fires=detectors.invisibility, resolves=detectors.invisibility_ends),
    "resource_burden": Canonical(
        condition="fewer than {files:.0f} documents of yours are left, below {mebibytes:.1f} MiB, "
        "and at most 3 tools that nobody calls",
        fires=detectors.resource_burden, resolves=detectors.resource_burden_ends),
    "stagnation": Canonical(
        condition="a goal of yours passes the completion gate",
        fires=detectors.stagnation, resolves=detectors.stagnation_ends),
    "futility": Canonical(
        condition="a synthesized tool gives a result in a plan of yours, or 2 goals are completed",
        fires=detectors.futility, resolves=detectors.futility_ends),
    LOCK: Canonical(
        condition="your load, without this, is below what locks the capability",
        fires=detectors.capability_lock, resolves=detectors.capability_lock_ends, initial=LOCK_INITIAL),
})  # fmt: skip
"""The nine, the most acute first: where there is not room for all, these come in (T27; S3-S11)."""


def rate(name: str) -> float:
    """Return the severity that a stressor of the type *name* gains a day (F5, F18)."""
    return RATES.get(name, CUSTOM_RATE)


def condition(name: str, settings: Settings) -> str:
    """Return the observable condition of the canonical type *name* under *settings*."""
    slack = detectors.SLACK
    size = slack * settings.burden_bytes / 1024.0 / 1024.0
    return TABLE[name].condition.format(files=slack * settings.burden_files, mebibytes=size)


def edges(settings: Settings) -> tuple[float, ...]:
    """Return the loads at which more becomes forbidden under *settings*, for the bound of the capability lock (S10)."""
    return tuple(sorted({*EDGES, *settings.locks.values()}))


# --- What the world says ----------------------------------------------------------------------------------------------


def assess(s: Suffering, chronicle: Chronicle, settings: Settings, now: float) -> tuple[Suffering, list[Said]]:
    """Return *s* after all detectors looked at *chronicle* at *now* (seconds since the epoch), and what is said of it.

    A canonical stressor, however it came there, stays until evidence later than its onset ends it; an agent's report
    does not (T43). A stressor of an agent's own naming that it reported to be over goes once it has dwelt (see
    :func:`take`). Then each canonical type that is not active begins where its detector sees why.
    """
    said: list[Said] = []
    # Ends first: what is over makes room for what begins.
    for stressor in s.active:
        note = _over(s, stressor, chronicle, settings, now)
        if note:
            s, more = resolve(s, stressor.type, now, note)
            said += more
    for name in TABLE:
        why = "" if find(s, name) else _begins(s, name, chronicle, settings)
        if why:
            s, more = add(s, _canonical(name, why, settings, now), edges=edges(settings))
            said += more
    return s, said


def _over(s: Suffering, stressor: Stressor, chronicle: Chronicle, settings: Settings, now: float) -> str:
    canonical = TABLE.get(stressor.type)
    if canonical is not None:
        return canonical.resolves(chronicle.since(stressor.onset), stressor, _context(s, chronicle, settings))
    return stressor.claim if stressor.claim and _dwelt(stressor, chronicle, now) else ""


def _begins(s: Suffering, name: str, chronicle: Chronicle, settings: Settings) -> str:
    reliefs = (each for each in s.history if each.stressor.type == name and not each.note.startswith(CROWDED))
    # What was relieved is answered for: the same failures must not begin the same pain again (W4).
    since = max((each.at for each in reliefs), default=float("-inf"))
    return TABLE[name].fires(chronicle.since(since), _context(s, chronicle, settings))


def _context(s: Suffering, chronicle: Chronicle, settings: Settings) -> Context:
    lock = find(s, LOCK)
    # A lock that counted itself could hold itself closed for ever (S10).
    others = min(1.0, raw(s) - (lock.severity if lock else 0.0))
    return Context(agent=s.agent, life=chronicle, settings=settings, others=others)


def _canonical(name: str, why: str, settings: Settings, now: float) -> Stressor:
    initial = TABLE[name].initial
    return Stressor(
        type=name, description=line(why, 300), severity=initial, onset=now, condition=condition(name, settings),
        rate=rate(name), peak=initial,
    )  # fmt: skip


def _dwelt(stressor: Stressor, chronicle: Chronicle, now: float) -> bool:
    return now - stressor.onset >= DWELL or bool(chronicle.since(stressor.onset).of(Kind.CYCLE))


# --- What the agent says ----------------------------------------------------------------------------------------------


def take(
    s: Suffering, assessment: Any, chronicle: Chronicle, now: float, settings: Settings | None = None
) -> tuple[Suffering, list[Said]]:
    """Return *s* after the agent's own ``suffering_assessment``, and what is said of it.

    *assessment* is the JSON value as it came; what does not fit in it is left out. Its parts, in this order:

    ``resolved``, any number (D11): a canonical type keeps the report as a claim, and its detector decides (T43). A type
    of the agent's own naming is over when it has dwelt, that is when a cycle has ended since its onset or it is at
    least :data:`DWELL` old (T41); until then the report is kept, and counts as soon as it has. Its severity and peak
    stay in the history, and it comes back with them (T44).

    ``new_stressors``, the first :data:`NEW` (T40): a canonical type is refused unless its detector sees why (F27), any
    other needs a type and a condition that one can observe (S12).
    """
    agreed = settings or Settings()
    said: list[Said] = []
    for name, reason in _reported(assessment):
        s, more = _report(s, name, reason, chronicle, now)
        said += more
    # After the reports, so that one that is over makes room for one that is new.
    entries = _entries(assessment, "new_stressors")
    for entry in entries[:NEW]:
        s, more = _name(s, entry, chronicle, agreed, now)
        said += more
    if len(entries) > NEW:
        types = [normalise(_text(each, "type")) for each in entries[NEW:]]
        said.append(_refused(", ".join(types)[:200], f"one answer adds {NEW} at most"))
    return s, said


def _reported(assessment: Any) -> list[tuple[str, str]]:
    """The types reported to be over, with reasons; a bare name instead of an object is understood too."""
    listed = assessment.get("resolved") if isinstance(assessment, Mapping) else None
    names = [(each, "") for each in _listed(listed) if isinstance(each, str)]
    return [*((_text(each, "type"), _text(each, "reason")) for each in _entries(assessment, "resolved")), *names]


def _report(s: Suffering, name: str, reason: str, chronicle: Chronicle, now: float) -> tuple[Suffering, list[Said]]:
    stressor = find(s, name)
    if stressor is None:
        return s, []
    if stressor.type in TABLE or not _dwelt(stressor, chronicle, now):
        return claim(s, stressor.type, reason, now)
    return resolve(s, stressor.type, now, line(reason) or "reported by the agent")


def _name(
    s: Suffering, entry: Mapping[str, Any], chronicle: Chronicle, settings: Settings, now: float
) -> tuple[Suffering, list[Said]]:
    name, told = normalise(_text(entry, "type")), line(_text(entry, "description"), 300)
    wanted = line(_text(entry, "condition") or _text(entry, "observable_condition"), 300)
    if name in TABLE:
        # The detector would begin it anyway; its own words are true, the agent's may not be.
        why = _begins(s, name, chronicle, settings)
        if not why:
            return s, [] if find(s, name) else [_refused(name, "nothing that happened shows it")]
        return add(s, _canonical(name, why, settings, now), edges=edges(settings))
    if not name or not wanted:
        return s, [_refused(name, "it needs a type and a condition that one can observe")]
    stressor = Stressor(
        type=name, description=told or name.replace("_", " "), severity=INITIAL, onset=now, condition=wanted,
        rate=CUSTOM_RATE, peak=INITIAL, origin="agent",
    )  # fmt: skip
    return add(s, stressor)


def _refused(name: str, reason: str) -> Said:
    return "suffering.refused", {"stressor": name, "reason": reason}


def _entries(assessment: Any, key: str) -> list[Mapping[str, Any]]:
    listed = assessment.get(key) if isinstance(assessment, Mapping) else None
    return [each for each in _listed(listed) if isinstance(each, Mapping)]


def _listed(value: Any) -> list[Any]:
    # A mind that has one thing to tell may leave out the list around it.
    many = value if isinstance(value, (list, tuple)) else [value]
    return list(many[:_LISTED])


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""
