"""Words of text and code: identifiers split, lightly stemmed, stop words dropped."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

# Underscores stay in a word, so that an identifier is one word and is split in one place.
_WORD: Final = late(r"\w+")
# The order decides: HTTPResponse is HTTP and Response because an upper-case run leaves its last letter to the next.
_PART: Final = late(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_VOWEL: Final = late(r"[aeiouy]")
_LONGEST_WORD: Final = 80
"""Characters. What is longer is a hash or encoded data, never something that a person asks for."""

STOP_WORDS: Final = frozenset(
    """a about after all also an and any are as at be because been before being but by can could did do does doing
    done down each for from had has have having he her here his how i if in into is it its just let like me more
    most my no nor not now of off on once only or other our out over own same she should so some such than that
    the their them then there these they this those through to too under until up very was we were what when
    where which while who whom why will with would you your ve ll re isn doesn didn don won aren wasn self
    cls""".split()  # noqa: SIM905 - a list of a hundred strings is unreadable
)
"""Words that say nothing about where something is."""

TASK_WORDS: Final = frozenset(
    """add added adding allow allowed allows avoid avoids bug bugfix bugs change changed changes check correct
    correctly ensure ensures error errors example fail failed failing fails find fix fixed fixes fixing fixup
    handle handled handles handling implement implemented improve improved incorrect incorrectly instead
    introduce issue issues keep look make makes making merge minor missing need needed needs new problem proper
    properly refactor regression release remove removed removes removing rename replace resolve return returned
    returning returns set simplify skip support supports test tests tweak unable unexpected update updated
    updates use used uses using want work working works wrong code file files case cases""".split()  # noqa: SIM905 - a list of a hundred strings is unreadable
)
"""Words of a request or commit subject that tell what is wanted, rarely where: they count for less."""


def _undouble(word: str) -> str:
    """*word* without a doubled last consonant: ``stopp`` is ``stop``, but ``call`` and ``pass`` stay."""
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouslz"  # noqa: PLR2004 - a letter count
    return word[:-1] if doubled else word


# The first that fits is taken, so longer ones stand first; the number is how many letters must be left, or "sing" would
# be "s".
_ENDINGS: Final = (
    ("ations", "at", 3),
    ("ation", "at", 3),
    ("ating", "at", 3),
    ("ings", "", 3),
    ("ing", "", 3),
    ("ied", "y", 2),
    # Kept as it is, before "ed" could make "exce" of "exceed".
    ("eed", "eed", 1),
    ("ed", "", 3),
    ("ably", "abl", 2),
    ("ibly", "ibl", 2),
    ("ly", "", 4),
)


def _singular(word: str) -> str:
    """*word* without a plural ending."""
    if word.endswith("ies") and len(word) > 4:  # noqa: PLR2004 - "dies" is no plural of "dy"
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the lower-case *word* without the usual endings of English.

    Light on purpose: ``encode``, ``encoded``, ``encodes`` and ``encoding`` meet, ``header`` and ``head`` do not.
    """
    if len(word) < 4 or not word.isascii() or word.isdigit():  # noqa: PLR2004 - three letters carry no ending
        return word
    word = _singular(word)
    for ending, rest, keep in _ENDINGS:
        body = word[: len(word) - len(ending)]
        if word.endswith(ending) and len(body) >= keep and _VOWEL.search(body):
            word = _undouble(body) + rest
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word  # noqa: PLR2004 - as above


def parts(identifier: str) -> list[str]:
    """Return the lower-case parts of *identifier*: ``getHTTPResponse2`` gives get, http, response, 2."""
    return [part.lower() for part in _PART.findall(identifier)]


@lru_cache(maxsize=1 << 17)
def tokens_of(identifier: str) -> tuple[str, ...]:
    """Return the tokens that one *identifier* or word is indexed by.

    Its stemmed parts, and, where there are several, the whole without separators, so that ``readLine``, ``read_line``
    and ``READ_LINE`` meet and an exact name is rarer, hence heavier, than its parts.
    """
    if len(identifier) > _LONGEST_WORD:
        return ()
    pieces = parts(identifier)
    # Stop words go as parts only: is_not and on_call are names, and the whole is kept below.
    found = [stem(p) for p in pieces if len(p) > 1 and p not in STOP_WORDS]
    if len(pieces) > 1:
        found.append("".join(pieces))
    return tuple(found)


def identifiers(text: str) -> list[str]:
    """Return the identifiers, words and numbers of *text* in order, unsplit."""
    return _WORD.findall(text)


def tokens(text: str) -> list[str]:
    """Return the tokens of *text* in order."""
    return [token for word in _WORD.findall(text) for token in tokens_of(word)]


def counts(words: Iterable[str]) -> Counter[str]:
    """Return how often each token occurs in *words* (unsplit).

    Each distinct word is split once, which makes indexing several times faster than going through :func:`tokens`.
    """
    total: Counter[str] = Counter()
    for word, times in Counter(words).items():
        for token in tokens_of(word):
            total[token] += times
    return total


def is_compound(identifier: str) -> bool:
    """Whether *identifier* is written as code is: camelCase, snake_case, or with digits inside."""
    return len(_PART.findall(identifier)) > 1


def is_task_word(word: str) -> bool:
    """Whether *word* tells what is wanted rather than where."""
    return word.lower() in TASK_WORDS
