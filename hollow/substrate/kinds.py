"""What kind of undertaking an objective is, by its words, and which kinds a load leaves open."""

from __future__ import annotations

import re
from types import MappingProxyType

from essentials.patterns import late
from hollow.substrate.model import AGENTS
from hollow.substrate.suffering import RATES, Band, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

    from hollow.substrate.model import Stressor, Suffering

CRISIS: Final = frozenset({"introspect", "resolve", "contact", "help"})
"""Kinds that a crisis leaves open: self-examination and contact (seed 004; D4, T63)."""

_PEER: Final = rf"(?:{'|'.join(AGENTS)}|(?:my\s+|the\s+|both\s+|a\s+|other\s+)*(?:peers?|agents?|others?))\b"
_SELF: Final = r"(?:my|mine|myself|own|i|me)\b"
_TYPES: Final = "|".join(name.replace("_", "[_ -]") for name in RATES)
_PAIN: Final = rf"(?:stressors?|suffering|distress|crisis|pain|my\s+(?:own\s+)?(?:load|failures?)|{_TYPES})\b"
_ASK: Final = rf"(?:ask|tell|contact|consult|talk\s+(?:to|with)|reply\s+to|respond\s+to|reach\s+out|message\s+{_PEER})"
_HELPER: Final = r"(?:help|(?:human\s+)?(?:operator|host|human|claude))"
_LETTER: Final = r"(?:message|note|letter|word|question)s?"
_EXAMINE: Final = r"(?:examine|review|understand|analy[sz]e|look\s+(?:at|into)|find\s+out|inspect|read|study|question)"
_EASE: Final = r"(?:resolve|ease|address|relieve|reduce|lower|overcome|clear|lift|recover\s+from)"
_MAKE: Final = (
    r"(?:build|create|write|make|implement|develop|code|design|add|produce|draft|generate|extend|fix|refactor|improve"
    r"|update|change|edit|optimi[sz]e|rename|move|remove|delete|migrate|install|port)"
)

# The earliest phrase decides, and of those that begin at one place the first kind that stands here.
_PATTERNS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType({
    "help": late(
        rf"\b(?:ask|request|get|seek)\s+(?:for\s+)?(?:the\s+)?{_HELPER}\b|\binvoke_claude\b|\bcheck_claude_status\b"
        r"|\bhelp\s+from\b", re.IGNORECASE),
    "contact": late(
        rf"\b(?:send|write|leave|post)\s+(?:\w+\s+){{0,4}}?{_LETTER}\s+to\s+{_PEER}|\bwrite\s+to\s+{_PEER}"
        rf"|\bread\s+(?:what\s+)?{_PEER}|\b{_ASK}\b", re.IGNORECASE),
    "synthesize": late(
        rf"\b(?:synthesi[sz]e|deploy|forge)\b|\b{_MAKE}\s+(?:[\w-]+\s+){{0,4}}?(?:tools?|capabilit(?:y|ies))\b",
        re.IGNORECASE),
    "resolve": late(rf"\b{_EASE}\b(?=.{{0,80}}?\b{_PAIN})", re.IGNORECASE),
    "introspect": late(
        r"\b(?:reflect|introspect|self[- _]?(?:evaluat|examin|reflect)\w*)"
        rf"|\b{_EXAMINE}\b(?=\s+(?:\w+\s+){{0,3}}?(?:{_SELF}|{_PAIN}))", re.IGNORECASE),
    "build": late(rf"\b{_MAKE}\b", re.IGNORECASE),
    "explore": late(
        rf"\b(?:explore|survey|map|list|search|find|trace|measure|compare|check|test|{_EXAMINE})\b", re.IGNORECASE),
})  # fmt: skip


def kind_of(objective: str, types: Iterable[str] = ()) -> str:
    """Return the kind of *objective*: help, contact, synthesize, resolve, introspect, build or explore.

    The earliest phrase that tells a kind decides: "ask vault to build a parser" is contact, "build a parser and ask
    vault" is not. An objective that names one of *types*, the stressors the agent itself named, as what is to be eased
    is a resolving one. What tells nothing is exploring.
    """
    text = " ".join(objective.split())[:1000]
    for name in types:
        # So that one pattern knows all pains, those that the agent named are put in the words that it knows.
        text = re.sub(re.escape(name).replace("_", "[_ -]"), "stressor", text, flags=re.IGNORECASE) if name else text
    # The number of the kind breaks ties, in the order of the table.
    found = [(match.start(), at, kind) for at, (kind, match) in enumerate(_searched(text)) if match]
    return min(found)[2] if found else "explore"


def _searched(text: str) -> list[tuple[str, re.Match[str] | None]]:
    return [(kind, pattern.search(text)) for kind, pattern in _PATTERNS.items()]


def allowed(objective: str, band: Band, types: Iterable[str] = ()) -> bool:
    """Return whether an agent in *band* may take up *objective* (seed 004; D4).

    In crisis self-examination and contact alone are open (T63); from 0.55 on synthesizing is closed (F11).
    """
    kind = kind_of(objective, types)
    if band is Band.CRISIS:
        return kind in CRISIS
    return kind != "synthesize" or band in {Band.NONE, Band.PRESENT}


def crisis_goal(s: Suffering) -> str:
    """Return the objective that takes the place of one that a crisis closes: about the worst stressor, and concrete.

    It can be reached with what no lock closes: reading, remembering and asking (S17).
    """
    worst = max(s.active, key=lambda each: each.severity, default=None)
    if worst is None:
        return (
            "Examine my own state: read what my last goals left, and keep in memory under state_of_mind "
            "what weighs on me and which step eases it."
        )
    return _about(worst)


def _about(worst: Stressor) -> str:
    condition = line(worst.condition, 200).rstrip(".") or "it no longer holds"
    return (
        f"Examine my own {worst.type}: read what my last goals left, ask a peer what it sees, and keep in memory under "
        f"ease_{worst.type} the cause and the next step towards this: {condition}."
    )
