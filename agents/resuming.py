"""Whether a run can go on, and the state in which it does (seed 003, phase 4; T143-T146)."""

from __future__ import annotations

from agents import files, journal, policy, settle
from agents.errors import OperatorError, Tampered
from agents.model import Actor, Phase, Status, step
from agents.times import iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from agents.context import Context
    from agents.engines.base import Engine
    from agents.layout import Box
    from agents.model import RunMeta, RunState
    from agents.plan import RunPlan, Scene

TEAM: Final = "team"
"""What meta.yaml names as the engine of a run of several agents: each has a real one."""
RESUMABLE: Final = frozenset({Status.CRASHED, Status.STALLED, Status.STOPPED, Status.REVIEW})


def check(context: Context, meta: RunMeta) -> None:
    """Raise OperatorError unless the run of *meta* can go on, Tampered where its envelope is not the sealed one."""
    _check_alone(context, meta)
    state = resumable(meta, context.store.load(meta.run_name))
    if meta.run_type == policy.CYCLE and not context.layout.tree(meta.run_name).is_dir():
        # Its agent has withdrawn that progress and is about something else: in one patch the two would be mixed.
        raise OperatorError(
            f"{(meta.agent or 'Its agent').capitalize()} has lived on since; what run {meta.short_id} left is in its"
            " changes.patch.",
            _instead(meta, state),
        )
    _check_sealed(context, meta.run_name)


def resumable(meta: RunMeta, state: RunState) -> RunState:
    """*state*, if a run in it can be resumed; raises OperatorError otherwise."""
    # What a finished goal consists of is on the commons already, and its agent is about something else.
    accepted = meta.run_type == policy.CYCLE and state.status is Status.REVIEW
    if state.status not in RESUMABLE or accepted:
        raise OperatorError(f"Run {meta.short_id} is {state.status} and cannot be resumed.", _instead(meta, state))
    return state


def _check_alone(context: Context, meta: RunMeta) -> None:
    """Refuse to resume several agents at once: each has a session and an airlock of its own."""
    workers = context.store.load(meta.run_name).workers
    if workers:
        ids = [name.rpartition("__")[2] for name in workers]
        raise OperatorError(f"Each agent goes on by itself: {', '.join(ids)}.", f"Type: ./agent resume {ids[0]}")
    if meta.engine == TEAM:
        raise OperatorError("It was stopped before the first of its agents began.", 'Start a new one: ./agent fix "…"')


def note_session(box: Box, engine: Engine) -> None:
    """Remember that the agent's program has kept a session in its HOME, if it has: then one must be there later."""
    pattern = getattr(engine, "session_files", "").replace("{session}", "*")
    if pattern and any(box.home.glob(pattern)):
        files.write(box.private / _KEPT, b"", durable=False)


_KEPT: Final = "session-kept"


def check_session(context: Context, engine: Engine, meta: RunMeta, state: RunState) -> None:
    """Refuse to go on with a session that the agent's program no longer has (T154)."""
    pattern = getattr(engine, "session_files", "").replace("{session}", state.session_id or "")
    home = context.store.box(meta.run_name).home
    # Where nothing was ever kept there the program itself must say whether it knows the session.
    kept = (home.parent / _KEPT).exists() or (home / pattern.partition("*")[0]).is_dir()
    keeps = bool(pattern) and kept
    if keeps and state.session_id and not any(home.glob(pattern)):
        raise OperatorError(
            f"The session of run {meta.short_id} is gone; its stream, report and patch are still in the box.",
            f"Begin a new session in the same airlock: ./agent resume {meta.short_id} --fresh",
        )


def _check_sealed(context: Context, name: str) -> None:
    """Refuse a meta.yaml that is not the one of the start: it also says which program is run (T144)."""
    entries = context.journal.story(name)
    facts = [entry["facts"] for entry in entries if isinstance(entry.get("facts"), dict)]
    # Each by its last word: the operator may have accepted another one since.
    at_start = [fact["meta_sha256"] for fact in facts if fact.get("meta_sha256")][-1:]
    at_end = [seal["meta.yaml"] for seal in map(journal.evidence, entries) if "meta.yaml" in seal][-1:]
    now = settle.hash_file(context.store.box(name), "meta.yaml")
    if any(seal != now for seal in at_start + at_end):
        raise Tampered(f"meta.yaml of {name} is not what was sealed.", "Start a new run.")


def begun(box: Box, made: RunPlan) -> dict[str, Any]:
    """What the ledger says of a further attempt as it begins: where its part of the stream will, and in which session.

    With it each attempt can be told apart, and replayed, when all are over.
    """
    try:
        size = box.stream.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        # No earlier attempt came so far that an agent could have said something.
        size = 0
    return {"stream_from": size, "resumes": made.resumes}


def _instead(meta: RunMeta, state: RunState) -> str:
    if state.status is Status.ACTIVE:
        return f"Wait for it, or type: ./agent stop {meta.short_id}"
    if meta.run_type == policy.CYCLE:
        return f"Start a new one: ./agent cycle {meta.agent}"
    return f'Start a new one: ./agent {meta.run_type} "…"'


def again(context: Context, state: RunState, scene: Scene, made: RunPlan) -> RunState:
    """*state* as the run goes on in *scene*, as *made* was planned."""
    fresh = {
        "phase": Phase.PREPARING, "failure": None, "exit_code": None, "ended_at": None, "boot_id": scene.boot_id,
        "host_id": scene.host_id, "supervisor_pid": scene.supervisor[0], "supervisor_start": scene.supervisor[1],
        "attempt": state.attempt + 1, "isolation": scene.isolation, "worktree_path": made.worktree,
        "last_heartbeat": iso(context.clock.wall()),
        "clock_offset": context.clock.offset(), "stall_after": context.config.stall_after,
        "on_stall": context.config.on_stall, **({} if made.resumes else {"session_id": None}),
    }  # fmt: skip
    return step(state, Status.ACTIVE, Actor.HUMAN, **fresh)
