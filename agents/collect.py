"""`agent gc`: remove boxes that are finished and old; what may still be resumed or reviewed stays."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from agents import files, naming, workshop
from agents.errors import BoxError, HostError
from agents.model import is_terminal
from agents.times import epoch

if TYPE_CHECKING:
    from agents.context import Context


def candidates(context: Context, keep_for: float | None, keep_runs: int | None) -> list[str]:
    """Boxes that go, oldest first: finished, and older than *keep_for* seconds or beyond the newest *keep_runs*.

    Without either limit nothing goes: evidence is not thrown away by default.
    """
    # A run that has settled but whose marker is still there is being written about.
    busy = set(context.store.active().values())
    names = [name for name in context.store.names() if name not in busy]
    beyond = set(names[: max(0, len(names) - keep_runs)]) if keep_runs is not None else set()
    return [name for name in names if _is_over(context, name) and (name in beyond or _is_old(context, name, keep_for))]


def _is_over(context: Context, name: str) -> bool:
    try:
        return is_terminal(context.store.load(name).status)
    except BoxError:
        # What cannot be read is evidence of something.
        return False


def _is_old(context: Context, name: str, keep_for: float | None) -> bool:
    state = context.store.load(name)
    ended = epoch(state.ended_at) or epoch(state.started_at)
    return keep_for is not None and ended is not None and context.clock.wall() - ended > keep_for


def airlocks(context: Context) -> list[str]:
    """Names of the finished runs whose airlocks are still there: nothing of them is needed any more."""
    trees = context.layout.trees
    names = sorted(path.name for path in trees.iterdir()) if trees.is_dir() else []
    return [name for name in names if naming.parse(name) and _is_over(context, name)]


def close(context: Context, name: str) -> bool:
    """Remove the airlock of the finished run *name*; one that holds work nobody has carried into the box stays."""
    try:
        workshop.close(context, name, context.store.load(name).carried_tree)
    except HostError as why:
        context.say(f"{name}: {why.message} {why.hint}".rstrip())
        return False
    return True


def remove(context: Context, name: str) -> bool:
    """Remove the box *name*; the ledger says so first, so that its seals are not missed (and never after).

    Returns False where it stays: it is in use, or its airlock holds work that nobody has carried into the box.
    """
    if context.layout.tree(name).exists() and not close(context, name):
        return False
    owner = context.store.own(name)
    if owner is None:
        return False
    with contextlib.ExitStack() as undo:
        undo.callback(owner.release)
        _remove(context, name)
    return True


def _remove(context: Context, name: str) -> None:
    context.journal.append("run.collected", name, {"status": "COLLECTED"}, anchor=True)
    for pointer, target in context.store.pointers().items():
        if target == name and pointer != "latest":
            (context.layout.pointers / pointer).unlink(missing_ok=True)
    with files.reported(f"remove the box {name}"):
        # Renamed first: half a box is never seen under a run's name.
        grave = context.layout.staging / f"gone-{name}"
        context.store.box(name).path.rename(grave)
        files.remove_tree(grave)
