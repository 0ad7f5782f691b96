"""What every case is made of: its rows, its candidates, its sizes, and how candidates are started."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from agents import sandbox
from benchmarks.measure import BenchmarkError, Command, Cost, answer, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from benchmarks.material import Material

ROOT: Final = Path(__file__).resolve().parent.parent
DRIVERS: Final = ROOT / "benchmarks" / "drivers"

_EMPTIED_WITHIN: Final = 60.0

By = Literal["cpu", "wall", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: the cost of candidate *over* as a multiple of candidate *under*."""

    name: str
    what: str
    floor: str
    over: str
    under: str
    less: str | None = None
    """A candidate whose cost is taken from *over* first: what is not meant."""
    target: float | None = None
    """Largest ratio that is good enough; None where only the figure is of interest."""
    by: By = "cpu"
    """Which part of the costs is compared."""
    peer: bool = False
    """Whether *under* is another program that does the same job: then the verdict is better or worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A line of the table that has no figure on this machine."""

    name: str
    what: str
    floor: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Candidates that are measured round by round beside each other."""

    candidates: Mapping[str, Callable[[], Cost]]
    rows: tuple[Row, ...]
    least: int
    """Rounds at least."""
    most: int
    """Rounds at most."""
    warm: bool = True
    """Whether all run once before, unmeasured."""
    absent: tuple[Absent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much material the cases work on."""

    stream: int
    """Bytes of a stream."""
    huge: int
    """Bytes of the longest line."""
    runs: int
    """Finished runs of a long history."""
    files: int
    """Tracked files of a large repository."""
    tree: int
    """Tracked files of a repository whose work trees are made and removed."""
    small_tree: int
    """The same of a small one."""
    several: int
    """Set-ups at once."""
    parallel: int
    """Runs side by side."""
    seconds: float
    """How long a paced stream lasts."""
    memory: int
    """Ended goals of an agent with a long life."""
    steps: int
    """Steps of a long session."""
    effort: float
    """Rounds as a multiple of the usual number; with none at all nothing is warmed up either."""


FULL: Final = Sizes(
    stream=151_000_000, huge=100_000_000, runs=100_000, files=50_000, tree=10_000, small_tree=1000, several=16,
    parallel=30, seconds=4.0, memory=10_000, steps=500, effort=1.0,
)  # fmt: skip
QUICK: Final = Sizes(
    stream=1_000_000, huge=500_000, runs=200, files=60, tree=100, small_tree=15, several=2, parallel=1, seconds=0.2,
    memory=9, steps=6, effort=0.0,
)  # fmt: skip


class Bench:
    """Starts candidates on *material* of *sizes* with the interpreter that runs this.

    *ram* is material on a file system in memory, where a tree that is removed does not slow the next one down.
    """

    def __init__(self, material: Material, sizes: Sizes, *, ram: Material | None = None) -> None:
        self.material = material
        self.sizes = sizes
        self.ram = ram or material
        self.python = sys.executable

    def command(self, cwd: Path, *argv: str, isolation: str = "none", **more: str) -> Command:
        """*argv* in *cwd*, with an environment that holds nothing of the caller's but PATH; *more* is added to it."""
        env = {
            # The supervisor is measured without the wall, whose cost is the kernel's; the runs are measured with both.
            "AGENT_BOX_ISOLATION": isolation,
            "PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.material.home), "LANG": "C.UTF-8",
            # The environment that runs this is the one that is measured; the launcher must find it.
            "AGENT_BOX_VENV": os.environ.get("AGENT_BOX_VENV") or str(ROOT / ".venv"),
            **more,
        }  # fmt: skip
        return Command(argv=argv, cwd=cwd, env=env)

    def cost(self, cwd: Path, *argv: str) -> Callable[[], Cost]:
        """The cost of the program *argv*."""
        return partial(run, self.command(cwd, *argv))

    def launch(self, cwd: Path, *arguments: str, **more: str) -> Callable[[], Cost]:
        """The cost of ``./agent`` with *arguments*."""
        return partial(run, self.command(cwd, str(ROOT / "agent"), *arguments, **more))

    def walled(self, cwd: Path, *arguments: str) -> Callable[[], Cost]:
        """Like :meth:`launch` in the full sandbox; an error where the machine has none, never a weaker one."""
        # Before the words of the program itself.
        verb, *rest = arguments
        words = (str(ROOT / "agent"), verb, "--sandbox", "full", *rest)
        return partial(run, self.command(cwd, *words, isolation="full"))

    def tidy(self, cwd: Path, work: Callable[[], Cost]) -> Callable[[], Cost]:
        """*work*, after which the airlocks in *cwd* are removed: every round must find what the first one found."""
        collect = self.launch(cwd, "gc")

        def tidied() -> Cost:
            cost = work()
            if any((cwd / "agent_box" / "trees").glob("*")):
                collect()
            emptied(cwd)
            return cost

        return tidied

    def driver(self, name: str, cwd: Path, *words: str, **more: str) -> Command:
        """The program *name* of ``benchmarks/drivers`` with *words*."""
        return self.command(cwd, self.python, str(DRIVERS / f"{name}.py"), *words, **more)

    def driven(self, name: str, cwd: Path, *words: str) -> Callable[[], Cost]:
        """The cost that the driver *name* itself tells, as the fields of :class:`Cost`."""
        command = self.driver(name, cwd, *words)
        return lambda: told(command)

    def case(
        self, candidates: Mapping[str, Callable[[], Cost]], rows: Iterable[Row], least: int, most: int,
        absent: Iterable[Absent] = (),
    ) -> Case:  # fmt: skip
        """A case of *least* to *most* rounds, or of as many as the sizes leave of them."""
        # The short form only shows that everything works, and one round does.
        few, many = (max(1, round(each * self.sizes.effort)) for each in (least, most))
        return Case(
            candidates=MappingProxyType(dict(candidates)), rows=tuple(rows), least=few, most=many,
            warm=self.sizes.effort > 0, absent=tuple(absent),
        )  # fmt: skip


def told(command: Command) -> Cost:
    """The cost that *command* tells of itself, as JSON on its last line; raises BenchmarkError where it is none."""
    return Cost(**account(command)[1])


def account(command: Command) -> tuple[Cost, dict[str, Any]]:
    """The cost of *command* and the object that it prints as its last line; BenchmarkError where it prints none."""
    cost, said = answer(command)
    try:
        found = json.loads(said.strip().rpartition(b"\n")[2])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BenchmarkError(f"{' '.join(command.argv)[:200]} told no account of itself.")
    return cost, found


class Shared:
    """Several candidates that one execution answers for: it is done again when one of them is asked a second time."""

    def __init__(self, work: Callable[[], Mapping[str, Cost]]) -> None:
        self._work = work
        self._left: dict[str, Cost] = {}

    def piece(self, name: str) -> Callable[[], Cost]:
        """The candidate that is the part *name* of the execution."""

        def cost() -> Cost:
            if name not in self._left:
                self._left = dict(self._work())
            return self._left.pop(name)

        return cost


def emptied(repository: Path) -> None:
    """Wait until what the box has put away in *repository* is gone: its unlinking would disturb what comes next."""
    end = time.monotonic() + _EMPTIED_WITHIN
    while time.monotonic() < end and any((repository / ".agents" / "staging").glob("gone-*")):
        time.sleep(0.05)


def has_wall() -> bool:
    """Whether the full sandbox can be measured on this machine."""
    return sandbox.offered(os.environ, None).level == "full"
