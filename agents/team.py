"""Several agents on one task, each in a run and an airlock of its own; the box of the whole holds their patches."""

from __future__ import annotations

import contextlib
import os
import time
from types import MappingProxyType

from agents import choosing, control, core, files, gate, locks, plan, procs, redact, resuming, settle, verifying, views
from agents.context import prepare
from agents.engines.base import Command
from agents.errors import BoxError, OperatorError
from agents.events import PLAIN
from agents.interrupts import interrupts
from agents.model import Actor, FailureKind, Phase, RunState, Status
from agents.pump import Ending
from agents.sweep import sweep
from agents.times import iso
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Final, Literal

    from agents.context import Context
    from agents.engines.base import Brief
    from agents.interrupts import Interrupts
    from agents.model import RunMeta
    from agents.plan import Ask

VARIABLE: Final = "AGENT_BOX_TEAM"
"""Environment variable that tells a supervisor which run its own is a part of."""
_LOOK: Final = 0.1
"""Seconds between two looks at the agents."""
_BEATS: Final = 4
"""Signs of life within the silence that counts as stalled: the whole has no stream whose lines would be some."""
_LONGEST_REPORT: Final = 64 * 1024
"""Bytes of one agent's report that go into the common one."""


class Team:
    """The engine of the whole: it starts nothing itself, its agents are runs of their own."""

    name = resuming.TEAM
    output: Literal["pipe", "spool"] = "pipe"
    confined = True
    dialect = PLAIN
    tools: Mapping[str, str] = MappingProxyType({})
    program = ""
    version_argv: tuple[str, ...] = ()
    help_argv: tuple[str, ...] = ()
    session_files = ""

    def command(self, _brief: Brief) -> Command:
        """No program at all."""
        return Command(argv=())


def start(
    context: Context, ask: Ask, engines: Sequence[str], words: Sequence[str], claimed: Callable[[str], None]
) -> core.Outcome:
    """Have one agent for each of *engines* try *ask*; *words* are the flags that all of them get.

    *claimed* is told the name of the whole. Raises OperatorError or HostError before there is a box.
    """
    for each in dict.fromkeys(engines):
        core.decide(with_engine(context, each), _for(ask, each))
    first, engine = core.decide(context, ask, engine=Team())
    prepare(context)
    context.journal.check_head()
    sweep(context)
    with interrupts() as pending, contextlib.ExitStack() as undo:
        made, owner = core.claim(context, ask, engine, first)
        undo.callback(owner.release)
        core.announce(context, made, claimed)
        return core.Outcome(made.meta, _together(context, made.meta, ask, engines, words, pending))


def with_engine(context: Context, engine: str) -> Context:
    """*context* as an agent with *engine* has it."""
    return records.replace(context, config=records.replace(context.config, engine=engine))


def _together(
    context: Context, meta: RunMeta, ask: Ask, engines: Sequence[str], words: Sequence[str], pending: Interrupts
) -> RunState:
    ending = Ending()
    workers: list[str] = []
    _note(context, meta, workers)
    try:
        for each in engines:
            if pending.count:
                break
            workers.append(_employ(ask, each, words, meta.run_name))
            # At once: should this process die now, the box still says who works for it.
            _note(context, meta, workers)
            context.say(f"agent {len(workers)} of {len(engines)}: {each} {_id(workers[-1])}")
    except (BoxError, control.Refused, OSError) as why:
        ending.cause, ending.message = FailureKind.SPAWN, _words(why)
        _stop(context, workers)
    _wait(context, meta, workers, pending)
    ending.stopped = pending.count > 0
    return _settle(context, meta, workers, ending)


def _words(why: Exception) -> str:
    if isinstance(why, control.Refused):
        return why.words.strip().partition("\n")[0]
    return why.message if isinstance(why, BoxError) else str(why)


# The engines that are told their program; the others bring theirs, and take none.
_TOLD: Final = frozenset({"command", "scripted"})


def _for(ask: Ask, engine: str) -> Ask:
    """*ask* as an agent of *engine* gets it."""
    return ask if engine in _TOLD else records.replace(ask, argv=())


def _employ(ask: Ask, engine: str, words: Sequence[str], whole: str) -> str:
    """Start one agent's own supervisor; returns the name of its run."""
    given = ask.task.encode("utf-8", "surrogateescape")
    # With the pid: an agent's supervisor that starts after this process died would find another parent.
    env = {VARIABLE: f"{whole} {os.getpid()}"}
    return control.detach(["fix", *words, "--engine", engine, "--", "-", *_for(ask, engine).argv], given, env=env)


def _note(context: Context, meta: RunMeta, workers: Sequence[str]) -> None:
    def change(state: RunState) -> RunState:
        """*state* with its workers."""
        # Its agents have airlocks, it has none itself.
        return records.replace(state, workers=tuple(workers), phase=Phase.RUNNING, worktree_path=None)

    context.store.update(meta.run_name, change)


def _wait(context: Context, meta: RunMeta, workers: Sequence[str], pending: Interrupts) -> None:
    """Wait until no agent has a supervisor any more; whoever asks to stop stops them all, each time he asks."""
    passed, beaten = 0, context.clock.mono()
    while any(locks.is_locked(context.store.box(name).owner_lock) for name in workers):
        if pending.count > passed:
            passed = pending.count
            _stop(context, workers)
        if context.clock.mono() - beaten > context.config.stall_after / _BEATS:
            beaten = context.clock.mono()
            _beat(context, meta)
        time.sleep(_LOOK)


def _beat(context: Context, meta: RunMeta) -> None:
    """Say that the whole is at work: a sweep takes a run without a sign of life for stalled (T134, T141)."""
    now = iso(context.clock.wall())
    # A sign of life is not worth an end: a disk that is full for a moment need not keep the agents from going on.
    with contextlib.suppress(BoxError, OSError):
        context.store.update(meta.run_name, lambda state: records.replace(state, last_heartbeat=now), durable=False)


def _stop(context: Context, workers: Sequence[str]) -> None:
    """Ask the supervisors of all *workers* to stop; they do so side by side."""
    for name in workers:
        pid = procs.lock_holder(context.store.box(name).owner_lock)
        if pid is not None:
            procs.interrupt(pid, procs.start_of(pid))


def _settle(context: Context, meta: RunMeta, workers: Sequence[str], ending: Ending) -> RunState:
    # An agent's supervisor that was killed has left its run to the next sweep, which is this one.
    sweep(context)
    states: list[RunState] = []
    try:
        states = [context.store.load(name) for name in workers]
        _collect(context, meta, workers)
    except (BoxError, OSError) as why:
        ending.cause, ending.message = ending.cause or FailureKind.IO, ending.message or _words(why)
    state = settle.conclude(
        context.store, context.journal, context.clock, meta, Actor.OWNER, _outcome(states, ending), ending
    )
    # One may have been merged while others still worked.
    choosing.follow(context, meta.run_name, owned=True)
    return context.store.load(meta.run_name) if state.status is Status.REVIEW else state


def _collect(context: Context, meta: RunMeta, workers: Sequence[str]) -> None:
    """Bring the agents' patches into the box of the whole, and compare them (T156)."""
    box = context.store.box(meta.run_name)
    files.make_folder(box.patches)
    for number, name in enumerate(workers, 1):
        patch = files.read_capped(context.store.box(name).patch, settle.PATCH_LIMIT)
        if patch:
            files.write(box.patches / f"agent_{number}.patch", patch)
    rows = [_row(context, number, name) for number, name in enumerate(workers, 1)]
    files.write(box.report, _report(context, meta, workers, rows).encode())


def _outcome(states: Sequence[RunState], ending: Ending) -> tuple[Status, FailureKind | None, str]:
    """How the whole ended: waiting for review as soon as one of its agents is."""
    if ending.cause:
        return Status.CRASHED, ending.cause, ending.message
    statuses = {state.status for state in states}
    if statuses & {Status.REVIEW, Status.MERGED}:
        return Status.REVIEW, None, ""
    if ending.stopped or Status.STOPPED in statuses:
        return Status.STOPPED, None, "You stopped it."
    if statuses == {Status.DONE}:
        return Status.DONE, None, ""
    failed = next((state.failure for state in states if state.failure), None)
    return Status.CRASHED, failed.kind if failed else FailureKind.AGENT_ABORT, "None of its agents came to a patch."


def _row(context: Context, number: int, name: str) -> dict[str, Any]:
    meta, state = context.store.meta(name), context.store.load(name)
    facts = plan.facts(meta, state)
    spent = views.spent(facts.get("usage"))
    tried = _tried(context, name) if state.status is Status.REVIEW else ""
    return {
        "agent": number, "engine": meta.engine, "run": meta.short_id, "status": str(state.status), "verify": tried,
        "patch": views.patch_size(facts), "took": views.span(views.took(facts)), "spent": spent,
    }  # fmt: skip


def _tried(context: Context, name: str) -> str:
    """What the `verify:` commands say of the patch of the run *name* on today's HEAD; empty without any."""
    if not context.config.verify:
        return ""
    try:
        failed = verifying.failures(gate.examine(context, name).verified)
    except BoxError as why:
        return why.message
    return f"failed: {', '.join(map(str, failed))}" if failed else "passed"


def _advice(rows: Sequence[Mapping[str, Any]], whole: str) -> str:
    """What the operator can do with what came out."""
    if any(row["status"] == Status.REVIEW for row in rows):
        return f"Merge one: `./agent merge {whole} --pick N`. Its patch: `patches/agent_N.patch`."
    if all(row["status"] == Status.DONE for row in rows):
        return "None of them changed anything."
    return "None of them can be merged. Go on with one: `./agent resume RUN`."


def _report(context: Context, meta: RunMeta, workers: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """The comparison as a table, then what each agent reported."""
    if not rows:
        return "# Agents compared\n\nIt was stopped before the first of them began.\n"
    head = list(rows[0])
    lines = ["# Agents compared", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(views.cell(str(value)) for value in row.values())} |" for row in rows]
    lines += ["", _advice(rows, _id(meta.run_name))]
    for row, name in zip(rows, workers, strict=True):
        report = files.read_capped(context.store.box(name).report, _LONGEST_REPORT) or b""
        lines += ["", f"## Agent {row['agent']} ({row['engine']}, {row['run']})", ""]
        lines.append(redact.visible(report.decode("utf-8", "replace"), newlines=True).rstrip() or "No report.")
    return "\n".join([*lines, ""])


def engines_of(count: int, named: str | None, usual: str) -> list[str]:
    """The engine of each of *count* agents: those *named*, in turn, or the *usual* one for all.

    Raises OperatorError where more engines are named than there are agents.
    """
    names = [name.strip() for name in (named or usual).split(",") if name.strip()] or [usual]
    if count == 1 and len(names) > 1:
        count = len(names)
    if len(names) > count:
        raise OperatorError(f"{len(names)} engines for {count} agents.", f"Type: -n {len(names)}")
    return [names[number % len(names)] for number in range(count)]


def _id(name: str) -> str:
    return name.rpartition("__")[2]
