"""What a setting accepts beyond numbers and words: yes and no, money, shell commands, paths here and elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from agents import accepts
from agents.errors import OperatorError

FORMS: list[tuple[Any, Any, Any]] = [
    *[(accepts.yes_or_no, word, True) for word in ("yes", "true", "on", "1", "YES", " On ", True, 1)],
    *[(accepts.yes_or_no, word, False) for word in ("no", "false", "off", "0", "No", " oFF\n", False, 0)],
    (accepts.amount, "2", 2.0), (accepts.amount, "0.50", 0.5), (accepts.amount, "$3.25", 3.25), (accepts.amount, " 1.5 ", 1.5),
    (accepts.amount, 2, 2.0), (accepts.amount, 0.25, 0.25), (accepts.amount, "999999.9999", 999999.9999),
    (accepts.folders, "/opt/tools", ("/opt/tools",)), (accepts.folders, "/a:/b", ("/a", "/b")), (accepts.folders, ["/a", "/b"], ("/a", "/b")),
    (accepts.folders, ["/with:colon"], ("/with:colon",)), (accepts.folders, " /a : /b ::", ("/a", "/b")), (accepts.folders, "/a:/b:/a", ("/a", "/b")),
    (accepts.folders, "", ()), (accepts.folders, [], ()),
    (accepts.commands, "make test", ("make test",)), (accepts.commands, "a, b && c", ("a, b && c",)), (accepts.commands, ["a", " b "], ("a", "b")),
    (accepts.commands, ["a", "a"], ("a", "a")), (accepts.commands, ["", " ", "a"], ("a",)), (accepts.commands, [], ()), (accepts.commands, "  ", ()),
    (accepts.commands, "x" * 4000, ("x" * 4000,)), (accepts.commands, ["a"] * 20, ("a",) * 20), (accepts.commands, "a\nb", ("a\nb",)),
    (accepts.paths, "node_modules, .cache/", ("node_modules", ".cache")), (accepts.paths, ["a/b", "a/b"], ("a/b",)),
    (accepts.paths, "..hidden/x..y", ("..hidden/x..y",)), (accepts.paths, ["with, comma"], ("with, comma",)), (accepts.paths, "", ()),
]  # fmt: skip


@pytest.mark.parametrize(("accept", "written", "value"), FORMS)
def test_what_fits_becomes_the_value(accept: Any, written: Any, value: Any) -> None:
    found = accept(written)
    assert (found, type(found)) == (value, type(value))


REFUSED: list[tuple[Any, Any, str]] = [
    *[(accepts.yes_or_no, word, "neither yes nor no") for word in ("", "y", "ja", "2", "yes no", "null", "none", "x" * 9999)],
    *[
        (accepts.amount, text, "not an amount")
        for text in ("", "0", "0.0", "-1", "+1", "1e3", "nan", "inf", "1,5", ".5", "5.", "$", "$$1", "1 $", "1234567", "1.23456", "٣")
    ],
    *[(accepts.folders, text, "not an absolute path") for text in ("opt", "./x", "~/tools", "/a:b", "/a\0b", ["/a", "../b"])],
    *[(accepts.commands, given, "At most 20 commands") for given in ("x" * 4001, "a\0b", ["a"] * 21, ["a", "b\0"])],
    *[
        (accepts.paths, text, "not a path inside")
        for text in ("/etc", "~/x", "~", "../x", "a/../../b", "a/..", "..", "a\0b", ["ok", "/etc"])
    ],
]  # fmt: skip


@pytest.mark.parametrize(("accept", "written", "words"), REFUSED)
def test_what_does_not_fit_is_refused_in_one_short_sentence(accept: Any, written: Any, words: str) -> None:
    """S06: whatever was written, its echo cannot draw on the terminal."""
    with pytest.raises(OperatorError, match=words) as caught:
        accept(written)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 120


@pytest.mark.parametrize(
    ("accept", "written", "typed"),
    [(accepts.amount, "free", "Write 2 or 0.50."), (accepts.folders, "x", "/opt/tools"), (accepts.commands, "x" * 5000, "script"), (accepts.paths, "/x", "root")],
)  # fmt: skip
def test_the_hint_says_what_to_write_instead(accept: Any, written: str, typed: str) -> None:
    with pytest.raises(OperatorError) as caught:
        accept(written)
    assert typed in caught.value.hint


@pytest.mark.parametrize("word", ["none", "None", "OFF", "never", " no "])
def test_an_amount_can_be_lifted(word: str) -> None:
    """A flag lifts what the file sets."""
    accept = accepts.or_none(accepts.amount)
    assert accept(word) is None
    assert accept("0.5") == 0.5
    with pytest.raises(OperatorError):
        accept("0")
