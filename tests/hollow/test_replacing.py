from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.confine import Refusal
from hollow.replacing import decoded, line_end, replaced, with_line_ends

LINES = st.lists(st.sampled_from(["a", "b", " a", "a b", "", "é", "x.*("]), min_size=1, max_size=8)
ENDS = st.sampled_from(["\n", "\r\n"])


def refused(*words, **more) -> str:
    with pytest.raises(Refusal) as why:
        replaced(*words, **more)
    return str(why.value)


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("a\nb\nc\n", "b", "x", "a\nx\nc\n"),
        ("a\nb\nc\n", "b\n", "", "a\nc\n"),
        ("a\nb\nc", "c", "d", "a\nb\nd"),  # no line end appears at the end
        ("a\nb", "b", "b\n", "a\nb\n"),  # unless it is asked for
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),  # the file decides, whatever the model writes
        ("a\nb\nc\r\nd\r\ne\r\n", "a\nb", "x\ny", "x\ny\nc\r\nd\r\ne\r\n"),  # mixed: the passage decides
        ("\ufeffa\n", "a", "b", "\ufeffb\n"),
        ("a\rb\n", "b", "c", "a\rc\n"),
        ("f(x) + [1]\n", "f(x) + [1]", r"\1 \g<0>", "\\1 \\g<0>\n"),  # nothing is a pattern
        ("a\x0bb\u2028c\n", "c", "d", "a\x0bb\u2028d\n"),
    ],
)
def test_a_passage_is_replaced_and_every_other_byte_stays(text, old, new, result):
    assert replaced(text, old, new, "f").text == result


def test_every_occurrence_is_replaced_if_asked_and_each_line_is_told():
    done = replaced("a\nb\na\na", "a", "x\ny", "f", everywhere=True)
    assert (done.text, done.lines) == ("x\ny\nb\nx\ny\nx\ny", (1, 4, 6))


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("a", "a"), ("a\r\nb", "a\nb")])
def test_what_would_change_nothing_is_refused(old, new):
    assert refused("a\nb\n", old, new, "f")


def test_several_occurrences_are_counted_and_placed():
    said = refused("a\nb\na\na\n", "a", "x", "src/f.py")
    assert "3 times in src/f.py (lines 1, 3, 4)" in said
    assert "replace_all" in said
    assert "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …)" in refused("a\n" * 30, "a", "x", "f")


TEXT = "def total(self):\n    return sum(self.prices)\n\ndef other(self):\n    pass\n"


@pytest.mark.parametrize(
    ("old", "said", "unsaid"),
    [
        # Like it: the nearest lines with their numbers.
        ("    return sum(self.price)", ["The nearest lines are:", "     2      return sum(self.prices)"], ["pass"]),
        # The same but for white space: the very lines.
        (
            "def total(self):\n  return sum(self.prices)",
            ["white space only", "     1  def total(self):", "     2      return sum"],
            ["other"],
        ),
        # Pasted from ReadFile.
        ("     1  def total(self):\n     2      return sum(self.prices)", ["line numbers"], ["nearest"]),
        # Nothing alike: no guess.
        ("zzzzzz qqqqqq", ["was not found in f"], ["nearest", "white space only"]),
        ("\n \n", ["was not found in f"], ["nearest", "white space only"]),
    ],
)
def test_what_is_not_found_is_answered_with_what_is_near(old, said, unsaid):
    told = refused(TEXT, old, "x", "f")
    assert [words for words in said if words not in told] == []
    assert [words for words in unsaid if words in told] == []


def test_the_search_for_what_is_near_is_bounded():
    told = refused("".join(f"line {n} of many\n" for n in range(60_000)), "line 59999 of mani", "x", "f")
    assert len(told) < 1000


@pytest.mark.parametrize(
    ("data", "words"), [(b"a\0b", "binary"), (b"abc\xff", "byte 3"), ("ä".encode("latin-1"), "UTF-8")]
)
def test_what_could_not_be_written_back_is_refused(data, words):
    with pytest.raises(Refusal, match=words):
        decoded(data, "f")


@pytest.mark.parametrize(
    ("text", "end"), [("", "\n"), ("a", "\n"), ("a\r\n", "\r\n"), ("a\r\nb\n", "\n"), ("a\r\nb\r\nc\n", "\r\n")]
)
def test_the_line_end_of_a_file_is_that_of_most_lines(text, end):
    assert line_end(text) == end


@settings(max_examples=150, deadline=None)
@given(LINES, LINES, LINES, LINES, ENDS)
def test_what_stands_around_a_replaced_passage_is_untouched(before, old, new, after, end):
    """However the lines look: head and tail are the same bytes, and no line end of another kind comes in."""
    passage = with_line_ends("\n".join(["<<", *old, ">>"]), end)
    head, tail = end.join([*before, ""]), end.join(["", *after])
    put = "\n".join(["[[", *new, "]]"])
    done = replaced(f"{head}{passage}{tail}", "\n".join(["<<", *old, ">>"]), put, "f")
    assert done.text == f"{head}{with_line_ends(put, end)}{tail}"
    assert done.lines == (len(before) + 1,)
    assert not re.search(r"(?<!\r)\n" if end == "\r\n" else r"\r", done.text)
