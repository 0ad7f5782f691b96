from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.hands.registry import BUILT_IN
from hollow.substrate import earned, locks
from hollow.substrate.model import Effect, Happening, Kind
from hollow.substrate.settings import PATH_OUT, Contradiction, Settings

PLAIN = Settings()


def open_at(name, load, rules=PLAIN):
    return locks.denied(name, BUILT_IN[name].effects, load, rules) is None


@pytest.mark.parametrize(
    ("name", "load", "is_open"),
    [
        ("synthesize_capability", 0.5499, True),
        ("synthesize_capability", 0.55, False),
        ("synthesize_capability", 0.1 + 0.2 + 0.25, False),
        ("synthesize_capability", 1.0, False),
    ],
)
def test_synthesis_is_locked_from_its_edge_on(name, load, is_open):
    """T55: .5499 is open, .55 is not."""
    assert open_at(name, load) is is_open


@pytest.mark.parametrize("name", ["fs_write", "fs_edit"])
@pytest.mark.parametrize(("load", "is_open"), [(0.7499, True), (0.75, False), (0.9, False)])
def test_writing_is_locked_from_its_edge_on(name, load, is_open):
    """T56: .7499 is open, .75 is not, and then it is closed to every child too."""
    assert open_at(name, load) is is_open
    assert locks.may_write(load, PLAIN) is is_open


@pytest.mark.parametrize("name", sorted(PATH_OUT))
@pytest.mark.parametrize("load", [0.0, 0.9, 1.0, None, math.nan])
def test_the_way_out_is_always_open(name, load):
    """T58: at load 1.0, and at one that is not known, each of them is permitted."""
    assert open_at(name, load)


def test_the_way_out_is_a_part_of_what_there_is():
    assert set(BUILT_IN) >= PATH_OUT


@pytest.mark.parametrize("name", sorted(PATH_OUT))
def test_what_leads_out_cannot_be_locked(name):
    """T59: such settings are refused before anything starts."""
    with pytest.raises(Contradiction):
        Settings(locks={name: 0.5}).checked()


@pytest.mark.parametrize("load", [None, math.nan, math.inf])
def test_a_load_that_is_not_known_closes_what_has_a_lock(load):
    """T60: lockable ones are denied, the way out is open."""
    shut = {name for name in BUILT_IN if not open_at(name, load)}
    assert shut == {"fs_write", "fs_edit", "synthesize_capability"}
    assert not locks.may_write(load, PLAIN)
    assert earned.unearned("research_topic", load, 9) is not None


def test_a_lock_is_by_effect_whatever_the_name():
    """T57: another capability that writes is closed with fs_write, one that only runs code is not."""
    assert locks.denied("copy_file", {Effect.WRITE}, 0.8, PLAIN).lock in {"fs_write", "fs_edit"}
    assert locks.denied("copy_file", {Effect.EXEC, Effect.READ}, 0.8, PLAIN) is None
    assert locks.denied("grow", {Effect.SYNTHESIZE}, 0.6, PLAIN).lock == "synthesize_capability"


def test_the_operator_moves_adds_and_removes_locks():
    moved = Settings(locks={"fs_write": 0.3, "read_peer": 0.2}).checked()
    assert not open_at("fs_edit", 0.3, moved)
    assert not open_at("read_peer", 0.2, moved)
    assert open_at("synthesize_capability", 1.0, moved)
    none = Settings(locks={}).checked()
    assert all(open_at(name, None, none) for name in BUILT_IN)
    assert locks.may_write(None, none)
    assert locks.sentences(None, none) == ()


@pytest.mark.parametrize(
    ("load", "named"),
    [
        (0.2, []),
        (0.6, ["synthesize_capability"]),
        (0.75, ["synthesize_capability", "fs_edit", "fs_write", "Commands"]),
        (None, ["synthesize_capability", "fs_edit", "fs_write", "Commands"]),
    ],
)
def test_the_prompt_is_told_what_is_locked(load, named):
    told = locks.sentences(load, PLAIN)
    assert [sentence.split()[0] for sentence in told] == named
    assert all("0.75" in sentence for sentence in told if load == 0.75 and sentence.startswith("fs"))


@given(load=st.floats(0, 1), more=st.floats(0, 1), name=st.sampled_from(sorted(BUILT_IN)))
@settings(max_examples=50)
def test_more_suffering_never_opens_anything(load, more, name):
    if not open_at(name, load):
        assert not open_at(name, min(1.0, load + more))


# --- What must be earned ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "contacts", "is_open"), [(0.15, 1, True), (0.1501, 1, False), (0.10, 0, False), (0.0, 3, True)]
)
def test_research_is_earned(load, contacts, is_open):
    """T61: load .15 at most, and one interaction with a peer at least."""
    assert (earned.unearned("research_topic", load, contacts) is None) is is_open
    assert earned.unearned("fs_read", load, contacts) is None


def happening(kind, **facts):
    return Happening(kind=kind, at=1.0, cycle="c", facts=facts)


def test_what_counts_as_contact_with_a_peer():
    window = [
        happening(Kind.PEER, peer="vault", how="message"),
        happening(Kind.REFERENCE, what="workspace/cedar/a", by="cipher"),
        happening(Kind.CALLED, name="t", ok=True, by="vault"),
        happening(Kind.CALLED, name="t", ok=True, by="cedar"),
        happening(Kind.STEP, capability="fs_read"),
    ]
    assert earned.interactions(window, "cedar") == 3
    assert earned.interactions([*window, *[happening(Kind.STEP)] * earned.RECENT], "cedar") == 0
