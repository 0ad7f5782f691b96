"""The law of a run's life: its statuses and phases, who may take which step, and why a run can fail."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

from agents.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final


class Status(StrEnum):
    """Where a run stands, as the operator sees it (design, section 5)."""

    ACTIVE = "ACTIVE"
    REVIEW = "REVIEW"
    DONE = "DONE"
    CRASHED = "CRASHED"
    STALLED = "STALLED"
    STOPPED = "STOPPED"
    MERGING = "MERGING"
    MERGED = "MERGED"
    REJECTED = "REJECTED"


class Phase(StrEnum):
    """How far the supervisor has come with an ACTIVE run."""

    CREATED = "created"
    PREPARING = "preparing"
    STARTING = "starting"
    RUNNING = "running"
    FINALIZING = "finalizing"
    SETTLED = "settled"


class Actor(StrEnum):
    """Who may make a step: the supervisor that owns the run, a watchdog sweep, a human."""

    OWNER = "owner"
    WATCHDOG = "watchdog"
    HUMAN = "human"


class FailureKind(StrEnum):
    """Why a run did not end well (design, section 5; T137)."""

    OOM = "oom"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    NO_PROGRESS = "no_progress"
    OUTPUT_LIMIT = "output_limit"
    QUOTA = "quota"
    TOOL_ERROR = "tool_error"
    AGENT_ABORT = "agent_abort"
    TESTS_FAILED = "tests_failed"
    BUDGET = "budget"
    AIRLOCK_BREACH = "airlock_breach"
    ENGINE_MISSING = "engine_missing"
    SPAWN = "spawn"
    SETUP = "setup"
    EXPORT = "export"
    IO = "io"
    ENOSPC = "enospc"
    SUPERVISOR_DIED = "supervisor_died"
    REBOOT = "reboot"
    INTERNAL = "internal"


# Failures that are the machine's, not the agent's: they decide between exit codes 3 and 4.
HOST_FAILURES: Final = frozenset(
    {
        FailureKind.ENGINE_MISSING,
        FailureKind.SPAWN,
        FailureKind.SETUP,
        FailureKind.IO,
        FailureKind.ENOSPC,
        FailureKind.SUPERVISOR_DIED,
        FailureKind.REBOOT,
        FailureKind.INTERNAL,
    }
)

_O, _W, _H = frozenset({Actor.OWNER}), frozenset({Actor.OWNER, Actor.WATCHDOG}), frozenset({Actor.HUMAN})

# The lifecycle is this table; docs/states.mmd is drawn from it and `step` enforces it (design, section 5).
TRANSITIONS: Final[Mapping[Status, Mapping[Status, frozenset[Actor]]]] = MappingProxyType(
    {
        Status.ACTIVE: {
            Status.REVIEW: _W,
            Status.DONE: _W,
            Status.CRASHED: _W,
            Status.STALLED: _W,
            Status.STOPPED: frozenset({Actor.OWNER, Actor.HUMAN}),
        },
        # With `on_stall: mark` the process lives on: its next event wakes it, its end settles it (T141).
        Status.STALLED: {
            Status.ACTIVE: frozenset({Actor.OWNER, Actor.HUMAN}),
            Status.CRASHED: _W,
            Status.DONE: _O,
            Status.REVIEW: _O,
            Status.STOPPED: frozenset({Actor.OWNER, Actor.HUMAN}),
            Status.REJECTED: _H,
        },
        # What is not worth going on with can be rejected as well as what was reviewed.
        Status.CRASHED: {Status.ACTIVE: _H, Status.REJECTED: _H},
        Status.STOPPED: {Status.ACTIVE: _H, Status.REJECTED: _H},
        Status.REVIEW: {Status.ACTIVE: _H, Status.MERGING: _H, Status.REJECTED: _H},
        # A merge that was cut off is finished or undone by whoever finds its journal.
        Status.MERGING: {
            Status.MERGED: frozenset({Actor.HUMAN, Actor.WATCHDOG}),
            Status.REVIEW: frozenset({Actor.HUMAN, Actor.WATCHDOG}),
        },
        Status.DONE: {},
        # `agent undo`, while the branch still stands there.
        Status.MERGED: {Status.REVIEW: _H},
        Status.REJECTED: {},
    }
)


class IllegalStep(HostError):  # noqa: N818 - it names the step
    """A step that TRANSITIONS does not have: a fault of this program, never of its user."""


def is_terminal(status: Status) -> bool:
    """Whether the run's work is over for good; a merge can be taken back, but what it leaves behind is in git."""
    return status in {Status.DONE, Status.MERGED, Status.REJECTED}
