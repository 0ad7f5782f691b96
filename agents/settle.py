"""How a run ends: from the ending of its process to status and failure, report, sealed evidence, ledger, pointers."""

from __future__ import annotations

import contextlib
import os

from agents import budget, cycles, facts, files, plan, redact
from agents.errors import Tampered
from agents.layout import EVIDENCE, LATEST
from agents.model import Actor, Failure, FailureKind, Phase, Status, step
from agents.times import iso
from essentials import digests, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from agents.events import Dialect, Result
    from agents.journal import Journal
    from agents.layout import Box
    from agents.model import RunMeta, RunState
    from agents.pump import Ending
    from agents.store import Store
    from agents.times import Clock

REPORT_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of a report that the agent left in its outbox."""

PATCH_LIMIT: Final = 2 * 1024**3
"""Bytes of a patch that are read back."""

ENV_TEST_LIMIT: Final = 256 * 1024
"""Bytes of a .env.test file that are read."""

# Exit codes that say how a process was ended (128 + signal is a shell's way of saying it). T137.
_KILLED: Final = frozenset({-9, 137})
_ABORTED: Final = frozenset({-1, -2, -15, 129, 130, 143})
_FIRST_LINE: Final = 4000
"""Characters of an agent's complaint that are looked at; far fewer are shown."""
_LOST: Final = "No conversation found with session ID"
_BUDGET: Final = frozenset({"error_max_turns", "error_max_budget_usd"})

EVENTS: Final = {
    Status.CRASHED: "run.crashed",
    Status.STALLED: "run.stalled",
    Status.STOPPED: "run.stopped",
}
"""Ledger event of a status; every other end is ``run.finished``."""


def decide(
    ending: Ending, dialect: Dialect, breach: tuple[str, ...] = (), *, patch: bool = False
) -> tuple[Status, FailureKind | None, str]:
    """Status, failure kind and sentence for a run's *ending* (D13, T136, T137); pure.

    *breach* names what changed in the operator's repository although nothing should have (T147). *patch* says whether
    the run has changed anything in its airlock: then a good end is one for a human to review.
    """
    status, kind, message = _decide(ending, dialect, breach)
    return (Status.REVIEW if status is Status.DONE and patch else status), kind, message


def _decide(ending: Ending, dialect: Dialect, breach: tuple[str, ...]) -> tuple[Status, FailureKind | None, str]:
    if breach:
        shown = ", ".join(breach[:5]) + (f" and {len(breach) - 5} more" if len(breach) > 5 else "")  # noqa: PLR2004
        return Status.CRASHED, FailureKind.AIRLOCK_BREACH, f"It changed the repository: {redact.visible(shown)}."
    if ending.cause is FailureKind.STALLED:
        return Status.STALLED, FailureKind.STALLED, ending.message
    if ending.cause:
        return Status.CRASHED, ending.cause, ending.message
    if ending.stopped:
        return Status.STOPPED, None, "You stopped it."
    if dialect.plain and ending.progress.result is None:
        return _by_exit_code(ending, "The program")
    return _by_result(ending)


def _by_result(ending: Ending) -> tuple[Status, FailureKind | None, str]:
    result = ending.progress.result
    if result is None:
        status, kind, message = _by_exit_code(ending, "The agent")
        if status is Status.DONE:
            return Status.CRASHED, FailureKind.AGENT_ABORT, "The agent ended without a result."
        return status, kind, message
    if result.subtype in _BUDGET:
        return Status.CRASHED, FailureKind.BUDGET, f"Its budget was spent ({result.subtype})."
    # A cycle whose mind was away has had no turn, and says itself how it ended.
    if result.is_error or (result.turns == 0 and not cycles.has_ended(ending.progress)):
        return Status.CRASHED, FailureKind.TOOL_ERROR, _complaint(result)
    # One that lingered after a good result was ended by us; its exit code says nothing (P13).
    return (Status.DONE, None, "") if ending.lingered else _by_exit_code(ending, "The agent")


def _complaint(result: Result) -> str:
    """What the agent says is wrong, in one sentence."""
    if _LOST in result.text:
        return "The agent no longer has its session; resume it with --fresh."
    if not result.is_error:
        # What looked like a command was taken for one, and it is not known: no model has seen the task.
        return "The agent ended without a single turn of its model."
    # Cut before it is looked through: a line of many megabytes must not hold up the end of a run.
    first = redact.visible(redact.beginning(result.text.strip().partition("\n")[0], _FIRST_LINE))[:300]
    return first or f"The agent reported {result.subtype}."


def _by_exit_code(ending: Ending, who: str) -> tuple[Status, FailureKind | None, str]:
    code = ending.exit_code
    if code == 0:
        return Status.DONE, None, ""
    if code is None:
        return Status.CRASHED, FailureKind.AGENT_ABORT, f"{who} vanished together with its guard."
    if code in _KILLED:
        return Status.CRASHED, FailureKind.OOM, f"{who} was killed (SIGKILL), most likely for want of memory."
    if code in _ABORTED:
        return Status.CRASHED, FailureKind.AGENT_ABORT, f"{who} was interrupted (exit code {code})."
    return Status.CRASHED, FailureKind.TOOL_ERROR, f"{who} ended with exit code {code}."


_FIXED: Final = (
    "isolation", "config_hash", "boot_id", "host_id", "supervisor_pid", "supervisor_start", "session_cwd",
    "worktree_path", "started_at", "attempt", "merge", "workers",
)  # fmt: skip
"""Fields of the state that nobody changes while a run is at work."""


def untouched(before: RunState, now: RunState) -> RunState:
    """*now*, the state of a run at work that began as *before*; raises Tampered if somebody else has written it.

    A watchdog may have called it stalled; everything else in there is its supervisor's alone.
    """
    odd = [name for name in _FIXED if getattr(before, name) != getattr(now, name)]
    if odd or now.status not in {Status.ACTIVE, Status.STALLED}:
        raise Tampered("state.json was changed while the run was at work.")
    return now


def write_report(box: Box, meta: RunMeta, ending: Ending, answer: str) -> None:
    """Write report.md (and plan.md of a plan run) from the agent's last words, with secrets taken out (D14).

    *answer* is what a program without a result event printed. What the agent left in its outbox counts only where the
    stream has nothing.
    """
    for name, data in reports(box, meta, ending, answer).items():
        # What makes the state last that tells of it makes the names beside it last too.
        files.write(box.path / name, data, durable=False, ordered=True)


def reports(box: Box, meta: RunMeta, ending: Ending, answer: str) -> dict[str, bytes]:
    """What :func:`write_report` writes, by name of the file in *box*; nothing is touched."""
    text = (ending.progress.result.text if ending.progress.result else "") or answer
    if not text.strip():
        # The agent could have put a link in the place of the folder itself.
        left = None if box.outbox.is_symlink() else files.read_capped(box.outbox / "report.md", REPORT_LIMIT)
        text = left.decode("utf-8", "replace") if left else "The agent gave no report."
    shown = (redact.visible(redact.redact(text), newlines=True).rstrip() + "\n").encode()
    failed = ending.progress.result is not None and ending.progress.result.is_error
    planned = meta.run_type == "plan" and not failed
    return {box.report.name: shown, **({box.plan.name: shown} if planned else {})}


def last_safe_artifact(box: Box) -> str | None:
    """The most telling file of the box that is whole (seed 003, phase 2; T137)."""
    order = ("changes.patch", "plan.md", "report.md", "raw/stream.jsonl", "raw/stderr.log")
    return next((name for name in order if (box.path / name).exists() and (box.path / name).stat().st_size), None)


def seal(box: Box) -> dict[str, str]:
    """SHA-256 of every file of evidence that the box holds."""
    patches = sorted(f"patches/{path.name}" for path in box.patches.glob("agent_*.patch"))
    return {name: digest for name in (*EVIDENCE, *patches) if (digest := hash_file(box, name))}


def hash_file(box: Box, name: str) -> str | None:
    """SHA-256 of the file *name* of the box, or None where it is not there."""
    with contextlib.suppress(OSError), os.fdopen(files.open_regular(box.path / name), "rb") as file:
        return digests.of_file(file)
    return None


def conclude(
    store: Store,
    journal: Journal,
    clock: Clock,
    meta: RunMeta,
    actor: Actor,
    outcome: tuple[Status, FailureKind | None, str],
    ending: Ending,
    patch: Mapping[str, Any] | None = None,
) -> RunState:
    """Write the end of the run: state first, then what follows from it (ledger, pointers, marker).

    *patch* is what there is to say of changes.patch. A status that a watchdog has set meanwhile stands. Raises
    HostError where the end cannot be recorded.
    """
    artifact = last_safe_artifact(store.box(meta.run_name))
    with files.reported("record how the run ended"):
        now = iso(clock.wall())
        state = store.update(
            meta.run_name,
            lambda state: ended(state, meta, actor, outcome, ending, patch=patch, at=now, artifact=artifact),
        )
    tell(journal, meta, actor, ending)
    record(store, journal, meta, state, by=str(actor))
    return state


def tell(journal: Journal, meta: RunMeta, actor: Actor, ending: Ending) -> None:
    """Copy what the agent of *ending* has said of itself to the ledger; can be repeated by the watchdog.

    A live supervisor has heard its own attempt, of which nothing is told yet.
    """
    said = ending.progress.facts
    story = journal.story(meta.run_name) if said and actor is Actor.WATCHDOG else ()
    facts.copy(journal, meta.run_name, said, story)


def ended(
    state: RunState, meta: RunMeta, actor: Actor, outcome: tuple[Status, FailureKind | None, str], ending: Ending, *,
    patch: Mapping[str, Any] | None, at: str, artifact: str | None,
) -> RunState:  # fmt: skip
    """*state* settled by *actor* at the instant *at* (ISO 8601), *artifact* being the newest whole file; pure.

    The other parameters are those of :func:`conclude`. Raises IllegalStep where the run cannot end so.
    """
    status, kind, message = outcome
    settled: dict[str, Any] = {
        "phase": Phase.SETTLED, "pid": None, "pid_start": None, "guard_pid": None, "guard_start": None,
        "ended_at": at, "exit_code": ending.exit_code, "events": ending.lines,
        # A sweep has reread the streams of all attempts, a live supervisor knows of its own alone.
        "usage": budget.add(state.usage if actor is Actor.OWNER else {}, budget.usage(ending.progress)),
        "model": ending.progress.model or state.model, "notes": (*state.notes, *_notes(ending)),
        "session_id": state.session_id or ending.progress.session_id, "patch": patch or state.patch,
        "cycle": cycles.told(meta, ending.progress) or state.cycle,
    }  # fmt: skip
    if state.status is not Status.ACTIVE and (state.status is status or _was_killed(kind, ending)):
        return records.replace(state, **settled)
    failure = Failure(kind=kind, message=message, last_safe_artifact=artifact) if kind else None
    return step(state, status, actor, failure=failure, **settled)


def _was_killed(kind: FailureKind | None, ending: Ending) -> bool:
    """Whether somebody else ended it, as a watchdog does: what that one has written says more than the exit code."""
    return kind in {FailureKind.OOM, FailureKind.AGENT_ABORT} and ending.exit_code in {None, *_KILLED}


def _notes(ending: Ending) -> tuple[str, ...]:
    return (*ending.notes, *ending.progress.notes)


def record(store: Store, journal: Journal, meta: RunMeta, state: RunState, **further: Any) -> None:
    """Write what follows from a settled *state*: ledger entry with the seal, pointers, no marker; can be repeated.

    The run of several agents keeps its marker: a human may have decided on one of them already, and what that means for
    the whole comes afterwards (:func:`agents.choosing.follow`).
    """
    event = EVENTS.get(state.status, "run.finished")
    entry = {**plan.facts(meta, state), "evidence": seal(store.box(meta.run_name)), **further}
    journal.append(event, meta.run_name, entry, anchor=True)
    with files.reported("move the pointers"):
        if state.status in {Status.CRASHED, Status.STALLED}:
            store.point("last-fail", meta.run_name)
        if state.status is Status.REVIEW:
            store.point("last-review", meta.run_name)
        if state.status is Status.DONE:
            store.point("last-done", meta.run_name)
        if LATEST not in store.pointers():
            store.point(LATEST, meta.run_name)
        # The airlock of a cycle is still to be put away: who is killed over that has to be found by the next sweep.
        if not cycles.is_taken_in(meta, state.status) and not state.workers:
            store.deactivate(meta.short_id)
