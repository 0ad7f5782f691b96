"""`judge`: from a run's state and what is known of its processes to a verdict; facts and time are arguments."""

from __future__ import annotations

from enum import StrEnum

from agents.model import Phase, Status
from agents.times import epoch
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agents.model import RunState


class Verdict(StrEnum):
    """What a sweep has to do with a run."""

    FINE = "fine"
    FOREIGN = "foreign"
    """Another machine's run in a shared folder: shown UNKNOWN, never touched."""
    SETTLED = "settled"
    """Terminal or waiting: only its marker and commands are left over."""
    STALLED = "stalled"
    CRASHED = "crashed"
    REBOOTED = "rebooted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the machine knows about a run."""

    host_id: str
    boot_id: str
    owner_alive: bool
    """Whether somebody holds owner.lock: the kernel's word, no pid is looked at."""
    child_alive: bool
    """Whether the recorded pid is alive *and* was started when the record says (T140)."""
    wall: float
    mono: float


def silence(state: RunState, wall: float, mono: float) -> float | None:
    """Seconds since the agent's last sign of life, or None before any; a clock that jumped or slept does not count.

    The heartbeat was stamped when wall minus monotonic time was ``clock_offset``; what that difference has gained since
    is a step of the clock or the sleep of the machine, not the silence of the agent.
    """
    beat = epoch(state.last_heartbeat)
    last = epoch(state.started_at) if beat is None else beat
    if last is None:
        return None
    now = wall if state.clock_offset is None else mono + state.clock_offset
    return now - last


def judge(state: RunState, facts: Facts, stall_after: float) -> Verdict:
    """What to do with a run in *state* given *facts*; *stall_after* is in seconds (seed 003, phase 3; T139-T141).

    A live owner is trusted with everything but silence: it may be stopped or hung itself. Without an owner nobody
    will ever read the agent's output, so a living child is an orphan and the run has crashed all the same, except
    that a silent one is called by its name.
    """
    if state.host_id and state.host_id != facts.host_id:
        return Verdict.FOREIGN
    if _is_over(state, facts):
        return Verdict.SETTLED
    # Monotonic time starts anew with every boot, so nothing can be said about silence across one.
    if state.boot_id and state.boot_id != facts.boot_id:
        return Verdict.REBOOTED
    quiet = _is_silent(state, facts, stall_after)
    return _owned(state, quiet=quiet) if facts.owner_alive else _orphaned(state, facts, quiet=quiet)


def _is_over(state: RunState, facts: Facts) -> bool:
    """Whether the run has ended; a stalled one that was reaped has, whatever happened to the machine since."""
    if state.status is Status.STALLED:
        return state.phase is Phase.SETTLED and not facts.child_alive
    return state.status is not Status.ACTIVE


def _owned(state: RunState, *, quiet: bool) -> Verdict:
    return Verdict.STALLED if quiet and state.status is Status.ACTIVE else Verdict.FINE


def _orphaned(state: RunState, facts: Facts, *, quiet: bool) -> Verdict:
    silent = state.status is Status.STALLED or (quiet and facts.child_alive)
    return Verdict.STALLED if silent else Verdict.CRASHED


def _is_silent(state: RunState, facts: Facts, stall_after: float) -> bool:
    quiet = silence(state, facts.wall, facts.mono)
    return state.phase is Phase.RUNNING and quiet is not None and quiet > stall_after
