"""The machine of `agent replay`: from a part of a stream, and what no stream tells, to how the attempt ended."""

from __future__ import annotations

from agents import budget, cycles, differing, settle
from agents.follower import EFFORT, LINE, OPENING
from agents.loops import Loops
from agents.model import Actor, FailureKind, Phase, Status
from agents.pump import Ending
from agents.rereading import Heard, attentive, reread
from essentials import records
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from agents.attempts import Attempt
    from agents.events import Dialect, Event, Progress
    from agents.layout import Box
    from agents.model import Failure, RunMeta, RunState
    from agents.timers import Limits

_TOLD: Final = frozenset({FailureKind.OOM, FailureKind.TOOL_ERROR, FailureKind.AGENT_ABORT})
"""Failures that follow from stream and exit code alone; of any other the record itself has to be believed."""
_REFEREED: Final = frozenset({FailureKind.BUDGET, FailureKind.NO_PROGRESS})
"""Failures that the referee may have found in the stream."""
DEAF: Final = frozenset({FailureKind.SETUP, FailureKind.IO, FailureKind.ENOSPC, FailureKind.INTERNAL})
"""Failures in which the supervisor may have lost what it had heard."""
_LINGERED: Final = "it was still running "


@dataclass(frozen=True, slots=True)
class Case:
    """A run that is replayed."""

    box: Box
    meta: RunMeta
    state: RunState
    dialect: Dialect
    limits: Limits | None
    """The limits of its last attempt; None where launch.json does not say."""


def relive(
    case: Case, attempt: Attempt, before: RunState, actor: Actor, recorded: RunState, start: int
) -> tuple[Heard, RunState]:
    """What is heard in *attempt* from byte *start* on, and the state that it leads to.

    *before* is the state with which it began, *recorded* the one with which *actor* ended it. Taken from the record is
    what no stream tells: the exit code, a cause from outside (a timer, a limit, the operator, the machine), the patch,
    the instant. Raises IllegalStep where *actor* cannot have ended it so.
    """
    heard = Heard() if _is_deaf(recorded, before) else _reread(case, case.dialect, start, attempt.end)
    base = _base(recorded, before, heard, attempt, actor)
    ending = _ending(case, attempt, recorded, heard)
    state = _settled(case, actor, recorded, base, ending)
    if actor is Actor.OWNER and case.box.stream.exists() and state != recorded:
        state = _paced(case, attempt, recorded, base, ending, state)
    return heard, state


def _is_deaf(recorded: RunState, before: RunState) -> bool:
    """Whether the supervisor failed so that it lost what it had heard; then it has counted nothing."""
    lost = recorded.failure is not None and recorded.failure.kind in DEAF and recorded.exit_code is None
    return lost and not recorded.events and recorded.usage == before.usage


def _reread(case: Case, dialect: Dialect, start: int, end: int | None) -> Heard:
    # A run that ended before its agent lived has no stream.
    return reread(case.box.stream, dialect, start, end) if case.box.stream.exists() else Heard()


def _base(recorded: RunState, before: RunState, heard: Heard, attempt: Attempt, actor: Actor) -> RunState:
    """The state on which the end was written: what the record alone can tell, and what was known *before*."""
    earlier = before.session_id if attempt.resumes else None
    # What an agent says of itself is written down at once; a supervisor that died may not have come so far.
    known = heard.greeted.session_id or earlier
    options = (known,) if actor is Actor.OWNER else (known, earlier, None, recorded.session_id)
    session = next((each for each in options if (each or heard.progress.session_id) == recorded.session_id), known)
    return records.replace(
        recorded, status=Status.ACTIVE, phase=Phase.FINALIZING, failure=None, usage=before.usage, model=before.model,
        session_id=session, cycle=before.cycle, notes=(), exit_code=None, events=0,
    )  # fmt: skip


def _settled(case: Case, actor: Actor, recorded: RunState, base: RunState, ending: Ending) -> RunState:
    outcome = _outcome(case, recorded, ending)
    artifact = recorded.failure.last_safe_artifact if recorded.failure else None
    at = recorded.ended_at or ""
    return settle.ended(base, case.meta, actor, outcome, ending, patch=recorded.patch, at=at, artifact=artifact)


def _outcome(case: Case, recorded: RunState, ending: Ending) -> tuple[Status, FailureKind | None, str]:
    patch = recorded.patch if "files" in (recorded.patch or {}) else None
    return settle.decide(ending, case.dialect, patch=cycles.usable(case.meta, patch, ending.progress))


def _ending(case: Case, attempt: Attempt, recorded: RunState, heard: Heard) -> Ending:
    """How the process ended: what no stream tells is taken from the record (exit code, a cause from outside)."""
    good = recorded.status in {Status.DONE, Status.REVIEW}
    ending = Ending(
        exit_code=recorded.exit_code, progress=heard.progress, lines=heard.lines,
        stopped=recorded.status is Status.STOPPED,
        lingered=good and any(note.startswith(_LINGERED) for note in recorded.notes),
    )  # fmt: skip
    failure = recorded.failure
    if (
        failure
        and _is_new(case, recorded, ending, failure)
        and _is_given(case, attempt, recorded, failure, heard.lines)
    ):
        ending.cause, ending.message = failure.kind, failure.message
    return ending


def _is_new(case: Case, recorded: RunState, ending: Ending, failure: Failure) -> bool:
    """Whether *failure* is not what stream and exit code lead to."""
    return _outcome(case, recorded, ending)[1:] != (failure.kind, failure.message)


def _is_given(case: Case, attempt: Attempt, recorded: RunState, failure: Failure, lines: int) -> bool:
    """Whether the failure, which does not follow from stream and exit code, can be what the record says it was."""
    if failure.kind in _TOLD:
        # One that was written before its supervisor died follows from the part of its own attempt.
        own = _reread(case, case.dialect, attempt.start or 0, attempt.end)
        ending = Ending(exit_code=recorded.exit_code, progress=own.progress)
        return not _is_new(case, recorded, ending, failure)
    if failure.kind not in _REFEREED or case.limits is None or not attempt.is_last:
        # Which limits an earlier attempt had is no longer told.
        return True
    said = _verdicts(case, attempt, case.limits)
    paced = _is_heavy(case, attempt, lines)
    return (failure.kind, failure.message) in said or (paced and failure.kind in {kind for kind, _ in said})


def _verdicts(case: Case, attempt: Attempt, limits: Limits) -> set[tuple[FailureKind, str]]:
    """All that the referee can say at any point of the stream: what was heard together, and when, nobody recorded."""
    said: set[tuple[FailureKind, str]] = set()
    loops = Loops(after=limits.loop_after)

    def listen(event: Event, progress: Progress) -> None:
        """Note what can be said after *event*."""
        nonlocal loops
        loops, circle = _circle(loops.heard(event, 0.0))
        spent = budget.spent(limits, progress)
        said.update({(FailureKind.NO_PROGRESS, circle)} if circle else set())
        said.update({(FailureKind.BUDGET, spent)} if spent else set())

    if case.box.stream.exists():
        reread(case.box.stream, attentive(case.dialect), attempt.start or 0, attempt.end, listen=listen)
    return said


def _circle(loops: Loops) -> tuple[Loops, str | None]:
    """*loops* judged as if the tree had never changed, which nobody recorded either."""
    return loops.judged(None) if loops.is_suspicious else (loops, None)


def _size(case: Case, attempt: Attempt) -> int:
    end = case.box.stream.stat().st_size if attempt.end is None else attempt.end
    return end - (attempt.start or 0)


def _is_heavy(case: Case, attempt: Attempt, lines: int) -> bool:
    """Whether so much was said, in *lines*, that a supervisor need not have read all of what is only counted."""
    return _size(case, attempt) + LINE * lines > EFFORT


def _paced(
    case: Case, attempt: Attempt, recorded: RunState, base: RunState, ending: Ending, state: RunState
) -> RunState:
    """*state* with what was *recorded* where the pace at which the agent talked, and nothing else, explains it.

    Usage is told in lines of which a flood is read in part: it has to lie between what no pace hides and what one hears
    who reads everything. Who the agent is was looked for at the beginning alone: behind it all or nothing was heard.
    """
    if not _is_heavy(case, attempt, ending.lines):
        return state
    most = _reread(case, attentive(case.dialect), attempt.start or 0, attempt.end)
    if differing.between(recorded.usage, base.usage, ending.progress, most.progress):
        state = records.replace(state, usage=recorded.usage)
    return _named(recorded, base, most, state) if _size(case, attempt) > OPENING else state


def _named(recorded: RunState, base: RunState, most: Heard, state: RunState) -> RunState:
    """*state* with the names that one who read everything, *most*, heard, where those are the recorded ones."""
    model = most.progress.model or base.model
    session = most.greeted.session_id or base.session_id or most.progress.session_id
    return records.replace(
        state,
        model=model if model == recorded.model else state.model,
        session_id=session if session == recorded.session_id else state.session_id,
        # The notes are about such names.
        notes=state.notes if differing.holds(recorded.notes, state.notes) else (),
    )
