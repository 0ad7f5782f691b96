"""The case `history`: what every command and every run pays for the runs that are over."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks.bench import Row
from benchmarks.measure import run
from benchmarks.starting import FEW_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.bench import Bench, Case
    from benchmarks.measure import Cost

SOME_RUNS: Final = 1000
"""Enough for a whole dashboard and for what is read of the ledger to draw it."""
_WHOLE: Final = 10
"""Of a long history, one in so many has its evidence too, for what reads all of it."""


def history(bench: Bench) -> Case:
    """The same commands with few and with many finished runs, and what one would write first."""
    few, many = bench.material.history(FEW_RUNS), bench.material.history(bench.sizes.runs)
    some = bench.material.history(min(SOME_RUNS, bench.sizes.runs // 2))
    whole = bench.material.boxes(bench.sizes.runs // _WHOLE)
    candidates = {"append some": bench.driven("supervisor", some, "append", "40")}
    for name, here in (("few", few), ("many", many)):
        candidates[f"status {name}"] = bench.launch(here, "status")
        candidates[f"full {name}"] = bench.launch(here, "status", "--json")
        candidates[f"append {name}"] = bench.driven("supervisor", here, "append", "40")
    runs = whole / ".agents" / "runs"
    candidates |= {
        "again": bench.launch(few, "status"),
        "write": bench.driven("supervisor", few, "floor", "40"),
        "scan": _naive(bench, "scan", str(many / ".agents" / "runs")),
        "verb": bench.launch(few, "list", "--all"),
        "verify": bench.launch(whole, "verify"),
        "hash": _naive(bench, "hash", str(runs)),
        "doctor": bench.launch(whole, "doctor"),
        "read": _naive(bench, "read", str(runs)),
    }
    return bench.case(candidates, _rows(bench), 7, 11)


def _naive(bench: Bench, *words: str) -> Callable[[], Cost]:
    return partial(run, bench.driver("naive", bench.material.history(FEW_RUNS), *words))


def _rows(bench: Bench) -> list[Row]:
    runs, same = f"{bench.sizes.runs:,} finished runs", f"the same with {FEW_RUNS}"
    whole = f"{bench.sizes.runs // _WHOLE:,} whole boxes"
    return [
        Row(name="history.noise", what=f"`agent status`, {FEW_RUNS} runs, again", floor="the same", over="again",
            under="status few"),
        Row(name="history.status", what=f"`agent status`, {runs}", floor=same, over="status many",
            under="status few", target=1.1),
        Row(name="history.naive", what=f"`agent status`, {runs}", floor="a loop: every `state.json` globbed and parsed",
            over="status many", under="scan", target=0.02),
        Row(name="history.sweep", what=f"`agent status --json` (sweep), {runs}", floor=same, over="full many",
            under="full few", target=1.1),
        Row(name="history.append", what=f"one ledger entry and INDEX.md, {runs}",
            floor=f"the same with {SOME_RUNS}: as many rows", over="append many", under="append some", target=1.3),
        Row(name="history.append-few", what=f"one ledger entry and INDEX.md, {runs}",
            floor=f"{same}: fewer rows", over="append many", under="append few"),
        Row(name="history.durable", what=f"one ledger entry and INDEX.md, {FEW_RUNS} runs",
            floor="one line written and fsynced", over="append few", under="write", target=2.0),
        Row(name="history.doctor", what=f"`agent doctor`, {whole}, less its start", floor="a loop: every `state.json`",
            over="doctor", under="read", less="verb", target=1.3),
        Row(name="history.verify", what=f"`agent verify`, {whole}, less its start", floor="a loop: every file hashed",
            over="verify", under="hash", less="verb", target=1.3),
    ]  # fmt: skip
