"""The limits of a run, which of those in time is over, and how long until the next: silence, lingering, timeout."""

from __future__ import annotations

import math
from enum import StrEnum

from essentials import records
from essentials.records import dataclass


class Due(StrEnum):
    """What the passing of time asks of the supervisor."""

    SILENCE = "silence"
    LINGER = "linger"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one run; times in seconds, sizes in bytes."""

    stall_after: float = 300.0
    """Silence before the result (seed 003, phase 3; T141)."""
    linger: float = 60.0
    """Life after the result: real agents sometimes hang there for good."""
    grace: float = 10.0
    """Between TERM and KILL."""
    timeout: float | None = None
    """The whole run."""
    max_output: int = 2 * 1024**3
    """What the stream may grow to."""
    on_stall: str = "reap"
    """reap, or mark: leave the silent process alone and only say so."""
    max_turns: int | None = None
    """Turns of the model; the next one ends the run."""
    max_usd: float | None = None
    """Dollars, as the engine counts them."""
    max_tokens: int | None = None
    """Tokens, read and written, cached ones included."""
    min_free: int = 64 * 1024**2
    """Free disk space below which the run is ended: its end has to be written (C17)."""
    loop_after: int = 12
    """Repetitions of the same with the same result, nothing changing, that are no progress; 0 is no limit (P12)."""


@dataclass(frozen=True, slots=True)
class Timers:
    """Instants on the monotonic clock, in seconds."""

    started: float
    last_sign: float
    """Last output, or last look at which its tree was found at work on a tool call."""
    result_at: float | None = None

    def sign(self, now: float) -> Timers:
        """The agent gave a sign of life at *now*."""
        return records.replace(self, last_sign=now)

    def result(self, now: float) -> Timers:
        """The agent said that it is done at *now*; the first time counts."""
        return self if self.result_at is not None else records.replace(self, result_at=now)

    def deadlines(self, limits: Limits) -> dict[Due, float]:
        """The instant at which each limit will be over."""
        over = {Due.TIMEOUT: self.started + (math.inf if limits.timeout is None else limits.timeout)}
        if self.result_at is None:
            over[Due.SILENCE] = self.last_sign + limits.stall_after
        else:
            over[Due.LINGER] = self.result_at + limits.linger
        return over

    def due(self, limits: Limits, now: float) -> Due | None:
        """The limit that is over at *now*, the earliest one first, or None."""
        what, when = min(self.deadlines(limits).items(), key=lambda item: item[1])
        return what if when <= now else None

    def wait(self, limits: Limits, now: float) -> float:
        """Seconds from *now* until the next limit is over; never negative, infinite where there is none."""
        return max(0.0, min(self.deadlines(limits).values()) - now)
