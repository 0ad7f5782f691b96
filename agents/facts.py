"""Copies what an agent says of its own state (``system/hollow``) to the ledger, as its claim and nothing more."""

from __future__ import annotations

import json

from agents import ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Final

    from agents.events import Fact
    from agents.journal import Journal

# Families of facts that belong to history (design, section 4); the rest is chatter and stays in the stream.
FAMILIES: Final = ("goal.", "suffering.", "lesson.", "capability.", "request.")
LARGEST: Final = 4096
"""Bytes of one fact: the dashboard is drawn from the ledger's tail, which no agent may fill."""


MOST: Final = 64
"""Facts of one run: of more the newest, because how a cycle ended is said last."""


def copy(journal: Journal, run: str, said: Iterable[Fact], story: Iterable[Mapping[str, Any]] = ()) -> int:
    """Append every fact of a known family that is small enough, at most :data:`MOST`; returns how many.

    What the agent gives stands under ``said``, apart from what the supervisor knows: it cannot forge a row. Whoever
    hears the run again gives its *story*, the entries of the ledger so far: what they tell is not told twice.
    """
    entries = untold(copied(said), story)
    for event, told in entries:
        journal.append(event, run, told)
    return len(entries)


def copied(said: Iterable[Fact]) -> list[tuple[str, dict[str, Any]]]:
    """Event and facts of every entry that :func:`copy` makes of *said*, in order; pure."""
    chosen = [fact for fact in said if fact.kind.startswith(FAMILIES) and len(json.dumps(fact.facts)) <= LARGEST]
    return [(fact.kind[:64], {"said": dict(fact.facts)}) for fact in chosen[-MOST:]]


def untold(
    entries: Sequence[tuple[str, dict[str, Any]]], story: Iterable[Mapping[str, Any]]
) -> list[tuple[str, dict[str, Any]]]:
    """Those of *entries* (as of :func:`copied`) that come after what the *story* of the run ends with; pure.

    Whoever died while he copied has told the first of them, and a stream that is heard again begins with what earlier
    attempts have told: so the longest end of the story that the entries begin with is left out.
    """
    told = [_plain(entry["event"], entry["facts"]) for entry in story if str(entry.get("event")).startswith(FAMILIES)]
    wanted = [_plain(event, ledger.bounded(given)) for event, given in entries]
    known = min(len(told), len(wanted))
    while told[len(told) - known :] != wanted[:known]:
        known -= 1
    return [*entries[known:]]


def _plain(event: str, given: Any) -> str:
    """An entry as it can be compared."""
    return json.dumps([event, given], sort_keys=True)
