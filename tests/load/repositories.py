"""Large repositories: what a run, its export and its merge cost beside what git itself needs for as many files."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING, Final

from tests.load import worlds
from tests.load.meter import MIB
from tests.load.table import Row, ended, small, unless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.load.meter import Place, Spent
    from tests.load.worlds import Ground

FILES: Final = 100_000
FEW: Final = 200
MEMORY: Final = (40 * MIB, 192 * MIB)
"""Memory of the largest process: of any, and for :data:`FILES` beyond it. That is git with its index: a `git worktree
add` by hand of as many files has had 205 MiB in all."""

_EDIT: Final = "for f in $(git ls-files | head -5); do echo '# seen' >> \"$f\"; done; echo new > added.txt"
_PROMISED: Final = {"scout": 12.0, "fix": 3.5, "merge": 12.0}
"""How many times the processor time of git alone a verb may need beyond that of a small repository."""


def repository(ground: Ground, scale: float) -> Iterator[Row]:
    """What verbs cost in a repository of a hundred thousand files, beside a small one and beside raw git."""
    count = int(FILES * scale)
    few, many = ground.repository(FEW), ground.repository(count)
    size = f"{count:,} files"
    there, here = (place.agent("status") for place in (few, many))
    yield Row(
        operation="status", size=size, spent=here, beside=f"{here.read - there.read:+d} bytes read",
        promise="as in a small one", faults=(*ended(here), *unless(here.read < there.read + MIB // 4, "it reads more")),
    )  # fmt: skip
    words = {
        "scout": ("scout", "x", "--engine", "command", "--", "true"),
        "fix": ("fix", "x", "--engine", "command", "--", "sh", "-c", _EDIT),
        "merge": ("merge", "latest", "--approve"),
    }
    for verb, argv in words.items():
        floor = _FLOORS[verb](many)
        costs = [place.agent(*argv, *([worlds.patch_hash(place)] if verb == "merge" else [])) for place in (few, many)]
        yield _row(verb, size, costs[0], costs[1], floor, MEMORY[0] + int(MEMORY[1] * scale))


def _row(verb: str, size: str, there: Spent, here: Spent, floor: tuple[str, float], memory: int) -> Row:
    what, git = floor
    ratio = (here.cpu - there.cpu) / max(git, 0.01)
    return Row(
        operation=verb, size=size, spent=here,
        beside=f"{ratio:.1f} × `{what}` ({git:.2f} s CPU) more",
        promise=f"at most {_PROMISED[verb]:g} × git, {memory // MIB} MiB",
        faults=(*ended(here), *small(here, memory),
                *unless(ratio <= _PROMISED[verb], f"{ratio:.1f} × git's own time")),
    )  # fmt: skip


def _looked(place: Place) -> tuple[str, float]:
    return "git status", place.run("git", "status", "--porcelain").cpu


def _worked(place: Place) -> tuple[str, float]:
    """An airlock and an export, by hand."""
    tree = place.root.parent / f"{place.root.name}-by-hand"
    steps = (
        ("git", "worktree", "add", "-q", "--detach", str(tree)),
        ("sh", "-c", f"cd {tree} && {_EDIT} && git add -A && git diff --cached --binary --full-index HEAD"),
        ("git", "worktree", "remove", "-f", str(tree)),
    )
    try:
        return "git worktree add, add -A, diff, remove", sum(place.run(*step).cpu for step in steps)
    finally:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(tree)


def _landed(place: Place) -> tuple[str, float]:
    """A patch looked at, taken in and committed by hand, and taken back."""
    patch = str(place.root / ".agents" / "latest" / "changes.patch")
    steps = (("git", "status"), ("git", "apply", "--index", patch), ("git", "commit", "-qm", "by hand"))
    spents = [place.run(*step) for step in steps]
    place.run("git", "reset", "-q", "--hard", "HEAD~1")
    return "git status, apply --index, commit", sum(spent.cpu for spent in spents)


_FLOORS: Final = {"scout": _looked, "fix": _worked, "merge": _landed}
