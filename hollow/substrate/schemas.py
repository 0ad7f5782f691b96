"""JSON schemas of every answer a mind gives; they go to the model server as its format, name for name (contract 3)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

_TEXT: Final = {"type": "string"}
_TEXT_OR_NOTHING: Final = {"type": ["string", "null"]}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    """An object with all of *properties*: a model that is held to a schema fills in what is required."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(item: dict[str, Any], most: int) -> dict[str, Any]:
    # A small model that is held to a list without an end may never close it.
    return {"type": "array", "items": item, "maxItems": most}


EXISTENCE: Final[Mapping[str, Any]] = _object(
    {
        "action": _TEXT,
        "content": _TEXT,
        "reasoning": _TEXT,
        "worldview_update": _TEXT_OR_NOTHING,
        "new_open_questions": _list(_TEXT, 3),
        "new_opinions": _list(_object({"opinion": _TEXT, "domain": _TEXT}), 2),
        "suffering_assessment": _object(
            {
                "new_stressors": _list(_object({"type": _TEXT, "description": _TEXT, "condition": _TEXT}), 2),
                "resolved": _list(_object({"type": _TEXT, "reason": _TEXT}), 5),
            }
        ),
    }
)
"""What an agent is after, and what has become of it (3.2)."""

PLAN: Final[Mapping[str, Any]] = _object(
    {"steps": _list(_object({"capability_id": _TEXT, "params": {"type": "object"}, "rationale": _TEXT}), 6)}
)
"""What it will do (3.3)."""

LESSON: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "properties": {
        "category": {"type": "string", "enum": ["environment", "patterns", "constraints"]},
        "text": _TEXT,
        "confidence": {"type": "string", "enum": ["high", "medium", "low"]},
    },
    "required": ["category", "text", "confidence"],
}
"""A general rule that a goal has shown, or none (3.5)."""

SEMANTIC: Final[Mapping[str, Any]] = _object(
    {
        "accomplished": {"type": "boolean"},
        "reason": _TEXT,
        "lesson": dict(LESSON),
    }
)
"""Whether the evidence shows what the goal asked for (3.5, S32)."""

FACT: Final[Mapping[str, Any]] = _object({"accurate": {"type": "boolean"}, "reason": _TEXT})
"""Whether a claim about a file holds (3.5, S33)."""

EVALUATE: Final[Mapping[str, Any]] = _object({"accomplished": {"type": "boolean"}, "reason": _TEXT})
"""What an agent thinks of its own work so far."""

CHAT: Final[Mapping[str, Any]] = _object({"reply": _TEXT})
"""Free words."""
