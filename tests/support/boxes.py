"""Real boxes in real repositories, and child processes that are killed where it hurts."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from agents import plan, procs
from agents.context import open_context, prepare
from agents.engines import registry
from agents.plan import Ask, RunPlan, Scene
from agents.times import Clock
from essentials import records
from tests.support.repos import make_repo

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from agents.context import Context
    from agents.locks import Lock

NOW = 1_763_821_800.0
"""2025-11-22 14:30 UTC."""
PATIENCE = 30.0
"""Seconds after which a condition that has not come true never will."""


class Hands:
    """A clock that a test sets: *wall* and *mono* are what it reads."""

    def __init__(self, wall: float = NOW, mono: float = 1000.0) -> None:
        self.wall = wall
        self.mono = mono

    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.mono)

    def forward(self, seconds: float) -> None:
        self.wall += seconds
        self.mono += seconds


def make_context(tmp_path: Path, hands: Hands | None = None, **flags: Any) -> tuple[Context, list[str]]:
    """The context of a new repository, ready for runs, and the list of what it says."""
    said: list[str] = []
    root = make_repo(tmp_path / "repo", {"README.md": "a project\n", "src/app.py": "print('hello')\n"})
    context = open_context(
        root, flags=flags, environ={"HOME": str(tmp_path / "home")}, clock=(hands or Hands()).clock(), say=said.append
    )
    prepare(context)
    return context, said


def scene(context: Context, token: str, mind: str | None = None) -> Scene:
    """What planning sees in *context*; this process is the supervisor."""
    return Scene(
        layout=context.layout, head=context.head(), dirty=False, now=context.clock.wall(), token=token, mind=mind,
        model=None, engine_version=None, python=sys.executable, home=context.layout.root, boot_id=procs.boot_id(),
        host_id=procs.host_id(), supervisor=(os.getpid(), procs.start_of(os.getpid())),
    )  # fmt: skip


def planned(
    context: Context,
    short_id: str = "a1b2",
    run_type: str = "scout",
    task: str = "why is it slow",
    engine: str = "command",
) -> RunPlan:
    """The plan of a run, made by the real planner."""
    argv = () if engine == "hollow" else ("history.jsonl",)
    ask = Ask(run_type=run_type, task=task, argv=argv)
    mind = "reflex" if engine == "hollow" else None
    return plan.plan_run(
        ask, scene(context, short_id.ljust(32, "0")[:64], mind), context.config, registry.engine(engine), short_id
    )


def claimed(context: Context, short_id: str = "a1b2", **wanted: Any) -> tuple[RunPlan, Lock]:
    """A run with its box, and its owner lock, held."""
    made = planned(context, short_id, **wanted)
    assert context.store.reserve(short_id, made.meta.run_name)
    return made, context.store.claim(made.meta, made.state, {})


def abandoned(
    context: Context, short_id: str = "a1b2", *, stream: bytes = b"", engine: str = "command", **state: Any
) -> str:
    """A run whose supervisor is dead: its box with that *stream* and *state*, ACTIVE, owned by nobody; its name."""
    made, owner = claimed(context, short_id, engine=engine)
    name = made.meta.run_name
    context.journal.append("run.started", name, plan.facts(made.meta, made.state))
    context.store.box(name).stream.write_bytes(stream)
    if state:
        context.store.update(name, lambda now: records.replace(now, **state))
    owner.release()
    return name


def events(context: Context, run: str | None = None) -> list[str]:
    """Names of the ledger's events, of one *run* or of all."""
    return [entry["event"] for entry in context.journal.entries() if run in {None, entry["run"]}]


def porcelain(root: Path) -> str:
    """What git shows of *root* to its operator."""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, check=True)
    return done.stdout.decode()


def until(condition: Callable[[], object], what: str = "it") -> None:
    """Wait until *condition* holds, and fail where it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what} never came true"
        time.sleep(0.01)


def fork(action: Callable[[], object]) -> int:
    """Run *action* in a child; returns its pid. Exit code 0, or 1 with the traceback on stderr."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        action()
        code = 0
    except BaseException:  # noqa: BLE001 - this is the end of a process
        traceback.print_exc()
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """Wait for the child *pid*; returns its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextlib.contextmanager
def child(action: Callable[[], object]) -> Iterator[int]:
    """A child that runs *action* for the time of the ``with`` and is killed at its end."""
    pid = fork(action)
    try:
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def together(actions: Sequence[Callable[[], object]]) -> None:
    """Run *actions*, each in a process of its own, all let go at the same moment; every one must succeed."""
    gate, opener = os.pipe()

    def waiting(action: Callable[[], object]) -> Callable[[], object]:
        def go() -> None:
            os.close(opener)
            os.read(gate, 1)
            action()

        return go

    pids = [fork(waiting(action)) for action in actions]
    os.close(gate)
    os.close(opener)
    codes = [ended(pid) for pid in pids]
    assert codes == [0] * len(actions)


def killed_at_random(action: Callable[[], object], chance: random.Random, longest: float) -> None:
    """Run *action* over and over in a child and SIGKILL it at a random moment within *longest* seconds."""
    started, tell = os.pipe()

    def loop() -> None:
        os.write(tell, b".")
        for _ in itertools.repeat(None):
            action()

    with child(loop):
        os.close(tell)
        assert os.read(started, 1) == b"."
        os.close(started)
        time.sleep(chance.uniform(0, longest))


def killed_at(step: int, action: Callable[[], object]) -> bool:
    """Run *action* in a child that dies by SIGKILL just before its system call number *step*; whether it came so far."""
    left = step

    def watch(_frame: object, event: str, called: Any) -> None:
        nonlocal left
        if event == "c_call" and called.__module__ in {"posix", "fcntl"}:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def watched() -> None:
        sys.setprofile(watch)
        action()
        sys.setprofile(None)

    code = ended(fork(watched))
    assert code in {0, -signal.SIGKILL}
    return code != 0


def every_step(action: Callable[[], object], stride: int = 1) -> Iterator[int]:
    """Yield after every death of *action*, *stride* system calls later each time, until it comes through alive."""
    for step in itertools.count(0, stride):
        alive = not killed_at(step, action)
        yield step
        if alive:
            return
