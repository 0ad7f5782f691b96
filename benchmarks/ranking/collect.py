"""Choose bug-fix commits from clones for the ranking evaluation; prints the dataset as JSON.

    python benchmarks/ranking/collect.py FOLDER tuning=pallets/flask,psf/requests held_out=pallets/click > dataset.json

FOLDER holds a clone of ``owner/name`` as ``owner+name`` (bare, or with a ``.git`` or ``repo`` folder inside).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hollow.gitread import git
from hollow.kinds import Kind, kind

PER_REPOSITORY = 20
LOOKED_AT = 4000
MOST_FILES = 5
FIX = re.compile(
    r"\b(?:fix(?:e[sd])?|bug|crash(?:es)?|regression|broken|wrong|incorrect(?:ly)?|leak|deadlock|race)\b", re.IGNORECASE
)
CHORE = re.compile(
    r"\b(?:typos?|lint|mypy|flake8|ruff|pre-commit|changelog|docs?|spelling|version|ci|tests?|revert|warnings?)\b",
    re.IGNORECASE,
)


def clone_of(folder: Path, repository: str) -> Path:
    """Return the git folder of *repository* ("owner/name") below *folder*."""
    base = folder / repository.replace("/", "+")
    return next((place for place in (base / "repo", base) if place.exists()), base)


def sources_of(clone: Path, oid: str) -> list[str]:
    """Return the source files that commit *oid* modified (a new one cannot be found before it)."""
    rows = git(clone, "diff-tree", "-r", "--no-commit-id", "--no-renames", "--name-status", "-z", oid).split(b"\0")
    paths = [
        path.decode("utf-8", "replace") for status, path in zip(rows[::2], rows[1::2], strict=False) if status == b"M"
    ]
    return [path for path in paths if kind(path) is Kind.SOURCE]


def candidates(clone: Path) -> list[str]:
    """Return the ids of bug-fix commits of *clone*, newest first."""
    shown = git(clone, "log", "--no-merges", f"-n{LOOKED_AT}", "--format=%H%x00%s%x00%b%x01", "HEAD").decode(
        "utf-8", "replace"
    )
    found = []
    for record in shown.split("\x01"):
        oid, _, words = record.strip("\n").partition("\0")
        subject = words.partition("\0")[0]
        if len(subject) >= 20 and FIX.search(subject) and not CHORE.search(subject):
            found.append(oid)
    return found


def chosen(clone: Path) -> list[str]:
    """Return at most twenty commits of *clone*, spread evenly over the history looked at."""
    fit = [oid for oid in candidates(clone) if 1 <= len(sources_of(clone, oid)) <= MOST_FILES]
    step = max(1, len(fit) // PER_REPOSITORY)
    return fit[::step][:PER_REPOSITORY]


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0])
    rows = []
    for group in arguments[1:]:
        split, _, names = group.partition("=")
        rows += [
            {"repository": name, "split": split, "commits": chosen(clone_of(folder, name))} for name in names.split(",")
        ]
    print(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
