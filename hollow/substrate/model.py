"""The values that the environment is made of; seeds 000, 001, 002 and 004 name them."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - dataclass fields are looked up at run time
from enum import StrEnum
from types import MappingProxyType

from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

AGENTS: Final = ("cedar", "cipher", "vault")
"""The scout, the analyst and the builder (seed 004)."""

DAY: Final = 86_400.0
"""Seconds."""

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Effect(StrEnum):
    """What a capability can do to the world; locks are by effect, never by name alone (T57)."""

    READ = "read"
    WRITE = "write"
    """Files of the airlock."""
    EXEC = "exec"
    """Runs code in a child process."""
    STATE = "state"
    """The agent's own memory, through the memory's door."""
    NET = "net"
    SYNTHESIZE = "synthesize"


class Kind(StrEnum):
    """What can happen to an agent. Detectors look at these, never at text somebody printed (F15, W27)."""

    CYCLE = "cycle"
    """A cycle ended. ``usable``: whether the existence answer held a usable goal; ``progressed``: thousandths."""
    GOAL_CREATED = "goal.created"
    """``goal``, ``family`` (normalised pattern of the objective), ``source``."""
    GOAL_COMPLETED = "goal.completed"
    """``goal``, ``family``, ``kind`` (kind of goal, see substrate.kinds)."""
    GOAL_ABANDONED = "goal.abandoned"
    """``goal``, ``family``, ``why``: stalled, validation or operator."""
    GATE = "gate"
    """The completion gate judged. ``goal``, ``passed``, ``check``, ``reason``."""
    STEP = "step"
    """A step of a plan ended. ``goal``, ``capability``, ``ok``, ``dynamic`` (a synthesized tool), ``error`` (kind)."""
    ARTIFACT = "artifact"
    """A validated document: ``path``, ``goal``."""
    REFERENCE = "reference"
    """A peer read, called or mentioned what this agent made: ``what`` (path or tool), ``by``."""
    PEER = "peer"
    """An interaction with a peer: ``peer``, ``how`` (message, read, call)."""
    DENIED = "denied"
    """A lock refused a step: ``capability``, ``lock`` (what it is locked by), ``load``."""
    DEPLOYED = "deployed"
    """A tool of this agent was published: ``name``."""
    CALLED = "called"
    """A synthesized tool was called in a plan: ``name``, ``ok``, ``by``."""
    HOST = "host"
    """The operator said something: ``text``."""
    CONFLICT = "conflict"
    """A goal was pursued against an own opinion: ``goal``, ``opinion``, ``domain``."""
    REVISED = "revised"
    """An opinion was revised: ``domain``."""
    BURDEN = "burden"
    """What the agent's documents and memory weigh: ``files``, ``bytes``, ``tools`` (own tools nobody called)."""
    LOAD = "load"
    """The load after a cycle: ``load``, ``raw``, ``crisis``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One typed fact in an agent's life."""

    kind: Kind
    at: float
    """Seconds since the epoch."""
    cycle: str
    """Id of the cycle in which it happened; empty outside of one."""
    facts: Mapping[str, Any] = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stressor:
    """One thing that hurts (seed 001; F1-F20)."""

    type: str
    """Normalised: lower case, underscores."""
    description: str
    severity: float
    """0.0 to 1.0."""
    onset: float
    """Seconds since the epoch."""
    condition: str
    """A state of the world that would resolve it."""
    rate: float
    """Severity it gains a day."""
    peak: float
    origin: str = "system"
    """system (a detector), agent (its own words) or placed (found on disk without either)."""
    claim: str = ""
    """The agent's own report that it is over; it counts for nothing by itself (T43)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relief:
    """A stressor that is over."""

    stressor: Stressor
    at: float
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suffering:
    """All that an agent suffers from."""

    agent: str
    active: tuple[Stressor, ...] = ()
    """Five at most (T38)."""
    history: tuple[Relief, ...] = ()
    """Oldest first."""
    last_escalated: float = 0.0
    """Seconds since the epoch; 0 before the first time."""
    crisis_cycles: int = 0
    """Consecutive cycles in crisis (T65-T67)."""


class GoalStatus(StrEnum):
    """The three there are (T80)."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that a goal has written, relative to the top of the airlock."""

    path: str
    sha256: str
    created: bool
    """Whether it was not there when the goal began."""
    step: int
    """Number of the step that wrote it last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What an agent is after; progress survives cycles (T81)."""

    goal_id: str
    """``goal-`` and 12 hex digits."""
    agent: str
    objective: str
    status: GoalStatus = GoalStatus.ACTIVE
    source: str = "existence"
    """existence, operator, or ``fallback:`` and one of the five sources."""
    base: str = ""
    """Commit of the airlock when the goal began: what its files are set back to (T91)."""
    progress: int = 0
    """Thousandths: ten times 0.10 is exactly 1.0 (T85)."""
    steps: int = 0
    """Steps done so far."""
    cycles: int = 0
    """Cycles worked on it."""
    idle: int = 0
    """Consecutive cycles without progress."""
    outputs: tuple[str, ...] = ()
    """What its output steps left beside files: ``memory:<key>``, ``request:<id>``, ``tool:<name>``; newest last."""
    artifacts: tuple[Artifact, ...] = ()
    failures: int = 0
    """Failed validations (T90)."""
    reason: str = ""
    """Why it failed validation last, or was abandoned."""
    created_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None
    last_cycle: str = ""
    """The cycle that worked on it last."""
    confirmed: bool = False
    """Whether a later cycle has found the files of a completed goal in its airlock, so that it was accepted."""


class Category(StrEnum):
    """What a lesson is about (seed 001)."""

    ENVIRONMENT = "environment"
    PATTERNS = "patterns"
    CONSTRAINTS = "constraints"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One observation behind a lesson; two of the same goal are one (S22)."""

    goal_id: str
    agent: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A rule that was learned, or a candidate for one."""

    text: str
    category: Category
    confidence: str
    """high, medium or low."""
    evidence: tuple[Evidence, ...]
    """Ten at most, oldest first."""
    first_observed: float
    last_observed: float
    count: int
    """Independent observations: different goals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What an agent holds to be true of a domain."""

    opinion: str
    domain: str
    formed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Who an agent has become."""

    agent: str
    traits: tuple[str, ...] = ()
    narrative: str = ""
    worldview: str = ""
    open_questions: tuple[str, ...] = ()
    opinions: tuple[Opinion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An entry of the queue to the operator (seed 000)."""

    request_id: str
    """``req-`` and 12 hex digits."""
    agent: str
    timestamp: str
    """``YYYY-MM-DD HH:MM:SS``, UTC."""
    description: str
    spec: str
    design_path: str
    request_type: str
    fingerprint: str
    spec_length: int
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The operator's answer."""

    request_id: str
    status: str
    """fulfilled or rejected."""
    result: str
    implemented_at: str
    run: str = ""
    """Name of the run that it was turned into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a plan, as the mind gave it."""

    capability: str
    params: Mapping[str, Any]
    rationale: str = ""


class Trouble(StrEnum):
    """Why a step failed; only ``ghost`` and ``null`` count against a tool (W16)."""

    USAGE = "usage"
    UNKNOWN = "unknown"
    DENIED = "denied"
    TIMEOUT = "timeout"
    FAILED = "failed"
    GHOST = "ghost"
    NULL = "null"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a step gave. A JSON value for the agent, and what it did to the world, for everybody else."""

    ok: bool
    output: Any = None
    """What the mind is told: a JSON value."""
    error: str = ""
    """One sentence, where it failed."""
    trouble: Trouble | None = None
    wrote: tuple[str, ...] = ()
    """Files written, relative to the top of the airlock."""
    left: tuple[str, ...] = ()
    """What it left beside files, as in :attr:`Goal.outputs`."""
    happenings: tuple[Happening, ...] = ()
    seconds: float = 0.0
