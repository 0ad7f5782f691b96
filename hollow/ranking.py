"""How likely each file is what a question is about: pure arithmetic over counts."""

from __future__ import annotations

import math
from types import MappingProxyType

from essentials.records import dataclass, field
from hollow.kinds import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The knobs; the values were tuned on repositories that the held-out figures do not see (docs/ranking.md)."""

    symbols: float = 1.0
    docs: float = 0.1
    body: float = 0.5
    name: float = 6.0
    """The file's own name."""
    folders: float = 5.0
    saturation: float = 5.0
    """BM25's k1."""
    shortness: float = 0.2
    """BM25's b: how much a long file is held against its counts."""
    passage: float = 0.5
    """Share of the best passage's score."""
    history: float = 0.4
    """Share of past commits with similar messages."""
    churn: float = 0.15
    """Share of how often the file changed lately."""
    width: float = 0.0
    """How much a past commit that touched many files is worth less to each."""
    sharpness: float = 2.5
    """Exponent on a past commit's similarity: one close match beats many vague ones."""
    half_life: float = 60.0
    """Commits after which a change counts half for churn."""
    path: float = 1.5
    """Bonus of a file whose path the question names."""
    exact: float = 0.1
    """Bonus share of files that define the names which the question writes as code."""


KIND_FACTORS: Final[Mapping[Kind, float]] = MappingProxyType(
    {
        Kind.SOURCE: 1.0,
        Kind.TEST: 0.45,
        Kind.EXAMPLE: 0.4,
        Kind.DOC: 0.35,
        Kind.CONFIG: 0.4,
        Kind.OTHER: 0.3,
        Kind.GENERATED: 0.15,
    }
)
"""What a file's sort does to its score, unless the question asks for that sort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What is known of one file with regard to one question."""

    path: str
    kind: Kind
    lengths: tuple[int, int, int] = (0, 0, 0)
    """Tokens in symbols, docs and body."""
    counts: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """Question term to its occurrences in symbols, docs and body."""
    name: frozenset[str] = frozenset()
    """Question terms in the file's own name."""
    folders: frozenset[str] = frozenset()
    """Question terms in the folders' names."""
    past: Sequence[tuple[float, int]] = ()
    """``(similarity to the question, files touched)`` of each past commit that touched the file."""
    ages: Sequence[int] = ()
    """How many commits ago each change of the file was."""
    named: bool = False
    """Whether the question writes the file's path."""
    defines: int = 0
    """How many names that the question writes as code the file defines."""
    passage: float = 0.0
    """Score of the best passage; 0 where it was not looked at."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is known of all files together."""

    documents: int
    averages: tuple[float, float, float]
    """Mean tokens in symbols, docs and body."""
    frequencies: Mapping[str, int]
    """Question term to the number of files that hold it."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A file with its score and what it is made of (each part before weighting, 0 to 1)."""

    candidate: Candidate
    score: float
    parts: Mapping[str, float]


def rarity(frequency: int, documents: int) -> float:
    """Return BM25's inverse document frequency of a term that *frequency* of *documents* hold; never negative."""
    # The 1 is Lucene's: without it a term in more than half of the files would count against those that hold it.
    return math.log(1 + (documents - min(frequency, documents) + 0.5) / (frequency + 0.5))


def text_score(file: Candidate, terms: Mapping[str, float], corpus: Corpus, weights: Weights) -> float:
    """Return BM25F of *file* for the weighted *terms* over symbols, docs, body, file name and folder names."""
    # BM25F: the fields are added up before saturation, or a word in three fields would count as three words.
    scales = [
        weight / (1 - weights.shortness + weights.shortness * length / average) if average else 0.0
        for weight, length, average in zip(
            (weights.symbols, weights.docs, weights.body), file.lengths, corpus.averages, strict=True
        )
    ]
    total = 0.0
    for term, importance in terms.items():
        found = sum(scale * count for scale, count in zip(scales, file.counts.get(term, (0, 0, 0)), strict=True))
        # Names have no length to be judged by: a path either says the word or it does not.
        found += weights.name * (term in file.name) + weights.folders * (term in file.folders)
        if found:
            rare = rarity(corpus.frequencies.get(term, 0), corpus.documents)
            total += importance * rare * found / (weights.saturation + found)
    return total


def history_score(file: Candidate, weights: Weights) -> float:
    """Return what past commits with similar messages say for *file*."""
    shares = (similarity**weights.sharpness / touched**weights.width for similarity, touched in file.past if touched)
    return math.fsum(shares)


def churn_score(file: Candidate, weights: Weights) -> float:
    """Return how much *file* changed lately, saturating: the hundredth change says less than the first."""
    return math.log1p(sum(0.5 ** (age / weights.half_life) for age in file.ages))


def rank(
    files: Iterable[Candidate],
    terms: Mapping[str, float],
    corpus: Corpus,
    weights: Weights,
    factors: Mapping[Kind, float] = KIND_FACTORS,
) -> list[Scored]:
    """Return *files* with their scores, likeliest first; equal scores by path, never by chance."""
    files, shares = list(files), _shares(weights)
    scored = []
    for file, parts in zip(files, _parts(files, terms, corpus, weights), strict=True):
        # A path that the question names is meant, whatever sort of file it is.
        factor = 1.0 if file.named else factors.get(file.kind, 1.0)
        scored.append(Scored(file, factor * sum(shares[name] * value for name, value in parts.items()), parts))
    return sorted(scored, key=lambda one: (-one.score, one.candidate.path))


def _shares(weights: Weights) -> dict[str, float]:
    """What each part of a score is worth; the text's is the unit that the others were tuned against."""
    return {
        "text": 1.0,
        "passage": weights.passage,
        "history": weights.history,
        "churn": weights.churn,
        "exact": weights.exact,
        "path": weights.path,
    }


def _parts(
    files: Sequence[Candidate], terms: Mapping[str, float], corpus: Corpus, weights: Weights
) -> list[dict[str, float]]:
    """The parts of each file's score by name, each from 0 to 1."""
    columns = {
        "text": _scaled([text_score(file, terms, corpus, weights) for file in files]),
        "passage": _scaled([file.passage for file in files]),
        "history": _scaled([history_score(file, weights) for file in files]),
        "churn": _scaled([churn_score(file, weights) for file in files]),
        # The root: a file that defines four of the names is not four times as likely as one that defines one.
        "exact": _scaled([math.sqrt(file.defines) for file in files]),
        # Not scaled: it is yes or no, and no file's yes makes another's smaller.
        "path": [float(file.named) for file in files],
    }
    return [{name: column[at] for name, column in columns.items()} for at in range(len(files))]


def _scaled(values: list[float]) -> list[float]:
    """*values* divided by their largest, so that parts measured in different units can be added."""
    # All nothing stays nothing, instead of dividing by it.
    most = max(values, default=0.0)
    return [value / most if most > 0 else 0.0 for value in values]
