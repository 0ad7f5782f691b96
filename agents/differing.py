"""The first difference between what was recorded of a run and what its stream leads to."""

from __future__ import annotations

import json
from collections.abc import Mapping

from agents import budget, facts, ledger, plan, redact
from agents.ledger import Head
from agents.tally import TOKENS, Tally
from essentials import records
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    from agents.attempts import Attempt
    from agents.events import Progress
    from agents.model import RunMeta, RunState

NOTHING: Final = "nothing"
"""Stands where there is no value at all."""
_SHOWN: Final = 300
"""Characters that are shown of a value."""
_BEFORE: Final = 60
"""Characters that are shown of what two long texts have in common before they part."""
_STATE: Final = ("status", "failure", "exit_code", "events", "model", "session_id", "usage", "cycle")
"""Fields of the state that follow from stream and exit code, in the order in which they are compared."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not what the stream leads to."""

    what: str
    """Where it stands, like ``state.json: usage``."""
    recorded: object
    replayed: object

    def shown(self) -> tuple[str, str]:
        """Both values for people, cut to where they part: secrets out, control characters visible."""
        one, other = _text(self.recorded), _text(self.replayed)
        pairs = enumerate(zip(one, other, strict=False))
        same = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
        start = max(0, same - _BEFORE) if max(len(one), len(other)) > _SHOWN else 0
        return _cut(one, start), _cut(other, start)


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return redact.visible(redact.redact(text))


def _cut(text: str, start: int) -> str:
    end = start + _SHOWN
    return ("…" if start else "") + text[start:end] + ("…" if len(text) > end else "")


def in_state(recorded: RunState, replayed: RunState) -> Iterator[Difference]:
    """What differs between the *recorded* state.json and the *replayed* one."""
    for name in _STATE:
        one, other = _field(recorded, name), _field(replayed, name)
        if one != other:
            yield Difference(f"state.json: {name}", one, other)
    if not holds(recorded.notes, replayed.notes):
        yield Difference("state.json: notes", list(recorded.notes), list(replayed.notes))


def _field(state: RunState, name: str) -> object:
    value = getattr(state, name)
    if name == "failure":
        # The newest whole file is told by the box, not by the stream.
        return {"kind": str(value.kind), "message": value.message} if value else None
    return dict(value) if isinstance(value, Mapping) else value if isinstance(value, int | None) else str(value)


def holds(notes: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether *wanted* stands in one piece in *notes*: what the supervisor found odd stands around it."""
    return any(notes[at : at + len(wanted)] == wanted for at in range(len(notes) - len(wanted) + 1))


def in_ledger(meta: RunMeta, attempt: Attempt, replayed: RunState, progress: Progress) -> Iterator[Difference]:
    """What differs between the entries of *attempt* and those that the *replayed* end leads to, byte for byte."""
    yield from _in_copies(attempt, progress)
    wanted = json.loads(json.dumps(ledger.bounded(plan.facts(meta, replayed))))
    for name, value in wanted.items():
        recorded = attempt.facts.get(name, NOTHING)
        # A line that had become too long says so, and lacks its heaviest parts.
        if _written(recorded) != _written(value) and not ("cut" in attempt.facts and name not in attempt.facts):
            yield Difference(f"ledger, {(attempt.settled or {}).get('event')}: {name}", recorded, value)


def _in_copies(attempt: Attempt, progress: Progress) -> Iterator[Difference]:
    wanted = facts.copied(progress.facts)
    # A sweep, which hears all attempts again, does not tell twice what an earlier one has told; it once did.
    rest = facts.untold(wanted, attempt.earlier)
    wanted = rest if len(rest) == len(attempt.copied) else wanted
    if attempt.facts.get("recovered"):
        # Whoever settled it died while it copied, and in older versions nobody did that again.
        wanted = wanted[: len(attempt.copied)]
    for number in range(max(len(wanted), len(attempt.copied))):
        entry = attempt.copied[number] if number < len(attempt.copied) else None
        recorded = _written(entry) if entry else NOTHING
        replayed = _line(entry or {}, *wanted[number]) if number < len(wanted) else NOTHING
        if recorded != replayed:
            yield Difference(f"ledger: fact {number + 1} of the agent", recorded, replayed)


def _line(entry: Mapping[str, Any], event: str, given: Mapping[str, Any]) -> str:
    """The line that copying leads to, where, when and of which run *entry* stands."""
    head = Head(entry.get("seq", 1) - 1, str(entry.get("prev", "")))
    line, _ = ledger.link(
        head, time=str(entry.get("time", "")), event=event, run=entry.get("run"), facts=ledger.bounded(given)
    )
    return line.rstrip(b"\n").decode("ascii")


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def in_text(name: str, recorded: bytes | None, replayed: bytes) -> Difference | None:
    """Where the file *name* parts from what it should be, by its line; None where both are the same bytes."""
    if recorded == replayed:
        return None
    if recorded is None:
        return Difference(name, NOTHING, replayed.decode())
    one, other = recorded.splitlines(keepends=True), replayed.splitlines(keepends=True)
    pairs = enumerate(zip(one, other, strict=False), 1)
    number = next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)) + 1)
    return Difference(f"{name}, line {number}", _nth(one, number), _nth(other, number))


def _nth(lines: list[bytes], number: int) -> str:
    return lines[number - 1].decode("utf-8", "replace") if number <= len(lines) else NOTHING


def between(recorded: Mapping[str, Any], before: Mapping[str, Any], heard: Progress, most: Progress) -> bool:
    """Whether the usage *recorded* is one that a supervisor can have heard that read some of what it could have read.

    *before* is the usage of earlier attempts; *heard* tells what no pace hides (the result's own numbers), *most* what
    a reader hears that reads everything.
    """
    least = budget.add(before, budget.usage(records.replace(heard, tally=Tally())))
    largest = budget.add(before, budget.usage(most))
    if set(recorded) - set(largest) or recorded.get("cost_usd") != largest.get("cost_usd"):
        return False
    return all(least.get(name, 0) <= recorded.get(name, 0) <= largest.get(name, 0) for name in (*TOKENS, "turns"))
