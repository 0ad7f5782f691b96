"""The case `hollow`: what an agent's own process costs for a step and for a cycle, however long it has lived."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.bench import Row, Shared, account, told
from benchmarks.measure import Cost, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.bench import Bench, Case
    from benchmarks.measure import Command

_YOUNG: Final = 100
"""Ended goals of an agent with a short life."""


def hollow(bench: Bench) -> Case:
    """Steps early and late in a long session, and cycles early and late in a long life."""
    steps, bare = _steps(bench, "steps"), _steps(bench, "shell")
    young = min(_YOUNG, bench.sizes.memory // 3)
    candidates = {
        "step": steps.piece("all"), "early": steps.piece("early"), "late": steps.piece("late"),
        "walled": _steps(bench, "walled").piece("all"),
        "shell": bare.piece("all"), "even": bare.piece("even"), "odd": bare.piece("odd"),
        "young": _cycle(bench, young), "old": _cycle(bench, bench.sizes.memory),
    }  # fmt: skip
    count, shell = bench.sizes.steps, "`subprocess.run(shell=True)`"
    what = "a step with a shell command, everything saved"
    rows = [
        Row(name="hollow.noise", what=f"{shell}, every other one", floor="the others", over="even", under="odd"),
        Row(name="hollow.step", what=what, floor=shell, over="step", under="shell", target=1.4),
        Row(name="hollow.step-walled", what=f"{what}, in a sandbox of its own", floor=shell, over="walled",
            under="shell"),
        Row(name="hollow.late", what=f"the same, step {count}", floor="step 10", over="late", under="early",
            target=1.1),
        Row(name="hollow.cycle", what=f"a cycle of the reflex mind, after {bench.sizes.memory:,} goals",
            floor=f"after {young}", over="old", under="young", target=3.0),
    ]  # fmt: skip
    return bench.case(candidates, rows, 3, 5)


def step_driver(bench: Bench, kind: str, count: int, out: Path) -> Command:
    """The driver of *count* steps of the *kind* steps, walled or shell, which keep what they say in *out*."""
    return bench.driver("minds", bench.ram.repository(1), kind, str(count), str(bench.ram.repository(1)), str(out))


def _steps(bench: Bench, kind: str) -> Shared:
    def work() -> dict[str, Cost]:
        out = bench.ram.fresh("steps")
        try:
            found = account(step_driver(bench, kind, bench.sizes.steps, out))[1]
        finally:
            out.unlink(missing_ok=True)
            out.with_suffix(".script.json").unlink(missing_ok=True)
        return {name: Cost(**each) for name, each in found.items()}

    return Shared(work)


def _cycle(bench: Bench, age: int) -> Callable[[], Cost]:
    """A cycle on a copy of a memory that *age* goals have gone through: the next round finds what this one found."""
    repo = bench.ram.repository(40, "-life")

    def build(place: Path) -> None:
        place.mkdir()
        run(bench.driver("minds", repo, "age", str(age), str(place)))

    memory = bench.ram.made(f"memory-{age}", build)

    def work() -> Cost:
        with tempfile.TemporaryDirectory(dir=memory.parent) as folder:
            shutil.copytree(memory, Path(folder) / "state", symlinks=True)
            shutil.copytree(repo, Path(folder) / "repo", symlinks=True)
            return told(bench.driver("minds", repo, "cycle", f"{folder}/repo", f"{folder}/state"))

    return work
