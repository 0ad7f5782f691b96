"""EditFile and WriteFile: changes of text files inside the repository, exact and whole."""

from __future__ import annotations

from hollow.placing import spot
from hollow.replacing import decoded, line_end, replaced, with_line_ends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from hollow.toolbox.workspace import Workspace

_AROUND: Final = 2
"""Lines shown before and after a change, so that the agent sees where it fell."""

_MOST_SHOWN: Final = 24
"""Lines of a change that are shown; the agent has just written the others itself."""


def edit_file(place: Workspace, path: str, old_text: str, new_text: str, replace_all: bool = False) -> str:
    """Replace a passage of a text file. Read the file first; old_text must stand there exactly once.

    path: file relative to the top of the repository
    old_text: the exact passage to replace, with its indentation, without line numbers
    new_text: what stands there afterwards; empty to remove the passage
    replace_all: whether every occurrence is replaced
    """
    with spot(place.border, path) as file:
        text = decoded(file.read(), file.path)
        done = replaced(text, old_text, new_text, file.path, everywhere=replace_all)
        file.replace(done.text.encode("utf-8"))
    many = len(done.lines)
    numbers = ", ".join(map(str, done.lines[:10])) + (" …" if many > 10 else "")  # noqa: PLR2004 - a line's worth
    head = (
        f"{file.path} changed at line {numbers}." if many == 1 else f"{file.path} changed at {many} places: {numbers}."
    )
    return "\n".join([head, *_around(done.text, done.lines[0], new_text.count("\n") + 1)])


def write_file(place: Workspace, path: str, content: str) -> str:
    """Create a text file, or replace the whole content of one; missing folders are made. Prefer EditFile for changes.

    path: file relative to the top of the repository
    content: the whole new content, with a line end at its end
    """
    with spot(place.border, path, make=True) as file:
        new = file.mode is None
        # A file with CR LF keeps it: ReadFile shows no line ends, so the agent cannot have meant to change them.
        end = "\n" if new else line_end(decoded(file.read(), file.path))
        data = (with_line_ends(content, end) if end == "\r\n" else content).encode("utf-8")
        file.replace(data)
    kept = " Its line ends stay CR LF." if end == "\r\n" else ""
    return (
        f"{file.path} {'created' if new else 'replaced'}: {len(content.splitlines())} lines, {len(data)} bytes.{kept}"
    )


def _around(text: str, first: int, height: int) -> list[str]:
    """The *height* lines from number *first* on and some around them, numbered."""
    lines = text.split("\n")
    start = max(0, first - 1 - _AROUND)
    end = min(len(lines), first - 1 + min(height, _MOST_SHOWN) + _AROUND)
    return [f"{number:>6}  {lines[number - 1].rstrip(chr(13))[:300]}" for number in range(start + 1, end + 1)]
