"""What a human's word on one of several agents' runs means for the run of the whole: picked, rejected, undone."""

from __future__ import annotations

import contextlib

from agents import aftermath, gate, plan, resuming
from agents.errors import OperatorError
from agents.model import Actor, Status, step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Final

    from agents.context import Context
    from agents.model import RunState

_MOMENT: Final = 1.0
"""Seconds to wait for whoever has the whole in hand."""


def picked(context: Context, whole: str, number: int | None, verb: str) -> str:
    """The run of the agent *number* of the run *whole*, or *whole* itself where one agent alone worked.

    Raises OperatorError, with what to type for *verb*, where several worked and *number* names none of them.
    """
    workers = context.store.load(whole).workers
    if not workers and context.store.meta(whole).engine != resuming.TEAM:
        if number not in {None, 1}:
            raise OperatorError("Only one agent worked on this.", f"Type: ./agent {verb} {_id(whole)}")
        return whole
    if number is None and len(workers) == 1:
        number = 1
    if number is None:
        raise OperatorError(f"{len(workers)} agents worked on this.", f"Pick one: ./agent {verb} {_id(whole)} --pick 1")
    if number > len(workers):
        raise OperatorError(f"Only {len(workers)} worked on this.", f"Type: ./agent show {_id(whole)}")
    # A command that was killed may have settled the agent's run alone.
    follow(context, workers[number - 1])
    return workers[number - 1]


def follow(context: Context, name: str, *, owned: bool = False) -> bool:
    """Have several agents' run, which *name* is or is a part of, stand as they do, after a human's word on one of them.

    *owned* says that the caller holds the owner lock of the whole. Can be repeated, and is by the sweep; a run of its
    own, and a whole that is gone or still at work, are left alone. Returns False where another process has the whole in
    hand: that one does it, or the next sweep. Raises what :func:`agents.gate.reject` raises.
    """
    whole = _whole(context, name)
    if whole is None:
        return True
    states = _agents(context, whole)
    picked = next((each for each, state in states.items() if state.status is Status.MERGED), None)
    if picked and context.store.load(whole).status is Status.REVIEW:
        _reject(context, states, f"{_id(picked)} was picked instead.")
    with contextlib.ExitStack() as undoing:
        if not owned:
            owner = context.store.own(whole, timeout=_MOMENT)
            if owner is None:
                return False
            undoing.callback(owner.release)
        _agree(context, whole)
    return True


def _whole(context: Context, name: str) -> str | None:
    """Name of the run that *name* is or is a part of, None where one agent alone worked, or the whole is gone."""
    whole = context.store.meta(name).team or name
    return whole if context.store.box(whole).state.exists() and context.store.load(whole).workers else None


def _agree(context: Context, whole: str) -> None:
    """Bring state and ledger of *whole* to where its agents stand; the caller holds its owner lock."""
    agents = _agents(context, whole).values()
    state, known = context.store.load(whole), context.journal.last(whole).get("status")
    event, status = _due(known, {each.status for each in agents})
    # A state that is neither what was told nor what is to be told was written by somebody else.
    if event and str(state.status) in {known, str(status)}:
        # The marker first: a kill in between would leave a state that the ledger contradicts for ever.
        aftermath.mark(context, context.store.meta(whole))
        chosen = next((each for each in agents if each.status is Status.MERGED), None)
        state = context.store.update(whole, lambda now: _turned(now, status, chosen))
        context.journal.append(event, whole, plan.facts(context.store.meta(whole), state), anchor=True)
        known = str(status)
    if known == str(state.status) and state.status is not Status.ACTIVE:
        context.store.deactivate(_id(whole))


def _due(known: str | None, agents: Collection[Status]) -> tuple[str, Status]:
    """Event and status that are due for a whole that was told as *known* and whose agents are *agents*; or no event."""
    if known == Status.REVIEW and Status.MERGED in agents:
        return "run.merged", Status.MERGED
    if known == Status.MERGED and Status.MERGED not in agents:
        return "run.undone", Status.REVIEW
    if known == Status.REVIEW and set(agents) == {Status.REJECTED}:
        return "run.rejected", Status.REJECTED
    return "", Status.REVIEW


def _turned(whole: RunState, status: Status, chosen: RunState | None) -> RunState:
    """*whole* in *status*, in which it may be already; *chosen* is the agent's run that was merged."""
    if whole.status is status:
        return whole
    if status is Status.MERGED:
        whole = step(whole, Status.MERGING, Actor.HUMAN)
    return step(whole, status, Actor.HUMAN, merge=chosen.merge if chosen else None)


def _agents(context: Context, whole: str) -> dict[str, RunState]:
    """The agents' runs of *whole* that are still there, with their states."""
    names = context.store.load(whole).workers
    return {name: context.store.load(name) for name in names if context.store.box(name).state.exists()}


def _reject(context: Context, states: Mapping[str, RunState], why: str) -> None:
    for name, state in states.items():
        if state.status is Status.REVIEW:
            gate.reject(context, name, why)


def reject(context: Context, name: str, why: str) -> RunState:
    """Say no to the run *name* for the reason *why*; of several agents' run, to what each of them made.

    Raises what :func:`agents.gate.reject` raises.
    """
    if context.store.load(name).status is Status.REVIEW:
        # The agents first: whoever is killed in between can type it again.
        _reject(context, _agents(context, name), why)
    state = gate.reject(context, name, why)
    _reject(context, _agents(context, name), why)
    follow(context, name)
    return state


def undo(context: Context, name: str) -> RunState:
    """Take the merge of the run *name* back; of several agents' run, that of the agent that was picked.

    Raises what :func:`agents.gate.undo` raises.
    """
    merged = [each for each, state in _agents(context, name).items() if state.status is Status.MERGED]
    state = gate.undo(context, merged[0] if merged else name)
    follow(context, merged[0] if merged else name)
    return context.store.load(name) if merged else state


def _id(name: str) -> str:
    return name.rpartition("__")[2]
