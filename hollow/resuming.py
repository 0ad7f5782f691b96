"""What an earlier session of a run left in the repository, in words for the model that goes on with it."""

from __future__ import annotations

import os

from hollow.confine import closed
from hollow.gitread import GitReadError, compare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Final

_MOST: Final = 60
"""Files that are listed; GitDiff shows the others."""


def earlier(repo: Path) -> str:
    """Return what differs in *repo* from its commit, one line a file; never empty, and no failure of git is one here.

    Files that git ignores and those closed to agents are left out.
    """
    try:
        rows = list(_rows(repo))
    except GitReadError as why:
        return f"What was changed could not be listed ({' '.join(str(why).split())}); look with Ls and ReadFile."
    if not rows:
        return "Nothing has been changed yet."
    more = [f"… and {len(rows) - _MOST} more files"] if len(rows) > _MOST else []
    return "\n".join(["Changed so far, against the commit that you began with:", *rows[:_MOST], *more])


def _rows(repo: Path) -> Iterator[str]:
    # Three questions rather than `status`: HEAD is what the run began with, staged or not makes no difference.
    counts = compare(
        repo, "diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "HEAD", "--", "."
    )
    for row in _words(counts):
        added, removed, path = row.split("\t", 2)
        if not closed(tuple(path.split("/"))):
            yield f"- {path} (binary)" if added == "-" else f"- {path} (+{added} -{removed})"
    for path in _words(compare(repo, "ls-files", "-z", "--others", "--exclude-standard", "--", ".")):
        if not closed(tuple(path.split("/"))):
            yield f"- {path} (new)"


def _words(listing: bytes) -> list[str]:
    # A name that is no UTF-8, or that holds a line feed, must neither fail nor fake a row.
    read = os.fsdecode(listing).encode("utf-8", "replace").decode("utf-8")
    return ["".join(c if c.isprintable() or c == "\t" else "?" for c in word) for word in read.split("\0") if word]
