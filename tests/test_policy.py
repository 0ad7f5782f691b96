"""Tiers: what each run type may do; and the seal over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import policy
from agents.errors import OperatorError

if TYPE_CHECKING:
    import random

READ = {"Grep", "Ls", "ReadFile", "cat"}

# The seed's permission matrix with the design's additions: level, tools, may it change anything, whose role it is.
MATRIX = [
    ("scout", 1, READ, False, "cedar"),
    ("review", 1, READ | {"GitDiff"}, False, "cipher"),
    ("benchmark", 1, READ, False, "cipher"),
    ("plan", 2, READ, False, "cipher"),
    ("fix", 3, READ | {"EditFile"}, True, "vault"),
    ("cycle", 3, READ | {"EditFile"}, True, "cedar"),
]


@pytest.mark.parametrize(("run_type", "level", "tools", "mutates", "agent"), MATRIX, ids=[row[0] for row in MATRIX])
def test_a_tier_is_the_row_of_the_permission_matrix(
    run_type: str, level: int, tools: set[str], mutates: bool, agent: str
) -> None:
    tier = policy.tier(run_type)
    assert (tier.level, set(tier.tools), tier.mutates, tier.agent) == (level, tools, mutates, agent)
    assert len(tier.tools) == len(set(tier.tools))


def test_there_are_no_other_tiers_and_none_can_be_added() -> None:
    assert set(policy.TIERS) == {row[0] for row in MATRIX}
    with pytest.raises(TypeError):
        policy.TIERS["ops"] = policy.TIERS["fix"]  # type: ignore[index]


def test_only_a_tier_that_mutates_has_a_tool_that_writes() -> None:
    for name, tier in policy.TIERS.items():
        assert tier.mutates == ("EditFile" in tier.tools) == (tier.level == 3), name


@pytest.mark.parametrize("word", ["foo", "", "Scout", "scout ", "SCOUT", "ops", "../fix", "x" * 10_000])
def test_an_unknown_type_is_the_operators_error(word: str) -> None:
    """T148: there is no run type of that name, and the ones that there are get named."""
    with pytest.raises(OperatorError) as caught:
        policy.tier(word)
    assert caught.value.code == 2
    assert len(caught.value.message) < 100
    assert all(known in caught.value.hint for known in policy.TIERS)


def test_the_seal_has_the_form_of_the_seeds_examples() -> None:
    """T123: eight hex digits, today and in every later release."""
    assert policy.config_hash(["Grep"], ["scout_a1b2"], ["merge_a1b2"]) == "1f078891"


names = st.lists(st.text(max_size=12), max_size=6)


@settings(max_examples=80, deadline=None)
@given(names, names, names, st.randoms(use_true_random=False))
def test_the_seal_does_not_depend_on_order_or_repetition(
    tools: list[str], safe: list[str], human: list[str], chance: random.Random
) -> None:
    """T123: same sets, same hash."""
    mixed = [[*each, *each[:1]] for each in (tools, safe, human)]
    for each in mixed:
        chance.shuffle(each)
    assert policy.config_hash(*mixed) == policy.config_hash(tools, safe, human)


@settings(max_examples=80, deadline=None)
@given(names, names, names, st.sampled_from([0, 1, 2]), st.text(max_size=12))
def test_one_name_more_gives_another_seal(
    tools: list[str], safe: list[str], human: list[str], which: int, more: str
) -> None:
    """T123: one tool added, another hash."""
    sets = [tools, safe, human]
    grown = [[*each, more] if place == which else each for place, each in enumerate(sets)]
    changes = set(grown[which]) != set(sets[which])
    assert (policy.config_hash(*grown) != policy.config_hash(*sets)) == changes


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((["a"], ["b"], []), (["b"], ["a"], [])),
        ((["a", "b"], [], []), (["a"], ["b"], [])),
        ((["ab"], [], []), (["a", "b"], [], [])),
        ((["a,b"], [], []), (["a", "b"], [], [])),
        ((['a","b'], [], []), (["a", "b"], [], [])),
        (([""], [], []), ([], [], [])),
    ],
)
def test_names_cannot_move_between_sets_or_melt_together(one: tuple, other: tuple) -> None:
    """T123: the borders between names and sets are sealed too."""
    assert policy.config_hash(*one) != policy.config_hash(*other)
