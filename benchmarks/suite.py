"""Measures Agent Box beside its floors and peers, prints the table, writes it as JSON; `benchmarks/run` starts it."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if __name__ == "__main__":
    # This folder is first otherwise, and its files would stand in for modules of the same names.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.airlocks import airlock
from benchmarks.bench import FULL, QUICK, ROOT, Bench
from benchmarks.histories import history
from benchmarks.hollows import hollow
from benchmarks.material import Material
from benchmarks.measure import BenchmarkError
from benchmarks.pacing import pace
from benchmarks.peers import peers
from benchmarks.results import Result, document, load, measure, save, table
from benchmarks.running import run
from benchmarks.scouting import scout
from benchmarks.starting import start
from benchmarks.streaming import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.bench import Case

HERE: Final = ROOT / "benchmarks"
PAGE: Final = ROOT / "docs" / "performance.md"
MACHINE: Final = 4
"""Exit code when something could not be measured."""
_MEMORY: Final = Path("/dev/shm")
_ENOUGH: Final = 2 * 1024**3
"""Bytes that must be free in memory for trees to be made there."""

CASES: Final[Mapping[str, Callable[[Bench], Case]]] = MappingProxyType({
    "start": start, "run": run, "airlock": airlock, "stream": stream, "pace": pace, "history": history,
    "scout": scout, "hollow": hollow, "peers": peers,
})  # fmt: skip
"""Every case by the name that ``--only`` takes."""
OPTIONAL: Final = frozenset({"peers"})
"""Cases that are measured only when they are asked for: they need what the box itself does without."""


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """What *given* asks for; leaves with 2 where that makes no sense."""
    parser = argparse.ArgumentParser(prog="benchmarks/run", description="What every command costs beside its floor.")
    parser.add_argument("--quick", action="store_true", help="small material, one round: shows that it works")
    parser.add_argument("--peers", action="store_true", help="also other programs; installs them into the cache")
    parser.add_argument("--only", action="append", choices=CASES, metavar="NAME", help=f"one of {', '.join(CASES)}")
    parser.add_argument("--json", type=Path, default=HERE / "results.json", metavar="PATH", help="where figures go")
    parser.add_argument("--cache", type=Path, default=HERE / ".cache", metavar="DIR", help="where material is kept")
    parser.add_argument("--docs", nargs="?", type=Path, const=PAGE, metavar="PAGE",
                        help="measure nothing: write the figures of --json into docs/performance.md")  # fmt: skip
    return parser.parse_args(given)


def cases(asked: argparse.Namespace) -> list[str]:
    """Names of the cases that *asked* means, in the order in which they are measured."""
    named = set(asked.only or CASES.keys() - OPTIONAL) | ({"peers"} if asked.peers else set())
    return [name for name in CASES if name in named]


@contextlib.contextmanager
def in_memory(material: Material) -> Iterator[Material]:
    """Material on a file system in memory, gone afterwards; *material* itself where there is no large one."""
    try:
        roomy = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ENOUGH
    except OSError:
        roomy = False
    if not roomy:
        yield material
        return
    with tempfile.TemporaryDirectory(prefix="agent-box-benchmarks-", dir=_MEMORY, ignore_cleanup_errors=True) as folder:
        yield Material(Path(folder))


def main(given: Sequence[str]) -> int:
    """Measure what *given* asks for; returns the exit code: 0 whatever the figures are, 4 if something failed."""
    asked = arguments(given)
    try:
        if asked.docs:
            document(asked.docs, *load(asked.json))
            return 0
        return _session(asked)
    except (BenchmarkError, OSError) as why:
        return _complain(why)


def _session(asked: argparse.Namespace) -> int:
    material = Material(asked.cache)
    results: list[Result] = []
    failed = 0
    began = time.time()
    chance = random.Random()  # the order must not be the same in every session
    with in_memory(material) as ram:
        bench = Bench(material, QUICK if asked.quick else FULL, ram=ram)
        for name in cases(asked):
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            try:
                results += measure(CASES[name](bench), chance)
            except (BenchmarkError, OSError, subprocess.SubprocessError) as why:
                failed = _complain(f"{name}: {why}")
            # After every case: what was measured is not lost with what comes next.
            save(asked.json, results, quick=asked.quick, began=began, took=time.time() - began)
    for each in results:
        if each.verdict.startswith("failed"):
            failed = _complain(f"{each.name}: {each.verdict}")
    print(table(results))
    return failed


def _complain(why: object) -> int:
    print(f"benchmarks: {why}", file=sys.stderr)
    return MACHINE


if __name__ == "__main__":
    # Whoever ends it finds nothing left of it in memory.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    sys.exit(main(sys.argv[1:]))
