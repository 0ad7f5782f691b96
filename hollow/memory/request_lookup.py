"""Questions to the index of the request queue: what an agent or the operator wants to know of it."""

from __future__ import annotations

from essentials.records import dataclass
from hollow.substrate import request_replies as replies
from hollow.substrate import requests as rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from hollow.memory.request_index import RequestIndex
    from hollow.substrate.model import Request, Response
    from hollow.substrate.requests import Draft

KNOWN: Final = 20
"""Own ids that an agent is told of (Q14)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A request as the operator sees it."""

    request: Request
    response: Response | None = None
    seen_at: str = ""
    """When the operator first looked at it; empty before."""
    runs: tuple[str, ...] = ()
    """Names of the runs that it was turned into, newest last."""

    @property
    def status(self) -> str:
        """pending, fulfilled or rejected."""
        return self.response.status if self.response else rules.PENDING


def looked_up(
    index: RequestIndex, draft: Draft, token: str, now: float
) -> tuple[Request | None, Response | None, int, list[str]]:
    """What was asked before and its answer, how many requests are open, and whether the id is taken."""
    before = index.alike(draft.fingerprint)
    name = rules.made(draft, token, now).request_id
    taken = [name] if index.request(name) else []
    response = index.response(before.request_id) if before else None
    return before, response, index.count_open(draft.agent), taken


def meant(index: RequestIndex, text: str) -> str:
    """The id that *text* means: as it is where there is such a one (hand-placed ids have any form), else cleaned."""
    exact = text.strip()
    known = index.request(exact) is not None or index.response(exact) is not None
    return exact if known else rules.clean_id(text)


def overview(index: RequestIndex, agent: str) -> dict[str, Any]:
    """What an agent is told that asks for no request in particular: its newest ones."""
    own = index.newest(agent, KNOWN)[::-1] if agent else []
    listed = [replies.summary(request, index.response(request.request_id)) for request in own]
    return replies.overview(listed, index.count_open(agent))


def one(index: RequestIndex, agent: str, text: str, notes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What *agent* is told of the request that *text* means (T10-T14)."""
    name = meant(index, text)
    # The answers first: whatever the queue says, an answer is an answer (Q15).
    response = index.response(name)
    if response is not None:
        return replies.answer(response)
    request = index.request(name)
    if request is not None:
        return replies.waiting(request, str(notes.get(name, {}).get("seen_at", "")))
    own = index.newest(agent, KNOWN)[::-1] if agent else []
    return replies.not_found(name, [each.request_id for each in own])


def entry_of(index: RequestIndex, request: Request | None, notes: dict[str, dict[str, Any]]) -> Entry | None:
    """*request* with all that is known of it."""
    if request is None:
        return None
    note = notes.get(request.request_id, {})
    response = index.response(request.request_id)
    runs = tuple(runs_of(note)) or ((response.run,) if response and response.run else ())
    return Entry(request=request, response=response, seen_at=str(note.get("seen_at", "")), runs=runs)


def runs_of(note: dict[str, Any]) -> list[str]:
    """The runs that a *note* names, newest last."""
    runs = note.get("runs")
    return [run for run in runs if isinstance(run, str)] if isinstance(runs, list) else []


def mapping(value: Any) -> dict[str, dict[str, Any]]:
    """*value* as a mapping of mappings; what is none is left out."""
    pairs = value.items() if isinstance(value, dict) else ()
    return {str(name): each for name, each in pairs if isinstance(each, dict)}
