"""The watchdog's round at the start of every command: finish what a dead supervisor left half done."""

from __future__ import annotations

import contextlib
import time

from agents import cycles, cycling, files, glance, locks, plan, policy, procs, publish, rereading, settle, watchdog
from agents.engines import registry
from agents.errors import BoxError, Tampered
from agents.events import PLAIN
from agents.layout import DATA, OWNER_LOCK, STALE
from agents.lockorder import Rank
from agents.model import Actor, Failure, FailureKind, Phase, Status, step
from agents.pump import Ending
from agents.watchdog import Facts, Verdict
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any, Final

    from agents.context import Context
    from agents.events import Dialect
    from agents.layout import Layout
    from agents.model import RunMeta, RunState

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
    _unlock(context)
    if told := unfinished(context.layout):
        context.say(f"{told} Type: ./agent hollow restore FILE")
    with contextlib.suppress(BoxError):
        if glance.is_behind(str(context.layout.ledger), str(context.layout.dashboard)):
            context.journal.catch_up()
    return changed


def unfinished(layout: Layout) -> str:
    """A sentence on the `hollow restore` that was cut off, or nothing; while agents live there is none to be told."""
    left = glance.set_aside(str(layout.data))
    if not left or locks.is_locked(layout.live_lock):
        return ""
    there = "may be the old one or the restored one" if layout.memory.is_dir() else "is not in its place"
    what = f"A restore of the agents' memory was cut off: it {there}, and {DATA}/{left[0]} is left."
    return f"{what} The next one removes that, or puts it aside or back."


def _tend(context: Context, short_id: str, name: str) -> bool:
    if not context.store.box(name).state.exists():
        _drop_marker(context, short_id)
        return False
    if _cut_off(context, name):
        from agents import gate

        return gate.recover(context, name) is not None and _follow(context, name)
    state = context.store.load(name)
    verdict = watchdog.judge(state, facts(context, name, state), _patience(context, state))
    if verdict in {Verdict.FINE, Verdict.FOREIGN}:
        return False
    if verdict is Verdict.SETTLED and _in_hand(context, name, state):
        return False
    changed = _bring_to_end(context, name, state, verdict)
    # One that was silent and is still owned has only been marked: it settles later, and is then to be found.
    if verdict is Verdict.SETTLED or context.store.load(name).phase is Phase.SETTLED:
        _follow(context, name)
    return changed


def _in_hand(context: Context, name: str, state: RunState) -> bool:
    """Whether the supervisor of a settled run is about to be done with it, or a gate is at work on it."""
    locked = locks.is_locked(context.store.box(name).owner_lock)
    return locked or (bool(state.workers) and not _follow(context, name))


def _follow(context: Context, name: str) -> bool:
    """Have several agents' run stand as they do, where *name* is it or one of them; False where a gate is at work."""
    # A gate was killed between its word on the one and on the other.
    if context.store.meta(name).team is None and not context.store.load(name).workers:
        return True
    from agents import choosing

    try:
        return not locks.is_locked(context.layout.merge_lock) and choosing.follow(context, name)
    except Tampered as why:
        # Nothing more can follow from an agent's run that cannot be read: looked for for ever it would be no truer.
        context.say(f"{name}: {why.message}")
        return True


def _bring_to_end(context: Context, name: str, state: RunState, verdict: Verdict) -> bool:
    """What :func:`_recover` does, if nobody else has the run *name* in hand; *state* and *verdict* are of before."""
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


def _cut_off(context: Context, name: str) -> bool:
    """Whether a merge or undo of the run *name* was cut off; the gate's imports are paid where one has begun."""
    with contextlib.suppress(BoxError):
        if context.store.load(name).status is Status.MERGING:
            return True
    if not context.store.box(name).landing.exists():
        return False
    from agents import gate

    return gate.unfinished(context, name)


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
        owner_alive=not owned and locks.is_locked(context.store.box(name).owner_lock),
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
        _catch_up(context, meta, state, alone=True)
        return False
    if verdict is not Verdict.REBOOTED:
        procs.end_remains(_mark(context, name), _processes(state))
    box = context.store.box(name)
    box.reserve.unlink(missing_ok=True)
    if box.room.exists():
        from agents import aftermath

        aftermath.tidy(box)
    ending, answer, dialect = reread(context, meta, state)
    # Its agent is dead, so the airlock stands still: the work is carried over now as it would have been then.
    goal, mutates = cycles.goal_of(ending.progress), policy.tier(meta.run_type).mutates
    patch, trouble = _salvaged(context, meta, goal) if mutates else (None, "")
    ending.notes += [trouble] if trouble else []
    cycling.judge(meta, ending, patch)
    usable = cycles.usable(meta, patch, ending.progress)
    kept = not mutates or cycling.is_kept(context, meta)
    outcome = _outcome(state, verdict, settle.decide(ending, dialect, patch=usable), kept=kept)
    outcome = cycling.accept(context, meta, ending, patch, outcome)
    with files.reported("write the report"):
        settle.write_report(box, meta, ending, answer)
    # Before the marker goes with the settling: a sweep that is killed here has to be found by the next one.
    publish.remove(context.layout, meta.short_id)
    settled = settle.conclude(
        context.store, context.journal, context.clock, meta, Actor.WATCHDOG, outcome, ending, patch
    )
    cycling.tidy(context, meta, settled)
    return True


def _salvaged(context: Context, meta: RunMeta, goal: str | None) -> tuple[Mapping[str, Any] | None, str]:
    from agents import workshop

    return workshop.salvage(context, meta, goal=goal)


def _outcome(
    state: RunState, verdict: Verdict, judged: tuple[Status, FailureKind | None, str], *, kept: bool
) -> tuple[Status, FailureKind | None, str]:
    """How a dead supervisor's run ended; *judged* is what its stream and exit code alone say.

    *kept* says that a power cut can have taken nothing of its work.
    """
    if state.phase is not Phase.FINALIZING:
        return _death(verdict)
    if state.failure:
        # A failed check, a breach, a spent budget: the stream knows nothing of them, and must not end in REVIEW.
        stalled = state.failure.kind is FailureKind.STALLED
        return Status.STALLED if stalled else Status.CRASHED, state.failure.kind, state.failure.message
    if verdict is Verdict.REBOOTED and not kept:
        # The stream is on the disk before that phase is, but nobody has flushed the files that the agent wrote: what is
        # left of them is carried over, and nothing says that it is all.
        return _death(verdict)
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
    heard = rereading.reread(context.store.box(meta.run_name).stream, dialect)
    ending = Ending(exit_code=state.exit_code, progress=heard.progress, lines=heard.lines)
    return ending, heard.answer, dialect


def dialect_of(meta: RunMeta) -> Dialect:
    """How the stream of the run *meta* is to be read."""
    try:
        return registry.engine(meta.engine).dialect
    except BoxError:
        # An engine that is no longer installed: its stream is still text.
        return PLAIN


# How a run can end without a human.
_ENDS: Final = frozenset({Status.REVIEW, Status.DONE, Status.CRASHED, Status.STALLED, Status.STOPPED})


def _catch_up(context: Context, meta: RunMeta, state: RunState, *, alone: bool = False) -> None:
    """Do again what follows from a settled state: the ledger may not know of it yet.

    *alone* says that its supervisor is dead; one that lives copies what its agent has said by itself.
    """
    publish.remove(context.layout, meta.short_id)
    known = context.journal.last(meta.run_name)
    # The phase tells the sealing entry from the one of a watchdog that has only marked the run.
    settled = (str(state.status), state.attempt, str(state.phase))
    if (known.get("status"), known.get("attempt"), known.get("phase")) == settled or _was_refused(state, known):
        from agents import aftermath

        aftermath.put_away(context, meta, cycling.tidy(context, meta, state))
    elif state.status not in _ENDS:
        # Only the gate writes those, and it tells the ledger: this one was written by somebody else.
        failure = Failure(kind=FailureKind.AIRLOCK_BREACH, message="Its state was changed by somebody else.")
        forged = records.replace(state, status=Status.CRASHED, failure=failure, merge=None, phase=Phase.SETTLED)
        context.store.restore(meta, forged)
        settle.record(context.store, context.journal, meta, forged, recovered=True)
    else:
        if alone:
            _retell(context, meta, state)
        settle.record(context.store, context.journal, meta, state, recovered=True)
        cycling.tidy(context, meta, state)


def _retell(context: Context, meta: RunMeta, state: RunState) -> None:
    """Tell the ledger what the agent has said and nobody has told yet; a stream that cannot be read tells nothing."""
    # Asked for, because hearing makes it, and a run of several agents has none.
    if not context.store.box(meta.run_name).stream.exists():
        return
    try:
        ending, _, _ = reread(context, meta, state)
    except OSError as why:
        context.say(f"{meta.run_name}: what its agent has said cannot be read: {why.strerror}.")
        return
    settle.tell(context.journal, meta, Actor.WATCHDOG, ending)


def _was_refused(state: RunState, known: Mapping[str, Any]) -> bool:
    """Whether a human was rejecting a run whose end had been told, and was cut off before the ledger knew."""
    told = known.get("phase") == str(Phase.SETTLED) and known.get("attempt") == state.attempt
    return told and state.status is Status.REJECTED


def _collect(context: Context) -> None:
    """Remove the commands of runs that are over, and staging folders that dead starts left."""
    with contextlib.suppress(OSError):
        publish.collect(context.layout, context.store.active())
    for path in context.layout.staging.glob("*"):
        # One that cannot be removed must not keep the others.
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > STALE and not _is_owned(path):
                files.remove_tree(path)
    _collect_verified(context)


def _unlock(context: Context) -> None:
    """Free the branch of the commons where the power was cut while git moved it: the operator's git minds the lock."""
    if (context.repo.common_dir / glance.COMMONS_LOCK).exists():
        from agents import commons

        with contextlib.suppress(BoxError, OSError):
            commons.unlock(context.repo)


def _is_owned(path: Path) -> bool:
    """Whether what is in the making at *path* has a living owner; a link is one that was about to be swapped in."""
    return not path.is_symlink() and locks.is_locked(path / OWNER_LOCK)


def _collect_verified(context: Context) -> None:
    """Remove the trees in which a gate that was killed ran `verify:` commands; a living one holds the merge lock."""
    folder = context.layout.trees.parent / "verify"
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    lock = locks.Lock(context.layout.merge_lock, Rank.MERGE)
    if lock.acquire(timeout=0):
        with contextlib.ExitStack() as undo, contextlib.suppress(OSError):
            undo.callback(lock.release)
            files.remove_tree(folder)
