"""The watchdog's round at the start of every command: finish what a dead supervisor left half done."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING, Final

from agents import cycles, cycling, files, gate, plan, policy, procs, publish, settle, watchdog, workshop
from agents.engines import registry
from agents.errors import BoxError
from agents.events import PLAIN, reduce
from agents.follower import Follower
from agents.layout import OWNER_LOCK
from agents.model import Actor, Failure, FailureKind, Phase, Status, step
from agents.pump import Ending
from agents.watchdog import Facts, Verdict

if TYPE_CHECKING:
    from agents.context import Context
    from agents.events import Dialect
    from agents.model import RunMeta, RunState

STALE: Final = 600.0
"""Seconds after which a marker or a staging folder without a run counts as a dead start's."""


_MOMENT: Final = 0.5


def sweep(context: Context) -> list[str]:
    """Look at every run that may be ACTIVE and bring the dead ones to a truthful end; returns their names.

    Idempotent, safe beside other sweeps and beside live supervisors, and swept itself when it is killed. A run that
    cannot be read is reported and left alone: one bad box must not stop the operator's work.
    """
    changed = []
    for short_id, name in context.store.active().items():
        try:
            if _tend(context, short_id, name):
                changed.append(name)
        except BoxError as why:
            context.say(f"{name}: {why.message}")
        except OSError as why:
            context.say(f"{name}: it cannot be looked at: {why.strerror}.")
    _collect(context)
    return changed


def _tend(context: Context, short_id: str, name: str) -> bool:
    if not context.store.box(name).state.exists():
        _drop_marker(context, short_id)
        return False
    if gate.unfinished(context, name):
        return gate.recover(context, name) is not None
    state = context.store.load(name)
    verdict = watchdog.judge(state, facts(context, name, state), _patience(context, state))
    if verdict in {Verdict.FINE, Verdict.FOREIGN}:
        return False
    # A moment of patience: whoever looks whether the lock is held keeps others from taking it meanwhile.
    owner = context.store.own(name, timeout=_MOMENT)
    if owner is None:
        # Its supervisor lives: only silence is judged against a live one.
        return verdict is Verdict.STALLED and _stall(context, name, state)
    with contextlib.ExitStack() as undo:
        undo.callback(owner.release)
        # Somebody may have been faster between the look and the lock.
        state = context.store.load(name)
        verdict = watchdog.judge(state, facts(context, name, state, owned=True), _patience(context, state))
        return _recover(context, name, state, verdict)


def _patience(context: Context, state: RunState) -> float:
    """Seconds of silence that the run in *state* may keep; runs of an older version did not say."""
    return context.config.stall_after if state.stall_after is None else state.stall_after


def _mark(context: Context, name: str) -> str:
    return procs.mark(context.store.box(name).path)


def _processes(state: RunState) -> list[tuple[int | None, int | None]]:
    return [(state.guard_pid, state.guard_start), (state.pid, state.pid_start)]


def facts(context: Context, name: str, state: RunState, *, owned: bool = False) -> Facts:
    """What the machine knows about the run *name*; *owned* says that the caller itself holds its owner lock."""
    return Facts(
        host_id=procs.host_id(),
        boot_id=procs.boot_id(),
        owner_alive=not owned and files.is_locked(context.store.box(name).owner_lock),
        child_alive=procs.is_alive(state.pid, state.pid_start),
        wall=context.clock.wall(),
        mono=context.clock.mono(),
    )


def _drop_marker(context: Context, short_id: str) -> None:
    """Drop the marker of a start that died before its box was there; a young one may still be on its way."""
    marker = context.layout.active / short_id
    with contextlib.suppress(OSError):
        if time.time() - marker.stat().st_mtime > STALE:
            marker.unlink()


def _stall(context: Context, name: str, state: RunState) -> bool:
    """A silent run whose supervisor lives but does not act (stopped, hung): reap its tree and say so."""
    if (state.on_stall or context.config.on_stall) == "mark":
        return False
    meta = context.store.meta(name)
    procs.end_remains(_mark(context, name), _processes(state), wait=0)
    failure = Failure(
        kind=FailureKind.STALLED,
        message=f"It said nothing for {_patience(context, state):g} s.",
        last_safe_artifact=settle.last_safe_artifact(context.store.box(name)),
    )

    marked = False

    def change(now: RunState) -> RunState:
        """*now* as STALLED, if it is still ACTIVE."""
        nonlocal marked
        marked = now.status is Status.ACTIVE
        return step(now, Status.STALLED, Actor.WATCHDOG, failure=failure) if marked else now

    written = context.store.update(name, change)
    if not marked:
        # It ended by itself a moment before, or another sweep has said so already.
        return False
    context.journal.append("run.stalled", name, plan.facts(meta, written))
    publish.remove(context.layout, meta.short_id)
    # Its supervisor may have woken and written its end in between: the ledger's last word must be that end.
    now = context.store.load(name)
    if now.phase is Phase.SETTLED:
        _catch_up(context, meta, now)
    return True


def _recover(context: Context, name: str, state: RunState, verdict: Verdict) -> bool:
    """Bring a run whose supervisor is dead to its end; the caller holds its owner lock."""
    meta = context.store.meta(name)
    if verdict is Verdict.SETTLED:
        _catch_up(context, meta, state)
        return False
    if verdict is not Verdict.REBOOTED:
        procs.end_remains(_mark(context, name), _processes(state))
    box = context.store.box(name)
    box.reserve.unlink(missing_ok=True)
    ending, answer, dialect = reread(context, meta, state)
    # Its agent is dead, so the airlock stands still: the work is carried over now as it would have been then.
    goal, mutates = cycles.goal_of(ending.progress), policy.tier(meta.run_type).mutates
    patch, trouble = workshop.salvage(context, meta, goal=goal) if mutates else (None, "")
    ending.notes += [trouble] if trouble else []
    cycling.judge(meta, ending, patch)
    usable = cycles.usable(meta, patch, ending.progress)
    outcome = _outcome(state, verdict, settle.decide(ending, dialect, patch=usable))
    outcome = cycling.accept(context, meta, ending, patch, outcome)
    with files.reported("write the report"):
        settle.write_report(box, meta, ending, answer)
    settled = settle.conclude(
        context.store, context.journal, context.clock, meta, Actor.WATCHDOG, outcome, ending, patch
    )
    cycling.tidy(context, meta, settled)
    publish.remove(context.layout, meta.short_id)
    return True


def _outcome(
    state: RunState, verdict: Verdict, judged: tuple[Status, FailureKind | None, str]
) -> tuple[Status, FailureKind | None, str]:
    """How a dead supervisor's run ended; *judged* is what its stream and exit code alone say."""
    if state.phase is not Phase.FINALIZING:
        return _death(verdict)
    if state.failure:
        # A failed check, a breach, a spent budget: the stream knows nothing of them, and must not end in REVIEW.
        stalled = state.failure.kind is FailureKind.STALLED
        return Status.STALLED if stalled else Status.CRASHED, state.failure.kind, state.failure.message
    # The agent had ended well and only the last steps are missing: they are done now instead.
    finished = state.exit_code == 0 and judged[0] in {Status.DONE, Status.REVIEW, Status.CRASHED}
    return judged if finished else _death(verdict)


def _death(verdict: Verdict) -> tuple[Status, FailureKind | None, str]:
    if verdict is Verdict.STALLED:
        return Status.STALLED, FailureKind.STALLED, "Its supervisor died and it was silent; its processes were ended."
    if verdict is Verdict.REBOOTED:
        return Status.CRASHED, FailureKind.REBOOT, "The machine was restarted while it ran."
    return Status.CRASHED, FailureKind.SUPERVISOR_DIED, "Its supervisor died; its processes were ended."


def reread(context: Context, meta: RunMeta, state: RunState) -> tuple[Ending, str, Dialect]:
    """What the recorded stream of a run tells, as the live supervisor would have heard it."""
    dialect = dialect_of(meta)
    follower = Follower(context.store.box(meta.run_name).stream, dialect)
    ending = Ending(exit_code=state.exit_code)
    try:
        for event in follower.finish():
            ending.progress = reduce(ending.progress, event)
        ending.lines = follower.lines
        return ending, follower.tail() if dialect.plain else "", dialect
    finally:
        follower.close()


def dialect_of(meta: RunMeta) -> Dialect:
    """How the stream of the run *meta* is to be read."""
    try:
        return registry.engine(meta.engine).dialect
    except BoxError:
        # An engine that is no longer installed: its stream is still text.
        return PLAIN


# How a run can end without a human.
_ENDS: Final = frozenset({Status.REVIEW, Status.DONE, Status.CRASHED, Status.STALLED, Status.STOPPED})


def _catch_up(context: Context, meta: RunMeta, state: RunState) -> None:
    """Do again what follows from a settled state: the ledger may not know of it yet."""
    known = context.journal.last(meta.run_name)
    # The phase tells the sealing entry from the one of a watchdog that has only marked the run.
    settled = (str(state.status), state.attempt, str(state.phase))
    if (known.get("status"), known.get("attempt"), known.get("phase")) == settled:
        context.store.deactivate(meta.short_id)
    elif state.status not in _ENDS:
        # Only the gate writes those, and it tells the ledger: this one was written by somebody else.
        failure = Failure(kind=FailureKind.AIRLOCK_BREACH, message="Its state was changed by somebody else.")
        forged = dataclasses.replace(state, status=Status.CRASHED, failure=failure, merge=None, phase=Phase.SETTLED)
        context.store.restore(meta, forged)
        settle.record(context.store, context.journal, meta, forged, recovered=True)
    else:
        settle.record(context.store, context.journal, meta, state, recovered=True)
    publish.remove(context.layout, meta.short_id)


def _collect(context: Context) -> None:
    """Remove the commands of runs that are over, and staging folders that dead starts left."""
    with contextlib.suppress(OSError):
        publish.collect(context.layout, context.store.active())
    for path in context.layout.staging.glob("*"):
        # One that cannot be removed must not keep the others.
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE and not files.is_locked(path / OWNER_LOCK):
                files.remove_tree(path)
    _collect_verified(context)


def _collect_verified(context: Context) -> None:
    """Remove the trees in which a gate that was killed ran `verify:` commands; a living one holds the merge lock."""
    folder = context.layout.trees.parent / "verify"
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    lock = files.Lock(context.layout.merge_lock)
    if lock.acquire(timeout=0):
        with contextlib.ExitStack() as undo, contextlib.suppress(OSError):
            undo.callback(lock.release)
            files.remove_tree(folder)
