"""What is measured: for every case its candidates, its floors, and the rows of the table that compare them."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from agents import sandbox
from benchmarks.measure import Command, Cost, answer, piped, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.material import Material

ROOT: Final = Path(__file__).resolve().parent.parent
QUESTION: Final = "where is the latency of the session cache measured"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Candidates that are measured round by round beside each other."""

    candidates: Mapping[str, Callable[[], Cost]]
    rows: tuple[Row, ...]
    least: int
    """Rounds at least."""
    most: int
    """Rounds at most."""


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
    effort: float
    """Rounds as a multiple of the usual number."""


FULL: Final = Sizes(stream=151_000_000, huge=100_000_000, runs=100_000, files=50_000, effort=1.0)
QUICK: Final = Sizes(stream=2_000_000, huge=1_000_000, runs=2_000, files=500, effort=0.0)
FEW_RUNS: Final = 10
SOME_RUNS: Final = 1000
"""Enough for a whole dashboard and for what is read of the ledger to draw it."""


class Bench:
    """Builds the cases on *material* of *sizes*, with the interpreter that runs this."""

    def __init__(self, material: Material, sizes: Sizes) -> None:
        self._material = material
        self._sizes = sizes
        self._python = sys.executable

    def _command(self, cwd: Path, *argv: str, isolation: str = "none") -> Command:
        env = {
            # The supervisor is measured without the wall, whose cost is the kernel's; the runs are measured with both.
            "AGENT_BOX_ISOLATION": isolation,
            "PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._material.home), "LANG": "C.UTF-8",
            # The environment that runs this is the one that is measured; the launcher must find it.
            "AGENT_BOX_VENV": os.environ.get("AGENT_BOX_VENV") or str(ROOT / ".venv"),
        }  # fmt: skip
        return Command(argv=argv, cwd=cwd, env=env)

    def _cost(self, cwd: Path, *argv: str) -> Callable[[], Cost]:
        return partial(run, self._command(cwd, *argv))

    def _launch(self, cwd: Path, *arguments: str) -> Callable[[], Cost]:
        return self._cost(cwd, str(ROOT / "agent"), *arguments)

    def _walled(self, cwd: Path, *arguments: str) -> Callable[[], Cost]:
        """Like :meth:`_launch` in the full sandbox; an error where the machine has none, never a weaker one."""
        # Before the words of the program itself.
        verb, *rest = arguments
        words = (str(ROOT / "agent"), verb, "--sandbox", "full", *rest)
        return partial(run, self._command(cwd, *words, isolation="full"))

    def _tidy(self, cwd: Path, work: Callable[[], Cost]) -> Callable[[], Cost]:
        """*work*, after which the airlocks in *cwd* are removed: every round must find what the first one found."""
        collect = self._launch(cwd, "gc")

        def tidied() -> Cost:
            cost = work()
            if any((cwd / "agent_box" / "trees").glob("*")):
                collect()
            return cost

        return tidied

    def _direct(self, cwd: Path, *arguments: str) -> Callable[[], Cost]:
        return self._cost(cwd, self._python, "-IS", str(ROOT / "agents" / "__main__.py"), *arguments)

    def _case(self, candidates: Mapping[str, Callable[[], Cost]], rows: list[Row], least: int, most: int) -> Case:
        # The short form only shows that everything works, and one round does.
        least, most = (max(1, round(each * self._sizes.effort)) for each in (least, most))
        return Case(candidates=MappingProxyType(dict(candidates)), rows=tuple(rows), least=least, most=most)

    # --- Cold start ---------------------------------------------------------------------------------------------------

    def start(self) -> Case:
        """From Enter to the prompt, for what needs no run."""
        here = self._material.history(FEW_RUNS)
        python = partial(self._cost, here, self._python)
        candidates = {
            "sh": self._cost(here, "sh", "-c", ":"),
            "pass": python("-c", "pass"),
            "again": python("-c", "pass"),
            "isolated": python("-IS", "-c", "pass"),
            "typer": python("-c", "import typer"),
            "--help": self._launch(here, "--help"),
            "--version": self._launch(here, "--version"),
            "status": self._launch(here, "status"),
            "status direct": self._direct(here, "status"),
            "--help direct": self._direct(here, "--help"),
            "list --all": self._launch(here, "list", "--all"),
            "status --json": self._launch(here, "status", "--json"),
        }
        return self._case(candidates, _start_rows(), 15, 41)

    # --- Whole runs ---------------------------------------------------------------------------------------------------

    def run(self) -> Case:
        """A run from the command line to the ledger, around an agent that does nothing."""
        here = self._material.history(0)
        python = self._cost(here, self._python, "-c", "pass")
        true = self._cost(here, "true")
        runs = {
            "no-op": ("scout", "x", "--engine", "command", "--", "true"),
            "reflex": ("scout", QUESTION, "--mind", "reflex"),
            "fix": ("fix", "x", "--engine", "command", "--", "true"),
        }
        candidates = {
            "two": lambda: true() + python() + python(),
            "again": lambda: true() + python() + python(),
            "three": lambda: python() + python() + python(),
            **{name: self._tidy(here, self._launch(here, *words)) for name, words in runs.items()},
        }
        two, three = "`true` + 2 `python -c pass` (supervisor, guard)", "3 `python -c pass` (supervisor, guard, hollow)"
        rows = [
            Row(name="run.noise", what="the floor again", floor=two, over="again", under="two"),
            Row(name="run.no-op", what="`agent scout x --engine command -- true`", floor=two, over="no-op",
                under="two"),
            Row(name="run.reflex", what="`agent scout … --mind reflex`, one tracked file", floor=three, over="reflex",
                under="three"),
            Row(name="run.fix", what="`agent fix x --engine command -- true`: with an airlock", floor=two,
                over="fix", under="two"),
        ]  # fmt: skip
        if has_wall():
            candidates |= {
                f"{name} walled": self._tidy(here, self._walled(here, *words)) for name, words in runs.items()
            }
            rows += _walled_rows(two, three)
        return self._case(candidates, rows, 11, 21)

    # --- Streams ------------------------------------------------------------------------------------------------------

    def _supervisor(self, engine: str, *argv: str) -> Callable[[], tuple[Cost, Cost]]:
        """Cost of a run's supervisor: without and with the sealing of its evidence."""
        driver = [self._python, str(ROOT / "benchmarks" / "drive.py"), "run", str(self._material.engine()), engine]
        command = self._command(self._material.history(0), *driver, *argv)

        def work() -> tuple[Cost, Cost]:
            cost, said = answer(command)
            told = json.loads(said)
            return Cost(cost.wall, told["cpu"] - told["seal"], told["peak"]), Cost(cost.wall, told["cpu"], told["peak"])

        return work

    def _pump(self, engine: str, *argv: str) -> Callable[[], Cost]:
        work = self._supervisor(engine, *argv)
        return lambda: work()[0]

    def _sealed(self, engine: str, *argv: str) -> Callable[[], Cost]:
        work = self._supervisor(engine, *argv)
        return lambda: work()[1]

    def _consumer(self, stream: Path, *argv: str) -> Callable[[], Cost]:
        """Cost of a program that is fed *stream* through a pipe and writes it into a file, as the supervisor does."""
        here = stream.parent
        feeder, consumer = self._command(here, "cat", str(stream)), self._command(here, *argv)

        def work() -> Cost:
            out = self._material.fresh("out")
            try:
                return piped(feeder, consumer, out)
            finally:
                out.unlink(missing_ok=True)

        return work

    def stream(self) -> Case:
        """What the supervisor itself spends on an agent's output, beyond what a run without output costs it."""
        size = self._sizes.stream
        kinds = {"small": size, "typical": size, "wide": size, "huge": self._sizes.huge}
        files = {kind: self._material.stream(kind, wanted) for kind, wanted in kinds.items()}
        candidates: dict[str, Callable[[], Cost]] = {"nothing": self._pump("command", "true")}
        rows = []
        for kind, file in files.items():
            candidates[f"cat {kind}"] = self._consumer(file, "cat")
            candidates[f"tee {kind}"] = self._consumer(file, "tee", os.devnull)
            candidates[kind] = self._pump("replay", "cat", str(file))
            rows += _stream_rows(kind, f"{_LINES[kind]}, {file.stat().st_size / 1e6:.0f} MB")
        candidates["text"] = self._pump("command", "cat", str(files["small"]))
        candidates["sealed"] = self._sealed("replay", "cat", str(files["typical"]))
        candidates["again"] = self._consumer(files["typical"], "cat")
        rows += [
            Row(name="stream.text", what="plain text (`--engine command`), lines of 120 B", floor="`tee`", over="text",
                under="tee small", less="nothing", target=1.0),
            Row(name="stream.sealed", what="typical lines, with the hashing of the evidence", floor="`tee`",
                over="sealed", under="tee typical", less="nothing"),
            Row(name="stream.noise", what="`cat > file` again", floor="`cat > file`", over="again",
                under="cat typical"),
        ]  # fmt: skip
        return self._case(candidates, rows, 5, 9)

    # --- Histories ----------------------------------------------------------------------------------------------------

    def _driven(self, here: Path, *words: str) -> Callable[[], Cost]:
        command = self._command(here, self._python, str(ROOT / "benchmarks" / "drive.py"), *words)
        return lambda: Cost(**json.loads(answer(command)[1]))

    def history(self) -> Case:
        """What every command and every run pays for the runs that are over."""
        few, many = self._material.history(FEW_RUNS), self._material.history(self._sizes.runs)
        candidates = {"append some": self._driven(self._material.history(SOME_RUNS), "append", "40")}
        for name, here in (("few", few), ("many", many)):
            candidates[f"status {name}"] = self._launch(here, "status")
            candidates[f"full {name}"] = self._launch(here, "status", "--json")
            candidates[f"append {name}"] = self._driven(here, "append", "40")
        candidates["again"] = self._launch(few, "status")
        candidates["write"] = self._driven(few, "floor", "40")
        runs, same = f"{self._sizes.runs:,} finished runs", f"the same with {FEW_RUNS}"
        rows = [
            Row(name="history.noise", what=f"`agent status`, {FEW_RUNS} runs, again", floor="the same", over="again",
                under="status few"),
            Row(name="history.status", what=f"`agent status`, {runs}", floor=same, over="status many",
                under="status few", target=1.1),
            Row(name="history.sweep", what=f"`agent status --json` (sweep), {runs}", floor=same, over="full many",
                under="full few", target=1.1),
            Row(name="history.append", what=f"one ledger entry and INDEX.md, {runs}",
                floor=f"the same with {SOME_RUNS}: as many rows", over="append many", under="append some", target=1.3),
            Row(name="history.append-few", what=f"one ledger entry and INDEX.md, {runs}",
                floor=f"{same}: fewer rows", over="append many", under="append few"),
            Row(name="history.durable", what=f"one ledger entry and INDEX.md, {FEW_RUNS} runs",
                floor="one line written and fsynced", over="append few", under="write"),
        ]  # fmt: skip
        return self._case(candidates, rows, 11, 21)

    # --- A large repository -------------------------------------------------------------------------------------------

    def scout(self) -> Case:
        """A question about a large repository, answered without a model."""
        here = self._material.repository(self._sizes.files)
        ask = self._launch(here, "scout", QUESTION, "--mind", "reflex")
        listed = self._cost(here, "git", "ls-files", "-s")
        searched = self._cost(here, "git", "grep", "-c", "x")
        index = here / ".agents" / "hollow" / "index"

        def first() -> Cost:
            for file in index.glob("*"):
                file.unlink()
            return ask()

        def second() -> Cost:
            if not any(index.glob("*")):
                ask()
            return ask()

        candidates = {
            "floor": lambda: listed() + searched(), "again": lambda: listed() + searched(), "first": first,
            "second": second,
        }  # fmt: skip
        files, git = f"{self._sizes.files:,} files", "`git ls-files -s` + `git grep -c x`"
        rows = [
            Row(name="scout.noise", what="the floor again", floor=git, over="again", under="floor"),
            Row(name="scout.first", what=f"`agent scout`, {files}, first time", floor=git, over="first",
                under="floor"),
            Row(name="scout.second", what=f"`agent scout`, {files}, second time", floor=git, over="second",
                under="floor"),
        ]  # fmt: skip
        return self._case(candidates, rows, 3, 5)


def has_wall() -> bool:
    """Whether the full sandbox can be measured on this machine."""
    return sandbox.offered(os.environ, None).level == "full"


def _walled_rows(two: str, three: str) -> list[Row]:
    """Rows of the same runs in the full sandbox: beside their floors, and beside themselves without it."""
    floors = {"no-op": ("two", two), "reflex": ("three", three), "fix": ("two", two)}
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


def _start_rows() -> list[Row]:
    bare = "`python -c pass`"
    typer = "`python -c 'import typer'`"
    return [
        Row(name="start.noise", what=f"{bare} again: what equal things differ by", floor=bare,
            over="again", under="pass"),
        Row(name="start.sh", what="`sh -c :`", floor=bare, over="sh", under="pass"),
        Row(name="start.isolated", what="`python -IS -c pass`", floor=bare, over="isolated", under="pass"),
        Row(name="start.help", what="`agent --help`", floor=bare, over="--help", under="pass", target=1.4),
        Row(name="start.version", what="`agent --version`", floor=bare, over="--version", under="pass",
            target=1.4),
        Row(name="start.status", what=f"`agent status`, {FEW_RUNS} runs", floor=bare, over="status", under="pass",
            target=2.2),
        Row(name="start.status-typer", what=f"`agent status`, {FEW_RUNS} runs", floor=typer, over="status",
            under="typer", target=0.35),
        Row(name="start.launcher", what="`agent status` by the launcher",
            floor="`python -IS agents/__main__.py status`", over="status", under="status direct"),
        Row(name="start.launcher-help", what="`agent --help` by the launcher",
            floor="`python -IS agents/__main__.py --help`", over="--help", under="--help direct"),
        Row(name="start.verb", what="`agent list --all`: a verb of the full command line", floor=typer,
            over="list --all", under="typer", target=1.2),
        Row(name="start.status-full", what="`agent status --json`: the same", floor=typer, over="status --json",
            under="typer", target=1.2),
    ]  # fmt: skip


_LINES: Final = {
    "small": "lines of 120 B", "typical": "lines of a coding agent (median 450 B)", "wide": "lines of 1 MiB",
    "huge": "a single line",
}  # fmt: skip
# What a stream may cost; for lines that are parsed whole there is no figure to reach yet.
_STREAM_TARGETS: Final = {"small": 1.0, "typical": 1.0}


def _stream_rows(kind: str, what: str) -> list[Row]:
    return [
        Row(name=f"stream.{kind}", what=what, floor="`tee`", over=kind, under=f"tee {kind}", less="nothing",
            target=_STREAM_TARGETS.get(kind)),
        Row(name=f"stream.{kind}-cat", what=what, floor="`cat > file`", over=kind, under=f"cat {kind}",
            less="nothing"),
    ]  # fmt: skip


CASES: Final[Mapping[str, Callable[[Bench], Case]]] = MappingProxyType({
    "start": Bench.start, "run": Bench.run, "stream": Bench.stream, "history": Bench.history, "scout": Bench.scout,
})  # fmt: skip
"""Every case by the name that ``--only`` takes."""
