"""`agent verify`: whether the ledger is what was written, and every sealed file still the one that was sealed."""

from __future__ import annotations

import itertools
import sys

from agents import journal, ledger, locks, settle
from agents.errors import OperatorError, Tampered
from agents.ledger import Flaw, Head
from agents.model import Status
from agents.scroll import PAGE
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Final

    from agents.context import Context
    from agents.model import RunState
    from agents.scroll import Scroll


@records.dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found."""

    entries: int
    runs: int
    """Runs whose seals were checked."""
    flaws: tuple[Flaw, ...]
    torn: int
    """Bytes of a torn last line: a write that was cut off, set aside by the next append."""
    more: int = 0
    """Flaws beyond those that are named."""


_LOOKS: Final = 5
_MOST: Final = 1000
"""Flaws that are named: who lost a hundred thousand boxes need not read it as often."""
COMPARED: Final = ("status", "exit_code", "attempt", "config_hash", "meta_sha256")
"""Facts of a run that its box must agree with."""


def audit(context: Context, only: str | None = None, *, most: int | None = _MOST) -> Audit:
    """Check chain, anchors and seals; *only* names the one run whose seal is to be looked at.

    A run that starts or ends meanwhile is not taken for a flaw: while the ledger grows it is looked at again, and what
    is found twice counts. The first *most* flaws are named, all of them if it is None. Takes time in proportion to
    ledger and boxes, and memory in proportion to the boxes that are there.
    """
    found, end = _look(context, only, most)
    sure = found.flaws
    for _ in range(_LOOKS):
        if not found.flaws or _end(context) == end:
            return found
        again, end = _look(context, only, most)
        # Where hundreds are at work some run ends during every look, but not the same one during two.
        sure = tuple(flaw for flaw in again.flaws if flaw in found.flaws)
        if sure == again.flaws or again.more:
            return again
        found = again
    return records.replace(found, flaws=sure)


def of_run(context: Context, run: str) -> tuple[Flaw, ...]:
    """The flaws that :func:`audit` finds for *run*, at a cost that depends on its age and not on the ledger's length.

    The anchors vouch for the newest lines, and those by their links for every line before them: from the run's own
    start on, nothing can have been changed unseen. Older lines say nothing of this run; `agent verify` reads them too.
    """
    with context.journal.moment() as (scroll, anchors):
        story = _vouched_story(scroll, anchors, run)
    if story is None:
        return audit(context, run).flaws
    seals = [(entry["seq"], seal) for entry in _sealing(story) if (seal := journal.evidence(entry))]
    if _is_active(context, run):
        return ()
    return tuple(flaw for seal in seals for flaw in _check_seal(context, run, *seal))


def _sealing(story: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The entry of *story* (of one run) whose seal counts now, if there is one."""
    seals = _seals(story)
    return [entry for entry in story if entry["seq"] in seals.values()]


def _vouched_story(scroll: Scroll, anchors: Mapping[str, Head], run: str) -> list[Mapping[str, Any]] | None:
    """The entries of *run*, oldest first, if the chain holds from its start to the anchors; None where it does not.

    A page of the ledger is looked at in any case, so that a short one is checked as a whole.
    """
    remembered = {head for head in anchors.values() if head.seq}
    story: list[Mapping[str, Any]] = []
    begun, size = False, 0
    for head, entry, length in ledger.linked(scroll.backwards()):
        remembered.discard(head)
        size += length
        if entry.get("run") == run:
            story.append(entry)
            begun = begun or entry.get("event") == ledger.BEGINNING
        first = head.seq == 1 and entry.get("prev") == ledger.GENESIS
        if begun and not remembered and (first or size > PAGE):
            return story[::-1]
    return None


def _end(context: Context) -> int:
    with context.journal.scroll() as scroll:
        return scroll.end


def _look(context: Context, only: str | None, most: int | None) -> tuple[Audit, int]:
    """What there is to be found now, and how many bytes of the ledger were looked at."""
    if not context.layout.ledger.exists() and not context.journal.anchors():
        return Audit(0, 0, (), 0), 0
    context.store.prepare()
    # Looked at before the ledger is read: a box made in between is then not taken for a forged one.
    names = set(context.store.names()) if only is None else set()
    active = {name for name in context.store.active().values() if _is_active(context, name)}
    with context.journal.moment() as (scroll, anchors):
        told = _Told(names - active, anchors)
        broken, count = told.listen(scroll)
        wanted = {line: run for run, line in told.seals.items() if only in {None, run} and run not in active}
        # Behind a broken link every box would look forged; the one true flaw must not drown in those.
        chain, boxes = ([broken], ()) if broken else (told.against(anchors, count), _check_states(context, told))
        flaws = itertools.chain(chain, _check_seals(context, scroll, wanted), boxes if only is None else ())
        named = tuple(itertools.islice(flaws, most))
        return Audit(count, len(wanted), named, scroll.torn, sum(1 for _ in flaws)), scroll.end


class _Told:
    """What a ledger says, heard entry by entry; of a run that was collected nothing is kept.

    *names* are the boxes that are there, *anchors* the heads that are remembered elsewhere.
    """

    def __init__(self, names: set[str], anchors: Mapping[str, Head]) -> None:
        self.forged = set(names)
        """Boxes of which nothing was heard."""
        self.last: dict[str, dict[str, Any]] = {}
        """What was said last of every run, as far as it can be compared with its box."""
        self.seals: dict[str, int] = {}
        """The line of the last seal of every run that was not resumed since."""
        self._held: dict[int, str | None] = dict.fromkeys(head.seq for head in anchors.values())

    def listen(self, scroll: Scroll) -> tuple[Flaw | None, int]:
        """Hear all that *scroll* holds; returns where its chain breaks, if it does, and how many lines it has."""
        walk = ledger.Walk()
        for entry in walk.entries(scroll.forwards()):
            self.hear(entry, walk.head)
        return walk.flaw, walk.head.seq if walk.flaw is None else sum(1 for _ in scroll.forwards())

    def hear(self, entry: Mapping[str, Any], head: Head) -> None:
        """Take in *entry*, which is the line that *head* names."""
        if head.seq in self._held:
            self._held[head.seq] = head.sha256
        _fold_seal(self.seals, entry)
        _fold_facts(self.last, entry, COMPARED)
        run = str(entry.get("run"))
        status = self.last.get(run, {}).get("status")
        if status:
            self.forged.discard(run)
        if status == "COLLECTED":
            del self.last[run]

    def against(self, anchors: Mapping[str, Head], count: int) -> list[Flaw]:
        """What *anchors* say otherwise than the ledger of *count* lines that was heard."""
        found = (ledger.contradiction(head, count, self._held[head.seq], where) for where, head in anchors.items())
        return [flaw for flaw in found if flaw]


def _seals(entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The line of the last seal of every run; none for a run that was resumed since or collected."""
    seals: dict[str, int] = {}
    for entry in entries:
        _fold_seal(seals, entry)
    return seals


def _fold_seal(seals: dict[str, int], entry: Mapping[str, Any]) -> None:
    run = entry.get("run")
    if not isinstance(run, str):
        return
    if journal.evidence(entry):
        seals[run] = entry["seq"]
    elif entry.get("event") in {"run.collected", "run.resumed", ledger.BEGINNING}:
        seals.pop(run, None)


def _check_seals(context: Context, scroll: Scroll, wanted: Mapping[int, str]) -> Iterator[Flaw]:
    """Whether the boxes hold what was sealed on the lines *wanted*, each of which names its run.

    The lines are read once more: to keep all their hashes meanwhile would take most of the memory.
    """
    for number, line in enumerate(scroll.forwards(), 1) if wanted else ():
        if run := wanted.get(number):
            yield from _check_seal(context, run, number, journal.evidence(ledger.read(line) or {}))


def _check_seal(context: Context, run: str, line: int, sealed: Mapping[str, str]) -> Iterable[Flaw]:
    box = context.store.box(run)
    if not box.path.is_dir():
        yield Flaw(line, "evidence", f"The box of {run} is gone.", run)
        return
    for name, digest in sealed.items():
        now = settle.hash_file(box, name)
        if now != digest:
            yield Flaw(line, "evidence", f"{run}/{name} {'is gone' if now is None else 'is not what was sealed'}.", run)


def _check_states(context: Context, told: _Told) -> Iterator[Flaw]:
    """What a box says of its run against what the ledger said last (M05, M07)."""
    for name in sorted(told.forged):
        yield Flaw(0, "evidence", f"The box {name} is not in the ledger.", name)
    for name, facts in told.last.items():
        if facts.get("status") and not _is_active(context, name):
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
        _fold_facts(last, entry)
    return {run: facts for run, facts in last.items() if facts.get("status")}


def _fold_facts(last: dict[str, dict[str, Any]], entry: Mapping[str, Any], fields: Sequence[str] | None = None) -> None:
    """Bring *last* up to date with *entry*; of its facts the *fields* are kept, or all of them."""
    run, facts = entry.get("run"), entry.get("facts")
    if isinstance(run, str) and isinstance(facts, dict) and str(entry.get("event")).startswith("run."):
        kept = facts if fields is None else {name: _shared(facts[name]) for name in fields if name in facts}
        last.setdefault(run, {}).update(kept)


def _shared(value: Any) -> Any:
    """*value*; of short texts that are equal one is kept in memory: statuses and hashes of settings are all alike."""
    return sys.intern(value) if isinstance(value, str) and len(value) <= _SHORT else value


_SHORT: Final = 16


def _is_active(context: Context, name: str) -> bool:
    """Whether somebody is at the run *name*; a marker alone may be left of one that no sweep could read."""
    marker = context.layout.active / name.rpartition("__")[2]
    return marker.exists() and locks.is_locked(context.store.box(name).owner_lock)
