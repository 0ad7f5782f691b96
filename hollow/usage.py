"""Where names are used: whole-word search in the tracked files."""

from __future__ import annotations

import os
import re

from essentials.patterns import late
from essentials.records import dataclass
from hollow.gitread import GitReadError, git
from hollow.kinds import Kind, kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import Final

_NAME: Final = late(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class Use:
    """One line that holds a name."""

    path: str
    line: int
    """1-based."""
    text: str


def uses(repo: Path, names: Iterable[str], most_each: int = 20) -> list[Use]:
    """Return lines of tracked files that hold any of *names* as whole words, by path, at most *most_each* a file.

    Names shorter than three letters are everywhere and are left out; binary files are not searched.
    """
    # Only plain words pass, so that none can be an option or a pattern.
    asked = [word for name in dict.fromkeys(names) if _NAME.fullmatch(name) for word in ("-e", name)]
    if not asked:
        return []
    try:
        shown = git(
            repo,
            "grep",
            "-I",
            "-n",
            "-z",
            "-w",
            "-F",
            "--no-textconv",
            "--no-color",
            f"--max-count={most_each}",
            *asked,
        )
    except GitReadError:
        return []  # git grep's exit code 1: nothing found
    # NUL-separated, because a path may hold a colon.
    rows = (line.split(b"\0", 2) for line in shown.split(b"\n"))
    return [
        Use(os.fsdecode(row[0]), int(row[1]), row[2][:400].decode("utf-8", "replace").strip())
        for row in rows
        if len(row) == 3 and row[1].isdigit()  # noqa: PLR2004 - path, line, text
    ]


def covering_tests(path: str, present: Iterable[str], mentions: Sequence[Use], most: int = 3) -> list[str]:
    """Return tests of *present* that are likely to cover *path*: by name first, then those that mention its symbols.

    *mentions* are the uses of the symbols of *path*.
    """
    stem = path.rsplit("/", 1)[-1].split(".", 1)[0].strip("_").lower()
    by_name = sorted(test for test in present if kind(test) is Kind.TEST and _subject(test) == stem)
    counts: dict[str, int] = {}
    for use in mentions:
        if kind(use.path) is Kind.TEST:
            counts[use.path] = counts.get(use.path, 0) + 1
    # Equal counts by name: a report must not differ from run to run.
    by_use = sorted(counts, key=lambda test: (-counts[test], test))
    return list(dict.fromkeys([*by_name, *by_use]))[:most]


def _subject(test: str) -> str:
    """What a test file is named after: ``test_url.py``, ``url_test.go`` and ``url.spec.ts`` give url."""
    name = test.rsplit("/", 1)[-1].split(".", 1)[0].lower()
    return re.sub(r"^tests?_?|_?(?:tests?|spec|unittest)$", "", name).strip("_-")
