from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.question import BODY_WEIGHT, SUBJECT_WEIGHT, parse
from hollow.words import tokens_of


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("`parse_url` fails", ("parse_url",)),
        ("``a.b_c`` and 'quoted.name'", ("b_c", "quoted", "name")),
        ('the "Cart.add" method', ("Cart", "add")),
        ("std::vector or vec->push_back", ("std", "vector", "vec", "push_back")),
        ("call flush() now", ("flush",)),
        ("camelCase and snake_case", ("camelCase", "snake_case")),
        ("utf8 breaks", ("utf8",)),
        ("2fa login, 3.11 and 404", ()),
        ("os is x", ()),
        ("don't can't won't", ()),
        ("", ()),
        ("`x`", ()),
        ("Queue#put", ("Queue", "put")),
        ("`parse_url` is parse_url()", ("parse_url",)),
    ],
)
def test_what_is_written_as_code_is_a_name(text, names):
    assert parse(text).names == names


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("look at src/shop/cart.py", ("src/shop/cart.py",)),
        ("./cart.py and ../x/y.go", ("cart.py", "x/y.go")),
        ("cart.py cart.py", ("cart.py",)),
        ("see README.md.", ("README.md",)),
        ("in src/net/http please", ("src/net/http",)),
        ("either/or", ()),
        ("self.items.append", ()),
        ("version 1.2.3", ()),
        ("e.g. this", ()),
        ("https://example.org/a/b.py", ()),
        ("mail <a@b.py>", ()),
        ("a-b_c+d@e.toml", ("a-b_c+d@e.toml",)),
        (".github/workflows/ci.yml", ("github/workflows/ci.yml",)),
        ("a/b/c/d.html", ("a/b/c/d.html",)),
    ],
)
def test_what_is_written_as_a_path_is_one(text, paths):
    assert parse(text).paths == paths


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("cart.py:12", {"cart.py": 12}),
        ("at ./web/a.ts:3:7 and web/a.ts:9", {"web/a.ts": 9}),
        ('File "/x/y.py", line 4, in put', {"x/y.py": 4}),
        ('File "C:\\a\\b.py", line 4', {"C:/a/b.py": 4}),
        ("main.go:99999999999999999999", {"main.go": 999999999}),
        ("12:30 o'clock", {}),
        ("localhost:8080", {}),
        ("v1.2:3", {}),
    ],
)
def test_lines_of_traces_are_seen(text, lines):
    found = parse(text)
    assert found.lines == lines
    assert set(lines) <= set(found.paths)


@pytest.mark.parametrize(
    ("scoped", "word"),
    [
        ("cart: total is wrong", "cart"),
        ("fix(cart): total is wrong", "cart"),
        ("fix(cart)!: total is wrong", "cart"),
        ("[cart] total is wrong", "cart"),
        ("shop/cart: total is wrong", "shop"),
    ],
)
def test_a_leading_scope_weighs_most(scoped, word):
    found = parse(scoped).terms
    (token,) = tokens_of(word)
    assert found[token] == max(found.values())
    assert (
        found[token] > parse(scoped.replace(":", "").replace("[", "").replace("]", "").replace("(", " ")).terms[token]
    )


@pytest.mark.parametrize("text", ["fix: loop", "feat: loop", "docs: loop"])
def test_a_kind_of_commit_is_no_scope(text):
    terms = parse(text).terms
    assert terms["loop"] == max(terms.values())


def test_the_body_weighs_less_than_the_subject_and_the_same_word_counts_once():
    terms = parse("voucher\n\nwarehouse voucher").terms
    assert terms == {"voucher": SUBJECT_WEIGHT, "warehous": BODY_WEIGHT}


@pytest.mark.parametrize(
    ("text", "words", "asked"),
    [
        ("which tests cover it", ("tests?",), True),
        ("the TEST fails", ("tests?",), True),
        ("a protest", ("tests?",), False),
        ("lock file", ("vendored?", "lock ?files?"), True),
        ("", ("tests?",), False),
    ],
)
def test_a_question_asks_for_a_sort_of_file_in_words(text, words, asked):
    assert parse(text).asks_for(*words) is asked


CODE = st.sampled_from(["`a_b`", "x.y()", "a/b.py:3", 'File "a.py", line 9', "fix(cart):", "#12", "<a@b>", "::", "\n", "\0", "\ud800", "'", "é", "0"])  # fmt: skip


@settings(max_examples=150)
@given(
    st.one_of(
        st.text(max_size=200), st.lists(CODE, max_size=12).map(" ".join), st.lists(CODE, max_size=12).map("".join)
    )
)
def test_any_text_is_a_question(text):
    found = parse(text)
    assert found.text == text
    assert len(found.terms) <= 60
    assert list(found.terms.values()) == sorted(found.terms.values(), reverse=True)
    assert isinstance(found.terms, MappingProxyType)
    assert len(set(found.names)) == len(found.names)
    assert all(len(name) > 2 for name in found.names)
    assert all(line >= 0 for line in found.lines.values())
    assert parse(text) == found


def test_only_the_beginning_of_a_very_long_question_is_read():
    assert set(parse("cart " + "x " * 20_000 + "voucher").terms) == {"cart"}
