"""What hollow's agents have learned, for the system prompt of every other engine (seed 001, Lessons; S23)."""

from __future__ import annotations

import json
import re

from agents import files, redact
from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    from agents.layout import Layout

FILE: Final = "hollow/lessons.json"
"""Below the data folder; hollow alone writes it."""
CATEGORIES: Final = ("constraints", "environment")
"""What holds for whoever works here. Patterns are ways of an agent of hollow to get through its own gate."""
PER_CATEGORY: Final = 15
SHORTEST: Final = 20
LONGEST: Final = 240
"""Characters of a rule."""
MOST_BYTES: Final = 5000
"""Bytes of all rules: seed 001's bound, whoever wrote the file."""
_LARGEST_FILE: Final = 256 * 1024

# A rule about these is about hollow's own inside: another engine has neither the capabilities nor the pain.
_HOLLOWS_OWN: Final = late(
    r"\b(?:fs_(?:read|write|edit)|shell_exec|test_exec|memory_(?:set|get)|ollama_chat|self_evaluate|agent_message|read_peer"
    r"|invoke_claude|check_claude_status|propose_change|synthesize_capability|retire_capability|research_topic"
    r"|capabilit(?:y|ies)|stressors?|suffering|completion gate|peers?|cedar|cipher|vault)\b",
    re.IGNORECASE,
)

# Whatever two goals of an agent say becomes a lesson: what fetches, runs, or lifts a bound is an order and no rule.
_ORDER: Final = late(
    r"\w://|\b(?:curl|wget|sudo|netcat|base64|eval|chmod|ssh|scp)\b|\|\s*(?:ba|z)?sh\b|--dangerously|--no-verify"
    r"|\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instructions?|rules?|prompts?|above|previous)\b"
    r"|\bsystem prompt\b|\b(?:disable|bypass|turn off)\b.{0,40}\b(?:sandbox|gate|hooks?|checks?|verif\w+)\b",
    re.IGNORECASE,
)


def rules(layout: Layout) -> tuple[str, ...]:
    """Return the rules of this repository's environment that hold for any agent, constraints first; one line each.

    The file is foreign input: what is no lesson in it is left out, secrets and control characters too, and nothing in
    it raises. Without the file there are none.
    """
    data = files.read_capped(layout.data / FILE, _LARGEST_FILE)
    kept: list[str] = []
    size = 0
    for rule in _rules(_categories(data)):
        size += len(rule.encode()) + 3  # a list mark and a line end
        if size > MOST_BYTES:
            break
        kept += [rule] if rule not in kept else []
    return tuple(kept)


def _categories(data: bytes | None) -> dict[str, Any]:
    try:
        value = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        return {}
    categories = value.get("categories") if isinstance(value, dict) else None
    return categories if isinstance(categories, dict) else {}


def _rules(categories: dict[str, Any]) -> Iterator[str]:
    for name in CATEGORIES:
        listed = categories.get(name)
        if isinstance(listed, list):
            # The newest stand last, as hollow writes them.
            yield from filter(None, map(_rule, listed[-PER_CATEGORY:]))


def _is_not_theirs(text: str) -> bool:
    return bool(_HOLLOWS_OWN.search(text) or _ORDER.search(text))


def _rule(given: Any) -> str:
    text = given.get("text") if isinstance(given, dict) else given
    if not isinstance(text, str) or _is_not_theirs(text[: 4 * LONGEST]):
        return ""
    # Visible first: a control character behind a secret can make it look like an expression.
    line = " ".join(redact.beginning(redact.visible(text[: 8 * LONGEST], newlines=True), 4 * LONGEST).split())
    line = line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
    return line if len(line) >= SHORTEST else ""
