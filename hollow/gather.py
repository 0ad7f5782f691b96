"""Everything known of the files that may answer a question, as candidates for the ranking."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache

from essentials.records import dataclass
from hollow.kinds import Kind, kind
from hollow.ranking import KIND_FACTORS, Candidate, Corpus
from hollow.related import ages, evidence, similar, todays_paths
from hollow.words import identifiers, tokens_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from hollow.history import Commit
    from hollow.index import Document, Index
    from hollow.question import Question
    from hollow.tracked import Snapshot, Tracked

_MATCHES: Final = 3000
"""Files that SQLite ranks first by its own rough score."""
_CANDIDATES: Final = 400
"""Files that are then ranked precisely."""
# A file may answer by its path alone (an image, a template); a few dozen of those are enough.
_BY_PATH: Final = 60


@dataclass(frozen=True, slots=True)
class Gathered:
    """Candidates for a question and what the ranking needs to judge them."""

    candidates: tuple[Candidate, ...]
    corpus: Corpus
    files: Mapping[str, Tracked]
    """Path to the tracked file, for every candidate."""
    similar: tuple[tuple[Commit, float], ...] = ()
    """Past commits with similar messages, nearest first."""


@lru_cache(maxsize=1 << 17)
def path_tokens(path: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the tokens of the file's own name (without ending) and of its folders' names."""
    folder, _, name = path.rpartition("/")
    stem = name.rsplit(".", 1)[0] if "." in name[1:] else name
    # __init__.py, index.js and mod.rs are named by their folder.
    if stem in {"__init__", "index", "mod", "main", "lib"} and folder:
        folder, _, own = folder.rpartition("/")
        stem = f"{own} {stem}"
    return _tokens(stem), _tokens(folder)


def _tokens(text: str) -> frozenset[str]:
    return frozenset(token for word in identifiers(text) for token in tokens_of(word))


def gather(question: Question, snap: Snapshot, index: Index, commits: Sequence[Commit]) -> Gathered:
    """Return the candidates for *question* among the files of *snap*, which *index* holds; *commits* newest first."""
    factors = factors_for(question)
    by_path = {file.path: file for file in snap.files}
    today = todays_paths(commits, by_path.keys())
    nearest = similar(commits, question.terms)
    past, changes = evidence(nearest, today), ages(commits, today)
    named = named_paths(question, by_path)
    matching = _matching(question, snap, index, factors)
    # A dict, not a set: the order must not differ from process to process.
    chosen = dict.fromkeys([*named, *matching, *_by_path(question, by_path), *past])
    documents = index.documents({number for path in chosen if (number := index.id_of(by_path[path])) is not None})
    totals = index.totals()
    corpus = Corpus(max(1, totals.documents), totals.averages, index.frequencies(question.terms))
    built = []
    for path in chosen:
        document = documents.get(index.id_of(by_path[path]) or -1)
        built.append(_candidate(path, question, document, past.get(path, ()), changes.get(path, ()), path in named))
    return Gathered(tuple(built), corpus, {path: by_path[path] for path in chosen}, tuple(nearest))


def factors_for(question: Question) -> dict[Kind, float]:
    """Return what a file's sort does to its score: a sort that the question asks for is not held against a file."""
    asked = {
        Kind.TEST: ("tests?", "fixtures?", "conftest", "unittests?", "coverage"),
        Kind.DOC: ("docs?", "documentation", "readme", "changelog", "docstrings?", "tutorial"),
        Kind.EXAMPLE: ("examples?", "demos?", "samples?", "benchmarks?"),
        Kind.CONFIG: ("config files?", "workflows?", "ci", "packaging", "dependenc(?:y|ies)"),
        Kind.GENERATED: ("vendored?", "lock ?files?", "generated"),
    }
    return {
        sort: 0.8 if sort in asked and question.asks_for(*asked[sort]) else factor
        for sort, factor in KIND_FACTORS.items()
    }


def named_paths(question: Question, present: Mapping[str, Tracked]) -> list[str]:
    """Return the paths of *present* that *question* writes, wholly or by their last components."""
    if not question.paths:
        return []
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in present:
        by_name[path.rsplit("/", 1)[-1]].append(path)
    found = []
    for written in question.paths:
        ends = by_name.get(written.rsplit("/", 1)[-1], ())
        found += [path for path in ends if ("/" + path).endswith("/" + written) or written.endswith("/" + path)]
    return sorted(dict.fromkeys(found))


def _matching(question: Question, snap: Snapshot, index: Index, factors: Mapping[Kind, float]) -> list[str]:
    """The best files by SQLite's rough score times what their sort is worth, so that tests do not crowd out sources."""
    paths: dict[int, list[str]] = defaultdict(list)
    # One content may stand at several paths; each is a candidate of its own.
    for file in snap.files:
        if (number := index.id_of(file)) is not None:
            paths[number].append(file.path)
    rough = [
        (score * factors.get(kind(path), 1.0), path)
        for number, score in index.search(question.terms, _MATCHES).items()
        for path in paths.get(number, ())
    ]
    return [path for _, path in sorted(rough, key=lambda pair: (-pair[0], pair[1]))[:_CANDIDATES]]


def _by_path(question: Question, present: Mapping[str, Tracked]) -> list[str]:
    """The files whose path alone speaks for them."""
    scored = []
    # Splitting every path of a large repository takes a second; a term's first letters stand in the path as they are.
    likely = re.compile("|".join(re.escape(term[:3]) for term in question.terms) or r"\Z.")
    for path in present:
        if not likely.search(path.lower()):
            continue
        name, folders = path_tokens(path)
        score = sum(weight for term, weight in question.terms.items() if term in name)
        # A folder's name is shared by many files and tells them apart less than their own names do.
        score += sum(0.3 * weight for term, weight in question.terms.items() if term in folders)
        if score:
            scored.append((score, path))
    return [path for _, path in sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:_BY_PATH]]


def _candidate(
    path: str,
    question: Question,
    document: Document | None,
    past: Sequence[tuple[float, int]],
    changes: Sequence[int],
    named: bool,
) -> Candidate:
    name, folders = path_tokens(path)
    terms = frozenset(question.terms)
    counts = {}
    defined = 0
    if document is not None:
        in_symbols, in_docs, in_body = document.counts
        counts = {term: (in_symbols[term], in_docs[term], in_body[term]) for term in terms if in_body[term]}
        # The last token of a compound is the whole name; its parts alone define nothing that was asked for.
        wholes = {tokens[-1] for written in question.names if (tokens := tokens_of(written))}
        defined = sum(1 for whole in wholes if in_symbols[whole])
    return Candidate(
        path=path,
        kind=kind(path),
        lengths=document.lengths if document else (0, 0, 0),
        counts=counts,
        name=name & terms,
        folders=folders & terms,
        past=past,
        ages=changes,
        named=named,
        defines=defined,
    )
