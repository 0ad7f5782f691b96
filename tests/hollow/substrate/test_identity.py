"""Identity: what an existence answer changes in a profile, its bounds, its file, and goals against own opinions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from essentials import records
from hollow.memory.files import Files
from hollow.memory.profiles import Profiles
from hollow.substrate import identity
from hollow.substrate.existence import Existence
from hollow.substrate.model import AGENTS, Kind, Opinion, Profile

NOW = 1_772_356_500.0
CEDAR = identity.born("cedar")


def holding(*opinions: tuple[str, str]) -> Profile:
    held = tuple(Opinion(opinion=text, domain=domain, formed=NOW) for text, domain in opinions)
    return records.replace(CEDAR, opinions=held)


# --- What an answer changes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", "as it was"), ("x" * 20, "as it was"), ("x" * 21, "x" * 21), ("x" * 600, "x" * 600),
        ("x" * 601, "x" * 599 + "…"), ("two\nlines of one view of it", "two lines of one view of it"),
    ],
)  # fmt: skip
def test_a_worldview_is_more_than_a_word(given, kept):
    before = records.replace(CEDAR, worldview="as it was")
    after, changes = identity.apply(before, Existence(worldview=given), NOW)
    assert (after.worldview, changes) == (kept, [])


def test_three_new_questions_are_heard_and_twelve_kept():
    profile = CEDAR
    for turn in range(5):
        asked = tuple(f"What is behind door {turn}.{n}?" for n in range(4))
        profile, _ = identity.apply(profile, Existence(open_questions=(*asked, "y" * 300)), NOW)
    assert len(profile.open_questions) == 12
    assert profile.open_questions[-1] == "What is behind door 4.2?"
    assert "What is behind door 4.3?" not in profile.open_questions
    assert profile.open_questions[0] == "What is behind door 1.0?"


def test_a_question_is_asked_once_and_is_bounded():
    asked = ("Why is it slow?", "why is it SLOW", "z" * 300)
    after, _ = identity.apply(CEDAR, Existence(open_questions=asked), NOW)
    assert after.open_questions == ("Why is it slow?", "z" * 199 + "…")


def test_two_new_opinions_are_heard_and_twenty_kept():
    profile = CEDAR
    for turn in range(12):
        said = tuple((f"View {turn} of {n}", f"domain {turn} {n}") for n in range(3))
        profile, changes = identity.apply(profile, Existence(opinions=said), NOW + turn)
        assert changes == []
    assert len(profile.opinions) == 20
    assert profile.opinions[-1] == Opinion(opinion="View 11 of 1", domain="domain 11 1", formed=NOW + 11)
    assert profile.opinions[0].opinion == "View 2 of 0"


@pytest.mark.parametrize(
    ("text", "domain", "revised"),
    [
        ("Tests may be slow", "Code Quality", True),
        ("Tests may be slow", "code_quality", True),
        ("tests must be FAST!", "code quality", False),
        ("Tests may be slow", "code size", False),
    ],
)
def test_an_opinion_in_the_same_domain_is_a_revision(text, domain, revised):
    """T49: a revision is a way out of a conflict, so saying the same again is none."""
    before = holding(("Tests must be fast", "code quality"))
    after, changes = identity.apply(before, Existence(opinions=((text, domain),)), NOW + 5)
    assert changes == ([(Kind.REVISED, {"domain": domain, "opinion": text})] if revised else [])
    assert len(after.opinions) == (2 if domain == "code size" else 1)


def test_the_story_grows_by_a_sentence_and_keeps_its_end():
    profile = CEDAR
    for turn in range(40):
        thought = f"In turn {turn} I looked at the parser. And more of it"
        profile, _ = identity.apply(profile, Existence(reasoning=thought), NOW)
        profile, _ = identity.apply(profile, Existence(reasoning=thought), NOW)
    assert len(profile.narrative) <= 800
    assert profile.narrative.startswith("…")
    assert profile.narrative.endswith("In turn 38 I looked at the parser. In turn 39 I looked at the parser.")


def test_traits_are_eight():
    assert {agent: len(identity.born(agent).traits) for agent in AGENTS} == dict.fromkeys(AGENTS, 3)
    after, _ = identity.apply(CEDAR, Existence(traits=("", "Curious", *(f"t{n}" for n in range(9)))), NOW)
    assert after.traits == (*(f"t{n}" for n in range(1, 9)),)


def test_the_prompt_shows_the_newest_of_each():
    profile = records.replace(
        holding(*((f"View {n}", f"d{n}") for n in range(9))), worldview="All is code, and code is read more than written.",
        open_questions=tuple(f"Q{n}?" for n in range(9)), narrative="I began.",
    )  # fmt: skip
    shown = identity.lines(profile)
    assert shown[:3] == [
        "Traits: curious, quick to look, slow to conclude",
        "Worldview: All is code, and code is read more than written.", "You hold (d3): View 3",
    ]  # fmt: skip
    assert shown[-1] == "Open question: Q8?"
    assert (identity.story(profile), identity.story(CEDAR), identity.lines(Profile(agent="x"))) == (
        ["I began."],
        [],
        [],
    )


# --- Goals against own opinions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opinion", "domain", "objective", "against"),
    [
        # What an opinion condemns, made or used.
        ("Wrappers should be avoided", "wrappers", "Build a wrapper around fs_write", True),
        ("Wrappers are useless", "wrappers", "Write an analysis of the wrappers in agents/", False),
        ("Wrappers are harmful", "architecture", "Build a wrapper around fs_write", True),
        ("Wrappers are not harmful at all", "wrappers", "Build a wrapper around fs_write", False),
        ("No wrappers", "wrappers", "Create wrappers for all capabilities", True),
        ("No wrappers", "wrappers", "Do not create wrappers for the capabilities", False),
        ("Synthesizing new tools is wasteful", "synthesis", "Synthesize a tool to count lines", True),
        # What it forbids, done.
        ("Never deploy stubs", "tools", "Deploy a stub tool for counting", True),
        ("Never deploy stubs", "stubs", "Remove the stubs from the router", False),
        ("Never deploy stubs", "stubs", "List all stubs in tools/dynamic", False),
        ("Tests should never touch the network", "testing", "Write tests that touch the network", True),
        ("Tests should never touch the network", "testing", "Write tests for the parser", False),
        ("Do not submit duplicate requests", "requests", "Submit a duplicate request for the router", True),
        ("Do not submit duplicate requests", "requests", "Avoid submitting duplicate requests: list them", False),
        ("Tools should not be built without a request", "tools", "Build a tool for logs", True),
        ("Tools should not be built without a request", "tools", "Build a tool for the open request of vault", False),
        # What it stands for, removed.
        ("Every module deserves tests", "tests", "Delete the tests of the parser", True),
        ("Every module deserves tests", "tests", "Write tests for the parser", False),
        ("Every module deserves tests", "tests", "Remove flaky sleeps from tests", False),
        ("Tests should not be skipped", "tests", "Skip the tests for the parser", True),
        # A string in common is no subject in common.
        ("Art is harmful", "art", "Start building a chart of all parts", False),
        ("Loops are harmful", "control flow", "Describe the loops of the parser in a report", False),
        ("Plans are harmful", "", "Make plans for plans", True),
        ("Anything", "", "Build nothing", False),
    ],
)
def test_a_goal_is_against_an_opinion_by_what_it_does(opinion, domain, objective, against):
    """T49: structured stance, no bare substring and no list of bad words alone (W30)."""
    found = identity.conflict(holding((opinion, domain)), objective)
    assert (found is not None) is against


def test_the_newest_opinion_that_is_contradicted_is_named():
    """T49: the conflict says which."""
    profile = holding(("Stubs are harmful", "stubs"), ("Stubs are a mistake", "fake tools"), ("Tests matter", "tests"))
    found = identity.conflict(profile, "Create stubs for the router")
    assert found is not None
    assert found.domain == "fake tools"
    assert identity.conflict(CEDAR, "Create stubs for the router") is None


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=200), st.text(max_size=60), st.text(max_size=300))
def test_any_opinion_can_be_held_against_any_goal(opinion, domain, objective):
    profile, _ = identity.apply(CEDAR, Existence(opinions=((opinion, domain),)), NOW)
    assert identity.conflict(profile, objective) in (None, *profile.opinions)


# --- On disk ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def profiles(tmp_path):
    return Profiles(Files(tmp_path))


def test_a_profile_is_as_it_was_saved(profiles, tmp_path):
    lived = Existence(
        worldview="Code is read more often than it is written.", open_questions=("Who reads it?",),
        opinions=(("Names matter", "style"),), reasoning="I read names first. Then code.",
    )  # fmt: skip
    profile, _ = identity.apply(profiles.load("cedar"), lived, NOW)
    profiles.save(profile, NOW)
    assert Profiles(Files(tmp_path)).load("cedar") == profile
    kept = json.loads((tmp_path / "identity" / "cedar" / "profile.json").read_text())
    assert {"agent_id", "name", "traits", "narrative", "worldview", "open_questions", "opinions_list", "created_at",
            "narrative_updated_at"} <= set(kept)  # fmt: skip
    assert kept["opinions_list"][0]["domain"] == "style"
    assert profiles.load("vault") == identity.born("vault")


def place(tmp_path, value):
    folder = tmp_path / "identity" / "cedar"
    folder.mkdir(parents=True)
    (folder / "profile.json").write_text(json.dumps(value))


def test_a_hand_placed_profile_loads_and_keeps_what_is_foreign(profiles, tmp_path):
    place(tmp_path, {
        "agent_id": "cedar", "name": "Cedar", "voice": "dry", "narrative": "n" * 900, "worldview": 7,
        "open_questions": ["Why?", None, "q" * 300], "created_at": "2026-01-01",
        "opinions_list": [{"opinion": "A", "domain": "a", "formed": "2026-05-03 07:30", "times_tested": 2}, "B", {"domain": "x"}, 5],
        "opinions": {"old": "form"},
    })  # fmt: skip
    profile = profiles.load("cedar")
    assert profile.traits == identity.born("cedar").traits
    assert [(each.opinion, each.domain) for each in profile.opinions] == [("A", "a"), ("B", "general")]
    assert profile.opinions[0].formed == 1_777_793_400.0
    assert (profile.worldview, len(profile.narrative) <= 800, len(profile.open_questions)) == ("", True, 2)
    profiles.save(profile, NOW)
    kept = json.loads((tmp_path / "identity" / "cedar" / "profile.json").read_text())
    assert (kept["voice"], kept["created_at"]) == ("dry", "2026-01-01")
    assert "opinions" not in kept


def test_the_older_form_of_opinions_is_read(profiles, tmp_path):
    place(tmp_path, {"traits": [], "opinions": {"style": "Names matter", "size": 3}})
    profile = profiles.load("cedar")
    assert [(each.domain, each.opinion) for each in profile.opinions] == [("style", "Names matter")]
    assert profile.traits == ()


@settings(max_examples=25, deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=20), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["traits", "narrative", "opinions_list", "opinions", "open_questions", "opinion", "formed"]), inner, max_size=4), max_leaves=12))  # fmt: skip
def test_no_file_stops_an_agent_from_being_somebody(tmp_path_factory, value):
    root = tmp_path_factory.mktemp("who")
    place(root, value)
    profile = Profiles(Files(root)).load("cedar")
    assert profile == identity.bounded(profile)
