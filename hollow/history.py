"""What git's history says: the commits before a state, what each touched, and their subjects."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from essentials.patterns import late
from essentials.records import dataclass
from hollow.gitread import GitReadError, git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Final

    from hollow.index import Index

DEPTH: Final = 3000
"""Commits looked back; older ones describe a code base that is mostly gone."""
_WIDEST: Final = 40
"""Files. A commit that touches more is a reformat, a move or an import, and says nothing about any one of them."""
# Neither a message nor a path can hold a NUL, so nobody can write a commit that reads as two.
_HEAD: Final = late(rb"\0\0([0-9a-f]{40,64}) (\d+)\0([^\0]*)\0")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of the history."""

    oid: str
    time: int
    """Committer's time, seconds since the epoch."""
    message: str
    paths: tuple[str, ...]
    """Files it touched; empty for a merge and for one that touched more than forty."""

    @property
    def subject(self) -> str:
        """First line of the message."""
        return self.message.strip().split("\n", 1)[0]

    @property
    def date(self) -> str:
        """Day in UTC, ``YYYY-MM-DD``."""
        return datetime.fromtimestamp(self.time, UTC).date().isoformat()


def recent(repo: Path, index: Index, before: str = "HEAD", depth: int = DEPTH) -> tuple[Commit, ...]:
    """Return up to *depth* commits reachable from *before*, newest first; none in a repository without a commit.

    What the *index* remembers is not asked of git again.
    """
    try:
        oids = git(repo, "rev-list", f"--max-count={depth}", before, "--").decode("ascii").split()
    except GitReadError:
        return ()  # an unborn branch is no failure: it has no history
    # A commit never changes, so what is remembered needs no check; only which ones are meant is asked of git each time.
    known = index.commits(oids)
    absent = [oid for oid in oids if oid not in known]
    if absent:
        fresh = list(_read(repo, absent))
        index.remember(fresh)
        known.update({oid: (time, message, paths) for oid, time, message, paths in fresh})
    return tuple(_commit(oid, *known[oid]) for oid in oids if oid in known)


def _commit(oid: str, time: int, message: str, paths: bytes) -> Commit:
    return Commit(oid, time, message, tuple(os.fsdecode(path) for path in paths.split(b"\0") if path))


def _read(repo: Path, oids: list[str]) -> Iterator[tuple[str, int, str, bytes]]:
    """``(oid, time, message, paths)`` of each of *oids* from git, in one process."""
    shown = git(
        repo,
        "log",
        # The list is given on standard input: on a command line three thousand ids would be too long for some systems.
        "--no-walk=unsorted",
        "--stdin",
        "--name-only",
        # Both names of a renamed file are wanted, and finding renames costs far more than listing paths.
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "-z",
        "--format=%x00%x00%H %ct%x00%B%x00",
        feed="\n".join(oids).encode("ascii") + b"\n",
    )
    # Cut at the heads, not line by line: messages and paths may hold anything but a NUL.
    heads = list(_HEAD.finditer(shown))
    for head, following in zip(heads, [*(one.start() for one in heads[1:]), len(shown)], strict=True):
        paths = [path for word in shown[head.end() : following].split(b"\0") if (path := word.removeprefix(b"\n"))]
        # Kept without paths, so that it is not asked for again.
        told = b"\0".join(paths) if len(paths) <= _WIDEST else b""
        yield head[1].decode("ascii"), int(head[2]), head[3].decode("utf-8", "replace"), told


def touching(commits: Iterable[Commit], paths: Iterable[str], most: int) -> list[Commit]:
    """Return the first *most* of *commits* that touched any of *paths*."""
    wanted = set(paths)
    found = (commit for commit in commits if wanted.intersection(commit.paths))
    return [commit for commit, _ in zip(found, range(most), strict=False)]
