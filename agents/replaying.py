"""`agent replay`: the recorded stream of a finished run through the same machine again, and the first difference."""

from __future__ import annotations

import json

from agents import attempts, differing, files, journal, resuming, settle
from agents.differing import NOTHING, Difference
from agents.engines import registry
from agents.errors import OperatorError
from agents.model import Actor, IllegalStep, Phase, RunState, Status
from agents.pump import Ending
from agents.reliving import DEAF, Case, relive
from agents.rereading import Heard
from agents.timers import Limits
from essentials import records
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Final

    from agents.attempts import Attempt
    from agents.context import Context
    from agents.layout import Box
    from agents.model import RunMeta

_SEALED: Final = ("meta.yaml", "raw/stream.jsonl", "raw/launch.json")
"""Evidence that the machine is fed with."""
_LARGEST_LAUNCH: Final = 16 * 1024 * 1024
_LARGEST_REPORT: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay came to."""

    run: str
    lines: int
    """Lines of all attempts that were replayed."""
    attempts: int
    difference: Difference | None
    """The first one; None where all is the same."""


@dataclass(frozen=True, slots=True)
class _End:
    """How an attempt ends in the replay."""

    heard: Heard
    state: RunState
    difference: Difference | None


def replay(context: Context, name: str) -> Replay:
    """Replay the run *name* and compare; nothing is written.

    Of a run of several agents each of theirs is replayed. Raises OperatorError where the run is not over, where its
    engine is not installed, or where an older version did not note what has to be known; Tampered where state or
    envelope cannot be read at all.
    """
    meta, state = context.store.meta(name), context.store.load(name)
    if state.status in {Status.ACTIVE, Status.MERGING} or state.phase is not Phase.SETTLED:
        raise OperatorError(f"Run {meta.short_id} is {state.status} and not over yet.", "Type: ./agent status")
    if state.workers or meta.engine == resuming.TEAM:
        return _team(context, name, state.workers)
    box, story = context.store.box(name), context.journal.story(name)
    told = attempts.told(story)
    found = next(_unsound(box, meta, state, story, told), None)
    if found:
        return Replay(name, 0, 0, found)
    case = Case(box, meta, state, registry.engine(meta.engine).dialect, _limits(box, state))
    return _replay(case, told)


def _team(context: Context, name: str, workers: tuple[str, ...]) -> Replay:
    """The replays of the runs that *name* consists of: it has no stream of its own."""
    lines = count = 0
    for number, worker in enumerate(workers, 1):
        done = replay(context, worker)
        lines, count = lines + done.lines, count + done.attempts
        if done.difference:
            what = f"agent {number}, {done.difference.what}"
            return Replay(name, lines, count, records.replace(done.difference, what=what))
    return Replay(name, lines, count, None)


def _unsound(
    box: Box, meta: RunMeta, state: RunState, story: list[Mapping[str, Any]], told: list[Attempt]
) -> Iterator[Difference]:
    """What shows before anything is replayed: evidence that is not the sealed one, a ledger that tells otherwise."""
    if not told or not told[-1].settled:
        yield Difference(f"the ledger's entry of the end of run {meta.short_id}", NOTHING, str(state.status))
    yield from _broken_seals(box, story)
    facts = [entry["facts"] for entry in story if isinstance(entry.get("facts"), dict) and "status" in entry["facts"]]
    if facts and facts[-1]["status"] != str(state.status):
        yield Difference("status", f"{state.status} in state.json", f"{facts[-1]['status']} in the ledger")


def _broken_seals(box: Box, story: list[Mapping[str, Any]]) -> Iterator[Difference]:
    """Evidence that is not what the last seal in *story* says."""
    seals = [sealed for sealed in map(journal.evidence, story) if sealed]
    for name in _SEALED if seals else ():
        sealed, now = seals[-1].get(name), settle.hash_file(box, name)
        if sealed != now:
            yield Difference(f"SHA-256 of {name}", sealed or NOTHING, now or NOTHING)


def _limits(box: Box, state: RunState) -> Limits | None:
    """The limits under which the last attempt ran, as launch.json tells them."""
    try:
        raw = json.loads(files.read_capped(box.launch, _LARGEST_LAUNCH) or b"")
        return Limits(**raw["limits"]) if raw["attempt"] == state.attempt else None
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _replay(case: Case, told: list[Attempt]) -> Replay:
    lines = count = 0
    before = RunState(model=case.meta.model)
    for attempt in told:
        end = _attempt(case, attempt, before)
        if end is None:
            # Its part of the stream cannot be told apart: what it came to is what the next one began with.
            before = attempt.state
            continue
        lines, count = lines + end.heard.lines, count + 1
        if end.difference:
            return Replay(case.meta.run_name, lines, count, end.difference)
        before = end.state
    return Replay(case.meta.run_name, lines, count, None)


def _attempt(case: Case, attempt: Attempt, before: RunState) -> _End | None:
    """How *attempt* ends after what was *before*; None for an earlier one that cannot be told apart."""
    ends = []
    for actor in attempt.actors:
        if actor is Actor.OWNER and not attempt.is_apart:
            continue
        if not attempt.is_last and attempt.end is None:
            continue
        ends.append(_ended(case, attempt, before, actor))
        if not ends[-1].difference:
            return ends[-1]
    if not ends and attempt.is_last:
        raise OperatorError(
            f"Run {case.meta.short_id} was recorded by a version that did not note where an attempt begins.",
            f"Type: ./agent logs {case.meta.short_id}",
        )
    return ends[0] if ends else None


def _ended(case: Case, attempt: Attempt, before: RunState, actor: Actor) -> _End:
    """Feed the machine with the part of the stream that *actor* heard, and compare what comes out."""
    recorded = attempt.state
    if attempt.is_last:
        recorded = records.replace(case.state, status=recorded.status)
    # A sweep rereads the stream of all attempts, and adds nothing to what is known of earlier ones.
    start = 0 if actor is Actor.WATCHDOG else attempt.start or 0
    try:
        replayed = relive(case, attempt, before, actor, recorded, start)
    except IllegalStep as why:
        return _End(Heard(), recorded, Difference("status", str(recorded.status), why.message))
    return _End(*replayed, next(_differences(case, attempt, recorded, *replayed), None))


def _differences(
    case: Case, attempt: Attempt, recorded: RunState, heard: Heard, state: RunState
) -> Iterator[Difference]:
    if attempt.is_last:
        yield from differing.in_state(recorded, state)
        yield from _in_reports(case, recorded, heard)
    yield from differing.in_ledger(case.meta, attempt, state, heard.progress)


def _in_reports(case: Case, recorded: RunState, heard: Heard) -> Iterator[Difference]:
    """What differs between the reports in the box and those that follow from what was *heard*."""
    ending = Ending(progress=heard.progress)
    for name, wanted in settle.reports(case.box, case.meta, ending, heard.answer).items():
        there = files.read_capped(case.box.path / name, _LARGEST_REPORT)
        found = differing.in_text(name, there, wanted)
        # A disk that failed may have kept it from being written.
        lost = there is None and recorded.failure is not None and recorded.failure.kind in DEAF
        if found and not lost:
            yield found
