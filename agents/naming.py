"""Names of runs: slug, short id, run name, and which run the operator means."""

from __future__ import annotations

import re
import reprlib
import unicodedata

from agents.errors import HostError, OperatorError
from agents.times import epoch, iso
from essentials.patterns import late
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Final

LATEST: Final = "latest"
"""The target that means the run claimed last (seed 003, section 1)."""

SLUG_LIMIT: Final = 40
"""Longest slug in characters: a run name must stay far below the 255 bytes of a file name."""

SHOWN_CANDIDATES: Final = 5
"""How many runs an ambiguous target lists; more would not be read."""

# Only the first part of a task can reach a slug; a task of a megabyte must not cost a megabyte of normalisation.
_SLUG_SOURCE: Final = 4000
# Letters that NFKD leaves alone although every reader of Latin script knows their plain spelling.
_PLAIN_LETTERS: Final = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "'": "", "’": ""}
)
_CENTURY: Final = 2000
# The longest name that parses: ten characters of date, five of time, 40 of slug, 64 of short id, and what joins them.
_TARGET: Final = late(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
# ASCII classes, not \d or \w: those accept the digits and letters of every script.
_SHORT_ID: Final = late(r"[0-9a-f]{4,64}")
_SLUG: Final = late(r"(?=.{1,40}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_NAME: Final = late(
    r"(?P<year>[0-9]{2}|[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})_(?P<hour>[0-9]{2})(?P<minute>[0-9]{2})"
    r"__(?P<slug>[a-z0-9-]{1,40})__(?P<short_id>[0-9a-f]{4,64})"
)
_TOKEN: Final = late(r"[0-9a-f]{32,64}")
_LIST: Final = "See the runs: ./agent list"


@dataclass(frozen=True, slots=True)
class RunName:
    """A run name taken apart (seed 003, section 1; D12)."""

    name: str
    """The whole name, as the folder is called."""
    started: float
    """Start in seconds since the epoch, to the minute."""
    slug: str
    """The task in at most 40 characters of ``a-z0-9-``."""
    short_id: str
    """Lower-case hex, 4 characters or more."""


def slugify(task: str, limit: int = SLUG_LIMIT) -> str:
    """Shorten *task* to a file-name-safe slug of 1 to *limit* characters out of ``a-z``, ``0-9`` and single dashes.

    Accents are dropped (NFKD), everything else becomes a dash, and a cut falls between words where that keeps at least
    half of the room. ``task`` when nothing is left, so that symbols alone still name a run (T117).
    """
    decomposed = unicodedata.normalize("NFKD", task[:_SLUG_SOURCE]).casefold().translate(_PLAIN_LETTERS)
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    words = re.sub(r"[^a-z0-9]+", "-", letters).strip("-")
    return _cut(words or "task", limit)


def _cut(words: str, limit: int) -> str:
    """Cut the dashed *words* to *limit* characters."""
    if len(words) <= limit:
        return words
    # One character more shows whether the cut falls on a word's end.
    whole_words = words[: limit + 1].rpartition("-")[0]
    return whole_words if len(whole_words) * 2 >= limit else words[:limit].rstrip("-")


def run_name(started: float, slug: str, short_id: str) -> str:
    """Name a run ``YY-MM-DD_HHmm__<slug>__<short id>`` in UTC, so that names sort as start times (T117, T118, D12).

    *started* is in seconds since the epoch. Raises ValueError for parts that would not parse back, HostError when the
    year does not fit two digits: the clock of such a machine is wrong.
    """
    if not _SLUG.fullmatch(slug) or not _SHORT_ID.fullmatch(short_id):
        raise ValueError(f"{slug!r} and {short_id!r} do not make a run name.")
    at = iso(started)
    year = int(at.partition("-")[0])
    if not _CENTURY <= year < _CENTURY + 100:
        raise HostError(f"The clock of this machine says the year is {year}.", "Set the clock, then try again.")
    return f"{at[2:10]}_{at[11:13]}{at[14:16]}__{slug}__{short_id}"


def parse(name: str) -> RunName | None:
    """Take a run *name* apart; None when it is not exactly one.

    Years of two and of four digits are read (the seed shows both, D12). Path separators, dots, other scripts' digits, a
    date that does not exist or a newline at the end make it another string, not a run name.
    """
    found = _NAME.fullmatch(name)
    if found is None or not _SLUG.fullmatch(found["slug"]):
        return None
    year = int(found["year"]) + (_CENTURY if len(found["year"]) == len("YY") else 0)
    started = epoch(f"{year:04d}-{found['month']}-{found['day']}T{found['hour']}:{found['minute']}:00.000Z")
    if started is None:
        return None
    return RunName(name, started, found["slug"], found["short_id"])


def short_ids(token: str) -> Iterator[str]:
    """Yield the short ids that a run may try to claim, in order, none twice.

    *token* is 32 to 64 random lower-case hex characters. First two of 4 characters, then longer and longer ones up to
    the whole token: short while runs are few, sure to be free in the end (T119). Raises ValueError for another token.
    """
    if not _TOKEN.fullmatch(token):
        raise ValueError("A token is 32 to 64 lower-case hex characters.")
    # Disjoint pieces while they last: a longer id must not start like the short one that was just found taken.
    pieces = (token[0:4], token[4:8], token[8:13], token[13:19], token[19:27], token[:12], token[:16], token)
    yield from dict.fromkeys(pieces)


def resolve(target: str, names: Iterable[str], pointers: Mapping[str, str]) -> str:
    """Return the run name that the operator means by *target* (T146).

    *names* are the names in ``runs/`` (strangers among them are ignored), *pointers* maps ``latest``, ``last-fail``,
    ``last-review`` … to run names. A pointer beats everything, then a full name, then an exact short id, then a prefix
    of a name or short id that fits one run only. Without a pointer ``latest`` is the newest name. Raises OperatorError,
    the only error whatever is typed, when nothing or more than one run fits.
    """
    if not _TARGET.fullmatch(target):
        raise OperatorError(f"{reprlib.repr(target)} cannot be the name of a run.", _LIST)
    known = frozenset(names)
    if target in pointers:
        return _pointed(target, pointers[target], known)
    if target == LATEST:
        return _newest(known)
    if target in known and parse(target):
        return target
    return _only(target, _fitting(target, known))


def _pointed(pointer: str, name: str, known: Collection[str]) -> str:
    """Return *name*, to which *pointer* points, if there still is such a run."""
    if name not in known or parse(name) is None:
        raise OperatorError(f"`{pointer}` points to a run that is gone.", _LIST)
    return name


def _newest(known: Iterable[str]) -> str:
    """Return the name with the latest start."""
    runs = [run for run in map(parse, known) if run]
    if not runs:
        raise OperatorError("There is no run yet.", 'Start one: ./agent scout "where is the entry point?"')
    return max(runs, key=lambda run: (run.started, run.name)).name


def _fitting(target: str, known: Iterable[str]) -> list[str]:
    """Return the run names with the short id *target*, or else those of which it is a prefix, sorted."""
    # Plain string work first: a history of 100,000 names is parsed only where something fits.
    fits = [name for name in known if name.startswith(target) or _id_of(name).startswith(target)]
    # A whole id is meant even when a longer one begins alike (short_ids makes longer ones on collision).
    exact = [name for name in fits if _id_of(name) == target]
    return sorted(name for name in exact or fits if parse(name))


def _id_of(name: str) -> str:
    return name.rpartition("__")[2]


def _only(target: str, fitting: list[str]) -> str:
    """Return the only one of *fitting*."""
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise OperatorError(f"There is no run {reprlib.repr(target)}.", _LIST)
    shown = ", ".join(fitting[:SHOWN_CANDIDATES]) + (", …" if len(fitting) > SHOWN_CANDIDATES else "")
    raise OperatorError(f"{reprlib.repr(target)} fits {len(fitting)} runs: {shown}.", "Type more of the name.")
