"""What the supervisor does around a cycle besides what it does around any run: before its box, at its end, after it.

For runs of other types every function here does nothing, so that the spine reads the same for all, and what a cycle
alone needs is imported where it is needed.
"""

from __future__ import annotations

import contextlib

from agents import cycles, files, locks, naming, policy
from agents.errors import BoxError, OperatorError
from agents.lockorder import Rank
from agents.model import FailureKind, Status
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from agents.context import Context
    from agents.model import RunMeta, RunState
    from agents.plan import Ask
    from agents.pump import Ending

_OVER = cycles.KEPT | {Status.CRASHED, Status.STALLED, Status.STOPPED}
"""Ends after which an airlock may still be there: the cycle came to no good one, or its supervisor died tidying up."""


# --- Before there is a box --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def alone(context: Context, run_type: str, agent: str | None) -> Iterator[None]:
    """Be the only one that lets *agent* live, for the time of the ``with``; raises OperatorError where somebody does.

    Two cycles of one agent at a time would each go on from what the other does not know yet.
    """
    if run_type != policy.CYCLE:
        yield
        return
    if agent not in policy.AGENTS:
        raise OperatorError("There is no such agent.", f"Agents: {', '.join(policy.AGENTS)}.")
    lock = locks.Lock(context.layout.agent_lock(agent), Rank.AGENT)
    if not lock.acquire(timeout=0):
        raise OperatorError(f"{agent} is in the middle of a cycle.", "Wait for it, or type: ./agent status")
    try:
        yield
    finally:
        lock.release()


def begin(context: Context, ask: Ask) -> Ask:
    """*ask* with the commit that its airlock begins with; what an earlier cycle of the agent left is put away."""
    if ask.run_type != policy.CYCLE:
        return ask
    from agents import commons

    for name in _left_behind(context, ask.agent):
        # A resume opens it anew from the patch; nothing is lost with the folder.
        with contextlib.suppress(BoxError, OSError):
            put_away(context, name, context.store.load(name))
    return records.replace(ask, start=commons.begin(context))


def _left_behind(context: Context, agent: str | None) -> list[str]:
    """Cycles of *agent* that are over and whose airlocks, or the registrations of these alone, are still there."""
    folders = (context.layout.trees, context.repo.common_dir / "worktrees")
    names = sorted({path.name for folder in folders if folder.is_dir() for path in folder.iterdir()})
    return [name for name in names if naming.parse(name) and _is_left(context, name, agent)]


def _is_left(context: Context, name: str, agent: str | None) -> bool:
    try:
        meta, state = context.store.meta(name), context.store.load(name)
    except BoxError:
        # What cannot be read is evidence of something.
        return False
    return meta.run_type == policy.CYCLE and meta.agent == agent and state.status in _OVER


# --- At its end -------------------------------------------------------------------------------------------------------


def judge(meta: RunMeta, ending: Ending, patch: Mapping[str, Any] | None) -> None:
    """Call it a breach where a cycle has changed what is not its own; an earlier reason to fail stands."""
    strays = (patch or {}).get("strays")
    if meta.run_type == policy.CYCLE and strays and not ending.cause:
        ending.cause = FailureKind.AIRLOCK_BREACH
        ending.message = f"It changed what is not {meta.agent}'s to change: {', '.join(strays[:5])}."


def accept(
    context: Context, meta: RunMeta, ending: Ending, patch: Mapping[str, Any] | None,
    outcome: tuple[Status, FailureKind | None, str],
) -> tuple[Status, FailureKind | None, str]:  # fmt: skip
    """Bring a cycle that ended well to the commons, before it is settled; returns how it then ended.

    Can be repeated after a kill: a run is committed once. A commons that cannot take it is the cycle's failure, and the
    cycle can be resumed.
    """
    if not cycles.is_taken_in(meta, outcome[0]) or not patch:
        return outcome
    from agents import commons
    from agents.cleanroom import CleanRoom

    room = CleanRoom(context.store.box(meta.run_name).room, context.repo)
    try:
        commons.accept(context, room, meta, patch["airlock"], cycles.goal_of(ending.progress))
    except (BoxError, OSError) as why:
        words = why.message if isinstance(why, BoxError) else str(why.strerror)
        return Status.CRASHED, FailureKind.EXPORT, f"The commons could not take it in: {words}"
    return outcome


def is_kept(context: Context, meta: RunMeta) -> bool:
    """Whether the run *meta* is a cycle that the commons have taken in, and with it what is in its airlock."""
    if meta.run_type != policy.CYCLE:
        return False
    from agents import commons

    with contextlib.suppress(BoxError):
        return commons.holds(context.repo, meta)
    return False


# --- After it ---------------------------------------------------------------------------------------------------------


def tidy(context: Context, meta: RunMeta, state: RunState) -> RunState:
    """Put away the airlock of a cycle that the commons hold, and what weighs most in its box: there will be thousands.

    Returns the state as it then is. What cannot be removed stays for `agent gc`. The marker goes last: until then the
    next sweep does what a killed one has left.
    """
    if not cycles.is_taken_in(meta, state.status):
        return state
    try:
        state = put_away(context, meta.run_name, state)
    except (BoxError, OSError) as why:
        context.say(f"The airlock stays: {why.message if isinstance(why, BoxError) else why.strerror}")
    with files.reported("drop the marker"):
        context.store.deactivate(meta.short_id)
    return state


def put_away(context: Context, name: str, state: RunState) -> RunState:
    """Remove the airlock of the run *name* and the clean room beside it; the box keeps all that is evidence.

    Raises HostError, with everything left as it is, where the airlock holds what was not carried into the box.
    """
    from agents import workshop

    workshop.close(context, name, state.carried_tree)
    box = context.store.box(name)
    for folder in (box.room, box.home):
        files.remove_tree(folder)
    return context.store.update(name, lambda now: records.replace(now, worktree_path=None), durable=False)
