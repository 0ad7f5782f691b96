"""Plain command lines are understood without Typer, exactly as Typer would have understood them."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import parser, quick

if TYPE_CHECKING:
    from collections.abc import Callable

VERBS = {name: verb for module in quick.MODULES for name, verb in quick.verbs(module).items()}
PLAIN = [
    ("status", [], {}),
    ("status", ["--json"], {"json_": True}),
    ("list", ["-a", "--json"], {"all_": True, "json_": True}),
    ("show", ["a1b2"], {"target": "a1b2"}),
    ("logs", ["-f", "latest"], {"follow": True, "target": "latest"}),
    ("merge", ["a1b2", "--pick", "2", "--approve=12345678"], {"target": "a1b2", "pick": 2, "approve": "12345678"}),
    ("reject", ["a1b2", "it breaks the cache"], {"target": "a1b2", "why": "it breaks the cache"}),
    ("scout", ["why?", "--mind", "reflex"], {"task": "why?", "program": None, "mind": "reflex"}),
    ("scout", ["-", "--engine", "command", "--", "ls", "-l", "--", "x"],
     {"task": "-", "engine": "command", "program": ["ls", "-l", "--", "x"]}),
    ("fix", ["--agents", "3", "do it", "-d"], {"task": "do it", "program": None, "agents": 3, "detach": True}),
    ("gc", ["--keep-runs", "0"], {"keep_runs": 0}),
    ("tell", ["the tests are slow", "--to", "cedar"], {"text": "the tests are slow", "to": "cedar"}),
]  # fmt: skip
ODD = [
    [], ["--help"], ["requests"], ["requests", "list"], ["hollow", "backup", "x"], ["nope"], ["scout"],
    ["status", "--help"], ["status", "-h"], ["status", "--jso"], ["status", "--json=1"], ["status", "--json", "--json"],
    ["status", "x"], ["merge", "--pick", "0"], ["merge", "--pick", "two"], ["merge", "--pick", "-1"], ["merge", "--pick"],
    ["fix", "x", "-n", "17"], ["scout", "x", "--timeout", "--json"], ["list", "-aj"],
]  # fmt: skip


class Ears:
    """Typer's application with every verb replaced by one that only tells what it was called with."""

    def __init__(self) -> None:
        self.heard: dict[str, Any] | None = None
        app = parser.Group("agent", "", pretty_exceptions_enable=False)
        app.callback()(lambda: None)
        for name, verb in VERBS.items():
            app.add(name, self._told(verb))
        self._app = app

    def _told(self, verb: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(verb)
        def told(**values: Any) -> int:
            self.heard = values
            return 0

        return told

    def hear(self, line: list[str]) -> dict[str, Any] | None:
        """The values that the verb of *line* gets, or None where Typer refuses the line or shows help."""
        self.heard = None
        try:
            self._app(line, prog_name="agent", standalone_mode=False)
        except Exception as why:
            if not hasattr(why, "format_message"):
                raise
        return self.heard


EARS = Ears()


def full(verb: Callable[..., int], values: dict[str, Any]) -> dict[str, Any]:
    """*values* with the defaults of *verb*."""
    defaults = {name: each.default for name, each in inspect.signature(verb).parameters.items()}
    return {**defaults, **values}


def test_the_table_names_every_verb_of_its_modules_and_typer_has_them_all():
    for module, names in quick.MODULES.items():
        assert tuple(sorted(quick.verbs(module))) == tuple(sorted(names))
    known = typer.main.get_command(parser.app).commands  # type: ignore[attr-defined]
    assert known.keys() == VERBS.keys() | {"requests", "hollow"}


@pytest.mark.parametrize(("verb", "words", "values"), PLAIN, ids=lambda each: str(each)[:40])
def test_a_plain_line_is_understood(verb, words, values):
    assert quick.understood([verb, *words]) == (VERBS[verb], values)


@pytest.mark.parametrize("line", ODD, ids=" ".join)
def test_any_other_line_is_left_to_typer(line):
    assert quick.understood(line) is None


def test_whatever_a_verb_takes_is_of_a_kind_that_is_understood():
    for name, verb in VERBS.items():
        taken = quick.takes(verb)
        assert [each.name for each in taken] == list(inspect.signature(verb).parameters), name
        for each in taken:
            assert each.kind in (bool, str, str | None, int, int | None, list[str] | None), (name, each)
            # A flag without a name of its own would have a second one in Typer (--no-…).
            assert each.kind is not bool or each.word.names, (name, each)


WORDS = st.sampled_from(["", "-", "--", "x", "a b", "0", "1", "16", "17", "007", "²", "1_0", "99999999999", "-1", "-x", "--nope", "--json=1",
                         "\udcff", "=", "--="])  # fmt: skip


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """A verb and words of which about half are options of it."""
    verb = draw(st.sampled_from(sorted(VERBS)))
    names = [name for each in quick.takes(VERBS[verb]) for name in quick.names(each)] or ["--json"]
    option = st.sampled_from(names)
    valued = st.builds("{}={}".format, option, WORDS)
    return [verb, *draw(st.lists(st.one_of(option, valued, WORDS), max_size=6))]


@settings(max_examples=200, deadline=None)
@given(lines())
def test_what_is_understood_is_what_typer_understands(line):
    found = quick.understood(line)
    if found:
        verb, values = found
        assert full(verb, values) == EARS.hear(line)


def test_most_plain_lines_are_understood_at_all():
    for verb, words, values in PLAIN:
        assert EARS.hear([verb, *words]) == full(VERBS[verb], values)
