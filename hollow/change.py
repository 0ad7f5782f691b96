"""The change under review: which one is meant, and its diff as values."""

from __future__ import annotations

import os
import re

from essentials.patterns import late
from essentials.records import dataclass
from hollow.gitread import GitReadError, compare, git
from hollow.tracked import LARGEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Final

# A range, HEAD with steps, or an id of seven digits and more, the fewest that git prints; a bare word like "main" is
# more often prose than a branch. It is no guard: git is asked for an id behind --end-of-options, and only ids go
# further.
_RANGE: Final = late(
    r"(?<![\w./~^-])([\w./~^@{}-]*?\w[\w./~^@{}-]*\.\.\.?[\w./~^@{}-]*|HEAD[~^\d]+|[0-9a-f]{7,40})(?![\w/])"
)
_SAFE: Final = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "-M")
_SHAPE: Final = ("--inter-hunk-context=0", "--src-prefix=a/", "--dst-prefix=b/")
_MOST_DIFF: Final = 8 << 20
"""Bytes of a diff that are read; a larger one is vendored code or data, and the file list says so."""
_HUNK: Final = late(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$")


@dataclass(frozen=True, slots=True)
class Line:
    """One added line."""

    number: int
    """1-based, in the new file."""
    text: str


@dataclass(frozen=True, slots=True)
class Touched:
    """One file of a change."""

    path: str
    old_path: str
    """Differs from :attr:`path` only where the file was renamed or copied."""
    status: str
    """added, deleted, renamed, modified or type changed."""
    added: int
    removed: int
    """Lines; both are 0 for a binary file."""
    binary: bool
    lines: tuple[Line, ...] = ()
    """What was added."""
    hunks: tuple[int, ...] = ()
    """First line of each changed place in the new file."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is reviewed."""

    title: str
    """In words: the uncommitted change, a commit, a range."""
    files: tuple[Touched, ...]
    revision: str | None
    """The commit whose files the change leaves, or None for the working tree."""
    cut: bool = False
    """Whether the diff was too large to be read whole."""


def under_review(repo: Path, task: str) -> Change:
    """Return the change that *task* names (a range, a commit), else the uncommitted one, else the last commit.

    Raises :class:`hollow.gitread.GitReadError` where git cannot show it.
    """
    # The first that git knows: "1.2..1.3" in a sentence may look like a range and be none.
    for word in _RANGE.findall(task):
        if (named := _named(repo, word)) is not None:
            return named
    head = _commit(repo, "HEAD")
    # Against HEAD, not the index: staged or not makes no difference to a reviewer.
    local = _change(repo, "the uncommitted change", [head or _empty_tree(repo)], None)
    if local.files or head is None:
        return local
    return _single(repo, head)


def _named(repo: Path, word: str) -> Change | None:
    """The change that *word* names, or None if it names no revision here."""
    first, dots, last = word.partition("...") if "..." in word else word.partition("..")
    begin, end = _commit(repo, first or "HEAD"), _commit(repo, last or "HEAD")
    if begin is None or end is None:
        return None
    if not dots:
        return _single(repo, begin)
    base = _common(repo, begin, end) if dots == "..." else begin
    return _change(repo, f"the range {word}", [base, end], end)


def _single(repo: Path, oid: str) -> Change:
    """The change that the commit *oid* made to its first parent."""
    subject = git(repo, "show", "-s", "--format=%s", oid).decode("utf-8", "replace").strip()
    return _change(repo, f"commit {oid[:8]} “{subject}”", [_commit(repo, f"{oid}^") or _empty_tree(repo), oid], oid)


def _common(repo: Path, begin: str, end: str) -> str:
    """The commit where two histories part; *begin* where they never met."""
    try:
        return git(repo, "merge-base", begin, end).decode("ascii").split()[0]
    except GitReadError:
        return begin


def _empty_tree(repo: Path) -> str:
    """The id of the tree without files, which differs between SHA-1 and SHA-256 repositories."""
    return git(repo, "hash-object", "-t", "tree", "--stdin").decode("ascii").strip()


def _commit(repo: Path, name: str) -> str | None:
    """The commit id that *name* stands for, or None."""
    try:
        shown = git(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except GitReadError:
        return None
    return shown.decode("ascii").strip().splitlines()[-1]


def _change(repo: Path, title: str, ends: list[str], revision: str | None) -> Change:
    """The difference between two commits, or between one and the working tree."""
    # Three listings of one difference: only NUL-separated ones name every path exactly, and the text has the lines.
    names = compare(repo, "diff", "--name-status", "-z", *_SAFE, *ends, "--")
    sizes = _sizes(compare(repo, "diff", "--numstat", "-z", *_SAFE, *ends, "--"))
    text = compare(repo, "diff", "--unified=0", *_SHAPE, *_SAFE, *ends, "--")
    bodies = dict(_bodies(text[:_MOST_DIFF]))
    files = []
    for status, old, new in _named_files(names):
        added, removed = sizes.get(new, (None, None))
        lines, hunks = bodies.get(new, ((), ()))
        files.append(Touched(new, old, status, added or 0, removed or 0, added is None, lines, hunks))
    return Change(title, tuple(files), revision, len(text) > _MOST_DIFF)


_WORDS: Final = {"A": "added", "D": "deleted", "R": "renamed", "C": "added", "T": "type changed"}


def _named_files(listing: bytes) -> Iterator[tuple[str, str, str]]:
    """``(status, old path, new path)`` of each row of ``--name-status -z``."""
    words = iter(os.fsdecode(word) for word in listing.split(b"\0"))
    for status in words:
        if status:
            old = next(words)
            yield _WORDS.get(status[0], "modified"), old, next(words) if status[0] in "RC" else old


def _sizes(listing: bytes) -> dict[str, tuple[int | None, int | None]]:
    """New path to lines added and removed (None: binary) of ``--numstat -z``."""
    found: dict[str, tuple[int | None, int | None]] = {}
    words = iter(listing.split(b"\0"))
    for word in words:
        fields = word.split(b"\t", 2)
        if len(fields) == 3:  # noqa: PLR2004 - added, removed, path
            # A renamed file has an empty path here, and its old and new one in the next two words.
            path = fields[2] or (next(words), next(words))[1]
            counts = [int(field) if field.isdigit() else None for field in fields[:2]]
            found[os.fsdecode(path)] = (counts[0], counts[1])
    return found


def _bodies(text: bytes) -> Iterator[tuple[str, tuple[tuple[Line, ...], tuple[int, ...]]]]:
    """New path to its added lines and hunk starts, of a diff without context."""
    for part in (b"\n" + text).split(b"\ndiff --git ")[1:]:
        rows = part.split(b"\n")
        path = next((row[4:] for row in rows if row.startswith(b"+++ ")), b"")
        # A deleted file has /dev/null here; nothing of it is left to look at.
        if path.startswith((b"b/", b'"b/')):
            yield _plain(path), _added(rows)


def _plain(path: bytes) -> str:
    """The file name of a ``+++`` row: without prefix, quotes and the tab that git adds after spaces."""
    path = path.split(b"\t", 1)[0] if not path.startswith(b'"') else path
    if path.startswith(b'"'):
        inner = path.strip(b"\t\r")[1:-1]
        path = re.sub(rb"\\([0-7]{3}|.)", _unquoted, inner)
    return os.fsdecode(path.removeprefix(b"b/"))


def _unquoted(hit: re.Match[bytes]) -> bytes:
    escape = hit[1]
    named = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
    return bytes([int(escape, 8) & 0xFF]) if len(escape) == 3 else named.get(escape, escape)  # noqa: PLR2004 - octal digits


def _added(rows: list[bytes]) -> tuple[tuple[Line, ...], tuple[int, ...]]:
    number, lines, hunks = 0, [], []
    for row in rows:
        if hit := _HUNK.match(row):
            number = int(hit[1])
            # Where a file was emptied, git says that the change begins at line 0.
            hunks.append(max(1, number))
        # Before the first hunk, "+++" is the file's name; within one it is a line that begins with two plus signs.
        elif number and row.startswith(b"+"):
            lines.append(Line(number, row[1 : LARGEST // 256].decode("utf-8", "replace").rstrip("\r")))
            number += 1
    return tuple(lines), tuple(hunks)
