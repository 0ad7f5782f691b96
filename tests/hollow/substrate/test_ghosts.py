"""Which tools are not called, and how one becomes known to be broken."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.memory.broken import BrokenTools
from hollow.memory.files import Files
from hollow.substrate import ghosts, sections
from hollow.substrate.ghosts import Broken
from hollow.substrate.model import Profile, Trouble
from hollow.substrate.synthesis import Tool
from tests.support.hands import do, scene

NOW = 1_800_000_000.0
TOOL = Tool(name="good", description="works", code="def good():\n    return 1\n", by="vault", activated_at=NOW)
BROKEN = Broken(name="bad", failures=3, reason=ghosts.NULL, code_sha="old")


def check(name, **more):
    given = {"loaded": {"good": TOOL}, "quarantined": {"ghost"}, "broken": {"bad": BROKEN}, "blacklist": set(), **more}
    return ghosts.precheck(name, builtins={"fs_read"}, **given)


@pytest.mark.parametrize(
    ("name", "more", "trouble", "counted"),
    [
        ("good", {}, None, False),
        ("fs_read", {"blacklist": {"fs_read"}}, None, False),
        ("ghost", {}, Trouble.GHOST, True),
        ("bad", {}, Trouble.GHOST, True),
        ("never_was", {}, Trouble.UNKNOWN, False),
        ("ghost", {"blacklist": {"ghost"}}, Trouble.GHOST, False),
        (
            "good",
            {"broken": {"good": Broken(name="good", failures=3, reason="x", code_sha=TOOL.sha)}},
            Trouble.GHOST,
            True,
        ),
        ("good", {"broken": {"good": Broken(name="good", failures=3, reason="x", code_sha="other")}}, None, False),
        ("good", {"broken": {"good": Broken(name="good", failures=2, reason="x", code_sha=TOOL.sha)}}, None, False),
    ],
)
def test_a_ghost_is_stopped_before_it_is_called(name, more, trouble, counted):
    """T111: quarantined and broken tools count one failure, a name that never existed none."""
    stop = check(name, **more)
    assert (stop.trouble if stop else None) is trouble
    assert (stop.counts if stop else False) is counted
    if counted:
        assert stop.record


@pytest.mark.parametrize("trouble", [*Trouble, None])
def test_only_ghosts_and_nulls_are_held_against_a_tool(trouble):
    """T115: wrong arguments, timeouts, locks and the machine's faults are not (W16)."""
    assert ghosts.counts(trouble) is (trouble in {Trouble.GHOST, Trouble.NULL})


def test_a_built_in_is_never_broken(tmp_path):
    """T115: ten calls with wrong arguments and ten that fail, through the choke point itself."""
    stage = scene(tmp_path)
    results = [
        do(stage.hands(), "fs_read", **params) for params in ({"nonsense": 1}, {"path": "none.txt"}) for _ in range(10)
    ]
    assert not any(each.ok for each in results)
    assert stage.memory.broken.records() == {}
    assert do(stage.hands(), "fs_read", path="README.md").ok


@pytest.fixture
def book(tmp_path):
    return BrokenTools(Files(tmp_path / "memory"))


def again(book) -> BrokenTools:
    """The same records after a restart."""
    return BrokenTools(Files(book._files.root))


def fail(book, cycle, name="ghost", sha="", reason=ghosts.NO_CODE, now=NOW):
    return book.failed(name, cycle=cycle, reason=reason, sha=sha, now=now)


def prompt_of(book) -> str:
    """The section of the prompt that names the broken tools."""
    broken = [
        sections.Broken(name=each.name, failures=each.failures, reason=each.reason)
        for each in book.records().values()
        if each.is_broken
    ]
    return sections.broken(sections.View(agent="cedar", profile=Profile(agent="cedar"), broken=broken), 0)


def test_three_cycles_make_a_tool_broken(book):
    """T113: two do not; and three failures in one cycle are one."""
    for _ in range(3):
        assert fail(book, "c1") == ()
    assert book.records()["ghost"].failures == 1
    assert fail(again(book), "c2") == ()
    assert not book.records()["ghost"].is_broken
    facts = {"name": "ghost", "failures": 3, "reason": ghosts.NO_CODE}
    assert fail(again(book), "c3") == (("capability.broken", facts),)
    assert again(book).records()["ghost"].is_broken
    # It is said once, however often it is named afterwards.
    assert fail(book, "c4") == ()


def test_the_broken_stand_in_the_prompt_until_new_code_comes(book):
    """T114: name, count and reason, after a restart too; a redeploy of other code clears."""
    for cycle in "abc":
        fail(book, cycle, "safe_file_executor")
    assert prompt_of(again(book)).splitlines()[1:] == ["- safe_file_executor (3 failures, ghost: no .py found)"]
    assert prompt_of(again(book)).startswith("KNOWN BROKEN TOOLS")
    assert book.redeployed("safe_file_executor", "sha") == (
        ("capability.rehabilitated", {"name": "safe_file_executor"}),
    )
    assert prompt_of(again(book)) == ""
    assert book.redeployed("safe_file_executor", "sha") == ()


def test_the_same_code_is_not_forgiven(book):
    """T114: it would fail the same way; what is named while broken keeps the code it was broken by."""
    for cycle in "abc":
        fail(book, cycle, sha="one")
    fail(book, "d", sha="")
    assert book.redeployed("ghost", "one") == ()
    assert book.records()["ghost"].is_broken
    assert book.redeployed("ghost", "two") != ()
    assert book.records() == {}


def test_failures_of_other_code_do_not_add_up(book):
    """T113: three different versions that fail once each are three first failures."""
    for cycle, sha in zip("abc", ["one", "two", "three"], strict=True):
        fail(book, cycle, sha=sha)
    assert book.records()["ghost"].failures == 1


def test_a_success_between_is_a_new_start(book):
    """T113: a tool that has given a value is neither a ghost nor a null stub."""
    fail(book, "a")
    fail(book, "b")
    book.worked("ghost")
    book.worked("never_failed")
    fail(book, "c")
    assert book.records()["ghost"].failures == 1


def test_a_file_of_the_seeds_shape_loads(book):
    """T113: strings and counts as older files hold them; what is no record is passed over."""
    folder = book._files.root
    folder.mkdir()
    given = {
        "broken": [
            "safe_file_executor",
            7,
            {"name": "b\nc", "failures": "x", "last_seen": "2026-05-03 10:00"},
            {"name": "far", "failures": 4, "last_seen": 1e300, "first_seen": "then"},
            {},
        ],
        "cross_cycle_failures": {"safe_file_executor": 5, "shaky": 2, "odd": "x"},
    }
    (folder / "broken_tools.json").write_text(json.dumps(given))
    records = book.records()
    assert {name: each.failures for name, each in records.items()} == {
        "safe_file_executor": 5,
        "shaky": 2,
        "b c": 3,
        "far": 4,
    }
    assert records["b c"].last_seen == 1_777_802_400.0
    assert "- safe_file_executor (5 failures, no reason was recorded)" in prompt_of(book)
    fail(book, "next", "shaky")
    assert json.loads((folder / "broken_tools.json").read_text())["cross_cycle_failures"]["shaky"] == 3


@given(st.text(max_size=300), st.text(max_size=300))
@settings(max_examples=50)
def test_whatever_was_recorded_is_one_line(name, reason):
    """T114: a record that was placed by hand cannot speak to the mind in lines of its own."""
    record = ghosts.cleaned(Broken(name=name, failures=3, reason=reason))
    for text in (record.name, record.reason):
        assert len(text) <= 160
        assert len(text.splitlines()) <= 1
        assert text.isprintable()
    assert record.reason


@given(st.lists(st.sampled_from(string.ascii_lowercase[:5]), max_size=12))
@settings(max_examples=50)
def test_the_count_is_that_of_cycles_in_a_row_of_distinct_ids(cycles):
    """T113: consecutive failures of one cycle are one."""
    record, said = None, []
    for cycle in cycles:
        record, news = ghosts.failed(record, "x", cycle=cycle, reason="r", sha="", now=NOW)
        said += news
    changes = sum(1 for at, cycle in enumerate(cycles) if at == 0 or cycles[at - 1] != cycle)
    assert (record.failures if record else 0) == changes
    assert len(said) == (changes >= ghosts.THRESHOLD)
