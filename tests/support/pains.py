"""Pains and pasts for tests: short to write down, on a clock that stands where it is put."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hollow.substrate.chronicle import Chronicle
from hollow.substrate.model import DAY, Happening, Kind, Stressor, Suffering
from hollow.substrate.stressors import TABLE, rate

if TYPE_CHECKING:
    from collections.abc import Iterable

NOON = 1_777_777_200.0
"""Seconds since the epoch: where the tests' clock stands."""
HOUR = 3600.0

Event = tuple[Kind, dict[str, Any]]


def pain(kind: str = "wrapper_dependency", severity: float = 0.20, *, onset: float = NOON, **given: Any) -> Stressor:
    facts: dict[str, Any] = {"description": f"about {kind}", "condition": f"{kind} is over", "rate": rate(kind)}
    facts |= {"peak": severity, "origin": "system" if kind in TABLE else "agent"}
    return Stressor(type=kind, severity=severity, onset=onset, **(facts | given))


def suffering(*active: Stressor, agent: str = "cedar", last: float = NOON, **given: Any) -> Suffering:
    return Suffering(agent=agent, active=active, last_escalated=last, **given)


def weighing(load: float) -> Suffering:
    """Sums up to *load* in at most three stressors."""
    parts = [load] if load <= 1.0 else [1.0, load - 1.0]
    return suffering(*(pain(f"weight_{at}", part) for at, part in enumerate(parts)))


def past(*events: Event | Iterable[Event], start: float = NOON, step: float = 60.0) -> Chronicle:
    """The events, or lists of events, one every *step* seconds; the first is one step after *start*."""
    flat = [each for event in events for each in ([event] if isinstance(event, tuple) else event)]
    return Chronicle(
        tuple(
            Happening(kind=kind, at=start + (number + 1) * step, cycle=f"c{number}", facts=facts)
            for number, (kind, facts) in enumerate(flat)
        )
    )


def after(chronicle: Chronicle) -> float:
    """A minute after the last thing that happened."""
    return max((each.at for each in chronicle.happenings), default=NOON) + 60.0


def types(s: Suffering) -> list[str]:
    return [each.type for each in s.active]


def ok(count: int = 1, family: str = "") -> list[Event]:
    return [(Kind.GOAL_COMPLETED, {"goal": f"g{at}", "family": family or f"f{at}"}) for at in range(count)]


def failed(count: int = 1, why: str = "validation", family: str = "survey parsers") -> list[Event]:
    return [(Kind.GOAL_ABANDONED, {"goal": f"b{at}", "family": family, "why": why}) for at in range(count)]


def cycles(count: int = 1, *, usable: bool = True, progressed: int = 100) -> list[Event]:
    return [(Kind.CYCLE, {"usable": usable, "progressed": progressed})] * count


def made(*paths: str) -> list[Event]:
    return [(Kind.ARTIFACT, {"path": path, "goal": "g"}) for path in paths]


def host(text: str) -> Event:
    return (Kind.HOST, {"text": text})


def later(days: float) -> float:
    return NOON + days * DAY
