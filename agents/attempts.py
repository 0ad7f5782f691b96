"""The attempts of a run as the ledger tells of them: where each begins in the stream, and how it ended."""

from __future__ import annotations

import json

from agents import facts, settle
from agents.model import Actor, Phase, RunState
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

_BEGINNINGS: Final = frozenset({"run.started", "run.resumed"})
_ENDINGS: Final = frozenset({"run.finished", *settle.EVENTS.values()})


@dataclass(slots=True)
class Attempt:
    """One attempt, from the entry that announced it to the one that settled it."""

    start: int | None
    """Byte of the stream at which its part begins; None where nobody noted it."""
    end: int | None = None
    """Byte at which the part of the next attempt begins; None for the end of the stream."""
    resumes: bool = False
    """Whether it goes on with the session of the attempt before it."""
    copied: list[Mapping[str, Any]] = field(default_factory=list)
    """The entries of what its agent said of its own state."""
    earlier: list[Mapping[str, Any]] = field(default_factory=list)
    """Those of all attempts before it."""
    settled: Mapping[str, Any] | None = None
    """The entry of its end."""
    is_last: bool = True

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the entry of its end says; empty before there is one."""
        return _facts(self.settled or {})

    @property
    def actors(self) -> tuple[Actor, ...]:
        """Who may have settled it: both where the entry does not say, as one of an older version."""
        by = self.facts.get("by")
        return (Actor(by),) if by in {Actor.OWNER, Actor.WATCHDOG} else (Actor.OWNER, Actor.WATCHDOG)

    @property
    def state(self) -> RunState:
        """The state that the entry of its end tells of; raises Tampered where it tells of none."""
        return RunState.from_json(json.dumps(self.facts).encode())

    @property
    def is_apart(self) -> bool:
        """Whether it is known where its part of the stream begins and ends."""
        return self.start is not None and (self.is_last or self.end is not None)


def told(story: Iterable[Mapping[str, Any]]) -> list[Attempt]:
    """The attempts in the *story* of a run, its entries from the oldest on."""
    attempts: list[Attempt] = []
    for entry in story:
        if _begins(entry):
            _open(attempts, entry)
        elif attempts:
            _add(attempts, entry)
    return attempts


def _begins(entry: Mapping[str, Any]) -> bool:
    # A silent run that speaks again is "resumed" as well; only an announcement seals the envelope.
    return entry.get("event") in _BEGINNINGS and "meta_sha256" in _facts(entry)


def _open(attempts: list[Attempt], entry: Mapping[str, Any]) -> None:
    given = _facts(entry)
    told = given.get("stream_from") if attempts else 0
    start = told if isinstance(told, int) and told >= 0 else None
    if attempts:
        attempts[-1].end, attempts[-1].is_last = start, False
    attempts.append(Attempt(start, resumes=given.get("resumes") is True, earlier=_copied(attempts)))


def _add(attempts: list[Attempt], entry: Mapping[str, Any]) -> None:
    event, given = str(entry.get("event")), _facts(entry)
    copied = event.startswith(facts.FAMILIES)
    if not copied and not (event in _ENDINGS and given.get("phase") == Phase.SETTLED):
        return
    before = attempts[-1].facts
    if before and (copied or given.get("attempt") != before.get("attempt")):
        # One whose supervisor died before it could announce it: the sweep that settled it has reread all of the stream.
        attempts[-1].is_last = False
        attempts.append(Attempt(None, earlier=_copied(attempts)))
    if copied:
        attempts[-1].copied.append(entry)
    else:
        attempts[-1].settled = entry


def _copied(attempts: list[Attempt]) -> list[Mapping[str, Any]]:
    return [*attempts[-1].earlier, *attempts[-1].copied] if attempts else []


def _facts(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    given = entry.get("facts")
    return given if isinstance(given, dict) else {}
