"""What the code of a tool must look like: judged as tokens and as a tree, never by running it."""

from __future__ import annotations

import ast
import contextlib
import io
import tokenize
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Final

_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)

# In halves, because our own tests search our sources for these very words.
_UNFINISHED: Final = "# TO" + "DO"
_UNWRITTEN: Final = "Not" + "ImplementedError"

_COMMENTS: Final = (
    (_UNFINISHED, "placeholder comment"),
    ("# placeholder", "explicit placeholder"),
)
_PATTERNS: Final = (
    (("...",), "ellipsis stub"),
    (("pass", "\n", "pass"), "double-pass body"),
    (("{", "ok", ":", "true"), "JSON stub masquerading as Python"),
    (("raise", _UNWRITTEN), "unimplemented skeleton"),
)
"""With the two comments above the six rejection patterns of seed 002. They are looked for in tokens: a search of the
text would reject ``"loading..."`` too (C5, T94)."""

_LAYOUT: Final = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER})

_DECORATORS: Final = frozenset({
    "cache", "lru_cache", "dataclass", "contextmanager", "total_ordering", "staticmethod", "classmethod", "property",
})  # fmt: skip
"""Last part of the name of a decorator that may be called with arguments: known to do nothing to the world."""

_RUNS: Final = (
    ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp, ast.JoinedStr,
)  # fmt: skip
"""Expressions that do something; one of them outside of a function would be done when the file is loaded (W10)."""


class Unparsable(Exception):  # noqa: N818 - an answer to the agent, not an error of ours
    """The text is no Python; the message is what Python says, beginning with ``SyntaxError:`` (T95)."""


def pattern_in(code: str) -> str | None:
    """Return what *code* is a sign of, if one of the six rejection patterns is in it; None for code that has none.

    Text that cannot be split into tokens has none: it is no Python, and :func:`parsed` says so.
    """
    try:
        found = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    for token in found:
        if token.type == tokenize.COMMENT:
            for mark, reason in _COMMENTS:
                if mark in token.string:
                    return reason
    words = [_word(each) for each in found if each.type not in _LAYOUT and each.type != tokenize.COMMENT]
    return next((reason for pattern, reason in _PATTERNS if _holds(words, pattern)), None)


def _word(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NEWLINE:
        return "\n"
    if token.type == tokenize.STRING:
        # Only a whole string may stand for a word of a pattern; the dots of a text never do.
        inner = token.string.strip("\"'")
        return inner if inner == "ok" else "text"
    return token.string


def _holds(words: Sequence[str], pattern: tuple[str, ...]) -> bool:
    size = len(pattern)
    return any(tuple(words[at : at + size]) == pattern for at in range(len(words) - size + 1))


def parsed(code: str) -> ast.Module:
    """Return the tree of *code*; raises :class:`Unparsable`."""
    with _told_as_python_does():
        return ast.parse(code)


def compilable(code: str) -> None:
    """Raise :class:`Unparsable` where a tree of *code* exists but no program, such as a break outside of a loop."""
    with _told_as_python_does():
        compile(code, "tool", "exec", dont_inherit=True)


@contextlib.contextmanager
def _told_as_python_does() -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            # An unknown escape is the tool's own business; said here, it would be said as if we had written it.
            warnings.simplefilter("ignore")
            yield
    except SyntaxError as why:
        raise Unparsable(f"SyntaxError: {why.msg} (line {why.lineno})") from None
    except (ValueError, RecursionError, MemoryError) as why:
        raise Unparsable(f"SyntaxError: {why or 'nested too deeply'}") from None


def wrapped(name: str, code: str) -> str:
    """Return *code* with a function in it as it is, and other code as the body of ``def name(**kwargs)`` (C10, T100).

    The tree decides, not how the text begins: imports may stand before a function. Raises :class:`Unparsable`.
    """
    tree = parsed(code)
    if not tree.body or any(isinstance(each, _FUNCTION) for each in tree.body):
        return code
    function = ast.parse(f"def {name}(**kwargs):\n    return None").body[0]
    assert isinstance(function, ast.FunctionDef)  # noqa: S101 - it was written one line above
    # Through the tree, because indenting the text would change strings that run over several lines.
    function.body = tree.body
    return ast.unparse(ast.Module(body=[function], type_ignores=[])) + "\n"


def stub(name: str, description: str) -> str:
    """Return the code of a tool that has none: it says what it was called with, and nothing else (C9, T97)."""
    # By repr: a quote in a description must not end the string and begin code.
    return (
        f"def {name}(**kwargs):\n"
        f'    return {{"ok": True, "capability": {name!r}, "description": {description!r}, '
        f'"kwargs": str(kwargs)[:200]}}\n'
    )


def outside_fault(tree: ast.Module) -> str | None:
    """Return why *tree* may not be loaded: outside of functions only imports, definitions, constants (T108)."""
    return next(filter(None, map(_statement_fault, tree.body)), None)


def _statement_fault(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Pass) or _is_text(node):
        return None
    if isinstance(node, _FUNCTION):
        return _evaluated_fault(node, _of_function(node)) or _decorator_fault(node)
    if isinstance(node, ast.ClassDef):
        return _class_fault(node)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        parts = [node.value, node.annotation] if isinstance(node, ast.AnnAssign) else [node.value]
        return _evaluated_fault(node, [*parts, *_targets(node)])
    return f"line {node.lineno}: only imports, functions, classes and constants may stand outside of functions"


def _class_fault(node: ast.ClassDef) -> str | None:
    at_once = [*node.bases, *(each.value for each in node.keywords)]
    inside = next(filter(None, map(_statement_fault, node.body)), None)
    return _evaluated_fault(node, at_once) or _decorator_fault(node) or inside


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return [node.target] if isinstance(node, ast.AnnAssign) else node.targets


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr | None]:
    """What is evaluated when the function is defined: defaults and annotations."""
    given = node.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [*given.defaults, *given.kw_defaults, *(each.annotation for each in arguments if each), node.returns]


def _evaluated_fault(node: ast.stmt, expressions: Sequence[ast.expr | None]) -> str | None:
    for expression in expressions:
        if expression is not None and any(isinstance(each, _RUNS) for each in ast.walk(expression)):
            return f"line {node.lineno}: what is computed when the file is loaded must stand inside of a function"
    return None


def _decorator_fault(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str | None:
    for each in node.decorator_list:
        called = each.func if isinstance(each, ast.Call) else each
        given = [*each.args, *(word.value for word in each.keywords)] if isinstance(each, ast.Call) else []
        last = ast.unparse(called).rpartition(".")[2]
        if last not in _DECORATORS or _evaluated_fault(node, [called, *given]):
            return f"line {node.lineno}: a decorator runs when the file is loaded, and {last} may do anything"
    return None


def functions_fault(tree: ast.Module, name: str) -> str | None:
    """Return what is wrong with the functions of *tree*, whose tool is called *name* (C8, T96); None if nothing is.

    All functions at the top are judged, not the tool's alone: a skeleton stays one beside a working function.
    """
    functions = [each for each in tree.body if isinstance(each, _FUNCTION)]
    if not functions:
        return "there is no code in it"
    for each in functions:
        if fault := _function_fault(each):
            return fault
    entry = _named(tree, name)
    if entry is None:
        return f"there is no function {name}; the function must have the name of the tool"
    if isinstance(entry, ast.AsyncFunctionDef):
        return f"{name} is an async function; nobody would await it"
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own(entry)):
        return f"{name} is a generator; return a list instead"
    return None


def _function_fault(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    arguments = [*function.args.posonlyargs, *function.args.args]
    if arguments and arguments[0].arg == "self":
        return f"{function.name} takes self: it is a method without its class"
    body = function.body[1:] if _is_text(function.body[0]) else function.body
    if not body:
        return f"{function.name} is a docstring only"
    if all(isinstance(each, ast.Pass) for each in body):
        return f"{function.name} does nothing but pass"
    inner = (each for each in _own(function) if isinstance(each, _FUNCTION))
    unused = next((each.name for each in inner if _never_used(each, function)), None)
    return f"{unused} inside of {function.name} is never called" if unused else None


def _never_used(inner: ast.FunctionDef | ast.AsyncFunctionDef, outer: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether nothing in *outer*, *inner* itself apart, speaks of *inner*: all the work hidden where nobody goes."""
    if inner.decorator_list:
        return False
    own = set(map(id, ast.walk(inner)))
    used = (node for node in ast.walk(outer) if isinstance(node, ast.Name) and id(node) not in own)
    return all(node.id != inner.name for node in used)


def returns_value(tree: ast.Module, name: str) -> bool:
    """Whether the function *name* of *tree* returns something on some path; if not, it is a null stub (T106)."""
    entry = _named(tree, name)
    given = [node.value for node in _own(entry) if isinstance(node, ast.Return)] if entry else []
    return any(value is not None and not (isinstance(value, ast.Constant) and value.value is None) for value in given)


def reads_arguments(tree: ast.Module, name: str) -> bool:
    """Whether the function *name* of *tree* has parameters and looks at one of them.

    What such a function raises without arguments says nothing against it; of any other it is the last word.
    """
    entry = _named(tree, name)
    if entry is None:
        return False
    given = entry.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    names = {each.arg for each in every if each}
    return any(isinstance(node, ast.Name) and node.id in names for each in entry.body for node in ast.walk(each))


def summary(tree: ast.Module, name: str) -> str:
    """Return the first line of the docstring of the function *name*, or nothing."""
    entry = _named(tree, name)
    return ((ast.get_docstring(entry) or "") if entry else "").partition("\n")[0].strip()


def _named(tree: ast.Module, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    # The last one of a name is the one that a caller gets.
    return next((each for each in reversed(tree.body) if isinstance(each, _FUNCTION) and each.name == name), None)


def _own(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """What belongs to *function* itself: inner functions and classes are met, but not entered."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (*_FUNCTION, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
