"""Runs the matrix: enumerates the points of a scenario, has a pass strike at them side by side, and judges each world."""

from __future__ import annotations

import queue
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tests.crash import verdict
from tests.crash.kill import Kill, prepared
from tests.crash.model import Verdict, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.crash.model import Pass, Point, Scenario, Struck

_COMMAND: Final = Kill()


@dataclass(frozen=True, slots=True)
class Found:
    """What the enumeration of a scenario has found."""

    points: tuple[Point, ...]
    """Every one, in order."""

    @property
    def labels(self) -> frozenset[str]:
        """The different things that the command does."""
        return frozenset(point.label for point in self.points)


def look(scenario: Scenario, folder: Path, by: Pass = _COMMAND) -> Found:
    """Enumerate the points of *scenario* at which the pass *by* can strike, in the empty *folder*."""
    world, template, log = World(folder / "world"), folder / "template", folder / "log"
    prepared(scenario, world, template)
    found = by.points(scenario, world, template, log)
    shutil.rmtree(folder)
    return Found(tuple(found))


def strike(
    scenario: Scenario,
    by: Pass,
    at: Sequence[Point],
    folder: Path,
    *,
    jobs: int = 1,
    tell: Callable[[Verdict], None] = lambda _verdict: None,
) -> list[Verdict]:
    """Strike *scenario* by the pass *by* at the points *at*, *jobs* at a time; returns the verdicts, in order.

    *tell* hears of each as soon as it is there.
    """
    folders: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for number in range(jobs):
        folders.put(folder / f"worker-{number}")

    def work(part: Sequence[Point]) -> list[Verdict]:
        here = folders.get()
        here.mkdir(parents=True)
        try:
            return list(_verdicts(scenario, by, part, here, tell))
        finally:
            shutil.rmtree(here)
            folders.put(here)

    parts = [part for number in range(jobs) if (part := at[number::jobs])]
    with ThreadPoolExecutor(jobs) as pool:
        found = [each for part in pool.map(work, parts) for each in part]
    order = {point: number for number, point in enumerate(at)}
    return sorted(found, key=lambda each: order[each.point])


def _verdicts(
    scenario: Scenario, by: Pass, at: Sequence[Point], folder: Path, tell: Callable[[Verdict], None]
) -> Iterator[Verdict]:
    known: dict[Point, Verdict] = {}
    for struck in by.strikes(scenario, folder, at):
        same = known.get(struck.like) if struck.like else None
        if same is None:
            made = known[struck.point] = judged(scenario, by, struck)
        else:
            made = replace(same, point=struck.point, hit=struck.hit, label=struck.label)
        tell(made)
        yield made


def judged(scenario: Scenario, by: Pass, struck: Struck) -> Verdict:
    """The verdict on what became of a strike."""
    wrong = [*struck.wrong]
    try:
        wrong += verdict.judge(scenario, struck.world, struck.before)
    except subprocess.CalledProcessError as why:
        # The operator's own git does not work any more.
        wrong.append(f"checkout: {why.cmd} ended with {why.returncode}: {why.stderr}")
    counting = tuple(each for each in wrong if each.partition(":")[0] not in by.pardons)
    return Verdict(
        scenario=scenario.name, by=by.name, point=struck.point, hit=struck.hit, label=struck.label, code=struck.code,
        said=struck.said, wrong=counting,
    )  # fmt: skip
