"""The manifest: a tool's name, JSON schema and argument rules, all read from the function that is the tool."""

from __future__ import annotations

import json
import math

from essentials.patterns import late
from essentials.records import dataclass
from hollow.confine import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

_ALIASES: Final = {
    "file": "path",
    "file_path": "path",
    "filepath": "path",
    "filename": "path",
    "dir": "path",
    "directory": "path",
    "folder": "path",
    "query": "pattern",
    "regex": "pattern",
    "search": "pattern",
    "include": "glob",
    "commit": "revision",
    "rev": "revision",
    "start": "offset",
    "count": "limit",
    "old": "old_text",
    "old_string": "old_text",
    "old_str": "old_text",
    "find": "old_text",
    "new": "new_text",
    "new_string": "new_text",
    "new_str": "new_text",
    "replace": "new_text",
    "replacement": "new_text",
    "all": "replace_all",
    "text": "content",
    "contents": "content",
    "file_text": "content",
    "cmd": "command",
    "script": "command",
    "seconds": "timeout",
    "timeout_seconds": "timeout",
}
"""What models trained on other tools call our parameters."""

_JSON_TYPES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}
_WORDS: Final = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
# Small models write truth in many ways, an empty string for "leave it out" among them.
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}
_PARAMETER_LINE: Final = late(r"\s*(\w+): (.+)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool."""

    name: str
    kind: type
    """str, int, float or bool."""
    description: str
    required: bool
    default: Any


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what the model is told about it and the function that does it."""

    name: str
    """Logical name, such as ReadFile."""
    description: str
    parameters: tuple[Parameter, ...]
    function: Callable[..., str]
    """Takes the workspace and the parameters by name, returns the result, raises :class:`Refusal`."""

    @property
    def form(self) -> str:
        """How to call it, in one line: ``ReadFile(path, offset=1, limit=400)``."""
        words = (p.name if p.required else f"{p.name}={p.default!r}" for p in self.parameters)
        return f"{self.name}({', '.join(words)})"


def name_of(function: Callable[..., str]) -> str:
    """The name of the tool that *function* is: its own in camel case."""
    return "".join(part.title() for part in function.__name__.split("_"))


def describe(function: Callable[..., str]) -> Tool:
    """Return the tool that *function* is: its name in camel case, its docstring, its signature without the workspace.

    The docstring's first paragraph is the description; a line ``name: words`` describes each parameter.
    """
    import inspect  # here: only a model is told of the tools

    first, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
    words = {found[1]: found[2] for line in rest.splitlines() if (found := _PARAMETER_LINE.fullmatch(line))}
    signature = inspect.signature(function, eval_str=False).parameters
    parameters = [
        Parameter(
            name=name,
            kind=_kind(given.annotation),
            description=words[name],
            required=given.default is inspect.Parameter.empty,
            default=None if given.default is inspect.Parameter.empty else given.default,
        )
        for name, given in list(signature.items())[1:]
    ]
    return Tool(name_of(function), first.replace("\n", " "), tuple(parameters), function)


def _kind(annotation: str) -> type:
    # The annotations are text (PEP 563); `str | None` is text that may be left out.
    return {"str": str, "int": int, "float": float, "bool": bool}[annotation.removesuffix(" | None")]


def schema(tool: Tool) -> dict[str, Any]:
    """Return the function schema of *tool* in the shape that Ollama's chat endpoint expects."""
    properties = {p.name: {"type": _JSON_TYPES[p.kind], "description": p.description} for p in tool.parameters}
    required = [p.name for p in tool.parameters if p.required]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def bind(tool: Tool, arguments: object) -> tuple[dict[str, Any], str]:
    """Return the keyword arguments that *arguments* of a model mean for *tool*, and a note on what was ignored.

    Numbers as text, null for a default, other spellings of a name and unknown keys are put right. Raises
    :class:`Refusal`, naming the right form, where nothing sensible can be made of them (T159).
    """
    known = {p.name: p for p in tool.parameters}
    meant = _spelt_right(_mapping(tool, arguments), known)
    read = {name: _value(tool, known[name], value) for name, value in meant.items() if name in known}
    bound = {name: value for name, value in read.items() if value is not None}
    _require(tool, bound)
    unknown = sorted(str(name)[:40] for name in meant if name not in known)
    return bound, f"[Unknown argument ignored: {', '.join(unknown)}. The form is {tool.form}.]" if unknown else ""


def _spelt_right(given: Mapping[str, Any], known: Mapping[str, Parameter]) -> dict[str, Any]:
    meant = {_meant(key, known): value for key, value in given.items()}
    # An exact name wins over another spelling of it, whatever their order.
    return meant | {key: value for key, value in given.items() if key in known}


def _require(tool: Tool, bound: Mapping[str, Any]) -> None:
    for parameter in tool.parameters:
        if parameter.required and parameter.name not in bound:
            raise Refusal(f"{tool.name} needs {parameter.name} ({_WORDS[parameter.kind]}). The form is {tool.form}.")


def _mapping(tool: Tool, arguments: object) -> Mapping[str, Any]:
    if isinstance(arguments, str) and arguments.strip():
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise Refusal(f"The arguments of {tool.name} are no JSON object. The form is {tool.form}.") from None
    if arguments is None or arguments == "":
        return {}
    if not isinstance(arguments, dict):
        raise Refusal(f"The arguments of {tool.name} are no JSON object. The form is {tool.form}.")
    return arguments


def _meant(key: str, known: Mapping[str, Parameter]) -> str:
    plain = key.strip().casefold().replace("-", "_")
    candidates = (plain, _ALIASES.get(plain, plain), plain.replace("_", ""), _ALIASES.get(plain.replace("_", ""), ""))
    squeezed = {name.replace("_", ""): name for name in known}
    return next((c if c in known else squeezed[c] for c in candidates if c in known or c in squeezed), key)


def _value(tool: Tool, parameter: Parameter, value: object) -> object:
    """Return *value* as *parameter* wants it; None stands for its default."""
    # A list of one is a habit of models whose own tools take lists.
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    read = {str: _text, int: _number, float: _fraction, bool: _truth}[parameter.kind]
    try:
        # What must be there is taken by its word: "null" may well be the content of a file.
        return None if value is None or (_left_out(value) and not parameter.required) else read(value)
    except (ValueError, TypeError, KeyError, OverflowError):
        raise Refusal(
            f"{parameter.name} of {tool.name} must be {_WORDS[parameter.kind]}. The form is {tool.form}."
        ) from None


def _left_out(value: object) -> bool:
    return isinstance(value, str) and value.strip().casefold() in {"null", "none"}


def _text(value: object) -> str:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        # A lone surrogate from a model's "\ud800" could neither be a file name nor be sent back.
        return str(value).encode("utf-8", "replace").decode("utf-8")
    raise TypeError


def _number(value: object) -> int | None:
    read = _fraction(value)
    return None if read is None else int(read)


def _fraction(value: object) -> float | None:
    if isinstance(value, str):
        # An empty string is another way of leaving a number out.
        value = float(value) if value.strip() else None
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)):
        return value
    raise TypeError


def _truth(value: object) -> bool:
    return _BOOLEANS[value.strip().casefold()] if isinstance(value, str) else _BOOLEANS[str(value).casefold()]
