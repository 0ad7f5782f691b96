"""Reading the existence answer: whatever a model wrote becomes values, and nothing raises (T159; contract 3.2)."""

from __future__ import annotations

import re

from essentials.patterns import late
from essentials.records import dataclass, field
from hollow import oneline
from hollow.parsing import find_object, prose, strip_thinking
from hollow.substrate.model import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

LONGEST_GOAL: Final = 600
"""Characters of an objective."""
_LONGEST: Final = 2000
"""Characters of any other text; each that is kept has its own, smaller bound."""
_MOST: Final = 40
"""Entries of a list that are looked at."""
_SHORTEST_GOAL: Final = 12
_FEWEST_WORDS: Final = 3
_GOAL_KEYS: Final = ("content", "goal", "objective", "next_goal")
# What a model gives that fills in a form without having an answer: the schema's own words, dots, a promise.
_EMPTY: Final = late(
    r"[\W_]*(?:none|null|n/?a|string|tbd|todo|goal|content|objective|your (?:next )?goal(?: here)?|the (?:next )?goal"
    r"|no (?:new )?goals?(?: (?:now|yet|needed|at this time))?|continue|unknown|example|\.{3}|…)?[\W_]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Existence:
    """An existence answer. Everything may be empty; bounds of what is kept are the keepers' business."""

    action: str = "goal"
    content: str = ""
    """The objective: one line."""
    reasoning: str = ""
    worldview: str = ""
    open_questions: tuple[str, ...] = ()
    opinions: tuple[tuple[str, str], ...] = ()
    """Opinion and domain."""
    traits: tuple[str, ...] = ()
    assessment: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """``new_stressors`` and ``resolved``: lists of mappings whose values are texts."""

    @property
    def usable(self) -> bool:
        """Whether *content* is an objective; if not, a goal is taken from the state of the world (S28)."""
        enough = len(self.content) >= _SHORTEST_GOAL and len(self.content.split()) >= _FEWEST_WORDS
        return enough and _EMPTY.fullmatch(self.content) is None


def read(text: str) -> Existence:
    """Return the existence answer in *text*; never raises, and an answer that is none is an empty one.

    Thinking, code fences, prose around the object, null and single values where lists belong, lists where texts belong:
    all of it is taken for what it must have meant.
    """
    found = _unwrapped(find_object(strip_thinking(text)) or {})
    return Existence(
        action=line(found.get("action"), 40) or "goal",
        content=next(filter(None, (line(found.get(key), LONGEST_GOAL) for key in _GOAL_KEYS)), ""),
        reasoning=line(found.get("reasoning"), _LONGEST),
        worldview=line(found.get("worldview_update"), _LONGEST),
        open_questions=tuple(filter(None, (line(each) for each in _listed(found.get("new_open_questions"))))),
        opinions=tuple(_opinions(found.get("new_opinions"))),
        traits=tuple(filter(None, (line(each, 60) for each in _listed(found.get("traits"))))),
        assessment=_assessment(found.get("suffering_assessment")),
    )


def line(value: Any, longest: int = 400) -> str:
    """Return *value* as one line of at most *longest* characters: a list becomes its parts, null becomes nothing."""
    return oneline.line(value if isinstance(value, str) else prose(value), longest)


def _unwrapped(found: dict[str, Any]) -> dict[str, Any]:
    """The answer itself: models wrap it in an object with one name now and then."""
    if any(key in found for key in ("content", "suffering_assessment", "worldview_update")):
        return found
    inner = [value for value in found.values() if isinstance(value, dict)]
    wrapped = len(inner) == 1 and any(key in inner[0] for key in _GOAL_KEYS)
    return inner[0] if wrapped else found


def _listed(value: Any) -> list[Any]:
    """*value* as a list: null is none, a single value one of one."""
    if value is None or value == "":
        return []
    return value[:_MOST] if isinstance(value, list) else [value]


def _opinions(value: Any) -> list[tuple[str, str]]:
    found = []
    for each in _listed(value):
        given = each if isinstance(each, dict) else {"opinion": each}
        opinion = line(given.get("opinion"))
        if opinion:
            found.append((opinion, line(given.get("domain"), 80) or "general"))
    return found


def _assessment(value: Any) -> Mapping[str, Any]:
    given = value if isinstance(value, dict) else {}
    return {
        "new_stressors": _mappings(given.get("new_stressors"), ("type", "description", "condition")),
        "resolved": _mappings(given.get("resolved"), ("type", "reason")),
    }


def _mappings(value: Any, keys: tuple[str, ...]) -> list[dict[str, str]]:
    """The mappings in the list *value*, with *keys* alone; one that names nothing is none."""
    found = []
    for each in _listed(value):
        given = each if isinstance(each, dict) else {keys[0]: each}
        entry = {key: line(given.get(key)) for key in keys}
        if entry[keys[0]]:
            found.append(entry)
    return found
