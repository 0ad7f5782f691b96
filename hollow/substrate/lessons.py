"""What is learned: candidates, their promotion, and the bounds of what may be believed (seed 001; S20-S25)."""

from __future__ import annotations

import re

from essentials import records
from essentials.patterns import late
from essentials.records import dataclass
from hollow import oneline
from hollow.parsing import find_object
from hollow.substrate import families, recipes
from hollow.substrate.model import Category, Evidence, Lesson
from hollow.substrate.similarity import entities, jaccard, opposed, positive, significant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Final

    from hollow.substrate.model import Goal

    Said = tuple[str, dict[str, Any]]
    """An event, as its kind and facts; the shell says it."""


ALIKE: Final = 0.55
"""Jaccard similarity from which on two texts may be one lesson, inclusive (seed 001; T74)."""
PROMOTED_AT: Final = 2
"""Independent observations: of different goals (S22, T72)."""
SINGLE_SHOT: Final = frozenset({Category.ENVIRONMENT, Category.CONSTRAINTS})
"""Categories in which one observation of high confidence is enough; a pattern never is (S22, T73)."""
PER_CATEGORY: Final = 15
SHORTEST: Final = 20
LONGEST: Final = 240
"""Characters of a lesson (T78)."""
MOST_BYTES: Final = 5000
"""Bytes of all lessons as the prompt shows them, a list mark and a line end each (T78)."""
MOST_CANDIDATES: Final = 60
MOST_EVIDENCE: Final = 10
CONFIDENCE: Final = ("low", "medium", "high")
_MARK: Final = 3
"""Bytes that a line of a list takes beside its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A rule that a goal has shown, before anybody looked whether it is new."""

    text: str
    category: Category
    confidence: str
    """high, medium or low."""


def observe(
    candidates: Sequence[Lesson],
    lessons: Sequence[Lesson],
    text: str,
    category: Category | str,
    confidence: str,
    evidence: Evidence,
    now: float,
) -> tuple[tuple[Lesson, ...], tuple[Lesson, ...], list[Said]]:
    """Take one observation of a rule into account (S21, S22; T71-T79).

    *text* is the rule, *category* what it is about, *confidence* high, medium or low, *evidence* the goal that showed
    it, *now* seconds since the epoch. Returns the new candidates, the new lessons and what there is to say: an
    observation confirms a lesson or a candidate that means the same, or becomes a candidate; a candidate with enough
    behind it becomes a lesson. What is no rule, or speaks of a passing trouble of the machine, is refused.
    """
    rule, kind = clean(text), _category(category)
    if rule is None or kind is None or transient(rule):
        return tuple(candidates), tuple(lessons), [("lesson.refused", {"text": " ".join(text.split())[:LONGEST]})]
    sure = confidence if confidence in CONFIDENCE else CONFIDENCE[0]
    known = _find(lessons, rule)
    if known is not None:
        return _confirm(tuple(candidates), tuple(lessons), known, _seen(known, evidence, sure, now))
    before = _find(candidates, rule)
    if before is None:
        seen = Lesson(
            text=rule, category=kind, confidence=sure, evidence=(evidence,), first_observed=now, last_observed=now,
            count=1,
        )  # fmt: skip
    else:
        seen = _seen(before, evidence, sure, now)
    waiting = tuple(each for each in candidates if each is not before)
    if ripe(seen):
        return _promote(waiting, tuple(lessons), seen)
    said: list[Said] = [("lesson.candidate", _facts(seen))] if before is None else []
    # A candidate that nothing ever confirms makes room for newer ones.
    kept = sorted((*waiting, seen), key=_age)[-MOST_CANDIDATES:]
    return tuple(kept), tuple(lessons), said


def _confirm(
    candidates: tuple[Lesson, ...], lessons: tuple[Lesson, ...], known: Lesson, seen: Lesson
) -> tuple[tuple[Lesson, ...], tuple[Lesson, ...], list[Said]]:
    changed = tuple(seen if each is known else each for each in lessons)
    return candidates, changed, [("lesson.confirmed", _facts(seen))] if seen.count > known.count else []


def _promote(
    candidates: tuple[Lesson, ...], lessons: tuple[Lesson, ...], seen: Lesson
) -> tuple[tuple[Lesson, ...], tuple[Lesson, ...], list[Said]]:
    kept = bounded((*lessons, seen))
    dropped = [each for each in lessons if each not in kept]
    said: list[Said] = [("lesson.promoted", _facts(seen))]
    said += [("lesson.dropped", _facts(each)) for each in dropped]
    return candidates, kept, said


def ripe(candidate: Lesson) -> bool:
    """Say whether *candidate* has enough behind it to become a lesson (S22)."""
    single = candidate.confidence == CONFIDENCE[-1] and candidate.category in SINGLE_SHOT
    return single or candidate.count >= PROMOTED_AT


def same(one: str, other: str) -> bool:
    """Say whether two texts are one lesson: alike in words or of one family, about the same things, never opposed.

    Likeness of words alone merges a rule with its negation and with the same rule about another path (W22).
    """
    if opposed(one, other):
        return False
    family = families.of(one)
    if family is not None and family == families.of(other):
        named = entities(one) - family.implied, entities(other) - family.implied
        # One word in common at least: two rules of a family can still be about different corners of the world.
        return named[0] == named[1] and bool(significant(one) & significant(other))
    return jaccard(one, other) >= ALIKE and entities(one) == entities(other)


def bounded(lessons: Iterable[Lesson]) -> tuple[Lesson, ...]:
    """Return *lessons* within the bounds: 15 a category, 5000 bytes in all; the oldest go first (T78)."""
    given, kept = tuple(lessons), list[Lesson]()
    for category in Category:
        kept += sorted((each for each in given if each.category is category), key=_age)[-PER_CATEGORY:]
    kept.sort(key=_age)
    while kept and sum(len(each.text.encode()) + _MARK for each in kept) > MOST_BYTES:
        del kept[0]
    return tuple(kept)


def rules(lessons: Iterable[Lesson]) -> list[str]:
    """Return the lines of RULES OF YOUR ENVIRONMENT: what is forbidden, what is so, what has worked; best proven first.

    They stay within the bounds whatever is on disk: this is the one section that is never cut (S23, W24).
    """
    order = (Category.CONSTRAINTS, Category.ENVIRONMENT, Category.PATTERNS)
    held = sorted(bounded(lessons), key=lambda each: (order.index(each.category), -each.count, each.first_observed))
    return [each.text for each in held]


def clean(text: str) -> str | None:
    """Return *text* as one line of at most 240 characters, or None where it is too short to be a rule."""
    # A list's mark is no part of the rule, and two spellings of one rule must meet.
    line = re.sub(r"^(?:[-*•#>]+|\d{1,2}[.)])\s+", "", oneline.bare(text)).strip()
    if len(line) > LONGEST:
        line = line[: LONGEST - 1].rpartition(" ")[0].rstrip(",;: ") + "…"
    return line if len(line) >= SHORTEST else None


_TRANSIENT: Final = late(
    r"""connection\ (?:refused|reset|aborted|error|closed)|timed?[ -]?out|time\ limit|deadline|temporar|unreachable
    |\b(?:429|50[0234])\b|rate[ -]limit|service\ unavailable|bad\ gateway|overloaded
    |(?:model|mind|server|ollama)\ (?:is|was)\ (?:away|down|busy|not)|(?:cannot|could\ not)\ be\ reached
    |broken\ pipe|interrupted|out\ of\ memory|no\ space\ left|disk\ (?:is\ )?full|quota|input/output\ error
    |too\ many\ open\ files|locked\ by\ somebody|name\ resolution|was\ killed|signal\ \d+|no\ safe\ sandbox""",
    re.VERBOSE | re.IGNORECASE,
)


def transient(reason: str) -> bool:
    """Say whether *reason* is a passing trouble of the machine, of which there is nothing to learn (S20)."""
    return _TRANSIENT.search(reason) is not None


def candidate_of(goal: Goal, outcome: str, lesson: Any, errors: Sequence[str]) -> Proposal | None:
    """Return the rule that the end of *goal* has shown, or None where it has shown none (S20).

    *outcome* is completed, failed or abandoned; *lesson* what the mind gave as one when it judged, in whatever form;
    *errors* what went wrong on the way, as sentences, newest last. The mind's words count where they are a rule;
    otherwise a table of refusals does. A goal that is completed teaches by the mind's words alone: an error on the way
    to it was overcome. One that failed by a passing trouble of the machine teaches nothing.
    """
    told = _told(lesson)
    if told is not None:
        return told
    if outcome == "completed":
        return None
    # Certain as these are, one goal may misread them: medium confidence waits for a second.
    found = recipes.taught(each for each in (goal.reason, *reversed(errors)) if each and not transient(each))
    return None if found is None else Proposal(text=found[1], category=found[0], confidence=CONFIDENCE[1])


def _told(lesson: Any) -> Proposal | None:
    """The mind's own lesson, where it is a rule that may be one."""
    given = _given(lesson)
    text = given.get("text") or given.get("lesson") or given.get("rule")
    rule = clean(text) if isinstance(text, str) else None
    if rule is None or transient(rule):
        return None
    category = _category(str(given.get("category", "")).strip().casefold()) or _guessed(rule)
    confidence = str(given.get("confidence", "")).strip().casefold()
    return Proposal(text=rule, category=category, confidence=confidence if confidence in CONFIDENCE else CONFIDENCE[0])


def _given(lesson: Any) -> dict[str, Any]:
    """*lesson* as an object: it may be one with ``text``, such an object written out, or the text alone."""
    if isinstance(lesson, str) and lesson.lstrip().startswith("{"):
        return find_object(lesson) or {}
    return lesson if isinstance(lesson, dict) else {"text": lesson}


def _guessed(rule: str) -> Category:
    """The category of a rule that came without one; where nothing speaks for it, the one that needs most proof."""
    return Category.PATTERNS if positive(rule) and "only" not in rule.casefold() else Category.CONSTRAINTS


def _find(known: Iterable[Lesson], text: str) -> Lesson | None:
    return next((each for each in known if each.text == text or same(each.text, text)), None)


def _seen(known: Lesson, evidence: Evidence, confidence: str, now: float) -> Lesson:
    """*known* after one more observation; of a goal that was counted already it is no new one (T72)."""
    new = evidence.goal_id not in {each.goal_id for each in known.evidence}
    return records.replace(
        known,
        confidence=max(known.confidence, confidence, key=_rank),
        evidence=(*known.evidence, evidence)[-MOST_EVIDENCE:] if new else known.evidence,
        last_observed=max(now, known.last_observed),
        count=known.count + new,
    )


def _rank(confidence: str) -> int:
    return CONFIDENCE.index(confidence) if confidence in CONFIDENCE else 0


def _age(lesson: Lesson) -> tuple[float, float]:
    return lesson.last_observed, lesson.first_observed


def _category(given: Category | str) -> Category | None:
    try:
        return Category(given)
    except ValueError:
        return None


def _facts(lesson: Lesson) -> dict[str, Any]:
    return {
        "text": lesson.text, "category": str(lesson.category), "confidence": lesson.confidence,
        "observations": lesson.count,
    }  # fmt: skip
