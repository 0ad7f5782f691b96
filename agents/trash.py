"""Removes folders so that nobody has to wait: moved aside at once, and emptied behind the operator's back if large."""

from __future__ import annotations

import os

from agents import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Final

LARGE: Final = 2000
"""Files and folders above which emptying is left to a process of its own: below, it takes some twenty milliseconds."""
# It stands in no job and holds nothing of ours; what it cannot remove, or is killed over, is left to the sweep.
_EMPTY: Final = 'nice -n 19 rm -rf -- "$1" </dev/null >/dev/null 2>&1 &'


def discard(path: Path, staging: Path) -> None:
    """Have the folder *path* gone, links in it not followed; what is gone already is fine.

    It is moved into the folder *staging*, where every sweep looks for what a killed process has left. Where that is on
    another disk, or the folder cannot be moved, it is removed where it stands. Raises OSError if that fails.
    """
    grave = staging / f"gone-{os.urandom(8).hex()}"
    try:
        path.rename(grave)
    except OSError:
        files.remove_tree(path)
        return
    if _is_large(grave) and _emptied_behind(grave):
        return
    files.remove_tree(grave)


def _is_large(folder: Path) -> bool:
    """Whether there is more in *folder* than is removed in a moment; what cannot be looked at counts as little."""
    count, left = 0, [str(folder)]
    try:
        while left and count <= LARGE:
            with os.scandir(left.pop()) as listing:
                for entry in listing:
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
    except OSError:
        return False
    return count > LARGE


def _emptied_behind(grave: Path) -> bool:
    """Start the emptying of *grave* and come back; False where that is not possible here."""
    import subprocess

    try:
        # As young as the move: a sweep of the next minutes lets it be.
        os.utime(grave)
        done = subprocess.run(
            ["/bin/sh", "-c", _EMPTY, "sh", str(grave)], cwd="/", env={"PATH": "/usr/bin:/bin"}, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError:
        return False
    return done.returncode == 0
