"""The case `airlock`: what a run that may edit needs of git, from the work tree to the merge, beside git alone."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from benchmarks.bench import DRIVERS, Bench, Row, emptied
from benchmarks.measure import Cost, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benchmarks.bench import Case

_EDIT: Final = (sys.executable, "-S", str(DRIVERS / "naive.py"), "edit")
# What has no wall around it is merged only where the operator says that he answers for it.
_TRUSTED: Final = {"AGENT_BOX_TRUST_UNSANDBOXED": "true"}


def airlock(bench: Bench) -> Case:
    """Set-up, export, merge and removal, for a small and a large repository, and several set-ups at once."""
    large, small = (bench.ram.repository(size) for size in (bench.sizes.tree, bench.sizes.small_tree))
    several = str(bench.sizes.several)
    candidates = {
        "pass": bench.cost(small, bench.python, "-c", "pass"),
        "verb": bench.launch(small, "list", "--all"),
        "scout": _settled(bench, small, bench.driven("supervisor", small, "setup", "scout")),
        "fix small": _settled(bench, small, bench.driven("supervisor", small, "setup", "fix")),
        "fix": _settled(bench, large, bench.driven("supervisor", large, "setup", "fix")),
        "add small": _added(bench, small),
        "add": _added(bench, large),
        "again": _added(bench, large),
        "several": bench.driven("airlocks", small, "several", several),
        "several raw": bench.driven("airlocks", small, "raw", several),
        "one": lambda: Cost(count=bench.sizes.several),
        **_exports(bench),
        "gc": _collected(bench, large),
        "remove": _removed(bench, large),
        "merge": _Merge(bench, bench.ram.repository(bench.sizes.small_tree, "-merge")).work,
        "apply": _applied(bench, bench.ram.repository(bench.sizes.small_tree, "-apply")),
    }
    return bench.case(candidates, _rows(bench), 3, 5)


def _rows(bench: Bench) -> list[Row]:
    small, large = f"{bench.sizes.small_tree:,} files", f"{bench.sizes.tree:,} files"
    add, bare, at_once = "`git worktree add`", "`python -c pass`", f"{bench.sizes.several} set-ups at once, {small}"
    git_diff = "`git add -A` + `git diff --cached --binary`"
    return [
        Row(name="airlock.noise", what=f"{add}, {large}, again", floor=add, over="again", under="add"),
        Row(name="airlock.fix", what=f"`agent fix` until its agent lives, {large}", floor=add, over="fix", under="add",
            target=1.3),
        Row(name="airlock.fix-small", what=f"`agent fix` until its agent lives, {small}", floor=add, over="fix small",
            under="add small"),
        Row(name="airlock.beyond", what=f"the same less {add}: all that is not git's own", floor=bare,
            over="fix small", under="pass", less="add small", target=9.0),
        Row(name="airlock.scout", what="`agent scout` until its agent lives", floor=bare, over="scout", under="pass",
            target=3.0),
        Row(name="airlock.several", what=f"{at_once}: wall time", floor=f"as many {add} without a lock",
            over="several", under="several raw", by="wall", target=1.3),
        Row(name="airlock.failures", what=f"{at_once}: failures", floor="set-ups", over="several", under="one",
            by="count", target=0.0),
        Row(name="airlock.raw-failures", what=f"as many {add} without a lock: failures", floor="set-ups",
            over="several raw", under="one", by="count"),
        Row(name="airlock.export-small", what=f"a patch of 17 files, {small}", floor=git_diff,
            over="export small", under="diff small", target=1.2),
        Row(name="airlock.export", what=f"a patch of 17 files, {large}", floor=git_diff, over="export", under="diff",
            target=1.2),
        Row(name="airlock.merge", what=f"`agent merge`, less the start of a verb, {small}",
            floor="`git apply --check` + `git apply`", over="merge", under="apply", less="verb", target=1.2),
        Row(name="airlock.gc", what=f"`agent gc` of one airlock, until it says so, less the start of a verb, {large}",
            floor="`git worktree remove -f`", over="gc", under="remove", less="verb", target=0.05),
    ]  # fmt: skip


def _git(bench: Bench, place: Path, *words: str) -> Cost:
    return run(bench.command(place, "git", *words))


def _settled(bench: Bench, here: Path, work: Callable[[], Cost]) -> Callable[[], Cost]:
    """*work*, and then the airlocks of *here* removed."""
    return bench.tidy(here, work)


def _added(bench: Bench, here: Path) -> Callable[[], Cost]:
    def work() -> Cost:
        place = here.parent / "raw tree"
        cost = _git(bench, here, "worktree", "add", "--detach", str(place))
        _git(bench, here, "worktree", "remove", "-f", str(place))
        return cost

    return work


def _removed(bench: Bench, here: Path) -> Callable[[], Cost]:
    def work() -> Cost:
        place = here.parent / "raw tree"
        _git(bench, here, "worktree", "add", "--detach", str(place))
        return _git(bench, here, "worktree", "remove", "-f", str(place))

    return work


def _fixed(bench: Bench, here: Path, *argv: str) -> str:
    """The name of a run of *argv* in *here* that has ended."""
    run(bench.command(here, *_agent("fix", "x", "--engine", "command", "--", *argv)))
    return (here / ".agents" / "latest").resolve().name


def _agent(*words: str) -> tuple[str, ...]:
    return (str(DRIVERS.parent.parent / "agent"), *words)


def _collected(bench: Bench, here: Path) -> Callable[[], Cost]:
    def work() -> Cost:
        _fixed(bench, here, "true")
        cost = run(bench.command(here, *_agent("gc")))
        emptied(here)
        return cost

    return work


# --- Export -----------------------------------------------------------------------------------------------------------


def _exports(bench: Bench) -> Mapping[str, Callable[[], Cost]]:
    """The same changes in an airlock and in a work tree of git's, made once: an export leaves both as they are."""
    candidates: dict[str, Callable[[], Cost]] = {}
    for suffix, size in ((" small", bench.sizes.small_tree), ("", bench.sizes.tree)):
        here = bench.ram.repository(size, "-export")
        tree = here.parent / f"edited-{size}"
        shutil.rmtree(tree, ignore_errors=True)
        _git(bench, here, "worktree", "prune")
        _git(bench, here, "worktree", "add", "--detach", str(tree))
        subprocess.run(_EDIT, cwd=tree, check=True)
        candidates[f"export{suffix}"] = bench.driven("airlocks", here, "export", _fixed(bench, here, *_EDIT))
        candidates[f"diff{suffix}"] = bench.driven("airlocks", here, "diff", str(tree))
    return candidates


# --- Merge ------------------------------------------------------------------------------------------------------------


class _Merge:
    """A change that is merged, and taken back for the next round."""

    def __init__(self, bench: Bench, here: Path) -> None:
        self._bench, self._here = bench, here

    def work(self) -> Cost:
        """The cost of the merge alone."""
        bench, here = self._bench, self._here
        _fixed(bench, here, *_EDIT)
        approval = hashlib.sha256((here / ".agents" / "latest" / "changes.patch").read_bytes()).hexdigest()[:16]
        cost = bench.launch(here, "merge", "latest", "--approve", approval, **_TRUSTED)()
        bench.launch(here, "undo", "latest", **_TRUSTED)()
        emptied(here)
        return cost


def _applied(bench: Bench, here: Path) -> Callable[[], Cost]:
    """Git's own way with the same patch, in the checkout *here*."""
    patch = here.parent / f"{here.name}.patch"
    subprocess.run(_EDIT, cwd=here, check=True)
    _git(bench, here, "add", "-A")
    words = ["git", "diff", "--cached", "--binary", "--full-index", "HEAD"]
    patch.write_bytes(subprocess.run(words, cwd=here, check=True, capture_output=True).stdout)
    _git(bench, here, "reset", "-q", "--hard")

    def work() -> Cost:
        cost = _git(bench, here, "apply", "--check", str(patch)) + _git(bench, here, "apply", str(patch))
        _git(bench, here, "reset", "-q", "--hard")
        _git(bench, here, "clean", "-fdq")
        return cost

    return work
