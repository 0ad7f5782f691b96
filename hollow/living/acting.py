"""The third part of a cycle: the plan, step by step through the choke point, and what each step is worth."""

from __future__ import annotations

import json

from essentials.records import dataclass, field, replace
from hollow.hands.hands import Hands
from hollow.hands.reach import Reach
from hollow.hands.registry import BUILT_IN
from hollow.living import documents
from hollow.living.undoing import written
from hollow.substrate import goals
from hollow.substrate.model import Kind
from hollow.substrate.sections import Given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hollow.living.life import Life
    from hollow.living.perceiving import Seen
    from hollow.substrate.model import Goal, Result, Step
    from hollow.substrate.planning import Plan


@dataclass(slots=True, kw_only=True)
class Done:
    """What a plan came to."""

    goal: Goal
    gained: int = 0
    """Thousandths."""
    steps: list[tuple[Step, Result]] = field(default_factory=list)

    @property
    def errors(self) -> list[str]:
        """What went wrong, a sentence each."""
        return [result.error for _, result in self.steps if not result.ok]


def hands(life: Life, seen: Seen, goal: Goal, head: str) -> Hands:
    """Return what the agent can do for *goal* in this cycle; *head* begins every prompt."""
    reach = Reach(
        agent=life.agent, goal=goal, cycle=life.cycle, number=goal.steps + 1, place=life.place, memory=life.memory,
        thinker=life.counting(), now=life.now, load=seen.load, cell=life.cell, fact=life.talk.fact,
        beat=life.place.beat,
    )  # fmt: skip
    return Hands(reach, life.forge, life.settings, seen.chronicle.happenings, rules=head)


def act(life: Life, seen: Seen, goal: Goal, plan: Plan, able: Hands, *, counts: bool = True) -> Done:
    """Do the steps of *plan* for *goal*, each on the stream and on disk before the next; a failed one ends nothing.

    Without *counts* nothing is added to the goal's progress: the agent looks after itself.
    """
    done = Done(goal=goal)
    for step in plan.steps:
        call_id = life.talk.call(step.capability, dict(step.params))
        result = able.call(step, done.goal.steps + 1)
        life.talk.outcome(call_id, shown(result), is_error=not result.ok)
        life.take(result.happenings)
        _mention(life, seen, step, result)
        life.keep()
        done.steps.append((step, result))
        before, seen.own = seen.own, documents.own(life.place.root, life.agent)
        if counts:
            # A shell's files are the goal's as well, whatever the step says that it wrote (S34).
            changed = [
                path for path, each in seen.own.items() if path not in before or before[path].stamp != each.stamp
            ]
            _advance(life, done, replace(step, capability=able.proper_name(step.capability)), result, changed)
    if done.steps:
        given = [Given(step=_called(step), text=shown(result), ok=result.ok) for step, result in done.steps]
        life.memory.results.keep(life.agent, goal.goal_id, given)
    if done.gained:
        life.say([goals.progressed(done.goal, done.gained)])
    return done


def _mention(life: Life, seen: Seen, step: Step, result: Result) -> None:
    """What was said or written of a peer's document happens to that peer: it was seen (S4, T48)."""
    if not result.ok:
        return
    words = json.dumps(dict(step.params), ensure_ascii=False, default=str)
    for peer, paths in seen.peers.items():
        for path in paths:
            if path in words:
                life.note(Kind.REFERENCE, of=peer, what=path, by=life.agent)


def _came_off(result: Result) -> bool:
    """Whether what was done came to what it was for: a command that was run and failed has told something only."""
    code = result.output.get("exit_code") if isinstance(result.output, dict) else None
    return result.ok and not code


def _advance(life: Life, done: Done, step: Step, result: Result, changed: list[str]) -> None:
    files = written(done.goal, life.place, changed, done.goal.steps + 1)
    worth = result if _came_off(result) else replace(result, ok=False)
    after, said = goals.advance(
        done.goal, step.capability, worth, life.now(), call=goals.digest(step.params), files=files,
        dynamic=step.capability not in BUILT_IN,
    )  # fmt: skip
    done.gained += after.progress - done.goal.progress
    done.goal = after
    life.memory.goals.put(after, "progressed" if said else "stepped")
    # One fact a cycle is enough for history; which step earned what stays in the stream.
    life.say([("step.earned", facts) for _, facts in said])


def _called(step: Step) -> str:
    return f"{step.capability}({json.dumps(dict(step.params), ensure_ascii=False, default=str)[:120]})"


def shown(result: Result) -> str:
    """Return what the stream says of *result*: why it failed, and what it gave all the same."""
    output: Any = result.output
    given = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
    if result.ok:
        return given
    return result.error if output is None else f"{result.error}\n{given}"
