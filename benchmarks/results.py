"""Rows with their figures: verdicts, the table, the JSON beside it, and the table in the documentation."""

from __future__ import annotations

import json
import math
import os
import platform
import resource
import subprocess
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.measure import STEADY, BenchmarkError, Samples, Spread, paired, rounds, spread

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from benchmarks.bench import Case, Row

TOLERANCE: Final = 0.10
"""Part of a target by which a ratio may miss it before that means anything; more where the session was noisier."""
HEAD: Final = (
    "row", "what", "floor or peer", "of", "ratio", "quartiles", "CPU ms", "wall ms", "peak MiB", "target", "verdict",
)  # fmt: skip
BEGIN, END = "<!-- figures: benchmarks/run --docs writes what follows -->", "<!-- end of the figures -->"
_KEPT: Final = 160
"""Characters of a reason that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A row with its figures, or with the reason why it has none."""

    name: str
    what: str
    floor: str
    by: str
    """What is compared: cpu, wall or count."""
    ratio: Spread | None
    """None where it could not be measured."""
    wall_ratio: Spread | None = None
    cpu_ms: float | None = None
    """Median processor time of the candidate, less what is not meant."""
    wall_ms: float | None = None
    peak_mib: float | None = None
    """Most memory of the candidate's largest process, or None where it is not known."""
    rounds: int = 0
    target: float | None = None
    peer: bool = False
    verdict: str
    """met, near (missed by less than the noise) or missed; of a peer better, equal or worse; a dash without either;
    or the reason why there is no figure."""


def judge(ratio: float, target: float | None, noise: float) -> str:
    """The verdict on *ratio*; *noise* is the part by which equal things differed in this session."""
    if target is None:
        return "–"
    if ratio <= target:
        return "met"
    return "near" if ratio <= target * (1 + max(TOLERANCE, noise)) else "missed"


def beside(ratio: float, noise: float) -> str:
    """The verdict on *ratio* to a peer's cost: better and worse only beyond the noise."""
    edge = 1 + max(TOLERANCE, noise)
    if ratio * edge < 1:
        return "better"
    return "worse" if ratio > edge else "equal"


# --- From rounds to rows ----------------------------------------------------------------------------------------------


def measure(case: Case, chance: random.Random) -> list[Result]:
    """Figures of every row of *case*; a candidate that does not work costs only the rows that need it."""

    def steady(samples: Samples) -> bool:
        return all(
            _ratio(row, samples, row.by).width < STEADY
            for row in case.rows
            if _needed(row) <= samples.keys() and row.by != "count"
        )

    failed: dict[str, str] = {}
    samples = rounds(
        case.candidates, least=case.least, most=case.most, steady=steady, chance=chance, warm=case.warm, failed=failed
    )
    noise = _noise(case, samples)
    measured = [_result(row, samples, noise) if _needed(row) <= samples.keys() else _lost(row, failed)
                for row in case.rows]  # fmt: skip
    missing = [
        Result(name=each.name, what=each.what, floor=each.floor, by="cpu", ratio=None, verdict=f"absent: {each.why}")
        for each in case.absent
    ]
    return measured + missing


def _needed(row: Row) -> set[str]:
    return {each for each in (row.over, row.under, row.less) if each}


def _noise(case: Case, samples: Samples) -> float:
    """The part by which equal things differed; nothing where that could not be measured."""
    for row in case.rows:
        if row.name.endswith(".noise") and _needed(row) <= samples.keys():
            ratio = _ratio(row, samples, "cpu")
            return max(abs(ratio.median - 1), (ratio.high - ratio.low) / 2)
    return 0.0


def _lost(row: Row, failed: Mapping[str, str]) -> Result:
    why = next(failed[name] for name in sorted(_needed(row)) if name in failed)
    return Result(
        name=row.name, what=row.what, floor=row.floor, by=row.by, ratio=None, target=row.target, peer=row.peer,
        verdict=f"failed: {why}",
    )  # fmt: skip


def _values(row: Row, samples: Samples, what: str) -> list[float]:
    """Cost of the row's candidate in every round, less what is not meant."""
    over = [float(getattr(cost, what)) for cost in samples[row.over]]
    less = [float(getattr(cost, what)) for cost in samples[row.less]] if row.less else [0.0] * len(over)
    # Something that costs next to nothing may come out below it by chance.
    return [max(0.0, one - other) for one, other in zip(over, less, strict=True)]


def _ratio(row: Row, samples: Samples, what: str) -> Spread:
    return paired(_values(row, samples, what), [getattr(cost, what) for cost in samples[row.under]])


def _result(row: Row, samples: Samples, noise: float) -> Result:
    try:
        ratio = _ratio(row, samples, row.by)
    except BenchmarkError as why:
        return _lost(row, {row.under: str(why)})
    peak = max(cost.peak for cost in samples[row.over])
    # The kernel hands a process's peak on to its children, so nothing below that of this one can be seen.
    seen = peak > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu, wall = (spread(_values(row, samples, what)).median * 1000 for what in ("cpu", "wall"))
    timed = row.by != "count"
    return Result(
        name=row.name, what=row.what, floor=row.floor, by=row.by, ratio=ratio,
        wall_ratio=_ratio(row, samples, "wall") if timed and all(cost.wall for cost in samples[row.under]) else None,
        cpu_ms=cpu if timed else None, wall_ms=wall if timed else None, peak_mib=peak / 1024 if seen else None,
        rounds=len(samples[row.over]), target=row.target, peer=row.peer,
        verdict=beside(ratio.median, noise) if row.peer else judge(ratio.median, row.target, noise),
    )  # fmt: skip


# --- The table --------------------------------------------------------------------------------------------------------


def table(results: Iterable[Result]) -> str:
    """*results* as a Markdown table that also reads well on a terminal."""
    cells = [HEAD, *map(_cells, results)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _cells(result: Result) -> tuple[str, ...]:
    ratio = result.ratio
    return (
        result.name, result.what, result.floor, {"cpu": "CPU"}.get(result.by, result.by),
        _short(ratio.median) if ratio else "–", f"{_short(ratio.low)}–{_short(ratio.high)}" if ratio else "–",
        _number(result.cpu_ms), _number(result.wall_ms),
        "–" if result.peak_mib is None else f"{result.peak_mib:.0f}",
        "–" if result.target is None else f"≤ {result.target:g}", _flat(result.verdict),
    )  # fmt: skip


def _number(value: float | None) -> str:
    return "–" if value is None else _short(value)


def _flat(text: str) -> str:
    """*text* as one cell of a table."""
    return " ".join(text.split()).replace("|", "/")[:_KEPT]


def _short(value: float) -> str:
    """*value* with three digits that count."""
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{min(max(digits, 0), 3)}f}"


# --- Kept -------------------------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    return {
        "cores": os.cpu_count(), "load": os.getloadavg()[0], "kernel": platform.release(),
        "processor": platform.machine(), "python": platform.python_version(), "git": git,
    }  # fmt: skip


def save(path: Path, results: Sequence[Result], **facts: Any) -> None:
    """Write *results* and the *facts* of their session to *path*: the whole file or none of it."""
    report = {"schema": 2, **facts, "machine": machine(), "rows": [asdict(each) for each in results]}
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    new.replace(path)


def load(path: Path) -> tuple[list[Result], dict[str, Any]]:
    """The results in *path*, and the facts of their session; raises OSError, and BenchmarkError for another file."""
    try:
        report = json.loads(path.read_text("utf-8"))
        rows = [
            Result(**{**row, **{name: Spread(**row[name]) for name in ("ratio", "wall_ratio") if row[name]}})
            for row in report.pop("rows")
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as why:
        raise BenchmarkError(f"{path} holds no results: {why!r}.") from None
    return rows, report


def document(path: Path, results: Sequence[Result], facts: Mapping[str, Any]) -> None:
    """Put the table of *results* between the two marks in the page *path*; raises BenchmarkError where they are not."""
    text = path.read_text("utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise BenchmarkError(f"{path} has no place for the figures: {BEGIN} … {END}")
    path.write_text(f"{head}{begin}\n\n{session(facts)}\n\n{table(results)}\n\n{end}{tail}", "utf-8")


def session(facts: Mapping[str, Any]) -> str:
    """One sentence on when and where *facts* were measured."""
    seen = facts["machine"]
    day = time.strftime("%Y-%m-%d", time.gmtime(facts["began"]))
    return (
        f"{seen['cores']} cores ({seen['processor']}), Linux {seen['kernel']}, Python {seen['python']}, git "
        f"{seen['git']}; {day}, {facts['took'] / 60:.0f} minutes, load {seen['load']:.1f} at the end."
    )
