"""Tolerant reading of what a model wrote: thinking, fences, prose, half-right JSON. Nothing here raises (T159)."""

from __future__ import annotations

import ast
import json
import math
import re
import warnings

from essentials.patterns import late
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any, Final

_THINK_TAG: Final = late(r"<(/?)(?:think|thinking|thought)>", re.IGNORECASE)
_FENCE: Final = late(r"```[\w-]*\n(.*?)```", re.DOTALL)
_CALL_TAG: Final = late(r"<(tool_call|function_call)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TRAILING_COMMA: Final = late(r",(\s*[}\]])")

_MAX_STARTS: Final = 40
"""Opening braces at which an object is looked for; a wall of braces must not cost quadratic time."""

_MAX_LITERAL: Final = 20_000
"""Characters that are tried as a Python literal, whose parser is slow and keeps everything in memory."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as a model meant it."""

    name: str
    arguments: Any = field(default_factory=dict)
    """Usually an object; whatever the model gave instead is judged by the tool."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one message of a model amounts to: a tool call, or text (possibly empty) that is its answer."""

    call: Call | None = None
    answer: str = ""
    broken: bool = False
    """Whether it looks like a tool call that cannot be read."""


def strip_thinking(text: str) -> str:
    """Return *text* without what stands in think tags, also when only the closing or the opening tag is there."""
    kept = ""
    start, inside = 0, False
    # One pass over the tags: a regular expression for pairs takes quadratic time on a wall of opening tags.
    for tag in _THINK_TAG.finditer(text):
        if tag[1]:
            # Templates that put the opening tag into the prompt leave a lone closing one behind: all before is thought.
            kept = kept if inside else ""
            start, inside = tag.end(), False
        elif not inside:
            kept += text[start : tag.start()]
            start, inside = tag.start(), True
    # An opening tag without its end: cut off while thinking, or, after other words, a mention of the tag.
    return (kept + text[start:]).strip() if kept.strip() or not inside else ""


def find_object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in *text* (bare, fenced, or after prose), or None; small mistakes are mended."""
    for candidate in _candidates(text):
        found = _object(candidate)
        if found is not None:
            return found
    return None


def step(text: str, tools: Collection[str]) -> Step:
    """Return what the message *text* asks for, given the names of the *tools*.

    A call is an object with ``tool`` (or, for a known tool, ``name``) and ``arguments``, with or without tags, fences
    and prose around it; ``{"answer": …}`` is an answer, and so is any text without such an object.
    """
    said = strip_thinking(text)
    tagged = _CALL_TAG.search(said)
    found = find_object(tagged[2] if tagged else said)
    call = _call(found, tools) if found is not None else None
    if call is not None:
        return Step(call=call)
    if found is not None and "answer" in found and _mostly_object(said):
        return Step(answer=prose(found["answer"]))
    looks_like_call = said.startswith("{") and re.search(r'"(tool|answer)"\s*:', said[:200]) is not None
    return Step(broken=True) if tagged or looks_like_call else Step(answer=plain(said))


def plain(value: Any, depth: int = 12) -> Any:
    """Return the JSON *value* without what cannot be sent on: NaN, lone surrogates, more than *depth* levels."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    # Deeper than any tool's arguments; without a bound a model's brackets could exhaust the stack.
    if isinstance(value, (dict, list)) and depth == 0:
        return None
    if isinstance(value, dict):
        return {plain(str(key)): plain(inner, depth - 1) for key, inner in value.items()}
    return [plain(inner, depth - 1) for inner in value] if isinstance(value, list) else value


def prose(value: object) -> str:
    """Return *value* as text: a list becomes lines, null becomes nothing, an object stays JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return plain(value).strip()  # type: ignore[no-any-return]
    if isinstance(value, list):
        return "\n".join(filter(None, map(prose, value)))
    return json.dumps(value, ensure_ascii=False)


def _mostly_object(text: str) -> bool:
    # A report may quote an object with an "answer" in it; then the report is the answer.
    return text.lstrip("` \n\tjson").startswith("{") or text.count("\n") < 3  # noqa: PLR2004 - a line of prose or two


def _candidates(text: str) -> Iterator[str]:
    # The whole message first, then fences, then any brace: the surest reading wins.
    yield text
    yield from (found[1] for found in _FENCE.finditer(text))
    starts = [found.start() for found in re.finditer(r"\{", text)][:_MAX_STARTS]
    yield from (text[start:] for start in starts)


def _object(text: str) -> dict[str, Any] | None:
    text = text.strip()
    if not text.startswith("{"):
        return None
    # As written first: the mended text could differ inside a string.
    for attempt in (text, _TRAILING_COMMA.sub(r"\1", text)):
        try:
            # strict=False: models write raw line feeds inside strings. raw_decode: prose may follow.
            value, _ = json.JSONDecoder(strict=False).raw_decode(attempt)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return _python_literal(text)


def _python_literal(text: str) -> dict[str, Any] | None:
    """Return the object that *text* is in Python's spelling (single quotes, None), or None."""
    if len(text) > _MAX_LITERAL:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model's '\\d' is not worth a warning about escapes
            literal = ast.literal_eval(text)
        # Through JSON, because a literal may hold sets, bytes or numbers as keys.
        value = json.loads(json.dumps(literal))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input")
"""Where templates put a call's arguments, the usual one first."""


def _call(found: dict[str, Any], tools: Collection[str]) -> Call | None:
    found = _innermost(found)
    name = found.get("tool") or found.get("name") or found.get("function")
    if not isinstance(name, str) or not name.strip():
        return None
    # A quoted package.json has a "name" too: without the word "tool" it must be the name of one.
    if "tool" not in found and name.replace("_", "").casefold() not in {tool.casefold() for tool in tools}:
        return None
    arguments: Any = next((found[key] for key in _ARGUMENT_KEYS if found.get(key) is not None), {})
    return Call(plain(name.strip()), plain(arguments))


def _innermost(found: dict[str, Any]) -> dict[str, Any]:
    """The object that names the tool: models wrap it as other servers do, in ``tool_calls`` and ``function``."""
    listed = found.get("tool_calls")
    if isinstance(listed, list) and listed and isinstance(listed[0], dict):
        found = listed[0]
    inner = found.get("function")
    return inner if isinstance(inner, dict) else found
