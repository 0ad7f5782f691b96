"""What a request to the operator is: checked, named, recognised when it comes again, and answered (seed 000)."""

from __future__ import annotations

import posixpath
import unicodedata
from datetime import UTC, datetime

from essentials.digests import sha256
from essentials.patterns import late
from essentials.records import dataclass
from hollow.oneline import bare
from hollow.substrate.model import Request, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

SPEC_LIMIT: Final = 4000
"""Characters of a specification that stand in the queue; the whole lies in ``design/`` beyond that (T6, T7, Q9)."""
DESCRIPTION_LIMIT: Final = 4000
DOCUMENT_LIMIT: Final = 1024 * 1024
"""Characters of a specification or document that are taken at all; more is refused, never cut (W17)."""
TYPE_LIMIT: Final = 60
OPEN_LIMIT: Final = 20
"""Requests that one agent may have open: what is not recognised as a repetition is bounded all the same (W1)."""
DEFAULT_TYPE: Final = "implement"
CHANGE: Final = "change"
"""Type of a patch proposal: its diff always lies in ``design/``."""
PENDING: Final = "pending"
ANSWERS: Final = frozenset({"fulfilled", "rejected"})
"""The two statuses that an operator can give (Q16)."""
OWN: Final = "/agentOS/"
"""How the agents write the top of their airlock."""

_PATH: Final = late(
    r"(?<![\w.:/-])/?(?:[\w.-]+/)+[\w.-]*\w|(?<![\w./-])[\w-]+\.(?:py|md|json|jsonl|toml|ya?ml|txt|cfg|ini|sh|js|ts|rs|go|c|h|html|css)\b"
)
_HEX: Final = late(r"[0-9a-f]{12}")
_ID: Final = late(r"req-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A request that may be submitted, before it has an id."""

    agent: str
    description: str
    spec: str
    """Whole."""
    design_path: str
    """Below ``design/`` of the airlock, or empty."""
    request_type: str
    document: str = ""
    """What its design document says."""

    @property
    def fingerprint(self) -> str:
        """What two requests for the same thing have in common: 64 hex digits (W1, T16).

        Case, spacing and the ``/agentOS/`` in front of a path make no other request; another target file does.
        """
        # The text of a design document is left out: while it grows, the request that names it is the same.
        words, named = normalised(self.description), sorted(set(targets(f"{self.description}\n{self.spec}")))
        # In a patch case and spacing are what it is about.
        spec = self.spec if is_change(self.request_type) else normalised(self.spec)
        mark = sha256(spec.encode("utf-8", "replace")).hexdigest()
        parts = [self.agent, self.request_type.casefold(), words, self.design_path, mark, *named]
        return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


def drafted(agent: str, description: str, spec: str, design_path: str, request_type: str) -> Draft | str:
    """Return the request as it may be submitted, or one sentence that says why it may not (Q10, Q29; T8, T9)."""
    kind = request_type.strip() or DEFAULT_TYPE
    if not description.strip():
        return "A request needs a description: an empty one gives the operator nothing to judge."
    for name, text, limit in (
        ("description", description, DESCRIPTION_LIMIT),
        ("spec", spec, DOCUMENT_LIMIT),
        ("request_type", kind, TYPE_LIMIT),
    ):
        if len(text) > limit:
            return f"The {name} has {len(text)} characters; {limit} are the most, so put the details elsewhere."
    path = design_name(design_path) if design_path.strip() else ""
    if path is None:
        return f"The design_path {shortened(design_path)} does not lie in design/; give one like design/plan.md."
    return Draft(agent=agent, description=description.strip(), spec=spec, design_path=path, request_type=kind)


def design_name(path: str) -> str | None:
    """Return *path* relative to the top of the airlock where it lies in ``design/`` by its name, else None (T9)."""
    clean = posixpath.normpath(path.strip().removeprefix(OWN))
    # Normalised first: `design/../agents/x` begins with the right word, too.
    return clean if clean.startswith("design/") and "\0" not in clean else None


def normalised(text: str) -> str:
    """Return *text* without what makes no difference: case, spacing, a final stop, ``/agentOS/`` before a path."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace(OWN.casefold(), "")
    return " ".join(plain.split()).rstrip(".!… ")


def targets(text: str) -> tuple[str, ...]:
    """Return the paths that *text* names, normalised, in order, each once."""
    found = (posixpath.normpath(each.casefold()) for each in paths(text))
    return tuple(dict.fromkeys(each.removeprefix(OWN.casefold()) for each in found))


def paths(text: str) -> tuple[str, ...]:
    """Return what looks like a path in *text*, as it is written there, each once; addresses of pages are none."""
    return tuple(dict.fromkeys(found[0] for found in _PATH.finditer(text)))


def made(draft: Draft, token: str, now: float, taken: Iterable[str] = ()) -> Request:
    """Return the request of *draft* under an id made of *token* that is not *taken*.

    *now* is in seconds since the epoch. Its spec is what stands in the queue; ``truncated`` says whether that is less
    than was given (T2, T3, T6).
    """
    others, turn = frozenset(taken), 0
    while (name := _name(f"{token}\0{draft.fingerprint}\0{turn}")) in others:
        turn += 1
    truncated = len(draft.spec) > SPEC_LIMIT
    kept = draft.design_path or (f"design/{name}.md" if has_document(draft) else "")
    return Request(
        request_id=name, agent=draft.agent, timestamp=stamp(now), description=draft.description,
        spec=draft.spec[:SPEC_LIMIT], design_path=f"{OWN}{kept}" if kept else "", request_type=draft.request_type,
        fingerprint=draft.fingerprint, spec_length=len(draft.spec), truncated=truncated,
    )  # fmt: skip


def _name(seed: str) -> str:
    return "req-" + sha256(seed.encode("utf-8", "replace")).hexdigest()[:12]


def has_document(draft: Draft) -> bool:
    """Whether something of *draft* does not fit into the queue's line."""
    return bool(draft.document or _kept_whole(draft))


def document(draft: Draft) -> str:
    """Return the text that is kept beside the queue for *draft*: its document, and its spec where that was cut."""
    whole = _kept_whole(draft)
    if draft.document and whole:
        return f"{draft.document.rstrip()}\n\n# Full specification\n\n{whole}"
    return draft.document or whole


def _kept_whole(draft: Draft) -> str:
    """The spec where it stands in ``design/``: a long one, or a patch, which is applied from there."""
    return draft.spec if len(draft.spec) > SPEC_LIMIT or is_change(draft.request_type) else ""


def is_change(request_type: str) -> bool:
    """Whether a request of *request_type* is a patch proposal."""
    return request_type.strip().casefold() == CHANGE


def stamp(now: float) -> str:
    """Return *now* (seconds since the epoch) as the queue writes it: ``YYYY-MM-DD HH:MM:SS``, UTC (T3)."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S")


# --- Lines of the two files -------------------------------------------------------------------------------------------


def record(request: Request) -> dict[str, Any]:
    """Return *request* as a line of claude_requests.jsonl: the seed's seven fields first (Q13, T1)."""
    return {
        "request_id": request.request_id, "timestamp": request.timestamp, "description": request.description,
        "spec": request.spec, "design_path": request.design_path, "request_type": request.request_type,
        "status": PENDING, "agent_id": request.agent, "fingerprint": request.fingerprint,
        "spec_length": request.spec_length, "truncated": request.truncated,
    }  # fmt: skip


def request_of(line: Mapping[str, Any]) -> Request | None:
    """Return the request that a *line* is, hand-placed ones with the seed's fields alone included; None for none."""
    name = _word(line, "request_id")
    if not name:
        return None
    spec, agent = _word(line, "spec"), _word(line, "agent_id") or _word(line, "agent")
    length, mark = line.get("spec_length"), _word(line, "fingerprint")
    kind, description = _word(line, "request_type") or DEFAULT_TYPE, _word(line, "description")
    path = _word(line, "design_path")
    asked = Draft(
        agent=agent, description=description, spec=spec, design_path=design_name(path) or "", request_type=kind
    )
    return Request(
        request_id=name, agent=agent, timestamp=_word(line, "timestamp"), description=description, spec=spec,
        design_path=path, request_type=kind, fingerprint=mark or asked.fingerprint,
        spec_length=length if isinstance(length, int) and not isinstance(length, bool) else len(spec),
        truncated=line.get("truncated") is True,
    )  # fmt: skip


def reply(response: Response) -> dict[str, Any]:
    """Return *response* as a line of claude_responses.jsonl."""
    line = {
        "request_id": response.request_id, "status": response.status, "result": response.result,
        "implemented_at": response.implemented_at,
    }  # fmt: skip
    return {**line, "run": response.run} if response.run else line


def response_of(line: Mapping[str, Any]) -> Response | None:
    """Return the answer that a *line* is; None for what names no request or has no status of the two (Q16)."""
    name, status = _word(line, "request_id"), _word(line, "status")
    if not name or status not in ANSWERS:
        return None
    return Response(
        request_id=name, status=status, result=_word(line, "result"), run=_word(line, "run"),
        implemented_at=_word(line, "implemented_at") or _word(line, "timestamp"),
    )  # fmt: skip


def _word(line: Mapping[str, Any], name: str) -> str:
    value = line.get(name)
    return value if isinstance(value, str) else ""


# --- Names and lines --------------------------------------------------------------------------------------------------


def clean_id(text: str) -> str:
    """Return the id that *text* means: quotes, brackets, case and a missing ``req-`` are forgiven."""
    bare = text.strip().strip("[](){}<>'\"` ").casefold()
    return f"req-{bare}" if _HEX.fullmatch(bare) else bare


def is_id(text: str) -> bool:
    """Whether *text* has the form of an id: what is used as the name of a file must."""
    return _ID.fullmatch(text) is not None


def shortened(text: str, limit: int = 100) -> str:
    """Return *text* on one line in at most *limit* characters and an ellipsis where it was longer (Q20)."""
    line = bare(text)
    return line if len(line) <= limit else line[:limit].rstrip() + "…"
