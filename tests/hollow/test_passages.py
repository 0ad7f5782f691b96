from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.passages import WINDOW, best, line_terms

VALUES = {"cart": 2.0, "item": 1.0, "mail": 0.25}
GAP = [""] * WINDOW


@pytest.mark.parametrize(
    ("line", "terms"),
    [
        ("cart of items", {"cart", "item"}),
        ("applyCart(mail_item)", {"cart", "mail", "item"}),
        ("carter", set()),
        ("", set()),
        (" " * 400 + "cart", set()),
        ("cart cart", {"cart"}),
    ],
)
def test_terms_of_a_line(line, terms):
    assert line_terms(line, VALUES) == terms


@pytest.mark.parametrize(
    ("lines", "line", "start", "matched"),
    [
        (["x", "cart"], 2, 2, ("cart",)),
        (["item", *GAP, "cart"], 22, 22, ("cart",)),
        (["item", "", "cart"], 3, 1, ("cart", "item")),
        (["mail"] * 50 + ["item mail"], 51, 51 - WINDOW + 1, ("item", "mail")),
        (["cart", *GAP, "cart"], 1, 1, ("cart",)),
        (["x = cart", "def cart():"], 2, 1, ("cart",)),
        (["x = cart", "  export default async function cart() {"], 2, 1, ("cart",)),
        (["x = cart", "pub fn cart()"], 2, 1, ("cart",)),
        (["x = cart", "defer cart()"], 1, 1, ("cart",)),
        (["item"] + [""] * (WINDOW - 2) + ["cart"], WINDOW, 1, ("cart", "item")),
        (["item"] + [""] * (WINDOW - 1) + ["cart"], WINDOW + 1, WINDOW + 1, ("cart",)),
    ],
)
def test_the_best_passage(lines, line, start, matched):
    found = best(lines, VALUES)
    assert (found.line, found.start, found.matched) == (line, start, matched)


@pytest.mark.parametrize("lines", [[], [""], ["nothing", "carter"], GAP])
def test_where_nothing_matches_there_is_no_passage(lines):
    assert best(lines, VALUES) is None


def test_repeating_a_word_adds_nothing_and_a_denser_line_does():
    once, often = best(["cart"], VALUES), best(["cart"] * 10, VALUES)
    assert once.score == often.score
    assert best(["cart item"], VALUES).score > best(["cart", "item"], VALUES).score > once.score


LINES = st.lists(st.sampled_from(["cart", "item", "mail", "def cart():", "", "x", "cart item mail"]), max_size=60)


@settings(max_examples=120)
@given(LINES, st.integers(1, 30))
def test_the_passage_lies_in_its_window_and_in_the_text(lines, window):
    found = best(lines, VALUES, window)
    if found is None:
        assert not any(line_terms(line, VALUES) for line in lines)
        return
    assert 1 <= found.start <= found.line <= min(len(lines), found.start + window - 1)
    assert set(found.matched) == set().union(*(line_terms(each, VALUES) for each in lines[found.start - 1 :][:window]))
    assert line_terms(lines[found.line - 1], VALUES)
    assert found.score >= max(sum(VALUES[term] for term in line_terms(each, VALUES)) for each in lines)


@settings(max_examples=60)
@given(LINES, LINES)
def test_more_text_never_makes_the_best_worse(lines, more):
    before, after = best(lines, VALUES), best(lines + more, VALUES)
    assert before is None or after.score >= before.score


def test_a_score_does_not_depend_on_the_order_of_a_set():
    """Each process has another order of sets; a sum in that order would differ in its last digit."""
    code = (
        "from hollow.passages import best\n"
        "values = {f'{a}{b}word': 0.1 + ord(a) / 7 + ord(b) / 11 for a in 'bcdfg' for b in 'klmnp'}\n"
        "print(repr(best([' '.join(values)] * 3, values)))\n"
    )
    root = Path(__file__).resolve().parents[2]
    said = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, cwd=root, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2", "3", "4")
    }  # fmt: skip
    assert len(said) == 1
    assert b"matched=(" in said.pop()
