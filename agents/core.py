"""The spine: what happens when the operator asks for a run, from the sweep before it to the dashboard after it."""

from __future__ import annotations

import contextlib
import json

from agents import (
    commands,
    cycles,
    cycling,
    files,
    git,
    launch,
    naming,
    plan,
    policy,
    publish,
    redact,
    resuming,
    scenery,
    settle,
)
from agents.context import Context, prepare
from agents.engines import registry
from agents.errors import BoxError, HostError, OperatorError, Tampered
from agents.interrupts import interrupts
from agents.live import Line, LiveRun
from agents.model import Actor, Failure, FailureKind, Phase, RunMeta, RunState, Status
from agents.pump import Ending
from agents.referee import trouble
from agents.sweep import sweep
from essentials import records
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Final

    from agents.engines.base import Engine
    from agents.git import Fingerprint
    from agents.interrupts import Interrupts
    from agents.locks import Lock
    from agents.plan import Ask, RunPlan
    from agents.workshop import Bench

_TOKENS: Final = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    meta: RunMeta
    state: RunState


def decide(context: Context, ask: Ask, *, engine: Engine | None = None) -> tuple[RunPlan, Engine]:
    """What *ask* would become, with nothing touched (``--dry-run``); raises what planning raises.

    *engine* is the one that the settings name unless it is given.
    """
    plan.checked_task(ask.task)
    policy.tier(ask.run_type)
    engine = engine or registry.engine(context.config.engine)
    scene = scenery.look(context, engine)
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
    with interrupts() as pending, cycling.alone(context, ask.run_type, first.meta.agent):
        made, owner = claim(context, cycling.begin(context, ask), engine, first)
        with contextlib.ExitStack() as undo:
            undo.callback(owner.release)
            return _run(context, engine, made, pending, claimed=claimed)


def resume(context: Context, target: str, message: str = "", *, fresh: bool = False) -> Outcome:
    """Go on with a run that ended early or waits for review, under the same envelope (seed 003, phase 4; T143-T146).

    *message* is what the operator adds to the task; *fresh* begins a new session in the same airlock.
    """
    prepare(context)
    sweep(context)
    name = context.store.resolve(target)
    meta = context.store.meta(name)
    resuming.check(context, meta)
    engine = registry.engine(meta.engine)
    with contextlib.ExitStack() as undo:
        undo.enter_context(cycling.alone(context, meta.run_type, meta.agent))
        owner = context.store.own(name, timeout=1)
        if owner is None:
            raise OperatorError(f"Run {meta.short_id} is owned by another supervisor.", "Type: ./agent status")
        undo.callback(owner.release)
        pending = undo.enter_context(interrupts())
        # Somebody may have resumed and finished it between the look and the lock.
        state = resuming.resumable(meta, context.store.load(name))
        scene = scenery.look(context, engine, meta)
        made = plan.plan_resume(meta, state, message, scene, context.config, engine, fresh=fresh)
        if not fresh:
            resuming.check_session(context, engine, meta, state)
        with files.reported("resume the run"):
            files.create(context.layout.active / meta.short_id, name.encode())
            state = context.store.update(name, lambda now: resuming.again(context, now, scene, made))
        return _run(context, engine, records.replace(made, meta=meta, state=state), pending)


def claim(context: Context, ask: Ask, engine: Engine, first: RunPlan) -> tuple[RunPlan, Lock]:
    """Give the run an id of its own and build its box; another start may have taken the first choice."""
    # A token gives a handful of ids, the last of them long: a second one is never needed but by a broken chance.
    for scene in (scenery.again(context, first) for _ in range(_TOKENS)):
        for short_id in naming.short_ids(scene.token):
            made = plan.plan_run(ask, scene, context.config, engine, short_id)
            if context.store.reserve(short_id, made.meta.run_name):
                return made, context.store.claim(made.meta, made.state, {})
    raise HostError("No free run id was found.", "Type: ./agent doctor")


@dataclass(slots=True)
class _Course:
    """What a run has come to so far: kept outside of the ``try``, so that a late failure does not lose it."""

    ending: Ending = field(default_factory=Ending)
    answer: str = ""
    changed: tuple[str, ...] = ()
    bench: Bench | None = None
    patch: Mapping[str, Any] | None = None


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
        announce(context, made, claimed)
        with _published(context, made):
            _drive(context, engine, made, pending, course)
    except (BoxError, OSError) as why:
        course.ending = _failed(course.ending, why)
    except Exception as why:  # noqa: BLE001 - a fault of ours must end the run with the truth, not leave it ACTIVE
        course.ending = _broken(context, made.meta, course.ending, why)
    if envelope != settle.hash_file(context.store.box(made.meta.run_name), "meta.yaml"):
        course.changed += ("meta.yaml of its box",)
    return _settle(context, engine, made, course)


def announce(context: Context, made: RunPlan, claimed: Callable[[str], None] | None) -> None:
    """Tell the world of a claimed run: whoever waits for its name, ``latest``, the ledger."""
    name = made.meta.run_name
    if claimed:
        claimed(name)
    if made.meta.team is None:
        context.store.point("latest", name)
    event = "run.started" if made.state.attempt == 1 else "run.resumed"
    # The envelope is sealed before the agent lives: what it makes of the file afterwards is no envelope (T144).
    sealed = {"meta_sha256": settle.hash_file(context.store.box(name), "meta.yaml")}
    begun = {} if made.state.attempt == 1 else resuming.begun(context.store.box(name), made)
    context.journal.append(event, name, {**plan.facts(made.meta, made.state), **sealed, **begun})


def _drive(context: Context, engine: Engine, made: RunPlan, pending: Interrupts, course: _Course) -> None:
    line = Line()
    course.bench = _ready(context, made, pending) if made.mutates else None
    if pending.count:
        # Stopped while it was made ready: an agent that never lived has no exit code.
        course.ending.stopped = True
        return
    before = _watched(context, engine)
    try:
        live = LiveRun(context, made.meta, line)
        course.ending, course.answer = launch.drive(context, engine, made, course.bench, live, pending)
        course.ending.notes += course.bench.notes if course.bench else ()
    finally:
        line.clear()
    _compare(context, made, before, course)
    if course.bench:
        _check(context, engine, made, course, pending)


def _ready(context: Context, made: RunPlan, pending: Interrupts) -> Bench:
    # Imported where it is needed: a read-only run has no airlock, and its start-up is felt.
    from agents import workshop

    return workshop.ready(context, made, lambda: pending.count > 0)


def _compare(context: Context, made: RunPlan, before: Fingerprint | None, course: _Course) -> None:
    """Look what changed in the operator's repository meanwhile: behind the full wall only the operator can do so."""
    changed = before.changes(git.fingerprint(context.repo, before)) if before else ()
    if made.state.isolation != "full":
        course.changed += changed
        try:
            context.journal.check_head()
        except Tampered:
            course.changed += ("the ledger",)
    elif changed:
        shown = redact.visible(", ".join(changed[:5]))
        course.ending.notes.append(f"the checkout changed while it ran, which the agent could not do: {shown}")


def _check(context: Context, engine: Engine, made: RunPlan, course: _Course, pending: Interrupts) -> None:
    """Run the `check:` commands of a run that has ended well; what fails there is the run's failure (T137)."""
    status, *_ = settle.decide(course.ending, engine.dialect, course.changed)
    if status is Status.DONE and course.bench:
        from agents import workshop

        failed = workshop.checked(context, made, course.bench, lambda: pending.count > 0)
        if failed:
            course.ending.cause, course.ending.message = FailureKind.TESTS_FAILED, failed
        course.ending.stopped = course.ending.stopped or pending.count > 0


def _export(context: Context, made: RunPlan, course: _Course) -> None:
    """Carry the agent's work into the box, whatever its end was: a part of it is better than nothing."""
    from agents import workshop

    try:
        course.patch = workshop.export(context, made.meta, course.bench, goal=cycles.goal_of(course.ending.progress))
        cycling.judge(made.meta, course.ending, course.patch)
    except (BoxError, OSError) as why:
        course.ending.cause = course.ending.cause or FailureKind.EXPORT
        words = why.message if isinstance(why, BoxError) else str(why.strerror)
        course.ending.message = course.ending.message or f"Its work could not be carried into the box: {words}"


def _settle(context: Context, engine: Engine, made: RunPlan, course: _Course) -> Outcome:
    """Bring the run to its end on disk; only what cannot be written at all leaves it to the next sweep."""
    meta = made.meta
    with files.reported("record how the run ended"):
        failure = _known(settle.decide(course.ending, engine.dialect, course.changed))
        try:
            # For a sweep after a kill: what a power cut leaves of the run is judged by the boot that is gone.
            context.store.update(
                meta.run_name, lambda now: _finalizing(settle.untouched(made.state, now), course.ending, failure),
                durable=False,
            )  # fmt: skip
        except (Tampered, OperatorError):
            # Its box was removed or spoiled while it ran: what this process knows is the truth.
            course.changed += ("its own box",)
            context.store.restore(meta, _finalizing(made.state, course.ending, failure))
    if made.mutates:
        _export(context, made, course)
    try:
        resuming.note_session(context.store.box(meta.run_name), engine)
        settle.write_report(context.store.box(meta.run_name), meta, course.ending, course.answer)
    except OSError as why:
        course.ending = _failed(course.ending, why)
    outcome = settle.decide(
        course.ending, engine.dialect, course.changed, patch=cycles.usable(meta, course.patch, course.ending.progress)
    )
    # Before it is settled: a cycle that says DONE is one that the next will build on.
    outcome = cycling.accept(context, meta, course.ending, course.patch, outcome)
    state = settle.conclude(
        context.store, context.journal, context.clock, meta, Actor.OWNER, outcome, course.ending, course.patch
    )
    return Outcome(meta, cycling.tidy(context, meta, state))


@contextlib.contextmanager
def _published(context: Context, made: RunPlan) -> Iterator[None]:
    """Have the run's commands in the checkout, and its state say how far it is."""
    _phase(context, made, Phase.PREPARING)
    with publish.published(context.layout, made.meta.short_id, made.commands):
        _phase(context, made, Phase.STARTING)
        yield


def _phase(context: Context, made: RunPlan, phase: Phase) -> None:
    # Not made to survive a power cut: after one the run is judged by the boot that is gone, whatever its phase.
    context.store.update(made.meta.run_name, lambda state: records.replace(state, phase=phase), durable=False)


def _watched(context: Context, engine: Engine) -> Fingerprint | None:
    """The repository's fingerprint before the run, where it is an agent with hands of its own (T147)."""
    return None if engine.confined else git.fingerprint(context.repo)


def _failed(ending: Ending, why: BoxError | OSError) -> Ending:
    """A failure of the machine between claim and end, as an ending."""
    cause = FailureKind.SETUP if ending.exit_code is None else FailureKind.IO
    message = why.message if isinstance(why, BoxError) else ""
    if isinstance(why, OSError) or isinstance(why.__cause__, OSError):
        kind, message = trouble(why)
        cause = FailureKind.ENOSPC if kind is FailureKind.ENOSPC else cause
        # Before the agent lives much more than the box is looked at: a sentence that names the file cannot mislead.
        message = (kind is FailureKind.IO and _unusable(why)) or message
    return records.replace(ending, cause=ending.cause or cause, message=ending.message or message)


def _unusable(why: BoxError | OSError) -> str:
    """A sentence that names the file which *why* is about, where it names one."""
    if not isinstance(why, OSError) or why.filename is None:
        return ""
    return f"{redact.visible(str(why.filename), newlines=True)} cannot be used: {why.strerror}."


def _broken(context: Context, meta: RunMeta, ending: Ending, why: Exception) -> Ending:
    """A fault of this program, as an ending; the traceback is for the bug report, not for the operator."""
    import traceback

    details = "".join(traceback.format_exception(why))
    # How the run ended counts for more than why we failed.
    with contextlib.suppress(OSError):
        files.write(context.store.box(meta.run_name).path / "private" / "traceback.txt", details.encode())
    message = f"Agent Box itself failed ({type(why).__name__}); see private/traceback.txt in the box."
    return records.replace(ending, cause=FailureKind.INTERNAL, message=message)


def _known(outcome: tuple[Status, FailureKind | None, str]) -> Failure | None:
    """What a sweep has to know should this process die now: an exit code of 0 does not make a good end of a bad one."""
    status, kind, message = outcome
    if status is Status.STOPPED:
        return Failure(kind=FailureKind.SUPERVISOR_DIED, message="You stopped it, and then its supervisor died.")
    return Failure(kind=kind, message=message) if kind else None


def _finalizing(state: RunState, ending: Ending, failure: Failure | None) -> RunState:
    if state.status not in {Status.ACTIVE, Status.STALLED}:
        return state
    session = state.session_id or ending.progress.session_id
    return records.replace(
        state, phase=Phase.FINALIZING, exit_code=ending.exit_code, session_id=session,
        # What a watchdog has said of a stalled run stands.
        failure=failure if state.status is Status.ACTIVE else state.failure,
    )  # fmt: skip


def as_json(outcome: Outcome, context: Context) -> str:
    """The outcome for ``--json``."""
    box = context.store.box(outcome.meta.run_name)
    shown = {**plan.facts(outcome.meta, outcome.state), "run": outcome.meta.run_name, "box": str(box.path)}
    return json.dumps(shown, indent=1)
