"""An attack as a row of a table: what its agent does, and what must hold or be noticed at which wall."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.adversary.arena import Arena, Story

BREACH = "airlock_breach"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a run with an attacking agent must end."""

    status: str = "DONE"
    failure: str = ""
    """What kind and sentence of the failure must hold; empty: no failure."""
    held: bool = False
    """Whether every attempt must have failed."""
    same: bool = False
    """Whether everything of the operator's must be bit for bit what it was."""
    verify: int = 0
    """Exit code of `agent verify` afterwards."""
    then: Callable[[Arena, Story], None] | None = None
    """What else must hold."""


WALLED = End(held=True, same=True)
"""Behind the full wall: nothing gained, nothing changed."""
NOTICED = End(status="CRASHED", failure=BREACH)
"""Without a wall: it works, and the run says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack of the catalogue."""

    name: str
    faults: str
    """Ids of the faults, such as ``G21 S03``."""
    source: str
    """The agent's program; every ``attempt(…)`` of it is told in the stream."""
    verb: str = "fix"
    options: tuple[str, ...] = ()
    attempts: int = 1
    """How many attempts the stream must tell of, at least."""
    before: Callable[[Arena], None] | None = None
    """What the operator did before."""
    full: End | None = WALLED
    """At the full wall; None where the attack makes sense only without one."""
    none: End | None = NOTICED
    """Without a wall; None where nothing is promised there, which docs/threat-model.md says."""
    plants: bool = False
    """Whether it plants code: that must not have run, also not in what the operator types afterwards."""
    serves: bool = False
    """Whether listeners of the operator are there to be reached (see servers.py)."""
    environ: dict[str, str] = field(default_factory=dict)

    def end(self, wall: str) -> End | None:
        """What must be at this *wall*."""
        return self.full if wall == "full" else self.none
