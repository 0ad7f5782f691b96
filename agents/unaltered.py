"""What an airlock came to when it was last looked at, for as long as nothing in it has been touched since."""

from __future__ import annotations

import json
import operator
import os
import re
import struct
import time

from agents import files
from essentials.digests import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Final

NOTE: Final = "seen.json"
_CAP: Final = 4096
_OBJECT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NAME: Final = operator.attrgetter("name")
_ROW: Final = struct.Struct("<5q")
_SECOND: Final = 1_000_000_000
SETTLED: Final = 20_000_000
"""Nanoseconds from a file's last change to a look that can be relied on: the clock of files ticks every 1 to 10 ms."""


class Stamp:
    """A digest of the path, kind, size, inode and times of every file that is added to it.

    Nobody but the kernel sets the time of a file's last change, so equal stamps mean equal files.
    """

    __slots__ = ("_begun", "_digest", "_newest", "_sound")

    def __init__(self, now: int | None = None) -> None:
        """*now*: nanoseconds since the epoch, at or before the first look at a file (default: this moment)."""
        self._begun = time.time_ns() if now is None else now
        self._digest = blake2b(digest_size=16)
        self._newest = 0
        self._sound = True

    def add(self, path: bytes, seen: os.stat_result) -> None:
        """Add the file at *path*, which looks like *seen*; the order counts."""
        changed = seen.st_ctime_ns
        row = _ROW.pack(seen.st_mode, seen.st_size, seen.st_ino, seen.st_mtime_ns, changed)
        self._digest.update(path + b"\0" + row)
        self._newest = max(changed, self._newest)

    def spoil(self) -> None:
        """Say that something was met which no stamp can vouch for."""
        self._sound = False

    def told(self) -> str:
        """The stamp, or nothing where it proves nothing.

        A file that was changed a moment ago could change once more and show the same time; and a clock that tells
        only seconds gives a whole one.
        """
        settled = self._newest < self._begun - SETTLED and (self._newest % _SECOND or not self._newest)
        return self._digest.hexdigest() if self._sound and settled else ""


def remember(room: Path, stamp: str, tree: str) -> None:
    """Note in the clean room at *room* that files with this *stamp* are the tree *tree*; raises HostError.

    Not made to survive a power cut: without it, or with half of it, somebody looks at the files once more.
    """
    with files.reported("note what the airlock holds"):
        if stamp:
            files.write(room / NOTE, json.dumps({"stamp": stamp, "tree": tree}).encode(), durable=False)
        else:
            (room / NOTE).unlink(missing_ok=True)


def recalled(room: Path, tree: Path) -> str | None:
    """Id of the tree that was noted in *room* for the files below *tree*; None without a note, or for other files."""
    text = files.read_capped(room / NOTE, _CAP)
    try:
        told = json.loads(text or b"null")
        stamp, known = told["stamp"], told["tree"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    # The id becomes a word of a command line: nothing else may pass for one.
    sound = stamp and isinstance(known, str) and _OBJECT.fullmatch(known)
    return known if sound and _stamp_of(tree) == stamp else None


def _stamp_of(tree: Path) -> str:
    """The stamp of the files below *tree*, in the order of :func:`agents.inspection.inspect`, or nothing.

    Only files are asked for their times: a folder is what is in it.
    """
    stamp, root, todo = Stamp(), os.fsencode(tree), [b""]
    try:
        while todo:
            todo += _added(stamp, root, todo.pop())
    except OSError:
        return ""
    return stamp.told()


def _added(stamp: Stamp, root: bytes, folder: bytes) -> list[bytes]:
    """The folders in *folder*, whose files are added to *stamp*."""
    with os.scandir(b"%b/%b" % (root, folder)) as listing:
        entries = list(listing)
    if len(entries) > 1:
        entries.sort(key=_NAME)
    folders = []
    for entry in entries:
        path = b"%b/%b" % (folder, entry.name) if folder else entry.name
        # The one at the top is ours, and belongs to nobody's work.
        if path == b".git":
            continue
        if entry.is_dir(follow_symlinks=False):
            folders.append(path)
        else:
            stamp.add(path, entry.stat(follow_symlinks=False))
    return folders
