"""When an agent lives its next cycle: a heartbeat after the last began, later where it stalls or its mind is away."""

from __future__ import annotations

from agents import cycles
from agents.model import Status
from essentials import records
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

HEARTBEAT: Final = 6.0
"""Seconds between the beginnings of an agent's cycles (seed 004; F8)."""
CRASHES: Final = 3
"""Cycles in a row that may fail before their agent has to rest (W20)."""
REST: Final = 60.0
"""Seconds of the first rest; each further one is twice as long, up to :data:`LONGEST_REST`."""
LONGEST_REST: Final = 600.0
AWAY: Final = 6.0
"""Seconds after which a mind that is away is asked again; twice as many each time, up to :data:`LONGEST_AWAY`."""
LONGEST_AWAY: Final = 300.0

_FAILED: Final = frozenset({Status.CRASHED, Status.STALLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How one cycle ended."""

    status: Status | None
    """None where it never came to a box."""
    outcome: str | None = None
    """What the agent said of it (:mod:`agents.cycles`)."""
    run: str | None = None
    """Name of the run."""
    why: str = ""
    """One sentence for a cycle that failed."""

    @property
    def failed(self) -> bool:
        """Whether it counts as a crash of its agent."""
        return self.status is None or self.status in _FAILED

    @property
    def waited(self) -> bool:
        """Whether its mind was away."""
        return self.outcome == cycles.WAITING


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """Where one agent stands in its life; instants are in seconds of one steady clock."""

    agent: str
    due: float = 0.0
    """When its next cycle may begin."""
    crashes: int = 0
    """Cycles in a row that failed."""
    rests: int = 0
    """Rests in a row without a good cycle since."""


def after(pulse: Pulse, ended: Ended, began: float, now: float, heartbeat: float) -> tuple[Pulse, float]:
    """*pulse* after a cycle that began at *began* and ended at *now*, and the seconds of rest that it needs (0: none).

    A rest has an end that is known beforehand: nobody who stalls is forgotten (W20).
    """
    due = max(now, began + heartbeat)
    if not ended.failed:
        # A cycle that the operator stopped says nothing about its agent.
        return records.replace(pulse, due=due, crashes=0, rests=0), 0.0
    if pulse.crashes + 1 < CRASHES:
        return records.replace(pulse, due=due, crashes=pulse.crashes + 1), 0.0
    rest = doubled(REST, pulse.rests, LONGEST_REST)
    return records.replace(pulse, due=max(due, now + rest), crashes=0, rests=pulse.rests + 1), rest


def doubled(first: float, times: int, longest: float) -> float:
    """*first* seconds doubled *times* times, at most *longest*."""
    # Bounded before it is raised: a number of that size is no delay.
    return min(longest, first * 2.0 ** min(times, 32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Whether the model that all agents share is to be seen."""

    misses: int = 0
    """How often in a row it was away."""
    until: float = 0.0
    """When it is worth asking again."""

    def away(self, now: float) -> Sight:
        """The sight after the model was found away at *now*; what is known already is not learnt a second time."""
        if self.misses and now < self.until:
            return self
        return Sight(misses=self.misses + 1, until=now + doubled(AWAY, self.misses, LONGEST_AWAY))


def next_due(pulses: Iterable[Pulse], now: float) -> Pulse | None:
    """The one of *pulses* that has been due longest at *now*, or None."""
    waiting = [pulse for pulse in pulses if pulse.due <= now]
    return min(waiting, key=lambda pulse: (pulse.due, pulse.agent), default=None)
