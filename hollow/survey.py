"""A question about a repository answered without a model: ranked places with line and excerpt."""

from __future__ import annotations

import math
import sqlite3

from essentials.records import dataclass, replace
from hollow.documents import decoded, is_text
from hollow.gather import factors_for, gather
from hollow.history import recent, touching
from hollow.index import Index, discard, is_damage
from hollow.kinds import Kind, language
from hollow.passages import Passage, best
from hollow.question import Question, parse
from hollow.ranking import Weights, rank, rarity
from hollow.symbols import Symbol, enclosing, symbols
from hollow.tracked import contents, snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Final

    from hollow.gather import Gathered
    from hollow.history import Commit
    from hollow.ranking import Scored
    from hollow.tracked import Snapshot, Tracked

# A name of its own, because the benchmark measures other weights against these.
TUNED: Final = Weights()
_LOOKED_INTO: Final = 60
"""Files whose text is read again to find their best passage."""
_ALIKE: Final = 0.15
"""Similarity from which a past commit is worth showing; vaguer ones only help the ranking."""
_EXCERPT: Final = 7
"""Lines of an excerpt."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One place that may answer."""

    path: str
    kind: Kind
    score: float
    line: int
    """1-based; 1 where only the file as a whole matches."""
    symbol: Symbol | None
    """The definition around the line."""
    excerpt: tuple[str, ...]
    """Lines of the file from :attr:`start` on."""
    start: int
    matched: tuple[str, ...]
    """Terms of the question that the passage holds."""
    symbols: tuple[str, ...]
    """Names defined in the file that match the question."""
    parts: Mapping[str, float]
    """What the score is made of (:class:`hollow.ranking.Scored`)."""
    named: bool
    """Whether the question writes this path."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a repository says to a question."""

    question: Question
    hits: tuple[Hit, ...]
    """Likeliest first."""
    commits: tuple[Commit, ...]
    """Recent commits of the first hits, newest first."""
    similar: tuple[Commit, ...]
    """Past commits whose messages resemble the question, nearest first."""
    paths: tuple[str, ...]
    """Every tracked regular file."""
    read: int
    """Files that had to be read anew for the index."""


def survey(
    repo: Path,
    index: Path | None,
    text: str,
    *,
    treeish: str | None = None,
    most: int = 20,
    weights: Weights = TUNED,
    progress: Callable[[int, int], None] | None = None,
) -> Survey:
    """Return the *most* likeliest places in *repo* for the question *text*.

    *index* is the folder of the search index (None: a temporary one). *treeish* asks about the state at a commit, with
    the history before it, instead of the working tree. *progress* is told ``(files read, files to read)``.
    Raises :class:`hollow.gitread.GitReadError` where git cannot answer.
    """
    # Damage may show only on the page that is read: start afresh once, then do without the folder.
    for folder in (index, index):
        try:
            with Index(folder) as opened:
                return _survey(repo, opened, text, treeish, most, weights, progress)
        except sqlite3.DatabaseError as why:
            if folder is not None and is_damage(why):
                discard(folder)
    with Index(None) as opened:
        return _survey(repo, opened, text, treeish, most, weights, progress)


def _survey(
    repo: Path,
    index: Index,
    text: str,
    treeish: str | None,
    most: int,
    weights: Weights,
    progress: Callable[[int, int], None] | None,
) -> Survey:
    question = parse(text)
    snap = snapshot(repo, treeish)
    read = index.refresh(snap, progress)
    commits = recent(repo, index, treeish or "HEAD")
    found = gather(question, snap, index, commits)
    ranked, looked = rerank(question, snap, found, weights)
    chosen = ranked[: _enough([one.candidate.kind for one in ranked], most)]
    hits = tuple(_hit(question, one, looked.get(one.candidate.path)) for one in chosen)
    return Survey(
        question,
        hits,
        tuple(touching(commits, [hit.path for hit in hits[:5]], 8)),
        tuple(commit for commit, likeness in found.similar[:5] if likeness >= _ALIKE),
        tuple(file.path for file in snap.files),
        read,
    )


def _enough(kinds: Sequence[Kind], most: int) -> int:
    """How many of the ranked places to name: *most*, and more while too few of them are program text."""
    count = min(most, len(kinds))
    # At most twice as many: a repository of documents alone must not be listed whole.
    while count < min(len(kinds), 2 * most) and kinds[:count].count(Kind.SOURCE) < _SOURCES:
        count += 1
    return count


_SOURCES: Final = 12
"""Files of program text that a survey names at least, if there are: tests and documents must not crowd them out."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A file that was read again: its lines and the best passage in it."""

    lines: Sequence[str]
    passage: Passage | None


def rerank(
    question: Question, snap: Snapshot, found: Gathered, weights: Weights
) -> tuple[list[Scored], dict[str, Looked]]:
    """Return *found* ranked, with the passages of the first sixty taken into account, and those files' lines."""
    factors = factors_for(question)
    first = rank(found.candidates, question.terms, found.corpus, weights, factors)
    if first and first[0].score <= 0:
        return [], {}
    top = [found.files[one.candidate.path] for one in first[:_LOOKED_INTO] if one.score > 0]
    looked = _look_into(snap, top, _worths(question, found))
    passages = {path: one.passage.score for path, one in looked.items() if one.passage}
    again = [replace(file, passage=passages.get(file.path, 0.0)) for file in found.candidates]
    # All of them again, not the sixty: scores are relative to the best, and both groups must be measured alike.
    ranked = rank(again, question.terms, found.corpus, weights, factors)
    return [one for one in ranked if one.score > 0], looked


def _worths(question: Question, found: Gathered) -> dict[str, float]:
    """Term to what finding it in a passage is worth: its weight times its rarity."""
    frequencies, documents = found.corpus.frequencies, found.corpus.documents
    return {term: weight * rarity(frequencies.get(term, 0), documents) for term, weight in question.terms.items()}


def _look_into(snap: Snapshot, files: Sequence[Tracked], worths: Mapping[str, float]) -> dict[str, Looked]:
    """Path to the lines and the best passage of those of *files* that hold text."""
    looked = {}
    for file, content in contents(snap, files):
        if content is not None and is_text(content):
            lines = decoded(content).split("\n")
            looked[file.path] = Looked(lines, best(lines, worths))
    return looked


def _hit(question: Question, one: Scored, looked: Looked | None) -> Hit:
    file = one.candidate
    lines = looked.lines if looked else ()
    passage = looked.passage if looked else None
    # Parsed only now, for the few files that are shown, so that names are qualified.
    defined = symbols("\n".join(lines), language(file.path)) if lines else []
    line = _line(question, file.path, lines, passage, defined)
    # Two lines of what comes before, and at the end of a file a full excerpt rather than a short one.
    start = max(1, min(line - 2, len(lines) - _EXCERPT + 1))
    return Hit(
        path=file.path,
        kind=file.kind,
        score=one.score,
        line=line,
        symbol=enclosing(defined, line),
        excerpt=tuple(lines[start - 1 : start - 1 + _EXCERPT]),
        start=start,
        matched=passage.matched if passage else (),
        symbols=_telling(question, defined),
        parts=one.parts,
        named=file.named,
    )


def _line(
    question: Question, path: str, lines: Sequence[str], passage: Passage | None, defined: Sequence[Symbol]
) -> int:
    """The line to show: that of a stack trace, else a definition that the question names, else the best passage's."""
    # A trace's path may be longer than ours (installed elsewhere) or shorter (relative to a folder).
    for written, line in question.lines.items():
        if ("/" + path).endswith("/" + written) or written.endswith("/" + path):
            return max(1, min(line, len(lines)))
    if passage is None:
        return 1
    return _definition(question, defined) or passage.line


def _definition(question: Question, defined: Sequence[Symbol]) -> int | None:
    """Line of the definition whose qualified name shares most components with the names of the question, if any."""
    wanted = frozenset(question.names)
    shared = [
        (len(wanted.intersection(symbol.name.split("."))), symbol) for symbol in defined if _last(symbol) in wanted
    ]
    return max(shared, key=lambda pair: (pair[0], -pair[1].line))[1].line if shared else None


def _last(symbol: Symbol) -> str:
    return symbol.name.rsplit(".", 1)[-1]


def _telling(question: Question, defined: Sequence[Symbol]) -> tuple[str, ...]:
    """Names of *defined* that hold words of the question, most words first, at most six."""
    from hollow.words import tokens

    scored = [(math.fsum(question.terms.get(token, 0.0) for token in set(tokens(_last(one)))), one) for one in defined]
    best_first = sorted((pair for pair in scored if pair[0] >= 0.5), key=lambda pair: (-pair[0], pair[1].line))  # noqa: PLR2004 - more than task words
    return tuple(dict.fromkeys(one.name for _, one in best_first))[:6]
