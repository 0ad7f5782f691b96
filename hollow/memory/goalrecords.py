"""A goal as a line of the registry: the seeds' names of fields, read tolerantly, and what we add to them."""

from __future__ import annotations

import math

from hollow.memory.moments import iso, seconds
from hollow.substrate.goals import FULL, Credit, Pursuit
from hollow.substrate.model import Artifact, Goal, GoalStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


def encoded(goal: Goal) -> dict[str, Any]:
    """Return *goal* as a record: the seeds' fields, then ours; progress is 0.000 to 1.000."""
    credits_ = goal.credits if isinstance(goal, Pursuit) else ()
    metrics = {
        "progress": goal.progress / FULL, "steps_completed": goal.steps,
        "last_cap": goal.last if isinstance(goal, Pursuit) else "", "has_output": bool(goal.artifacts or goal.outputs),
        "artifact_check_failures": goal.failures, "failure_reason": goal.reason,
    }  # fmt: skip
    return {
        "goal_id": goal.goal_id, "agent_id": goal.agent, "objective": goal.objective, "status": goal.status.value,
        "metrics": metrics, "created_at": _iso(goal.created_at), "updated_at": _iso(goal.updated_at),
        "completed_at": _iso(goal.ended_at), "source": goal.source, "base": goal.base, "cycles": goal.cycles,
        "idle": goal.idle, "last_cycle": goal.last_cycle, "confirmed": goal.confirmed, "outputs": list(goal.outputs),
        "artifacts": [
            {"path": each.path, "sha256": each.sha256, "created": each.created, "step": each.step}
            for each in goal.artifacts
        ],
        "credits": [[each.key, each.delta, each.step, each.path] for each in credits_],
    }  # fmt: skip


def decoded(record: Mapping[str, Any], agent: str) -> Pursuit:
    """Return the goal in *record*, which holds a ``goal_id`` and an ``objective``; *agent* is whose folder it lies in.

    What else is missing or damaged has its default, one by one, so that a hand-placed record loads. The folder alone
    says whose goal it is: an ``agent_id`` would be a path to somewhere else.
    """
    given = record.get("metrics")
    metrics: Mapping[str, Any] = given if isinstance(given, dict) else {}
    created = _time(record.get("created_at")) or 0.0
    return Pursuit(
        goal_id=str(record["goal_id"]), agent=agent,
        objective=str(record["objective"]), status=status(record.get("status")),
        source=_text(record.get("source")) or "existence", base=_text(record.get("base")),
        progress=_progress(metrics.get("progress")), steps=_count(metrics.get("steps_completed")),
        cycles=_count(record.get("cycles")), idle=_count(record.get("idle")),
        outputs=tuple(each for each in _rows(record.get("outputs")) if isinstance(each, str)),
        artifacts=tuple(_artifacts(record.get("artifacts"))), credits=tuple(_credits(record.get("credits"))),
        failures=_count(metrics.get("artifact_check_failures")), reason=_text(metrics.get("failure_reason")),
        created_at=created, updated_at=_time(record.get("updated_at")) or created,
        ended_at=_time(record.get("completed_at")), last=_text(metrics.get("last_cap")),
        last_cycle=_text(record.get("last_cycle")), confirmed=record.get("confirmed") is True,
    )  # fmt: skip


def status(value: Any) -> GoalStatus:
    """Return one of the three, whatever stands on disk (T80).

    A goal that waits is still active; a status that nobody knows is an end without success.
    """
    if value is None or value in ("active", "paused", "pending"):
        return GoalStatus.ACTIVE
    return GoalStatus.COMPLETED if value in ("completed", "done") else GoalStatus.ABANDONED


def _artifacts(value: Any) -> Iterator[Artifact]:
    for each in _rows(value):
        if isinstance(each, dict) and isinstance(each.get("path"), str) and each["path"]:
            # Not known to be new is not new: cleaning up then restores and never deletes what others made.
            yield Artifact(
                path=each["path"], sha256=_text(each.get("sha256")), created=each.get("created") is True,
                step=_count(each.get("step")),
            )  # fmt: skip


def _credits(value: Any) -> Iterator[Credit]:
    for each in _rows(value):
        if isinstance(each, list) and len(each) == 4 and isinstance(each[0], str):  # noqa: PLR2004 - key, delta, step, path
            yield Credit(key=each[0], delta=_count(each[1]), step=_count(each[2]), path=_text(each[3]))


def _rows(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    try:
        return float(value) if math.isfinite(value) else 0.0
    except OverflowError:
        return 0.0


def _count(value: Any) -> int:
    return max(0, int(_number(value)))


def _progress(value: Any) -> int:
    return round(min(1.0, max(0.0, _number(value))) * FULL)


def _iso(at: float | None) -> str | None:
    return None if at is None else iso(at)


def _time(value: Any) -> float | None:
    """Seconds since the epoch of an epoch number, ISO 8601 or ``YYYY-MM-DD HH:MM``; without a zone it is UTC."""
    # The epoch itself is what a field holds that was never set.
    return seconds(value) or None
