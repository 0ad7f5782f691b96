"""Strangers' text inside Markdown: fences that hold, control characters made visible."""

from __future__ import annotations

import re
import unicodedata

from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

_TICKS: Final = late(r"`+")
_LONGEST: Final = 160
"""Characters of an excerpt's line; the rest of a minified file helps nobody."""
# Marks that reorder what a reader sees ("Trojan Source") count too, though Unicode files them elsewhere.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def visible(text: str) -> str:
    """Return *text* with every control, format and undecodable character written as an escape; tabs become spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text.expandtabs(4))


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    number = ord(character)
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}"  # noqa: PLR2004 - the escape's own bound


def shortened(text: str, most: int = _LONGEST) -> str:
    """Return *text* cut to *most* characters, with an ellipsis where something is missing."""
    return text if len(text) <= most else text[: most - 1] + "…"


def code(text: str) -> str:
    """Return *text* as a code span that no backtick inside can end."""
    shown = visible(text)
    # A span ends at a run of exactly its own length, so one more than the longest inside is safe.
    ticks = "`" * (max((len(run) for run in _TICKS.findall(shown)), default=0) + 1)
    # Markdown takes one space off each side; without it a backtick at the edge would join the fence.
    room = " " if shown[:1] == "`" or shown[-1:] == "`" else ""
    return f"{ticks}{room}{shown}{room}{ticks}" if shown else "(empty)"


def prose(text: str) -> str:
    """Return one line of *text* as plain words: no markup, link, heading or HTML of a stranger's takes effect."""
    shown = shortened(visible(" ".join(text.split())))
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", shown)


def fence(lines: Iterable[str], language: str = "") -> str:
    """Return *lines* as a fenced block, its fence longer than any run of backticks within."""
    shown = [shortened(visible(line)) for line in lines]
    longest = max((len(run) for line in shown for run in _TICKS.findall(line)), default=0)
    ticks = "`" * max(3, longest + 1)
    return "\n".join([ticks + language, *shown, ticks])
