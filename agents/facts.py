"""Copies what an agent says of its own state (``system/hollow``) to the ledger, as its claim and nothing more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agents.events import Fact
    from agents.journal import Journal

# Families of facts that belong to history (design, section 4); the rest is chatter and stays in the stream.
FAMILIES: Final = ("goal.", "suffering.", "lesson.", "capability.", "request.")
LARGEST: Final = 4096
"""Bytes of one fact: the dashboard is drawn from the ledger's tail, which no agent may fill."""


MOST: Final = 64
"""Facts of one run: of more the newest, because how a cycle ended is said last."""


def copy(journal: Journal, run: str, said: Iterable[Fact]) -> int:
    """Append every fact of a known family that is small enough, at most :data:`MOST`; returns how many.

    What the agent gives stands under ``said``, apart from what the supervisor knows: it cannot forge a row.
    """
    chosen = [fact for fact in said if fact.kind.startswith(FAMILIES) and len(json.dumps(fact.facts)) <= LARGEST]
    chosen = chosen[-MOST:]
    for fact in chosen:
        journal.append(fact.kind[:64], run, {"said": dict(fact.facts)})
    return len(chosen)
