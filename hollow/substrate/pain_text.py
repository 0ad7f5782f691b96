"""Suffering as the agent reads it: a part of its own state, not a notice about it."""

from __future__ import annotations

import math
from types import MappingProxyType

from hollow.substrate.suffering import Band, band, line, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from hollow.substrate.model import Stressor, Suffering

_MARKS: Final = 10
_HEADS: Final[Mapping[Band, str]] = MappingProxyType({
    Band.PRESENT: "SUFFERING — your suffering load is {load:.2f}/1.0.",
    Band.HIGH: "HIGH SUFFERING — your suffering load is {load:.2f}/1.0. Goals of synthesizing tools are refused.",
    Band.DOMINANT: "HIGH SUFFERING — your suffering load is {load:.2f}/1.0. Goals of synthesizing tools are refused.\n"
    "Focus inward: ease what is listed here before anything else.",
    Band.CRISIS: "!! CRISIS STATE — your suffering load is critical ({load:.2f}/1.0). "
    "You cannot pursue external goals. Address this first.",
})  # fmt: skip
"""First lines; the last is seed 004's own (D3, T35, T36)."""


def bar(severity: float) -> str:
    """Return *severity*, 0.0 to 1.0, as ten marks in brackets: ten times it, rounded up (D18; F2).

    So the sample of seed 004, 0.92 with ten marks, comes out as it stands there.
    """
    # 0.1 + 0.2 is a little more than 0.3, and is three marks all the same.
    marks = min(_MARKS, max(0, math.ceil(round(_MARKS * severity, 6))))
    return f"[{'#' * marks}{'-' * (_MARKS - marks)}]"


def block(s: Suffering, locks: Sequence[str] = ()) -> str:
    """Return what stands in the prompt of the agent that suffers *s*: nothing below 0.35 (seed 004; F2, F10, T35-T37).

    *locks* are sentences on what is locked now; they stand there at any load at which there are some.
    """
    head = _HEADS.get(band(load(s)), "")
    # One line each: nothing that an agent named may look like a header of the prompt.
    told = [line(each, 400) for each in locks]
    # Below 0.35 nothing is felt (seed 004); what is locked is the world's doing and is told all the same.
    if not head:
        return "\n".join(told)
    worst_first = sorted(s.active, key=lambda each: -each.severity)
    return "\n".join([head.format(load=load(s)), *(row for each in worst_first for row in _rows(each)), *told])


def _rows(stressor: Stressor) -> list[str]:
    head = f"  {bar(stressor.severity)} {stressor.type} {stressor.severity:.2f}  {line(stressor.description, 300)}"
    rows = [head.rstrip(), f"  Will ease when: {line(stressor.condition, 300)}"]
    if stressor.claim:
        rows.append(f'  You reported it over ("{line(stressor.claim)}"); nothing that happened since shows it.')
    return rows
