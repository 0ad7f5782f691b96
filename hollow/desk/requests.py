"""The operator's side of the request queue: looked at with flags, answered, turned into a run's task."""

from __future__ import annotations

import functools
import posixpath

from hollow.desk.trouble import Trouble
from hollow.gitread import GitReadError, git
from hollow.substrate import request_lint, request_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any, Final

    from hollow.memory.memory import Memory
    from hollow.memory.request_lookup import Entry
    from hollow.substrate.model import Request

COMMONS: Final = "refs/heads/agent-box/commons"
"""What the agents have made so far; it is in no checkout."""
POLICY: Final = (
    "Policy: carry the request out as it is written, or reject it with a reason. Your answer is all that the agent "
    "hears; what cannot work, names what does not exist or would harm the system is rejected."
)
"""Seed 000, the human review cycle (Q5)."""


def listed(memory: Memory, repo: Path, *, everything: bool) -> list[dict[str, Any]]:
    """Return the open requests, or with *everything* the answered ones too, each with its flags; oldest first."""
    if not memory.root.is_dir():
        return []
    recent = memory.requests.entries(everything=True)
    others = [entry.request for entry in recent]
    wanted = recent if everything else memory.requests.entries()
    exists = there(repo)
    return [_row(entry, exists, others) for entry in wanted]


def shown(memory: Memory, repo: Path, request_id: str, now: float) -> dict[str, Any]:
    """Return all of the request *request_id*, and note that the operator has seen it at *now* (seconds; Q4).

    Raises :class:`Trouble` where there is none.
    """
    entry = found(memory, request_id)
    name = entry.request.request_id
    # To have seen an answered one tells its agent nothing.
    if entry.response is None:
        memory.requests.see([name], now)
    document = memory.requests.document(name)
    others = [each.request for each in memory.requests.entries(everything=True)]
    return {
        **_row(entry, there(repo), others), "spec": entry.request.spec, "document": document,
        "task": request_text.task(entry.request, document),
    }  # fmt: skip


def answered(memory: Memory, request_id: str, status: str, result: str, now: float, *, again: bool) -> dict[str, Any]:
    """Answer *request_id* with *status* and *result* at *now* (seconds); returns the answer.

    An answer that stands is changed with *again* only. Raises :class:`Trouble` where it cannot be.
    """
    if not result.strip():
        raise Trouble("The answer is empty, and it is all that the agent hears.", "Say what was done, or why not.")
    entry = found(memory, request_id)
    before = entry.response
    if before and (before.status, before.result) != (status, result) and not again:
        raise Trouble(f"{entry.request.request_id} is {before.status} already.", "Add --again to answer it anew.")
    try:
        response = memory.requests.answer(entry.request.request_id, status, result, now)
    except ValueError as why:
        raise Trouble(str(why)) from why
    return {
        "request_id": response.request_id, "status": response.status, "result": response.result,
        "implemented_at": response.implemented_at, "run": response.run, "agent": entry.request.agent,
    }  # fmt: skip


def linked(memory: Memory, request_id: str, run: str, now: float) -> dict[str, Any]:
    """Note that *request_id* became the run *run* at *now* (seconds); raises :class:`Trouble` where there is none."""
    name = found(memory, request_id).request.request_id
    memory.requests.link(name, run, now)
    return {"request_id": name, "run": run}


def found(memory: Memory, request_id: str) -> Entry:
    """Return the request that *request_id*, or the one beginning of an id, means; raises :class:`Trouble`."""
    entry = memory.requests.entry(request_id) if memory.root.is_dir() else None
    if entry is not None:
        return entry
    near = memory.requests.nearest(request_id) if memory.root.is_dir() else None
    hint = f"Did you mean {near}? Type: ./agent requests" if near else "Type: ./agent requests list --all"
    raise Trouble(f"There is no request {request_id}.", hint)


def _row(entry: Entry, exists: Callable[[str], bool], others: Sequence[Request]) -> dict[str, Any]:
    request, response = entry.request, entry.response
    # The later one is the repetition.
    earlier = [each for each in others if (each.timestamp, each.request_id) < (request.timestamp, request.request_id)]
    return {
        "request_id": request.request_id, "agent": request.agent, "timestamp": request.timestamp,
        "status": entry.status, "request_type": request.request_type, "description": request.description,
        "design_path": request.design_path, "spec_length": request.spec_length, "truncated": request.truncated,
        "flags": list(request_lint.flags(request, exists, earlier)), "seen_at": entry.seen_at, "runs": list(entry.runs),
        "result": response.result if response else None,
        "implemented_at": response.implemented_at if response else None,
    }  # fmt: skip


def there(repo: Path) -> Callable[[str], bool]:
    """Return what says whether a path exists: in the checkout *repo*, or in what the agents have made so far."""

    @functools.cache
    def made() -> frozenset[str]:
        """What the agents have made, by path: asked of git once."""
        try:
            names = git(repo, "ls-tree", "-r", "-t", "--name-only", "-z", COMMONS).decode("utf-8", "replace")
        except GitReadError:
            return frozenset()
        return frozenset(names.split("\0"))

    def exists(path: str) -> bool:
        """Whether *path* is there."""
        clean = posixpath.normpath(path)
        # What a request names is an agent's word: no file outside of the repository is looked for.
        return not clean.startswith(("/", "..")) and ((repo / clean).exists() or clean in made())

    return exists
