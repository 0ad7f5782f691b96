"""A copy of one file, without `shutil`: with it come modules for three kinds of archives, and no airlock has any."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Final

_PIECE: Final = 1024 * 1024
"""Bytes that are held in memory at once."""


def copy(source: Path, target: Path) -> None:
    """Make *target* the same as the file *source*: bytes, permissions and times; a link is followed. Raises OSError."""
    with source.open("rb") as given, target.open("wb") as taken:
        while piece := given.read(_PIECE):
            taken.write(piece)
        taken.flush()
        seen = os.fstat(given.fileno())
        os.fchmod(taken.fileno(), seen.st_mode & 0o7777)
        # Last: git compares an entry's time with the index's own, to the nanosecond.
        os.utime(taken.fileno(), ns=(seen.st_atime_ns, seen.st_mtime_ns))
