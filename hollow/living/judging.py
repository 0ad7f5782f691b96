"""The fourth part of a cycle: is the goal reached, is it given up, and what is to be learned from it."""

from __future__ import annotations

import json

from essentials.records import replace
from hollow.living import documents
from hollow.living.undoing import undo
from hollow.mind import Away
from hollow.parsing import find_object, strip_thinking
from hollow.substrate import completion, goals, kinds, lessons, schemas
from hollow.substrate.model import Evidence, GoalStatus, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from hollow.living.acting import Done
    from hollow.living.life import Life
    from hollow.substrate.completion import Judgement
    from hollow.substrate.goals import Said
    from hollow.substrate.model import Goal


def judge(life: Life, done: Done, who: str, rules: str) -> Goal:
    """Return the goal of *done* after the gate and the rules of standstill; all that follows from it is on disk.

    *who* and *rules* begin the prompts of the checks that the mind makes.
    """
    goal, verdict = done.goal, None
    said: list[Said] = []
    if goal.progress >= goals.FULL:
        verdict = _gate(life, goal, who, rules)
        goal, said = _after_gate(life, goal, verdict)
    # A goal that only waits for the mind to judge it does not stand still.
    goal, _ = goals.end_cycle(goal, done.gained, life.now(), waited=bool(verdict and verdict.away))
    goal = replace(goal, last_cycle=life.cycle)
    if why := goal.status is GoalStatus.ACTIVE and goals.stalled(goal, life.settings):
        goal, more = goals.abandon(goal, "stalled", why, life.now())
        said += more
    life.memory.goals.put(goal, "cycle")
    # Only now: what the stream has said of a goal is true after a kill as well.
    life.say(said)
    if goal.status is GoalStatus.ABANDONED:
        _give_up(life, goal)
    elif goal.status is GoalStatus.COMPLETED:
        _completed(life, goal)
    _learn(life, goal, verdict, done.errors)
    return goal


def _gate(life: Life, goal: Goal, who: str, rules: str) -> Judgement:
    def answer(purpose: str, prompt: str, schema: Mapping[str, Any], shown: str) -> Mapping[str, Any] | None:
        """Ask the mind; its absence is no answer, and never a yes."""
        facts = {"agent": life.agent, "goal": {"objective": goal.objective}, "evidence": shown, "checked": True}
        try:
            thought = life.ask(purpose, prompt, schema, facts)
        except Away as why:
            life.say([("mind.away", {"purpose": purpose, "reason": str(why)})])
            return None
        return find_object(strip_thinking(thought.text)) or {}

    def semantic(evidence: str) -> Mapping[str, Any] | None:
        """Ask whether it does what the goal says."""
        return answer("semantic", completion.semantic_prompt(who, rules, goal, evidence), schemas.SEMANTIC, evidence)

    def facts(references: str) -> Mapping[str, Any] | None:
        """Ask whether what it says of other files is so."""
        return answer("fact", completion.fact_prompt(who, rules, goal, references), schemas.FACT, references)

    return completion.judge(goal, look(life), semantic, facts, _reader(life))


def look(life: Life) -> completion.Look:
    """Return what the gate may see: the airlock's files and the agent's memory."""

    def value(key: str) -> str | None:
        """The value of *key* as text, None where there is none."""
        if key not in life.memory.keys.names(life.agent):
            return None
        kept = life.memory.keys.get(life.agent, key)
        return kept if isinstance(kept, str) else json.dumps(kept, ensure_ascii=False)

    return completion.Look(read=_reader(life), value=value)


def _reader(life: Life) -> Callable[[str], str | None]:
    def read(path: str) -> str | None:
        """The text of *path*, where an agent may read it."""
        return documents.text(life.place.root, path) if life.place.border.allows(path) else None

    return read


def _after_gate(life: Life, goal: Goal, verdict: Judgement) -> tuple[Goal, list[Said]]:
    life.note(Kind.GATE, goal=goal.goal_id, passed=verdict.passed, check=verdict.check, reason=verdict.reason[:300])
    if verdict.passed:
        return goals.complete(goal, life.now())
    if verdict.counts:
        return goals.fail(goal, verdict.reason, life.now(), check=verdict.check)
    # Nobody has judged it, so nothing is held against it: it keeps its progress and is judged in the next cycle.
    return goal, [_unjudged(goal, verdict)]


def _unjudged(goal: Goal, verdict: Judgement) -> Said:
    return "goal.not_judged", {"goal_id": goal.goal_id, "check": verdict.check, "reason": verdict.reason[:200]}


def _give_up(life: Life, goal: Goal) -> None:
    why = "validation" if goal.failures >= goals.FAILURES else "stalled"
    # What it has written goes before it is noted: nobody may build on documents that no goal stands for.
    restored, removed = undo(goal, life.place)
    life.note(Kind.GOAL_ABANDONED, goal=goal.goal_id, family=goals.family(goal.objective), why=why)
    facts = {"goal_id": goal.goal_id, "restored": list(restored)[:20], "removed": list(removed)[:20]}
    life.say([("goal.undone", facts)])
    life.memory.goals.set_outcome(life.agent, f"Abandoned: {goal.objective} {goal.reason}")


def _completed(life: Life, goal: Goal) -> None:
    for each in goal.artifacts:
        life.note(Kind.ARTIFACT, path=each.path, goal=goal.goal_id)
    kind = kinds.kind_of(goal.objective)
    life.note(Kind.GOAL_COMPLETED, goal=goal.goal_id, family=goals.family(goal.objective), kind=kind)
    left = ", ".join(each.path for each in goal.artifacts) or ", ".join(goal.outputs)
    life.memory.goals.set_outcome(life.agent, f"Completed: {goal.objective} It left {left}.")


def _learn(life: Life, goal: Goal, verdict: Judgement | None, errors: list[str]) -> None:
    """Take from the end of a goal, or from a validation that failed, the rule that it shows (S20)."""
    ended = {GoalStatus.COMPLETED: "completed", GoalStatus.ABANDONED: "abandoned"}.get(goal.status)
    outcome = ended or ("failed" if verdict and verdict.counts and not verdict.passed else "")
    # A goal that goes on may have met a refusal all the same, and that is worth a rule.
    if not outcome and not errors:
        return
    proposal = lessons.candidate_of(goal, outcome or "failed", verdict.lesson if verdict else "", errors)
    if proposal is None:
        return
    seen = Evidence(goal_id=goal.goal_id, agent=life.agent, at=life.now())
    life.say(life.memory.lessons.observe(proposal.text, proposal.category, proposal.confidence, seen, life.now()))
