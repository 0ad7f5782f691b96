"""The operator's task as an agent's goal: what it suffers and knows counts, and the gate judges its report."""

from __future__ import annotations

import json
import os
import time

from essentials.records import dataclass, replace
from hollow.answer import Usage
from hollow.living import documents
from hollow.living.perceiving import aged, assessed
from hollow.memory.memory import Memory
from hollow.mind import Away, Question
from hollow.parsing import find_object, strip_thinking
from hollow.sandbox import narrowed
from hollow.substrate import (
    completion,
    factcheck,
    goals,
    kinds,
    lessons,
    locks,
    pain_text,
    prompt,
    schemas,
    settings,
    stressors,
    suffering,
)
from hollow.substrate.model import Evidence, Goal, GoalStatus, Happening, Kind
from hollow.toolbox.workspace import workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any, Final

    from hollow.answer import Answer
    from hollow.mind import Assignment, Mind, Thinker
    from hollow.stream import Talk
    from hollow.substrate.chronicle import Chronicle
    from hollow.substrate.model import Suffering

ROUNDS: Final = 3
"""Reports that are judged at most; more is a mind that cannot do it."""

_LOCKED_BY: Final = {"EditFile": "fs_edit", "WriteFile": "fs_write"}
"""Tools of a task, and the capability whose lock closes each (T56)."""
_REPORT: Final = 6_000
"""Characters of a report that the mind is shown when it judges it."""


@dataclass(slots=True, kw_only=True)
class Task:
    """An operator's task while an agent is at it."""

    assignment: Assignment
    memory: Memory
    run: str
    talk: Talk
    agreed: settings.Settings
    goal: Goal
    felt: Suffering
    known: bool
    """Whether what it suffers could be read; if not, what can be locked is locked (T60)."""
    usage: Usage = Usage()

    @property
    def load(self) -> float | None:
        """The agent's load, None where it is not known."""
        return suffering.load(self.felt) if self.known else None


def answer(
    assignment: Assignment, mind: Mind, *, state: Path, run: str, substrate: str, talk: Talk,
    judge: Callable[[], Thinker] | None,
) -> Answer:  # fmt: skip
    """Have *mind* do *assignment* as a goal of its agent, with the memory at *state*; returns the last report.

    What the agent has learned stands on top of its prompt, what it suffers locks its tools, and its report is judged:
    what it cites is looked up, and where there is a *judge*, that is a mind to be asked, it says whether the task is
    done. A report that fails is given back, with the reason, as long as there are turns. *run* names it in all that is
    remembered, *substrate* holds settings of the environment.
    """
    task = _begun(assignment, state, run, substrate, talk)
    found = mind.answer(_equipped(task), talk)
    verdict = _judged(task, found, judge)
    for _ in range(ROUNDS - 1):
        left = assignment.max_turns - found.turns
        if found.is_error or verdict is None or verdict.passed or not verdict.counts or left < 1:
            break
        task.goal, said = goals.fail(task.goal, verdict.reason, time.time(), check=verdict.check)
        _say(task, said)
        again = replace(_equipped(task), max_turns=left, rejected=(found.text, verdict.reason))
        found = _added(found, mind.answer(again, talk))
        verdict = _judged(task, found, judge)
    _ended(task, found, verdict)
    return _noted(replace(found, usage=found.usage + task.usage), verdict)


def _begun(assignment: Assignment, state: Path, run: str, substrate: str, talk: Talk) -> Task:
    agreed = settings.read(substrate)
    agent = assignment.agent
    memory = Memory(state, warn=lambda kind, **facts: talk.fact(kind, agent=agent, **facts))
    _, damaged = memory.sufferings.load(agent)
    chronicle = memory.chronicles.read(agent)
    felt, said = memory.sufferings.feel(agent, lambda before: aged(before, chronicle, agreed, time.time()))
    goal, created = goals.new(agent, assignment.task, "operator", "", os.urandom(6).hex(), time.time())
    task = Task(
        assignment=assignment, memory=memory, run=run, talk=talk, agreed=agreed, goal=goal, felt=felt,
        known=not damaged,
    )  # fmt: skip
    _say(task, [*said, *created])
    return task


def _equipped(task: Task) -> Assignment:
    """The assignment with what the environment adds to it and takes from it."""
    asked = task.assignment
    shut = {tool: task.agreed.locks.get(name) for tool, name in _LOCKED_BY.items()}
    closed = {
        tool: f"{tool} is locked: your suffering load is {_words(task.load)}, and from {at:.2f} on you cannot write."
        for tool, at in shut.items()
        if at is not None and (task.load is None or task.load >= at)
    }
    cell = asked.cell
    if cell is not None and not locks.may_write(task.load, task.agreed):
        # A command runs on, without write access; where that cannot be had, none runs (D5, T57).
        cell = narrowed(cell, ())
    rules = tuple(lessons.rules(task.memory.lessons.lessons()))
    pain = pain_text.block(task.felt, locks.sentences(task.load, task.agreed))
    return replace(asked, rules=rules, pain=pain, locked=closed, cell=cell)


def _words(load: float | None) -> str:
    return "not known" if load is None else f"{load:.2f}"


# --- The gate ---------------------------------------------------------------------------------------------------------


def _judged(task: Task, found: Answer, judge: Callable[[], Thinker] | None) -> completion.Judgement | None:
    """What the gate says of the report *found*; None where there is none to judge."""
    if found.is_error or not found.text.strip():
        return None
    root = task.assignment.repo
    border = workspace(root).border

    def read(path: str) -> str | None:
        """The text of *path*, where an agent may read it: else the gate would answer questions about secrets."""
        return documents.text(root, path) if border.allows(path) else None

    wrong = factcheck.check(factcheck.references(found.text, ()), read)
    if wrong:
        return completion.Judgement(passed=False, check="facts", reason=wrong, counts=judge is not None)
    if judge is None:
        # Nobody has judged it. A search of the repository is what it is; a change that was not made is none.
        made = task.assignment.run_type != "fix"
        reason = "" if made else "Nothing was changed: without a model there is nobody to write it."
        return completion.Judgement(passed=made, check="facts", reason=reason, counts=False)
    return _asked(task, found, judge)


def _asked(task: Task, found: Answer, judge: Callable[[], Thinker]) -> completion.Judgement:
    head = prompt.head(task.goal.agent, lessons.rules(task.memory.lessons.lessons()))
    who, _, rules = head.partition("\n\n")
    shown = "\n".join(f"| {line}" for line in found.text[:_REPORT].splitlines())
    words = completion.semantic_prompt(who, rules, task.goal, f"REPORT\n{shown}")
    facts = {"agent": task.goal.agent, "goal": {"objective": task.goal.objective}, "evidence": found.text[:_REPORT]}
    mind = judge()
    try:
        thought = mind.think(Question(purpose="semantic", prompt=words, schema=schemas.SEMANTIC, facts=facts))
    except Away as why:
        return completion.Judgement(passed=False, check="semantic", reason=str(why), counts=False, away=True)
    finally:
        mind.close()
    task.usage += thought.usage
    return completion.accomplished(find_object(strip_thinking(thought.text)) or {})


# --- The end ----------------------------------------------------------------------------------------------------------


def _ended(task: Task, found: Answer, verdict: completion.Judgement | None) -> None:
    """Put on disk and say what has become of the goal, and what is to be learned and suffered from it."""
    now, passed = time.time(), bool(verdict and verdict.passed)
    if passed:
        task.goal, said = goals.complete(task.goal, now)
    else:
        why = verdict.reason if verdict else " ".join(found.text.split())[:300]
        task.goal, said = goals.abandon(task.goal, "validation", why or "It came to nothing.", now)
    task.memory.goals.put(task.goal, "operator")
    # Only now: what the stream has said of a goal is true after a kill as well.
    _say(task, said)
    task.memory.goals.set_outcome(task.goal.agent, f"{task.goal.status.capitalize()}: {task.goal.objective}")
    _remember(task, found, verdict, passed=passed)
    _learn(task, verdict)
    _feel(task, task.memory.chronicles.read(task.goal.agent))


def _remember(task: Task, found: Answer, verdict: completion.Judgement | None, *, passed: bool) -> None:
    """Note how it ended, for what the agent suffers: neither relief nor pain comes of what nobody has judged (T88)."""
    judged = verdict.counts if verdict else found.subtype == "error_max_turns"
    if not judged:
        return
    happened = Kind.GOAL_COMPLETED if task.goal.status is GoalStatus.COMPLETED else Kind.GOAL_ABANDONED
    facts: dict[str, Any] = {"goal": task.goal.goal_id, "family": goals.family(task.goal.objective)}
    facts |= {"kind": kinds.kind_of(task.goal.objective)} if passed else {"why": "validation"}
    told = [_happening(task, happened, facts)]
    if verdict is not None:
        gate = {"goal": task.goal.goal_id, "passed": passed, "check": verdict.check, "reason": verdict.reason[:300]}
        told.insert(0, _happening(task, Kind.GATE, gate))
    task.memory.chronicles.add(task.goal.agent, told)


def _learn(task: Task, verdict: completion.Judgement | None) -> None:
    outcome = "completed" if task.goal.status is GoalStatus.COMPLETED else "failed"
    proposal = lessons.candidate_of(task.goal, outcome, verdict.lesson if verdict else "", ())
    if proposal is not None:
        seen = Evidence(goal_id=task.goal.goal_id, agent=task.goal.agent, at=time.time())
        _say(
            task,
            task.memory.lessons.observe(proposal.text, proposal.category, proposal.confidence, seen, time.time()),
        )


def _feel(task: Task, chronicle: Chronicle) -> None:
    felt, said = task.memory.sufferings.feel(
        task.goal.agent, lambda before: stressors.assess(before, chronicle, task.agreed, time.time())
    )
    _say(task, [*said, assessed(felt)])


def _happening(task: Task, kind: Kind, facts: dict[str, Any]) -> Happening:
    return Happening(kind=kind, at=time.time(), cycle=task.run, facts=facts)


def _noted(found: Answer, verdict: completion.Judgement | None) -> Answer:
    """The report as the operator gets it: what the gate holds against it stands below."""
    if verdict is None or verdict.passed or not verdict.counts:
        return found
    note = f"The completion gate did not let this pass ({verdict.check}): {verdict.reason}"
    return replace(found, text=f"{found.text.rstrip()}\n\n> {note}\n")


def _added(before: Answer, after: Answer) -> Answer:
    return replace(after, turns=before.turns + after.turns, usage=before.usage + after.usage)


def _say(task: Task, said: list[tuple[str, dict[str, Any]]]) -> None:
    for kind, facts in said:
        task.talk.fact(kind, **{"agent": task.goal.agent, **json.loads(json.dumps(facts, default=str))})
