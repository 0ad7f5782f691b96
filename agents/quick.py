"""Plain command lines are understood here, without Typer, whose import costs more than most verbs.

Plain means: a verb, its options spelled in full, each once, and as many arguments as it takes. Whatever else is typed
(help, a slip, a group of verbs) is left to Typer, which also finds the words for what is wrong. A test holds the two
against each other.
"""

from __future__ import annotations

import importlib

from agents.verbs.words import Argument, Option
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Final

MODULES: Final = {
    "runs": ("scout", "plan", "review", "benchmark", "fix", "resume"),
    "living": ("cycle", "live"),
    "gate": ("diff", "merge", "reject", "undo"),
    "boxes": ("status", "list", "show", "logs", "stop"),
    "upkeep": ("gc", "verify", "init", "doctor", "demo"),
    "replay": ("replay",),
    "watch": ("watch",),
    "hollow": ("suffering", "goals", "lessons", "tools", "tell"),
}
"""The verbs of each module of :mod:`agents.verbs`: only the module that is asked for gets imported."""

_DIGITS: Final = 9
"""Digits of a number that is understood here."""


class OddLine(Exception):  # noqa: N818 - an answer, not an error
    """A command line that is not plain."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One parameter of a verb."""

    name: str
    kind: Any
    word: Option | Argument


def verbs(module: str) -> dict[str, Callable[..., int]]:
    """The verbs that the *module* of :mod:`agents.verbs` offers, by the names that are typed."""
    found: dict[str, Callable[..., int]] = importlib.import_module(f"agents.verbs.{module}").VERBS
    return found


def understood(arguments: Sequence[str]) -> tuple[Callable[..., int], dict[str, Any]] | None:
    """The verb that *arguments* ask for with its values, those left out aside; None for a line that is not plain."""
    module = next((module for module, each in MODULES.items() if arguments and arguments[0] in each), None)
    if module is None:
        return None
    verb = verbs(module)[arguments[0]]
    try:
        return verb, _values(takes(verb), list(arguments[1:]), len(verb.__defaults__ or ()))
    except OddLine:
        return None


def takes(verb: Callable[..., int]) -> list[Taken]:
    """What *verb* takes, in order, as its annotations say."""
    # The texts of our own functions: `typing.get_type_hints` does no more with them.
    hints = ((name, eval(text, verb.__globals__)) for name, text in verb.__annotations__.items())  # noqa: S307
    return [Taken(name, hint.__origin__, hint.__metadata__[0]) for name, hint in hints if hasattr(hint, "__metadata__")]


def _values(taken: Sequence[Taken], words: list[str], defaults: int) -> dict[str, Any]:
    options = {name: each for each in taken for name in names(each)}
    values: dict[str, Any] = {}
    alone = list(_alone(options, words, values))
    for place in taken:
        if _is_list(place):
            # None, as Typer has it, where nothing is given.
            values[place.name], alone = alone or None, []
        elif alone and isinstance(place.word, Argument):
            values[place.name] = _value(place, alone.pop(0))
    _require(not alone and {each.name for each in taken[: len(taken) - defaults]} <= values.keys())
    return values


def _require(plain: bool) -> None:
    if not plain:
        raise OddLine


def _alone(options: dict[str, Taken], words: list[str], values: dict[str, Any]) -> Iterator[str]:
    """Words that are neither options nor their values; the options go to *values*."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield from rest
        elif not word.startswith("-") or word == "-":
            yield word
        else:
            name, value = _option(options, word, rest)
            if name in values:
                raise OddLine
            values[name] = value


def _option(options: dict[str, Taken], word: str, rest: Iterator[str]) -> tuple[str, Any]:
    """Name and value of the option *word*, whose value may be the first of the *rest*."""
    name, given, value = word.partition("=") if word.startswith("--") else (word, "", "")
    taken = options.get(name)
    if taken is None or (given and taken.kind is bool):
        raise OddLine
    return taken.name, True if taken.kind is bool else _value(taken, value if given else _next(rest))


def _next(rest: Iterator[str]) -> str:
    value = next(rest, "-")
    # A value that looks like an option is more likely a slip: Typer decides.
    if value.startswith("-"):
        raise OddLine
    return value


def names(taken: Taken) -> tuple[str, ...]:
    """How the option *taken* is typed; nothing for an argument."""
    if not isinstance(taken.word, Option):
        return ()
    return taken.word.names or ("--" + taken.name.replace("_", "-"),)


def _is_list(taken: Taken) -> bool:
    return bool(taken.kind == list[str] | None)


def _value(taken: Taken, text: str) -> Any:
    if taken.kind in (str, str | None):
        return text
    if taken.kind not in (int, int | None) or not (text.isascii() and text.isdigit()) or len(text) > _DIGITS:
        raise OddLine
    number, word = int(text), taken.word
    if number < (word.least or 0) or (word.most is not None and number > word.most):
        raise OddLine
    return number
