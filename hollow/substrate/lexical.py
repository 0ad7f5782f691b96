"""How well texts match by their words alone: what routes a call where no embeddings are to be had."""

from __future__ import annotations

import math
from collections import Counter

from hollow import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

SATURATION: Final = 1.2
"""BM25's k1 as usual: how soon a repeated word stops to count."""
SHORTNESS: Final = 0.75
"""BM25's b as usual: how much a long text is held against its counts."""


def scores(query: str, texts: Sequence[str]) -> list[float]:
    """Return how well each of *texts* fits *query*: Okapi BM25 over stemmed words, the best text 1.0, none at all 0.0.

    The texts are each other's collection. There are a few dozen of them, one line each: an index would cost more than
    it saves.
    """
    counts = [Counter(words.tokens(text)) for text in texts]
    wanted = dict.fromkeys(words.tokens(query))
    if not wanted or not counts:
        return [0.0] * len(counts)
    mean = sum(each.total() for each in counts) / len(counts) or 1.0
    weights = {word: _rarity(sum(word in each for each in counts), len(counts)) for word in wanted}
    return _scaled([sum(weight * _share(each, word, mean) for word, weight in weights.items()) for each in counts])


def _scaled(raw: list[float]) -> list[float]:
    """*raw* with its best as 1.0; all 0.0 where nothing fits."""
    best = max(raw)
    return [each / best if best else 0.0 for each in raw]


def _rarity(holders: int, total: int) -> float:
    # Never below zero, or a word that most texts hold would count against those that hold it.
    return math.log(1 + (total - holders + 0.5) / (holders + 0.5))


def _share(count: Counter[str], word: str, mean: float) -> float:
    times = count[word]
    length = 1 - SHORTNESS + SHORTNESS * count.total() / mean
    return times * (SATURATION + 1) / (times + SATURATION * length)


def likeness(one: str, other: str) -> float:
    """Return from 0.0 to 1.0 how alike two texts are: the cosine of their word counts, in any order of the words."""
    a, b = Counter(words.tokens(one)), Counter(words.tokens(other))
    norm = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    shared = sum(n * b[word] for word, n in a.items())
    # Rounding may lead below or above one, and a threshold of one must be reachable.
    return min(1.0, round(shared / norm, 12)) if norm else 0.0
