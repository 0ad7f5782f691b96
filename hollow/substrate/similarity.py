"""How alike two sentences are, and whether they speak of the same things and in the same direction (S25, W22)."""

from __future__ import annotations

import re
from functools import lru_cache

from essentials.patterns import late
from hollow.substrate.model import AGENTS
from hollow.words import STOP_WORDS, stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

# A path stays one word: rules about two paths differ in that word alone, and it is what they are about.
_WORD: Final = late(r"[a-z0-9_]+(?:[./:-]+[a-z0-9_]+)*", re.IGNORECASE)
_QUOTED: Final = late(r"`([^`\n]{1,80})`|\"([^\"\n]{1,80})\"|“([^”\n]{1,80})”|(?<!\w)'([^'\n]{1,80})'(?!\w)")
_PATH: Final = late(r"~?/?(?:[\w.*@-]+/)+[\w.*@-]*|/[\w.*@-]+|\b[\w-]+(?:\.[\w-]+)*\.(?:[a-z][a-z0-9]{1,5}|[ch])\b")
_NUMBER: Final = late(r"(?<![\w./])\d+(?:\.\d+)?(?![\w/])")
_CAMEL: Final = late(r"[a-z][A-Z]")
_LOUD: Final = late(r"[A-Z][A-Z0-9]{2,}")
_SHOUTED: Final = frozenset({"NEVER", "ALWAYS", "NOT", "MUST", "ONLY", "BEFORE", "AFTER", "DO", "ALL", "AND", "FIRST"})
"""Words in capitals for emphasis; they name nothing."""

KEPT: Final = 512
"""Texts whose analysis is remembered: every rule is compared with every other, again and again."""
_LONGEST: Final = 4000
"""Characters."""

# What is missing or may not be written is a state of the world: rules about it are not thereby the opposite of others.
_STATES: Final = (
    (late(r"\b(?:do|does|did|may|might|can|could|will)(?: not|n[’']t) (?:actually )?exist\b"), " missing "),
    (late(r"\b(?:no such|not found|not there|not present)\b"), " missing "),
    (late(r"\bread[ -]?only\b|\bimmutable\b|\bwrite[ -]protected\b"), " not writable "),
)
_NEGATORS: Final = frozenset(
    """not no never none nothing nor neither cannot without avoid avoids avoiding refuse refuses skip skips skipping
    assume assumes assuming guess guessing unnecessary needless needlessly useless pointless unless forbidden forbid
    forbids prohibited stop stops""".split()  # noqa: SIM905 - a list of thirty strings is unreadable
)
"""Each of them turns a sentence round, and two of them turn it back: "never read without checking" says "check"."""
_OPPOSITES: Final = (
    ("before", "after"), ("always", "never"), ("more", "less"), ("more", "fewer"), ("allow", "deny"),
    ("allow", "forbid"), ("enable", "disable"), ("increase", "decrease"), ("above", "below"), ("first", "last"),
    ("open", "close"), ("larger", "smaller"), ("longer", "shorter"), ("safe", "unsafe"), ("start", "stop"),
    ("add", "remove"), ("create", "delete"), ("include", "exclude"), ("accept", "reject"), ("true", "false"),
    ("relative", "absolute"), ("inside", "outside"),
)  # fmt: skip
"""Words of which a rule that has one, and not the other, says the contrary of a rule for which it is vice versa."""


@lru_cache(maxsize=KEPT)
def tokens(text: str) -> frozenset[str]:
    """Return the words of *text* in lower case; a path or a dotted name is one word. Nothing is left out."""
    return frozenset(word.casefold() for word in _WORD.findall(text))


def jaccard(one: str, other: str) -> float:
    """Return how many of the words of both texts they share, 0.0 to 1.0; two empty texts share nothing (S25)."""
    first, second = tokens(one), tokens(other)
    together = first | second
    return len(first & second) / len(together) if together else 0.0


@lru_cache(maxsize=KEPT)
def significant(text: str) -> frozenset[str]:
    """Return the stems of the words of *text* that say what it is about."""
    words = (part for word in _WORD.findall(text.casefold()) for part in re.split(r"[^a-z0-9]+", word))
    return frozenset(stem(word) for word in words if len(word) > 2 and word not in STOP_WORDS)  # noqa: PLR2004 - letters


@lru_cache(maxsize=KEPT)
def entities(text: str) -> frozenset[str]:
    """Return what *text* names: paths, numbers, capabilities and other identifiers, quoted names, agents.

    Two rules that name different things are two rules, however alike their words are (W22).
    """
    # What is longer is no rule; the patterns below take more than linear time on text that was built for it.
    text = text[:_LONGEST]
    quoted = {_bare(next(filter(None, found))) for found in _QUOTED.findall(text)}
    paths = {_bare(path) for path in _PATH.findall(text) if not _NUMBER.fullmatch(path)}
    names = {word for word in re.findall(r"\w+", text) if _is_name(word)}
    agents = {word for word in tokens(text) if word in AGENTS}
    inside = {word for path in paths for word in re.split(r"[/.]", path)}
    return frozenset(quoted | paths | (names - inside) | set(_NUMBER.findall(text)) | agents) - {""}


def _is_name(word: str) -> bool:
    """Whether *word* is spelled as only a name is: fs_write, RunState, JSON."""
    shouted = _LOUD.fullmatch(word) is not None and word not in _SHOUTED
    return shouted or "_" in word.strip("_") or _CAMEL.search(word) is not None


def _bare(name: str) -> str:
    """The same thing in one spelling: a folder with and without its slash, a call with and without brackets."""
    return name.strip().removesuffix("()").rstrip("/.,:;")


@lru_cache(maxsize=KEPT)
def positive(text: str) -> bool:
    """Say whether *text* demands or states something, rather than denies it: an even number of negations."""
    lowered = text.casefold().replace("’", "'")
    for pattern, instead in _STATES:
        lowered = pattern.sub(instead, lowered)
    words = re.findall(r"[a-z]+(?:'[a-z]+)?", lowered)
    return not sum(word in _NEGATORS or word.endswith("n't") for word in words) % 2


def opposed(one: str, other: str) -> bool:
    """Say whether the two texts point in opposite directions, so that they must never become one (W22)."""
    if positive(one) != positive(other):
        return True
    first, second = tokens(one), tokens(other)
    # "Always" against "never" is the negation that was counted above; all other pairs speak for themselves.
    return any(_split(first, second, left, right) for left, right in _OPPOSITES if right != "never")


def _split(first: frozenset[str], second: frozenset[str], left: str, right: str) -> bool:
    """Whether one of them has *left* only and the other *right* only."""
    sides = {(left in each, right in each) for each in (first, second)}
    return sides == {(True, False), (False, True)}
