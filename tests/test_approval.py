"""A yes counts for one thing only: these words, this hash, this result."""

from __future__ import annotations

import pytest

from agents import approval
from agents.approval import Statement
from agents.errors import OperatorError
from agents.risk import Flag
from essentials import records

PATCH = "0123456789abcdef" * 4
STATEMENT = Statement(
    repository="/w/shop/.git", run="26-03-01_0915__tidy__0be1", short_id="0be1", target="refs/heads/main",
    before="1" * 40, tree="fedcba9876543210" * 2 + "fedcba98", patch_sha256=PATCH, flags=(Flag("ci", "It changes CI.", ("x",)),),
)  # fmt: skip


@pytest.mark.parametrize("given", [PATCH[:8], PATCH[:9], PATCH, PATCH.upper()[:16], f"  {PATCH[:8]}\n"])
def test_the_beginning_of_the_hash_is_an_approval(given):
    """T149: eight digits or more."""
    approval.check(given, PATCH)


@pytest.mark.parametrize(
    "given",
    ["", "0", PATCH[:7], PATCH[1:9], "f" * 8, "f" * 64, PATCH + "0", "yes", "0x012345", "0123 4567", "0123456g", "*" * 8,
     "٠١٢٣٤٥٦٧"],
)  # fmt: skip
def test_anything_else_is_none(given):
    """T149: too short, too long, not hex, the wrong one."""
    with pytest.raises(OperatorError) as refusal:
        approval.check(given, PATCH)
    assert refusal.value.hint


def test_what_is_typed_names_the_run_and_the_result():
    """M15: a plain yes, or words out of a diff, are not enough."""
    assert approval.expected_words(STATEMENT) == "0be1 fedcba98"
    for typed in ("0be1 fedcba98", " 0be1   fedcba98 ", "0BE1 FEDCBA98"):
        approval.confirm(typed, STATEMENT)
    for typed in (
        "",
        "y",
        "yes",
        "0be1",
        "fedcba98",
        "0be1 fedcba9",
        "0be1 fedcba988",
        "0be2 fedcba98",
        "fedcba98 0be1",
    ):
        with pytest.raises(OperatorError, match="nothing was merged"):
            approval.confirm(typed, STATEMENT)


@pytest.mark.parametrize(
    ("isolation", "trusted", "allowed"),
    [
        ("full", False, True),
        ("partial", False, True),
        ("none", False, False),
        ("none", True, True),
        ("full", True, True),
    ],
)
def test_without_isolation_an_approval_proves_nothing(isolation, trusted, allowed):
    """M02: unless the operator himself, outside of the repository, says that it does."""
    if allowed:
        approval.allow(isolation, "0be1", trusted=trusted)
        return
    with pytest.raises(OperatorError) as refusal:
        approval.allow(isolation, "0be1", trusted=trusted)
    assert "--branch" in refusal.value.hint


@pytest.mark.parametrize("field", [field.name for field in records.fields(Statement)])
def test_a_statement_is_bound_to_every_part_of_it(field):
    """M11: an approval of one thing is not one of another."""
    other: object = (Flag("ci", "It changes CI.", ("y",)),) if field == "flags" else "another"
    changed = records.replace(STATEMENT, **{field: other})
    assert changed.digest() != STATEMENT.digest()
    assert records.replace(STATEMENT).digest() == STATEMENT.digest()


def test_without_a_terminal_the_error_says_what_to_type():
    """M04: in CI the hash stands for the human who read the patch."""
    assert "--approve" in approval.missing("0be1").hint
