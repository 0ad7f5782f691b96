"""`agent verify`: whether the ledger is what was written, and every sealed file still the one that was sealed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agents import files, journal, ledger, settle
from agents.errors import OperatorError, Tampered
from agents.ledger import Flaw
from agents.model import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agents.context import Context
    from agents.model import RunState


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found."""

    entries: int
    runs: int
    """Runs whose seals were checked."""
    flaws: tuple[Flaw, ...]
    torn: int
    """Bytes of a torn last line: a write that was cut off, set aside by the next append."""


_LOOKS: Final = 5


def audit(context: Context, only: str | None = None) -> Audit:
    """Check chain, anchors and seals; *only* names the one run whose seal is to be looked at.

    A run that starts or ends meanwhile is not taken for a flaw: while the ledger grows it is looked at again.
    """
    found = _look(context, only)
    for _ in range(_LOOKS):
        if not found.flaws or len(context.journal.lines()) == found.entries:
            break
        found = _look(context, only)
    return found


def _look(context: Context, only: str | None) -> Audit:
    if not context.layout.ledger.exists() and not context.journal.anchors():
        return Audit(0, 0, (), 0)
    context.store.prepare()
    # Looked at before the ledger is read: a box made in between is then not taken for a forged one.
    names = context.store.names()
    active = {name for name in context.store.active().values() if _is_active(context, name)}
    with files.Lock(context.layout.ledger_lock):
        lines, torn = context.journal.lines(), context.journal.torn()
        anchors = context.journal.anchors()
    broken, _, entries = ledger.check(lines)
    sealed = _seals(entries)
    wanted = {run: seal for run, seal in sealed.items() if only in {None, run} and run not in active}
    flaws = [found for run, seal in wanted.items() for found in _check_seal(context, run, *seal)]
    if broken:
        # Behind a broken link every box would look forged; the one true flaw must not drown in those.
        flaws.insert(0, broken)
    else:
        flaws[:0] = _against_anchors(anchors, lines)
        flaws += _check_states(context, entries, set(names) - active) if only is None else []
    return Audit(len(lines), len(wanted), tuple(flaws), torn)


def _against_anchors(anchors: Mapping[str, ledger.Head], lines: list[bytes]) -> list[Flaw]:
    return [flaw for where, head in anchors.items() if (flaw := ledger.compare(head, lines, where))]


def _seals(entries: Iterable[Mapping[str, Any]]) -> dict[str, tuple[int, Mapping[str, str]]]:
    """The last seal of every run with the line it stands on; none for a run that was resumed since or collected."""
    seals: dict[str, tuple[int, Mapping[str, str]]] = {}
    for entry in entries:
        run, sealed = entry.get("run"), journal.evidence(entry)
        if not isinstance(run, str):
            continue
        if sealed:
            seals[run] = (entry["seq"], sealed)
        elif entry.get("event") in {"run.collected", "run.resumed", "run.started"}:
            seals.pop(run, None)
    return seals


def _check_seal(context: Context, run: str, line: int, sealed: Mapping[str, str]) -> Iterable[Flaw]:
    box = context.store.box(run)
    if not box.path.is_dir():
        yield Flaw(line, "evidence", f"The box of {run} is gone.", run)
        return
    for name, digest in sealed.items():
        now = settle.hash_file(box, name)
        if now != digest:
            yield Flaw(line, "evidence", f"{run}/{name} {'is gone' if now is None else 'is not what was sealed'}.", run)


def _check_states(context: Context, entries: Iterable[Mapping[str, Any]], names: set[str]) -> Iterable[Flaw]:
    """What a box says of its run against what the ledger said last (M05, M07)."""
    last = last_facts(entries)
    for name in sorted(names - last.keys()):
        yield Flaw(0, "evidence", f"The box {name} is not in the ledger.", name)
    for name, facts in last.items():
        # The ledger is told of a removal before the box goes; one whose remover died then is still there.
        if facts["status"] != "COLLECTED" and not _is_active(context, name):
            yield from _check_state(context, name, facts)


def _check_state(context: Context, name: str, facts: Mapping[str, Any]) -> Iterable[Flaw]:
    try:
        state = context.store.load(name)
    except OperatorError:
        # A box that is gone as a whole is told of by its seal, if it ever had one.
        missed = facts["status"] == Status.ACTIVE or context.store.box(name).path.is_dir()
        found = [f"The state of {name} is gone."] if missed else []
    except Tampered:
        found = [f"The state of {name} is not readable."]
    else:
        envelope = settle.hash_file(context.store.box(name), "meta.yaml")
        found = [*_contradictions(name, state, facts), *_broken_envelope(name, envelope, facts)]
    return [Flaw(0, "evidence", message, name) for message in found]


def _contradictions(name: str, state: RunState, facts: Mapping[str, Any]) -> list[str]:
    """What *state* says otherwise than the ledger's *facts*."""
    if facts["status"] != str(state.status):
        return [f"The state of {name} says {state.status}, the ledger says {facts['status']}."]
    told = {"exit_code": state.exit_code, "attempt": state.attempt, "config_hash": state.config_hash}
    odd = [field for field, value in told.items() if field in facts and facts[field] != value]
    return [f"The state of {name} has another {', '.join(odd)} than the ledger."] if odd else []


def _broken_envelope(name: str, envelope: str | None, facts: Mapping[str, Any]) -> list[str]:
    sealed = facts.get("meta_sha256")
    return [f"{name}/meta.yaml is not what was sealed at its start."] if sealed and sealed != envelope else []


def last_facts(entries: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Run to what the ledger says of it by now; later facts replace earlier ones."""
    last: dict[str, dict[str, Any]] = {}
    for entry in entries:
        run, facts = entry.get("run"), entry.get("facts")
        if isinstance(run, str) and isinstance(facts, dict) and str(entry.get("event")).startswith("run."):
            last.setdefault(run, {}).update(facts)
    return {run: facts for run, facts in last.items() if facts.get("status")}


def _is_active(context: Context, name: str) -> bool:
    """Whether somebody is at the run *name*; a marker alone may be left of one that no sweep could read."""
    marker = context.layout.active / name.rpartition("__")[2]
    return marker.exists() and files.is_locked(context.store.box(name).owner_lock)
