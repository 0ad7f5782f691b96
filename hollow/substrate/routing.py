"""Which capability fits what is wanted: over loaded implementations only, built-ins before their imitations."""

from __future__ import annotations

import math

from essentials.records import dataclass
from hollow.substrate import lexical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Final, Protocol

    Embed = Callable[[Sequence[str]], list[list[float]] | None]
    """One vector for each text, or None where there is no such model now (:meth:`hollow.mind.Thinker.embed`)."""
else:
    Protocol = object  # its meaning is a type checker's

QUERY: Final = "search_query: "
DOCUMENT: Final = "search_document: "
"""Prefixes that the nomic models were trained with; without them a question and its answer lie apart."""
MARGIN: Final = 0.05
"""By how much a tool must beat a built-in to stand before it: within it they tie, and the built-in wins (W3)."""
LIMIT: Final = 25
"""Capabilities that a plan is offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A capability that is loaded and can be called."""

    name: str
    description: str
    builtin: bool = False
    stub: bool = False
    """Came without code; it is offered after everything else (C9)."""
    broken: bool = False
    """Known to fail; it is not offered (C24)."""
    output: bool = False
    """Leaves something that a goal can be completed with; a built-in that does is always offered (W3)."""


class Cache(Protocol):
    """Where vectors are kept between questions."""

    def get(self, name: str, text: str) -> list[float] | None:
        """Return the vector of *text* kept for *name*, None if that was another text or there is none."""

    def put(self, vectors: Mapping[str, tuple[str, list[float]]]) -> None:
        """Keep the text and vector of each name."""


def route(
    query: str,
    candidates: Sequence[Described],
    *,
    embed: Embed | None = None,
    cache: Cache | None = None,
    limit: int = LIMIT,
) -> list[tuple[str, float]]:
    """Return at most *limit* names with their scores (0.0 to 1.0), best first (T109, T116).

    *candidates* are what is loaded: a spec without code is none of them, so it cannot be routed to. Scores are cosines
    where *embed* has a vector for the question and for every candidate, and lexical otherwise: the two scales never
    mix, and a vector that is missing costs no capability its place (W23). Vectors are asked for once per text.
    """
    able = [each for each in candidates if not each.broken]
    found = _cosines(query, able, embed, cache) if embed and able else None
    given = found if found is not None else lexical.scores(query, [_text(each) for each in able])
    ranked = sorted(zip(able, given, strict=True), key=lambda pair: _order(*pair))
    return [(each.name, score) for each, score in _shortened(ranked, limit)]


def _order(each: Described, score: float) -> tuple[bool, float, bool, str]:
    handicap = 0.0 if each.builtin else MARGIN
    # The name last: the same question must give the same order in every process.
    return each.stub, handicap - score, not each.builtin, each.name


def _shortened(ranked: list[tuple[Described, float]], limit: int) -> list[tuple[Described, float]]:
    """The best, but never without the built-ins that write: a plan must be able to leave something."""
    kept = {id(each) for each, _ in ranked if each.builtin and each.output}
    room = max(0, limit - len(kept))
    others = [id(each) for each, _ in ranked if id(each) not in kept][:room]
    return [pair for pair in ranked if id(pair[0]) in kept.union(others)]


def _text(each: Described) -> str:
    return f"{each.name}: {each.description}"


def _cosines(query: str, able: list[Described], embed: Embed, cache: Cache | None) -> list[float] | None:
    """The cosines of all, or None where one vector is not to be had."""
    texts = {each.name: DOCUMENT + _text(each) for each in able}
    known = _kept(texts, cache)
    # One request for all: the question and whatever has changed since the last one.
    missing = [name for name in texts if name not in known]
    given = _embedded([QUERY + query, *(texts[name] for name in missing)], embed)
    asked = given[0]
    if not usable(asked):
        return None
    # Vectors of another length are those of another model, which was there before this one.
    stale = [name for name, vector in known.items() if len(vector) != len(asked)]
    again = _embedded([texts[name] for name in stale], embed)
    found = [*zip(missing, given[1:], strict=True), *zip(stale, again, strict=True)]
    fresh = {name: vector for name, vector in found if comparable(asked, vector)}
    _keep(fresh, texts, cache)
    if len(fresh) < len(found):
        return None
    return [max(0.0, cosine(asked, {**known, **fresh}[each.name])) for each in able]


def _kept(texts: Mapping[str, str], cache: Cache | None) -> dict[str, list[float]]:
    """The vectors that *cache* has for *texts*, by name."""
    if cache is None:
        return {}
    return {name: vector for name, text in texts.items() if (vector := cache.get(name, text))}


def _keep(fresh: Mapping[str, list[float]], texts: Mapping[str, str], cache: Cache | None) -> None:
    if cache is not None and fresh:
        cache.put({name: (texts[name], vector) for name, vector in fresh.items()})


def _embedded(texts: list[str], embed: Embed) -> list[list[float]]:
    """One vector for each of *texts*; empty ones where the model is away or miscounts."""
    given = embed(texts) if texts else []
    return given if given is not None and len(given) == len(texts) else [[] for _ in texts]


def usable(vector: object) -> bool:
    """Whether *vector* is a list of finite numbers that are not all zero; others poison every comparison (W23)."""
    return (
        isinstance(vector, list)
        and all(isinstance(each, (int, float)) and math.isfinite(each) for each in vector)
        and any(vector)
    )


def comparable(one: list[float], other: list[float]) -> bool:
    """Whether two vectors have a cosine: both are usable and of one length, as those of one model are."""
    return usable(one) and usable(other) and len(one) == len(other)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two usable vectors of one length."""
    # hypot scales: squares of large components would overflow.
    norm = math.hypot(*one) * math.hypot(*other)
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / norm if norm else 0.0


def likeness(embed: Embed | None, known: Collection[str] = ()) -> Callable[[str, str], float]:
    """Return how alike two descriptions are, from 0 to 1: by their words, and by their meaning where *embed* can.

    The vectors of *known* texts, such as the built-ins' descriptions, are asked for with the first one, in one request.
    """
    kept: dict[str, list[float]] = {}

    def vector(text: str) -> list[float]:
        """The vector of *text*, kept for the next question; empty where there is none."""
        if embed and text not in kept:
            new = list(dict.fromkeys([text, *(each for each in known if each not in kept)]))
            kept.update(zip(new, _embedded([DOCUMENT + each for each in new], embed), strict=True))
        return kept.get(text, [])

    def alike(one: str, other: str) -> float:
        """How alike they are by whichever of words and meaning says more."""
        by_words = lexical.likeness(one, other)
        a, b = vector(one), vector(other)
        return max(by_words, cosine(a, b)) if comparable(a, b) else by_words

    return alike
