"""`python -m tests.crash`: the whole matrix, or a part of it; the table of docs/reliability.md is drawn from what it finds."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.crash import matrix, points, scenarios, table
from tests.crash.children import KillChild
from tests.crash.disk_full import FullDisk
from tests.crash.passes import PASSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.crash.model import Pass, Point, Scenario, Verdict

_OWN_POINTS: Final = frozenset({KillChild.name, FullDisk.name})
"""Passes that do not strike at every point of the command, or at others."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run what *argv* asks for; returns 0 where every point passed, 1 where one did not, 4 where nothing can be struck."""
    asked = _asked(argv)
    chosen = [each for each in scenarios.ALL if not asked.scenario or each.name in asked.scenario]
    passes = [each for each in PASSES if not asked.by or each.name in asked.by]
    lacking = {each.name: why for each in passes if (why := each.missing())}
    for name, why in lacking.items():
        print(f"pass {name}: {why}", file=sys.stderr)
    usable = [each for each in passes if each.name not in lacking]
    if not usable or not chosen:
        return 4
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="crash-", dir=asked.folder) as folder:
        for scenario in chosen:
            row, made = _scenario(scenario, usable, Path(folder), asked)
            verdicts += made
            if asked.write_docs:
                # At once: a long run that is cut off has not been for nothing.
                table.write([row])
    if asked.results:
        asked.results.write_text(json.dumps([each.as_dict() for each in verdicts], indent=1) + "\n")
    bad = sum(bool(each.wrong) for each in verdicts)
    print(f"{len(verdicts) - bad} of {len(verdicts)} strikes passed.")
    return 1 if bad else 0


def _asked(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--pass", dest="by", action="append", choices=[each.name for each in PASSES])
    parser.add_argument("--scenario", action="append", choices=[each.name for each in scenarios.ALL])
    parser.add_argument("--at", default="", help="only at points whose label contains this")
    parser.add_argument("--sample", type=int, default=0, help="at so many points of each scenario, evenly spread")
    parser.add_argument("--times", type=int, default=1, help="so many times in a row")
    parser.add_argument("--jobs", type=int, default=2, help="so many worlds side by side")
    parser.add_argument("--folder", type=Path, help="where the worlds are made; a disk of its own is kind to others")
    parser.add_argument("--results", type=Path, help="write every verdict there, as JSON")
    parser.add_argument("--write-docs", action="store_true", help="draw the table of docs/reliability.md")
    return parser.parse_args(argv)


def _scenario(
    scenario: Scenario, passes: Sequence[Pass], folder: Path, asked: argparse.Namespace
) -> tuple[table.Row, list[Verdict]]:
    found = matrix.look(scenario, folder / "look")
    print(f"{scenario.name}: {len(found.points)} points, {len(found.labels)} different", flush=True)
    verdicts: list[Verdict] = []
    cells = {}
    for by in passes:
        seen = matrix.look(scenario, folder / "look", by) if by.name in _OWN_POINTS else found
        at = [each for each in points.thinned(seen.points) if asked.at in each.label]
        at = points.spread(at, asked.sample) if asked.sample else at
        if not at:
            continue
        made = _struck(scenario, by, at, folder, asked)
        cells[by.name] = f"{sum(not each.wrong for each in made)} of {len(made)}"
        print(f"  {by.name}: {cells[by.name]}{_missed(made)}", flush=True)
        verdicts += made
    return table.Row(scenario.name, scenario.about, len(found.points), len(found.labels), cells), verdicts


def _struck(
    scenario: Scenario, by: Pass, at: Sequence[Point], folder: Path, asked: argparse.Namespace
) -> list[Verdict]:
    return [
        each
        for _ in range(asked.times)
        for each in matrix.strike(scenario, by, at, folder / "strikes", jobs=asked.jobs, tell=_tell)
    ]


def _missed(made: Sequence[Verdict]) -> str:
    """Labels that were meant and never hit: timing decides how often some calls are made."""
    missed = {each.point.label for each in made} - {each.label for each in made}
    return f" ({len(missed)} never hit: {', '.join(sorted(missed))})" if missed else ""


def _tell(verdict: Verdict) -> None:
    for sentence in verdict.wrong:
        where = verdict.label or verdict.point.label
        print(f"  {verdict.by} before {verdict.point.call} {verdict.point.nth} ({where}): {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
