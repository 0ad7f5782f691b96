"""Earned capabilities: what is open only to an agent that is well and in touch with its peers."""

from __future__ import annotations

import math
from types import MappingProxyType

from essentials.records import dataclass
from hollow.substrate.model import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from hollow.substrate.model import Happening


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What earns a capability."""

    load: float
    """Load at most, inclusive."""
    interactions: int
    """Interactions with peers at least, in the recent past."""


EARNED: Final[Mapping[str, Terms]] = MappingProxyType({"research_topic": Terms(load=0.15, interactions=1)})
"""Grounding in the world outside is a carrot, not a default (seed 001; S18, T61)."""

RECENT: Final = 200
"""Happenings, newest first, that are the recent past: some twenty cycles of an agent that is busy."""

_CONTACT: Final = frozenset({Kind.PEER, Kind.REFERENCE})


def interactions(window: Sequence[Happening], agent: str) -> int:
    """Return how often *agent* and its peers had to do with each other in the newest part of *window*, oldest first.

    A message, a look into a peer's files, a mention or a peer's call of a tool each count as one (S18).
    """
    return sum(1 for each in window[-RECENT:] if _contact(each, agent))


def unearned(name: str, load: float | None, contacts: int) -> str | None:
    """Return why the capability *name* is not earned at *load* with *contacts* to peers, or None where it is open.

    A load of None, which is one that could not be read, earns nothing (T60).
    """
    terms = EARNED.get(name)
    if terms is None:
        return None
    if load is None or not math.isfinite(load) or load > terms.load:
        told = "cannot be read" if load is None or not math.isfinite(load) else f"is {load:.4g}"
        return f"{name} must be earned: it is open at a suffering load of {terms.load:g} at most, and yours {told}."
    if contacts < terms.interactions:
        return (
            f"{name} must be earned: you had nothing to do with a peer lately. "
            "Read a peer's work with read_peer, or write to one with agent_message, first."
        )
    return None


def _contact(each: Happening, agent: str) -> bool:
    # A tool of one's own that one calls oneself is no company.
    return each.kind in _CONTACT or (each.kind is Kind.CALLED and each.facts.get("by", agent) != agent)
