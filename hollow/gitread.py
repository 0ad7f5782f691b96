"""Reading git: argument lists, bytes, nothing inherited, nothing written, nothing of the repository's run."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

# An operator's settings that would start a program, enter a submodule, or change the shape of what we parse.
_SETTINGS: Final = (
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "log.showSignature=false",
    "diff.ignoreSubmodules=all",
    "diff.renames=true",
    "submodule.recurse=false",
    "color.ui=never",
    "grep.column=false",
    "log.showRoot=true",
)
_SECONDS: Final = 300.0
"""Longest a single git command may take; only a stuck disk takes longer."""


class GitReadError(Exception):
    """Git could not be run or refused; the message is one sentence."""


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return *inherited* without anything that redirects git, and with what keeps it quiet and read-only (style, 4)."""
    kept = {name: value for name, value in inherited.items() if not name.startswith("GIT_")}
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_PAGER": "cat"}
    return {**kept, **quiet, "LC_ALL": "C"}


def command(repo: Path, *arguments: str) -> list[str]:
    """Return the argument list of a git command in *repo*."""
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    return ["git", "--no-pager", "--literal-pathspecs", *settings, "-C", os.fspath(repo), *arguments]


def git(repo: Path, *arguments: str, feed: bytes = b"") -> bytes:
    """Return what ``git ARGUMENTS`` prints in *repo*, given *feed* on its standard input.

    Raises :class:`GitReadError` if git is missing, refuses, or takes longer than five minutes.
    """
    try:
        done = subprocess.run(
            command(repo, *arguments),
            input=feed,
            capture_output=True,
            env=environment(os.environ),
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, ValueError) as why:
        raise GitReadError(f"git {arguments[0]} could not run: {why}") from why
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitReadError(f"git {arguments[0]} failed: {words[-1] if words else f'exit code {done.returncode}'}")
    return done.stdout


def blobs(repo: Path, oids: Iterable[str], limit: int) -> Iterator[tuple[str, bytes | None]]:
    """Yield ``(oid, content)`` of each blob through one git process; None for what is missing or over *limit* bytes."""
    names = list(oids)
    if not names:
        return
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
            head = shown.index(b"\n", at)
            size = int(shown[at:head].rsplit(b" ", 1)[1])
            yield shown[head + 1 : head + 1 + size]
            at = head + 2 + size


def _lines(oids: Iterable[str]) -> bytes:
    return b"".join(oid.encode("ascii") + b"\n" for oid in oids)
