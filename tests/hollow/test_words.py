from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.words import counts, identifiers, is_compound, is_task_word, parts, stem, tokens, tokens_of


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("getHTTPResponse2", ["get", "http", "response", "2"]),
        ("read_line", ["read", "line"]),
        ("READ_LINE", ["read", "line"]),
        ("__init__", ["init"]),
        ("utf8", ["utf", "8"]),
        ("größe", ["gr", "öß", "e"]),
        ("_", []),
    ],
)
def test_an_identifier_is_split(identifier, expected):
    assert parts(identifier) == expected


@pytest.mark.parametrize(
    "family",
    [
        ("encode", "encoded", "encodes", "encoding"),
        ("retry", "retries", "retried", "retrying"),
        ("class", "classes"),
        ("connect", "connected", "connecting", "connects"),
        ("stop", "stopped", "stopping"),
        ("validate", "validation", "validations", "validating"),
    ],
)
def test_forms_of_a_word_meet(family):
    assert len({stem(word) for word in family}) == 1


@pytest.mark.parametrize(("one", "other"), [("header", "head"), ("status", "stat"), ("server", "serve"), ("bus", "bu")])
def test_different_words_stay_apart(one, other):
    assert stem(one) != stem(other)


def test_short_and_foreign_words_are_not_stemmed():
    assert [stem(word) for word in ("as", "ids", "größen", "2024")] == ["as", "ids", "größen", "2024"]


@pytest.mark.parametrize("spelling", ["readLine", "read_line", "READ_LINE", "ReadLine"])
def test_all_spellings_of_a_name_have_the_same_tokens(spelling):
    assert tokens_of(spelling) == ("read", "lin", "readline")


def test_stop_words_single_letters_and_encoded_data_have_no_tokens():
    assert tokens("the x of " + "a1" * 60) == []


def test_text_is_counted_as_it_is_tokenised():
    text = "readLine reads a line; read_line is the line's reader"
    assert counts(identifiers(text)) == {token: tokens(text).count(token) for token in set(tokens(text))}


def test_shape_and_purpose_of_words():
    assert is_compound("fooBar")
    assert not is_compound("foobar")
    assert is_task_word("Fix")
    assert not is_task_word("socket")


@settings(max_examples=60)
@given(st.text(max_size=80))
def test_any_text_has_tokens_that_are_stable_and_lower_case(text):
    found = tokens(text)
    assert found == tokens(text)
    assert all(token and token == token.lower() and not token.isspace() for token in found)
