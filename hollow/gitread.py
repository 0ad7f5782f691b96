"""Reading much of git at once: argument lists, bytes, nothing inherited, nothing written, no program started."""

from __future__ import annotations

import os
import subprocess

from hollow.gitenv import FILTERS, environment, filters_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Final

_SECONDS: Final = 300.0
"""Longest a single git command may take; only a stuck disk takes longer."""


class GitReadError(Exception):
    """Git could not be run or refused; the message is one sentence."""


def command(repo: Path, *arguments: str) -> list[str]:
    """Return the argument list of a git command in *repo*."""
    # Literal: the paths handed to these commands come from listings, where "*" and ":" are letters of a name.
    return ["git", "--no-pager", "--literal-pathspecs", "-C", os.fspath(repo), *arguments]


def git(repo: Path, *arguments: str, feed: bytes = b"") -> bytes:
    """Return what ``git ARGUMENTS`` prints in *repo*, given *feed* on its standard input.

    Raises :class:`GitReadError` if git is missing, refuses, or takes longer than five minutes.
    """
    return _checked(_run(repo, arguments, feed), arguments)


def compare(repo: Path, *arguments: str) -> bytes:
    """Return what ``git ARGUMENTS`` prints, for a command that may compare the working tree: no filter is run.

    Raises :class:`GitReadError` as :func:`git` does.
    """
    named = _run(repo, FILTERS)
    # Git ends with 1 where there is no filter; any other failure must not pass for that.
    settings = filters_off(named.stdout if named.returncode == 1 else _checked(named, FILTERS))
    return _checked(_run(repo, arguments, settings=settings), arguments)


def _run(
    repo: Path, arguments: Sequence[str], feed: bytes = b"", settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command(repo, *arguments),
            input=feed,
            capture_output=True,
            # A submodule is a repository of its own; its changes are not read.
            env=environment({"diff.ignoreSubmodules": "all", **(settings or {})}),
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, ValueError) as why:
        raise GitReadError(f"git {arguments[0]} could not run: {why}") from why


def _checked(done: subprocess.CompletedProcess[bytes], arguments: Sequence[str]) -> bytes:
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitReadError(f"git {arguments[0]} failed: {words[-1] if words else f'exit code {done.returncode}'}")
    return done.stdout


def blobs(repo: Path, oids: Iterable[str], limit: int) -> Iterator[tuple[str, bytes | None]]:
    """Yield ``(oid, content)`` of each blob through one git process; None for what is missing or over *limit* bytes."""
    names = list(oids)
    if not names:
        return
    # Sizes first: git sends a blob whole, and one of a gigabyte is not wanted at all.
    sizes = _sizes(repo, names)
    wanted = [oid for oid in names if 0 <= sizes.get(oid, -1) <= limit]
    contents = _batch(repo, wanted)
    for oid in names:
        yield oid, (next(contents) if 0 <= sizes.get(oid, -1) <= limit else None)


def _sizes(repo: Path, oids: list[str]) -> dict[str, int]:
    """Bytes of each blob of *oids* that exists."""
    shown = git(repo, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", feed=_lines(oids))
    rows = (line.decode("ascii", "replace").split(" ") for line in shown.splitlines())
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[1] == "blob"}  # noqa: PLR2004 - the format's fields


def _batch(repo: Path, oids: list[str]) -> Iterator[bytes]:
    """Contents of *oids*, all of which exist, in order; in slices, to bound the memory."""
    for start in range(0, len(oids), 64):
        shown = git(repo, "cat-file", "--batch", feed=_lines(oids[start : start + 64]))
        at = 0
        while at < len(shown):
            # Each blob is a head line, its bytes and a line feed; the size in the head is the only way to find the
            # next.
            head = shown.index(b"\n", at)
            size = int(shown[at:head].rsplit(b" ", 1)[1])
            yield shown[head + 1 : head + 1 + size]
            at = head + 2 + size


def _lines(oids: Iterable[str]) -> bytes:
    return b"".join(oid.encode("ascii") + b"\n" for oid in oids)
