"""Measures what programs cost: children by `wait4`, candidates in random order, ratios of costs from the same round."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

_NOTHING: Final = Path(os.devnull)
STEADY: Final = 0.15
"""Distance of a ratio's quartiles, as a part of its median, below which further rounds would tell little."""
_LAST_WORDS: Final = 600
"""Bytes of a failed program's complaint that are shown."""


class BenchmarkError(Exception):
    """Something that was to be measured did not work: its time would say nothing."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one piece of work cost, everything that it started and waited for included."""

    wall: float = 0.0
    """Seconds on the clock."""
    cpu: float = 0.0
    """Seconds of processor time, user and system."""
    peak: int = 0
    """Most memory that its largest process had at once, in KiB."""
    count: float = 0.0
    """What else was counted: failures, lines, memory; the candidate says what."""

    def __add__(self, other: Cost) -> Cost:
        peak = max(self.peak, other.peak)
        return Cost(self.wall + other.wall, self.cpu + other.cpu, peak, self.count + other.count)


Samples = dict[str, list[Cost]]
"""Costs of every candidate, one a round, in the order of the rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program to run, with nothing on its standard input."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)


def run(command: Command) -> Cost:
    """Cost of *command*, its output thrown away; raises BenchmarkError when it fails."""
    with _NOTHING.open("r+b", buffering=0) as nothing:
        return _Child(command, nothing.fileno(), nothing.fileno()).wait()


def answer(command: Command) -> tuple[Cost, bytes]:
    """Cost of *command*, and what it printed (its own account, say); raises BenchmarkError when it fails."""
    with _NOTHING.open("rb") as nothing, tempfile.TemporaryFile() as out:
        cost = _Child(command, nothing.fileno(), out.fileno()).wait()
        out.seek(0)
        return cost, out.read()


def piped(feeder: Command, consumer: Command, out: Path) -> Cost:
    """Cost of *consumer* alone, which *feeder* feeds through a pipe; what it prints goes into the new file *out*."""
    read, write = os.pipe()
    with contextlib.ExitStack() as ends, _NOTHING.open("rb") as nothing, out.open("xb") as file:
        # Each end is closed here as soon as its child has it: one that stays open would keep the other from ending.
        ends.callback(os.close, write)
        with contextlib.ExitStack() as reading:
            reading.callback(os.close, read)
            consuming = _Child(consumer, read, file.fileno())
        feeding = _Child(feeder, nothing.fileno(), write)
        ends.close()
        cost = consuming.wait()
        feeding.wait()
    return cost


class _Child:
    """A started program with *given* and *out* as its standard input and output."""

    def __init__(self, command: Command, given: int, out: int) -> None:
        self._argv = command.argv
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by wait(), which everyone calls
        actions = [(os.POSIX_SPAWN_DUP2, have, want) for want, have in enumerate((given, out, self._said.fileno()))]
        # Not fork: a copy of this process's memory map would add milliseconds to every child. But posix_spawn knows
        # no working directory, so this process goes there for a moment.
        with contextlib.ExitStack() as failed, contextlib.chdir(command.cwd):
            failed.callback(self._said.close)
            self._began = time.perf_counter()
            self._pid = os.posix_spawnp(command.argv[0], command.argv, dict(command.env), file_actions=actions)
            failed.pop_all()

    def wait(self) -> Cost:
        """Wait for its end; raises BenchmarkError unless it ended well."""
        with self._said as said:
            _, status, usage = os.wait4(self._pid, 0)
            lasted = time.perf_counter() - self._began
            if status:
                said.seek(-min(said.tell(), _LAST_WORDS), os.SEEK_END)
                words = said.read().decode("utf-8", "replace").strip()
                code = os.waitstatus_to_exitcode(status)
                raise BenchmarkError(f"{' '.join(self._argv)[:200]} ended with {code}: {words}")
        return Cost(lasted, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def rounds(
    candidates: Mapping[str, Callable[[], Cost]],
    *,
    least: int,
    most: int,
    steady: Callable[[Samples], bool],
    chance: random.Random,
    warm: bool = True,
    failed: dict[str, str] | None = None,
) -> Samples:
    """Cost of every one of *candidates* in *least* to *most* rounds, in an order of its own each, until *steady*.

    If *warm*, all run once before, unmeasured: compiled modules, caches and indexes are there afterwards. With *failed*
    a candidate that does not work is left out from then on, and its name and the reason go there; without, it raises
    BenchmarkError.
    """
    working = dict(candidates)
    samples: Samples = {name: [] for name in candidates}
    if warm:
        _round(working, sorted(working), {name: [] for name in candidates}, failed)
    for done in range(most):
        if done >= least and steady({name: samples[name] for name in working}):
            break
        _round(working, chance.sample(sorted(working), len(working)), samples, failed)
    return {name: samples[name] for name in working}


def _round(
    working: dict[str, Callable[[], Cost]], order: Sequence[str], samples: Samples, failed: dict[str, str] | None
) -> None:
    """One round in *order*, into *samples*; what fails is taken out of *working*."""
    for name in order:
        try:
            samples[name].append(working[name]())
        except (BenchmarkError, OSError, subprocess.SubprocessError) as why:
            if failed is None:
                raise
            failed[name] = str(why)
            del working[name]


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles of what was measured."""

    median: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Distance of the quartiles as a part of the median."""
        return (self.high - self.low) / abs(self.median) if self.median else float("inf")


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles of *values*, of which there must be one at least."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    return Spread(middle, low, high)


def paired(over: Sequence[float], under: Sequence[float]) -> Spread:
    """Spread of the ratios of *over* to *under*, round by round.

    What disturbs this machine lasts longer than a round, so it strikes both and cancels out; a ratio of medians would
    keep it. Raises BenchmarkError where *under* has nothing to compare with.
    """
    ratios = [one / other for one, other in zip(over, under, strict=True) if other > 0]
    if not ratios:
        raise BenchmarkError("The floor cost nothing: there is no ratio.")
    return spread(ratios)
