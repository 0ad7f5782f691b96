"""What follows from a merge or its undoing, repeatable after a crash: state, ledger, journal, marker, airlock."""

from __future__ import annotations

import contextlib

from agents import airlock, files, landing, plan
from agents.errors import BoxError, HostError
from agents.model import Actor, Status, is_terminal, step
from agents.redact import visible
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from agents.context import Context
    from agents.landing import Landed
    from agents.layout import Box
    from agents.model import RunMeta, RunState


def folder_of(context: Context, name: str) -> Path:
    """Where the journal and the staged files of a merge of the run *name* lie."""
    return context.store.box(name).landing


def mark(context: Context, meta: RunMeta) -> None:
    """Have the sweep look at the run until its landing is recorded."""
    with files.reported("mark the run"):
        files.create(context.layout.active / meta.short_id, meta.run_name.encode())


def merged(
    context: Context, meta: RunMeta, landed: Landed, failpoint: Callable[[str], None] = landing.unwatched
) -> RunState:
    """Record what has landed: state, ledger, and only then the journal goes; every part can be repeated."""
    name = meta.run_name

    def end(now: RunState) -> RunState:
        """*now* as MERGED, if it is still being merged."""
        notes = (*now.notes, *(f"The merge left {visible(path)} as you had edited it." for path in landed.kept))
        return step(now, Status.MERGED, Actor.HUMAN, notes=notes) if now.status is Status.MERGING else now

    # State before ledger: a ledger ahead of its state would call it tampered with (I5).
    failpoint("say that it is merged")
    state = context.store.update(name, end)
    failpoint("tell the ledger")
    # Told once, also where a kill came between the telling and the clearing up.
    if context.journal.last(name).get("status") != str(Status.MERGED):
        context.journal.append("run.merged", name, _facts(meta, state), anchor=True)
    failpoint("forget the journal")
    return _over(context, meta, state, close=True)


def _facts(meta: RunMeta, state: RunState) -> dict[str, Any]:
    return {**plan.facts(meta, state), "merge": dict(state.merge) if state.merge else None}


def _over(context: Context, meta: RunMeta, state: RunState, *, close: bool) -> RunState:
    """The last steps of a landing that is recorded: its journal, its marker, and the airlock of a merged run."""
    # The marker goes last, as it is what brings the next sweep here.
    landing.clear(folder_of(context, meta.run_name))
    state = close_airlock(context, meta, state) if close else state
    tidy(context.store.box(meta.run_name))
    _pass_on(context, meta)
    context.store.deactivate(meta.short_id)
    return state


def _pass_on(context: Context, meta: RunMeta) -> None:
    """Have the sweep look at the run of several agents that *meta* is one of: it may have to stand otherwise now."""
    if meta.team is not None and context.store.box(meta.team).state.exists():
        with files.reported("mark the run"):
            files.create(context.layout.active / meta.team.rpartition("__")[2], meta.team.encode())


def tidy(box: Box) -> None:
    """Remove the scratch of whoever was killed over this *box*; the caller holds the run itself."""
    with files.reported("tidy up the box"):
        for left in (*box.room.glob("*.lock"), *box.room.glob("scratch-*")):
            left.unlink(missing_ok=True)
        files.remove_tree(box.bench)


def rejected(context: Context, meta: RunMeta, state: RunState, why: str) -> RunState:
    """Record that a human said no, for the reason *why*; every part can be repeated."""
    if context.journal.last(meta.run_name).get("status") != str(Status.REJECTED):
        context.journal.append("run.rejected", meta.run_name, {**plan.facts(meta, state), "why": why}, anchor=True)
    return _over(context, meta, state, close=True)


def put_away(context: Context, meta: RunMeta, state: RunState) -> RunState:
    """Do what is left to do of a run that has settled, whose marker a killed command has left; under its own lock."""
    if state.status is Status.REJECTED:
        # The words that were given for it are lost with the one who was killed.
        return rejected(context, meta, state, "")
    # Half an airlock is one that was on its way out.
    half = is_terminal(state.status) and not context.layout.tree(meta.run_name).exists()
    return _over(context, meta, state, close=half or state.status is Status.MERGED)


def close_airlock(context: Context, meta: RunMeta, state: RunState) -> RunState:
    """Remove the airlock; one that holds work which is in no patch stays, and the operator is told."""
    try:
        # What differs from the exported tree was written after the export, and is in no patch.
        airlock.close(context.repo, context.layout, meta.run_name, exported_tree=state.carried_tree)
    except HostError as why:
        context.say(f"The airlock stays: {why.message}")
        return state
    return context.store.update(meta.run_name, lambda now: records.replace(now, worktree_path=None))


def undone(context: Context, meta: RunMeta) -> RunState:
    """Record that a merge was taken back: the run is in REVIEW again; every part can be repeated."""

    def back(now: RunState) -> RunState:
        """*now* in REVIEW, if it is still MERGED."""
        return step(now, Status.REVIEW, Actor.HUMAN, merge=None) if now.status is Status.MERGED else now

    state = context.store.update(meta.run_name, back)
    if context.journal.last(meta.run_name).get("status") != str(Status.REVIEW):
        context.journal.append("run.undone", meta.run_name, _facts(meta, state), anchor=True)
    return _over(context, meta, state, close=False)


def unfinished(context: Context, name: str) -> bool:
    """Whether a merge or undo of the run *name* was cut off: then :func:`finish` has to look at it."""
    with contextlib.suppress(BoxError):
        if context.store.load(name).status is Status.MERGING:
            return True
    return landing.is_unfinished(folder_of(context, name))


def finish(context: Context, name: str) -> RunState | None:
    """Finish or undo what a killed merge or undo left half done; None where there is nothing. Under the merge lock."""
    if not unfinished(context, name):
        return None
    meta, state, folder = context.store.meta(name), context.store.load(name), folder_of(context, name)
    # Read before recovery removes it: a journal says by itself whether it is a merge's or an undo's.
    move = landing.pending(folder)
    landed = landing.recover(context.repo, folder)
    moved = landed is not None and landed.moved
    # A state without a merge beside a journal is one whose undoing was written and not yet told.
    if move and (not state.merge or move.before == state.merge.get("commit")):
        return undone(context, meta) if moved else _over(context, meta, state, close=False)
    if landed and moved:
        return merged(context, meta, landed)
    if state.status is Status.MERGED:
        # All was told already, or an undo had only begun: what is left is to clear up.
        return _over(context, meta, state, close=True)
    return to_review(context, meta, Status.MERGING)


def to_review(context: Context, meta: RunMeta, only: Status) -> RunState:
    """Back to REVIEW from *only*: nothing of the merge is left."""

    def back(now: RunState) -> RunState:
        """*now* in REVIEW, if nobody has moved it since."""
        return step(now, Status.REVIEW, Actor.HUMAN, merge=None) if now.status is only else now

    return _over(context, meta, context.store.update(meta.run_name, back), close=False)
