"""The case `pace`: streams at the speed at which agents speak, one and many, and a supervisor that is killed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.bench import DRIVERS, Row, Shared
from benchmarks.measure import BenchmarkError, Command, Cost, run
from benchmarks.streaming import fed, looped, pump, supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.bench import Bench, Case

LINES_A_SECOND: Final = 1000
SLOWLY: Final = 20
"""Lines a second of each of many runs."""
PSS: Final = 8 * 1024
"""KiB of memory that one supervisor of many may have to itself, shared pages divided by those that share them."""
_PATIENCE: Final = 30.0
_LINES: Final = 60
"""Lines after which a supervisor is killed."""


def pace(bench: Bench) -> Case:
    """One run at a thousand lines a second, many at twenty, and one whose supervisor dies in the middle."""
    here, seconds, many = bench.material.history(0), bench.sizes.seconds, bench.sizes.parallel
    fast = _pacer(bench, LINES_A_SECOND, seconds)
    slow = _pacer(bench, SLOWLY, seconds)
    python = bench.cost(here, bench.python, "-IS", "-c", "pass")
    slow_tee = fed(bench, slow, bench.command(here, "tee", os.devnull))
    kept = Shared(_Killed(bench).work)
    candidates = {
        "paced": pump(bench, "command", *fast.argv),
        "idle": pump(bench, "command", "sleep", str(seconds)),
        "tee": fed(bench, fast, bench.command(here, "tee", os.devnull)),
        "again": fed(bench, fast, bench.command(here, "tee", os.devnull)),
        "literal": looped(bench, fast, "literal"),
        "many": lambda: _many(bench, slow, many, seconds),
        "bound": lambda: Cost(count=PSS),
        "many tees": lambda: _scaled(python() + slow_tee(), many),
        "lost": kept.piece("lost"),
        "after": kept.piece("after"),
        "written": kept.piece("written"),
    }
    return bench.case(candidates, _rows(many, seconds), 2, 3)


def _pacer(bench: Bench, rate: int, seconds: float, *count: str) -> Command:
    words = ("pace", str(rate), str(seconds), *count)
    return bench.command(bench.material.history(0), bench.python, "-S", str(DRIVERS / "naive.py"), *words)


def _scaled(cost: Cost, factor: int) -> Cost:
    return Cost(cost.wall, cost.cpu * factor, cost.peak)


def _rows(many: int, seconds: float) -> list[Row]:
    what, tee = f"{LINES_A_SECOND} lines a second for {seconds:g} s", "`tee`, fed the same"
    runs = f"{many} supervisors at once, {SLOWLY} lines a second each"
    return [
        Row(name="pace.line", what=f"{what}: the whole supervisor, its start included", floor=tee, over="paced",
            under="tee", target=1.3),
        Row(name="pace.line-net", what=f"{what}: less a silent run that lasts as long", floor=tee, over="paced",
            under="tee", less="idle", target=1.3),
        Row(name="pace.literal", what=what, floor="the loop as first written (see stream.literal)", over="paced",
            under="literal"),
        Row(name="pace.many", what=f"{runs}: processor time", floor="as many `python -IS -c pass` and `tee`",
            over="many", under="many tees", target=2.0),
        Row(name="pace.memory", what=f"{runs}: memory (PSS) of the largest", floor=f"{PSS // 1024} MiB", over="many",
            under="bound", by="count", target=1.0),
        Row(name="pace.lost", what="lines that were written before the supervisor was killed and are not in its box",
            floor="lines written until then", over="lost", under="written", by="count", target=0.0),
        Row(name="pace.after", what="lines written before the agent was ended too, which nobody reads",
            floor="lines written until then", over="after", under="written", by="count"),
        Row(name="pace.noise", what=f"`tee`, {what}, again", floor=tee, over="again", under="tee"),
    ]  # fmt: skip


# --- Many at once -----------------------------------------------------------------------------------------------------


def _many(bench: Bench, agent: Command, many: int, seconds: float) -> Cost:
    """Processor time of *many* supervisors together; ``count`` is the memory of the largest, in KiB of PSS."""
    command = supervisor(bench, "command", *agent.argv)
    began = time.perf_counter()
    with contextlib.ExitStack() as all_:
        running = [all_.enter_context(_started(command)) for _ in range(many)]
        largest = _largest(running, seconds)
        accounts = [_account(each) for each in running]
    return Cost(time.perf_counter() - began, sum(told["cpu"] - told["seal"] for told in accounts), 0, largest)


@contextlib.contextmanager
def _started(command: Command) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command.argv, cwd=command.cwd, env=dict(command.env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def _largest(running: list[subprocess.Popen[bytes]], seconds: float) -> int:
    """Most memory that one of *running* has, looked at until the first of them ends."""
    largest = 0
    while all(each.poll() is None for each in running):
        largest = max(largest, *(_memory(each.pid) for each in running))
        time.sleep(min(0.5, seconds / 4))
    return largest


def _memory(pid: int) -> int:
    """KiB of PSS of the process *pid*; 0 where it is over."""
    try:
        found = re.search(r"^Pss: *(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text("ascii"), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def _account(process: subprocess.Popen[bytes]) -> dict[str, float]:
    out, said = process.communicate()
    if process.returncode:
        raise BenchmarkError(f"one of many ended with {process.returncode}: {said[-300:].decode(errors='replace')}")
    told: dict[str, float] = json.loads(out)
    return told


# --- Killed -----------------------------------------------------------------------------------------------------------


class _Killed:
    """A run whose supervisor is killed: how many lines its agent wrote, and how many of these are not in its box."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._here = bench.material.repository(1, "-killed")

    def work(self) -> dict[str, Cost]:
        """What was ``written`` until the supervisor was killed, what of it was ``lost``, and what came ``after``."""
        bench, count = self._bench, self._bench.material.fresh("count")
        agent = _pacer(bench, SLOWLY * 10, _PATIENCE, str(count))
        command = bench.command(self._here, *_launch(agent.argv))
        try:
            with _started(command) as process:
                _until(lambda: _number(count) >= _LINES)
                written = _number(count)
                process.send_signal(signal.SIGKILL)
                process.wait()
            at_the_end = _settled(count)
        finally:
            count.unlink(missing_ok=True)
        run(bench.command(self._here, *_status()))
        recorded = (self._here / ".agents" / "latest" / "raw" / "stream.jsonl").read_bytes().count(b"\n")
        lost, after = max(0, written - recorded), at_the_end - max(written, recorded)
        return {"written": Cost(count=written), "lost": Cost(count=lost), "after": Cost(count=max(0, after))}


def _launch(argv: tuple[str, ...]) -> tuple[str, ...]:
    return (str(DRIVERS.parent.parent / "agent"), "scout", "x", "--engine", "command", "--", *argv)


def _status() -> tuple[str, ...]:
    return (str(DRIVERS.parent.parent / "agent"), "status", "--json")


def _number(path: Path) -> int:
    try:
        return int(path.read_bytes() or b"0")
    except FileNotFoundError:
        return 0


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not done():
        if time.monotonic() > end:
            raise BenchmarkError("The agent that was to be killed wrote nothing.")
        time.sleep(0.02)


def _settled(path: Path) -> int:
    """The number in *path* when it does not grow any more: then its writer is dead."""
    before = -1
    while (now := _number(path)) != before:
        before = now
        time.sleep(0.3)
    return now
