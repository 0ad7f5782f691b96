"""The dialect of newline-delimited JSON that Claude Code speaks and hollow follows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import MappingProxyType

from agents.events import Dialect, Event, Fact, Init, Output, Result, Said, ToolCall, ToolResult
from agents.loops import digest
from agents.tally import Spend, counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TypeGuard


_ID: Final = 128
"""Characters of an id that are kept; real ones have 30."""


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
    message = raw["message"]
    content, spend = message["content"], _spend(raw, message)
    if isinstance(content, str):
        return Said(content, spend)
    block = content[-1]
    if block["type"] == "tool_use":
        calls = [[each.get("name"), each.get("input")] for each in content if each.get("type") == "tool_use"]
        name, argument = str(block["name"]), _telling(block.get("input"))
        return ToolCall(name, argument, digest=digest(calls), id=_id(block.get("id")), spend=spend)
    # Thinking and whatever else there may be is no word for people.
    return Said(str(block["text"]), spend) if block["type"] == "text" else Output("assistant", spend)


def _spend(raw: Mapping[str, Any], message: Mapping[str, Any]) -> Spend | None:
    used, name = counts(message.get("usage")), _id(message.get("id"))
    # What the harness says in the model's place costs nothing, and a subagent's messages are no turns of the agent.
    turn = not raw.get("parent_tool_use_id") and message.get("model") != "<synthetic>"
    return Spend(name, used, turn) if name or used else None


def _id(value: object) -> str | None:
    text = _text(value)
    return text[:_ID] if text else None


def _telling(arguments: object) -> str:
    values = arguments.values() if isinstance(arguments, Mapping) else ()
    return next((value for value in values if isinstance(value, str)), "")


def _user(raw: Mapping[str, Any]) -> Event:
    content = raw["message"]["content"]
    # The harness itself speaks as the user too, in plain text.
    if isinstance(content, str) or content[-1]["type"] != "tool_result":
        return Output("user")
    last = content[-1]
    answers = [[each.get("content"), each.get("is_error")] for each in content if each.get("type") == "tool_result"]
    return ToolResult(last.get("is_error") is True, digest(answers), _id(last.get("tool_use_id")))


def _is_count(value: object) -> TypeGuard[int]:
    # True is an int to Python.
    return isinstance(value, int) and not isinstance(value, bool)


def _is_amount(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _result(raw: Mapping[str, Any]) -> Event:
    turns, cost, lasted = raw.get("num_turns"), raw.get("total_cost_usd"), raw.get("duration_ms")
    usage: dict[str, int | float] = {**counts(raw.get("usage"))}
    # A cost of nothing is what those say who know no price.
    if _is_amount(cost) and cost:
        usage["cost_usd"] = cost
    return Result(
        text=_text(raw.get("result")) or _errors(raw.get("errors")),
        subtype=_text(raw.get("subtype")) or "success",
        # An API error comes as subtype "success" with is_error true: both must be clean.
        is_error=raw.get("is_error") is True or raw.get("subtype") not in {None, "success"},
        turns=turns if _is_count(turns) else None,
        usage=usage,
        session_id=_text(raw.get("session_id")),
        duration=lasted / 1000 if _is_amount(lasted) else None,
    )


def _errors(told: object) -> str:
    """What a result without a text says instead: a list of sentences."""
    return "\n".join(each for each in told if isinstance(each, str)) if isinstance(told, list) else ""


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
    markers=(b'"hollow"',),
    last=(b'"result"',),
    opening=(b'"init"',),
    counted=(b'"assistant"', b'"tool_result"'),
)


def _output(raw: Mapping[str, Any]) -> Event:
    return Output(json.dumps(raw, ensure_ascii=False))


def _told_result(raw: Mapping[str, Any]) -> Event:
    # Many programs print objects of a type "result"; an agent's says whether it failed, or in which session.
    return _result(raw) if {"is_error", "session_id"} & raw.keys() else _output(raw)


AGENT_JSON: Final = Dialect(
    # What hollow says of its own state is believed of hollow alone.
    readers=MappingProxyType({**STREAM_JSON.readers, ("system", "hollow"): _output}),
    last=STREAM_JSON.last,
    opening=STREAM_JSON.opening,
    counted=STREAM_JSON.counted,
)
"""The dialect of Claude Code itself."""

TEXT_OR_JSON: Final = Dialect(
    readers=MappingProxyType({**AGENT_JSON.readers, ("result", None): _told_result}),
    last=AGENT_JSON.last,
    opening=STREAM_JSON.opening,
    counted=STREAM_JSON.counted,
    plain=True,
)
"""The dialect of any program: text, or the same events where it happens to speak them (T133, T137)."""
