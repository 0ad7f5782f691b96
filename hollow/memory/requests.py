"""The queue of requests to the operator: a thing is asked once, however often it is said (seed 000; W1)."""

from __future__ import annotations

import sqlite3

from essentials import records
from essentials.digests import sha256
from hollow.memory import request_lookup as lookup
from hollow.memory.files import MemoryFault
from hollow.memory.request_index import RequestIndex
from hollow.substrate import request_replies as replies
from hollow.substrate import requests as rules
from hollow.substrate.model import Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Final, TypeVar

    from hollow.memory.files import Files
    from hollow.memory.request_lookup import Entry
    from hollow.substrate.model import Request
    from hollow.substrate.requests import Draft

    T = TypeVar("T")

REQUESTS: Final = "claude_requests.jsonl"
RESPONSES: Final = "claude_responses.jsonl"
NOTES: Final = "claude_notes.json"
"""What the operator did with open requests: when they were seen, and the runs that they became."""
ACKS: Final = "claude_acks.json"
"""Answers that have stood in a prompt, by agent: each is shown once (T19)."""
INDEX: Final = "index/requests.db"
_WINDOW: Final = 50
"""Newest answers among which the unshown ones are looked for; more than an agent may have open requests."""
_ACKED: Final = 4 * _WINDOW
_RESULT_LIMIT: Final = 16_000
_NOTED: Final = 1000


class RequestBook:
    """The queue in *files*; *cap* is how many requests one agent may have open."""

    def __init__(self, files: Files, *, cap: int = rules.OPEN_LIMIT) -> None:
        self._files = files
        self._cap = cap

    # --- The agents' side ---------------------------------------------------------------------------------------------

    def submit(
        self,
        agent: str,
        description: str,
        spec: str = "",
        design_path: str = "",
        request_type: str = rules.DEFAULT_TYPE,
        *,
        token: str,
        now: float,
        look: Callable[[str], str | None],
    ) -> dict[str, Any]:
        """Put a request into the queue, on disk at the end; returns what ``invoke_claude`` gives (T1-T9, T15, T16).

        *token* is what its id is made of, *now* the time in seconds since the epoch. *look* reads a document of the
        airlock by its path below the top, None where there is none: what *design_path* names is copied beside the
        queue. What was asked before is not asked again: the reply holds its id, and its answer if there is one.
        """
        draft = rules.drafted(agent, description, spec, design_path, request_type)
        if isinstance(draft, str):
            return replies.refused(draft)
        full = _with_document(draft, look)
        return replies.refused(full) if isinstance(full, str) else self._submit(full, token, now)

    def _submit(self, draft: Draft, token: str, now: float) -> dict[str, Any]:
        with self._files.hold():
            before, response, opened, taken = self._ask(lambda index: lookup.looked_up(index, draft, token, now))
            if before is not None:
                return replies.repeated(before, response)
            if opened >= self._cap:
                return replies.refused(
                    f"You have {opened} open requests, and {self._cap} are the most: wait for answers, and check them."
                )
            request = rules.made(draft, token, now, taken)
            if rules.has_document(draft):
                # Before the line: a request is never in the queue without the document that it names.
                data = rules.document(draft).encode("utf-8", "replace")
                self._files.write_bytes(_document_name(request.request_id), data)
            self._files.append(REQUESTS, rules.record(request))
        return replies.accepted(request)

    def status(self, agent: str, request_id: str = "") -> dict[str, Any]:
        """Return what ``check_claude_status`` gives: of one request, or of *agent*'s newest (T10-T14)."""
        with self._files.hold():
            if not request_id.strip():
                return self._ask(lambda index: lookup.overview(index, agent))
            return self._ask(lambda index: lookup.one(index, agent, request_id, self._notes()))

    def pending(self, agent: str, most: int = 200) -> tuple[Request, ...]:
        """Return the newest *most* open requests of *agent*, oldest first, and of no other agent (T17, T20)."""
        with self._files.hold():
            return tuple(self._ask(lambda index: index.open(agent, most))) if agent else ()

    def answered_since(self, agent: str) -> tuple[tuple[Request, Response], ...]:
        """Return the answers to *agent* that no prompt has shown yet, oldest first (T19)."""
        with self._files.hold():
            answered = self._ask(lambda index: index.answered(agent, _WINDOW))
        shown = self._acks().get(agent, {})
        return tuple(each for each in answered if shown.get(each[0].request_id) != _tag(each[1]))

    def ack(self, agent: str, ids: Iterable[str]) -> None:
        """Note that the answers to the requests *ids* have stood in a prompt that was answered."""
        wanted = list(ids)
        if not wanted:
            return
        with self._files.hold():
            found = self._ask(lambda index: [(name, index.response(name)) for name in wanted])
            acks = self._acks()
            shown = {**acks.get(agent, {}), **{name: _tag(response) for name, response in found if response}}
            self._files.write(ACKS, {**acks, agent: dict(list(shown.items())[-_ACKED:])})

    # --- The operator's side ------------------------------------------------------------------------------------------

    def entry(self, request_id: str) -> Entry | None:
        """Return the request *request_id* with all that is known of it."""
        with self._files.hold():
            notes = self._notes()
            return self._ask(
                lambda index: lookup.entry_of(index, index.request(lookup.meant(index, request_id)), notes)
            )

    def entries(self, *, everything: bool = False, most: int = 200) -> tuple[Entry, ...]:
        """Return the newest *most* open requests of all agents, or with *everything* the answered ones too."""
        with self._files.hold():
            notes = self._notes()

            def gather(index: RequestIndex) -> list[Entry | None]:
                """The entries of one look at the index."""
                found = index.newest("", most) if everything else index.open("", most)
                return [lookup.entry_of(index, request, notes) for request in found]

            return tuple(each for each in self._ask(gather) if each is not None)

    def all(self) -> tuple[Entry, ...]:
        """Return every request there ever was, oldest first; costs a look at all of them."""
        return self.entries(everything=True, most=-1)

    def nearest(self, request_id: str) -> str | None:
        """Return the id of a recent request that *request_id* looks like, or None."""
        with self._files.hold():
            known = self._ask(lambda index: [each.request_id for each in index.newest("", 500)])
        return replies.nearest(rules.clean_id(request_id), known)

    def document(self, request_id: str) -> str:
        """Return the document that is kept for *request_id*, or an empty string."""
        if not rules.is_id(request_id):
            return ""
        try:
            return (self._files.root / _document_name(request_id)).read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def see(self, ids: Iterable[str], now: float) -> None:
        """Note that the operator has seen the open requests *ids* at *now* (seconds since the epoch; Q4)."""
        with self._files.hold():
            notes = self._notes()
            fresh = [name for name in ids if "seen_at" not in notes.get(name, {})]
            if fresh:
                seen = {name: {**notes.get(name, {}), "seen_at": rules.stamp(now)} for name in fresh}
                self._note({**notes, **seen})

    def link(self, request_id: str, run: str, now: float) -> None:
        """Note that *request_id* became the run *run*; raises :class:`LookupError` where there is none."""
        with self._files.hold():
            request, response = self._ask(lambda index: (index.request(request_id), index.response(request_id)))
            if request is None:
                raise LookupError(f"There is no request {request_id}.")
            notes = self._notes()
            note = notes.get(request_id, {})
            runs = [*lookup.runs_of(note), run]
            self._note({**notes, request_id: {"seen_at": rules.stamp(now), **note, "runs": runs[-20:]}})
            if response is not None:
                self._files.append(RESPONSES, rules.reply(records.replace(response, run=run)))

    def answer(self, request_id: str, status: str, result: str, now: float, run: str = "") -> Response:
        """Answer the request *request_id*, on disk when this returns; the same answer again changes nothing.

        *status* is fulfilled or rejected, *result* what the agent is told, *now* in seconds since the epoch, *run* the
        run that did it (the last linked one by default). Raises :class:`LookupError` for an unknown request,
        :class:`ValueError` for another status or a result of more than 16,000 characters; each with one sentence.
        """
        if status not in rules.ANSWERS:
            raise ValueError(f"A request is fulfilled or rejected, not {status[:40]!r}.")
        if len(result) > _RESULT_LIMIT:
            raise ValueError(f"The answer has {len(result)} characters; {_RESULT_LIMIT} are the most.")
        with self._files.hold():
            request, before = self._ask(lambda index: (index.request(request_id), index.response(request_id)))
            if request is None:
                raise LookupError(f"There is no request {request_id}.")
            notes = self._notes()
            linked = run or next(iter(lookup.runs_of(notes.get(request_id, {}))[::-1]), "")
            if before is not None and (before.status, before.result, before.run) == (status, result, linked):
                return before
            response = Response(
                request_id=request_id, status=status, result=result, implemented_at=rules.stamp(now), run=linked
            )
            self._files.append(RESPONSES, rules.reply(response))
        return response

    # --- Underneath ---------------------------------------------------------------------------------------------------

    def _ask(self, question: Callable[[RequestIndex], T]) -> T:
        """Put *question*, which changes nothing, to the index; one that turns out to be damaged is made anew."""
        try:
            return self._once(question)
        except sqlite3.DatabaseError:
            RequestIndex.discard(self._files.root / INDEX)
        try:
            return self._once(question)
        except sqlite3.Error as why:
            raise MemoryFault(f"The index of the requests cannot be used: {why}.") from why

    def _once(self, question: Callable[[RequestIndex], T]) -> T:
        root = self._files.root
        with RequestIndex(root / INDEX, root / REQUESTS, root / RESPONSES, lambda log: self._tell(log.name)) as index:
            return question(index)

    def _tell(self, name: str) -> None:
        # Who reads the log whole is told of its bad lines: once, when they are first met (T21).
        self._files.lines(name)

    def _notes(self) -> dict[str, dict[str, Any]]:
        return lookup.mapping(self._files.read(NOTES).value)

    def _acks(self) -> dict[str, dict[str, Any]]:
        return lookup.mapping(self._files.read(ACKS).value)

    def _note(self, notes: dict[str, dict[str, Any]]) -> None:
        # What was answered long ago needs no note: its run stands in the answer.
        self._files.write(NOTES, dict(list(notes.items())[-_NOTED:]))


def _with_document(draft: Draft, look: Callable[[str], str | None]) -> Draft | str:
    """*draft* with the text of the design document it names, or why that cannot be (Q10)."""
    if not draft.design_path:
        return draft
    text = look(draft.design_path)
    if text is None:
        return f"There is no document {draft.design_path}; write it first, or leave design_path empty."
    if len(text) > rules.DOCUMENT_LIMIT:
        return f"The document has {len(text)} characters; {rules.DOCUMENT_LIMIT} are the most."
    return records.replace(draft, document=text)


def _tag(response: Response) -> str:
    """What tells one answer to a request from a later one: a changed mind is shown again."""
    result = sha256(response.result.encode("utf-8", "replace")).hexdigest()
    return f"{response.status} {response.implemented_at} {result[:12]}"


def _document_name(request_id: str) -> str:
    return f"design/{request_id}.md"
