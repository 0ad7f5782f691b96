"""What a setting accepts: readers from the written form to the value, with a sentence for what does not fit."""

from __future__ import annotations

import re
import reprlib
from types import MappingProxyType

from agents import policy
from agents.errors import OperatorError
from agents.units import Written, parse_duration, parse_size
from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

# Names that end up in an argv, an environment or a file name: the form alone keeps options and paths out.
VARIABLE: Final = late(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
OP: Final = late(r"[a-z0-9][a-z0-9_-]{0,63}")
ENGINE: Final = late(r"[a-z][a-z0-9_-]{0,63}")
MODEL: Final = late(r"[A-Za-z0-9][\w.:/@+\[\]-]{0,199}", re.ASCII)

_OLLAMA_TIME: Final = late(r"(?:[0-9]{1,9}(?:ms|s|m|h))+")
_SPELLINGS_OF_NONE: Final = frozenset({"none", "off", "never", "no"})
_AMOUNT: Final = late(r"[0-9]{1,6}(?:\.[0-9]{1,4})?")
_LONGEST_COMMAND: Final = 4000
_MOST_COMMANDS: Final = 20


def whole(low: int, high: int) -> Callable[[Written], int]:
    """Accept a whole number from *low* to *high*."""

    def _accept(value: Written) -> int:
        text = str(value).strip()
        if not re.fullmatch(r"[0-9]{1,12}", text) or not low <= int(text) <= high:
            raise OperatorError(f"{reprlib.repr(text)} is not a whole number from {low} to {high}.")
        return int(text)

    return _accept


def one_of(*choices: str) -> Callable[[Written], str]:
    """Accept one of the words *choices*."""

    def _accept(value: Written) -> str:
        text = str(value).strip()
        if text not in choices:
            raise OperatorError(f"{reprlib.repr(text)} is not one of {', '.join(choices)}.", nearest(text, choices))
        return text

    return _accept


def matching(shape: re.Pattern[str], what: str) -> Callable[[Written], str]:
    """Accept a text of the *shape* that *what* describes."""

    def _accept(value: Written) -> str:
        text = str(value).strip()
        if not shape.fullmatch(text):
            raise OperatorError(f"{reprlib.repr(text)} is not {what}.")
        return text

    return _accept


def positive(value: Written) -> float:
    """Accept a duration longer than nothing: a timer of zero would end every run at once."""
    seconds = parse_duration(value)
    if seconds == 0:
        raise OperatorError("It must be longer than 0 s.")
    return seconds


def size(value: Written) -> int:
    """Accept a size of at least one byte."""
    number = parse_size(value)
    if number == 0:
        raise OperatorError("It must be larger than 0 bytes.")
    return number


def or_none(read: Callable[[Written], Any]) -> Callable[[Written], Any]:
    """Accept also ``none``, so that a flag can lift what the file sets."""
    return lambda value: None if str(value).strip().lower() in _SPELLINGS_OF_NONE else read(value)


def keep_alive(value: Written) -> str:
    """Accept what Ollama reads, spelled its way: a bare number in a string is an error there, ``-1s`` is for ever."""
    text = str(value).strip()
    if re.fullmatch(r"-1|[0-9]{1,9}", text):
        return text + "s"
    if text == "-1s" or _OLLAMA_TIME.fullmatch(text):
        return text
    raise OperatorError(
        f"{reprlib.repr(text)} is not a time to keep a model loaded.", "Write 10m, 1h, 0 or -1 (for ever)."
    )


def names(shape: re.Pattern[str], what: str) -> Callable[[Written | list[str]], tuple[str, ...]]:
    """Accept a list of names, or one text with commas between them; each name once, in order."""
    read_one = matching(shape, what)

    def _accept(value: Written | list[str]) -> tuple[str, ...]:
        parts = value if isinstance(value, list) else str(value).split(",")
        return tuple(dict.fromkeys(read_one(part) for part in parts if part.strip()))

    return _accept


def amount(value: Written) -> float:
    """Accept an amount of money above nothing, in dollars."""
    text = str(value).strip().removeprefix("$")
    if not _AMOUNT.fullmatch(text) or float(text) == 0:
        raise OperatorError(f"{reprlib.repr(text)} is not an amount in dollars.", "Write 2 or 0.50.")
    return float(text)


def yes_or_no(value: Written) -> bool:
    """Accept yes or no, in the words that settings files use for it."""
    text = str(value).strip().lower()
    if text not in _TRUTH:
        raise OperatorError(f"{reprlib.repr(text)} is neither yes nor no.")
    return _TRUTH[text]


_TRUTH: Final = {**dict.fromkeys(("yes", "true", "on", "1"), True), **dict.fromkeys(("no", "false", "off", "0"), False)}


def commands(value: Written | list[str]) -> tuple[str, ...]:
    """Accept one shell command or a list of them; a comma is part of a command."""
    given = [text.strip() for text in (value if isinstance(value, list) else [str(value)])]
    wrong = [text for text in given if len(text) > _LONGEST_COMMAND or "\0" in text]
    if wrong or len(given) > _MOST_COMMANDS:
        raise OperatorError(f"At most {_MOST_COMMANDS} commands of {_LONGEST_COMMAND} characters.", "Call a script.")
    return tuple(filter(None, given))


def paths(value: Written | list[str]) -> tuple[str, ...]:
    """Accept paths or patterns inside the repository, relative to its root; each once, in order."""
    given = [text.strip() for text in (value if isinstance(value, list) else str(value).split(","))]
    for text in filter(None, given):
        if text.startswith(("/", "~")) or "\0" in text or ".." in text.split("/"):
            raise OperatorError(f"{reprlib.repr(text)} is not a path inside the repository.", "Write it from its root.")
    return tuple(dict.fromkeys(text.rstrip("/") for text in given if text.rstrip("/")))


def folders(value: Written | list[str]) -> tuple[str, ...]:
    """Accept absolute paths of this machine; each once, in order."""
    given = [text.strip() for text in (value if isinstance(value, list) else str(value).split(":"))]
    for text in filter(None, given):
        if not text.startswith("/") or "\0" in text:
            raise OperatorError(f"{reprlib.repr(text)} is not an absolute path.", "Write it from the root: /opt/tools")
    return tuple(dict.fromkeys(filter(None, given)))


def locks(value: Written | list[str]) -> Mapping[str, float]:
    """Accept loads by capability, ``name=load`` each; what leads out of suffering cannot be locked (T59)."""
    given = value if isinstance(value, list) else str(value).split(",")
    found: dict[str, float] = {}
    for text in filter(None, (each.strip() for each in given)):
        match = _LOCK.fullmatch(text)
        if match is None or not 0 < float(match[2]) <= 1:
            raise OperatorError(
                f"{reprlib.repr(text)} is not a capability and a load.", "Write it as fs_write=0.75, above 0 up to 1."
            )
        if match[1] in policy.PATH_OUT:
            raise OperatorError(f"{match[1]} must stay open whatever an agent suffers.", "Remove it from `locks`.")
        found[match[1]] = float(match[2])
    return MappingProxyType(found)


_LOCK: Final = late(r"([a-z_][a-z0-9_]{0,59})\s*[=:]\s*([0-9](?:\.[0-9]{1,6})?)")


def sources(value: Written | list[str]) -> tuple[str, ...]:
    """Accept folders of the repository and addresses of pages; each once, in order."""
    given = [text.strip() for text in (value if isinstance(value, list) else str(value).split(","))]
    pages = {text for text in given if _PAGE.fullmatch(text)}
    inside = set(paths([text for text in given if text not in pages]))
    return tuple(
        dict.fromkeys(
            text if text in pages else text.rstrip("/") for text in given if text in pages or text.rstrip("/") in inside
        )
    )


_PAGE: Final = late(r"https?://[!-~]{1,2000}")


def nearest(word: str, known: tuple[str, ...]) -> str:
    """Return a hint with the *known* word that was probably meant, or with all of them."""
    import difflib

    near = difflib.get_close_matches(word[:64].lower().replace("-", "_"), known, n=1)
    return f"Did you mean `{near[0]}`?" if near else f"Known: {', '.join(known)}."
