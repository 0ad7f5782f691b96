"""The case `stream`: what the supervisor itself spends on an agent's output, beyond what a silent run costs it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.bench import Row, Shared, account
from benchmarks.measure import Command, Cost, piped

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.bench import Bench, Case

SAMPLE: Final = 50
"""The loops that write a file for every line get this part of a stream; their cost is multiplied by it."""
_LINES: Final = {
    "small": "lines of 120 B", "typical": "lines of a coding agent (median 450 B)", "wide": "lines of 1 MiB",
    "huge": "a single line",
}  # fmt: skip
# What a stream may cost; for lines that are parsed whole there is no figure to reach.
_TARGETS: Final = {"small": 1.0, "typical": 1.0}


def stream(bench: Bench) -> Case:
    """Streams of several kinds through the supervisor, through `tee`, and through what one would write first."""
    size = bench.sizes.stream
    kinds = {"small": size, "typical": size, "wide": size, "huge": bench.sizes.huge}
    files = {kind: bench.material.stream(kind, wanted) for kind, wanted in kinds.items()}
    # By the same engine: one that comes from a package of its own costs every run the looking for it.
    candidates: dict[str, Callable[[], Cost]] = {
        "nothing": pump(bench, "replay", "true"), "no text": pump(bench, "command", "true"),
    }  # fmt: skip
    rows, sealed = [], {}
    for kind, file in files.items():
        candidates[f"cat {kind}"] = consumer(bench, file, "cat")
        candidates[f"tee {kind}"] = consumer(bench, file, "tee", os.devnull)
        parts = _parts(bench, "replay", "cat", str(file))
        candidates[kind], sealed[kind] = parts.piece("pump"), parts.piece("sealed")
        rows += _rows(kind, f"{_LINES[kind]}, {file.stat().st_size / 1e6:.0f} MB")
    sample = bench.material.stream("typical", size // SAMPLE)
    candidates |= {
        "text": pump(bench, "command", "cat", str(files["small"])),
        "sealed": sealed["typical"],
        "again": consumer(bench, files["typical"], "cat"),
        "heard": pump(bench, "heard", "cat", str(files["typical"])),
        "every line": naive(bench, files["typical"], "exact"),
        "literal": _times(SAMPLE, naive(bench, sample, "literal")),
    }
    return bench.case(candidates, rows + _further_rows(), 5, 7)


def pump(bench: Bench, engine: str, *argv: str) -> Callable[[], Cost]:
    """The cost of a run's supervisor alone, without the sealing of its evidence."""
    return _parts(bench, engine, *argv).piece("pump")


def _parts(bench: Bench, engine: str, *argv: str) -> Shared:
    command = supervisor(bench, engine, *argv)

    def work() -> dict[str, Cost]:
        cost, told = account(command)
        pumped = Cost(cost.wall, told["cpu"] - told["seal"], told["peak"])
        return {"pump": pumped, "sealed": Cost(cost.wall, told["cpu"], told["peak"])}

    return Shared(work)


def supervisor(bench: Bench, engine: str, *argv: str) -> Command:
    """The driver that supervises a run of *argv* and tells what this has cost it."""
    here = bench.material.history(0)
    return bench.driver("supervisor", here, "run", str(bench.material.engine()), engine, *argv)


def consumer(bench: Bench, stream: Path, *argv: str) -> Callable[[], Cost]:
    """The cost of a program that is fed *stream* through a pipe and writes it into a file, as the supervisor does."""
    feeder = bench.command(stream.parent, "cat", str(stream))
    return fed(bench, feeder, bench.command(stream.parent, *argv))


def naive(bench: Bench, stream: Path, name: str) -> Callable[[], Cost]:
    """The cost of the loop *name* of ``drivers/naive.py`` that is fed *stream* through a pipe."""
    feeder = bench.command(stream.parent, "cat", str(stream))
    return looped(bench, feeder, name)


def looped(bench: Bench, feeder: Command, name: str) -> Callable[[], Cost]:
    """The cost of the loop *name*, with a folder of its own, fed by *feeder*."""

    def work() -> Cost:
        with tempfile.TemporaryDirectory(dir=bench.material.fresh("loop").parent) as folder:
            return fed(bench, feeder, bench.driver("naive", Path(folder), name))()

    return work


def fed(bench: Bench, feeder: Command, reader: Command) -> Callable[[], Cost]:
    """The cost of *reader* alone, which *feeder* feeds; what it prints goes into a new file."""

    def work() -> Cost:
        out = bench.material.fresh("out")
        try:
            return piped(feeder, reader, out)
        finally:
            out.unlink(missing_ok=True)

    return work


def _times(factor: int, work: Callable[[], Cost]) -> Callable[[], Cost]:
    def scaled() -> Cost:
        cost = work()
        return Cost(cost.wall * factor, cost.cpu * factor, cost.peak)

    return scaled


def _rows(kind: str, what: str) -> list[Row]:
    return [
        Row(name=f"stream.{kind}", what=what, floor="`tee`", over=kind, under=f"tee {kind}", less="nothing",
            target=_TARGETS.get(kind)),
        Row(name=f"stream.{kind}-cat", what=what, floor="`cat > file`", over=kind, under=f"cat {kind}",
            less="nothing"),
    ]  # fmt: skip


def _further_rows() -> list[Row]:
    typical = "typical lines"
    return [
        Row(name="stream.text", what="plain text (`--engine command`), lines of 120 B", floor="`tee`", over="text",
            under="tee small", less="no text", target=1.0),
        Row(name="stream.sealed", what="typical lines, with the hashing of the evidence", floor="`tee`",
            over="sealed", under="tee typical", less="nothing"),
        Row(name="stream.hollow", what=f"{typical}, nothing of it passed over (hollow's own)", floor="`tee`",
            over="heard", under="tee typical", less="nothing", target=4.5),
        Row(name="stream.every-line", what=typical, floor="a loop: `json.loads` of every line", over="typical",
            under="every line", less="nothing", target=1.0),
        Row(name="stream.literal", what=typical, floor=f"the loop as first written, on 1/{SAMPLE} of them",
            over="typical", under="literal", less="nothing", target=0.03),
        Row(name="stream.noise", what="`cat > file` again", floor="`cat > file`", over="again", under="cat typical"),
    ]  # fmt: skip
