"""Durations and sizes as people write and read them."""

from __future__ import annotations

import math
import reprlib

from agents.errors import OperatorError
from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


Written = str | int | float
"""A duration or a size as it arrives: typed, from the environment, or a number from code."""

LONGEST_S: Final = 3650 * 86_400.0
"""Longest duration accepted, in seconds (ten years): beyond it timers of the operating system overflow."""

LARGEST: Final = 2**63 - 1
"""Largest size accepted, in bytes: what a file offset can hold."""

_SECONDS: Final = {"w": 604_800.0, "d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_NUMBER: Final = r"[0-9]{1,19}(?:\.[0-9]{1,9})?"
# Largest unit first and each at most once: "30m1h" and "5m5m" are slips of the keyboard, not durations.
# ``\s?``, not ``\s*``: adjoining stars would try every way to share a row of blanks.
_DURATION: Final = late(r"\s?".join(rf"(?:(?P<{unit}>{_NUMBER})\s?{unit})?" for unit in _SECONDS))
_PLAIN: Final = late(_NUMBER)
# "KB" is 1000 and "KiB" 1024, as the standards have it; a bare "K" could be either and is refused.
_BYTES: Final = {"": 1, "b": 1} | {
    letter + suffix: base**power
    for power, letter in enumerate("kmgt", 1)
    for suffix, base in (("b", 1000), ("ib", 1024))
}
_SIZE: Final = late(rf"({_NUMBER})\s?([a-z]{{0,3}})")
_STEP: Final = 1024
_BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB")

_DURATION_HINT: Final = "Write a number of seconds, or a number with ms, s, m, h, d or w, such as 90s, 5m or 1h30m."
_SIZE_HINT: Final = "Write a number of bytes, or a number with KB, MB, GB, TB, KiB, MiB, GiB or TiB, such as 2GiB."

# Longer texts cannot be a duration or a size, and need not be searched.
_LONGEST_TEXT: Final = 64


def parse_duration(text: Written) -> float:
    """Return the seconds that *text* means: ``5m``, ``90s``, ``1h30m``, ``250ms``, ``2d``, or plain seconds.

    Raises OperatorError when it is empty, negative, not a finite number, longer than ten years, or has an unknown unit.
    """
    clean = _clean(text)
    if _PLAIN.fullmatch(clean):
        seconds = float(clean)
    elif clean and (found := _DURATION.fullmatch(clean)):
        seconds = sum(float(number) * _SECONDS[unit] for unit, number in found.groupdict().items() if number)
    else:
        raise OperatorError(f"{reprlib.repr(clean)} is not a duration.", _DURATION_HINT)
    if seconds > LONGEST_S:
        raise OperatorError(f"{reprlib.repr(clean)} is longer than ten years.", _DURATION_HINT)
    return seconds


def parse_size(text: Written) -> int:
    """Return the bytes that *text* means: ``2GiB`` and ``512KiB`` (powers of 1024), ``10MB`` (of 1000), ``1024``.

    Case does not matter. Raises OperatorError when it is empty, negative, not a number, larger than a file can be, or
    has an unknown unit.
    """
    clean = _clean(text)
    found = _SIZE.fullmatch(clean.lower())
    if found is None or found[2] not in _BYTES:
        raise OperatorError(f"{reprlib.repr(clean)} is not a size.", _SIZE_HINT)
    # Whole numbers stay whole numbers: a float would round above 2**53.
    number = float(found[1]) if "." in found[1] else int(found[1])
    size: int = round(number * _BYTES[found[2]])
    if size > LARGEST:
        raise OperatorError(f"{reprlib.repr(clean)} is larger than a file can be.", _SIZE_HINT)
    return size


def _clean(value: Written) -> str:
    """Return *value* as stripped text; numbers in plain decimal notation, and what is no number as it stands."""
    if isinstance(value, str):
        # What is cut off stays recognisable as too long: it no longer parses.
        return value.strip() if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + "…"
    if isinstance(value, float) and math.isfinite(value):
        # Not repr: its exponent is not how people write durations.
        return f"{value:.9f}".rstrip("0").rstrip(".")
    if isinstance(value, float) or -LARGEST <= value <= LARGEST:
        return str(value)
    # Python refuses to print an integer of several thousand digits.
    return "a number of 20 digits or more"


def format_size(n: int) -> str:
    """Write *n* bytes for people: ``512 B``, ``1.4 MiB`` (powers of 1024, one decimal)."""
    size, unit = float(n), 0
    # 1023.96 KiB would read "1024.0 KiB": compare what will be shown.
    while round(size, 1) >= _STEP and unit + 1 < len(_BINARY):
        size, unit = size / _STEP, unit + 1
    return f"{size:.1f} {_BINARY[unit]}" if unit else f"{n} B"
