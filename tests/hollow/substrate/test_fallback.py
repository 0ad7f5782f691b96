"""The goal that is chosen where the mind gave none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from essentials.records import replace
from hollow.substrate import fallback, mechanical
from hollow.substrate.fallback import ROTATION, Sources, choose
from hollow.substrate.goals import family
from hollow.substrate.model import Stressor


def stressor(name, severity=0.4, condition="a peer reads one of its documents"):
    return Stressor(
        type=name, description="x", severity=severity, onset=0.0, condition=condition, rate=0.03, peak=severity
    )  # fmt: skip


FULL = Sources(
    agent="cedar",
    stressors=(stressor("invisibility"), stressor("futility", 0.6)),
    open_questions=("Who reads the ledger?",),
    peer_files={"cedar": ["workspace/cedar/own.md"], "cipher": ["workspace/cipher/plan.md"]},
    last_outcome="The map of agents/ was completed.",
    journal=("workspace/cedar/notes.md",),
    files=("hollow/index.py", "hollow/mind.py"),
)
EMPTY = Sources(agent="cedar")
WITHOUT = {
    "stressor": {"stressors": ()},
    "question": {"open_questions": ("  ",)},
    "peer": {"peer_files": {"cedar": ["workspace/cedar/own.md"]}},
    "outcome": {"last_outcome": " "},
    "journal": {"journal": ()},
}


def run(sources, times, seed="cedar"):
    """The sources of so many unusable answers in a row; what stands in the registry is all that is carried over."""
    source, recent, seen = "", [], []
    for number in range(times):
        objective, source = choose(
            sources, seed=f"{seed}:{number}", recent=recent[-3:], turn=fallback.turn(source)
        )  # fmt: skip
        recent.append(objective)
        seen.append(source.removeprefix("fallback:"))
    return seen, recent


def test_five_unusable_answers_use_the_five_sources_in_order():
    """T83: 5 unusable answers -> sources used in order"""
    assert run(FULL, 10)[0] == [*ROTATION, *ROTATION]


@pytest.mark.parametrize("missing", ROTATION)
def test_an_empty_source_is_skipped(missing):
    """T83: empty source skipped"""
    sources = replace(FULL, **WITHOUT[missing])
    there = [name for name in ROTATION if name != missing]
    assert run(sources, 8)[0] == there * 2


def test_the_same_seed_gives_the_same_goals_and_another_may_not():
    """T83: deterministic for a seed"""
    assert run(FULL, 6) == run(FULL, 6)
    assert len({tuple(run(FULL, 1, seed=f"s{at}")[1]) for at in range(12)}) == 2


def test_a_family_that_was_there_lately_is_passed_over():
    first, source = choose(FULL, seed="s", recent=[], turn=1)
    assert source == "fallback:question"
    again, other = choose(FULL, seed="s", recent=[first.upper()], turn=1)
    assert other == "fallback:peer"
    assert family(again) != family(first)
    assert choose(FULL, seed="s", recent=[family(first)], turn=1) == (again, other)


def test_without_anything_it_surveys_a_real_file_that_was_not_looked_at_lately():
    sources = replace(EMPTY, files=("hollow/index.py", "hollow/mind.py"))
    objective, source = choose(sources, seed="s", recent=["Look at hollow/index.py"], turn=0)
    assert source == "fallback:survey"
    assert "hollow/mind.py" in objective
    assert fallback.turn(source) == 0
    # Even an empty repository gives a goal, and so does one that was looked at all over.
    assert choose(EMPTY, seed="s", recent=[], turn=3)[0]
    assert "hollow/" in choose(sources, seed="s", recent=["hollow/index.py hollow/mind.py"], turn=0)[0]


@pytest.mark.parametrize("turn", range(6))
@pytest.mark.parametrize("writable", [True, False])
def test_the_goals_name_real_state_and_a_result_that_the_gate_can_find(turn, writable):
    sources = replace(FULL, writable=writable) if turn < 5 else replace(EMPTY, files=FULL.files, writable=writable)
    objective, _ = choose(sources, seed="s", recent=[], turn=turn)
    named = (
        "futility", "invisibility", "Who reads the ledger", "workspace/cipher/plan.md", "The map of agents/",
        "workspace/cedar/notes.md", "hollow/",
    )  # fmt: skip
    assert any(each in objective for each in named)
    declared = mechanical.declared(objective, "cedar")
    assert len(declared) == (1 if writable else 0)
    assert writable or "memory_set" in objective


def test_what_follows_from_what_follows_does_not_grow():
    sources, seen = replace(EMPTY, last_outcome="Completed: Map the agents. It left workspace/cedar/map.md."), []
    for _ in range(4):
        objective, _ = choose(sources, seed="s", recent=[], turn=3)
        seen.append(objective)
        sources = replace(sources, last_outcome=f"Completed: {objective} It left workspace/cedar/x.md.")
    assert all(each.count("follows from") == 1 and len(each) < 300 for each in seen)


@given(
    st.lists(st.text(max_size=300), max_size=3), st.text(max_size=300), st.integers(0, 9), st.text(max_size=9),
    st.lists(st.text(max_size=20), max_size=3),
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_whatever_the_state_holds_there_is_a_goal_of_one_line(texts, outcome, turn, seed, recent):
    sources = Sources(
        agent="vault",
        open_questions=texts,
        peer_files={"cedar": texts},
        last_outcome=outcome,
        journal=texts,
        files=texts,
    )
    objective, source = choose(sources, seed=seed, recent=recent, turn=turn)
    assert objective.strip() == objective
    assert len(objective.splitlines()) == 1
    assert len(objective) < 400
    assert source.startswith("fallback:")
