"""The operator's desk: asks hollow, in a process of its own, what its agents remember, and records what is decided."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys

from agents import environment, gate, locks, policy
from agents.context import HOME, prepare
from agents.engines.base import BASE_ENV
from agents.engines.hollow import program
from agents.errors import AgentError, BoxError, HostError, OperatorError, Tampered
from agents.lockorder import Rank
from agents.model import Status
from agents.sweep import sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Final

    from agents.context import Context

_PATIENCE: Final = 600.0
"""Seconds that a backup of a large memory may take; everything else is a matter of milliseconds."""
_FAULTS: Final[dict[int, type[BoxError]]] = {
    each.code: each for each in (OperatorError, AgentError, HostError, Tampered)
}


def ask(context: Context, words: Sequence[str], given: str = "") -> str:
    """What hollow's desk says to *words*, with *given* on its standard input; the state folder is added.

    Raises what it refuses, as the error with its exit code: one sentence and a hint, as everywhere.
    """
    # An environment of its own: no variable of the repository has a say.
    argv = [*program(sys.executable, HOME), "desk", *words, "--state", str(context.layout.memory)]
    fixed = {"COLUMNS": str(shutil.get_terminal_size((100, 24)).columns)}
    env = environment.compose(context.environ, BASE_ENV, "", fixed)
    try:
        done = subprocess.run(
            argv, cwd=context.layout.root, env=env, input=given.encode("utf-8", "replace"), capture_output=True,
            timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as why:
        raise HostError(f"hollow could not be asked: {why}.", "Type: ./agent doctor") from why
    said = done.stderr.decode("utf-8", "replace")
    if done.returncode:
        raise _fault(done.returncode, said)
    for line in said.splitlines():
        context.say(line)
    return done.stdout.decode("utf-8", "replace").rstrip("\n")


def _fault(code: int, said: str) -> BoxError:
    """The error that hollow's own words on standard error mean."""
    lines = said.rstrip().splitlines() or [f"hollow ended with exit code {code}."]
    # Warnings may come before; the sentence is the line with its name, the hint what is indented below it.
    at = next((number for number, line in enumerate(lines) if line.startswith("hollow: ")), len(lines) - 1)
    hint = lines[at + 1].strip() if at + 1 < len(lines) else ""
    return _FAULTS.get(code, HostError)(lines[at].removeprefix("hollow: "), hint)


def outside(context: Context, within: Callable[[Context], str | None] = gate.inside_a_run) -> None:
    """Raise OperatorError inside of a run: what is decided here is the operator's alone (T24)."""
    if found := within(context):
        raise OperatorError(found, "Only the operator may: type it in a terminal of your own.")


def answered(context: Context, words: Sequence[str], given: str) -> dict[str, Any]:
    """Answer a request as *words* say, with *given* as the answer; the ledger is told. Returns the answer."""
    prepare(context)
    row: dict[str, Any] = json.loads(ask(context, [*words, "--json"], given))
    facts = {"request_id": row["request_id"], "status": row["status"], "agent": row["agent"]}
    context.journal.append("request.answered", row["run"] or None, facts)
    return row


def request(context: Context, request_id: str) -> dict[str, Any]:
    """All of the request *request_id*, the task that it would be among it."""
    words = ["requests", "show", request_id, "--repo", str(context.layout.root), "--json"]
    found: dict[str, Any] = json.loads(ask(context, words))
    return found


def linked(context: Context, request_id: str, run: str) -> None:
    """Note in the queue and in the ledger that *request_id* became the run *run*."""
    ask(context, ["requests", "link", request_id, "--run", run])
    context.journal.append("request.run", run, {"request_id": request_id, "run": run})


@contextlib.contextmanager
def quiet(context: Context) -> Iterator[None]:
    """While entered no agent lives: raises OperatorError where one does, and keeps others from starting a cycle."""
    prepare(context)
    with contextlib.ExitStack() as undo:
        agents = (locks.Lock(context.layout.agent_lock(agent), Rank.AGENT) for agent in policy.AGENTS)
        for lock in (locks.Lock(context.layout.live_lock, Rank.LIVE), *agents):
            if not lock.acquire(timeout=0):
                raise OperatorError(
                    "The agents live; their memory is in use.", "Stop them first: Ctrl-C, or ./agent stop"
                )
            undo.callback(lock.release)
        sweep(context)
        busy = [name for name in context.store.active().values() if _lives(context, name)]
        if busy:
            raise OperatorError(f"Run {busy[0]} is going on.", f"Type: ./agent stop {busy[0].rpartition('__')[2]}")
        yield


def _lives(context: Context, name: str) -> bool:
    """Whether the run *name* may use the memory; one that cannot be read may."""
    try:
        return context.store.meta(name).engine == "hollow" and context.store.load(name).status in {
            Status.ACTIVE, Status.STALLED
        }  # fmt: skip
    except BoxError:
        return True
