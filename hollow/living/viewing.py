"""What the mind is shown: the situation as the sections of a prompt, and the same as values."""

from __future__ import annotations

from essentials import records
from hollow.substrate import request_text, routing
from hollow.substrate.sections import Broken, Note, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from hollow.hands.hands import Listed
    from hollow.living.life import Life
    from hollow.living.perceiving import Seen
    from hollow.substrate.model import Goal

_PENDING: Final = 3
"""Open requests that are shown, the newest (seed 000; T17)."""


def view(life: Life, seen: Seen, goal: Goal | None, *, signal: str = "", listed: Sequence[Listed] = ()) -> View:
    """Return what a prompt for *goal* is made of; *listed* is what a plan can call, when the next steps are asked for.

    *signal* is the anticipatory one.
    """
    broken = [each for each in life.memory.broken.records().values() if each.is_broken]
    newest = seen.pending[-_PENDING:]
    return View(
        agent=life.agent, profile=seen.profile, rules=seen.rules,
        broken=[Broken(name=each.name, failures=each.failures, reason=each.reason) for each in broken],
        suffering=seen.pain(life), signal=signal,
        pending=request_text.pending_block(newest, len(seen.pending) - len(newest)),
        answered=request_text.answered_block(seen.answered),
        goal=goal, peers=seen.others,
        messages=[Note(sender=each.sender, text=each.text) for each in seen.mail],
        workspace=[each.path for each in sorted(seen.own.values(), key=lambda one: one.stamp, reverse=True)],
        repository=seen.files, outcome=seen.outcome,
        host=[Note(sender="host", text=each.text) for each in seen.words],
        tools=[each.line for each in offered(life, goal, listed)],
        results=life.memory.results.of(life.agent, goal.goal_id) if goal and listed else (),
        max_steps=life.settings.max_steps, tokens=life.settings.prompt_tokens,
    )  # fmt: skip


def offered(life: Life, goal: Goal | None, listed: Sequence[Listed]) -> list[Listed]:
    """Return those of *listed* that a plan for *goal* is offered: what is built in, and the tools that fit it best.

    Only what is loaded is looked at, so a description without code is none of them (W2, T109).
    """
    if all(each.builtin for each in listed) or goal is None:
        return list(listed)
    described = [
        routing.Described(
            name=each.name, description=each.description, builtin=each.builtin, stub=each.stub, output=each.output
        )
        for each in listed
    ]
    ranked = routing.route(goal.objective, described, embed=life.thinker.embed, cache=life.memory.vectors)
    place = {name: at for at, (name, _) in enumerate(ranked)}
    kept = [each for each in listed if each.builtin or each.name in place]
    return sorted(kept, key=lambda each: place.get(each.name, len(place)))


def values(life: Life, seen: Seen, goal: Goal | None, listed: Sequence[Listed] = ()) -> dict[str, Any]:
    """Return the situation as values, for a mind that does not read prose."""
    return {
        "agent": life.agent,
        "goal": {"objective": goal.objective, "goal_id": goal.goal_id, "progress": goal.progress} if goal else None,
        "artifacts": [each.path for each in goal.artifacts] if goal else [],
        "cycle": life.cycle,
        "load": seen.load,
        "band": str(seen.band),
        "locked": [each.name for each in listed if each.locked],
        "stressors": [records.asdict(each) for each in seen.suffering.active],
        "open_questions": list(seen.profile.open_questions),
        "peers": {name: list(paths) for name, paths in seen.peers.items()},
        "files": list(seen.files),
        "outcome": seen.outcome,
        "seed": f"{life.agent} {life.cycle}",
        "workspace": sorted(seen.own),
        "capabilities": [each.name for each in listed],
        "messages": [{"from": each.sender, "message": each.text} for each in seen.mail],
    }
