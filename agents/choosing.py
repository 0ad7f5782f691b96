"""What a human's word on one of several agents' runs means for the run of the whole: picked, rejected, undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents import gate, plan, resuming
from agents.errors import OperatorError
from agents.model import Actor, Status, step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents.context import Context
    from agents.model import RunState


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


def follow(context: Context, name: str) -> None:
    """Have the run that *name* is a part of stand as its agents do, after a human merged, rejected or undid one.

    Can be repeated; a run of its own, and a whole that is gone or still at work, are left alone.
    """
    whole = _whole(context, name)
    if whole is None:
        return
    states = _agents(context, whole)
    merged = next((state for state in states.values() if state.status is Status.MERGED), None)
    status = context.store.load(whole).status
    if merged and status is Status.REVIEW:
        _reject(context, states, f"{_id(name)} was picked instead.")
        _tell(context, whole, "run.merged", lambda now: _merged(now, merged))
    elif not merged and status is Status.MERGED:
        _tell(context, whole, "run.undone", lambda now: step(now, Status.REVIEW, Actor.HUMAN, merge=None))
    elif status is Status.REVIEW and {state.status for state in states.values()} == {Status.REJECTED}:
        _tell(context, whole, "run.rejected", lambda now: step(now, Status.REJECTED, Actor.HUMAN))


def _whole(context: Context, name: str) -> str | None:
    """Name of the run that *name* is a part of, None where it is none or that one is gone."""
    whole = context.store.meta(name).team
    return whole if whole is not None and context.store.box(whole).state.exists() else None


def _agents(context: Context, whole: str) -> dict[str, RunState]:
    """The agents' runs of *whole* that are still there, with their states."""
    names = context.store.load(whole).workers
    return {name: context.store.load(name) for name in names if context.store.box(name).state.exists()}


def _merged(whole: RunState, chosen: RunState) -> RunState:
    return step(step(whole, Status.MERGING, Actor.HUMAN), Status.MERGED, Actor.HUMAN, merge=chosen.merge)


def _tell(context: Context, whole: str, event: str, change: Callable[[RunState], RunState]) -> None:
    state = context.store.update(whole, change)
    context.journal.append(event, whole, plan.facts(context.store.meta(whole), state), anchor=True)


def _reject(context: Context, states: Mapping[str, RunState], why: str) -> None:
    for name, state in states.items():
        if state.status is Status.REVIEW:
            gate.reject(context, name, why)


def reject(context: Context, name: str, why: str) -> RunState:
    """Say no to the run *name* for the reason *why*; of several agents' run, to what each of them made.

    Raises what :func:`agents.gate.reject` raises.
    """
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
