from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.documents import EMPTY, Fields, decoded, fields, is_text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        (b"a\nb", "a\nb"),
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        (b"\xef\xbb\xbfa", "a"),
        (b"\xff\xfea", "��a"),
        ("größe".encode(), "größe"),
        ("größe".encode("latin-1"), "gr��e"),
        (b"a\x00b", "a\0b"),
    ],
)
def test_bytes_become_lines_of_text(content, text):
    assert decoded(content) == text


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b"", True), (b"text", True), (b"\xff\xfe", True), (b"a\0", False), (b"x" * 8191 + b"\0", False), (b"x" * 8192 + b"\0", True)],
)  # fmt: skip
def test_a_nul_near_the_beginning_makes_a_file_binary(content, expected):
    assert is_text(content) is expected


@settings(max_examples=150)
@given(st.binary(max_size=300))
def test_any_bytes_have_text_without_carriage_returns_and_fields(content):
    text = decoded(content)
    assert "\r" not in text
    text.encode("utf-8")  # no lone surrogate: it could be neither stored nor said
    for name in ("a.py", "b.js", "c.md", "d"):
        found = fields(name, content)
        assert found == fields(name, content)
        assert (found == EMPTY) or is_text(content)
        assert found.lengths == (len(found.symbols.split()), len(found.docs.split()), len(found.body.split()))


@pytest.mark.parametrize(("name", "content"), [("a.py", None), ("a.py", b"x\0"), ("a.py", b""), ("a.py", b"+ - 1 x")])
def test_a_file_without_words_has_no_fields(name, content):
    found = fields(name, content)
    assert found in {EMPTY, Fields("", "", found.body)}
    assert found.symbols == found.docs == ""


def test_symbols_documentation_and_body_are_told_apart():
    found = fields("cart.py", b'"""The voucher."""\n\n\ndef apply_discount(total):\n    return warehouse(total)\n')
    assert found.symbols.split() == ["apply", "discount", "applydiscount"]
    assert "voucher" in found.docs.split()
    assert "warehous" not in found.docs.split()
    assert {"voucher", "warehous", "discount", "total"} <= set(found.body.split())


def test_a_word_is_counted_as_often_as_it_occurs_up_to_thirty_times():
    assert fields("a.txt", b"cart cart mail").body.split() == ["cart", "cart", "mail"]
    assert fields("a.txt", b"cart\n" * 500).body.split() == ["cart"] * 30


def test_what_stands_far_behind_is_not_indexed():
    assert "late" not in fields("a.txt", b"early\n" + b"word\n" * 50_000 + b"late").body
