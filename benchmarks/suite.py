"""Measures Agent Box beside its floors, prints the table and writes it as JSON; `benchmarks/run` starts it."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if __name__ == "__main__":
    # This folder is first otherwise, and its files would stand in for modules of the same names.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.cases import CASES, FULL, QUICK, Bench, Case, Row
from benchmarks.material import Material
from benchmarks.measure import STEADY, BenchmarkError, Samples, Spread, paired, rounds, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HERE: Final = Path(__file__).resolve().parent
TOLERANCE: Final = 0.10
"""Part of a target by which a ratio may miss it before that means anything; more where the session was noisier."""
MACHINE: Final = 4
"""Exit code when something could not be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A row with its figures."""

    name: str
    what: str
    floor: str
    ratio: Spread
    wall_ratio: Spread
    cpu_ms: float
    """Median processor time of the candidate, less what is not meant."""
    wall_ms: float
    peak_mib: float | None
    """Most memory of the candidate's largest process, or None where it is not known."""
    rounds: int
    target: float | None
    verdict: str
    """met, near (missed by less than the noise), missed, or a dash where there is no target."""


def judge(ratio: float, target: float | None, noise: float) -> str:
    """The verdict on *ratio*; *noise* is the part by which equal things differed in this session."""
    if target is None:
        return "–"
    if ratio <= target:
        return "met"
    return "near" if ratio <= target * (1 + max(TOLERANCE, noise)) else "missed"


def measure(case: Case, chance: random.Random) -> list[Result]:
    """Figures of every row of *case*, the row of its noise first."""

    def steady(samples: Samples) -> bool:
        return all(_ratio(row, samples, "cpu").width < STEADY for row in case.rows)

    samples = rounds(case.candidates, least=case.least, most=case.most, steady=steady, chance=chance)
    noise = next(_noise(_ratio(row, samples, "cpu")) for row in case.rows if row.name.endswith(".noise"))
    return [_result(row, samples, noise) for row in case.rows]


def _noise(ratio: Spread) -> float:
    return max(abs(ratio.median - 1), (ratio.high - ratio.low) / 2)


def _values(row: Row, samples: Samples, what: str) -> list[float]:
    """Cost of the row's candidate in every round, less what is not meant."""
    over = [float(getattr(cost, what)) for cost in samples[row.over]]
    less = [float(getattr(cost, what)) for cost in samples[row.less]] if row.less else [0.0] * len(over)
    return [one - other for one, other in zip(over, less, strict=True)]


def _ratio(row: Row, samples: Samples, what: str) -> Spread:
    return paired(_values(row, samples, what), [getattr(cost, what) for cost in samples[row.under]])


def _result(row: Row, samples: Samples, noise: float) -> Result:
    ratio = _ratio(row, samples, "cpu")
    peak = max(cost.peak for cost in samples[row.over])
    # The kernel hands a process's peak on to its children, so nothing below that of this one can be seen.
    seen = peak > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu, wall = (spread(_values(row, samples, what)).median * 1000 for what in ("cpu", "wall"))
    return Result(
        name=row.name, what=row.what, floor=row.floor, ratio=ratio, wall_ratio=_ratio(row, samples, "wall"),
        cpu_ms=cpu, wall_ms=wall, peak_mib=peak / 1024 if seen else None,
        rounds=len(samples[row.over]), target=row.target, verdict=judge(ratio.median, row.target, noise),
    )  # fmt: skip


def table(results: Iterable[Result]) -> str:
    """*results* as a Markdown table that also reads well on a terminal."""
    head = ("row", "what", "floor", "CPU ratio", "quartiles", "CPU ms", "wall ms", "peak MiB", "target", "verdict")
    cells = [head, *map(_cells, results)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _cells(result: Result) -> tuple[str, ...]:
    ratio = result.ratio
    return (
        result.name, result.what, result.floor, _short(ratio.median), f"{_short(ratio.low)}–{_short(ratio.high)}",
        _short(result.cpu_ms), _short(result.wall_ms),
        "–" if result.peak_mib is None else f"{result.peak_mib:.0f}",
        "–" if result.target is None else f"≤ {result.target:g}", result.verdict,
    )  # fmt: skip


def _short(value: float) -> str:
    """*value* with three digits that count."""
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{min(max(digits, 0), 3)}f}"


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    return {
        "cores": os.cpu_count(), "load": os.getloadavg()[0], "kernel": platform.release(),
        "processor": platform.machine(), "python": platform.python_version(), "git": git,
    }  # fmt: skip


def _arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run", description="What every command costs beside its floor.")
    parser.add_argument("--quick", action="store_true", help="small material, few rounds: shows that it works")
    parser.add_argument("--only", action="append", choices=CASES, metavar="NAME", help=f"one of {', '.join(CASES)}")
    parser.add_argument("--json", type=Path, default=HERE / "results.json", metavar="PATH", help="where figures go")
    parser.add_argument("--cache", type=Path, default=HERE / ".cache", metavar="DIR", help="where material is kept")
    return parser.parse_args(given)


def main(given: Sequence[str]) -> int:
    """Measure what *given* asks for; returns the exit code (0 whatever the figures are, 4 if something failed)."""
    asked = _arguments(given)
    bench = Bench(Material(asked.cache), QUICK if asked.quick else FULL)
    chance = random.Random()  # the order must not be the same in every session
    results: list[Result] = []
    began = time.time()
    try:
        for name in asked.only or CASES:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            results += measure(CASES[name](bench), chance)
    except (BenchmarkError, OSError, subprocess.CalledProcessError) as why:
        print(f"benchmarks: {why}", file=sys.stderr)
        return MACHINE
    print(table(results))
    report = {"schema": 1, "quick": asked.quick, "began": began, "took": time.time() - began, "machine": machine()}
    asked.json.write_text(json.dumps({**report, "rows": [asdict(each) for each in results]}, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
