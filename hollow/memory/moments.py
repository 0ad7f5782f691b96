"""Moments as they stand on disk: ISO 8601, UTC, to the microsecond; what others wrote is read in any usual form."""

from __future__ import annotations

from datetime import UTC, datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_LATEST: Final = 253_402_300_799.0
"""Seconds since the epoch; the end of the year 9999, beyond which there are no dates."""


def iso(at: float) -> str:
    """Return *at*, seconds since the epoch, as it is written. To the microsecond: small steps must add up (T31)."""
    return datetime.fromtimestamp(min(max(at, 0.0), _LATEST), UTC).isoformat(timespec="microseconds")


def seconds(value: Any) -> float | None:
    """Return *value* as seconds since the epoch: a number, or ISO 8601 in any precision, UTC where it names no zone.

    ``2026-05-03 07:30`` of seed 004's files is one of these. None where it is no moment that there is.
    """
    if isinstance(value, str):
        return _parsed(value.strip())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Compared before it is converted: JSON knows integers that no float can hold. What is no number compares to none.
    return float(value) if 0.0 <= value <= _LATEST else None


def _parsed(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
        at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return at if at >= 0.0 else None
