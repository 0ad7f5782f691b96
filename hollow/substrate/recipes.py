"""What a refusal or a failed check teaches, by its words: one table, nothing guessed (seed 001; S20)."""

from __future__ import annotations

import re

from essentials.patterns import late
from hollow.substrate.model import Category

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

_ENVIRONMENT, _PATTERNS, _CONSTRAINTS = Category.ENVIRONMENT, Category.PATTERNS, Category.CONSTRAINTS


def _row(pattern: str, category: Category, rule: str) -> tuple[re.Pattern[str], Category, str]:
    return late(pattern, re.IGNORECASE), category, rule


# The first row that fits an error counts, so particular refusals stand above general ones.
_ROWS: Final = (
    _row(
        r"locked (?:at|while|from|by)|\bis locked\b",
        _CONSTRAINTS,
        "A locked capability stays locked until the suffering is less: ease a stressor before planning with it.",
    ),
    _row(
        r"(?P<folder>\.git|\.agents)\b.{0,60}\bclosed|closed to agents",
        _CONSTRAINTS,
        "Some files are closed to agents and stay closed: work with what can be read.",
    ),
    _row(
        r"read-only|may not (?:be )?writ|not (?:be )?writ(?:e|ten|able)|outside (?:of )?(?:your|its|the) own|leads out",
        _CONSTRAINTS,
        "Files outside of the own workspace folder and design/ are read-only: propose a change to them instead.",
    ),
    _row(
        r"old(?:_text)? (?:was not found|stands \d+ times)|must stand there exactly once",
        _PATTERNS,
        "Read a file before editing it, and quote the passage to replace exactly and long enough to be unique.",
    ),
    _row(
        r"no such (?:capability|tool)|unknown (?:capability|tool)|is no capability|there is no capability",
        _CONSTRAINTS,
        "Plan with the capabilities that are listed and no others: a name that is not listed does nothing.",
    ),
    _row(
        r"(?:missing|unknown|unexpected|required) (?:parameter|argument)|(?:parameter|argument)s? (?:is|are) missing",
        _PATTERNS,
        "Give every capability exactly the parameters that its form names, and all that are required.",
    ),
    _row(
        r"placeholder|lorem ipsum|\bto-?do\b|not ?implemented",
        _PATTERNS,
        "Write documents in full: a file with placeholder text in it never passes the completion gate.",
    ),
    _row(
        r"syntax ?error|does not parse|invalid syntax|not valid (?:JSON|TOML|Python)",
        _PATTERNS,
        "Check that code and data parse before counting them as done: a syntax error fails the completion gate.",
    ),
    _row(
        r"(?:claim|cite|name|mention|say)s?\b.{0,120}\b(?:is not (?:there|in)|does not exist|no such|not in it|absent)",
        _PATTERNS,
        "Cite only files, lines and symbols that were read for the same goal: every claim is checked against them.",
    ),
    _row(
        r"does not exist|no such file|file not found|is not there|no file (?:or|named)|not found",
        _ENVIRONMENT,
        "Verify that a path exists before reading it.",
    ),
    _row(
        r"too (?:short|small|little)|no substance|is empty|fewer than \d+",
        _PATTERNS,
        "Give a document substance: a file of a few words never passes the completion gate.",
    ),
    _row(
        r"no output step|no output|left nothing|nothing to show",
        _PATTERNS,
        "Plan for something that stays: a goal of looking alone, without a file or note, is never completed.",
    ),
    _row(
        r"\bstalled\b|without progress",
        _PATTERNS,
        "Choose a goal whose first step can be done at once: one that stands still for five cycles is abandoned.",
    ),
)


def taught(errors: Iterable[str]) -> tuple[Category, str] | None:
    """Return category and text of the rule that the first telling one of *errors* teaches, or None."""
    for error in errors:
        for pattern, category, rule in _ROWS:
            if pattern.search(error[:1000]):
                return category, rule
    return None
