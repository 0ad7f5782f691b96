"""Who an agent becomes: what it holds of the world, bounded, and changed by its existence answers alone."""

from __future__ import annotations

from essentials import records
from hollow.substrate.existence import line
from hollow.substrate.model import Kind, Opinion, Profile
from hollow.substrate.similarity import tokens
from hollow.substrate.stance import conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

    from hollow.substrate.existence import Existence

    Change = tuple[Kind, dict[str, Any]]
    """Something that happened to the profile, as a happening without its time."""

__all__ = ["apply", "born", "bounded", "conflict", "lines", "story"]


SHORTEST_WORLDVIEW: Final = 20
"""Characters that a worldview has to be longer than; less is no view (contract 3.2)."""
LONGEST_WORLDVIEW: Final = 600
NEW_QUESTIONS: Final = 3
MOST_QUESTIONS: Final = 12
LONGEST_QUESTION: Final = 200
NEW_OPINIONS: Final = 2
MOST_OPINIONS: Final = 20
LONGEST_OPINION: Final = 300
LONGEST_DOMAIN: Final = 80
LONGEST_NARRATIVE: Final = 800
"""Characters of the narrative; its end is kept (facts: what an agent was last matters most)."""
MOST_TRAITS: Final = 8
LONGEST_TRAIT: Final = 60
_SENTENCE: Final = 200
"""Characters of one turn of the narrative."""

TRAITS: Final[Mapping[str, tuple[str, ...]]] = {
    "cedar": ("curious", "quick to look", "slow to conclude"),
    "cipher": ("sceptical", "exact", "fond of counterexamples"),
    "vault": ("practical", "patient", "unwilling to leave debris"),
}
"""What the agents are before they have lived."""


def born(agent: str) -> Profile:
    """Return the profile of *agent* before its first cycle."""
    return Profile(agent=agent, traits=TRAITS.get(agent, ()))


def apply(profile: Profile, answer: Existence, now: float) -> tuple[Profile, list[Change]]:
    """Return *profile* after the existence *answer* at *now* (seconds since the epoch), and what happened to it.

    A worldview of more than 20 characters replaces the old one; three new questions and two new opinions are heard;
    an opinion in a domain that has one revises it, which is said as REVISED. The narrative gains the first sentence of
    the reasoning. Everything stays within its bound.
    """
    opinions = profile.opinions
    changes: list[Change] = []
    for text, domain in answer.opinions[:NEW_OPINIONS]:
        opinions, revised = _hold(opinions, _opinion(text, domain, now))
        changes += [(Kind.REVISED, {"domain": revised.domain, "opinion": revised.opinion})] if revised else []
    worldview = line(answer.worldview, LONGEST_WORLDVIEW)
    asked = tuple(line(each, LONGEST_QUESTION) for each in answer.open_questions[:NEW_QUESTIONS])
    changed = records.replace(
        profile,
        worldview=worldview if len(worldview) > SHORTEST_WORLDVIEW else profile.worldview,
        open_questions=_newest((*profile.open_questions, *asked), MOST_QUESTIONS),
        opinions=opinions,
        narrative=_told(profile.narrative, answer.reasoning),
        traits=_newest((*profile.traits, *(line(each, LONGEST_TRAIT) for each in answer.traits)), MOST_TRAITS),
    )
    return changed, changes


def bounded(profile: Profile) -> Profile:
    """Return *profile* within the bounds; a file that somebody placed knows none of them."""
    return records.replace(
        profile,
        traits=_newest((line(each, LONGEST_TRAIT) for each in profile.traits), MOST_TRAITS),
        narrative=_tail(line(profile.narrative, 10 * LONGEST_NARRATIVE)),
        worldview=line(profile.worldview, LONGEST_WORLDVIEW),
        open_questions=_newest((line(each, LONGEST_QUESTION) for each in profile.open_questions), MOST_QUESTIONS),
        opinions=tuple(_opinion(each.opinion, each.domain, each.formed) for each in profile.opinions)[-MOST_OPINIONS:],
    )


def lines(profile: Profile) -> list[str]:
    """Return what the prompt shows of *profile*: one line for each thing, narrative apart (see :func:`story`)."""
    shown = [f"Traits: {', '.join(profile.traits)}"] if profile.traits else []
    shown += [f"Worldview: {profile.worldview}"] if profile.worldview else []
    shown += [f"You hold ({each.domain}): {each.opinion}" for each in profile.opinions[-_SHOWN:]]
    shown += [f"Open question: {each}" for each in profile.open_questions[-_SHOWN:]]
    return shown


_SHOWN: Final = 6
"""Opinions and questions that a prompt shows, the newest ones."""


def story(profile: Profile) -> list[str]:
    """Return the narrative as the prompt shows it, nothing where there is none."""
    return [profile.narrative] if profile.narrative else []


def _opinion(text: str, domain: str, formed: float) -> Opinion:
    return Opinion(opinion=line(text, LONGEST_OPINION), domain=line(domain, LONGEST_DOMAIN) or "general", formed=formed)


def _hold(opinions: tuple[Opinion, ...], new: Opinion) -> tuple[tuple[Opinion, ...], Opinion | None]:
    """*opinions* with the *new* one, and that one if it revises another: there is one opinion a domain."""
    key = _key(new.domain)
    before = [each for each in opinions if _key(each.domain) == key]
    # Saying the same again is no revision: it would count as a way out of a conflict.
    if any(tokens(each.opinion) == tokens(new.opinion) for each in before):
        return opinions, None
    others = tuple(each for each in opinions if _key(each.domain) != key)
    return (*others, new)[-MOST_OPINIONS:], new if before else None


def _key(domain: str) -> frozenset[str]:
    return frozenset(word for part in tokens(domain) for word in part.replace("-", "_").split("_"))


def _newest(texts: Iterable[str], most: int) -> tuple[str, ...]:
    """The newest *most* of *texts*, each once, however it is spelled; what is said again stays where it was."""
    kept = dict[str, str]()
    for each in texts:
        if each:
            kept.setdefault(each.casefold().rstrip("?.! "), each)
    return tuple(kept.values())[-most:]


def _told(narrative: str, reasoning: str) -> str:
    """The *narrative* with one more turn: the first sentence of *reasoning*, unless it was told already."""
    first = line(reasoning, 4 * _SENTENCE).partition(". ")[0].rstrip(".")
    turn = line(f"{first}." if first else "", _SENTENCE)
    return narrative if not turn or turn in narrative else _tail(f"{narrative} {turn}".strip())


def _tail(narrative: str) -> str:
    """The end of *narrative* within its bound, from the beginning of a word on."""
    if len(narrative) <= LONGEST_NARRATIVE:
        return narrative
    return "…" + narrative[-(LONGEST_NARRATIVE - 1) :].partition(" ")[2]
