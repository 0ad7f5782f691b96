"""research_topic: a search of the documentation that the operator has configured, in the repository and on the web."""

from __future__ import annotations

import re
import time

from hollow.confine import Refusal
from hollow.hands.call import Failed, done
from hollow.substrate.model import Trouble
from hollow.toolbox.searching import grep
from hollow.words import is_task_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Final

    from hollow.hands.call import Call
    from hollow.substrate.model import Result

MOST_FOUND: Final = 12
"""Passages that are given back."""
_MOST_WORDS: Final = 8
_PASSAGE: Final = 400
"""Characters of a passage."""
_MOST_HITS: Final = 200


def research_topic(reach: Call, topic: str) -> Result:
    """Search the configured documentation for a topic; gives the passages that fit best, each with its place.

    topic: a few words
    """
    sources = reach.settings.research
    if not sources:
        raise Failed(Trouble.HOST, "research_topic is off: the operator has configured no sources.")
    words = _words(topic)
    if not words:
        raise Failed(Trouble.USAGE, "The topic has no word that could be searched for.")
    passages, problems = _gathered(reach, sources, words)
    ranked = sorted(passages, key=lambda each: -_fit(each[1], words))[:MOST_FOUND]
    if not ranked and len(problems) == len(sources):
        raise Failed(Trouble.HOST, f"No source could be read: {'; '.join(problems)[:600]}")
    found = [{"source": place, "text": text[:_PASSAGE]} for place, text in ranked]
    return done({"topic": topic[:200], "found": found, **({"problems": problems} if problems else {})})


def _gathered(reach: Call, sources: Sequence[str], words: tuple[str, ...]) -> tuple[list[tuple[str, str]], list[str]]:
    """Place and text of what fits in *sources*, and why some of them could not be read."""
    passages: list[tuple[str, str]] = []
    problems: list[str] = []
    until = time.monotonic() + reach.seconds
    for source in sources:
        try:
            passages += _looked_into(reach, source, words, until - time.monotonic())
        except Refusal as why:
            problems.append(str(why))
    return passages, problems


def _words(topic: str) -> tuple[str, ...]:
    distinct = dict.fromkeys(word.casefold() for word in re.findall(r"\w{3,40}", topic[:1000]))
    telling = [word for word in distinct if not is_task_word(word)] or list(distinct)
    return tuple(telling[:_MOST_WORDS])


def _looked_into(reach: Call, source: str, words: tuple[str, ...], seconds: float) -> Iterator[tuple[str, str]]:
    if seconds <= 0:
        raise Refusal(f"{source} was left out: the time was up.")
    if "://" in source:
        # Here: its HTTP library and parser are a quarter of the start of every cycle.
        from hollow.hands.fetching import SECONDS, fetched

        yield from _of_page(source, fetched(source, reach.settings.research, min(SECONDS, seconds)), words)
        return
    pattern = "|".join(map(re.escape, words))
    for line in grep(reach.place, pattern, source, None, ignore_case=True, max_results=_MOST_HITS).splitlines():
        # Path, line and words; a note of the search itself begins with a bracket.
        hit = re.fullmatch(r"([^\[:][^:]*:\d+):(.*)", line)
        if hit:
            yield hit[1], hit[2].strip()


def _of_page(address: str, text: str, words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        at = min((at for word in words if (at := line.casefold().find(word)) >= 0), default=-1)
        if at >= 0:
            start = max(0, at - _PASSAGE // 3)
            yield f"{address}#{number}", line[start : start + _PASSAGE].strip()


def _fit(text: str, words: tuple[str, ...]) -> float:
    """How many of *words* stand in *text*; of two with as many the shorter one is closer to the point."""
    said = text.casefold()
    return sum(word in said for word in words) - min(len(text), _PASSAGE) / (_PASSAGE * 4)
