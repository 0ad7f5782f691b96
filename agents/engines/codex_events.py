"""The dialect of ``codex exec --json``: threads, turns and items."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from agents.events import Dialect, Event, Init, Output, Result, Said, ToolCall, ToolResult
from agents.loops import digest
from agents.tally import Spend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final


_WORDS: Final = frozenset({"agent_message", "reasoning", "error", "todo_list"})
"""Types of items that are no use of a tool."""
_LABELS: Final = ("command", "query", "tool", "path")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _thread(raw: Mapping[str, Any]) -> Event:
    # The thread's id is the session: Codex chooses it and says it first.
    return Init(session_id=_text(raw.get("thread_id")) or None)


def _started(raw: Mapping[str, Any]) -> Event:
    item = raw["item"]
    if item["type"] in _WORDS:
        return Output(str(item["type"]))
    asked = {key: value for key, value in item.items() if key not in {"id", "status", "aggregated_output", "exit_code"}}
    name, known = str(item["type"]), _text(item.get("id"))
    # Requests to the model are not told. Every use of a tool answers one, so that is what counts as a turn.
    return ToolCall(name, _label(item), digest=digest(asked), id=known or None, spend=Spend(known or None))


def _label(item: Mapping[str, Any]) -> str:
    """The most telling part of the tool call *item*."""
    changes = item.get("changes")
    parts = [item, *(changes if isinstance(changes, list) else [])]
    found = (_text(part.get(key)) for part in parts if isinstance(part, Mapping) for key in _LABELS)
    return next(filter(None, found), "")


def _completed(raw: Mapping[str, Any]) -> Event:
    item = raw["item"]
    kind = item["type"]
    if kind == "agent_message":
        return Said(str(item["text"]))
    if kind in _WORDS:
        # An item of type error is a warning; what ends a run comes as turn.failed.
        return Output(_text(item.get("message")) or str(kind))
    told = {key: value for key, value in item.items() if key != "id"}
    return ToolResult(item.get("status") == "failed", digest(told), _text(item.get("id")) or None)


def _done(raw: Mapping[str, Any]) -> Event:
    # The words themselves were an item before; the file of the last message holds them for the report.
    return Result(usage=_usage(raw.get("usage")))


def _usage(told: object) -> dict[str, int]:
    """Tokens under the names that do not overlap; here cached ones are a part of the input."""
    given = told if isinstance(told, Mapping) else {}
    counts = {name: value for name, value in given.items() if isinstance(value, int) and not isinstance(value, bool)}
    cached, written = counts.get("cached_input_tokens", 0), counts.get("cache_write_input_tokens", 0)
    return {
        "input_tokens": max(0, counts.get("input_tokens", 0) - cached - written),
        "output_tokens": counts.get("output_tokens", 0),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    }


def _failed(raw: Mapping[str, Any]) -> Event:
    error = raw.get("error")
    said = _text(error.get("message")) if isinstance(error, Mapping) else ""
    return Result(text=said, subtype="error_during_execution", is_error=True)


def _notice(raw: Mapping[str, Any]) -> Event:
    # It also announces every attempt to reach the endpoint again, so it is no end.
    return Output(_text(raw.get("message")) or "error")


CODEX_JSON: Final = Dialect(
    readers=MappingProxyType({
        ("thread.started", None): _thread,
        ("item.started", None): _started,
        ("item.completed", None): _completed,
        ("turn.completed", None): _done,
        ("turn.failed", None): _failed,
        ("error", None): _notice,
    }),
    last=(b'"turn.completed"', b'"turn.failed"'),
    opening=(b'"thread.started"',),
    counted=(b'"item.started"', b'"item.completed"'),
)  # fmt: skip
