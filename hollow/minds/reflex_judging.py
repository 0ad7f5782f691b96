"""The reflex mind's verdicts: what can be counted is counted, and each says that no model judged."""

from __future__ import annotations

from hollow.minds.reflex_facts import telling
from hollow.substrate import factcheck
from hollow.words import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from hollow.minds.reflex_facts import Situation

_ENOUGH: Final = 0.5
"""Share of the goal's telling words that the evidence must hold."""
_SUBSTANCE: Final = 200
"""Characters beside blanks from which evidence is more than a heading (S31)."""
_NOBODY: Final = "No model judged this: "


def semantic(now: Situation, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether the evidence in *facts* speaks of the goal and has substance; without evidence it does not."""
    accomplished, reason = _weighed(now.goal, _evidence(facts))
    return {"accomplished": accomplished, "reason": _NOBODY + reason, "lesson": None}


def evaluate(now: Situation, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same weighing for an agent that asks about its own work; it completes nothing."""
    accomplished, reason = _weighed(now.goal, _evidence(facts))
    return {"accomplished": accomplished, "reason": _NOBODY + reason}


def fact(facts: Mapping[str, Any], read: Callable[[str], str | None]) -> dict[str, Any]:
    """Return whether what was cited is there; a check that failed is never overruled.

    ``facts["checked"]`` says what the environment's own check came to. Where it made none, the claims of the text under
    ``evidence`` are looked up here, with *read* for the text of a file (None where there is none).
    """
    checked, evidence = facts.get("checked"), _evidence(facts)
    if checked is True:
        return {"accurate": True, "reason": _NOBODY + "every place that is cited was looked up and exists."}
    if checked is False or not evidence:
        return {"accurate": False, "reason": _NOBODY + "the citations were not found right by the check."}
    wrong = factcheck.check(factcheck.references(evidence), read)
    return {"accurate": wrong is None, "reason": _NOBODY + (wrong or "every place that is cited exists.")}


def chat(now: Situation) -> dict[str, Any]:
    """Return the reply to whoever wants to talk: the truth about who is there, and the state as it is."""
    goal = f" The goal at hand: {now.goal}." if now.goal else ""
    return {"reply": f"No model is configured here, so nobody can converse; this is {now.agent}’s reflex mind.{goal}"}


def _weighed(goal: str, evidence: str) -> tuple[bool, str]:
    wanted = {token for word in telling(goal) for token in tokens(word)}
    held = wanted & set(tokens(evidence))
    solid = sum(not char.isspace() for char in evidence) >= _SUBSTANCE
    if not wanted or not solid:
        return False, "there is no evidence of any substance."
    count = f"the evidence holds {len(held)} of the goal’s {len(wanted)} telling words."
    return len(held) >= _ENOUGH * len(wanted), count


def _evidence(facts: Mapping[str, Any]) -> str:
    given = facts.get("evidence")
    return given if isinstance(given, str) else ""
