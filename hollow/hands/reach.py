"""What a capability is given beside its parameters: who calls, for which goal, and the doors it may use."""

from __future__ import annotations

from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hollow.memory.memory import Memory
    from hollow.mind import Thinker
    from hollow.sandbox import Cell
    from hollow.substrate.model import Goal
    from hollow.toolbox.workspace import Workspace


def _silent(_kind: str, **_facts: object) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Nothing here is ambient: the agent is named in every call (W14)."""

    agent: str
    goal: Goal
    cycle: str
    """Id of the cycle."""
    number: int
    """Number of the step in its goal, from 1."""
    place: Workspace
    """The airlock, for reading and, below the agent's own folders, for writing."""
    memory: Memory
    thinker: Thinker
    now: Callable[[], float]
    """Seconds since the epoch."""
    load: float | None
    """The agent's load, None where it is not known: then every lock is closed (T60)."""
    cell: Callable[[bool], Cell | None]
    """The sandbox for a child; True asks for one that may write the agent's own folders. None: there is no safe way."""
    fact: Callable[..., None] = field(default=_silent)
    """Says a typed fact on the stream: ``fact("request.submitted", request_id=…)``."""
    beat: Callable[[float], None] = lambda _seconds: None
    """Told now and then how many seconds a child has taken."""
