"""Makes and exports airlocks in a process of its own and says what that has cost it, git included, as JSON.

    python benchmarks/drivers/airlocks.py several COUNT    # at once, through the box
    python benchmarks/drivers/airlocks.py raw COUNT        # at once, `git worktree add` without any lock
    python benchmarks/drivers/airlocks.py export NAME      # the changes in the airlock of the run NAME
    python benchmarks/drivers/airlocks.py diff FOLDER      # the same by git alone, in the work tree FOLDER

All work in the repository around the current folder.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    # This folder is first otherwise, and its files would stand in for modules of the same names.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from agents import airlock, files
from agents.context import open_context, prepare
from agents.errors import BoxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agents.context import Context


def spent(work: Callable[[], object]) -> dict[str, float]:
    """What *work* costs this process and the children that it waits for."""
    before, began = _now(), time.perf_counter()
    work()
    lasted = time.perf_counter() - began
    return {"wall": lasted, "cpu": _now() - before}


def _now() -> float:
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


def _names(count: int) -> list[str]:
    return [f"26-01-01_0000__several__{os.urandom(4).hex()}" for _ in range(count)]


def _at_once(work: Callable[[str], bool], count: int) -> dict[str, float]:
    """Do *work* for *count* names at once; ``count`` is how many of them it failed for."""
    names = _names(count)
    failed: list[str] = []

    def everything() -> None:
        with ThreadPoolExecutor(count) as threads:
            failed.extend(name for name, worked in zip(names, threads.map(work, names), strict=True) if not worked)

    account = spent(everything)
    _clear(names)
    return {**account, "count": len(failed)}


def _clear(names: Iterable[str]) -> None:
    """Remove the work trees and boxes called *names*."""
    for name in names:
        for place in (Path("agent_box/trees") / name, Path(".agents/runs") / name):
            shutil.rmtree(place, ignore_errors=True)
        # Locked, or `git worktree prune` would take it away: unlocked first.
        subprocess.run(["git", "worktree", "unlock", f"agent_box/trees/{name}"], check=False, capture_output=True)
    subprocess.run(["git", "worktree", "prune"], check=True)


def several(count: int) -> dict[str, float]:
    """Cost of *count* airlocks that are opened at the same time, and how many could not be."""
    return _at_once(_opener(), count)


def _opener() -> Callable[[str], bool]:
    """What opens the airlock of a name and says whether that worked."""
    context = open_context(Path.cwd(), say=lambda _: None)
    prepare(context)
    base = context.head()

    def opened(name: str) -> bool:
        try:
            _open(context, name, base)
        except BoxError as why:
            print(why, file=sys.stderr)
            return False
        return True

    return opened


def _open(context: Context, name: str, base: str) -> None:
    box = context.layout.box(name)
    files.make_folder(box.private)
    airlock.open_airlock(context.repo, context.layout, box, base)


def raw(count: int) -> dict[str, float]:
    """The same by git alone, as one would call it from several shells."""

    def added(name: str) -> bool:
        command = ["git", "worktree", "add", "--detach", f"agent_box/trees/{name}"]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    return _at_once(added, count)


def export(name: str) -> dict[str, float]:
    """Cost of one export of the airlock of the run *name*."""
    context = open_context(Path.cwd(), say=lambda _: None)
    meta = context.store.meta(name)
    found = airlock.existing(context.repo, context.layout, context.store.box(name), meta.airlock_base or "")
    if found is None:
        raise SystemExit(f"{name} has no airlock")
    return spent(lambda: airlock.export(found))


def diff(folder: Path) -> dict[str, float]:
    """Cost of the patch by git alone, with an index of its own so that the next one finds the same."""
    index = subprocess.run(
        ["git", "rev-parse", "--path-format=absolute", "--git-path", "index"], cwd=folder, check=True,
        capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "GIT_INDEX_FILE": f"{scratch}/index"}

        def work() -> None:
            shutil.copy2(index, env["GIT_INDEX_FILE"])
            for words in (("add", "-A"), ("diff", "--cached", "--binary", "--full-index", "HEAD")):
                subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True)

        return spent(work)


def main(words: Sequence[str]) -> None:
    """Do what *words* say and print the account."""
    name, given = words
    if name in {"several", "raw"}:
        account = {"several": several, "raw": raw}[name](int(given))
    else:
        account = export(given) if name == "export" else diff(Path(given))
    print(json.dumps(account))


if __name__ == "__main__":
    main(sys.argv[1:])
