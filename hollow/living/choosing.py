"""The second part of a cycle: one generation, what it changes in the agent, and the goal that follows from it."""

from __future__ import annotations

import os

from essentials.records import replace
from hollow.living import viewing
from hollow.substrate import (
    anticipation,
    existence,
    fallback,
    goals,
    identity,
    kinds,
    prompt,
    schemas,
    stance,
    stressors,
    suffering,
)
from hollow.substrate.model import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hollow.living.life import Life
    from hollow.living.perceiving import Seen
    from hollow.substrate.existence import Existence
    from hollow.substrate.goals import Said
    from hollow.substrate.model import Goal, Suffering
    from hollow.substrate.prompt import Prompt

_RECENT = 10
"""Ended goals whose families a fallback does not take up again (F16)."""
_WINDOW = 40


def exist(life: Life, seen: Seen) -> Existence:
    """Ask for the one existence generation of the cycle, and take in all that it says beside the goal (S27, T82).

    Raises :class:`hollow.mind.Away`; nothing that came in is acknowledged then, so it is shown again (T160, W12).
    """
    shown = prompt.existence(viewing.view(life, seen, seen.goal, signal=_signal(seen)))
    if shown.shed:
        life.say([("prompt.shed", {"sections": list(shown.shed)})])
    thought = life.ask("existence", shown.text, schemas.EXISTENCE, viewing.values(life, seen, seen.goal))
    answer = existence.read(thought.text)
    if answer.reasoning:
        life.talk.say(answer.reasoning)
    _acknowledge(life, seen, shown)
    _become(life, seen, answer)
    return answer


def _signal(seen: Seen) -> str:
    return anticipation.signal(seen.suffering, seen.goal.objective) if seen.goal else ""


def _acknowledge(life: Life, seen: Seen, shown: Prompt) -> None:
    """What the answered prompt has shown has arrived; what it left out waits for the next."""
    if shown.messages:
        life.memory.mail.ack(life.agent, seen.mail[shown.messages - 1].number)
    if shown.host:
        # In the chronicle too: what the operator says may be a reason to suffer, and detectors read nothing else.
        for word in seen.words[: shown.host]:
            life.note(Kind.HOST, text=word.text[:500])
        life.memory.host.ack(life.agent, seen.words[shown.host - 1].number)
    life.memory.requests.ack(life.agent, [request.request_id for request, _ in seen.answered])
    for request, response in seen.answered:
        life.say([("request.delivered", {"request_id": request.request_id, "status": response.status})])


def _become(life: Life, seen: Seen, answer: Existence) -> None:
    """What the answer says of the agent itself: who it is, and what it suffers, which the world has to agree to."""
    seen.profile, changes = identity.apply(seen.profile, answer, life.now())
    life.memory.profiles.save(seen.profile, life.now())
    for kind, facts in changes:
        life.note(kind, **facts)
    # Kept first: what the agent has just said of itself is evidence for what it suffers.
    life.keep()
    seen.chronicle = life.chronicle()
    seen.suffering = life.feel(lambda felt: _told(life, seen, felt, answer))


def _told(life: Life, seen: Seen, felt: Suffering, answer: Existence) -> tuple[Suffering, list[Said]]:
    felt, said = stressors.take(felt, answer.assessment, seen.chronicle, life.now(), life.settings)
    # The world has the last word; what the operator has just said may be one more reason to suffer.
    felt, more = stressors.assess(felt, seen.chronicle, life.settings, life.now())
    return felt, [*said, *more]


def choose(life: Life, seen: Seen, answer: Existence) -> Goal:
    """Return the goal of this cycle: the one there is, or else what the answer asks for, as far as it is open (S28).

    An active goal stays whatever the answer says about its content. A new one that the load closes gives way to one
    that looks inward (T63); where the answer holds none, one is taken from the state of the world (T83).
    """
    if seen.goal is not None:
        return seen.goal
    objective, source = _objective(life, seen, answer)
    signal = anticipation.signal(seen.suffering, objective)
    goal, said = goals.new(life.agent, objective, source, life.base, os.urandom(6).hex(), life.now())
    # On disk before it is said: the ledger must not tell of a goal that a kill has taken.
    life.memory.goals.put(goal, "created")
    life.note(Kind.GOAL_CREATED, goal=goal.goal_id, family=goals.family(objective), source=source)
    opposed = stance.conflict(seen.profile, objective)
    if opposed is not None:
        life.note(Kind.CONFLICT, goal=goal.goal_id, opinion=opposed.opinion, domain=opposed.domain)
    life.keep()
    life.say(said)
    if signal:
        life.say([("suffering.anticipated", {"goal_id": goal.goal_id, "signal": signal[:300]})])
    seen.goal = goal
    return goal


def _objective(life: Life, seen: Seen, answer: Existence) -> tuple[str, str]:
    past = life.memory.goals.recent(life.agent, _WINDOW)
    types = [each.type for each in seen.suffering.active]
    if answer.usable and not goals.blocked(answer.content, past):
        if kinds.allowed(answer.content, seen.band, types):
            return answer.content, "existence"
        life.say([("goal.refused", {"objective": answer.content[:200], "band": str(seen.band)})])
    elif answer.usable:
        life.say([("goal.blocked", {"objective": answer.content[:200]})])
    # In a crisis nothing outward is open, and a fallback would be outward.
    if seen.band is suffering.Band.CRISIS:
        return kinds.crisis_goal(seen.suffering), f"{fallback.PREFIX}stressor"
    sources = fallback.Sources(
        agent=life.agent, stressors=seen.suffering.active, open_questions=seen.profile.open_questions,
        peer_files=seen.peers, last_outcome=seen.outcome,
        journal=[path for path in seen.own if path.startswith("workspace/")], files=seen.files,
        writable=seen.load is not None and seen.load < life.settings.locks.get("fs_write", 2.0),
    )  # fmt: skip
    recent = [each.objective for each in past[-_RECENT:]]
    turn = fallback.turn(life.memory.goals.last_fallback(life.agent))
    return fallback.choose(sources, seed=f"{life.agent} {life.cycle}", recent=recent, turn=turn)


def inward(seen: Seen, goal: Goal) -> Goal | None:
    """Return the goal that takes the place of *goal* for this cycle because a crisis closes it, or None (T63, D4).

    It is not in the registry: there is one goal at a time, and this one is nothing to be completed.
    """
    types = [each.type for each in seen.suffering.active]
    if seen.band is not suffering.Band.CRISIS or kinds.allowed(goal.objective, seen.band, types):
        return None
    return replace(goal, objective=kinds.crisis_goal(seen.suffering))
