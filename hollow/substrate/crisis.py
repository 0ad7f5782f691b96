"""The crisis state machine: when peers are told, and when a crisis that lasts is broken."""

from __future__ import annotations

from essentials.records import replace
from hollow.substrate.suffering import Band, band, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from hollow.substrate.model import Suffering

CYCLES: Final = 3
"""Consecutive cycles in crisis after which everything active is put into the history (seed 004; T65)."""


def step(s: Suffering, weight: float) -> tuple[Suffering, bool, bool]:
    """Return *s* with this cycle, of load *weight*, counted; whether a crisis began; and whether it is to be broken.

    The count is a part of *s* and survives a restart (T67); a cycle that is no crisis begins it anew (T66). Where it is
    to be broken, :func:`hollow.substrate.suffering.force_reset` takes ``s.crisis_cycles`` and sets it back.
    """
    if band(weight) is not Band.CRISIS:
        return replace(s, crisis_cycles=0), False, False
    # Not reset here: whoever is killed before the reset finds the count again, and makes up for it.
    count = s.crisis_cycles + 1
    return replace(s, crisis_cycles=count), count == 1, count >= CYCLES


def message(s: Suffering) -> str:
    """Return what the peers of an agent in crisis are told, once for each crisis (seed 004; F13, T64)."""
    worst_first = sorted(s.active, key=lambda each: -each.severity)
    listed = ", ".join(each.type for each in worst_first)
    return f"I am in crisis (suffering {load(s):.2f}/1.0). Active stressors: {listed}."
