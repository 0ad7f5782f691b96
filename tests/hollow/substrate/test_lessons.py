"""Lessons: what makes two sentences one rule, when a candidate is believed, what bounds what is believed."""

from __future__ import annotations

import json
import signal
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.memory.files import Files, MemoryFault
from hollow.memory.lessons import LessonBook
from hollow.substrate import families
from hollow.substrate.lessons import (
    LONGEST,
    MOST_BYTES,
    MOST_CANDIDATES,
    PER_CATEGORY,
    SHORTEST,
    Proposal,
    bounded,
    candidate_of,
    clean,
    observe,
    rules,
    same,
    transient,
)
from hollow.substrate.model import Category, Evidence, Goal, Lesson
from hollow.substrate.similarity import entities, jaccard, opposed, positive

NOW = 1_772_356_500.0
EXISTS = "Verify that a path exists before reading it."


def seen(goal: str, at: float = NOW) -> Evidence:
    return Evidence(goal_id=goal, agent="cedar", at=at)


def lesson(text: str, category: Category = Category.ENVIRONMENT, at: float = NOW, count: int = 2) -> Lesson:
    return Lesson(
        text=text, category=category, confidence="medium", evidence=(seen("goal-a"),), first_observed=at,
        last_observed=at, count=count,
    )  # fmt: skip


def watched(*observations: tuple[str, str, str, str]):
    """What a row of observations (text, category, confidence, goal) leads to."""
    candidates, lessons, said = (), (), []
    for number, (text, category, confidence, goal) in enumerate(observations):
        candidates, lessons, more = observe(candidates, lessons, text, category, confidence, seen(goal), NOW + number)
        said += more
    return candidates, lessons, said


# --- One rule or two --------------------------------------------------------------------------------------------------

SHARED = "alpha beta gamma delta epsilon zeta eta theta iota"


@pytest.mark.parametrize(
    ("one", "other", "likeness", "merged"),
    [
        # 6 of 10 words, 7 of 13, and 11 of 20 exactly.
        ("one two three four five six seven eight", "one two three four five six nine ten", 0.60, True),
        ("a1 b1 c1 d1 e1 f1 g1 h1 i1 j1", "a1 b1 c1 d1 e1 f1 g1 k1 l1 m1", 7 / 13, False),
        ("always log every deploy with its author and its hour", "log every deploy with its author and its hour", 0.888, True),
        ("this rule has words in it", "nothing here belongs together at all", 0.0, False),
    ],
)  # fmt: skip
def test_likeness_of_words_merges_from_a_threshold_on(one, other, likeness, merged):
    """T74: a paraphrase at .60 merges, one at .54 does not."""
    assert jaccard(one, other) == pytest.approx(likeness, abs=1e-3)
    assert same(one, other) is merged
    assert same(other, one) is merged


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The settings of every run are kept below conf/base.toml", "The settings of every run are kept below conf/site.toml"),
        ("A command may run for at most 30 seconds in the sandbox", "A command may run for at most 90 seconds in the sandbox"),
        ("Ask cedar before editing the design of the parser", "Ask vault before editing the design of the parser"),
        ("Call fs_edit with the whole passage that is to be replaced", "Call fs_write with the whole passage that is to be replaced"),
        ("The class RunState is what every report is made of", "The class RunMeta is what every report is made of"),
        ('The word "draft" marks a document as open for others', 'The word "final" marks a document as open for others'),
    ],
)  # fmt: skip
def test_rules_about_different_things_stay_apart(one, other):
    """T75: paths, numbers, capabilities, names: alike to .80 in words and two rules all the same."""
    assert jaccard(one, other) >= 0.55
    assert entities(one) != entities(other)
    assert not same(one, other)
    candidates, lessons, _ = watched((one, "environment", "low", "goal-a"), (other, "environment", "low", "goal-b"))
    assert (len(candidates), lessons) == (2, ())


@pytest.mark.parametrize(
    ("rule", "contrary"),
    [
        ("Always run the linter over new files in the tree", "Never run the linter over new files in the tree"),
        ("Use the cache when a large folder is listed", "Do not use the cache when a large folder is listed"),
        ("Use the cache when a large folder is listed", "Don’t use the cache when a large folder is listed"),
        (EXISTS, "Do not verify that a path exists before reading it."),
        (EXISTS, "There is no need to verify that a path exists before reading it."),
        ("Verify the size of a file before reading it", "Verify the size of a file after reading it"),
        ("System paths under /agentOS/agents/ are read-only", "System paths under /agentOS/agents/ are not read-only"),
        ("Messages to peers should be longer than a line", "Messages to peers should be shorter than a line"),
    ],
)  # fmt: skip
def test_a_rule_and_its_contrary_stay_apart(rule, contrary):
    """T75: a rule and its negation are alike to .82 in words."""
    assert opposed(rule, contrary)
    assert not same(rule, contrary)
    candidates, lessons, _ = watched((rule, "patterns", "low", "goal-a"), (contrary, "patterns", "low", "goal-b"))
    assert (len(candidates), lessons) == (2, ())


@pytest.mark.parametrize(
    "variant",
    [
        "Check the path exists first before reading",
        "Verify file existence before reading",
        "Always confirm that the file exists before opening it with fs_read",
        "Never read a file without checking that it exists",
        "Do not assume that a file exists: check it first",
    ],
)
def test_wordings_of_one_family_are_one_lesson(variant):
    """T76: they share few words, and say the same."""
    assert jaccard(variant, EXISTS) < 0.55
    assert families.of(variant) is families.of(EXISTS)
    assert same(variant, EXISTS)


def test_three_variants_become_one_lesson():
    """T76: the third confirms what the first two have made a lesson."""
    candidates, lessons, said = watched(
        (EXISTS, "environment", "medium", "goal-a"),
        ("Check the path exists first before reading", "environment", "medium", "goal-b"),
        ("Verify file existence before reading", "patterns", "medium", "goal-c"),
    )
    assert candidates == ()
    assert [(each.text, each.count) for each in lessons] == [(EXISTS, 3)]
    assert [kind for kind, _ in said] == ["lesson.candidate", "lesson.promoted", "lesson.confirmed"]


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        ("Always read a file before editing it", "Read the document first, then change it with fs_edit", "read before edit"),
        ("Quote the old text exactly when you edit", "An edit must match the old passage verbatim", "edit exactly"),
        ("Paths below /agentOS/core/ are read-only for us", "Never write to files under /agentOS/core", "read-only"),
        ("Never leave a placeholder in a document", "Documents with TODO in them are refused: no placeholder text", "no placeholder"),
        ("Do not submit the same request again", "A request that was submitted is never to be sent twice", "no repeated request"),
        ("Cite only code that you have read", "Claim of code only what you have actually seen there", "cite what was read"),
        ("Test a tool before you deploy it", "Run the tests before a tool is published", "test before done"),
    ],
)  # fmt: skip
def test_there_are_several_families(one, other, name):
    """T76: each is an explicit pattern."""
    assert families.of(one).name == families.of(other).name == name
    assert same(one, other)


def test_a_family_does_not_swallow_what_only_sounds_like_it():
    assert not same("System paths are read-only in here", "Never change files outside of the tests")
    assert not same("Folder agents/ is read-only for all", "Folder hollow/ is read-only for all")


@pytest.mark.parametrize(
    ("text", "is_positive"),
    [
        ("Read it", True), ("Do not read it", False), ("Never read without looking", True), ("You can't read it", False),
        ("A path that does not exist is an error", True), ("It is read-only", False), ("", True),
    ],
)  # fmt: skip
def test_negations_are_counted(text, is_positive):
    assert positive(text) is is_positive


def test_what_a_text_names():
    named = entities("Call `fs_read()` on /a/b/ and src/x.py, 3 times, for RunState and vault, NEVER for config.json.")
    assert named == {"fs_read", "/a/b", "src/x.py", "3", "RunState", "vault", "config.json"}


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300), st.text(max_size=300))
def test_any_two_texts_can_be_compared(one, other):
    assert 0.0 <= jaccard(one, other) <= 1.0
    assert same(one, other) == same(other, one)
    assert opposed(one, other) == opposed(other, one)
    assert not opposed(one, one)


# --- Candidates and promotion -----------------------------------------------------------------------------------------


def test_one_failure_is_a_candidate():
    """T71: and no lesson yet."""
    candidates, lessons, said = watched((EXISTS, "environment", "medium", "goal-a"))
    assert [(each.text, each.count) for each in candidates] == [(EXISTS, 1)]
    assert lessons == ()
    assert said == [
        ("lesson.candidate", {"text": EXISTS, "category": "environment", "confidence": "medium", "observations": 1})
    ]


@pytest.mark.parametrize(
    ("goals", "promoted"),
    [(("goal-a", "goal-b"), True), (("goal-a", "goal-a"), False), (("goal-a", "goal-a", "goal-b"), True), (("", ""), False)],
)  # fmt: skip
def test_two_goals_make_a_lesson(goals, promoted):
    """T72: the same rule from two goals is one; from one goal twice it is not."""
    candidates, lessons, _ = watched(*((EXISTS, "patterns", "low", goal) for goal in goals))
    assert (len(candidates), len(lessons)) == ((0, 1) if promoted else (1, 0))


@pytest.mark.parametrize(
    ("category", "confidence", "promoted"),
    [
        ("environment", "high", True), ("constraints", "high", True), ("patterns", "high", False),
        ("environment", "medium", False), ("constraints", "low", False), ("environment", "certain", False),
    ],
)  # fmt: skip
def test_one_sure_observation_can_be_enough(category, confidence, promoted):
    """T73: of the environment and its constraints, never of patterns."""
    candidates, lessons, said = watched((EXISTS, category, confidence, "goal-a"))
    assert (len(candidates), len(lessons)) == ((0, 1) if promoted else (1, 0))
    assert [kind for kind, _ in said] == ["lesson.promoted" if promoted else "lesson.candidate"]


def test_a_later_sure_observation_promotes_a_candidate():
    """T73: the confidence of a rule is the best that it was observed with."""
    _, lessons, _ = watched((EXISTS, "constraints", "low", "goal-a"), (EXISTS, "constraints", "high", "goal-a"))
    assert [(each.count, each.confidence) for each in lessons] == [(1, "high")]


@pytest.mark.parametrize(
    ("text", "category"),
    [("too short", "patterns"), (EXISTS, "wisdom"), ("The model is away often; try again after some seconds", "environment")],
)  # fmt: skip
def test_what_is_no_rule_is_refused(text, category):
    """T71: neither trifles nor passing troubles are learned."""
    candidates, lessons, said = watched((text, category, "high", "goal-a"))
    assert (candidates, lessons, [kind for kind, _ in said]) == ((), (), ["lesson.refused"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  - Look at the\n\tschema first, please ", "Look at the schema first, please"),
        ("2. Look at the schema \x1b[31mfirst, please", "Look at the schema [31mfirst, please"),
        ("x" * SHORTEST, "x" * SHORTEST), ("x" * (SHORTEST - 1), None), ("", None),
    ],
)  # fmt: skip
def test_a_rule_is_one_clean_line(text, shown):
    assert clean(text) == shown


def test_a_long_rule_is_cut_at_a_word():
    """T78: 240 characters."""
    cut = clean("word " * 100)
    assert len(cut) <= LONGEST
    assert cut.endswith("word…")


# --- Bounds -----------------------------------------------------------------------------------------------------------

NAMES = ["amber", "birch", "cloud", "delta", "ember", "frost", "grove", "heron", "inlet", "jade", "karst", "lunar", "maple", "nylon", "opal", "pearl", "quartz", "river", "slate", "tulip", "umber", "viola", "wharf", "xenon", "yucca", "zebra", "acorn", "bison", "coral", "dune", "eagle", "flint", "gorse", "hazel", "ivory", "jasper", "kelp", "lemon", "mango", "nutmeg"]  # fmt: skip


@pytest.mark.parametrize("category", list(Category))
def test_forty_lessons_keep_the_caps(category):
    """T78: fifteen a category, the oldest go."""
    observations = [
        (f"The {name}_store of this place wants {name} words about {name} things alone", category, "low", goal)
        for name in NAMES
        for goal in ("goal-a", "goal-b")
    ]
    candidates, lessons, said = watched(*observations)
    assert candidates == ()
    assert [each.text.split("_")[0] for each in lessons] == [f"The {name}" for name in NAMES[-PER_CATEGORY:]]
    assert sum(kind == "lesson.dropped" for kind, _ in said) == len(NAMES) - PER_CATEGORY


def test_all_lessons_together_stay_within_their_bytes():
    """T78: 5000 bytes as they are shown, and no category is exempt."""
    long = [
        lesson(f"{name} " + "ü" * 200, category, at=NOW + n) for n, name in enumerate(NAMES) for category in Category
    ]
    kept = bounded(long)
    assert sum(len(f"- {each.text}\n".encode()) for each in kept) <= MOST_BYTES
    assert min(each.last_observed for each in kept) > max(each.last_observed for each in long if each not in kept) - 1
    assert len(rules(long)) == len(kept)


def test_candidates_are_bounded_too():
    observations = [(f"The {name}_store wants words of kind number_{n}", "patterns", "low", "goal-a")
                    for n in range(3) for name in NAMES]  # fmt: skip
    candidates, lessons, _ = watched(*observations)
    assert (len(candidates), lessons) == (MOST_CANDIDATES, ())
    assert candidates[-1].text.endswith("number_2")


def test_rules_begin_with_what_is_forbidden():
    """T77: constraints, environment, patterns; best proven first."""
    shown = rules(
        [
            lesson("a pattern that has worked for somebody", Category.PATTERNS, count=9),
            lesson("an environment that is as it is here", Category.ENVIRONMENT, count=2),
            lesson("a constraint that holds for some of us", Category.CONSTRAINTS, count=2),
            lesson("a constraint that holds for all of us", Category.CONSTRAINTS, count=3),
        ]
    )
    assert [each[:20] for each in shown] == [
        "a constraint that ho", "a constraint that ho", "an environment that ", "a pattern that has w",
    ]  # fmt: skip
    assert shown[0].endswith("all of us")


# --- What a goal teaches ----------------------------------------------------------------------------------------------

GOAL = Goal(goal_id="goal-0123456789ab", agent="cedar", objective="map the parser")


@pytest.mark.parametrize(
    ("error", "category", "beginning"),
    [
        ("src/nothing.py does not exist; use Ls to see what is there.", "environment", "Verify that a path exists"),
        ("[Errno 2] No such file or directory: 'x'", "environment", "Verify that a path exists"),
        ("agents/core.py is read-only for you.", "constraints", "Files outside of"),
        (".git/config is closed to agents.", "constraints", "Some files are closed"),
        ("synthesize_capability is locked at load 0.60.", "constraints", "A locked capability"),
        ("old_text was not found in a.md; nothing was changed.", "patterns", "Read a file before"),
        ("There is no capability 'fs_delete'.", "constraints", "Plan with"),
        ("fs_write: missing parameter content", "patterns", "Give every capability"),
        ("workspace/cedar/a.md holds placeholder text.", "patterns", "Write documents in full"),
        ("a.py has a syntax error in line 3.", "patterns", "Check that code"),
        ("a.md names function `go` in b.py, which is not there.", "patterns", "Cite only"),
        ("a.md is too short: 12 bytes.", "patterns", "Give a document substance"),
        ("It has no output step.", "patterns", "Plan for something"),
        ("stalled: five cycles without progress", "patterns", "Choose a goal"),
    ],
)  # fmt: skip
def test_common_refusals_teach_without_a_mind(error, category, beginning):
    """T71: the table of refusals gives one candidate, never a lesson at once."""
    found = candidate_of(GOAL, "failed", None, [error])
    assert (found.category, found.confidence) == (Category(category), "medium")
    assert found.text.startswith(beginning)
    assert clean(found.text) == found.text


def test_the_newest_telling_error_counts():
    found = candidate_of(GOAL, "abandoned", "", ["x.md does not exist", "fs_write: missing parameter content", "odd"])
    assert found.text.startswith("Give every capability")


@pytest.mark.parametrize(
    "reason",
    ["connection refused", "The model is away.", "HTTP 503 from the server", "timed out after 120 s", "disk full",
     "No space left on device", "The command was killed by signal 9"],
)  # fmt: skip
def test_passing_troubles_teach_nothing(reason):
    """T71: no candidate from what the next hour heals (S20)."""
    assert transient(reason)
    assert candidate_of(GOAL, "failed", None, [f"x.md does not exist: {reason}"]) is None


@pytest.mark.parametrize(
    ("told", "category", "confidence"),
    [
        ({"text": EXISTS, "category": "environment", "confidence": "high"}, "environment", "high"),
        ({"text": EXISTS, "category": "Wisdom", "confidence": 7}, "patterns", "low"),
        (EXISTS, "patterns", "low"),
        (json.dumps({"text": EXISTS, "category": "constraints", "confidence": "medium"}), "constraints", "medium"),
        (str({"text": EXISTS, "category": "constraints", "confidence": "high"}), "constraints", "high"),
        ("Files of the core can not be written by us", "constraints", "low"),
    ],
)  # fmt: skip
def test_the_minds_own_words_come_first(told, category, confidence):
    found = candidate_of(GOAL, "completed", told, ["x is read-only"])
    assert (found.category, found.confidence) == (Category(category), confidence)


@pytest.mark.parametrize(
    "told",
    [
        None,
        "",
        "ok",
        7,
        [],
        {},
        '{"text": "a lesson that was cut off in the mid',
        {"text": None},
        {"text": "Try later: the server was busy"},
    ],
)
def test_a_completed_goal_teaches_by_words_alone(told):
    assert candidate_of(GOAL, "completed", told, ["x.md does not exist"]) is None
    assert isinstance(candidate_of(GOAL, "failed", told, ["x.md does not exist"]), Proposal)


# --- On disk ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path):
    return LessonBook(Files(tmp_path))


def test_a_candidate_and_a_lesson_on_disk(book, tmp_path):
    """T71: the seeds' file names and keys, before and after the promotion."""
    book.observe(EXISTS, "environment", "medium", seen("goal-a"), NOW)
    waiting = json.loads((tmp_path / "lessons_candidates.json").read_text())
    assert not (tmp_path / "lessons.json").exists()
    (entry,) = waiting["categories"]["environment"]
    assert {"text", "first_observed", "last_observed", "evidence_count", "confidence", "evidence_list"} <= set(entry)
    assert (entry["text"], entry["first_observed"], entry["evidence_count"]) == (
        EXISTS,
        "2026-03-01T09:15:00.000000+00:00",
        1,
    )
    said = book.observe(EXISTS, "environment", "medium", seen("goal-b"), NOW + 60)
    assert [kind for kind, _ in said] == ["lesson.promoted"]
    again = LessonBook(Files(tmp_path))
    assert again.candidates() == ()
    assert [(each.text, each.count, each.last_observed) for each in again.lessons()] == [(EXISTS, 2, NOW + 60)]
    kept = json.loads((tmp_path / "lessons.json").read_text())
    assert {"version", "updated_at"} <= set(kept)
    assert set(kept["categories"]) == {"environment", "patterns", "constraints"}


def test_promotion_does_not_hang(book):
    """T79: promoting takes the lock once (W21); it is done in a moment, under an alarm."""

    def late(_number, _frame):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 2.0)
    try:
        worker = threading.Thread(
            target=lambda: [book.observe(EXISTS, "patterns", "low", seen(goal), NOW) for goal in ("goal-a", "goal-b")]
        )
        worker.start()
        worker.join(2.0)
        assert not worker.is_alive()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(book.lessons()) == 1


def test_the_lock_is_taken_in_one_layer(tmp_path):
    """T79: a caller that holds it already is told so at once instead of waiting for itself."""
    files = Files(tmp_path)
    with files.hold(), pytest.raises(MemoryFault, match="held already"):
        LessonBook(files).observe(EXISTS, "patterns", "low", seen("goal-a"), NOW)


def test_a_hand_placed_file_loads(book, tmp_path):
    """T78: whatever stands in it is taken one by one and within the bounds; foreign keys stay."""
    (tmp_path / "lessons.json").write_text(json.dumps({
        "version": 3, "mood": "calm", "updated_at": "yesterday",
        "categories": {
            "environment": [
                {"text": EXISTS, "first_observed": "2026-02-01 10:00", "evidence_count": 4, "confidence": "high"},
                {"text": None}, 7, {"no": "text"}, {"text": "short"}, "A bare sentence is a lesson as well.",
                {"text": "One with odd values all around it", "first_observed": float("nan"), "last_observed": 1e300,
                 "evidence_count": "many", "confidence": [], "evidence_list": {"a": 1}},
            ],
            "patterns": "none", "dreams": [{"text": "this category does not exist at all"}],
        },
    }))  # fmt: skip
    assert [(each.text[:12], each.count, each.confidence) for each in book.lessons()] == [
        ("A bare sente", 1, "low"), ("One with odd", 1, "low"), ("Verify that ", 4, "high"),
    ]  # fmt: skip
    book.observe("Check the path exists first before reading", "environment", "low", seen("goal-z"), NOW)
    after = json.loads((tmp_path / "lessons.json").read_text())
    assert (after["mood"], after["version"]) == ("calm", 1)
    assert max(entry["evidence_count"] for entry in after["categories"]["environment"]) == 5


def test_evidence_in_the_older_form_is_read(book, tmp_path):
    """T72: sentences instead of goals, and what is neither."""
    entry = {"text": EXISTS, "evidence_list": ["goal 7: it was not there", 3, {"goal_id": "goal-a", "at": NOW}]}
    (tmp_path / "lessons_candidates.json").write_text(json.dumps({"categories": {"patterns": [entry]}}))
    (candidate,) = book.candidates()
    assert [each.goal_id for each in candidate.evidence] == ["goal 7: it was not there", "goal-a"]
    assert (candidate.count, candidate.evidence[1].at) == (2, NOW)


def test_evidence_of_one_goal_is_one_whatever_the_file_counts(book, tmp_path):
    """T72: a candidate's number is not believed where its evidence can be told apart (W22)."""
    (tmp_path / "lessons_candidates.json").write_text(json.dumps({"categories": {"patterns": [
        {"text": EXISTS, "evidence_count": 9, "evidence_list": [{"goal_id": "goal-a"}, {"goal_id": "goal-a"}]},
    ]}}))  # fmt: skip
    assert [each.count for each in book.candidates()] == [1]
    book.observe(EXISTS, "patterns", "low", seen("goal-a"), NOW)
    assert book.lessons() == ()
    book.observe(EXISTS, "patterns", "low", seen("goal-b"), NOW)
    assert [each.count for each in book.lessons()] == [2]


def test_a_damaged_file_loses_no_lesson(tmp_path):
    """T78: the last good copy comes back; nothing begins anew with an empty file."""
    warned = []
    book = LessonBook(Files(tmp_path, lambda kind, **facts: warned.append(kind)))
    for goal in ("goal-a", "goal-b", "goal-c"):
        book.observe(EXISTS, "environment", "low", seen(goal), NOW)
    (tmp_path / "lessons.json").write_text('{"categories": {"env')
    book.observe("A tool that prints nothing is of no use to us", "patterns", "low", seen("goal-d"), NOW)
    assert [each.text for each in book.lessons()] == [EXISTS]
    assert warned[0] == "memory.damaged"
    assert list((tmp_path / "quarantine").iterdir())


@settings(max_examples=25, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=30), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["categories", "environment", "text", "evidence_list", "goal_id", "at", "first_observed"]), inner, max_size=3), max_leaves=12))  # fmt: skip
def test_no_file_stops_the_book(tmp_path_factory, value):
    root = tmp_path_factory.mktemp("book")
    for name in ("lessons.json", "lessons_candidates.json"):
        (root / name).write_text(json.dumps(value))
    book = LessonBook(Files(root))
    book.observe(EXISTS, "constraints", "high", seen("goal-a"), NOW)
    assert EXISTS in rules(book.lessons())
