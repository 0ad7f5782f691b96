"""Replacing a passage of a text: found exactly once, line ends kept, and a helpful word where it is not."""

from __future__ import annotations

import re

from essentials.patterns import late
from essentials.records import dataclass
from hollow.confine import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

_NUMBERED: Final = late(r"^\s*\d+  ", re.MULTILINE)
"""How ReadFile shows a line; models often paste the number along."""

_MOST_COMPARED: Final = 20_000
"""Lines of a file that are compared with what was not found: likeness costs time for every one."""

_NEAREST: Final = 3
_WIDTH: Final = 160
"""Characters shown of a line that is near."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A text after its passages were replaced."""

    text: str
    lines: tuple[int, ...]
    """Number of the first line of each replaced passage, in the new text."""


def decoded(data: bytes, path: str) -> str:
    """Return *data* of the file *path* as text; raises :class:`Refusal` unless it is UTF-8 without NUL.

    Anything else could not be written back byte for byte.
    """
    if b"\0" in data:
        raise Refusal(f"{path} is a binary file; only text can be edited.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as why:
        raise Refusal(
            f"{path} is not valid UTF-8 (byte {why.start}); it cannot be edited without damage to the rest."
        ) from None


def line_end(text: str) -> str:
    """Return the line end that *text* mostly has; a line feed where it has none."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf * 2 > text.count("\n") else "\n"


def with_line_ends(text: str, end: str) -> str:
    """Return *text* with *end* at the end of every line."""
    return text.replace("\r\n", "\n").replace("\n", end)


def replaced(text: str, old: str, new: str, path: str, *, everywhere: bool = False) -> Replaced:
    """Return *text* with *old* replaced by *new*, once, or *everywhere*.

    A line feed in *old* also matches CR LF, because ReadFile shows none of the two; the new lines get the line end of
    what they replace, and all other bytes stay. Raises :class:`Refusal` if *old* is not there, or there several times.
    """
    if not old:
        raise Refusal("old_text is empty; give the exact text to replace, or use WriteFile for a new file.")
    if with_line_ends(old, "\n") == with_line_ends(new, "\n"):
        raise Refusal("old_text and new_text are the same; nothing would change.")
    pattern = "\r?\n".join(map(re.escape, with_line_ends(old, "\n").split("\n")))
    hits = list(re.finditer(pattern, text))
    if not hits:
        raise Refusal(_not_found(text, old, path))
    if len(hits) > 1 and not everywhere:
        raise Refusal(_several(text, hits, path))
    return _put(text, hits, new)


def _put(text: str, hits: Sequence[re.Match[str]], new: str) -> Replaced:
    whole = line_end(text)
    pieces: list[str] = []
    lines: list[int] = []
    at, line = 0, 1
    for hit in hits:
        between = text[at : hit.start()]
        line += between.count("\n")
        lines.append(line)
        # In a file of mixed line ends the passage decides, not the majority.
        put = with_line_ends(new, line_end(hit[0]) if "\n" in hit[0] else whole)
        line += put.count("\n")
        pieces += [between, put]
        at = hit.end()
    return Replaced("".join([*pieces, text[at:]]), tuple(lines))


def _several(text: str, hits: Sequence[re.Match[str]], path: str) -> str:
    numbers = [text.count("\n", 0, hit.start()) + 1 for hit in hits[:10]]
    shown = ", ".join(map(str, numbers)) + (" …" if len(hits) > len(numbers) else "")
    return (
        f"old_text stands {len(hits)} times in {path} (lines {shown}); give more of the lines around the one you mean,"
        " or set replace_all to true."
    )


def _not_found(text: str, old: str, path: str) -> str:
    lines = text.splitlines()
    told = [f"old_text was not found in {path}; nothing was changed. It must be exact, with every space."]
    asked = old.splitlines()
    if all(_NUMBERED.match(line) for line in asked if line.strip()):
        told.append("It begins with line numbers, which ReadFile adds: they are no part of the file.")
    elif (found := _but_for_space(lines, asked)) is not None:
        told += [
            "These lines differ from it in white space only:",
            *_shown(lines, range(found, found + min(len(asked), 12))),
        ]
    elif near := _near(lines, asked):
        told += ["The nearest lines are:", *_shown(lines, near)]
    return "\n".join(told)


def _but_for_space(lines: Sequence[str], asked: Sequence[str]) -> int | None:
    """Index of the first of *lines* where *asked* stands if white space does not count, or None."""
    wanted = ["".join(line.split()) for line in asked]
    if not any(wanted):
        return None
    have = ["".join(line.split()) for line in lines]
    size = len(wanted)
    return next((at for at in range(len(have) - size + 1) if have[at : at + size] == wanted), None)


def _near(lines: Sequence[str], asked: Sequence[str]) -> list[int]:
    """Indices of the lines most like the longest line of *asked*, which says most, in the order of the file."""
    wanted = max((line.strip() for line in asked), key=len, default="")[:_WIDTH]
    places: dict[str, int] = {}
    for index, line in enumerate(lines[:_MOST_COMPARED]):
        places.setdefault(line.strip()[:_WIDTH], index)
    import difflib

    return sorted(places[line] for line in difflib.get_close_matches(wanted, places, n=_NEAREST, cutoff=0.6) if line)


def _shown(lines: Sequence[str], indices: Sequence[int]) -> list[str]:
    return [f"{index + 1:>6}  {lines[index][:_WIDTH]}" for index in indices]
