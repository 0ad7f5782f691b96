"""Time as a value: two clocks that are passed as an argument, and the text form of an instant.

No ``dataclasses`` here: the lean path of ``status`` imports this module.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

# The name alone tells type checkers; importing `typing` would cost `status` 4 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """The two readings of time that the box needs; tests pass their own.

    *wall* returns seconds since the epoch (what people read), *mono* seconds that never jump and stand still while the
    machine is suspended (what silence is measured with).
    """

    __slots__ = ("mono", "wall")

    def __init__(self, wall: Callable[[], float] = time.time, mono: Callable[[], float] = time.monotonic) -> None:
        self.wall = wall
        self.mono = mono

    def offset(self) -> float:
        """Wall minus monotonic time in seconds; it changes when the clock is set or the machine was suspended."""
        return self.wall() - self.mono()


def iso(seconds: float) -> str:
    """The instant *seconds* (since the epoch) as ``2025-11-22T14:30:00.000Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def epoch(text: str | None) -> float | None:
    """Seconds since the epoch of an ISO 8601 instant, or None where *text* is none (state files are foreign input)."""
    try:
        instant = datetime.fromisoformat(text) if text else None
    except (TypeError, ValueError):
        return None
    if instant is None:
        return None
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
