"""Whether what a goal left has substance: there, long enough, no placeholders, and readable by its own grammar."""

from __future__ import annotations

import ast
import json
import re
import warnings

from essentials.patterns import late
from hollow.substrate.factcheck import AIRLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Final

    from hollow.substrate.model import Goal

SUBSTANCE: Final = 200
"""Bytes that a document needs, any white space between two words counted as one (T87, S31)."""
MEMORY_SUBSTANCE: Final = 80
"""Characters that a value needs where a goal left nothing but values in its memory (S31, W18)."""
LONGEST: Final = 256 * 1024
"""Characters of a document at most: nobody reads a longer one, and judging it would take for ever."""
LONGEST_TOML: Final = 32 * 1024
"""The same for TOML: a key of many dots takes the library's parser quadratic time."""

_PLACEHOLDERS: Final = (
    (late(r"\b(?:TO[D]O|FIX[M]E|TBD)\b"), "an unfinished mark"),
    (late(r"\blorem ipsum\b", re.IGNORECASE), "filler text"),
    (late(r"\bplaceholders?\b", re.IGNORECASE), "a placeholder"),
    (late(r"^[ \t>*+-]*\[?(?:\.\.\.|…)\]?[ \t]*$", re.MULTILINE), "an ellipsis where text should be"),
    (late(r"<\s*insert\b|\[\s*insert\b|<your\b", re.IGNORECASE), "a gap to be filled in"),
    (late(r"\b(?:your (?:code|text) here|to be (?:written|determined|filled in)|coming soon)\b", re.IGNORECASE),
     "a promise instead of text"),
    (late(r"\braise NotImplemented[E]rror\b"), "code that only says it is not written"),
)  # fmt: skip
"""What nobody leaves in finished work, and how it is named to whoever did (S31).

A letter in brackets keeps a pattern from matching itself: our own sources are searched for such marks, too.
"""

# A line at a time, and nothing that begins with a repetition: an agent's text must not cost quadratic time.
_FENCE: Final = late(r"[ \t]*(```|~~~)")
_INLINE: Final = late(r"`[^`]+`")
_CITING: Final = late(r"[\w/.-]\.\w+:\d")
_OWN: Final = late(r"(?<![\w./@+-])(?:/agentOS/)?(?:workspace/[\w-]+|design)/[\w./@+-]*\w")
_VERB: Final = late(
    r"\b(?:(?P<write>writ\w+|creat\w+|draft\w*|produc\w+|sav\w+|document|record|put|into|extend|updat\w+|fill|build|in|to|as)"
    r"|read\w*|review\w*|examin\w+|compar\w+|check\w*|stud\w+|quot\w+|cit\w+|verif\w+|from|of|on|with|look|analy\w+)\b",
    re.IGNORECASE,
)
"""Words before a path in an objective: those that announce a result, and those that announce a source."""


def check(goal: Goal, read: Callable[[str], str | None], value: Callable[[str], str | None]) -> str | None:
    """Return the sentence that names what is wrong with what *goal* left, or None (T87, S31).

    *read* gives the text of a file of the airlock, *value* that of a key of the agent's memory, each None where there
    is none.
    """
    if missed := _undelivered(goal):
        return missed
    for each in goal.artifacts:
        if wrong := file_fault(each.path, read(each.path), goal.objective):
            return wrong
    return _memory_fault(goal, value)


def file_fault(path: str, text: str | None, objective: str = "") -> str | None:
    """Return what is wrong with the file *path* that holds *text*, or None.

    What *objective* speaks of itself is no placeholder.
    """
    if text is None:
        return f"{path} does not exist."
    if not text.strip():
        return f"{path} is empty."
    suffix = path.rsplit(".", 1)[-1].lower() if "." in path else ""
    most = LONGEST_TOML if suffix == "toml" else LONGEST
    if len(text) > most:
        return f"{path} has {len(text)} characters; more than {most} is nothing that somebody reads."
    if suffix in _GRAMMARS:
        return _grammar_fault(path, suffix, text) or _placeholder(path, text, objective)
    size = len(" ".join(text.split()).encode("utf-8", "replace"))
    if size < SUBSTANCE:
        return f"{path} has {size} bytes of text; less than {SUBSTANCE} is no document."
    return _placeholder(path, _unquoted(text), objective)


def _undelivered(goal: Goal) -> str | None:
    """A goal that says which file it will write must have written one of those it says (W18)."""
    wanted = declared(goal.objective, goal.agent)
    if not wanted or any(each.path in wanted for each in goal.artifacts):
        return None
    return f"The goal names {wanted[0]}, and it has not written that file."


def declared(objective: str, agent: str) -> tuple[str, ...]:
    """Return the files below the own folders of *agent* that *objective* says will be written, as it names them."""
    found = []
    for hit in _OWN.finditer(objective):
        path = hit[0].removeprefix(AIRLOCK)
        verbs = list(_VERB.finditer(objective, 0, hit.start()))
        own = path.startswith(("design/", f"workspace/{agent}/"))
        # The word nearest before it decides: "read design/a.md and write workspace/cedar/b.md".
        if own and "." in path.rsplit("/", 1)[-1] and verbs and verbs[-1]["write"]:
            found.append(path)
    return tuple(dict.fromkeys(found))


def _unquoted(text: str) -> str:
    """*text* without what it quotes: fenced blocks, inline code, quoted lines, lines that cite a place."""
    plain = (_INLINE.sub("", line) for line in _outside_fences(text) if not line.lstrip().startswith(">"))
    return "\n".join(line for line in plain if not _CITING.search(line))


def _outside_fences(text: str) -> Iterator[str]:
    """The lines of *text* that stand in no fenced block; a fence that nothing closes opens none."""
    lines = text.splitlines()
    marks = [found[1] if (found := _FENCE.match(line)) else "" for line in lines]
    last = {mark: number for number, mark in enumerate(marks) if mark}
    opened = ""
    for number, (line, mark) in enumerate(zip(lines, marks, strict=True)):
        if opened:
            opened = "" if mark == opened else opened
        elif mark and last[mark] > number:
            opened = mark
        else:
            yield line


def _placeholder(path: str, text: str, objective: str) -> str | None:
    for pattern, name in _PLACEHOLDERS:
        found = pattern.search(text)
        # A goal about such marks may name them.
        if found and not pattern.search(objective):
            return f"{path} has {name}: {' '.join(found[0].split())[:60]!r}."
    return None


def _grammar_fault(path: str, suffix: str, text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an agent's "\d" is not worth a warning of ours
            parsed = _GRAMMARS[suffix](text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as why:
        return f"{path} cannot be read as {suffix}: {' '.join(str(why).split())[:120]}."
    if isinstance(parsed, ast.Module):
        return _python_fault(path, parsed)
    return None if parsed not in (None, "", [], {}) else f"{path} holds nothing."


def _toml(text: str) -> dict[str, Any]:
    import tomllib  # here: few products are written in it

    return tomllib.loads(text)


_GRAMMARS: Final[Mapping[str, Callable[[str], Any]]] = {
    "py": ast.parse,
    "json": json.loads,
    "toml": _toml,
}
"""Suffix to what reads it; only the standard library's."""


def _python_fault(path: str, tree: ast.Module) -> str | None:
    if all(_says_nothing(each) for each in tree.body):
        return f"{path} defines nothing and does nothing."
    promised = {id(each) for node in ast.walk(tree) if _is_protocol(node) for each in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _hollow(node) and id(node) not in promised:
            return f"{path} has a function without a body: {node.name} at line {node.lineno}."
    return None


def _says_nothing(node: ast.stmt) -> bool:
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or isinstance(node, ast.Pass | ast.Import | ast.ImportFrom)


def _is_protocol(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)


def _hollow(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is only its docstring, ``...`` or ``pass``, and no decorator makes that right."""
    return not node.decorator_list and all(
        isinstance(each, ast.Pass) or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in node.body
    )


def _memory_fault(goal: Goal, value: Callable[[str], str | None]) -> str | None:
    keys = [each.partition(":")[2] for each in goal.outputs if each.startswith("memory:")]
    values = {key: (value(key) or "").strip() for key in keys}
    empty = next((key for key in keys if not values[key]), None)
    if empty is not None:
        return f"The memory has nothing under {empty!r}."
    if goal.artifacts or not keys or len(keys) < len(goal.outputs):
        return None
    longest = max(keys, key=lambda key: len(values[key]))
    if len(values[longest]) < MEMORY_SUBSTANCE:
        size = len(values[longest])
        return f"The value of {longest!r} has {size} characters; less than {MEMORY_SUBSTANCE} says too little."
    return _placeholder(f"the value of {longest!r}", _unquoted(values[longest]), goal.objective)
