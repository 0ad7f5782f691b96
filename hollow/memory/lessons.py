"""The lessons on disk: ``lessons.json`` and ``lessons_candidates.json``, shared by all agents (S21-S24)."""

from __future__ import annotations

from hollow.memory.moments import iso, seconds
from hollow.substrate import lessons as rules
from hollow.substrate.model import Category, Evidence, Lesson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Final

    from hollow.memory.files import Files

LESSONS: Final = "lessons.json"
CANDIDATES: Final = "lessons_candidates.json"
VERSION: Final = 1


class LessonBook:
    """What all agents together have learned below *files*. A damaged file is told of and restored, never emptied."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def lessons(self) -> tuple[Lesson, ...]:
        """Return what is believed, within the bounds whatever the file holds."""
        return rules.bounded(_read(self._files.read(LESSONS).value))

    def candidates(self) -> tuple[Lesson, ...]:
        """Return what was observed and is not believed yet."""
        return tuple(_read(self._files.read(CANDIDATES).value, waiting=True))

    def observe(
        self, text: str, category: Category | str, confidence: str, evidence: Evidence, now: float
    ) -> list[rules.Said]:
        """Take one observation into account, as :func:`hollow.substrate.lessons.observe` says; returns its events.

        *now* is in seconds since the epoch. Raises :class:`hollow.memory.files.MemoryFault` where the lock is not to be
        had.
        """
        with self._files.hold():
            old = self._files.read(CANDIDATES).value, self._files.read(LESSONS).value
            before = tuple(_read(old[0], waiting=True)), rules.bounded(_read(old[1]))
            candidates, lessons, said = rules.observe(*before, text, category, confidence, evidence, now)
            # Lessons first: killed between the two, a rule is both, and the next observation finds the lesson.
            if lessons != before[1]:
                self._files.write(LESSONS, _written(lessons, old[1], now))
            if candidates != before[0]:
                self._files.write(CANDIDATES, _written(candidates, old[0], now))
        return said


def _read(value: Any, *, waiting: bool = False) -> Iterator[Lesson]:
    """The lessons in *value*, one after the other; what is none is left out, and the others stay."""
    categories = value.get("categories") if isinstance(value, dict) else None
    for category in Category:
        listed = categories.get(category) if isinstance(categories, dict) else None
        for given in listed if isinstance(listed, list) else []:
            found = _lesson(given, category, waiting=waiting)
            if found is not None:
                yield found


def _lesson(given: Any, category: Category, *, waiting: bool) -> Lesson | None:
    # A list of bare sentences is how a person would write the file.
    given = {"text": given} if isinstance(given, str) else given
    text = rules.clean(given["text"]) if isinstance(given, dict) and isinstance(given.get("text"), str) else None
    if text is None:
        return None
    evidence = tuple(_evidence(given.get("evidence_list")))
    first = seconds(given.get("first_observed")) or 0.0
    confidence = given.get("confidence")
    return Lesson(
        text=text, category=category, confidence=confidence if confidence in rules.CONFIDENCE else rules.CONFIDENCE[0],
        evidence=evidence, first_observed=first, last_observed=max(first, seconds(given.get("last_observed")) or 0.0),
        count=_count(given.get("evidence_count"), evidence, waiting=waiting),
    )  # fmt: skip


def _count(given: Any, evidence: tuple[Evidence, ...], *, waiting: bool) -> int:
    """Independent observations. A candidate's are those that can be told apart, whatever number stands there (W22)."""
    apart = len({each.goal_id for each in evidence})
    if waiting and evidence:
        return apart
    return max(apart, given, 1) if isinstance(given, int) and not isinstance(given, bool) else max(apart, 1)


def _evidence(listed: Any) -> Iterator[Evidence]:
    for given in (listed if isinstance(listed, list) else [])[-rules.MOST_EVIDENCE :]:
        if isinstance(given, str):
            yield Evidence(goal_id=given[:120], agent="", at=0.0)
        elif isinstance(given, dict):
            yield Evidence(
                goal_id=str(given.get("goal_id", ""))[:120], agent=str(given.get("agent", ""))[:60],
                at=seconds(given.get("at")) or 0.0,
            )  # fmt: skip


def _written(lessons: Iterable[Lesson], old: Any, now: float) -> dict[str, Any]:
    """The file for *lessons*; keys of the *old* one that we do not know stay."""
    listed: dict[str, list[dict[str, Any]]] = {category: [] for category in Category}
    for each in lessons:
        listed[each.category].append(_entry(each))
    kept = dict(old) if isinstance(old, dict) else {}
    return {**kept, "version": VERSION, "updated_at": iso(now), "categories": listed}


def _entry(lesson: Lesson) -> dict[str, Any]:
    return {
        "text": lesson.text,
        "first_observed": iso(lesson.first_observed),
        "last_observed": iso(lesson.last_observed),
        "evidence_count": lesson.count,
        "confidence": lesson.confidence,
        "evidence_list": [
            {"goal_id": each.goal_id, "agent": each.agent, "at": iso(each.at)} for each in lesson.evidence
        ],
    }
