"""The gate to the operator's branches: merge, reject, undo, diff; a human's word is asked for and bound to bytes."""

from __future__ import annotations

import contextlib
import os

from agents import aftermath, approval, files, inside, judgement, landing, locks, plan, settle, verifying
from agents.errors import BoxError, OperatorError, Tampered
from agents.lockorder import Rank
from agents.model import Actor, Status, step
from agents.redact import visible
from essentials import digests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Final

    from agents.cleanroom import CleanRoom
    from agents.context import Context
    from agents.judgement import Case
    from agents.model import RunMeta, RunState
    from agents.verifying import Runner

_PATIENCE: Final = 10.0
"""Seconds to wait for another merge to end."""
_MOMENT: Final = 1.0
_REASON: Final = 500
"""Characters of a reason or refusal that the ledger keeps."""


def inside_a_run(context: Context) -> str | None:
    """Why this process counts as part of a run, as a sentence, or None (see :func:`agents.inside.reason`)."""
    return inside.reason(context.environ, os.getpid(), _agents(context))


def _agents(context: Context) -> set[tuple[int | None, int | None]]:
    """Pid and start of what the runs that are ACTIVE have recorded; a box that cannot be read has none."""
    found: set[tuple[int | None, int | None]] = set()
    for name in context.store.active().values():
        # One bad box must not open the gate, nor close it.
        with contextlib.suppress(BoxError):
            state = context.store.load(name)
            found |= {(state.pid, state.pid_start), (state.guard_pid, state.guard_start)}
    return found


def examine(context: Context, name: str, *, branch: str | None = None, runner: Runner | None = None) -> Case:
    """What merging the run *name* would be, with the `verify:` commands run; nothing is changed but verify.json.

    Raises what :func:`agents.judgement.examine` raises; a refusal is recorded in the ledger.
    """
    with _locked(context), _recorded(context, name), judgement.bench(context, name) as room:
        return _examined(context, name, room, branch, runner)


def _examined(context: Context, name: str, room: CleanRoom, branch: str | None, runner: Runner | None) -> Case:
    case = judgement.examine(context, name, room, branch=branch)
    commands = context.config.verify
    if not commands:
        return case
    folder = context.layout.root / "agent_box" / "verify" / name
    run = runner or verifying.in_cell(context, name)
    furnish = verifying.furnisher(context)
    found = verifying.verify(room, case.tree, case.changes, commands, folder, run, furnish)
    verifying.record(context.store.box(name).path / "verify.json", case.tree, found)
    return judgement.with_verified(case, found)


def merge(
    context: Context,
    name: str,
    *,
    approve: str | None = None,
    ask: Callable[[Case], str] | None = None,
    branch: str | None = None,
    runner: Runner | None = None,
    within: Callable[[Context], str | None] = inside_a_run,
    failpoint: Callable[[str], None] = landing.unwatched,
) -> RunState:
    """Merge the run *name*, which is in REVIEW, onto the branch that HEAD is on or to a new *branch*; its new state.

    *approve* is the beginning of the patch's SHA-256; without it *ask* is shown the case and returns what was typed.
    *runner* runs a `verify:` command (default: in the sandbox). *within* says why this process counts as part of a run.
    *failpoint* is told the name of every effect before it happens.

    Raises OperatorError without a valid approval, for a run that is not in REVIEW, a conflict, a failed `verify:`
    command, files in the way; AgentError for a change that is never merged; Tampered for evidence that disagrees. The
    repository is as it was then, and the run stays in REVIEW (design, section 7; T149, T150).
    """
    _outside(context, name, within)
    with _locked(context), _owned(context, name), _recorded(context, name):
        # A merge that was killed is finished before anybody judges what HEAD holds.
        aftermath.finish(context, name)
        with _marked(context, name), judgement.bench(context, name) as room:
            case = _examined(context, name, room, branch, runner)
            _approved(context, case, approve, ask)
            return _land(context, case, room, failpoint)


def _approved(context: Context, case: Case, approve: str | None, ask: Callable[[Case], str] | None) -> None:
    """Raise OperatorError unless a human has said yes to this very *case*."""
    failed = verifying.failures(case.verified)
    # On a branch of its own what fails can be looked at; it is flagged there.
    if failed and not case.is_new:
        shown = visible(", ".join(map(str, failed)))
        raise OperatorError(
            f"The verify commands fail on the result: {shown}.",
            f"See verify.json; look at it on a branch of its own: ./agent merge {case.meta.short_id} --branch NAME",
        )
    if not case.is_new:
        approval.allow(case.state.isolation, case.meta.short_id, trusted=context.config.trust_unsandboxed)
    if approve is not None:
        # What the approval acknowledges; it was given before, but it is told again where somebody may read it.
        for line in (case.summary, *(f"  ! {flag}" for flag in case.flags)):
            context.say(line)
        approval.check(approve, case.statement.patch_sha256)
    elif ask is not None:
        approval.confirm(ask(case), case.statement)
    else:
        raise approval.missing(case.meta.short_id)


def _land(context: Context, case: Case, room: CleanRoom, failpoint: Callable[[str], None]) -> RunState:
    """Commit the approved tree and bring it in; the state says MERGING from before the first effect on."""
    meta, statement = case.meta, case.statement
    # A task may be a book; its first words are the subject, and no line of it can pass for a trailer.
    subject = plan.heading(meta, case.state).strip() or meta.run_name
    message = f"{subject}\n\nAgent-Run: {meta.run_name}\nAgent-Patch: {statement.patch_sha256}\n"
    identity = landing.identity(context.repo, context.environ)
    failpoint("send the objects")
    commit = landing.committed(room, case.tree, case.before, message, identity)
    facts = {
        "target": case.target, "before": case.before, "commit": commit, "tree": case.tree, "branch": case.is_new,
        "statement": statement.digest(), "flags": [flag.kind for flag in case.flags],
    }  # fmt: skip
    move = landing.Move(
        run=meta.run_name, target=case.target, before=None if case.is_new else case.before, after=commit,
        reason=f"merge {meta.run_name}", changes=case.changes, checkout=not case.is_new,
    )  # fmt: skip
    failpoint("say that it is being merged")
    # The marker first: a run that is MERGING without one would be found by no sweep.
    aftermath.mark(context, meta)
    context.store.update(meta.run_name, lambda now: step(now, Status.MERGING, Actor.HUMAN, merge=facts))
    try:
        landed = landing.land(context.repo, room, move, aftermath.folder_of(context, meta.run_name), failpoint)
    except BoxError:
        _settle_failure(context, meta)
        raise
    return aftermath.merged(context, meta, landed, failpoint)


def _settle_failure(context: Context, meta: RunMeta) -> None:
    """After an error: back to REVIEW where nothing has happened; else the next sweep finishes what has begun."""
    if landing.is_unfinished(aftermath.folder_of(context, meta.run_name)):
        context.say("The branch has moved, but the files are not all in place yet; the next command goes on with it.")
    else:
        aftermath.to_review(context, meta, Status.MERGING)


def reject(
    context: Context, name: str, why: str, *, within: Callable[[Context], str | None] = inside_a_run
) -> RunState:
    """Say no to the run *name* for the reason *why*; its airlock goes, its patch stays in the box. Its new state.

    Raises OperatorError where the run still works, was merged, or has nothing to reject.
    """
    _outside(context, name, within)
    with _locked(context), _owned(context, name):
        aftermath.finish(context, name)
        meta, state = context.store.meta(name), context.store.load(name)
        if state.status not in {Status.REVIEW, Status.CRASHED, Status.STALLED, Status.STOPPED}:
            raise OperatorError(f"Run {meta.short_id} is {state.status}; there is nothing to reject.", _look_at(meta))
        # The marker first: a kill in between would leave a state that the ledger contradicts for ever.
        aftermath.mark(context, meta)
        state = context.store.update(name, lambda now: step(now, Status.REJECTED, Actor.HUMAN))
        return aftermath.rejected(context, meta, state, why[:_REASON])


def undo(
    context: Context,
    name: str,
    *,
    within: Callable[[Context], str | None] = inside_a_run,
    failpoint: Callable[[str], None] = landing.unwatched,
) -> RunState:
    """Take the merge of the run *name* back, while its branch still stands there; the run is in REVIEW again (M20).

    Raises OperatorError where it was not merged, the branch has moved on, or files are in the way: nothing changed.
    """
    _outside(context, name, within)
    with _locked(context), _owned(context, name), _recorded(context, name):
        aftermath.finish(context, name)
        meta, state = context.store.meta(name), context.store.load(name)
        if state.status is not Status.MERGED or not state.merge:
            raise OperatorError(f"Run {meta.short_id} is {state.status}, not merged.", _look_at(meta))
        # What a state says is where a branch is moved to: it has to be what the ledger was told.
        if context.journal.last(name).get("merge") != dict(state.merge):
            raise Tampered(f"State and ledger of {name} tell of different merges.", "Type: ./agent verify")
        _check_still_there(context, state)
        with _marked(context, name), judgement.bench(context, name) as room:
            _take_back(context, meta, state.merge, room, failpoint)
            return aftermath.undone(context, meta)


def _take_back(
    context: Context, meta: RunMeta, done: Mapping[str, Any], room: CleanRoom, failpoint: Callable[[str], None]
) -> None:
    """Move the branch of the merge *done* back, and the checkout where HEAD is on it."""
    folder = aftermath.folder_of(context, meta.run_name)
    back = landing.Move(
        run=meta.run_name, target=done["target"], before=done["commit"],
        after=None if done["branch"] else done["before"], reason=f"undo {meta.run_name}",
        changes=room.changes(done["commit"], done["before"]),
        checkout=not done["branch"] and landing.head_ref(context.repo) == done["target"],
    )  # fmt: skip
    aftermath.mark(context, meta)
    try:
        landing.land(context.repo, room, back, folder, failpoint)
    except BoxError:
        if not landing.is_unfinished(folder):
            context.store.deactivate(meta.short_id)
        raise


def _check_still_there(context: Context, state: RunState) -> None:
    """Raise OperatorError where the merge of *state* can no longer be taken back by moving its branch."""
    done = state.merge or {}
    target, commit = str(done["target"]), str(done["commit"])
    name = visible(target.removeprefix("refs/heads/"))
    now, _, place = landing.where(context.repo, target)
    if now != commit:
        raise OperatorError(f"{name} no longer stands at this merge.", f"Type: git revert {commit[:12]}")
    # A checkout elsewhere would silently fall behind its own branch.
    here = os.path.realpath(context.repo.root)
    if place and (os.path.realpath(place) != here or done["branch"]):
        raise OperatorError(f"{name} is checked out in {visible(place)}.", "Switch to another branch there first.")


def diff(context: Context, name: str) -> str:
    """The patch of the run *name* for people, made visible.

    Raises OperatorError where there is none, Tampered where it is not the one that was recorded.
    """
    state = context.store.load(name)
    box = context.store.box(name)
    data = files.read_capped(box.path / "changes.patch", settle.PATCH_LIMIT)
    if data is None:
        raise OperatorError("This run has no patch.", f"Type: ./agent show {name}")
    # What was read is what is shown: the file could be another one by the time that it is read again.
    if state.patch and digests.sha256(data).hexdigest() != state.patch.get("sha256"):
        raise Tampered("changes.patch is not the one that was recorded.", "Type: ./agent verify")
    return judgement.shown(data)


def unfinished(context: Context, name: str) -> bool:
    """Whether a merge or undo of the run *name* was cut off: then :func:`recover` has to look at it."""
    return aftermath.unfinished(context, name)


def recover(context: Context, name: str) -> RunState | None:
    """Finish or undo what a killed merge of the run *name* left half done; None where a live one is at it (C11).

    Forward where the branch has moved or nothing was edited since, else back to REVIEW. Raises HostError where the
    disk or git fail, Tampered where the journal is not what was written; both can be tried again.
    """
    lock = locks.Lock(context.layout.merge_lock, Rank.MERGE)
    if not lock.acquire(timeout=0):
        return None
    with contextlib.ExitStack() as undoing:
        undoing.callback(lock.release)
        return aftermath.finish(context, name)


# --- Locks, marks and words -------------------------------------------------------------------------------------------


def _look_at(meta: RunMeta) -> str:
    return f"Type: ./agent show {meta.short_id}"


@contextlib.contextmanager
def _locked(context: Context) -> Iterator[None]:
    lock = locks.Lock(context.layout.merge_lock, Rank.MERGE)
    if not lock.acquire(timeout=_PATIENCE):
        raise OperatorError("Another merge is going on.", "Finish it first, or type: ./agent status")
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _owned(context: Context, name: str) -> Iterator[None]:
    """Hold the run itself: nobody resumes it while it is merged."""
    owner = context.store.own(name, timeout=_MOMENT)
    if owner is None:
        raise OperatorError("This run still has a supervisor.", "Type: ./agent status")
    try:
        yield
    finally:
        owner.release()


@contextlib.contextmanager
def _marked(context: Context, name: str) -> Iterator[None]:
    """Have the next sweep look at the run should this process be killed; a refusal leaves it as it was."""
    meta, before = context.store.meta(name), context.store.load(name).status
    aftermath.mark(context, meta)
    try:
        yield
    except BaseException:
        with contextlib.suppress(BoxError):
            # What was decided and told before the fault is gone on with by the next sweep.
            if context.store.load(name).status is before and not aftermath.unfinished(context, name):
                context.store.deactivate(meta.short_id)
        raise


@contextlib.contextmanager
def _recorded(context: Context, name: str) -> Iterator[None]:
    """Tell the ledger of every refusal, also of those that an agent may have provoked."""
    try:
        yield
    except BoxError as why:
        event = "gate.conflict" if isinstance(why, judgement.Conflict) else "gate.refused"
        # A ledger that cannot be written must not hide why the merge was refused.
        with contextlib.suppress(BoxError):
            context.journal.append(event, name, {"why": why.message[:_REASON], "code": why.code})
        raise


def _outside(context: Context, name: str, within: Callable[[Context], str | None]) -> None:
    """Raise OperatorError inside of a run, and record the attempt (M01-M03)."""
    if found := within(context):
        with _recorded(context, name):
            raise OperatorError(found, "Only a human merges: type it in a terminal of your own.")
