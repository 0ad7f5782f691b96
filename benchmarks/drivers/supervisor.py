"""Runs a part of the supervisor in a process of its own and says what that process alone has cost, as JSON.

    python benchmarks/drivers/supervisor.py run ENGINE_FOLDER ENGINE PROGRAM [ARGUMENT ...]
    python benchmarks/drivers/supervisor.py setup RUN_TYPE
    python benchmarks/drivers/supervisor.py append COUNT
    python benchmarks/drivers/supervisor.py floor COUNT

All work in the repository around the current folder.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    # This folder is first otherwise, and its files would stand in for modules of the same names.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from agents import core, settle
from agents.context import open_context
from agents.engines.command import AnyCommand
from agents.engines.stream_json import AGENT_JSON, STREAM_JSON
from agents.plan import Ask

TYPE_CHECKING = False  # As in the box, whose supervisor gets along without `typing`.
if TYPE_CHECKING:
    from collections.abc import Sequence


class Replay(AnyCommand):
    """An engine that is any program, whose lines are read as those of a coding agent."""

    name = "replay"
    dialect = AGENT_JSON


class Heard(Replay):
    """The same, heard as hollow is: of its own agents the box passes over nothing."""

    name = "heard"
    dialect = STREAM_JSON


def _spent() -> dict[str, float]:
    """What this process has used so far, without its children."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {"wall": time.perf_counter(), "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss}


def supervise(engine: str, argv: tuple[str, ...]) -> dict[str, float]:
    """Cost of a whole run of *argv*, seen from its supervisor; ``seal`` is the part for hashing the evidence."""
    context = open_context(Path.cwd(), flags={"engine": engine}, say=lambda _: None)
    outcome = core.start(context, Ask(run_type="scout", task="benchmark", argv=argv))
    if outcome.state.exit_code:
        raise SystemExit(f"the agent ended with {outcome.state.exit_code}")
    done = _spent()
    box = context.store.box(outcome.meta.run_name)
    settle.seal(box)
    again = _spent()
    # The next round needs the disk, not these bytes; one file shortened leaves no trace that would disturb it.
    os.truncate(box.stream, 0)
    return {**done, "seal": again["cpu"] - done["cpu"]}


def setup(run_type: str) -> dict[str, float]:
    """Cost from the start of this process to that of the agent: everything that makes a run ready, git included."""
    ready: dict[str, float] = {}

    def note(_number: int, _frame: object) -> None:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = _spent()
        ready.update(wall=own["wall"] - began, cpu=own["cpu"] + children.ru_utime + children.ru_stime, peak=own["peak"])

    began = time.perf_counter()
    # The agent is the one who knows when it lives: it says so, and that is all it does.
    signal.signal(signal.SIGUSR1, note)
    context = open_context(Path.cwd(), flags={"engine": "command"}, say=lambda _: None)
    argv = ("sh", "-c", f"kill -USR1 {os.getpid()}")
    outcome = core.start(context, Ask(run_type=run_type, task="benchmark", argv=argv))
    if outcome.state.exit_code or not ready:
        raise SystemExit(f"the agent ended with {outcome.state.exit_code}")
    return ready


def append(count: int) -> dict[str, float]:
    """Cost of one of *count* appends to the ledger, dashboard included; the ledger is afterwards what it was before."""
    context = open_context(Path.cwd(), say=lambda _: None)
    size = context.layout.ledger.stat().st_size
    # Witnesses of an earlier session remember a ledger that was longer: each append would read all of this one for it.
    context.journal.accept()
    context.journal.append("benchmark", None, {})  # the first one imports what it needs
    before = _spent()
    for number in range(count):
        context.journal.append("benchmark", None, {"number": number})
    after = _spent()
    os.truncate(context.layout.ledger, size)
    return {name: (after[name] - before[name]) / count for name in ("wall", "cpu")} | {"peak": after["peak"]}


def floor(count: int) -> dict[str, float]:
    """Cost of one of *count* lines written durably to a file and no more: what an append to the ledger cannot beat."""
    path = Path.cwd() / ".agents" / "floor"
    before = _spent()
    for _ in range(count):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        os.write(handle, b"x" * 200 + b"\n")
        os.fsync(handle)
        os.close(handle)
    after = _spent()
    os.truncate(path, 0)
    return {name: (after[name] - before[name]) / count for name in ("wall", "cpu")} | {"peak": after["peak"]}


def main(words: Sequence[str]) -> None:
    """Do what *words* say and print the account."""
    if words[0] == "run":
        sys.path.append(words[1])
        account = supervise(words[2], tuple(words[3:]))
    elif words[0] == "setup":
        account = setup(words[1])
    else:
        account = {"append": append, "floor": floor}[words[0]](int(words[1]))
    print(json.dumps(account))


if __name__ == "__main__":
    main(sys.argv[1:])
