"""A stand-in for the Responses API: a real HTTP server on loopback that plays scripted turns to Codex.

with ResponsesServer(turns=[Turn(calls=[("exec_command", {"cmd": "cat a.txt"})]), "The report."]) as server:
    …  -c model_providers.stand_in.base_url=server.url + "/v1"  …

The turn follows from the number of turns that the request already holds, so that a repeated request and a resumed
session meet the turn that they stand at.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.engines.loopback import ModelServer, Request, Turn, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What the model itself said or called, as the next request gives it back.
_OWN = frozenset({"function_call", "custom_tool_call", "local_shell_call"})


class ResponsesServer(ModelServer):
    """``POST /v1/responses``, streamed."""

    @property
    def chats(self) -> list[dict[str, Any]]:
        """Bodies of the requests for a turn."""
        return [each.body for each in self.requests if each.path.startswith("/v1/responses")]

    @property
    def tools(self) -> list[str]:
        """Names of the tools that the last request offered to the model."""
        return sorted(tool.get("name", tool["type"]) for tool in self.chats[-1]["tools"])

    def results(self) -> list[str]:
        """Answers of tools, in order, as the last request gave them to the model."""
        items = self.chats[-1]["input"]
        return [_text(item["output"]) for item in items if item.get("type", "").endswith("_output")]

    def words(self) -> str:
        """All text of the last request: instructions, user, results."""
        body = self.chats[-1]
        return body.get("instructions", "") + "\n".join(_text(item.get("content")) for item in body["input"])

    def answers(self, request: Request) -> Turn | dict[str, Any]:
        if not request.path.startswith("/v1/responses"):
            return {"status": 404, **self.failure(Turn(status=404, error=f"no {request.path} here"))}
        return self.turn(_number(request.body))

    def failure(self, turn: Turn) -> Mapping[str, Any]:
        return {"error": {"type": "stand_in", "code": None, "message": turn.error}}

    def whole(self, turn: Turn, request: Request) -> Mapping[str, Any]:
        return _response(turn, request, status="completed")

    def stream(self, turn: Turn, request: Request) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for number, data in enumerate(_events(turn, request)):
            yield data["type"], {**data, "sequence_number": number}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(_text(part.get("text", "")) for part in content)
    return content or ""


def _number(body: Mapping[str, Any]) -> int:
    """How many answers of the model the request holds: runs of items that are its own."""
    own = [item.get("role") == "assistant" or item.get("type") in _OWN for item in body["input"]]
    return sum(mine and not before for before, mine in zip([False, *own], own, strict=False))


def _items(turn: Turn, request: Request) -> Iterator[dict[str, Any]]:
    number = _number(request.body)
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        yield {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}
    for index, (name, arguments) in enumerate(turn.calls):
        call = {"id": f"fc_{number}_{index}", "call_id": f"call_{number}_{index}", "name": name, "status": "completed"}
        if list(arguments) == ["input"]:
            yield {"type": "custom_tool_call", **call, "input": arguments["input"]}
        else:
            yield {"type": "function_call", **call, "arguments": json.dumps(arguments)}


def _response(turn: Turn, request: Request, *, status: str) -> dict[str, Any]:
    done = status == "completed"
    usage = {
        "input_tokens": turn.input_tokens, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": turn.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": turn.input_tokens + turn.output_tokens,
    }  # fmt: skip
    return {"id": f"resp_{_number(request.body)}", "object": "response", "status": status, "model": request.body.get("model"),
            "output": list(_items(turn, request)) if done else [], "usage": usage if done else None}  # fmt: skip


def _events(turn: Turn, request: Request) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": _response(turn, request, status="in_progress")}
    for index, item in enumerate(_items(turn, request)):
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, "status": "in_progress", **({"content": []} if "content" in item else {})},
        }
        if item["type"] == "message":
            for part in pieces(turn.text):
                yield {
                    "type": "response.output_text.delta",
                    "output_index": index,
                    "content_index": 0,
                    "item_id": item["id"],
                    "delta": part,
                }
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": _response(turn, request, status="completed")}
