"""Text from anywhere as one line: what stands in a prompt, a record or a table must not look like a part of it."""

from __future__ import annotations


def bare(text: str) -> str:
    """Return *text* on one line, its words one blank apart, without what is not printable."""
    if text.isprintable():
        # Nearly always: only blanks can be amiss.
        return " ".join(text.split())
    # Controls first: line ends of every alphabet are among them, and what is left of them is white space.
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def line(text: str, most: int) -> str:
    """Return *text* on one line of at most *most* characters, with an ellipsis where something is missing."""
    # Bounded first: a novel in a field must not cost as much as a novel.
    shown = bare(text[: 4 * most])
    return shown if len(shown) <= most else shown[: most - 1].rstrip() + "…"
