"""Sufferings and lessons: laws that hold whatever an agent says of itself and whatever stands in its files."""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hollow.memory.files import Files
from hollow.memory.lessons import LessonBook
from hollow.memory.sufferings import Sufferings
from hollow.substrate.lessons import MOST_BYTES, PER_CATEGORY, bounded, clean, observe, rules
from hollow.substrate.model import Category, Evidence, Lesson, Stressor, Suffering
from hollow.substrate.settings import Settings
from hollow.substrate.stressors import TABLE, assess, take
from hollow.substrate.suffering import escalate, load, prune
from tests.fuzz import examples
from tests.fuzz.material import damaged, json_values, words
from tests.support.pains import NOON, past, suffering

types = st.sampled_from([*sorted(TABLE), "a_fear", "another"])
numbers = st.floats(allow_nan=True, allow_infinity=True) | st.integers() | st.floats(0, 1) | words
stressors = st.fixed_dictionaries(
    {"type": types | words},
    optional=dict.fromkeys(("severity", "onset", "peak", "rate", "intensity"), numbers) | {"description": words | json_values, "condition": words, "claim": words},
)  # fmt: skip
documents = st.fixed_dictionaries(
    {"active_stressors": st.lists(stressors | json_values, max_size=8)},
    optional={
        "resolved_history": st.lists(stressors | json_values, max_size=4),
        "last_escalated": numbers,
        "crisis_cycles": numbers,
    },
)
entries = st.fixed_dictionaries(
    {"type": types | words}, optional={"reason": words, "description": words, "condition": words}
)
assessments = st.fixed_dictionaries(
    {},
    optional={
        "resolved": st.lists(entries | words | json_values, max_size=4),
        "new_stressors": st.lists(entries | json_values, max_size=4),
    },
)


def sound(s: Suffering) -> bool:
    """What no suffering may break (T31, T38)."""
    severities = [each.severity for each in s.active]
    return (
        0.0 <= load(s) <= 1.0
        and all(math.isfinite(value) and 0.0 <= value <= 1.0 for value in severities)
        and all(each.peak >= each.severity for each in s.active)
        and len(severities) == len({each.type for each in s.active}) <= 5
    )  # fmt: skip


@examples(60)
@given(document=documents | json_values, said=assessments | json_values, hours=st.lists(st.floats(0, 200), max_size=3))
def test_a_hand_placed_file_and_any_words_leave_a_sound_suffering(document, said, hours):
    """T31: bounded; T60: what cannot be believed is said to be damaged; T69: the worst are kept."""
    with tempfile.TemporaryDirectory() as folder:
        book = Sufferings(Files(Path(folder)))
        book.save(suffering())
        path = next(each for each in Path(folder).rglob("*") if each.is_file() and each.suffix == ".json")
        path.write_text(json.dumps(document))
        s, _ = book.load("cedar")
        s, _ = prune(s, NOON)
        now = max(NOON, s.last_escalated)
        for step in hours:
            now += step * 3600
            before = {each.type: each.severity for each in s.active}
            s, _ = escalate(s, now)
            assert all(
                each.severity >= before[each.type] or each.type == "capability_lock"
                for each in s.active
                if each.type in before
            )
        s, told = take(s, said, past(), now)
        assert sound(s)
        json.dumps(told)
        book.save(s)
        assert sound(book.load("cedar")[0])


@examples(60)
@given(
    names=st.lists(st.sampled_from(sorted(TABLE)), min_size=1, max_size=4, unique=True), said=assessments, reasons=words
)
def test_words_alone_end_no_canonical_pain(names, said, reasons):
    """T43: resolution comes from what happened; an agent's report is kept as its claim."""
    active = tuple(
        Stressor(
            type=name, severity=0.4, onset=NOON, description="d", condition="c", rate=0.0, peak=0.4, origin="system"
        )
        for name in names
    )
    before = suffering(*active)
    said = {**said, "resolved": [*said.get("resolved", []), *({"type": name, "reason": reasons} for name in names)]}
    after, _ = take(before, said, past(), NOON + 60)
    kept = {each.type: each.severity for each in after.active}
    assert all(kept.get(name, 0.0) >= 0.4 for name in names)


@examples(60)
@given(hours=st.lists(st.floats(0, 72), min_size=1, max_size=5))
def test_nothing_that_happened_is_judged_the_same_however_often(hours):
    """T42: to look twice at the same past ends and begins nothing new."""
    s = suffering()
    now = NOON
    for step in hours:
        now += step * 3600
        s, _ = assess(s, past(), Settings(), now)
        again, told = assess(s, past(), Settings(), now)
        assert (again, told) == (s, [])


# Dissimilar on purpose: what is alike is one lesson, and then the first wording stays.
TEXTS = [
    "Verify that a path exists before reading it.",
    "Run the whole test suite after every change to parsers.",
    "Prefer small commits with one purpose each.",
    "Never store credentials inside configuration templates.",
]
observations = st.lists(
    st.tuples(st.sampled_from(TEXTS), st.sampled_from(["goal-a", "goal-b", "goal-c"]), st.sampled_from(["low", "medium"])), max_size=7
)  # fmt: skip


def believed(seen):
    candidates: tuple[Lesson, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    for text, goal, confidence in seen:
        candidates, lessons, _ = observe(
            candidates,
            lessons,
            text,
            Category.PATTERNS,
            confidence,
            Evidence(goal_id=goal, agent="cedar", at=NOON),
            NOON,
        )
    return candidates, lessons


@examples(50)
@given(data=st.data(), seen=observations)
def test_which_rules_are_believed_does_not_depend_on_the_order(data, seen):
    """T72: a rule is believed for what stands behind it, not for when it was seen."""
    candidates, lessons = believed(seen)
    others = believed(data.draw(st.permutations(seen)))
    assert {each.text for each in lessons} == {each.text for each in others[1]}
    assert {(each.text, each.count) for each in candidates} == {(each.text, each.count) for each in others[0]}
    assert not {each.text for each in lessons} & {each.text for each in candidates}


@examples(60)
@given(
    texts=st.lists(words.map(clean).filter(bool), max_size=12),
    categories=st.lists(st.sampled_from(list(Category)), max_size=12),
)
def test_what_is_believed_stays_within_its_bounds(texts, categories):
    """T78: and taking them twice changes nothing."""
    given_ = [
        Lesson(text=text, category=kind, confidence="medium", evidence=(), first_observed=NOON + at, last_observed=NOON + at, count=2)
        for at, (text, kind) in enumerate(zip(texts * 4, itertools.cycle(categories or [Category.PATTERNS]), strict=False))
    ]  # fmt: skip
    kept = bounded(given_)
    assert bounded(kept) == kept
    assert all(sum(each.category is kind for each in kept) <= PER_CATEGORY for kind in Category)
    assert sum(len(each.text.encode("utf-8", "replace")) for each in kept) <= MOST_BYTES
    assert len(rules(kept)) == len(kept)


@examples(20)
@given(
    data=st.just(
        json.dumps(
            {
                "categories": {
                    "patterns": [{"text": TEXTS[0], "count": 2, "evidence_list": [{"goal_id": "g"}, {"goal_id": "h"}]}]
                }
            }
        ).encode()
    ).flatmap(damaged)
)
def test_a_damaged_book_of_lessons_can_be_read_and_written_again(data):
    """T60: what is damaged is put aside, and life goes on."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "lessons.json").write_bytes(data)
        book = LessonBook(Files(Path(folder)))
        assert isinstance(book.lessons(), tuple | list)
        book.observe(TEXTS[1], "patterns", "high", Evidence(goal_id="g", agent="cedar", at=NOON), NOON)
        book.observe(TEXTS[1], "patterns", "high", Evidence(goal_id="h", agent="cedar", at=NOON), NOON)
        assert TEXTS[1] in rules(book.lessons())
