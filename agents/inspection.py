"""A look at an airlock's files before git looks: what git cannot take, would wait for, or would lose without a word."""

from __future__ import annotations

import contextlib
import errno
import operator
import os
import stat
import unicodedata

from agents.errors import HostError, Tampered
from agents.redact import visible
from agents.unaltered import Stamp
from essentials import digests
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Final

HUGE: Final = 512 * 1024**2
"""Bytes above which a file is left out of the patch (G12)."""
LARGE: Final = 1024**2
"""Bytes above which a file's size is remembered, for the sum of the patch."""
MOST_ENTRIES: Final = 2_000_000
"""Files and folders above which an airlock is not exported at all."""
MOST_STAMPED: Final = 200_000
"""Files and folders that :func:`stamp` looks at."""
# git opens these wherever they stand, and would wait for the writer of a pipe.
_OPENED_BY_GIT: Final = frozenset({".gitignore", ".gitattributes", ".gitmodules"})
_NAMED: Final = 5


@dataclass(slots=True)
class Inspection:
    """What was found; paths are relative to the airlock, as bytes."""

    huge: list[bytes] = field(default_factory=list)
    """Regular files above the cap."""
    nested: list[bytes] = field(default_factory=list)
    """Folders that are repositories of their own; they are not descended into (G19)."""
    special: list[bytes] = field(default_factory=list)
    """Pipes, sockets and devices: git passes them over (G13)."""
    twins: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Pairs of paths that are one on a file system that does not tell case or composed letters apart (G14)."""
    large: dict[bytes, int] = field(default_factory=dict)
    """Size in bytes of each file above ``LARGE``."""
    top: set[bytes] = field(default_factory=set)
    """Names in the airlock's own folder."""
    stamp: str = ""
    """Of all files (see :mod:`agents.unaltered`); empty where it would not show every change."""


def inspect(root: Path, *, huge: int = HUGE) -> Inspection:
    """Walk the airlock *root* without following a link; raises Tampered where it is no folder, HostError where it is
    beyond all bounds.

    The agent is dead by now, so what is seen stays; should it not be, a swapped link is refused, not followed (G18).
    What the agent made unreadable for its owner is made readable: git could not export it otherwise.
    """
    found = Inspection()
    handle = _open_root(root)
    try:
        _Walk(handle, found, huge).all()
    except OSError as why:
        # What cannot be looked at cannot be vouched for: it goes only by the operator's own hand.
        hint = f"Look at it, then: git worktree remove --force --force {root}"
        raise HostError(f"The airlock cannot be read: {why.strerror}.", hint) from why
    finally:
        os.close(handle)
    return found


def _open_root(root: Path) -> int:
    try:
        return os.open(root, _FOLDER)
    except OSError as why:
        if why.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            raise Tampered(f"The airlock {root} is gone or no folder any more.", "Type: git worktree list") from why
        raise HostError(f"The airlock {root} cannot be opened: {why.strerror}.", f"Type: ls -ld {root}") from why


_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


_NAME: Final = operator.attrgetter("name")


class _Walk:
    """One walk over a tree, from the descriptor of its top."""

    __slots__ = ("entries", "found", "huge", "root", "stamp")

    def __init__(self, root: int, found: Inspection, huge: int) -> None:
        self.root = root
        self.found = found
        self.huge = huge
        self.entries = 0
        self.stamp = Stamp()

    def all(self) -> None:
        """Look at everything."""
        # A list of folders to come instead of recursion: an agent can nest deeper than Python can call.
        todo = [b""]
        while todo:
            todo += self._folder(todo.pop())
        self.found.stamp = self.stamp.told()

    def _folder(self, folder: bytes) -> list[bytes]:
        handle = os.open(folder or b".", _FOLDER, dir_fd=self.root)
        try:
            with os.scandir(handle) as listing:
                entries = list(listing)
            # Most folders of a large tree hold one thing: what compares it with others is not worth a call.
            if len(entries) > 1:
                entries.sort(key=_NAME)
            self._count(len(entries))
            return self._inside(folder, handle, entries)
        finally:
            os.close(handle)

    def _count(self, more: int) -> None:
        self.entries += more
        if self.entries > MOST_ENTRIES:
            raise HostError(f"The airlock holds more than {MOST_ENTRIES} files.", "Keep the agent from making so many.")

    def _inside(self, folder: bytes, handle: int, entries: list[os.DirEntry[str]]) -> list[bytes]:
        names = [entry.name for entry in entries]
        if not folder:
            self.found.top.update(map(os.fsencode, names))
        elif ".git" in names and _is_repository(handle):
            self.found.nested.append(folder)
            self.stamp.spoil()
            return []
        prefix = folder + b"/" if folder else b""
        if len(names) > 1:
            self.found.twins += [(prefix + one, prefix + other) for one, other in _twins(names)]
        return [
            path
            for name, entry in zip(names, entries, strict=True)
            if name != ".git" and self._is_folder(path := prefix + os.fsencode(name), name, entry, handle)
        ]

    def _is_folder(self, path: bytes, name: str, entry: os.DirEntry[str], handle: int) -> bool:
        """Note what is to be said of *entry*, whose *name* it is; returns whether it is a folder to walk into."""
        seen = entry.stat(follow_symlinks=False)
        kind = stat.S_IFMT(seen.st_mode)
        if kind == stat.S_IFDIR:
            _make_accessible(name, seen, 0o700, handle)
            return True
        self.stamp.add(path, seen)
        if kind == stat.S_IFREG:
            _make_accessible(name, seen, 0o400, handle)
            if seen.st_size > LARGE or seen.st_size > self.huge:
                self._measure(path, seen.st_size)
        elif kind != stat.S_IFLNK:
            self._special(path, name, handle)
        return False

    def _measure(self, path: bytes, size: int) -> None:
        if size > LARGE:
            self.found.large[path] = size
        if size > self.huge:
            self.found.huge.append(path)

    def _special(self, path: bytes, name: str, handle: int) -> None:
        self.found.special.append(path)
        self.stamp.spoil()
        if name in _OPENED_BY_GIT:
            os.unlink(name, dir_fd=handle)


def _make_accessible(name: str, seen: os.stat_result, needed: int, handle: int) -> None:
    if seen.st_mode & needed != needed and seen.st_uid == os.geteuid():
        os.chmod(name, stat.S_IMODE(seen.st_mode) | needed, dir_fd=handle)


def _is_repository(folder: int) -> bool:
    """Whether git might take *folder*, which has a ``.git``, for a repository of its own."""
    try:
        mode = os.stat(".git", dir_fd=folder, follow_symlinks=False).st_mode
        return not stat.S_ISDIR(mode) or stat.S_ISREG(os.stat(".git/HEAD", dir_fd=folder).st_mode)
    except FileNotFoundError:
        return False


def _twins(names: Iterable[str]) -> list[tuple[bytes, bytes]]:
    first: dict[str, str] = {}
    pairs = [(first.setdefault(_fold(name), name), name) for name in names]
    return [(os.fsencode(one), os.fsencode(other)) for one, other in pairs if one != other]


def _fold(name: str) -> str:
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()


def shown(path: bytes) -> str:
    """*path* for a sentence: nothing in it can drive a terminal or look like another name."""
    return visible(os.fsdecode(path))


def named(paths: Iterable[bytes]) -> str:
    """A few of *paths* by name, and how many more there are."""
    known = list(paths)
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return ", ".join(shown(path) for path in known[:_NAMED]) + more


def stamp(path: Path) -> str:
    """A digest of names, kinds, sizes and times below *path*, to tell cheaply whether anything changed.

    At most ``MOST_STAMPED`` entries count; ``.git`` does not. What cannot be read counts as empty.
    """
    digest, todo, left = digests.blake2b(digest_size=16), [os.fsencode(path)], MOST_STAMPED
    while todo and left > 0:
        folder = todo.pop()
        for name, seen in _listed(folder)[:left]:
            left -= 1
            digest.update(b"%b\0%d %d %d\0" % (folder + b"/" + name, seen.st_mode, seen.st_size, seen.st_mtime_ns))
            if stat.S_ISDIR(seen.st_mode):
                todo.append(folder + b"/" + name)
    return digest.hexdigest()


def _listed(folder: bytes) -> list[tuple[bytes, os.stat_result]]:
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as listing:
        for entry in sorted(listing, key=lambda entry: entry.name):
            # What goes away meanwhile is a change that the next stamp shows.
            with contextlib.suppress(OSError):
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    return [(name, seen) for name, seen in found if name != b".git"]
