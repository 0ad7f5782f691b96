"""Symbols of a text: name, line, kind and what its docstring or leading comment says."""

from __future__ import annotations

import ast
import re
import warnings

from essentials.patterns import late
from essentials.records import dataclass
from hollow.grammar import COMMENT, PATTERNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

# More are generated tables; sorting and showing them would take longer than reading the file.
_MOST_SYMBOLS: Final = 4000
# Longer lines are data or minified code, no definition that a person wrote. They are emptied before any pattern sees
# them: on a minified line of a megabyte a pattern with two repeats takes minutes.
_LONG: Final = late(r"^[^\n]{400,}$", re.MULTILINE)
# Docstrings by pattern, not by parsing: the index reads every file once, and half-written ones too.
_PYTHON_DOC: Final = late(r'^[^\S\n]*[rRuUbB]{0,2}("""|\'\'\')(.*?)\1', re.MULTILINE | re.DOTALL)
_BLOCK_DOC: Final = late(r"/\*\*?(.*?)\*/", re.DOTALL)
_LINE_DOC: Final = late(r"(?:^[^\S\n]*//[^\n]*\n)+", re.MULTILINE)
_HASH_DOC: Final = late(r"(?:^[^\S\n]*#[^\n]*\n)+(?=[^\S\n]*(?:def|class|module|sub|\w+\s*\(\))\b)", re.MULTILINE)
_LEAST_DOC: Final = 2
"""Lines: one comment line explains a statement, several explain what follows."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition in a text."""

    name: str
    """Qualified where the language is parsed (``Queue.put``), else the bare name."""
    kind: str
    """The word that defines it (``def``, ``class``, ``func``, …), "" where there is none."""
    line: int
    """1-based."""
    end: int
    """Last line, 1-based; where it is not known, the line before the next symbol."""
    doc: str = ""
    """First line of the docstring or of the comment above."""


def clipped(text: str) -> str:
    """Return *text* with lines of 400 characters and more emptied; line numbers stay."""
    return _LONG.sub("", text) if _LONG.search(text) else text


def outline(text: str, language: str) -> list[Symbol]:
    """Return the symbols of *text* in order of line, found by patterns; "" or an unknown language has none.

    Quick and never wrong about the line, but without qualified names: what the index is filled with.
    """
    text = clipped(text)
    found = [hit for pattern in PATTERNS.get(language, ()) for hit in pattern.finditer(text)]
    starts = _LineNumbers(text)
    # A set, because two patterns of a language may see the same definition.
    rows = sorted({(starts.of(hit.start("name")), hit["name"].strip(), _kind(hit)) for hit in found})[:_MOST_SYMBOLS]
    ends = [following[0] - 1 for following in rows[1:]] + [starts.last]
    return [Symbol(name, kind, line, max(line, end)) for (line, name, kind), end in zip(rows, ends, strict=False)]


def symbols(text: str, language: str) -> list[Symbol]:
    """Return the symbols of *text* with docstrings or leading comments, in order of line.

    Python is parsed; a text that does not parse (another version, a half-written file) falls back to patterns.
    """
    parsed = _python(text) if language == "python" else None
    if parsed is not None:
        return parsed
    lines = text.split("\n")
    mark = COMMENT.get(language, "//")
    return [
        Symbol(found.name, found.kind, found.line, found.end, _comment_above(lines, found.line, mark))
        for found in outline(text, language)
    ]


def docs(text: str, language: str) -> str:
    """Return what the docstrings and documentation comments of *text* say, joined."""
    text = clipped(text)
    if language == "python":
        return "\n".join(hit[2] for hit in _PYTHON_DOC.finditer(text))
    if language in COMMENT:
        return "\n".join(hit[0] for hit in _HASH_DOC.finditer(text))
    lines = [hit[0] for hit in _LINE_DOC.finditer(text) if hit[0].count("\n") >= _LEAST_DOC]
    return "\n".join([*(hit[1] for hit in _BLOCK_DOC.finditer(text)), *lines])


def enclosing(found: list[Symbol], line: int) -> Symbol | None:
    """Return the innermost symbol of *found* that contains *line* (1-based), or None."""
    # The innermost is the one that starts last; of two that start alike, the one that ends first.
    around = [symbol for symbol in found if symbol.line <= line <= symbol.end]
    return max(around, key=lambda symbol: (symbol.line, -symbol.end), default=None)


class _LineNumbers:
    """Line numbers of offsets in a text."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(hit.end() for hit in re.finditer("\n", text))]
        self.last = len(self._starts)

    def of(self, offset: int) -> int:
        """Number of the line, from 1, that holds the character at *offset*."""
        from bisect import bisect_right

        return bisect_right(self._starts, offset)


def _kind(hit: re.Match[str]) -> str:
    return hit.groupdict().get("kind") or ""


def _python(text: str) -> list[Symbol] | None:
    """Symbols of a Python text by its syntax tree; None if it does not parse."""
    try:
        with warnings.catch_warnings():
            # A stranger's "\d" in a plain string is not ours to warn about.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        return sorted(_walk(tree, ""), key=lambda symbol: symbol.line)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _walk(node: ast.AST, prefix: str) -> Iterator[Symbol]:
    """Definitions below *node*, functions inside functions included; *prefix* ends with a dot or is empty."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = prefix + child.name
            kind = "class" if isinstance(child, ast.ClassDef) else "def"
            # Not cleaned: that is for the lines after the first, and it imports `inspect`.
            doc = (ast.get_docstring(child, clean=False) or "").expandtabs().strip().split("\n", 1)[0]
            yield Symbol(name, kind, child.lineno, child.end_lineno or child.lineno, doc)
            yield from _walk(child, f"{name}.")
        # A local variable is no place that anybody asks for.
        elif isinstance(child, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Module | ast.ClassDef):
            yield from _assigned(child, prefix)
        # Definitions also stand under if, try, with and match; expressions hold none and are not walked.
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _walk(child, prefix)


def _assigned(node: ast.Assign | ast.AnnAssign, prefix: str) -> Iterator[Symbol]:
    """Names that a module or class binds by assignment."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        if isinstance(target, ast.Name):
            yield Symbol(prefix + target.id, "", node.lineno, node.end_lineno or node.lineno)


def _comment_above(lines: list[str], line: int, mark: str) -> str:
    """First line of the comment that ends right above *line* (1-based), without its marks."""
    first, at = "", line - 2
    while at >= 0 and line - at < 60 and _is_comment(lines[at].strip(), mark):  # noqa: PLR2004 - a screenful
        first = lines[at].strip().strip("/*#-! \t") or first
        at -= 1
    return first


def _is_comment(stripped: str, mark: str) -> bool:
    return stripped.startswith(mark) or (mark == "//" and stripped.startswith(("/*", "*")))
