"""The manifest: a capability's name, schema and argument rules, all read from the function that it is (C27)."""

from __future__ import annotations

import json
import math
import re
from enum import StrEnum
from types import MappingProxyType

from essentials.patterns import late
from essentials.records import dataclass
from hollow.hands.call import Failed
from hollow.parsing import plain
from hollow.substrate.model import Effect, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from hollow.substrate.model import Result

_ALIASES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "path": ("file", "file_path", "filepath", "filename", "dir", "directory", "folder"),
    "content": ("text", "contents", "data", "file_text", "body"),
    "old": ("old_text", "old_string", "old_str", "find", "search"),
    "new": ("new_text", "new_string", "new_str", "replace", "replacement"),
    "command": ("cmd", "script", "shell"),
    "code": ("script", "source", "python"),
    "key": ("name", "id"),
    "value": ("content", "data", "text"),
    "message": ("text", "prompt", "content", "question", "msg"),
    "to": ("recipient", "peer", "agent", "target"),
    "agent": ("peer", "name", "to"),
    "topic": ("query", "question", "subject"),
    "request_id": ("id", "request"),
    "paths": ("path", "files", "file"),
    "keys": ("key", "memory_keys"),
    "name": ("capability", "capability_id", "tool", "capability_name"),
    "offset": ("start", "start_line"),
    "limit": ("count", "lines"),
})  # fmt: skip
"""Parameter to what models trained on other tools call it."""

_MOST_NAMES: Final = 5
_PARAMETER_LINE: Final = late(r"\s*(\w+): (.+)")


class Shape(StrEnum):
    """What a parameter holds."""

    TEXT = "text"
    NUMBER = "a whole number"
    NAMES = "a list of text"
    JSON = "any JSON value"


_SHAPES: Final = {"str": Shape.TEXT, "int": Shape.NUMBER, "Sequence[str]": Shape.NAMES, "Any": Shape.JSON}
_SCHEMAS: Final[Mapping[Shape, Mapping[str, Any]]] = {
    Shape.TEXT: {"type": "string"},
    Shape.NUMBER: {"type": "integer"},
    Shape.NAMES: {"type": "array", "items": {"type": "string"}},
    Shape.JSON: {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a capability."""

    name: str
    shape: Shape
    description: str
    required: bool
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One built-in capability: what an agent is told of it, what it does to the world, the function that does it."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    effects: frozenset[Effect]
    output: bool
    """Whether it leaves something: a goal needs one such step (S30)."""
    high: bool
    """Whether it is worth twice the progress of others (S29, T84)."""
    function: Callable[..., Result]
    """Takes the call and the parameters by name; raises :class:`Failed` and :class:`hollow.confine.Refusal`."""

    @property
    def form(self) -> str:
        """How to call it, in one line: ``fs_read(path, offset=1, limit=400)``."""
        words = (p.name if p.required else f"{p.name}={json.dumps(p.default)}" for p in self.parameters)
        return f"{self.name}({', '.join(words)})"

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of its parameters."""
        properties = {p.name: {**_SCHEMAS[p.shape], "description": p.description} for p in self.parameters}
        required = [p.name for p in self.parameters if p.required]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def describe(function: Callable[..., Result], *effects: Effect, output: bool = False, high: bool = False) -> Capability:
    """Return the capability that *function* is; it does *effects* to the world.

    The docstring's first paragraph is the description; a line ``name: words`` describes each parameter.
    """
    import inspect  # here: a cycle alone has capabilities

    first, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
    words = {found[1]: found[2] for line in rest.splitlines() if (found := _PARAMETER_LINE.fullmatch(line))}
    given = list(inspect.signature(function, eval_str=False).parameters.items())[1:]
    return Capability(
        name=function.__name__,
        description=first.replace("\n", " "),
        parameters=tuple(_parameter(name, each, words[name]) for name, each in given),
        effects=frozenset(effects),
        output=output,
        high=high,
        function=function,
    )


def _parameter(name: str, given: inspect.Parameter, description: str) -> Parameter:
    required = given.default is given.empty
    default = None if required else list(given.default) if isinstance(given.default, tuple) else given.default
    # The annotations are text (PEP 563).
    shape = _SHAPES[given.annotation]
    return Parameter(name=name, shape=shape, description=description, required=required, default=default)


def bind(capability: Capability, params: object) -> dict[str, Any]:
    """Return the keyword arguments that *params* of a plan mean for *capability*.

    Other spellings of a name, numbers as text and null for a default are put right. Raises :class:`Failed` (usage),
    naming the right form, for what is missing, unknown or of another kind: that is nobody's tool being broken (W16).
    """
    known = {p.name: p for p in capability.parameters}
    meant = _spelt_right(capability, params, known)
    unknown = sorted(name for name in meant if name not in known)
    if unknown:
        listed = ", ".join(name[:40] for name in unknown[:_MOST_NAMES])
        raise _usage(capability, f"{capability.name} has no parameter {listed}.")
    bound = {name: _read(capability, known[name], value) for name, value in meant.items() if value is not None}
    missing = [p for p in capability.parameters if p.required and p.name not in bound]
    if missing:
        raise _usage(capability, f"{capability.name} needs {missing[0].name} ({missing[0].shape}).")
    return {name: value for name, value in bound.items() if value is not None}


def _spelt_right(capability: Capability, params: object, known: Mapping[str, Parameter]) -> dict[str, Any]:
    if not isinstance(params, dict):
        raise _usage(capability, f"The params of {capability.name} are no JSON object.")
    given = {str(key): plain(value) for key, value in params.items()}
    meant = {_meant(key, known): value for key, value in given.items() if key not in known}
    # An exact name wins over another spelling of it, whatever their order.
    return meant | {key: value for key, value in given.items() if key in known}


def _meant(key: str, known: Mapping[str, Parameter]) -> str:
    plainly = key.strip().casefold().replace("-", "_")
    if plainly in known:
        return plainly
    return next((name for name in known if plainly in _ALIASES.get(name, ())), key)


def _read(capability: Capability, parameter: Parameter, value: Any) -> Any:
    """*value* as *parameter* wants it; None stands for its default."""
    try:
        return _READERS[parameter.shape](value)
    except (ValueError, OverflowError):
        wanted = f"{parameter.name} of {capability.name} must be {parameter.shape}."
        raise _usage(capability, wanted) from None


def _usage(capability: Capability, sentence: str) -> Failed:
    return Failed(Trouble.USAGE, f"{sentence} The form is {capability.form}.")


def _text(value: Any) -> str:
    # An object where text is wanted is what a model means by the content of a JSON file.
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _number(value: Any) -> int | None:
    if isinstance(value, str):
        # An empty string is another way of leaving a number out.
        value = float(value) if value.strip() else None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError
    return int(value)


def _names(value: Any) -> tuple[str, ...]:
    listed = re.split(r"[,\n]", value) if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise ValueError
    return tuple(name for each in listed if (name := each.strip()))


def _same(value: Any) -> Any:
    return value


_READERS: Final[Mapping[Shape, Callable[[Any], Any]]] = {
    Shape.TEXT: _text,
    Shape.NUMBER: _number,
    Shape.NAMES: _names,
    Shape.JSON: _same,
}
