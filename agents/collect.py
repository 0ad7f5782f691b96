"""`agent gc`: remove boxes that are finished and old; what may still be resumed or reviewed stays."""

from __future__ import annotations

import contextlib

from agents import files, naming, workshop
from agents.errors import BoxError, HostError, OperatorError
from agents.model import is_terminal
from agents.times import epoch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agents.context import Context
    from agents.model import RunState


def candidates(context: Context, keep_for: float | None, keep_runs: int | None) -> list[str]:
    """Boxes that go, oldest first: finished, and older than *keep_for* seconds or beyond the newest *keep_runs*.

    Without either limit nothing goes: evidence is not thrown away by default.
    """
    if keep_for is None and keep_runs is None:
        return []
    # A run that has settled but whose marker is still there is being written about.
    busy = set(context.store.active().values())
    names = [name for name in context.store.names() if name not in busy]
    beyond = max(0, len(names) - keep_runs) if keep_runs is not None else 0
    oldest = None if keep_for is None else context.clock.wall() - keep_for
    # Those among the newest are not looked at where their age does not matter.
    looked_at = names[:beyond] if oldest is None else names
    return [name for place, name in enumerate(looked_at) if _goes(context, name, None if place < beyond else oldest)]


def _goes(context: Context, name: str, oldest: float | None) -> bool:
    """Whether the run *name* is finished and ended before the instant *oldest*, if there is one."""
    state = _finished(context, name)
    if state is None or oldest is None:
        return state is not None
    ended = epoch(state.ended_at) or epoch(state.started_at)
    return ended is not None and ended < oldest


def _finished(context: Context, name: str) -> RunState | None:
    """The state of the run *name* if it is finished, else None."""
    try:
        state = context.store.load(name)
    except BoxError:
        # What cannot be read is evidence of something.
        return None
    return state if is_terminal(state.status) else None


def airlocks(context: Context) -> list[str]:
    """Names of the finished runs whose airlocks are still there: nothing of them is needed any more."""
    trees = context.layout.trees
    names = sorted(path.name for path in trees.iterdir()) if trees.is_dir() else []
    return [name for name in names if naming.parse(name) and _finished(context, name)]


def close(context: Context, name: str) -> bool:
    """Remove the airlock of the finished run *name*; one that holds work nobody has carried into the box stays."""
    marker = context.layout.active / name.rpartition("__")[2]
    # A registration whose folder is gone is seen by no later collection: a sweep that finds the mark removes it.
    with files.reported("mark the run"):
        marked = files.create(marker, name.encode())
    try:
        workshop.close(context, name, context.store.load(name).carried_tree)
    except OperatorError:
        # Another collection was faster.
        return False
    except HostError as why:
        context.say(f"{name}: {why.message} {why.hint}".rstrip())
        return False
    finally:
        if marked:
            marker.unlink(missing_ok=True)
    return True


def remove(context: Context, name: str) -> bool:
    """Remove the box *name*; the ledger says so first, so that its seals are not missed (and never after).

    Returns False where it stays: it is in use, or its airlock holds work that nobody has carried into the box.
    """
    if context.layout.tree(name).exists() and not close(context, name):
        return False
    with contextlib.ExitStack() as undo:
        try:
            owner = context.store.own(name)
        except OperatorError:
            # Another collection was faster.
            return False
        if owner is None:
            return False
        undo.callback(owner.release)
        # Its merge may have been taken back between the look and the lock.
        if not _finished(context, name) or name in context.store.active().values():
            return False
        _remove(context, name)
    return True


def keep(context: Context) -> None:
    """Make the removals so far survive a power cut: what has been called removed must not be there again."""
    with files.reported("keep the removals"):
        files.sync_folder(context.layout.runs)


def _remove(context: Context, name: str) -> None:
    # Told once, also where a kill came between the telling and the removal.
    if not any(entry["event"] == "run.collected" for entry in context.journal.story(name)):
        context.journal.append("run.collected", name, {"status": "COLLECTED"}, anchor=True)
    for pointer, target in context.store.pointers().items():
        if target == name and pointer != "latest":
            (context.layout.pointers / pointer).unlink(missing_ok=True)
    with files.reported(f"remove the box {name}"):
        # Renamed first: half a box is never seen under a run's name.
        grave = context.layout.staging / f"gone-{name}"
        context.store.box(name).path.rename(grave)
        files.remove_tree(grave)
