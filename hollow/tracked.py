"""The tracked files of a repository, now or at a revision: what there is and the bytes of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from essentials.digests import sha1
from essentials.records import dataclass
from hollow.gitread import blobs, compare, git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final

LARGEST: Final = 1 << 20
"""Bytes. A larger file is data; its name is listed, its content is not read."""
_AT_ONCE: Final = 64
"""Files held in memory at once; with the largest size, the bound of what a survey of any repository needs."""
_REGULAR: Final = frozenset({"100644", "100755", "100664"})
"""Modes of ordinary files: symbolic links (120000) and submodules (160000) are never followed."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """One tracked regular file."""

    path: str
    """Relative to the root, "/"-separated, undecodable bytes as surrogates."""
    key: str
    """Names the content: a blob id, or "w" and a SHA-1 for a file that differs from git's index."""
    modified: bool = False
    """Whether the working tree holds other bytes than git's index."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The tracked files of *repo* in its working tree, or of the commit *treeish*."""

    repo: Path
    files: tuple[Tracked, ...]
    treeish: str | None = None


def snapshot(repo: Path, treeish: str | None = None) -> Snapshot:
    """Return what is tracked in *repo*: the working tree's state, or that of *treeish* (a commit or tree id).

    Raises :class:`hollow.gitread.GitReadError` where *repo* is no repository.
    """
    if treeish is not None:
        rows = git(repo, "ls-tree", "-r", "-z", "--full-tree", treeish)
        return Snapshot(repo, tuple(Tracked(path, oid) for _, oid, path in _rows(rows, 2)), treeish)
    # A conflicted file has up to three rows (base, ours, theirs); the last one wins, and its content is read from disk
    # anyway.
    listed = {path: oid for _, oid, path in _rows(git(repo, "ls-files", "-s", "-z"), 1)}
    # What may differ by its times and size; git would have to refresh its index to know, so the bytes are hashed here.
    status = compare(repo, "diff-files", "--name-status", "-z", "--ignore-submodules=all").split(b"\0")
    changed = {os.fsdecode(path): word[:1] for word, path in zip(status[::2], status[1::2], strict=False)}
    return Snapshot(repo, tuple(_working(repo, listed, changed)))


def _rows(listing: bytes, oid_column: int) -> Iterator[tuple[str, str, str]]:
    """``(mode, oid, path)`` of the regular files of a ``-z`` listing whose oid is the word at *oid_column*."""
    for row in listing.split(b"\0"):
        words, tab, path = row.partition(b"\t")
        fields = words.decode("ascii", "replace").split(" ")
        if tab and fields[0] in _REGULAR:
            yield fields[0], fields[oid_column], os.fsdecode(path)


def _working(repo: Path, listed: dict[str, str], changed: dict[str, bytes]) -> Iterator[Tracked]:
    """The files of git's index as the working tree has them: deleted ones are absent, changed ones are hashed."""
    reader = _Reader(repo)
    for path, oid in sorted(listed.items()):
        if path not in changed:
            yield Tracked(path, oid)
        elif (content := reader.read(path)) is not None:
            yield Tracked(path, "w" + sha1(content, usedforsecurity=False).hexdigest(), modified=True)


def contents(snap: Snapshot, files: Iterable[Tracked]) -> Iterator[tuple[Tracked, bytes | None]]:
    """Yield each of *files* with its bytes; None where it cannot be read, is no regular file, or is too large.

    A file that the working tree lacks (a sparse checkout) comes from the object store.
    """
    wanted, reader = list(files), _Reader(snap.repo)
    for start in range(0, len(wanted), _AT_ONCE):
        group = wanted[start : start + _AT_ONCE]
        found = _worktree(reader, group) if snap.treeish is None else {}
        missing = [file.key for file in group if file.path not in found and not file.key.startswith("w")]
        stored = dict(blobs(snap.repo, dict.fromkeys(missing), LARGEST)) if missing else {}
        for file in group:
            yield file, found.get(file.path, stored.get(file.key))


def _worktree(reader: _Reader, files: list[Tracked]) -> dict[str, bytes]:
    """Contents of those of *files* that the working tree has as small regular files."""
    read = ((file.path, reader.read(file.path)) for file in files)
    return {path: content for path, content in read if content is not None}


class _Reader:
    """Reads regular files below a root without following a symbolic link, not even in a folder's name."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._honest: dict[str, bool] = {}

    def read(self, path: str) -> bytes | None:
        """Bytes of *path*, or None if it is absent, larger than :data:`LARGEST`, special, or behind a link."""
        folder, _, name = path.rpartition("/")
        if not self._inside(folder):
            return None
        try:
            # O_NONBLOCK: opening a FIFO that took the file's place must not wait for a writer.
            descriptor = os.open(
                Path(self._root, folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )
        except (OSError, ValueError):
            return None
        # Not os.fdopen: it raises for a folder in the file's place, and leaves the descriptor open.
        try:
            return self._bytes(descriptor)
        finally:
            os.close(descriptor)

    @staticmethod
    def _bytes(descriptor: int) -> bytes | None:
        facts = os.fstat(descriptor)
        # Asked of what was opened, not of its name, which may lead elsewhere by now.
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST:
            return None
        # A file may grow while it is read; no more than its allowance is ever held.
        pieces, left = [], LARGEST
        while left > 0 and (piece := os.read(descriptor, left)):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def _inside(self, folder: str) -> bool:
        """Whether *folder* is really where its name says; asked once a folder."""
        if folder not in self._honest:
            # A folder inside that is a link, or lies behind one, has another real path than its name says.
            whole = os.path.normpath(os.path.join(self._root, folder))  # noqa: PTH118 - pathlib keeps ".."
            self._honest[folder] = os.path.realpath(whole) == whole and (whole + "/").startswith(
                self._root.rstrip("/") + "/"
            )
        return self._honest[folder]
