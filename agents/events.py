"""From the agent's bytes to values: `decode` a line, `reduce` what is known; a stranger's output cannot raise."""

from __future__ import annotations

import json
from types import MappingProxyType

from agents.tally import Tally
from essentials import records
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Final

    from agents.tally import Spend

# A line above this is kept on disk and counted, never parsed: memory stays bounded (real result lines reach 12 MB).
PARSE_LIMIT: Final = 16 * 1024 * 1024
_HEAD: Final = 200
_NAME: Final = 128
"""Characters of an id or a name that may reach state and ledger; real ones have 36."""


@dataclass(frozen=True, slots=True)
class Init:
    """The agent says who it is."""

    session_id: str | None = None
    model: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """The agent said something for people."""

    text: str
    spend: Spend | None = None
    """What the message has used, where it tells."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The agent called a tool."""

    name: str
    argument: str
    """The most telling argument, for a status line."""
    digest: str = ""
    """Digest of name and arguments (:func:`agents.loops.digest`); empty where nobody made one."""
    id: str | None = None
    """What its answer will refer to."""
    spend: Spend | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool answered."""

    is_error: bool = False
    digest: str = ""
    """Digest of the answer; empty where nobody made one."""
    id: str | None = None
    """Id of the call that is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The agent says that it is done."""

    text: str = ""
    subtype: str = "success"
    is_error: bool = False
    turns: int | None = None
    """Turns of the model; a success of none is a command that the agent did not know."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    """Numbers by name: those of :data:`agents.budget.TOKENS` and ``cost_usd``."""
    session_id: str | None = None
    duration: float | None = None
    """Seconds, as the agent counts them."""


@dataclass(frozen=True, slots=True)
class Fact:
    """The agent's own state changed (``system/hollow``); copied to the ledger when its kind is known there."""

    kind: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Output:
    """A line that is no event of the dialect, or one that needs no interpretation."""

    text: str
    spend: Spend | None = None


@dataclass(frozen=True, slots=True)
class Garbage:
    """A line that could not be read."""

    head: bytes
    why: str


@dataclass(frozen=True, slots=True)
class Unread:
    """Lines that came faster than any agent thinks: recorded and counted, but not read."""

    size: int
    """Bytes of the piece that holds them."""


Event = Init | Said | ToolCall | ToolResult | Result | Fact | Output | Garbage | Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one engine's lines are to be read."""

    readers: Mapping[tuple[str, str | None], Callable[[Mapping[str, Any]], Event]]
    """(type, subtype) to reader; a subtype of None stands for any."""
    markers: tuple[bytes, ...] = ()
    """A line without any of these needs no decoding to know how the run stands; it is counted. All others are heard."""
    last: tuple[bytes, ...] = ()
    """Markers of results, of which the last one alone counts: in a flood the others may be passed over."""
    opening: tuple[bytes, ...] = ()
    """Markers of what stands at the beginning: looked for in the first mebibyte only, because looking costs."""
    counted: tuple[bytes, ...] = ()
    """Markers of what usage and loops are told from: looked for as long as the agent is not a flood."""
    plain: bool = False
    """Whether a line that is no event is the program's answer in text, and its exit code the result."""


PLAIN: Final = Dialect(readers=MappingProxyType({}), markers=(), plain=True)
"""The dialect of a program that prints nothing but text."""


def decode(line: bytes, dialect: Dialect) -> Event:
    """The event of one *line* (without its newline) in *dialect*; never raises, whatever the bytes are (T135)."""
    if len(line) > PARSE_LIMIT:
        return Garbage(line[:_HEAD], f"line of {len(line)} bytes")
    if not dialect.readers or (dialect.plain and not line.lstrip().startswith(b"{")):
        return Output(line.decode("utf-8", "replace"))
    event = _event(line, dialect)
    misread = dialect.plain and isinstance(event, Garbage)
    return Output(line.decode("utf-8", "replace")) if misread else event


def _event(line: bytes, dialect: Dialect) -> Event:
    try:
        # A bad byte costs a character, not the event (P16); and nothing but UTF-8 is guessed from how a line begins.
        raw = json.loads(line.decode("utf-8", "replace").removeprefix("\ufeff"))
        kind, subtype = raw["type"], raw.get("subtype")
        reader = dialect.readers.get((kind, subtype)) or dialect.readers.get((kind, None))
        return reader(raw) if reader else Output(str(kind))
    # RecursionError: "[" a hundred thousand times. MemoryError is left alone: it is the machine's.
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as why:
        return Garbage(line[:_HEAD], f"{type(why).__name__}: {why}"[:_HEAD])


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the stream has told so far."""

    session_id: str | None = None
    model: str | None = None
    version: str | None = None
    result: Result | None = None
    in_flight: str | None = None
    """Name of the tool whose answer is awaited: such a silence is not the agent's."""
    said: str = ""
    """Last thing worth showing on a status line."""
    tally: Tally = field(default_factory=Tally)
    """What its messages say they have used; :func:`agents.budget.usage` puts it together with the result's word."""
    unread: int = 0
    """Bytes of pieces that were not read line by line: what was used may be more."""
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()


_SAID: Final = 400
"""Characters of what was said last; more than is shown, so that a secret in it can be known by its beginning."""
_MAX_FACTS: Final = 200
_TELLING: Final = ("goal.", "suffering.", "lesson.", "capability.", "request.", "cycle.")
"""How the kinds of the facts begin that are kept; the rest is chatter, of which a long cycle has much."""
_MAX_NOTES: Final = 20
_MAX_COUNTS: Final = 16
_LARGEST_COUNT: Final = 2**53
_HEAVIEST_FACT: Final = 16_000
"""Characters of one fact."""


def reduce(seen: Progress, event: Event) -> Progress:
    """What is known after *event*: the first session id wins (T133), the last result wins."""
    handler = _REDUCERS.get(type(event))
    seen = handler(seen, event) if handler else seen
    spend: Spend | None = getattr(event, "spend", None)
    return records.replace(seen, tally=seen.tally.plus(spend)) if spend else seen


def _init(seen: Progress, event: Init) -> Progress:
    seen = _session(seen, event.session_id)
    # A name is for people, so a part of it will do; a part of an id would be another id.
    return records.replace(
        seen,
        model=seen.model or (event.model or "")[:_NAME] or None,
        version=seen.version or (event.version or "")[:_NAME] or None,
    )


def _session(seen: Progress, announced: str | None) -> Progress:
    if not announced or announced == seen.session_id:
        return seen
    if len(announced) > _NAME:
        return _note(seen, f"a session id of {len(announced)} characters was ignored")
    if seen.session_id:
        return _note(seen, f"a second session id was announced and ignored: {announced[:64]}")
    return records.replace(seen, session_id=announced)


def _said(seen: Progress, event: Said) -> Progress:
    return records.replace(seen, in_flight=None, said=event.text[:_SAID])


def _call(seen: Progress, event: ToolCall) -> Progress:
    name = event.name[:_NAME]
    return records.replace(seen, in_flight=name, said=f"{name}({event.argument})"[:_SAID])


def _answered(seen: Progress, _: ToolResult) -> Progress:
    return records.replace(seen, in_flight=None)


def _result(seen: Progress, event: Result) -> Progress:
    seen = seen if seen.session_id else _session(seen, event.session_id)
    # Counts reach the ledger, where a line has to stay short: of real ones there are four.
    usage = dict(list(_short(event.usage))[:_MAX_COUNTS])
    session = (event.session_id or "")[:_NAME] or None
    result = records.replace(event, usage=usage, subtype=event.subtype[:_NAME], session_id=session)
    return records.replace(seen, result=result, in_flight=None)


def _short(usage: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The entries of *usage* that are a name and a number that JSON readers everywhere can hold."""
    for name, count in usage.items():
        if isinstance(count, int | float) and abs(count) < _LARGEST_COUNT and len(str(name)) <= _NAME:
            yield str(name), count


def _unread(seen: Progress, event: Unread) -> Progress:
    return records.replace(seen, unread=seen.unread + event.size)


def _fact(seen: Progress, event: Fact) -> Progress:
    # Their size is bounded as well as their number: two hundred lines of the parse limit would be gigabytes.
    if not event.kind.startswith(_TELLING) or len(event.kind) > _NAME or _weight(event.facts) > _HEAVIEST_FACT:
        return seen
    # Of too many the oldest goes: how a cycle ended is said last.
    return records.replace(seen, facts=(*seen.facts, event)[-_MAX_FACTS:])


def _weight(value: Any) -> int:
    """Characters of *value* as text; without end where it is nested too deeply to be written."""
    try:
        return len(repr(value))
    except RecursionError:
        return _HEAVIEST_FACT + 1


def _note(seen: Progress, text: str) -> Progress:
    if len(seen.notes) >= _MAX_NOTES or text in seen.notes:
        return seen
    return records.replace(seen, notes=(*seen.notes, text))


_REDUCERS: Final[Mapping[type, Callable[[Progress, Any], Progress]]] = MappingProxyType(
    {
        Init: _init,
        Said: _said,
        ToolCall: _call,
        ToolResult: _answered,
        Result: _result,
        Fact: _fact,
        Unread: _unread,
    }
)
