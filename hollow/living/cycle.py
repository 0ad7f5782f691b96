"""One cycle of an agent's life: perceive, choose, plan, act, judge, learn."""

from __future__ import annotations

from hollow.answer import Answer
from hollow.living import acting, choosing, judging, viewing
from hollow.living.perceiving import assessed, perceive, weigh
from hollow.living.telling import report
from hollow.substrate import anticipation, crisis, planning, prompt, schemas, stressors, suffering
from hollow.substrate.model import AGENTS, GoalStatus, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hollow.hands.hands import Hands
    from hollow.living.acting import Done
    from hollow.living.life import Life
    from hollow.living.perceiving import Seen
    from hollow.substrate.existence import Existence
    from hollow.substrate.model import Goal, Suffering
    from hollow.substrate.planning import Plan


def turn(life: Life) -> Answer:
    """Live one cycle; returns what it comes to. Raises :class:`hollow.mind.Away` where the mind is not there to begin.

    Every part puts on disk what it has come to before the next begins: a cycle that is killed has lost nothing but its
    rest, and what it left in an airlock that is never accepted takes its progress with it.
    """
    seen = perceive(life)
    answer = choosing.exist(life, seen)
    goal = choosing.choose(life, seen, answer)
    inward = choosing.inward(seen, goal)
    head = prompt.head(life.agent, seen.rules)
    able = acting.hands(life, seen, inward or goal, head)
    plan = _plan(life, seen, inward or goal, able)
    done = acting.act(life, seen, inward or goal, plan, able, counts=inward is None)
    if inward is None:
        who, _, rules = head.partition("\n\n")
        done.goal = judging.judge(life, done, who, rules)
    else:
        done.goal = goal
    _close(life, seen, answer, done)
    return Answer(text=report(life, seen, plan, done), turns=life.generations, usage=life.usage)


def _plan(life: Life, seen: Seen, goal: Goal, able: Hands) -> Plan:
    """The next steps, as the mind gives them; whatever was dropped of them is said."""
    signal = anticipation.signal(seen.suffering, goal.objective)
    listed = able.catalog(seen.load)
    shown = prompt.plan(viewing.view(life, seen, goal, signal=signal, listed=listed), goal.objective)
    thought = life.ask("plan", shown.text, schemas.PLAN, viewing.values(life, seen, goal, listed))
    known = {each.name for each in listed}
    plan = planning.read(thought.text, known.__contains__, life.settings.max_steps)
    if plan.notes:
        life.say([("plan.notes", {"notes": list(plan.notes)[:10]})])
    return plan


def _close(life: Life, seen: Seen, answer: Existence, done: Done) -> None:
    """What the cycle has done to the agent: the last look at its suffering, its crisis, and what is kept of both."""
    life.note(Kind.CYCLE, usable=answer.usable, progressed=done.gained, goal=done.goal.goal_id)
    weigh(life)
    life.keep()
    seen.chronicle = life.chronicle()
    began: list[str] = []
    felt = seen.suffering = life.feel(lambda before: _through(life, seen, before, began))
    for message in began:
        _call_for_help(life, message)
    load, raw = suffering.load(felt), suffering.raw(felt)
    life.note(Kind.LOAD, load=load, raw=raw, crisis=suffering.band(load) is suffering.Band.CRISIS)
    life.keep()
    # Where it could not be read, what stands there now is a beginning and no measure.
    life.say([*([assessed(felt)] if seen.known else []), _ended(done)])


def _through(
    life: Life, seen: Seen, felt: Suffering, began: list[str]
) -> tuple[Suffering, list[tuple[str, dict[str, Any]]]]:
    """What the cycle made of *felt*: assessed, its crisis counted, begun (told in *began*) or broken (T64-T67)."""
    felt, said = stressors.assess(felt, seen.chronicle, life.settings, life.now())
    felt, onset, broken = crisis.step(felt, suffering.load(felt))
    if onset:
        began.append(crisis.message(felt))
    if broken:
        felt, more = suffering.force_reset(felt, life.now(), felt.crisis_cycles)
        said += more
    return felt, said


def _call_for_help(life: Life, message: str) -> None:
    """Tell the peers, once for each crisis (T64)."""
    for peer in AGENTS:
        if peer != life.agent:
            life.memory.mail.send(life.agent, peer, message, life.now())
    life.say([("suffering.crisis", {"message": message[:500]})])


def _ended(done: Done) -> tuple[str, dict[str, Any]]:
    outcome = {GoalStatus.COMPLETED: "completed", GoalStatus.ABANDONED: "abandoned"}.get(
        done.goal.status, "progressed" if done.gained else "idle"
    )
    objective = done.goal.objective[:200]
    progress = done.goal.progress / 1000
    facts = {"goal_id": done.goal.goal_id, "objective": objective, "outcome": outcome, "progress": progress}
    return "cycle.ended", facts
