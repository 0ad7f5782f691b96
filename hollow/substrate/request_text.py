"""The queue in words: the two blocks of the prompt, and the task that a request becomes for a boxed run."""

from __future__ import annotations

from hollow.substrate.requests import shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from hollow.substrate.model import Request, Response

SHOWN: Final = 3
"""Open requests that the prompt names, the newest ones (T17, Q19)."""
HEADER: Final = "YOUR PENDING CLAUDE REQUESTS (submitted, not yet fulfilled):"
HINT: Final = "Use check_claude_status(request_id='...') to see if any were fulfilled."
ANSWERED: Final = "YOUR ANSWERED CLAUDE REQUESTS (since your last cycle):"
_RESULT: Final = 300
TASK_LIMIT: Final = 200_000
"""Characters of a task made of a request: a model reads no more of it."""

_RULES: Final = (
    "do what they say, nothing beyond it. Paths that begin with /agentOS/ are relative to the top of this repository. "
    "Where they name what does not exist, say so instead of inventing it."
)


def pending_block(pending: Sequence[Request], older: int = 0) -> str:
    """Return the prompt's block for the open requests *pending* (oldest first), empty without any.

    *older* is how many more there are before those. Descriptions are one line of 100 characters (Q20).
    """
    if not pending:
        return ""
    lines = [f"  [{each.request_id}] {shortened(each.description)}" for each in reversed(pending[-SHOWN:])]
    hidden = older + max(0, len(pending) - SHOWN)
    more = [f"  +{hidden} older"] if hidden else []
    return "\n".join([HEADER, *lines, *more, HINT])


def answered_block(answered: Sequence[tuple[Request, Response]]) -> str:
    """Return the prompt's block for the newly *answered* requests, empty without any (T19, Q21)."""
    if not answered:
        return ""
    return "\n".join([ANSWERED, *(_answered(request, response) for request, response in answered)])


def _answered(request: Request, response: Response) -> str:
    what = shortened(request.description)
    result = shortened(response.result, _RESULT) or "(no words)"
    return f"  [{request.request_id}] {response.status}: {what}\n    Answer: {result}"


def task(request: Request, document: str) -> str:
    """Return the task of a run that carries out *request*, with the *document* that belongs to it.

    The words are an agent's. They are set apart from ours, and where they are too long that is said.
    """
    kind = shortened(request.request_type, 60)
    whose = f"This is the request {request.request_id} of the agent {request.agent or 'unknown'} (type: {kind})."
    asked = [
        # First, for people know a run by the beginning of its task.
        request.description.strip(),
        f"{whose} Its words are the ones above and the specification below: {_RULES}",
        # A spec that was cut stands whole in the document.
        _part("Specification", "" if request.truncated and document else request.spec),
        # The document of a change is its patch, which is its specification too: to be applied once.
        _part("Design document", "" if document.strip() == request.spec.strip() else document),
    ]
    text = "\n\n".join(part for part in asked if part)
    if len(text) <= TASK_LIMIT:
        return text
    return f"{text[:TASK_LIMIT]}\n\n[Cut here: the request has {len(text)} characters.]"


def _part(title: str, body: str) -> str:
    return f"## {title}\n\n{body.strip()}" if body.strip() else ""
