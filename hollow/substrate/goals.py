"""What happens to a goal: progress in thousandths, failures, standstill, and progress that its files take with them."""

from __future__ import annotations

import json

from essentials import records
from essentials.digests import sha256
from essentials.patterns import late
from essentials.records import dataclass, replace
from hollow.substrate.model import Artifact, Goal, GoalStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from hollow.substrate.model import Result
    from hollow.substrate.settings import Settings

    Said = tuple[str, dict[str, Any]]
    """A fact for the stream: its kind and what it holds."""
    Told = tuple[Goal, list[Said]]
    """A goal after something happened to it, and what there is to say about that."""


FULL: Final = 1000
"""Thousandths at which the completion gate is asked (T85, S29)."""
HIGH_VALUE: Final = frozenset({"fs_write", "fs_edit", "synthesize_capability", "propose_change"})
"""Capabilities whose step is worth 200 thousandths; every other is worth 100 (T84, S29)."""
OUTPUT: Final = frozenset({
    "fs_write", "fs_edit", "memory_set", "propose_change", "invoke_claude", "synthesize_capability", "agent_message",
})  # fmt: skip
"""Capabilities that leave something; a goal without one of their steps is exploration (T86, S30)."""
FAILURES: Final = 5
"""Failed validations after which a goal is given up (T90, S34, D9)."""
SET_BACK: Final = 850
"""Thousandths a goal keeps at most when it failed validation: something must be done before it is judged again."""
FAMILY_FAILURES: Final = 3
"""Goals of one family that were abandoned, with none completed, before the family is blocked (W33)."""

_WROTE: Final = "wrote:"
_SHOWN: Final = 200
"""Characters of a text in a fact: facts are small (4 KB)."""
_OBJECTIVE: Final = 1000
"""Characters of an objective and of a reason that are kept."""
_FAMILY_WORDS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """A step that counted, so that lost files take their progress along."""

    key: str
    """``wrote:`` and the SHA-256 of what was written, else the capability and the digest of its parameters."""
    delta: int
    """Thousandths."""
    step: int
    path: str = ""
    """The file written, relative to the top of the airlock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pursuit(Goal):
    """A goal together with what its progress is made of."""

    credits: tuple[Credit, ...] = ()
    """Oldest first; a goal that is full earns nothing, which bounds them."""
    last: str = ""
    """Capability of the last step."""


def new(agent: str, objective: str, source: str, base: str, token: str, now: float) -> Told:
    """Return a fresh goal of *agent*.

    *source* is as in :attr:`Goal.source`, *base* the commit that the airlock stands at, *token* at least 12 hex digits
    of chance, *now* seconds since the epoch.
    """
    text = " ".join(objective.split())[:_OBJECTIVE]
    goal = Pursuit(
        goal_id=f"goal-{token[:12]}", agent=agent, objective=text, source=source, base=base, created_at=now,
        updated_at=now,
    )  # fmt: skip
    return goal, [_said("goal.created", goal, source=source)]


def family(objective: str) -> str:
    """Return the pattern of *objective*: without case, numbers, ids, and the stems of file names (S3, W33).

    "Survey hollow/a.py, part 3" and "survey hollow/b.py part 12" are one family. The family of a family is itself.
    """
    words = filter(None, map(_folded, objective.casefold().split()))
    return " ".join(list(words)[:_FAMILY_WORDS])


_AROUND: Final = "\"'`.,;:!?()[]{}<>|"
_ID: Final = late(
    r"\b(?:goal|req|task|run)-[0-9a-f]{6,}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b(?=[a-f]*\d)[0-9a-f]{7,64}\b"
)
_NUMBER: Final = late(r"\d+(?:[.,:_-]?\d+)*")
_SUFFIX: Final = late(r"\.[\w#]+$")


def _folded(word: str) -> str:
    word = word.lstrip(_AROUND).rstrip(_AROUND + "/")
    folder, slash, name = word.rpartition("/")
    suffix = _SUFFIX.search(name)
    # A bare "index.py" is a file too; a sentence's full stop has been taken off already.
    if slash or (suffix and suffix.start()):
        word = folder + slash + "*" + (suffix[0] if suffix and suffix.start() else "")
    return _NUMBER.sub("#", _ID.sub("#", word))


def blocked(objective: str, past: Sequence[Goal]) -> bool:
    """Whether the family of *objective* was given up :data:`FAMILY_FAILURES` times in *past* and never completed (W33).

    A premise that keeps failing is no better in other words; *past* is the window that is looked at.
    """
    pattern = family(objective)
    ends = [goal.status for goal in past if family(goal.objective) == pattern]
    return GoalStatus.COMPLETED not in ends and ends.count(GoalStatus.ABANDONED) >= FAMILY_FAILURES


def delta(capability: str, dynamic: bool) -> int:
    """Return the most thousandths that a step of *capability* is worth; *dynamic*: a synthesized tool (T84)."""
    return 200 if capability in HIGH_VALUE and not dynamic else 100


def digest(params: Mapping[str, Any]) -> str:
    """Return 16 hex digits that name the parameters of a call, whatever the order of its keys."""
    text = json.dumps(params, sort_keys=True, ensure_ascii=True, default=str)
    return sha256(text.encode()).hexdigest()[:16]


def advance(
    goal: Goal, capability: str, result: Result, now: float, *,
    call: str, files: Sequence[Artifact] = (), dynamic: bool = False,
) -> Told:  # fmt: skip
    """Return *goal* after a step with *capability* gave *result* at *now*.

    *call* is the :func:`digest` of its parameters, *files* what it wrote. Only a step that went well counts, and each
    counts by the table, whether or not it was done before (T84, T85): progress is effort, and that effort came to
    something is for the gate to say. What was left is kept for the gate and for cleaning up, counted or not.
    """
    if goal.status is not GoalStatus.ACTIVE:
        return goal, []
    step = goal.steps + 1
    worked = replace(_pursuit(goal), steps=step, last=capability, updated_at=now)
    if not result.ok:
        return worked, []
    earned = _credits(worked, capability, call, files, step, min(delta(capability, dynamic), FULL - goal.progress))
    gained = sum(each.delta for each in earned)
    worked = replace(
        worked, progress=goal.progress + gained, credits=worked.credits + earned,
        outputs=_outputs(goal, capability, result, files, step), artifacts=_artifacts(goal, files, step),
    )  # fmt: skip
    facts = {"capability": capability, "delta": gained / FULL}
    return worked, [_said("goal.progressed", worked, **facts)] if gained else []


def progressed(goal: Goal, gained: int) -> tuple[str, dict[str, Any]]:
    """Return what there is to say of *goal* after a cycle in which its steps earned *gained* thousandths."""
    return _said("goal.progressed", goal, delta=gained / FULL)


def _credits(
    goal: Pursuit, capability: str, call: str, files: Sequence[Artifact], step: int, worth: int
) -> tuple[Credit, ...]:
    """What a step earns; a file that earns nothing is noted too, to know its bytes again."""
    wanted = [(_WROTE + file.sha256, file.path) for file in files] or [(f"{capability}:{call}", "")]
    placed = {(each.key, each.path) for each in goal.credits}
    earned: list[Credit] = []
    for key, path in wanted:
        # One step is worth what it is worth, however many files it wrote.
        pays = 0 if any(each.delta for each in earned) else worth
        if pays or (path and (key, path) not in placed):
            earned.append(Credit(key=key, delta=pays, step=step, path=path))
    return tuple(earned)


def _outputs(
    goal: Goal, capability: str, result: Result, files: Sequence[Artifact], step: int
) -> tuple[str, ...]:  # fmt: skip
    left = result.left
    if not left and not files and capability in OUTPUT:
        left = (f"{capability}:{step}",)
    return (*(each for each in goal.outputs if each not in left), *left)


def _artifacts(goal: Goal, files: Sequence[Artifact], step: int) -> tuple[Artifact, ...]:
    found = {each.path: each for each in goal.artifacts}
    for file in files:
        before = found.pop(file.path, None)
        # Whether it is new is decided by how things were when the goal began, not by its second version.
        found[file.path] = replace(file, step=step, created=before.created if before else file.created)
    return tuple(found.values())


def end_cycle(goal: Goal, gained: int, now: float, *, waited: bool = False) -> Told:
    """Return *goal* after a cycle in which its steps earned *gained* thousandths.

    A cycle that only *waited* for an absent mind counts for nothing: nobody is to be blamed for it (T88).
    """
    if goal.status is not GoalStatus.ACTIVE or waited:
        return goal, []
    return replace(goal, cycles=goal.cycles + 1, idle=0 if gained > 0 else goal.idle + 1, updated_at=now), []


def stalled(goal: Goal, settings: Settings) -> str | None:
    """Return the sentence why *goal* stands still for good, or None (settings: idle_cycles, goal_cycles)."""
    if goal.idle >= settings.idle_cycles:
        return f"It made no progress in {goal.idle} consecutive cycles."
    if goal.cycles >= settings.goal_cycles:
        return f"It was not completed within {goal.cycles} cycles."
    return None


def fail(goal: Goal, reason: str, now: float, *, check: str = "") -> Told:
    """Return *goal* after a failed validation by *check*; the fifth gives it up (T90, S34).

    Nothing that it made is lost by it: only the progress is set back, to :data:`SET_BACK` at most.
    """
    if goal.status is not GoalStatus.ACTIVE:
        return goal, []
    failed = replace(
        goal, failures=goal.failures + 1, progress=min(goal.progress, SET_BACK), reason=reason[:_OBJECTIVE],
        updated_at=now,
    )  # fmt: skip
    said = [_said("goal.gate_failed", failed, check=check, reason=reason[:_SHOWN], failures=failed.failures)]
    if failed.failures < FAILURES:
        return failed, said
    given_up, more = abandon(failed, "validation", f"It failed validation {failed.failures} times: {reason}", now)
    return given_up, said + more


def complete(goal: Goal, now: float) -> Told:
    """Return *goal* completed; whoever calls it has asked the gate."""
    if goal.status is not GoalStatus.ACTIVE:
        return goal, []
    done = replace(goal, status=GoalStatus.COMPLETED, progress=FULL, reason="", updated_at=now, ended_at=now)
    return done, [_said("goal.completed", done, artifacts=[each.path[:_SHOWN] for each in done.artifacts[:10]])]


def abandon(goal: Goal, why: str, reason: str, now: float) -> Told:
    """Return *goal* given up; *why* is stalled, validation or operator, *reason* one sentence."""
    if goal.status is not GoalStatus.ACTIVE:
        return goal, []
    gone = replace(goal, status=GoalStatus.ABANDONED, reason=reason[:_OBJECTIVE], updated_at=now, ended_at=now)
    return gone, [_said("goal.abandoned", gone, why=why, reason=reason[:_SHOWN])]


def withdraw(goal: Goal, found: Mapping[str, str | None], now: float) -> Told:
    """Return *goal* without what it no longer has: the cycle that wrote it was never accepted.

    *found* maps each file that is not as the goal left it to the SHA-256 of what is there now, None for nothing. Bytes
    that an earlier step wrote are that step's; any others are not the goal's at all. Reading that was done stays done.
    """
    owner = _pursuit(goal)
    back = _taken_back(owner, found)
    if goal.status is not GoalStatus.ACTIVE or not back:
        return goal, []
    kept = tuple(each for each in owner.credits if each.path not in back or each.step <= back[each.path])
    taken = sum(each.delta for each in owner.credits) - sum(each.delta for each in kept)
    files = (replace(each, sha256=found.get(each.path) or each.sha256, step=back.get(each.path, each.step))
             for each in owner.artifacts if back.get(each.path) != 0)  # fmt: skip
    left = replace(owner, credits=kept, artifacts=tuple(files), progress=max(0, owner.progress - taken), updated_at=now)
    paths = [path[:_SHOWN] for path in sorted(back)[:10]]
    return left, [_said("goal.withdrawn", left, paths=paths, taken=taken / FULL)]


def _taken_back(goal: Pursuit, found: Mapping[str, str | None]) -> dict[str, int]:
    """The files of *goal* that are not as it left them, each with the step whose bytes are there now, 0 for none."""
    return {
        each.path: _step_of(goal, each.path, found[each.path])
        for each in goal.artifacts
        if each.path in found and found[each.path] != each.sha256
    }


def _step_of(goal: Pursuit, path: str, sha256: str | None) -> int:
    """Number of the last step that wrote these bytes to *path*, 0 where none did."""
    steps = [each.step for each in goal.credits if each.path == path and each.key == f"{_WROTE}{sha256}"]
    return max(steps, default=0)


def _pursuit(goal: Goal) -> Pursuit:
    if isinstance(goal, Pursuit):
        return goal
    return Pursuit(**{each.name: getattr(goal, each.name) for each in records.fields(goal)})


def _said(kind: str, goal: Goal, **facts: Any) -> tuple[str, dict[str, Any]]:
    told = {
        "goal_id": goal.goal_id, "agent": goal.agent, "objective": goal.objective[:_SHOWN],
        "family": family(goal.objective)[:_SHOWN], "progress": goal.progress / FULL,
    }  # fmt: skip
    return kind, {**told, **facts}
