"""Time as a value: two clocks that are passed as an argument, and the text form of an instant.

No ``dataclasses`` and no ``datetime`` at import: the lean path of ``status`` reads instants in the form that we write.
"""

from __future__ import annotations

import time

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
    """The instant *seconds* (since the epoch) as ``2025-11-22T14:30:00.000Z``, in a year of four digits.

    As ``datetime`` writes it, whose import would cost every run half a mebibyte for as long as it waits.
    """
    whole = int(seconds)
    # To the microsecond it is rounded, to the millisecond cut.
    carried, micro = divmod(round((seconds - whole) * 1_000_000), 1_000_000)
    year, month, day, hour, minute, second, *_ = time.gmtime(whole + carried)
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{micro // 1000:03d}Z"


def epoch(text: str | None) -> float | None:
    """Seconds since the epoch of an ISO 8601 instant, or None where *text* is none (state files are foreign input)."""
    own = _own(text)
    if own is not None or not text:
        return own
    from datetime import UTC, datetime

    try:
        instant = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def _own(text: object) -> float | None:
    """Seconds since the epoch of an instant as :func:`iso` writes it; None for any other form, and for no instant."""
    if not isinstance(text, str) or len(text) != _WIDTH:
        return None
    try:
        year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
        hour, minute, second, fraction = int(text[11:13]), int(text[14:16]), int(text[17:19]), int(text[20:23])
        # Days by the Gregorian rule, in years that begin with March: a leap day is the last day of its year.
        shifted, years = (month + 9) % 12, year - (month <= _FEBRUARY)
        days = 365 * years + years // 4 - years // 100 + years // 400 + (153 * shifted + 2) // 5 + day - _BEFORE_1970
        seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
        # Written again it is the same, or it was no instant (a 30th of February) or written in another way.
        again = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{fraction:03d}Z"
    except (ValueError, OverflowError, OSError):
        return None
    return (seconds * 1000 + fraction) / 1000 if again == text else None


_WIDTH = 24
_FEBRUARY = 2
_BEFORE_1970 = 719_469
"""Days from the 1st of March of the year 0 to the 1st of January 1970, and one, because days count from 1."""
