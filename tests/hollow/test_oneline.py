"""Text from anywhere on one line, moments from anywhere, and the other small values that several modules share."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import sightings
from hollow import oneline
from hollow.answer import Usage
from hollow.memory import moments


@given(st.text(max_size=60), st.integers(1, 40))
def test_a_line_is_one_printable_line_within_its_bound(text, most):
    shown = oneline.line(text, most)
    assert len(shown) <= most
    assert shown.isprintable()
    assert shown == oneline.line(shown, most)


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("plain", 100, "plain"),
        ("  two\twords\r\nand a third ", 100, "two words and a third"),
        ("red\x1b[31m", 100, "red [31m"),
        ("left\u202eright", 100, "left right"),
        ("a\u2028b\u0085c", 100, "a b c"),
        ("one two three four", 10, "one two t…"),
        ("12345678 0 and more", 10, "12345678…"),
        ("", 10, ""),
    ],
)
def test_what_a_line_leaves_of_a_text(text, most, shown):
    assert oneline.line(text, most) == shown


@pytest.mark.parametrize("written", ["1" + "0" * 400, "-1", "NaN", "Infinity", "true", '"soon"', "null", "[]"])
def test_a_moment_that_is_none_is_none(written):
    """JSON as Python reads it knows integers that no float can hold."""
    assert moments.seconds(json.loads(written)) is None


@given(st.floats(0, 4e9))
def test_a_moment_comes_back_to_the_microsecond(at):
    assert moments.seconds(moments.iso(at)) == pytest.approx(at, abs=1e-6)


@pytest.mark.parametrize(
    ("written", "share"),
    [("0.25", 0.25), ("7", 1.0), ("-3", 0.0), ("1" + "0" * 400, 1.0), ("NaN", None), ("-Infinity", None),
     ("true", None), ('"0.5"', None)],
)  # fmt: skip
def test_a_share_is_between_nothing_and_all(written, share):
    assert sightings.share(json.loads(written)) == share


def test_tokens_add_up():
    assert Usage(input_tokens=3, output_tokens=1) + Usage(output_tokens=4) == Usage(input_tokens=3, output_tokens=5)
