"""Past commits as evidence: those whose messages resemble a question, and the files they touched."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from hollow.ranking import rarity
from hollow.words import tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from hollow.history import Commit

_NEAREST: Final = 60
"""Past commits that are used as evidence; the next ones share only everyday words."""
_MESSAGE: Final = 2000
"""Characters of a message that are compared."""
_SATURATION: Final = 1.2
_SHORTNESS: Final = 0.75


def similar(commits: Sequence[Commit], terms: Mapping[str, float]) -> list[tuple[Commit, float]]:
    """Return the sixty *commits* whose messages match *terms* best, with their similarity (up to 1), best first."""
    told = [(commit, tokens(commit.message[:_MESSAGE])) for commit in commits if commit.paths]
    bags = [(commit, len(words), Counter(word for word in words if word in terms)) for commit, words in told]
    frequency = Counter(term for _, _, bag in bags for term in bag)
    mean = sum(length for _, length, _ in bags) / len(bags) if bags else 1.0
    worth = {term: weight * rarity(frequency[term], len(bags)) for term, weight in terms.items()}
    scored = [
        (commit, sum(worth[term] * _saturated(times, length / mean) for term, times in bag.items()))
        for commit, length, bag in bags
        if bag
    ]
    nearest = sorted(scored, key=lambda pair: (-pair[1], pair[0].oid))[:_NEAREST]
    most = sum(worth.values()) * (_SATURATION + 1) or 1.0
    return [(commit, min(1.0, score / most)) for commit, score in nearest]


def _saturated(times: int, length: float) -> float:
    """BM25's saturated term frequency in a message of relative *length*."""
    return times * (_SATURATION + 1) / (times + _SATURATION * (1 - _SHORTNESS + _SHORTNESS * length))


def evidence(nearest: Iterable[tuple[Commit, float]], today: Mapping[str, str]) -> dict[str, list[tuple[float, int]]]:
    """Return path to ``(similarity, files touched)`` of each similar commit; *today* maps old paths to today's."""
    found: dict[str, list[tuple[float, int]]] = defaultdict(list)
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
    mapped = {path: path for path in past & here}
    gone = {path.rsplit("/", 1)[-1] for path in past - here}
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in here if gone else ():
        if (name := path.rsplit("/", 1)[-1]) in gone:
            by_name[name].append(path)
    for path in past - here:
        moved = [new for new in by_name.get(path.rsplit("/", 1)[-1], ()) if _moved(path, new)]
        if len(moved) == 1:
            mapped[path] = moved[0]
    return mapped


def _moved(old: str, new: str) -> bool:
    return new.endswith("/" + old) or ("/" in new and old.endswith("/" + new))
