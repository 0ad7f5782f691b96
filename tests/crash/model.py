"""What the crash matrix is made of: worlds, scenarios, points, passes, and what became of a strike."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agents.context import Context, open_context
from tests.support import world as support

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

LONGEST = 120.0
"""Seconds after which a command of a scenario counts as hung."""


@dataclass(frozen=True, slots=True)
class World:
    """A folder that holds ``repo/`` and ``home/``: all that a command line of a scenario can change."""

    path: Path

    @property
    def repo(self) -> Path:
        """The operator's repository."""
        return self.path / "repo"

    @property
    def home(self) -> Path:
        """The operator's home."""
        return self.path / "home"

    def environment(self) -> dict[str, str]:
        """All that a command in this world finds in its environment; its home names the world of each process."""
        return {
            "PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.home), "LANG": "C.UTF-8", "COLUMNS": "100",
            "XDG_STATE_HOME": str(self.home / "state"), "GIT_CONFIG_NOSYSTEM": "1", "OLLAMA_HOST": "127.0.0.1:9",
            # Every effect is the supervisor's own: the wall would only make it slower.
            "AGENT_BOX_ISOLATION": "none", "AGENT_BOX_TRUST_UNSANDBOXED": "1", "PYTHONDONTWRITEBYTECODE": "1",
            **support.IDENTITY,
        }  # fmt: skip

    def run(self, argv: Sequence[str], **more: object) -> subprocess.CompletedProcess[str]:
        """Run *argv* in the repository, to its end; never raises for its exit code."""
        given = {"cwd": self.repo, "env": self.environment(), "stdin": subprocess.DEVNULL, "timeout": LONGEST, **more}
        return subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False, **given)

    def agent(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the real command line."""
        return self.run([*support.AGENT, *words])

    def git(self, *words: str) -> str:
        """What git says in the repository; raises CalledProcessError where it fails."""
        done = self.run(["git", *words])
        done.check_returncode()
        return done.stdout

    def porcelain(self) -> str:
        """What git says of the operator's checkout: everything that differs from HEAD or is not known to it."""
        return self.git("status", "--porcelain", "--untracked-files=all")

    def context(self) -> Context:
        """The world as the supervisor's own modules see it; what would be said goes nowhere."""
        return open_context(self.repo, flags={}, environ=self.environment(), say=[].append)

    def processes(self) -> list[int]:
        """Pids of the living processes that were started in this world, or at work in it."""
        return support.tree_of(f"HOME={self.home}\0", f"{self.path}/")

    def quiet(self, patience: float = 10.0) -> list[int]:
        """Wait until no process of this world lives, at most *patience* seconds; returns those that still do."""
        end = time.monotonic() + patience
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.02)
        return left

    def keep(self, template: Path) -> None:
        """Copy the world to *template*, which must not be there."""
        shutil.copytree(self.path, template, symlinks=True)

    def restore(self, template: Path) -> None:
        """Make the world what *template* is; the folder itself stays (it may be a mount point)."""
        self.clear()
        shutil.copytree(template, self.path, symlinks=True, dirs_exist_ok=True)

    def clear(self) -> None:
        """Empty the world."""
        self.path.mkdir(parents=True, exist_ok=True)
        for part in self.path.iterdir():
            if part.name == "lost+found":
                continue
            if part.is_dir() and not part.is_symlink():
                shutil.rmtree(part)
            else:
                with contextlib.suppress(FileNotFoundError):
                    part.unlink()


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the life of a command: just before the *nth* call (from 1) of the system call *call*."""

    call: str
    nth: int
    label: str
    """What the call is about to do, in words that do not depend on the run: ``rename state.json``."""
    after: str = ""
    """Label of the effect before it; empty for the first."""
    process: str = ""
    """Which of the processes that the command has started, by role and number; empty for the command itself."""


@dataclass(frozen=True, slots=True)
class Before:
    """What stood in a world before the strike, and must not be lost by it."""

    ledger: bytes
    porcelain: str
    """What git says of the operator's checkout."""
    runs: frozenset[str]

    @classmethod
    def of(cls, world: World) -> Before:
        """What stands in *world*, which is prepared and not yet armed."""
        ledger, runs = world.repo / ".agents" / "INDEX.jsonl", world.repo / ".agents" / "runs"
        return cls(
            ledger=ledger.read_bytes() if ledger.exists() else b"",
            porcelain=world.porcelain(),
            runs=frozenset(path.name for path in runs.iterdir()) if runs.exists() else frozenset(),
        )


@dataclass(frozen=True, slots=True)
class Struck:
    """A strike that is over; its world is as the next command of the operator finds it."""

    point: Point
    world: World
    before: Before
    hit: bool
    """Whether the program came to the point at all."""
    label: str
    """Where it really was hit; empty where it was not."""
    code: int
    """Exit code of the command, negative for the signal that ended it."""
    said: str = ""
    """What it had said until then, for the reader of a failure."""
    wrong: tuple[str, ...] = ()
    """What the pass itself found wrong, beside what the verdict will: sentences."""
    like: Point | None = None
    """A point struck before whose world was the same: its verdict is this one's too, and nothing is judged again."""


def nothing(_world: World) -> None:
    """A step that there is nothing to do in."""


def fine(_world: World) -> list[str]:
    """A check that finds nothing."""
    return []


@dataclass(frozen=True, slots=True)
class Scenario:
    """A command whose life is cut off at every point."""

    name: str
    about: str
    """One sentence for docs/reliability.md."""
    prepare: Callable[[World], None]
    """Fills an empty world; done once, then copied for every strike."""
    words: Callable[[World], Sequence[str]]
    """The command line that is struck (without ``agent``)."""
    expects: tuple[str, ...] = ()
    """Patterns (fnmatch) of labels without which the enumeration would have missed something."""
    arm: Callable[[World], None] = nothing
    """Done before every strike, where a copy would not do."""
    calm: Callable[[World], None] = nothing
    """Done after the strike and before anything is judged: ends what the struck command rightly left running."""
    brings: frozenset[str] = frozenset()
    """Lines of ``git status --porcelain`` that the command may add to the operator's."""
    truth: Callable[[World], list[str]] = fine
    """What must hold after the next ``status``, beside what holds for every world: sentences about what does not."""
    again: Callable[[World], Sequence[str] | None] = lambda _world: None
    """The command that goes on where the strike came (resume, the same once more), or None."""
    end: Callable[[World], list[str]] = fine
    """What must hold after that one, as if nothing had been struck."""
    claims: Callable[[World], list[str]] | None = None
    """What a command has kept that said it was done on a disk that was full, where that is less than *end*."""
    exits: frozenset[int] = frozenset({0})
    """Exit codes with which the unstruck command, and *again*, may end."""
    program: tuple[str, ...] = support.AGENT
    """What *words* are given to, where it is not the command line itself."""

    def argv(self, world: World) -> list[str]:
        """The whole command that is struck."""
        return [*self.program, *self.words(world)]


class Pass(Protocol):
    """A way to strike: by SIGKILL of the command or of a child of it, by a power cut, by a full disk."""

    name: str
    pardons: Mapping[str, str]
    """Rules of the verdict (the word before its colon) that do not hold after such a strike, each with the reason."""

    def missing(self) -> str:
        """What this machine lacks for the pass, or nothing."""

    def points(self, scenario: Scenario, world: World, template: Path, log: Path) -> list[Point]:
        """Where the pass can strike *scenario*, in order, found by running it from *template* in *world*."""

    def strikes(self, scenario: Scenario, folder: Path, at: Sequence[Point]) -> Iterator[Struck]:
        """Strike the scenario's command at each point of *at*, working in the empty *folder* of one worker.

        Each strike is judged, which changes its world, before the next one is asked for. A pass prepares (and arms)
        the worlds itself, always at the same path, because work trees are registered by their absolute paths.
        """


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the matrix."""

    scenario: str
    by: str
    """Name of the pass."""
    point: Point
    hit: bool
    label: str
    code: int
    said: str
    wrong: tuple[str, ...] = field(default=())
    """Sentences, each led by the name of the rule that was broken; none where all is well."""

    def as_dict(self) -> dict[str, object]:
        """For the results file."""
        return dataclasses.asdict(self)
