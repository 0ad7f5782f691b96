from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.grammar import PATTERNS
from hollow.kinds import Kind, is_code, kind, language
from hollow.symbols import clipped, docs, enclosing, outline, symbols

SAMPLES = {
    "javascript": (
        ("// Opens.\nexport async function openDoor(a) {\n}\nclass Door extends Wall {\n  close(now) {\n  }\n}\n"
         "const lock = (x) => x;\nexports.knock = function () {};\ninterface Bell {\n}\n"),
        ["openDoor", "Door", "close", "lock", "knock", "Bell"]),
    "go": ("// Serve serves.\nfunc (s *Server) Serve(l net.Listener) error {\n}\ntype Server struct {\n}\nfunc main() {\n}\n",
           ["Serve", "Server", "main"]),
    "rust": ("/// Parses.\npub(crate) async fn parse<T>(x: T) {\n}\npub struct Node {\n}\nimpl Display for Node {\n}\nmacro_rules! row {\n}\n",
             ["parse", "Node", "row"]),
    "java": ("public final class Map<K> {\n  /** Puts. */\n  public static <T> List<T> put(T key) {\n  }\n  enum Mode {\n  }\n}\n",
             ["Map", "put", "Mode"]),
    "c": ("/* Adds. */\nstatic int add_all(int a,\n        int b)\n{\n}\nstruct point {\n};\n#define LIMIT 3\nvoid Foo::bar(int x) {\n}\n",
          ["add_all", "point", "LIMIT", "Foo::bar"]),
    "csharp": ("namespace A.B {\n  public sealed class Box {\n    public async Task<int> OpenAsync(int x) {\n    }\n  }\n}\n",
               ["A.B", "Box", "OpenAsync"]),
    "kotlin": ("data class Point(val x: Int)\nsuspend fun String.load(a: Int): Int {\n}\nobject Cache\n", ["Point", "load", "Cache"]),
    "swift": ("public struct Point {\n  mutating func move(by: Int) {\n  }\n}\nextension Point {\n}\n", ["Point", "move"]),
    "scala": ("case class Leaf(a: Int)\n  override def walk(x: Int) = x\n", ["Leaf", "walk"]),
    "ruby": ("module Shop\n  class Cart < Base\n    # Adds.\n    def self.add!(x)\n    end\n  end\nend\n", ["Shop", "Cart", "add!"]),
    "php": ("<?php\nfinal class Cart {\n  public static function add($x) {\n  }\n}\n", ["Cart", "add"]),
    "shell": ("# Builds.\nbuild_all() {\n}\nfunction clean {\n}\n", ["build_all", "clean"]),
    "sql": ("create table if not exists users (\n);\nCREATE OR REPLACE VIEW active AS SELECT 1;\n", ["users", "active"]),
    "lua": ("local function go_on(x)\nend\nfunction M.stop()\nend\n", ["go_on", "stop"]),
    "perl": ("package Foo::Bar;\nsub run_it {\n}\n", ["Foo::Bar", "run_it"]),
    "elixir": ("defmodule Shop.Cart do\n  def add(x) do\n  end\nend\n", ["Shop.Cart", "add"]),
    "markdown": ("# The shop\n\ntext\n\n## Opening hours\n", ["The shop", "Opening hours"]),
    "rst": ("The shop\n========\n\ntext\n", ["The shop"]),
    "config": ("[tool.ruff]\nline = 1\n[[bench]]\n", ["tool.ruff", "bench"]),
    "make": ("build: a\n\tcc\nX := 1\n", ["build"]),
}  # fmt: skip


@pytest.mark.parametrize("spoken", sorted(SAMPLES))
def test_definitions_of_every_language_are_found(spoken):
    text, expected = SAMPLES[spoken]
    found = {symbol.name: symbol.line for symbol in outline(text, spoken)}
    assert set(expected) <= set(found)
    assert all(
        expected_name.split("::")[-1] in text.split("\n")[found[expected_name] - 1] for expected_name in expected
    )


def test_every_language_with_patterns_has_a_sample():
    assert set(PATTERNS) - {"python"} == set(SAMPLES)


def test_control_flow_is_no_definition():
    assert outline("  if (a) {\n  for (;;) {\n  return call(x) {\n", "javascript") == []
    assert [symbol.name for symbol in outline("if (a)\nwhile (b)\nreturn (c)\n", "c")] == []


PYTHON = '''"""Module."""

LIMIT: int = 3


class Queue:
    """A queue."""

    size = 0

    async def put(self, item):
        """Put it in.

        More.
        """
        def inner():
            pass


if True:
    def hidden():
        pass
'''


def test_python_is_parsed_with_qualified_names_lines_and_docstrings():
    found = {symbol.name: symbol for symbol in symbols(PYTHON, "python")}
    assert list(found) == ["LIMIT", "Queue", "Queue.size", "Queue.put", "Queue.put.inner", "hidden"]
    assert (found["Queue.put"].line, found["Queue.put"].end, found["Queue.put"].doc) == (11, 17, "Put it in.")
    assert found["Queue"].kind == "class"


@pytest.mark.parametrize(
    "broken", ["def half(:\n  pass\ndef whole():\n    pass\n", "def whole():\n\tprint 'x'\n", "def whole(): pass\0"]
)
def test_python_that_does_not_parse_falls_back_to_patterns(broken):
    assert "whole" in [symbol.name for symbol in symbols(broken, "python")]


def test_a_deeply_nested_text_falls_back_too():
    assert [symbol.name for symbol in symbols("def f():\n    x = " + "-" * 100_000 + "1\n", "python")] == ["f"]


def test_an_invalid_escape_warns_nobody():
    assert [symbol.name for symbol in symbols('def f():\n    return "\\d"\n', "python")] == ["f"]


def test_the_comment_above_a_definition_is_its_documentation():
    found = {symbol.name: symbol.doc for symbol in symbols(SAMPLES["go"][0], "go")}
    assert found["Serve"] == "Serve serves."
    assert {symbol.name: symbol.doc for symbol in symbols(SAMPLES["shell"][0], "shell")}["build_all"] == "Builds."
    assert {symbol.name: symbol.doc for symbol in symbols(SAMPLES["java"][0], "java")}["put"] == "Puts."


def test_docs_gathers_what_is_said_about_the_code():
    assert "A queue." in docs(PYTHON, "python")
    assert "Puts." in docs(SAMPLES["java"][0], "java")
    assert "Adds." in docs("  # Adds.\n  # Much.\n  def add(x)\n  end\n", "ruby")
    assert "second" in docs("// first\n// second\nint x;\n", "c")


def test_the_innermost_symbol_encloses():
    found = symbols(PYTHON, "python")
    assert enclosing(found, 12).name == "Queue.put"
    assert enclosing(found, 7).name == "Queue"
    assert enclosing(found, 1) is None


def test_long_lines_are_emptied_and_counted():
    text = "def a(): pass\n" + "x" * 5000 + "\ndef b(): pass\n"
    assert clipped(text).count("\n") == text.count("\n")
    assert [(symbol.name, symbol.line) for symbol in outline(text, "python")] == [("a", 1), ("b", 3)]


@pytest.mark.parametrize("spoken", sorted(PATTERNS))
def test_no_input_makes_the_patterns_slow(spoken):
    begun = time.process_time()
    for piece in ("a ", " ", "<", "a<", "public ", "w.", "(", "*", "async ", "::a", "a\n", "[", "\t"):
        outline((piece * 190)[:390] + "\n" + (piece * 20_000), spoken)
    assert time.process_time() - begun < 8


@settings(max_examples=40)
@given(st.text(max_size=300), st.sampled_from(sorted(PATTERNS)))
def test_any_text_has_symbols_within_its_lines(text, spoken):
    lines = text.count("\n") + 1
    assert all(1 <= symbol.line <= symbol.end <= lines for symbol in outline(text, spoken))
    assert docs(text, spoken) is not None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/a.py", Kind.SOURCE), ("flask/testing.py", Kind.SOURCE), ("tests/test_a.py", Kind.TEST), ("a_test.go", Kind.TEST),
        ("web/a.spec.ts", Kind.TEST), ("AppTests.cs", Kind.TEST), (".github/workflows/tests.yaml", Kind.CONFIG),
        ("docs/a.rst", Kind.DOC), ("docs/conf.py", Kind.DOC), ("CHANGES.rst", Kind.DOC), ("examples/a.py", Kind.EXAMPLE),
        ("vendor/a.go", Kind.GENERATED), ("package-lock.json", Kind.GENERATED), ("a.min.js", Kind.GENERATED),
        ("pyproject.toml", Kind.CONFIG), ("LICENSE", Kind.OTHER), ("Makefile", Kind.CONFIG), ("latest/contest.py", Kind.SOURCE),
    ],
)  # fmt: skip
def test_a_path_tells_the_sort_of_file(path, expected):
    assert kind(path) is expected


def test_a_path_tells_the_language():
    assert [language(path) for path in ("a.TSX", "Makefile", "x", "a.unknown")] == ["javascript", "make", "", ""]
    assert is_code("tests/test_a.py")
    assert not is_code("a.md")
