"""A stage for an engine's program: the call that the plan makes, started as the supervisor would start it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents import environment
from agents.engines.base import Program
from agents.events import Init, Progress, Result, decode, reduce
from agents.layout import Layout
from agents.model import Status
from agents.plan import plan_resume
from tests.support.plans import planned, running, scene
from tests.support.world import git, make_repo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from agents.config import Config
    from agents.engines.base import Engine
    from agents.plan import RunPlan

NOWHERE = {
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
}
"""Whatever a program wants of the world ends at a closed port: no test reaches a real endpoint, by no mistake."""


@dataclass
class Stage:
    """A checkout, an engine and its program."""

    checkout: Path
    engine: Engine
    program: Program
    environ: Mapping[str, str]
    """What the operator has besides PATH."""
    isolation: str = "none"
    wrap: Sequence[str] = ()
    """What stands before the program's words: a sandbox."""
    streams: list[Path] = field(default_factory=list)

    def plan(
        self, run_type: str = "scout", task: str = "what is here?", config: Config | None = None, **more: Any
    ) -> RunPlan:
        """A run as it would be."""
        made = planned(run_type, task, config=config, engine=self.engine, **self._scene(), **more)
        return self._prepared(made)

    def again(self, made: RunPlan, session: str, message: str = "", config: Config | None = None) -> RunPlan:
        """The same run as it would go on."""
        from agents.config import Config

        state = running(status=Status.CRASHED, session_id=session, config_hash=made.meta.config_hash)
        resumed = plan_resume(made.meta, state, message, scene(**self._scene()), config or Config(), self.engine)
        return self._prepared(resumed)

    def _scene(self) -> dict[str, Any]:
        return {"layout": Layout(self.checkout), "mind": None, "program": self.program, "isolation": self.isolation}

    def _prepared(self, made: RunPlan) -> RunPlan:
        box = Layout(self.checkout).box(made.meta.run_name)
        if made.mutates and not made.root.exists():
            git(self.checkout, "worktree", "add", "-q", "--detach", str(made.root))
        for folder in (box.home / "tmp", box.outbox):
            folder.mkdir(parents=True, exist_ok=True)
        for name, content in made.command.files.items():
            path = box.private / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return made

    def home(self, made: RunPlan) -> Path:
        """The private HOME of the run."""
        return Layout(self.checkout).box(made.meta.run_name).home

    def start(self, made: RunPlan) -> subprocess.Popen[bytes]:
        """The program at work on *made*; what it says goes to a new file in ``streams``."""
        home = self.home(made)
        fixed = {"HOME": str(home), "TMPDIR": str(home / "tmp"), **made.command.env}
        given = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **NOWHERE, **self.environ}
        env = environment.compose(given, made.command.pass_env, "", fixed)
        number = len(self.streams)
        self.streams.append(home.parent / f"stream-{number}")
        stdin = home.parent / f"stdin-{number}"
        stdin.write_bytes(made.command.stdin)
        with (
            stdin.open("rb") as reading,
            self.streams[-1].open("wb") as writing,
            (home.parent / "stderr").open("wb") as errors,
        ):
            return subprocess.Popen(
                [*self.wrap, *made.command.argv], cwd=made.root, env=env, stdin=reading, stdout=writing, stderr=errors,
                start_new_session=True,
            )  # fmt: skip

    def play(self, made: RunPlan, patience: float = 90) -> Played:
        """The program at work on *made* until it ends."""
        with self.start(made) as process:
            try:
                process.wait(patience)
            finally:
                process.kill()
        return self.played(process.returncode, made)

    def played(self, code: int, made: RunPlan) -> Played:
        """What came of the newest start."""
        lines = self.streams[-1].read_bytes().split(b"\n")
        return Played(
            code, [line for line in lines if line], self.engine, (self.home(made).parent / "stderr").read_text()
        )


@dataclass(frozen=True)
class Played:
    """How a program ended and what it said."""

    code: int
    lines: list[bytes]
    engine: Engine
    stderr: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """Its lines, undecoded."""
        return [json.loads(line) for line in self.lines]

    @property
    def init(self) -> dict[str, Any]:
        """Its first words about itself."""
        return next(each for each in self.events if each.get("subtype") == "init")

    @property
    def progress(self) -> Progress:
        """What the supervisor knows after it."""
        seen = Progress()
        for line in self.lines:
            seen = reduce(seen, decode(line, self.engine.dialect))
        return seen

    @property
    def result(self) -> Result:
        """Its result; fails where there is none."""
        assert self.progress.result is not None, self.stderr
        return self.progress.result

    def decoded(self, kind: type) -> list[Any]:
        """Its events of the class *kind*."""
        return [
            event for event in (decode(line, self.engine.dialect) for line in self.lines) if isinstance(event, kind)
        ]


def session_of(played: Played) -> str:
    """The session that the program told."""
    said = played.decoded(Init)[0].session_id
    assert said
    return str(said)


def shop(folder: Path) -> Path:
    """A checkout with files that an agent may and may not see."""
    root = make_repo(folder, {"a.txt": "alpha\n", "sub/b.txt": "needle in b\n", ".env.example": "KEY=\n"})
    for name, text in {
        ".env": "KEY=hunter2\n",
        ".agents/INDEX.md": "hunter2 of the box\n",
        "sub/.env": "K=hunter2\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def program(path: Path | str, engine: Engine) -> Program:
    """The program at *path* with what it says of itself."""
    done = subprocess.run(
        [str(path), *engine.help_argv], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
    )
    return Program(path=str(path), help_text=done.stdout)
