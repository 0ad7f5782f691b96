"""The passage of a text that answers best: which lines, and how well."""

from __future__ import annotations

import math

from essentials.patterns import late
from essentials.records import dataclass
from hollow.words import identifiers, tokens_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

WINDOW: Final = 20
"""Lines that are judged together: about a function."""
_LONGEST: Final = 400
"""Characters of a line that are read; what follows is data."""
_DEFINITION: Final = late(
    r"^\s*(?:(?:export|default|public|private|protected|static|async|pub|abstract|final)\s+)*"
    r"(?:def|class|func|fn|function|struct|interface|trait|impl|module|enum|type)\b"
)
_ON_DEFINITION: Final = 1.5


@dataclass(frozen=True, slots=True)
class Passage:
    """The best lines of a text."""

    line: int
    """1-based: the single line that matches best."""
    start: int
    """First line of the window, 1-based."""
    score: float
    matched: tuple[str, ...] = ()
    """Terms found in the window, most telling first."""


def line_terms(line: str, values: Mapping[str, float]) -> set[str]:
    """Return the terms of *values* that *line* holds."""
    return {token for word in identifiers(line[:_LONGEST]) for token in tokens_of(word) if token in values}


def best(lines: Sequence[str], values: Mapping[str, float], window: int = WINDOW) -> Passage | None:
    """Return the window of *lines* whose distinct terms are worth most, or None if no line matches.

    *values* is each term's worth (weight times rarity). A definition line counts half as much again: a place where
    something is defined answers better than one where it is mentioned.
    """
    hits = [(at, found) for at, line in enumerate(lines) if (found := line_terms(line, values))]
    if not hits:
        return None
    worths = {at: _worth(lines[at], found, values) for at, found in hits}
    start, score, matched = _best_window(hits, values, worths, window)
    inside = [at for at, _ in hits if start <= at < start + window]
    # The earlier of two equal lines: a definition stands before its uses.
    top = max(inside, key=lambda at: (worths[at], -at))
    ordered = tuple(sorted(matched, key=lambda term: (-values[term], term)))
    return Passage(top + 1, start + 1, score, ordered)


def _best_window(
    hits: list[tuple[int, set[str]]], values: Mapping[str, float], worths: Mapping[int, float], window: int
) -> tuple[int, float, set[str]]:
    """First line (0-based), score and terms of the best window; windows begin at matching lines only."""
    winner: tuple[int, float, set[str]] = (hits[0][0], -1.0, set())
    # A window that begins at a line without a match is never better than one that begins at the next match.
    for first, (at, _) in enumerate(hits):
        terms: set[str] = set()
        densest = 0.0
        for other, found in hits[first : first + window]:
            if other >= at + window:
                break
            terms |= found
            densest = max(densest, worths[other])
        # Half of the densest line: of two windows with the same words, the one where they stand together answers.
        score = math.fsum(values[term] for term in terms) + 0.5 * densest
        if score > winner[1]:
            winner = (at, score, terms)
    return winner


def _worth(line: str, found: set[str], values: Mapping[str, float]) -> float:
    # fsum: a set has another order in every process, and a plain sum another last digit, which can swap two places.
    total = math.fsum(values[term] for term in found)
    return total * _ON_DEFINITION if _DEFINITION.match(line) else total
