"""The spine: what happens when the operator asks for a run, from the sweep before it to the dashboard after it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agents import commands, files, git, journal, launch, naming, plan, policy, probe, procs, publish, settle
from agents.context import HOME, Context, prepare
from agents.engines import registry
from agents.errors import BoxError, HostError, OperatorError, Tampered
from agents.interrupts import interrupts
from agents.live import Line, LiveRun
from agents.model import Actor, FailureKind, Phase, RunMeta, RunState, Status, step
from agents.plan import Ask, RunPlan, Scene
from agents.pump import Ending, trouble
from agents.sweep import sweep
from agents.times import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agents.engines.base import Engine
    from agents.files import Lock
    from agents.git import Fingerprint
    from agents.interrupts import Interrupts

_TOKENS: Final = 3
RESUMABLE: Final = frozenset({Status.CRASHED, Status.STALLED, Status.STOPPED})


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    meta: RunMeta
    state: RunState


def decide(context: Context, ask: Ask) -> tuple[RunPlan, Engine]:
    """What *ask* would become, with nothing touched (``--dry-run``); raises what planning raises."""
    plan.checked_task(ask.task)
    policy.tier(ask.run_type)
    engine = registry.engine(context.config.engine)
    scene = _scene(context, engine)
    short_id = next(naming.short_ids(scene.token))
    made = plan.plan_run(ask, scene, context.config, engine, short_id)
    commands.check_budget(publish.in_use(context.layout), made.commands)
    return made, engine


def start(context: Context, ask: Ask, *, claimed: Callable[[str], None] | None = None) -> Outcome:
    """Run *ask* to its end; *claimed* is told the run's name as soon as its box is there.

    Raises OperatorError or HostError before there is a box; afterwards every failure is the outcome's.
    """
    first, engine = decide(context, ask)
    prepare(context)
    # A ledger that cannot be gone on with refuses the run before there is a box.
    context.journal.check_head()
    sweep(context)
    # From before the claim to after the settling: whoever is asked to stop in between still says how it ended.
    with interrupts() as pending:
        made, owner = _claim(context, ask, engine, first)
        with contextlib.ExitStack() as undo:
            undo.callback(owner.release)
            return _run(context, engine, made, pending, claimed=claimed)


def resume(context: Context, target: str, message: str = "") -> Outcome:
    """Go on with a crashed, stalled or stopped run under the very same envelope (seed 003, phase 4; T143-T146)."""
    prepare(context)
    sweep(context)
    name = context.store.resolve(target)
    meta = context.store.meta(name)
    _resumable(meta, context.store.load(name))
    _check_sealed(context, name)
    engine = registry.engine(meta.engine)
    owner = context.store.own(name, timeout=1)
    if owner is None:
        raise OperatorError(f"Run {meta.short_id} is owned by another supervisor.", "Type: ./agent status")
    with contextlib.ExitStack() as undo:
        undo.callback(owner.release)
        pending = undo.enter_context(interrupts())
        # Somebody may have resumed and finished it between the look and the lock.
        state = _resumable(meta, context.store.load(name))
        scene = _scene(context, engine, meta)
        made = plan.plan_resume(meta, state, message, scene, context.config, engine)
        with files.reported("resume the run"):
            files.create(context.layout.active / meta.short_id, name.encode())
            state = context.store.update(name, lambda now: _again(context, now, scene))
        return _run(context, engine, dataclasses.replace(made, meta=meta, state=state), pending)


def _resumable(meta: RunMeta, state: RunState) -> RunState:
    if state.status not in RESUMABLE:
        raise OperatorError(f"Run {meta.short_id} is {state.status} and cannot be resumed.", _instead(meta, state))
    return state


def _check_sealed(context: Context, name: str) -> None:
    """Refuse a meta.yaml that is not the one of the start: it also says which program is run (T144)."""
    entries = [entry for entry in context.journal.entries() if entry.get("run") == name]
    facts = [entry["facts"] for entry in entries if isinstance(entry.get("facts"), dict)]
    # Each by its last word: the operator may have accepted another one since.
    at_start = [fact["meta_sha256"] for fact in facts if fact.get("meta_sha256")][-1:]
    at_end = [seal["meta.yaml"] for seal in map(journal.evidence, entries) if "meta.yaml" in seal][-1:]
    now = settle.hash_file(context.store.box(name), "meta.yaml")
    if any(seal != now for seal in at_start + at_end):
        raise Tampered(f"meta.yaml of {name} is not what was sealed.", "Start a new run.")


def _instead(meta: RunMeta, state: RunState) -> str:
    if state.status is Status.ACTIVE:
        return f"Wait for it, or type: ./agent stop {meta.short_id}"
    return f'Start a new one: ./agent {meta.run_type} "…"'


def _again(context: Context, state: RunState, scene: Scene) -> RunState:
    fresh = {
        "phase": Phase.PREPARING, "failure": None, "exit_code": None, "ended_at": None, "boot_id": scene.boot_id,
        "host_id": scene.host_id, "supervisor_pid": scene.supervisor[0], "supervisor_start": scene.supervisor[1],
        "attempt": state.attempt + 1, "last_heartbeat": iso(context.clock.wall()),
        "clock_offset": context.clock.offset(), "stall_after": context.config.stall_after,
        "on_stall": context.config.on_stall,
    }  # fmt: skip
    return step(state, Status.ACTIVE, Actor.HUMAN, **fresh)


def _scene(context: Context, engine: Engine, meta: RunMeta | None = None) -> Scene:
    """Look up everything that planning needs; a resumed run keeps the mind and model of its *meta*."""
    # Before the mind is asked for: a repository without a commit needs no server.
    head = context.head()
    if meta is None:
        mind, model = _mind(context, engine)
    else:
        mind, model = meta.mind, meta.model
    return Scene(
        layout=context.layout, head=head, dirty=git.is_dirty(context.repo), now=context.clock.wall(),
        token=context.token(), mind=mind, model=model, engine_version=getattr(engine, "version", None),
        python=sys.executable, home=HOME, boot_id=procs.boot_id(), host_id=procs.host_id(),
        supervisor=_myself(), clock_offset=context.clock.offset(),
    )  # fmt: skip


def _myself() -> tuple[int, int | None]:
    import os

    return os.getpid(), procs.start_of(os.getpid())


def _mind(context: Context, engine: Engine) -> tuple[str | None, str | None]:
    if engine.name != "hollow":
        return None, None
    wanted, model = context.config.mind, context.config.model
    server = None if wanted == "reflex" else probe.ask(probe.url_of(context.environ))
    choice = probe.choose(wanted, model, server)
    context.say(choice.why)
    return choice.mind, choice.model


def _claim(context: Context, ask: Ask, engine: Engine, first: RunPlan) -> tuple[RunPlan, Lock]:
    """Give the run an id of its own and build its box; another start may have taken the first choice."""
    # A token gives a handful of ids, the last of them long: a second one is never needed but by a broken chance.
    for scene in (_scene_of(context, first) for _ in range(_TOKENS)):
        for short_id in naming.short_ids(scene.token):
            made = plan.plan_run(ask, scene, context.config, engine, short_id)
            if context.store.reserve(short_id, made.meta.run_name):
                return made, context.store.claim(made.meta, made.state, {})
    raise HostError("No free run id was found.", "Type: ./agent doctor")


def _scene_of(context: Context, made: RunPlan) -> Scene:
    """The scene that *made* was planned in, so that the claimed run differs from the dry one by its id alone."""
    meta, state = made.meta, made.state
    return Scene(
        layout=context.layout, head=meta.repo_sha_start, dirty=meta.dirty, now=context.clock.wall(),
        token=context.token(), mind=meta.mind, model=meta.model, engine_version=meta.engine_version,
        python=sys.executable, home=HOME, boot_id=state.boot_id or "", host_id=state.host_id or "",
        supervisor=_myself(), clock_offset=context.clock.offset(),
    )  # fmt: skip


@dataclass(slots=True)
class _Course:
    """What a run has come to so far: kept outside of the ``try``, so that a late failure does not lose it."""

    ending: Ending = field(default_factory=Ending)
    answer: str = ""
    changed: tuple[str, ...] = ()


def _run(
    context: Context,
    engine: Engine,
    made: RunPlan,
    pending: Interrupts,
    *,
    claimed: Callable[[str], None] | None = None,
) -> Outcome:
    """Drive a claimed run and bring it to its end, whatever happens on the way."""
    course = _Course()
    envelope = settle.hash_file(context.store.box(made.meta.run_name), "meta.yaml")
    try:
        _announce(context, made, claimed)
        with _published(context, made):
            _drive(context, engine, made, pending, course)
    except (BoxError, OSError) as why:
        course.ending = _failed(course.ending, why)
    except Exception as why:  # noqa: BLE001 - a fault of ours must end the run with the truth, not leave it ACTIVE
        course.ending = _broken(context, made.meta, course.ending, why)
    if envelope != settle.hash_file(context.store.box(made.meta.run_name), "meta.yaml"):
        course.changed += ("meta.yaml of its box",)
    return _settle(context, engine, made, course)


def _announce(context: Context, made: RunPlan, claimed: Callable[[str], None] | None) -> None:
    name = made.meta.run_name
    if claimed:
        claimed(name)
    context.store.point("latest", name)
    event = "run.started" if made.state.attempt == 1 else "run.resumed"
    # The envelope is sealed before the agent lives: what it makes of the file afterwards is no envelope (T144).
    sealed = {"meta_sha256": settle.hash_file(context.store.box(name), "meta.yaml")}
    context.journal.append(event, name, {**plan.facts(made.meta, made.state), **sealed})


def _drive(context: Context, engine: Engine, made: RunPlan, pending: Interrupts, course: _Course) -> None:
    line = Line()
    before = _watched(context, engine)
    try:
        course.ending, course.answer = launch.drive(context, engine, made, LiveRun(context, made.meta, line), pending)
    finally:
        line.clear()
    course.changed += before.changes(git.fingerprint(context.repo, before)) if before else ()


def _settle(context: Context, engine: Engine, made: RunPlan, course: _Course) -> Outcome:
    """Bring the run to its end on disk; only what cannot be written at all leaves it to the next sweep."""
    meta = made.meta
    with files.reported("record how the run ended"):
        try:
            context.store.update(meta.run_name, lambda state: _finalizing(state, course.ending))
        except (Tampered, OperatorError):
            # Its box was removed or spoiled while it ran: what this process knows is the truth.
            course.changed += ("its own box",)
            context.store.restore(meta, _finalizing(made.state, course.ending))
    try:
        settle.write_report(context.store.box(meta.run_name), meta, course.ending, course.answer)
    except OSError as why:
        course.ending = _failed(course.ending, why)
    outcome = settle.decide(course.ending, engine.dialect, course.changed)
    state = settle.conclude(context.store, context.journal, context.clock, meta, Actor.OWNER, outcome, course.ending)
    return Outcome(meta, state)


@contextlib.contextmanager
def _published(context: Context, made: RunPlan) -> Iterator[None]:
    """Have the run's commands in the checkout, and its state say how far it is."""
    _phase(context, made, Phase.PREPARING)
    with publish.published(context.layout, made.meta.short_id, made.commands):
        _phase(context, made, Phase.STARTING)
        yield


def _phase(context: Context, made: RunPlan, phase: Phase) -> None:
    # Not made to survive a power cut: after one the run is judged by the boot that is gone, whatever its phase.
    context.store.update(made.meta.run_name, lambda state: dataclasses.replace(state, phase=phase), durable=False)


def _watched(context: Context, engine: Engine) -> Fingerprint | None:
    """The repository's fingerprint before the run, where a change could be the agent's doing (T147)."""
    return None if engine.confined else git.fingerprint(context.repo)


def _failed(ending: Ending, why: BoxError | OSError) -> Ending:
    """A failure of the machine between claim and end, as an ending."""
    cause = FailureKind.SETUP if ending.exit_code is None else FailureKind.IO
    message = why.message if isinstance(why, BoxError) else ""
    if isinstance(why, OSError) or isinstance(why.__cause__, OSError):
        kind, message = trouble(why)
        cause = FailureKind.ENOSPC if kind is FailureKind.ENOSPC else cause
    return dataclasses.replace(ending, cause=ending.cause or cause, message=ending.message or message)


def _broken(context: Context, meta: RunMeta, ending: Ending, why: Exception) -> Ending:
    """A fault of this program, as an ending; the traceback is for the bug report, not for the operator."""
    import traceback

    details = "".join(traceback.format_exception(why))
    # How the run ended counts for more than why we failed.
    with contextlib.suppress(OSError):
        files.write(context.store.box(meta.run_name).path / "private" / "traceback.txt", details.encode())
    message = f"Agent Box itself failed ({type(why).__name__}); see private/traceback.txt in the box."
    return dataclasses.replace(ending, cause=FailureKind.INTERNAL, message=message)


def _finalizing(state: RunState, ending: Ending) -> RunState:
    if state.status not in {Status.ACTIVE, Status.STALLED}:
        return state
    session = state.session_id or ending.progress.session_id
    return dataclasses.replace(state, phase=Phase.FINALIZING, exit_code=ending.exit_code, session_id=session)


def as_json(outcome: Outcome, context: Context) -> str:
    """The outcome for ``--json``."""
    box = context.store.box(outcome.meta.run_name)
    shown = {**plan.facts(outcome.meta, outcome.state), "run": outcome.meta.run_name, "box": str(box.path)}
    return json.dumps(shown, indent=1)
