"""Past commits as evidence: those whose messages resemble a question, and the files they touched."""

from __future__ import annotations

from collections import Counter, defaultdict

from essentials.records import dataclass
from hollow.ranking import rarity
from hollow.words import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Final

    from hollow.history import Commit

_NEAREST: Final = 60
"""Past commits that are used as evidence; the next ones share only everyday words."""
_MESSAGE: Final = 2000
"""Characters of a message that are compared."""
_SATURATION: Final = 1.2
_SHORTNESS: Final = 0.75
"""BM25's k1 and b as the literature has them: messages are short prose, unlike files, whose values were tuned."""


def similar(commits: Sequence[Commit], terms: Mapping[str, float]) -> list[tuple[Commit, float]]:
    """Return the sixty *commits* whose messages match *terms* best, with their similarity (up to 1), best first."""
    bags = [_bag(commit, terms) for commit in commits if commit.paths]
    if not bags:
        return []
    frequency = Counter(term for bag in bags for term in bag.counts)
    mean = sum(bag.length for bag in bags) / len(bags)
    worth = {term: weight * rarity(frequency[term], len(bags)) for term, weight in terms.items()}
    scored = [(bag.commit, _likeness(bag, worth, mean)) for bag in bags if bag.counts]
    nearest = sorted(scored, key=lambda pair: (-pair[1], pair[0].oid))[:_NEAREST]
    # What a message of nothing but the terms would reach: makes the scores of different questions comparable.
    most = sum(worth.values()) * (_SATURATION + 1) or 1.0
    return [(commit, min(1.0, score / most)) for commit, score in nearest]


@dataclass(frozen=True, slots=True)
class _Bag:
    """A commit's message, counted."""

    commit: Commit
    length: int
    """In tokens."""
    counts: Counter[str]
    """Of the question's terms only."""


def _bag(commit: Commit, terms: Mapping[str, float]) -> _Bag:
    words = tokens(commit.message[:_MESSAGE])
    return _Bag(commit, len(words), Counter(word for word in words if word in terms))


def _likeness(bag: _Bag, worth: Mapping[str, float], mean: float) -> float:
    return sum(worth[term] * _saturated(times, bag.length / mean) for term, times in bag.counts.items())


def _saturated(times: int, length: float) -> float:
    """BM25's saturated term frequency in a message of relative *length*."""
    return times * (_SATURATION + 1) / (times + _SATURATION * (1 - _SHORTNESS + _SHORTNESS * length))


def evidence(nearest: Iterable[tuple[Commit, float]], today: Mapping[str, str]) -> dict[str, list[tuple[float, int]]]:
    """Return path to ``(similarity, files touched)`` of each similar commit; *today* maps old paths to today's."""
    found: dict[str, list[tuple[float, int]]] = defaultdict(list)
    # With how many files it touched, so that the ranking may hold a wide commit against each of them.
    for commit, similarity in nearest:
        for path in commit.paths:
            if path in today:
                found[today[path]].append((similarity, len(commit.paths)))
    return dict(found)


def ages(commits: Sequence[Commit], today: Mapping[str, str]) -> dict[str, list[int]]:
    """Return today's path to how many commits ago each of its changes was."""
    found: dict[str, list[int]] = defaultdict(list)
    for age, commit in enumerate(commits):
        for path in commit.paths:
            if path in today:
                found[today[path]].append(age)
    return dict(found)


def todays_paths(commits: Iterable[Commit], present: Collection[str]) -> dict[str, str]:
    """Return every path of *commits* that still means something, mapped to its place among *present*.

    A path that is gone maps to the one file of the same name that ends or begins alike (``flask/app.py`` is now
    ``src/flask/app.py``); where there are several such files it stays unmapped.
    """
    here = frozenset(present)
    past = {path for commit in commits for path in commit.paths}
    gone = past - here
    places = _by_name(here, {_name(path) for path in gone})
    # Two candidates are as good as none: history attached to the wrong file misleads more than none does.
    moved = {path: [new for new in places.get(_name(path), ()) if _moved(path, new)] for path in gone}
    return {**{path: path for path in past & here}, **{old: new[0] for old, new in moved.items() if len(new) == 1}}


def _by_name(paths: Iterable[str], names: Collection[str]) -> dict[str, list[str]]:
    """File name to those of *paths* that bear it, for *names* only: a large repository has many more paths."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths if names else ():
        if (name := _name(path)) in names:
            found[name].append(path)
    return found


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _moved(old: str, new: str) -> bool:
    return new.endswith("/" + old) or ("/" in new and old.endswith("/" + new))
