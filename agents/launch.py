"""Start the agent of a claimed run behind its guard and stay with it to the end; all that is open is closed again."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from functools import partial

from agents import bytecode, enclosure, environment, files, plan, procs, settle
from agents.follower import Follower
from agents.model import Phase
from agents.pump import Ending, Pump
from agents.recorder import PipeRecorder, SpoolRecorder
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Final

    from agents.context import Context
    from agents.engines.base import Engine
    from agents.interrupts import Interrupts
    from agents.layout import Box
    from agents.model import RunState
    from agents.plan import RunPlan
    from agents.recorder import Recorder
    from agents.vigil import Listener
    from agents.workshop import Bench

STDERR_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of stderr that are kept; the rest is read (a full pipe would stop the agent) and counted."""

RESERVE: Final = 1024 * 1024
"""Bytes kept free for the end of the run: report, state, ledger entry, dashboard."""


def agent_environment(context: Context, made: RunPlan, box: Box) -> dict[str, str]:
    """The environment of the agent of *made* in *box* (T151)."""
    path = context.layout.root / ".env.test"
    env_test = (files.read_capped(path, settle.ENV_TEST_LIMIT) or b"") if made.command.env_test else b""
    fixed = {
        procs.RUN_MARK: procs.mark(box.path),
        "AGENT_BOX_RUN": made.meta.run_name,
        "RUN_DIR": str(box.outbox),
        "AGENT_BOX_RUN_DIR": str(box.outbox),
        # Its own: what the operator's home holds is none of its business, and what it keeps there is there at a resume.
        "HOME": str(box.home),
        # The system's settings of git are not there to be read, which git takes for a fault.
        "GIT_CONFIG_NOSYSTEM": "1",
        **made.command.env,
    }
    # The full sandbox has a /tmp of its own; without it the operator's would be shared.
    fixed["TMPDIR"] = "/tmp" if made.state.isolation == "full" else str(box.home / "tmp")  # noqa: S108 - see above
    return environment.compose(
        context.environ, (*made.command.pass_env, *context.config.env), env_test.decode("utf-8", "replace"), fixed
    )


def drive(
    context: Context, engine: Engine, made: RunPlan, bench: Bench | None, listener: Listener, interrupts: Interrupts
) -> tuple[Ending, str]:
    """Run the agent of *made* until nothing of it is left; returns how it ended and, of plain text, the last of it.

    *bench* is its airlock, None for a run that may not edit.
    """
    with _reserved(context.store.box(made.meta.run_name)) as box:
        return _drive(context, engine, made, bench, box, listener, interrupts)


def _drive(
    context: Context, engine: Engine, made: RunPlan, bench: Bench | None, box: Box, listener: Listener,
    interrupts: Interrupts,
) -> tuple[Ending, str]:  # fmt: skip
    env = agent_environment(context, made, box)
    launch = {**plan.describe(made, sorted(env)), "cwd": str(made.root), "attempt": made.state.attempt}
    files.write(box.launch, json.dumps(launch, indent=1).encode())
    stdin = _provided(made, box)
    spool = _fresh(box.spool) if engine.output == "spool" else None
    for folder in made.command.modules:
        bytecode.keep(folder)
    cell = enclosure.cell(context, made, env, bench.linked if bench else ())
    with _rescue(box, spool, made.limits.max_output) as rescue:
        child = procs.spawn(
            made.command.argv, cwd=made.root, env=env, stdin=stdin, spool=spool, grace=made.limits.grace, cell=cell,
            rescue=rescue,
        )  # fmt: skip
    with contextlib.ExitStack() as undo:
        undo.callback(child.close)
        stream = undo.enter_context(_closing(_recorder(child, spool, box, made.limits.max_output)))
        stderr = PipeRecorder(child.stderr, box.stderr, STDERR_LIMIT, drop=True)
        undo.enter_context(_closing(stderr))
        # The agent is released only when its identity is told, so no agent ever runs that nobody can find. It need not
        # survive a power cut, which no agent does.
        context.store.update(made.meta.run_name, lambda state: _running(state, child), durable=False)
        follower = Follower(box.stream, engine.dialect, start=stream.size)
        undo.callback(follower.close)
        pump = Pump(
            child, stream, stderr, follower, made.limits, context.clock, listener,
            stamp=_stamp(made), free=partial(files.free, box.path),
        )  # fmt: skip
        ending = pump.run(interrupts)
        if isinstance(stream, SpoolRecorder) and stream.tampered:
            ending.notes.append("the agent shortened its own output file while it was read")
        return ending, follower.tail() if engine.dialect.plain else ""


def _provided(made: RunPlan, box: Box) -> Path:
    """Write what the program of *made* reads and where it may scribble; returns the file that is its stdin."""
    stdin = box.private / "stdin"
    files.write(stdin, made.command.stdin, durable=False)
    scratch = box.home / "tmp"
    if scratch.is_symlink() or not scratch.is_dir():
        # An earlier attempt's agent may have put something else in its place.
        scratch.unlink(missing_ok=True)
    files.make_folder(scratch)
    for name, data in made.command.files.items():
        files.make_folder((box.private / name).parent)
        files.write(box.private / name, data, durable=False)
    return stdin


@contextlib.contextmanager
def _rescue(box: Box, spool: Path | None, limit: int) -> Iterator[tuple[procs.Rescue, procs.Rescue]]:
    """Where the guard records what is left of the agent's output if this process dies; open while it starts."""
    with contextlib.ExitStack() as undo:

        def opened(path: Path, flags: int) -> int:
            handle = files.open_regular(path, flags)
            undo.callback(os.close, handle)
            return handle

        out, err = (opened(path, os.O_WRONLY | os.O_CREAT) for path in (box.stream, box.stderr))
        source = opened(spool, os.O_RDONLY) if spool else None
        yield procs.Rescue(out, limit, source, os.fstat(out).st_size), procs.Rescue(err, STDERR_LIMIT)


def _stamp(made: RunPlan) -> Callable[[], str]:
    """What tells whether anything changed in the run's airlock; a run that has none is told by its output alone."""
    if not made.mutates:
        return str
    from agents.inspection import stamp

    return partial(stamp, made.root)


@contextlib.contextmanager
def _reserved(box: Box) -> Iterator[Box]:
    """Hold some disk space while the agent runs: one that fills the disk must not keep its end from being written."""
    handle = files.open_regular(box.reserve, os.O_WRONLY | os.O_CREAT)
    try:
        try:
            os.posix_fallocate(handle, 0, RESERVE)
        except OSError as why:
            # A file system that cannot reserve space has none reserved; a full one is told now.
            if why.errno not in {errno.EOPNOTSUPP, errno.EINVAL}:
                raise
        yield box
    finally:
        os.close(handle)
        box.reserve.unlink(missing_ok=True)


def _running(state: RunState, child: procs.Child) -> RunState:
    return records.replace(
        state, phase=Phase.RUNNING, pid=child.pid, pid_start=child.start, guard_pid=child.process.pid,
        guard_start=procs.start_of(child.process.pid),
    )  # fmt: skip


def _recorder(child: procs.Child, spool: Path | None, box: Box, limit: int) -> Recorder:
    if spool is not None:
        return SpoolRecorder(spool, box.stream, limit)
    assert child.stdout is not None  # noqa: S101 - without a spool file there is a pipe
    return PipeRecorder(child.stdout, box.stream, limit)


def _fresh(spool: Path) -> Path:
    spool.unlink(missing_ok=True)
    os.close(os.open(spool, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    return spool


@contextlib.contextmanager
def _closing(recorder: Recorder) -> Iterator[Recorder]:
    try:
        yield recorder
    finally:
        # A disk that failed during the run fails here again; how the run ended is already known.
        with contextlib.suppress(OSError):
            recorder.close()
