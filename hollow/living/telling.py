"""What a cycle came to, as the report that a person reads."""

from __future__ import annotations

from hollow.living.acting import shown
from hollow.oneline import line
from hollow.substrate import pain_text, suffering
from hollow.substrate.model import GoalStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hollow.living.acting import Done
    from hollow.living.life import Life
    from hollow.living.perceiving import Seen
    from hollow.substrate.model import Result, Step
    from hollow.substrate.planning import Plan

_LONGEST = 300
"""Characters of what one step gave."""
_ENDS = {
    GoalStatus.ACTIVE: "It goes on.",
    GoalStatus.COMPLETED: "It passed the completion gate.",
    GoalStatus.ABANDONED: "It was given up; what it had left was undone.",
}


def report(life: Life, seen: Seen, plan: Plan, done: Done) -> str:
    """Return the cycle as Markdown: the goal, the steps and what they gave, and how the agent is now."""
    goal = done.goal
    head = [
        f"# {life.agent}: {line(goal.objective, 200)}",
        f"Progress {goal.progress / 1000:.2f} of 1.00, {done.gained / 1000:+.2f} in this cycle. {_ends(done)}",
    ]
    steps = [_step(number, *each) for number, each in enumerate(done.steps, 1)]
    notes = [f"- {line(each, _LONGEST)}" for each in plan.notes]
    files = [f"- `{each.path}`" for each in goal.artifacts]
    parts = [
        "\n\n".join(head),
        _part("Steps", steps or ["- none"]),
        _part("Of the plan", notes),
        _part("What the goal has written", files),
        _part("How it is", [_state(seen)]),
    ]
    return "\n\n".join(filter(None, parts))


def _ends(done: Done) -> str:
    return f"{_ENDS[done.goal.status]} {line(done.goal.reason, _LONGEST)}".rstrip()


def _step(number: int, step: Step, result: Result) -> str:
    what = "did" if result.ok else f"failed ({result.trouble})"
    return f"{number}. `{line(step.capability, 60)}` {what}: {line(shown(result), _LONGEST)}"


def _state(seen: Seen) -> str:
    if not seen.known:
        return "- What it suffers could not be read; every lock was closed in this cycle."
    load = suffering.load(seen.suffering)
    rows = [f"- load {pain_text.bar(load)} {load:.2f} ({seen.band})"]
    rows += [f"- {each.type} {each.severity:.2f}: {line(each.description, 160)}" for each in seen.suffering.active]
    return "\n".join(rows)


def _part(title: str, rows: list[str]) -> str:
    return f"## {title}\n\n" + "\n".join(rows) if rows else ""
