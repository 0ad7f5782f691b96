"""What an agent said of its cycle, read with suspicion: the goal, how it went, and what stands in its commit."""

from __future__ import annotations

from agents import policy
from agents.model import Status
from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

    from agents.cleanroom import Change
    from agents.events import Fact, Progress
    from agents.model import RunMeta

WAITING: Final = "waiting"
"""Outcome of a cycle whose mind was away: nothing was lost, and nothing gained by trying again at once."""
RUN: Final = "Agent-Run"
"""Trailer of a commit on the commons: the run that made it."""
GOAL: Final = "Agent-Goal"
"""Trailer: the goal that the run worked on."""
AGENT: Final = "Agent"
"""Trailer: who worked."""
HEAD: Final = "Agent-Head"
"""Trailer: the operator's commit that the commons were brought up to date with last."""

_ENDED: Final = "cycle.ended"
_OBJECTIVE: Final = 200
"""Characters of an objective that the state keeps."""
_COMPLETED: Final = "goal.completed"
_OUTCOMES: Final = frozenset({"progressed", "completed", "abandoned", "idle", WAITING})
# It becomes a trailer of a commit, and it is the agent that chose it.
_GOAL: Final = late(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")


def _goal_in(fact: Fact) -> str | None:
    named = fact.facts.get("goal_id")
    return named if isinstance(named, str) and _GOAL.fullmatch(named) else None


def goal_of(progress: Progress) -> str | None:
    """Id of the goal that the cycle worked on: what its end says, else the last goal it spoke of; None without any."""
    ended = [goal for fact in progress.facts if fact.kind == _ENDED and (goal := _goal_in(fact))]
    spoken = [goal for fact in progress.facts if fact.kind.startswith("goal.") and (goal := _goal_in(fact))]
    return next(iter([*ended[-1:], *spoken[-1:]]), None)


def is_completed(progress: Progress) -> bool:
    """Whether the cycle's own goal passed the completion gate in it; then its work waits for a human."""
    goal = goal_of(progress)
    return any(fact.kind == _COMPLETED and _goal_in(fact) in {None, goal} for fact in progress.facts)


def has_ended(progress: Progress) -> bool:
    """Whether the agent came to the end of its cycle and said so."""
    return any(fact.kind == _ENDED for fact in progress.facts)


def told(meta: RunMeta, progress: Progress) -> dict[str, Any] | None:
    """What the state says of the cycle *meta*: ``goal``, ``objective`` and ``outcome``, as far as known; else None."""
    if meta.run_type != policy.CYCLE:
        return None
    ends = [fact.facts for fact in progress.facts if fact.kind == _ENDED]
    said = [str(facts.get("outcome")) for facts in ends]
    objectives = [words for facts in ends if isinstance(words := facts.get("objective"), str) and words.strip()]
    return {
        "goal": goal_of(progress), "outcome": next((word for word in said[::-1] if word in _OUTCOMES), None),
        **({"objective": objectives[-1][:_OBJECTIVE]} if objectives else {}),
    }  # fmt: skip


def strays(meta: RunMeta, changes: Iterable[Change]) -> tuple[bytes, ...]:
    """Paths among *changes* that the cycle *meta* should not have touched: they are a breach of its airlock."""
    return tuple(change.path for change in changes if not policy.is_own(meta.agent or "", change.path))


def message(meta: RunMeta, goal: str | None, head: str | None) -> str:
    """The words of the commit that brings the cycle *meta* to the commons.

    Nothing in them is the agent's own: trailers are read back to tell which cycles are there, and to which goal.
    """
    trailers = {RUN: meta.run_name, GOAL: goal, AGENT: meta.agent, HEAD: head}
    lines = [f"{name}: {value}" for name, value in trailers.items() if value]
    return "\n".join([f"{meta.agent}: one cycle", "", *lines, ""])


def aside(path: bytes, agent: str, depth: int = -1) -> bytes:
    """The name beside *path* for *agent*'s version of a file that somebody else has meanwhile made or changed.

    ``design/plan.md`` becomes ``design/plan.cedar.md``. *depth* is the number of the part that is renamed: a folder
    where somebody has a file of that name.
    """
    parts = path.split(b"/")
    stem, dot, ending = parts[depth].rpartition(b".")
    who = agent.encode()
    # A name that begins with its only dot has no ending.
    parts[depth] = b".".join((stem, who, ending)) if dot and stem else b".".join((parts[depth], who))
    return b"/".join(parts)


KEPT: Final = frozenset({Status.DONE, Status.REVIEW})
"""Ends of a cycle whose work the commons hold."""


def is_taken_in(meta: RunMeta, status: Status) -> bool:
    """Whether the run *meta*, which has ended as *status*, is a cycle whose airlock is put away at once."""
    return meta.run_type == policy.CYCLE and status in KEPT


def usable(meta: RunMeta, patch: Mapping[str, Any] | None, progress: Progress) -> bool:
    """Whether a run that ended well is one for a human to review: it has changed files, and a cycle its goal too."""
    changed = bool(patch and patch["files"])
    return changed and (meta.run_type != policy.CYCLE or is_completed(progress))
