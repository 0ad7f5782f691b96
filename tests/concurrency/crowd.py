"""A crowd of real commands in one repository, let go at once: runs, merges, resumes, sweeps and a collection."""

from __future__ import annotations

import os
import random
import re
import statistics
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agents import core, locks
from agents.context import open_context, prepare
from agents.lockorder import Rank
from agents.plan import Ask
from tests.support import fakes, gates, world
from tests.support.boxes import Hands

if TYPE_CHECKING:
    from pathlib import Path

    from agents.context import Context

FIX_EVERY: Final = 5
"""Every so many runs one edits, in an airlock of its own."""
OLD: Final = 3
"""Finished boxes that are old enough to be collected."""
EACH: Final = 6.0
"""Seconds of wall time that a command of the crowd may take on the average, on a machine that has other work."""
TRIES: Final = 100
"""How often a merge is typed at most."""
LATE: Final = re.compile(r"agent: (Another merge is going on|Another git command is at work|\S+ has moved meanwhile)")
"""How a merge says that others were faster."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many commands of each kind."""

    runs: int

    @property
    def others(self) -> int:
        """Merges, resumes and sweeps, each."""
        return max(2, self.runs // 10)


@dataclass(slots=True)
class Command:
    """One command of the crowd, and what became of it."""

    kind: str
    words: tuple[str, ...]
    run: str | None = None
    """The run that it is about, of merges and resumes."""
    code: int | None = None
    said: str = ""
    tries: int = 0
    """How often it was typed: a merge that others were faster than is typed again, as it says."""
    took: float = 0.0
    """Seconds of wall time."""
    cpu: float = 0.0
    """Seconds of processor time, its children's included."""


@dataclass(slots=True)
class Field:
    """A repository with everything in it that the crowd is about."""

    root: Path
    context: Context
    commands: list[Command]
    old: tuple[str, ...]
    before: int
    """Entries of the ledger before the crowd."""


@dataclass(slots=True)
class Storm:
    """What was seen from outside while the crowd was at work."""

    commands: list[Command]
    seconds: float
    """From the first start to the last end."""
    statuses: list[float] = field(default_factory=list)
    """Seconds that each `status` took meanwhile, one after the other."""
    waits: list[float] = field(default_factory=list)
    """Seconds that each wait for the ledger's lock took meanwhile, one after the other."""


def prepared(folder: Path, size: Size) -> Field:
    """A repository in *folder* with runs to merge, to resume and to collect, and the commands of a crowd of *size*."""
    root = world.make_repo(folder / "repo")
    quick = folder / "quick"
    played = fakes.history(quick, fakes.INIT, fakes.call("Grep"), fakes.answered(), fakes.result())
    context = world.context_of(root, engine="scripted")
    prepare(context)
    early = open_context(root, environ=dict(os.environ), clock=Hands().clock(), say=[].append)
    old = tuple(_rejected(early, number) for number in range(OLD))
    merges = [_reviewed(context, number) for number in range(size.others)]
    resumes = [_crashed(context, quick, number) for number in range(size.others)]
    commands = [*_runs(folder, size, played)]
    commands += [
        Command("merge", ("merge", name, "--approve", gates.digest(context, name), "--json"), name) for name in merges
    ]
    commands += [Command("resume", ("resume", name), name) for name in resumes]
    # Both sweep; the second also reads the whole ledger and every seal while others write them.
    words = (("show", resumes[0], "--json"), ("verify",))
    commands += [Command("sweep", words[number % 2]) for number in range(size.others)]
    commands.append(Command("gc", ("gc", "--keep-for", "300d", "--json")))
    return Field(root, context, commands, old, len(world.ledger_of(root)))


def _runs(folder: Path, size: Size, played: list[str]) -> list[Command]:
    edit = fakes.history(folder / "edit", fakes.INIT, fakes.do("write", path="made", text="made\\n"), fakes.result())
    kinds = [("fix", edit) if number % FIX_EVERY == 0 else ("scout", played) for number in range(size.runs)]
    return [Command(kind, (kind, "the same", *words)) for kind, words in kinds]


def _rejected(context: Context, number: int) -> str:
    """A run that ended long ago."""
    name = gates.reviewed(context, lambda tree: (tree / "old").write_text("old\n"), f"01d{number:x}")
    gates.reject(context, name, "old")
    return name


def _reviewed(context: Context, number: int) -> str:
    """A run that waits for its merge; no two have a file in common."""
    return gates.reviewed(context, lambda tree: (tree / f"new-{number}").write_text("new\n"), f"{0xE000 + number:x}")


def _crashed(context: Context, quick: Path, number: int) -> str:
    """A run whose agent failed, and will not when it goes on."""
    path = quick.with_name(f"later-{number}")
    fakes.history(path, fakes.INIT, fakes.do("exit", code=9))
    outcome = core.start(context, Ask(run_type="scout", task=f"later {number}", argv=(str(path),)))
    path.write_bytes(quick.read_bytes())
    return outcome.meta.run_name


def let_go(place: Field, seed: int) -> Storm:
    """Start all commands of *place* at once, in an order that *seed* decides, and wait for each; fails for a deadlock."""
    order = list(place.commands)
    random.Random(seed).shuffle(order)
    folder = place.root.parent / "said"
    folder.mkdir()
    began = time.monotonic()
    crowd = [_Started(each, place.root, folder / str(number)) for number, each in enumerate(order)]
    storm = Storm(place.commands, 0.0)
    watcher, over = _Status(place.root), threading.Event()
    # In a thread of its own: a wait for the lock must not count as one of `status`.
    waiter = threading.Thread(target=_wait, args=(place.context, storm.waits, over))
    waiter.start()
    end = began + 60 + EACH * len(crowd)
    try:
        while waiting := [each for each in crowd if not each.ended()]:
            assert time.monotonic() < end, f"still at work: {[each.command.words for each in waiting]}"
            watcher.look(storm.statuses)
            time.sleep(0.02)
    finally:
        over.set()
        waiter.join()
        watcher.close()
        for each in crowd:
            each.close()
    storm.seconds = time.monotonic() - began
    return storm


def _wait(context: Context, waits: list[float], over: threading.Event) -> None:
    """Note in *waits* how many seconds it takes to get the lock that everybody wants, again and again until *over*."""
    while not over.wait(0.05):
        began = time.monotonic()
        with locks.Lock(context.layout.ledger_lock, Rank.LEDGER):
            waits.append(time.monotonic() - began)


class _Started:
    """A command that was started."""

    def __init__(self, command: Command, root: Path, said: Path) -> None:
        self.command = command
        self._said = said
        self._root = root
        self._began = time.monotonic()
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self.command.tries += 1
        with self._said.open("wb") as file:
            return subprocess.Popen(
                [*world.AGENT, *self.command.words], cwd=self._root, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )

    def ended(self) -> bool:
        """Whether it has ended; then all is known of it."""
        if self._process.returncode is not None:
            return True
        pid, status, used = os.wait4(self._process.pid, os.WNOHANG)
        if not pid:
            return False
        self.command.took = time.monotonic() - self._began
        self.command.cpu += used.ru_utime + used.ru_stime
        self.command.code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self.command.said = self._said.read_text("utf-8", "replace")
        late = self.command.kind == "merge" and self.command.code == 2 and LATE.search(self.command.said)
        if late and self.command.tries < TRIES:
            self._process = self._start()
            return False
        return True

    def close(self) -> None:
        """End it where it has not ended."""
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()


class _Status:
    """One `status` after the other, for as long as the crowd is at work: does an operator still get an answer?"""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0

    def look(self, took: list[float]) -> None:
        """Note in *took* how long one lasted that has ended, and begin the next."""
        if self._process and self._process.poll() is None:
            return
        if self._process:
            assert self._process.returncode == 0
            took.append(time.monotonic() - self._began)
        self._began = time.monotonic()
        quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        self._process = subprocess.Popen([*world.AGENT, "status"], cwd=self._root, **quiet)

    def close(self) -> None:
        """Wait for the last one."""
        if self._process:
            self._process.wait()


def figures(storm: Storm) -> dict[str, float | int]:
    """What was measured, for people."""
    runs = [each for each in storm.commands if each.kind in {"scout", "fix"}]
    merges = [each for each in storm.commands if each.kind == "merge"]
    return {
        "commands": len(storm.commands),
        "seconds": round(storm.seconds, 1),
        "processor seconds": round(sum(each.cpu for each in storm.commands), 1),
        "runs a second": round(len(runs) / storm.seconds, 2),
        "longest run, s": round(max(each.took for each in runs), 1),
        "merges": len(merges),
        "merges typed again": sum(each.tries - 1 for each in merges),
        "longest merge, s": round(max(each.took for each in merges), 1),
        "status looked at": len(storm.statuses),
        "status median, s": round(statistics.median(storm.statuses), 2) if storm.statuses else 0,
        "status longest, s": round(max(storm.statuses, default=0), 2),
        "ledger waits": len(storm.waits),
        "ledger wait median, s": round(statistics.median(storm.waits), 4),
        "ledger wait longest, s": round(max(storm.waits), 3),
    }


def sealed(folder: Path) -> None:
    """Give this process, and so all that it starts, a home in *folder* and nothing of the operator's."""
    for name in [each for each in os.environ if each.startswith(("GIT_", "AGENT_BOX_", "XDG_", "CLAUDE"))]:
        del os.environ[name]
    state = folder / "state"
    state.mkdir(parents=True)
    os.environ |= {
        "HOME": str(folder), "XDG_STATE_HOME": str(state), "GIT_CONFIG_NOSYSTEM": "1",
        "OLLAMA_HOST": "http://127.0.0.1:9",
    }  # fmt: skip
