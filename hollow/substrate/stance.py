"""Whether a goal goes against what its agent holds: by what an opinion rejects, never by a word in common (W30, S5)."""

from __future__ import annotations

import re

from essentials.patterns import late
from hollow.substrate.similarity import positive, significant
from hollow.words import stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from hollow.substrate.model import Opinion, Profile


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


_DOING: Final = _stems(
    "add adopt apply build call create craft deploy design develop double embrace enable expand extend grow"
    " implement increase install introduce invoke keep make produce propose publish request start submit synthesize"
    " use wrap write"
)
"""Verbs whose object the goal wants to be there."""
_UNDOING: Final = _stems(
    "abandon avoid ban cease clear cut deactivate delete discard disable drop eliminate erase forget ignore neglect"
    " omit oppose prevent purge reduce refuse reject remove retire shrink skip stop suppress undo"
)
"""Verbs whose object the goal wants to be gone."""
_REJECTING: Final = late(
    r"\b(?:harmful|useless|wasteful|waste of|dangerous|bad|wrong|worthless|pointless|toxic|noise|overrated|clutter"
    r"|a mistake|unsafe|evil|unacceptable|counterproductive|distract\w*|should be (?:avoided|removed|retired|dropped)"
    r"|must go|do more harm)\b",
    re.IGNORECASE,
)
_DENYING: Final = late(
    r"\b(?:(?:should|must|will|shall|may|can|do|does) ?(?:not|never)|(?:should|must|do|does|ca|wo)n[’']t|cannot|never"
    r"|no|not|avoid\w*|refus\w+|reject\w*|against|stop(?:s|ped)?|without)\b",
    re.IGNORECASE,
)
_ENDS: Final = late(
    r"[,;:.!?()]|\b(?:from|in|into|of|for|to|on|at|by|about|as|that|which|because|so|and|then|before|after|around"
    r"|with)\b"
)
_WORDS: Final = late(r"[a-z][a-z0-9_'-]*")
_HALF: Final = 0.5
_FEW: Final = 2
"""Words of a subject that must all be named."""


_VERDICT: Final = late(r"\b(?:is|are|was|were|should|must|shall|will|may|can|do|does|deserves?|needs?|matters?)\b")
_EXCEPTION: Final = late(r"\b(?:unless|without|except|if|when|as long as)\b")
_IRREGULAR: Final = {"built": "build", "written": "write", "made": "make", "kept": "keep", "thrown": "throw"}
_SHARED: Final = 5
"""Letters that two stems of one word share at least: synthesis and synthesize."""


def conflict(profile: Profile, objective: str) -> Opinion | None:
    """Return the newest opinion of *profile* that *objective* goes against, or None (S5, W30; T49).

    The objective must act upon the opinion's domain, or upon what its sentence is about. An opinion that forbids an act
    ("never deploy stubs") is contradicted by doing that very thing, one that condemns its subject ("wrappers are
    harmful") by making or using it, one that stands for it ("every module deserves tests") by removing it. Looking at
    a thing, or writing about it, contradicts nothing.
    """
    plain = _plain(objective)
    return next((each for each in reversed(profile.opinions) if _against(each, plain)), None)


def _plain(text: str) -> str:
    words = re.split(r"(\W+)", text.casefold())
    return "".join(_IRREGULAR.get(word, word) for word in words)


def _against(opinion: Opinion, objective: str) -> bool:
    held = _plain(opinion.opinion)
    subjects = significant(_plain(opinion.domain)), significant(_VERDICT.split(held, maxsplit=1)[0])
    if _excepted(held, objective):
        return False
    return any(_contradicts(held, objective, each) for each in subjects if _about(each, objective))


def _contradicts(held: str, objective: str, subject: frozenset[str]) -> bool:
    """Whether *objective*, which is about *subject*, does what *held* rejects."""
    forbidden = _forbidden(held, subject)
    if forbidden and not forbidden & _UNDOING:
        return _does(objective, forbidden, subject)
    # To forbid that something is removed is to stand for it.
    verbs = _DOING if _condemned(held) and not forbidden else _UNDOING
    return _acts(objective, verbs, subject)


def _condemned(held: str) -> bool:
    """Whether *held* is against its subject; "not harmful at all" is not."""
    rejecting = _REJECTING.search(held) is not None
    return rejecting == positive(_REJECTING.sub(" ", held))


def _excepted(held: str, objective: str) -> bool:
    """Whether *objective* is about what the opinion excepts: "no tools without a test", and a goal with a test."""
    _, *exceptions = _EXCEPTION.split(held)
    return bool(_met(significant(" ".join(exceptions)), significant(objective)))


def _met(wanted: frozenset[str], there: frozenset[str]) -> frozenset[str]:
    """Those of *wanted* that are *there*, in whatever form of the word."""
    return frozenset(word for word in wanted if any(_akin(word, other) for other in there))


def _akin(one: str, other: str) -> bool:
    shorter = min(len(one), len(other))
    alike = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), shorter)
    return one == other or alike >= max(_SHARED, shorter - 2)


def _about(subject: frozenset[str], text: str) -> bool:
    """Whether *text* speaks of *subject*: of both words of two, of half of more."""
    shared = len(_met(subject, significant(text)))

    return bool(subject) and shared >= (len(subject) if len(subject) <= _FEW else len(subject) * _HALF)


def _forbidden(held: str, subject: frozenset[str]) -> frozenset[str]:
    """What *held* says must not be done, without the words of its *subject*; nothing where it forbids no act."""
    found = _DENYING.search(held)
    if found is None or _REJECTING.search(held):
        return frozenset()
    clause = re.split(r"[,;:.!?]|\bbecause\b", _EXCEPTION.split(held[found.end() :])[0])[0]
    return significant(clause) - _met(significant(clause), subject)


def _does(objective: str, forbidden: frozenset[str], subject: frozenset[str]) -> bool:
    """Whether *objective* wants at least half of what is *forbidden*, and wants it to be so."""
    met = _met(forbidden, significant(objective))
    wants = positive(objective) and not _acts(objective, _UNDOING, subject)
    return wants and bool(met) and len(met) >= len(forbidden) * _HALF


def _acts(objective: str, verbs: frozenset[str], subject: frozenset[str]) -> bool:
    """Whether one of *verbs* stands in *objective*, undenied, and acts upon *subject*."""
    for found in _WORDS.finditer(objective):
        if stem(found[0]) not in verbs:
            continue
        # With the verb itself: "synthesize a tool" is about synthesis.
        acted_upon = _ENDS.split(objective[found.start() : found.end() + 120], maxsplit=1)[0]
        if _about(subject, acted_upon) and positive(objective[max(0, found.start() - 30) : found.start()]):
            return True
    return False
