"""Ls and ReadFile: what lies in a folder, what stands in a file."""

from __future__ import annotations

import os
import stat

from hollow.confine import Refusal, closed, shown
from hollow.toolbox.workspace import MAX_CHARS, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO, Final

    from hollow.toolbox.workspace import Workspace

MAX_ENTRIES: Final = 400
"""Entries of a folder that are listed."""

MAX_LINES: Final = 2000
"""Lines one call can ask for."""

MAX_LINE: Final = 2000
"""Characters shown of one line; longer ones are minified or generated."""

MAX_SCAN: Final = 64 * 1024 * 1024
"""Bytes read on the way to the lines asked for."""

_SNIFF: Final = 8192
"""Bytes looked at to tell binary from text, as git does (a NUL among the first 8,000)."""


def ls(place: Workspace, path: str = ".") -> str:
    """List the files and folders in one folder of the repository.

    path: folder relative to the top of the repository
    """
    parts = place.border.resolve(path)
    if (place.root.joinpath(*parts)).is_file():
        raise Refusal(f"{path} is a file; use ReadFile to read it.")
    # By descriptor: the folder's name could lead elsewhere between the judgement and the listing.
    with place.border.folder(path) as descriptor, os.scandir(descriptor) as found:
        entries = sorted((entry for entry in found if not closed((*parts, entry.name))), key=_folders_first)
        lines = [_entry(entry) for entry in entries[:MAX_ENTRIES]]
    if len(entries) > MAX_ENTRIES:
        lines.append(f"[{len(entries) - MAX_ENTRIES} more entries are not shown; list a subfolder or use Grep.]")
    return "\n".join(lines) or f"{path} is empty."


def _folders_first(entry: os.DirEntry[str]) -> tuple[bool, str]:
    return not entry.is_dir(follow_symlinks=False), entry.name


def _entry(entry: os.DirEntry[str]) -> str:
    # A name may hold a line feed: shown raw it would fake an entry.
    name = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown((entry.name,)))
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    if entry.is_symlink():
        return f"{name} (symbolic link)"
    facts = entry.stat(follow_symlinks=False)
    return f"{name} ({facts.st_size} bytes)" if stat.S_ISREG(facts.st_mode) else f"{name} (special file)"


def read_file(place: Workspace, path: str, offset: int = 1, limit: int = 400) -> str:
    """Read a text file of the repository; every line comes with its number.

    path: file relative to the top of the repository
    offset: number of the first line wanted, from 1
    limit: how many lines at most
    """
    first, wanted = max(1, offset), min(max(1, limit), MAX_LINES)
    with place.border.file(path) as descriptor, open(descriptor, "rb", closefd=False) as file:
        size = os.fstat(descriptor).st_size
        if b"\0" in file.read(_SNIFF):
            return f"{path} is a binary file of {size} bytes; its content is not shown."
        file.seek(0)
        lines, more = _numbered(file, first, wanted)
    if lines:
        return "\n".join([*lines, *([more] if more else [])])
    return more or (f"{path} has fewer than {first} lines." if size else f"{path} is empty.")


def _numbered(file: BinaryIO, first: int, wanted: int) -> tuple[list[str], str]:
    """Return the *wanted* lines from number *first* on, and a mark saying how to go on if there are more."""
    lines: list[str] = []
    chars = 0
    for number, line in enumerate(_lines(file), 1):
        if line is None:
            return lines, f"[Stopped after {MAX_SCAN} bytes; the rest of this file cannot be read, use Grep.]"
        if number < first:
            continue
        if len(lines) == wanted or chars > MAX_CHARS:
            return lines, f"[Lines {first} to {number - 1} are shown; for more call ReadFile with offset={number}.]"
        lines.append(f"{number:>6}  {line}")
        chars += len(lines[-1]) + 1
    return lines, ""


def _lines(file: BinaryIO) -> Iterator[str | None]:
    """Yield the lines of *file*, long ones visibly cut; None instead of a line once too much was read."""
    scanned = 0
    # A byte budget for readline: a file of one line of a gigabyte must not be held in memory.
    while piece := file.readline(4 * MAX_LINE):
        scanned += len(piece)
        whole = piece.endswith(b"\n") or len(piece) < 4 * MAX_LINE
        if not whole:
            scanned += _skip_line(file)
        line = text(piece).rstrip("\r\n")
        yield line if whole and len(line) <= MAX_LINE else f"{line[:MAX_LINE]} [line cut]"
        if scanned > MAX_SCAN:
            yield None
            return


def _skip_line(file: BinaryIO) -> int:
    skipped = 0
    while skipped <= MAX_SCAN and (piece := file.readline(1 << 20)):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped
