"""The case `peers`: other programs that do a part of the same job, beside the box in the same rounds."""

from __future__ import annotations

import os
import shutil
from functools import partial
from typing import TYPE_CHECKING, Final

from agents.layout import DATA, TREES
from benchmarks import installing
from benchmarks.bench import DRIVERS, Absent, Row, account
from benchmarks.drivers.minds import COMMAND
from benchmarks.hollows import step_driver
from benchmarks.measure import Command, Cost, run
from benchmarks.starting import FEW_RUNS
from benchmarks.streaming import pump

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benchmarks.bench import Bench, Case
    from benchmarks.installing import Peer

PART: Final = 10
"""Peers get this part of the long stream: a reader of single lines takes its time."""
_FEW_STEPS: Final = 50
_NOWHERE: Final = "http://127.0.0.1:9"
"""Nobody listens there: what a peer would fetch or report gets no further than this machine."""

# How each is asked for the least that it can do: what its command line costs before it does anything.
_STARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "sandcastle": ("node", "node_modules/@ai-hero/sandcastle/dist/main.js", "--version"),
    "ccmanager": ("node_modules/@kodaikabasawa/ccmanager-linux-x64/bin/ccmanager", "--version"),
    "mini-swe-agent": ("bin/mini", "--help"),
    "cli-agent-orchestrator": ("bin/cao", "--version"),
    "gptme": ("bin/gptme", "--version"),
    "llm": ("bin/llm", "--version"),
    "aider-chat": ("bin/aider", "--version"),
}
# What was looked for and is not to be had without an account, a model or a terminal.
_NOT_DRIVEN: Final = (
    ("peers.session-cao", "a session listed", "cli-agent-orchestrator", "its list is kept by a server of its own"),
    ("peers.session-ccmanager", "a session begun", "ccmanager", "it is a full-screen program: nothing to drive"),
    ("peers.run-gptme", "a whole run", "gptme", "it does nothing without a model"),
    ("peers.run-aider", "a whole run", "aider-chat", "it does nothing without a model"),
)


def peers(bench: Bench, table: Path = installing.TABLE) -> Case:
    """Every peer of *table* that can be had here, at what it can do without a model and without an account."""
    made = _Peers(bench, table)
    made.starts()
    made.worktrees()
    made.runs()
    made.steps()
    for name, what, peer, why in _NOT_DRIVEN:
        made.absent.append(Absent(name=name, what=what, floor=made.title(peer), why=why))
    return bench.case(made.candidates, made.rows, 3, 5, made.absent)


class _Peers:
    """Collects the rows of the peers that are there, and a reason for each that is not."""

    def __init__(self, bench: Bench, table: Path) -> None:
        self._bench = bench
        self._here = bench.material.history(FEW_RUNS)
        self._known: dict[str, Peer] = installing.peers(table)
        self._places: dict[str, Path | str] = {}
        self.candidates: dict[str, Callable[[], Cost]] = {}
        self.rows: list[Row] = [
            Row(name="peers.noise", what="`agent --version` again", floor="the same", over="again", under="version")
        ]
        self.absent: list[Absent] = []
        self.candidates["version"] = bench.launch(self._here, "--version")
        self.candidates["again"] = bench.launch(self._here, "--version")

    def title(self, name: str) -> str:
        """The peer *name* as the table calls it."""
        return self._known[name].title if name in self._known else name

    def _place(self, name: str) -> Path | str:
        """Where the peer *name* is, or why it is not there."""
        if name not in self._places:
            try:
                found: Path | str = installing.install(self._known[name], self._bench.material.folder / "peers")
            except installing.NotInstalledError as why:
                found = str(why)
            self._places[name] = found
        return self._places[name]

    def _row(self, name: str, what: str, peer: str, over: str, work: Callable[[Path], Callable[[], Cost]]) -> None:
        """The row *name*: our candidate *over* beside what *work* makes of the peer's folder."""
        if peer not in self._known:
            return
        place = self._place(peer)
        if isinstance(place, str):
            self.absent.append(Absent(name=name, what=what, floor=self.title(peer), why=place))
            return
        self.candidates[name] = work(place)
        self.rows.append(Row(name=name, what=what, floor=self.title(peer), over=over, under=name, peer=True))

    def _beside(self, name: str, what: str, peer: str, over: str, under: str) -> None:
        """Another row beside the peer's candidate *under*, where that is measured."""
        if under in self.candidates:
            self.rows.append(Row(name=name, what=what, floor=self.title(peer), over=over, under=under, peer=True))

    def _command(self, cwd: Path, *argv: str) -> Command:
        """A peer's program, with a home of the benchmark's own and a network that leads nowhere."""
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        nowhere = {spelled: _NOWHERE for name in names for spelled in (name, name.lower())}
        home = self._bench.material.made("peers-home", lambda place: place.mkdir())
        return self._bench.command(
            cwd, *argv, **nowhere, HOME=str(home), NO_PROXY="127.0.0.1,localhost", MSWEA_SILENT_STARTUP="1", CI="1"
        )

    def starts(self) -> None:
        """The command lines, asked for their version (ours answers that and `--help` at the same price)."""
        for peer, words in _STARTS.items():
            self._row(
                f"peers.start-{peer}", f"`agent --version` beside `{_spoken(words)}`", peer, "version",
                partial(self._started, words),
            )  # fmt: skip

    def _started(self, words: tuple[str, ...], place: Path) -> Callable[[], Cost]:
        argv = [str(place / word) if (place / word).exists() else word for word in words]
        return partial(run, self._command(self._here, *argv))

    def worktrees(self) -> None:
        """A work tree for a task, from the start of the program on; and ours with all that a run needs beside it."""
        bench = self._bench
        here = bench.ram.repository(bench.sizes.small_tree, "-peers")
        what = f"an airlock, {bench.sizes.small_tree:,} files, beside a work tree"
        further = f"`agent fix` until its agent lives, {bench.sizes.small_tree:,} files, beside the work tree alone"
        self.candidates["airlock"] = self._airlock(here)
        self.candidates["fix set-up"] = bench.tidy(here, bench.driven("supervisor", here, "setup", "fix"))

        def sandcastle(place: Path) -> Callable[[], Cost]:
            words = ("node", str(DRIVERS / "sandcastle.mjs"), str(place), "worktree", str(here), "benchmark")
            return self._tree(here, here / ".sandcastle" / "worktrees" / "benchmark", "benchmark", words)

        def orchestrator(place: Path) -> Callable[[], Cost]:
            words = (str(place / "bin" / "python"), str(DRIVERS / "cao.py"), "benchmark")
            return self._tree(here, here / ".cao" / "worktrees" / "benchmark", "cao/benchmark", words)

        peers = (("sandcastle", "sandcastle", sandcastle), ("cao", "cli-agent-orchestrator", orchestrator))
        for name, peer, work in peers:
            self._row(f"peers.worktree-{name}", what, peer, "airlock", work)
            self._beside(f"peers.setup-{name}", further, peer, "fix set-up", f"peers.worktree-{name}")

    def _airlock(self, here: Path) -> Callable[[], Cost]:
        name = "26-01-01_0000__benchmark__0000"
        command = self._command(here, self._bench.python, "-IS", str(DRIVERS / "opening.py"), name)
        tree = here / TREES / name

        def work() -> Cost:
            cost = run(command)
            for git in (("worktree", "unlock", str(tree)), ("worktree", "remove", "-f", str(tree))):
                run(self._bench.command(here, "git", *git))
            shutil.rmtree(here / DATA / "runs" / name)
            return cost

        return work

    def _tree(self, here: Path, tree: Path, branch: str, words: tuple[str, ...]) -> Callable[[], Cost]:
        command = self._command(here, *words)

        def work() -> Cost:
            cost = run(command)
            for git in (("worktree", "remove", "-f", "-f", str(tree)), ("branch", "-q", "-D", branch)):
                run(self._bench.command(here, "git", *git))
            return cost

        return work

    def runs(self) -> None:
        """A whole run around an agent that does nothing, and around one that says much."""
        bench = self._bench
        # A commit of sandcastle's may carry the operator's name; here there is none, and none is asked for.
        here = bench.ram.repository(bench.sizes.small_tree, "-peers")
        fix = ("fix", "x", "--engine", "command", "--", "true")
        self.candidates["fix"] = bench.tidy(here, bench.launch(here, *fix))
        stream = bench.material.stream("typical", bench.sizes.stream // PART)
        silent, loud = pump(bench, "command", "true"), pump(bench, "replay", "cat", str(stream))
        self.candidates["stream"] = lambda: _less(loud(), silent())

        def whole(place: Path, command: str) -> Callable[[], Cost]:
            def work() -> Cost:
                log = bench.material.fresh("log")
                words = ("node", str(DRIVERS / "sandcastle.mjs"), str(place), "run", str(here), str(log), command)
                try:
                    return run(self._command(here, *words))
                finally:
                    log.unlink(missing_ok=True)

            return work

        def read(place: Path) -> Callable[[], Cost]:
            none, much = whole(place, "true"), whole(place, f"cat '{stream}'")
            return lambda: _less(much(), none())

        self._row("peers.run-sandcastle", f"a whole run of `true` in a work tree, {bench.sizes.small_tree:,} files",
                  "sandcastle", "fix", partial(whole, command="true"))  # fmt: skip
        size = f"{stream.stat().st_size / 1e6:.0f} MB"
        what = f"typical lines, {size}, beyond a silent run"
        self._row("peers.stream-sandcastle", what, "sandcastle", "stream", read)

    def steps(self) -> None:
        """A step of a scripted agent with a shell command, everything saved, in short and in long sessions."""
        bench = self._bench
        for count in sorted({min(_FEW_STEPS, bench.sizes.steps), bench.sizes.steps}):
            self.candidates[f"step {count}"] = _ours(bench, count)
            what = f"a step with a shell command, everything saved, {count} steps"
            self._row(f"peers.step-mini-{count}", what, "mini-swe-agent", f"step {count}", partial(self._mini, count))

    def _mini(self, count: int, place: Path) -> Callable[[], Cost]:
        def work() -> Cost:
            folder = self._bench.ram.fresh("mini")
            words = ("steps", str(count), str(folder / "trajectory.json"), COMMAND)
            command = self._command(self._here, str(place / "bin" / "python"), str(DRIVERS / "mini.py"), *words)
            try:
                return Cost(**account(command)[1]["all"])
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        return work


def _ours(bench: Bench, count: int) -> Callable[[], Cost]:
    def work() -> Cost:
        out = bench.ram.fresh("steps")
        try:
            return Cost(**account(step_driver(bench, "steps", count, out))[1]["all"])
        finally:
            out.unlink(missing_ok=True)
            out.with_suffix(".script.json").unlink(missing_ok=True)

    return work


def _less(much: Cost, none: Cost) -> Cost:
    return Cost(much.wall - none.wall, much.cpu - none.cpu, much.peak)


def _spoken(words: tuple[str, ...]) -> str:
    """*words* as one would type them."""
    *program, last = words
    return f"{os.path.basename(program[-1]).removesuffix('.js').replace('main', 'sandcastle')} {last}"  # noqa: PTH119
