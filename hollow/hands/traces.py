"""What a child has written in the agent's own folders, seen from outside of it."""

from __future__ import annotations

import contextlib
import os

from hollow.hands.paths import own_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

    from hollow.hands.call import Call

MOST_FILES: Final = 5_000
"""Files that are looked at: an agent with more than that is burdened long before."""

Stamp = tuple[int, int, int]
"""Inode, time of change in nanoseconds, size: a file that was written has another one."""


@contextlib.contextmanager
def noticing(reach: Call) -> Iterator[list[str]]:
    """Yield a list that, after the block, holds the files written meanwhile, relative to the top of the airlock.

    What a child writes counts as written by the agent: a goal's files must be known, or they could not be set back when
    it is given up (S34). It is also filled where the block ends with an error.
    """
    wrote: list[str] = []
    before = dict(_stamps(reach)) if reach.writes else {}
    try:
        yield wrote
    finally:
        after = dict(_stamps(reach)) if reach.writes else {}
        wrote += sorted(path for path, stamp in after.items() if before.get(path) != stamp)


def _stamps(reach: Call) -> Iterator[tuple[str, Stamp]]:
    root, left = str(reach.place.root), MOST_FILES
    for folder in own_folders(reach.agent):
        for path, folders, names in os.walk(os.path.join(root, folder)):  # noqa: PTH118 - os.walk speaks in text
            # The supervisor and git leave these out as well.
            folders[:] = [name for name in folders if name not in {".git", "__pycache__"}]
            for name in names[: max(0, left)]:
                left -= 1
                whole = os.path.join(path, name)  # noqa: PTH118 - likewise
                facts = os.lstat(whole)
                yield os.path.relpath(whole, root), (facts.st_ino, facts.st_mtime_ns, facts.st_size)
