"""What an agent is told of its requests: the return values of invoke_claude and check_claude_status (seed 000)."""

from __future__ import annotations

from hollow.substrate.requests import PENDING, SPEC_LIMIT, shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hollow.substrate.model import Request, Response


def accepted(request: Request) -> dict[str, Any]:
    """Return what ``invoke_claude`` gives for a *request* that is in the queue now (Q12)."""
    message = "Request queued for the operator. Ask with check_claude_status."
    if request.truncated:
        message += f" The queue holds the first {SPEC_LIMIT} of {request.spec_length} characters of its spec, "
        message += f"{request.design_path} the rest."
    return {
        "ok": True, "request_id": request.request_id, "status": PENDING, "message": message,
        "truncated": request.truncated, "spec_length": request.spec_length, "duplicate_of": None,
    }  # fmt: skip


def repeated(request: Request, response: Response | None) -> dict[str, Any]:
    """Return what ``invoke_claude`` gives for what was asked before: the same id, and any answer (T15)."""
    given = {**accepted(request), "duplicate_of": request.request_id}
    if response is None:
        return {**given, "message": "You have asked for this already; it waits for the operator. Nothing was added."}
    message = f"You have asked for this already, and it was {response.status}: see result. Nothing was added."
    return {**given, **answer(response), "message": message}


def refused(why: str) -> dict[str, Any]:
    """Return what ``invoke_claude`` gives for a request that was not taken, with *why* as one sentence."""
    return {"ok": False, "status": "refused", "message": why, "error": why}


def answer(response: Response) -> dict[str, Any]:
    """Return what ``check_claude_status`` gives for an answered request (Q16; T11, T12)."""
    given = {
        "ok": True, "request_id": response.request_id, "status": response.status, "result": response.result,
        "implemented_at": response.implemented_at,
    }  # fmt: skip
    return {**given, "run": response.run} if response.run else given


def waiting(request: Request, seen_at: str = "") -> dict[str, Any]:
    """Return what ``check_claude_status`` gives for an open request; *seen_at*: the operator saw it (Q4, Q17)."""
    state = f"The operator saw it at {seen_at} and has not answered yet." if seen_at else "It waits for the operator."
    given = {
        "ok": True, "request_id": request.request_id, "status": PENDING, "message": state,
        "submitted_at": request.timestamp,
    }  # fmt: skip
    return {**given, "seen_at": seen_at} if seen_at else given


def not_found(wanted: str, own: Iterable[str]) -> dict[str, Any]:
    """Return what ``check_claude_status`` gives for an unknown id: the caller's *own* ones, too (Q14, Q18)."""
    known = list(own)
    message = "There is no request with this id. That does not mean that yours was lost: compare known_request_ids."
    return {
        "ok": False, "request_id": wanted, "status": "not_found", "known_request_ids": known,
        "nearest": nearest(wanted, known), "message": message,
    }  # fmt: skip


def nearest(wanted: str, known: Iterable[str]) -> str | None:
    """Return the id of *known* that *wanted* most looks like, or None where none does."""
    import difflib

    found = difflib.get_close_matches(wanted, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def summary(request: Request, response: Response | None) -> dict[str, Any]:
    """Return one line of :func:`overview`."""
    given = {"request_id": request.request_id, "description": shortened(request.description)}
    if response is None:
        return {**given, "status": PENDING, "submitted_at": request.timestamp}
    return {**given, "status": response.status, "result": shortened(response.result, 300)}


def overview(listed: list[dict[str, Any]], opened: int) -> dict[str, Any]:
    """Return what ``check_claude_status`` gives without an id: the caller's newest requests (Q14)."""
    words = f"Your newest {len(listed)} requests, the newest first; {opened} of yours are open."
    message = words if listed else "You have made no request yet."
    return {"ok": True, "status": "listed", "requests": listed, "open": opened, "message": message}
