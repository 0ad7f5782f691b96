"""The case `run`: a run from the command line to the ledger, around an agent that does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.bench import Row, has_wall

if TYPE_CHECKING:
    from benchmarks.bench import Bench, Case

QUESTION: Final = "where is the latency of the session cache measured"
_TWO: Final = "`true` + 2 `python -c pass` (supervisor, guard)"
_THREE: Final = "3 `python -c pass` (supervisor, guard, hollow)"
_RUNS: Final = {
    "no-op": ("scout", "x", "--engine", "command", "--", "true"),
    "reflex": ("scout", QUESTION, "--mind", "reflex"),
    "fix": ("fix", "x", "--engine", "command", "--", "true"),
}


def run(bench: Bench) -> Case:
    """Whole runs beside the processes that they cannot do without; with the wall too, where there is one."""
    here = bench.material.history(0)
    python = bench.cost(here, bench.python, "-c", "pass")
    true = bench.cost(here, "true")
    candidates = {
        "two": lambda: true() + python() + python(),
        "again": lambda: true() + python() + python(),
        "three": lambda: python() + python() + python(),
        **{name: bench.tidy(here, bench.launch(here, *words)) for name, words in _RUNS.items()},
    }
    rows = [
        Row(name="run.noise", what="the floor again", floor=_TWO, over="again", under="two"),
        Row(name="run.no-op", what="`agent scout x --engine command -- true`", floor=_TWO, over="no-op", under="two"),
        Row(name="run.reflex", what="`agent scout … --mind reflex`, one tracked file", floor=_THREE, over="reflex",
            under="three"),
        Row(name="run.fix", what="`agent fix x --engine command -- true`: with an airlock", floor=_TWO,
            over="fix", under="two"),
    ]  # fmt: skip
    if has_wall():
        candidates |= {f"{name} walled": bench.tidy(here, bench.walled(here, *words)) for name, words in _RUNS.items()}
        rows += _walled_rows()
    return bench.case(candidates, rows, 9, 15)


def _walled_rows() -> list[Row]:
    """Rows of the same runs in the full sandbox: beside their floors, and beside themselves without it."""
    floors = {"no-op": ("two", _TWO), "reflex": ("three", _THREE), "fix": ("two", _TWO)}
    beside = [
        Row(name=f"run.{name}-full", what=f"run.{name} in the full sandbox", floor=floor, over=f"{name} walled",
            under=under)
        for name, (under, floor) in floors.items()
    ]  # fmt: skip
    return beside + [
        Row(name=f"run.{name}-wall", what=f"run.{name} in the full sandbox", floor="the same without a sandbox",
            over=f"{name} walled", under=name)
        for name in floors
    ]  # fmt: skip
