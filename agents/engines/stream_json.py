"""The dialect of newline-delimited JSON that Claude Code speaks and hollow follows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeGuard

from agents.events import Dialect, Event, Fact, Init, Output, Result, Said, ToolCall, ToolResult


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _init(raw: Mapping[str, Any]) -> Event:
    version = _text(raw.get("claude_code_version")) or _text(raw.get("hollow_version"))
    return Init(session_id=_text(raw.get("session_id")), model=_text(raw.get("model")), version=version)


def _fact(raw: Mapping[str, Any]) -> Event:
    facts = {key: value for key, value in raw.items() if key not in {"type", "subtype", "kind", "session_id"}}
    return Fact(kind=str(raw["kind"]), facts=facts)


def _assistant(raw: Mapping[str, Any]) -> Event:
    # One API message comes as one event a block; with several blocks the last one is what happens now.
    content = raw["message"]["content"]
    if isinstance(content, str):
        return Said(content)
    block = content[-1]
    if block["type"] == "tool_use":
        return ToolCall(name=str(block["name"]), argument=_telling(block.get("input")))
    # Thinking and whatever else there may be is no word for people.
    return Said(str(block["text"])) if block["type"] == "text" else Output("assistant")


def _telling(arguments: object) -> str:
    values = arguments.values() if isinstance(arguments, Mapping) else ()
    return next((value for value in values if isinstance(value, str)), "")


def _user(raw: Mapping[str, Any]) -> Event:
    content = raw["message"]["content"]
    # The harness itself speaks as the user too, in plain text.
    if isinstance(content, str) or content[-1]["type"] != "tool_result":
        return Output("user")
    return ToolResult(is_error=content[-1].get("is_error") is True)


def _is_count(value: object) -> TypeGuard[int]:
    # True is an int to Python.
    return isinstance(value, int) and not isinstance(value, bool)


def _result(raw: Mapping[str, Any]) -> Event:
    turns, usage = raw.get("num_turns"), raw.get("usage")
    cost = raw.get("total_cost_usd")
    counts = usage.items() if isinstance(usage, Mapping) else ()
    facts: dict[str, int | float] = {key: value for key, value in counts if _is_count(value)}
    if isinstance(cost, int | float) and math.isfinite(cost) and cost:
        facts["total_cost_usd"] = cost
    return Result(
        text=_text(raw.get("result")) or "",
        subtype=_text(raw.get("subtype")) or "success",
        # An API error comes as subtype "success" with is_error true: both must be clean.
        is_error=raw.get("is_error") is True or raw.get("subtype") not in {None, "success"},
        turns=turns if _is_count(turns) else None,
        usage=facts,
        session_id=_text(raw.get("session_id")),
    )


STREAM_JSON: Final = Dialect(
    readers=MappingProxyType(
        {
            # The seed's own form and the real one (D15, T133).
            ("init", None): _init,
            ("system", "init"): _init,
            ("system", "hollow"): _fact,
            ("assistant", None): _assistant,
            ("user", None): _user,
            ("result", None): _result,
        }
    ),
    # Key order and spacing differ between versions, so the value alone is looked for, never a prefix of the line.
    markers=(b'"result"', b'"hollow"'),
    opening=(b'"init"',),
)


def _output(raw: Mapping[str, Any]) -> Event:
    return Output(json.dumps(raw, ensure_ascii=False))


def _told_result(raw: Mapping[str, Any]) -> Event:
    # Many programs print objects of a type "result"; an agent's says whether it failed, or in which session.
    return _result(raw) if {"is_error", "session_id"} & raw.keys() else _output(raw)


TEXT_OR_JSON: Final = Dialect(
    # What hollow says of its own state is believed of hollow alone.
    readers=MappingProxyType({**STREAM_JSON.readers, ("result", None): _told_result, ("system", "hollow"): _output}),
    markers=(b'"result"',),
    opening=STREAM_JSON.opening,
    plain=True,
)
"""The dialect of any program: text, or the same events where it happens to speak them (T133, T137)."""
