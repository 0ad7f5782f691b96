"""A stand-in for the Messages API: a real HTTP server on loopback that plays scripted turns to Claude Code.

with MessagesServer(turns=[Turn(calls=[("Read", {"file_path": "/w/a"})]), "The report."]) as server:
    …  ANTHROPIC_BASE_URL=server.url  …
assert server.results()[0].startswith("1\\talpha")

The turn follows from the number of the assistant's messages in the request, so that a repeated request and a resumed
session meet the turn that they stand at. A request without tools is a side call (a title, a probe) and costs no turn.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.engines.loopback import ModelServer, Request, Turn, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What the program itself puts into the mouth of the assistant when it takes up a session that was cut off.
_PUT_IN = "No response requested."
ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
}  # fmt: skip


class MessagesServer(ModelServer):
    """``POST /v1/messages``, streamed or whole."""

    @property
    def chats(self) -> list[dict[str, Any]]:
        """Bodies of the requests for a turn, side calls left out."""
        return [each.body for each in self.requests if _is_turn(each)]

    @property
    def tools(self) -> list[str]:
        """Names of the tools that the last request offered to the model."""
        return sorted(tool["name"] for tool in self.chats[-1]["tools"])

    def results(self) -> list[str]:
        """Answers of tools, in order, as the last request gave them to the model."""
        blocks = [block for message in self.chats[-1]["messages"] for block in _blocks(message)]
        return [_text(block.get("content")) for block in blocks if block["type"] == "tool_result"]

    def words(self) -> str:
        """All text of the last request: system prompt, user, results."""
        body = self.chats[-1]
        blocks = [block for message in body["messages"] for block in _blocks(message)]
        return _text(body.get("system")) + "\n".join(
            _text(block.get("text") or block.get("content")) for block in blocks
        )

    def answers(self, request: Request) -> Turn | dict[str, Any]:
        path = request.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            return {"input_tokens": 100}
        if path != "/v1/messages":
            return {"status": 404, **self.failure(Turn(status=404, error=f"no {path} here"))}
        return self.turn(_number(request.body)) if _is_turn(request) else Turn(text="A side remark.")

    def failure(self, turn: Turn) -> Mapping[str, Any]:
        return {"type": "error", "error": {"type": ERRORS.get(turn.status, "api_error"), "message": turn.error}}

    def whole(self, turn: Turn, request: Request) -> Mapping[str, Any]:
        return {**_message(turn, request), "content": list(_content(turn, request)), **_end(turn)}

    def stream(self, turn: Turn, request: Request) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for data in _events(turn, request):
            yield data["type"], data


def _is_turn(request: Request) -> bool:
    return (
        request.path.startswith("/v1/messages")
        and "count_tokens" not in request.path
        and bool(request.body.get("tools"))
    )


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(_text(part.get("text", "")) for part in content)
    return content or ""


def _number(body: Mapping[str, Any]) -> int:
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    return len([each for each in said if _text(each["content"]) != _PUT_IN])


def _message(turn: Turn, request: Request) -> dict[str, Any]:
    usage = {
        "input_tokens": turn.input_tokens,
        "output_tokens": 1,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    name = f"msg_{_number(request.body):04}"
    return {"id": name, "type": "message", "role": "assistant", "model": request.body.get("model", ""), "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip


def _content(turn: Turn, request: Request) -> Iterator[dict[str, Any]]:
    if turn.text:
        yield {"type": "text", "text": turn.text}
    for index, (name, arguments) in enumerate(turn.calls):
        # The id has to be new in the conversation.
        yield {
            "type": "tool_use",
            "id": f"toolu_{_number(request.body):04}_{index}",
            "name": name,
            "input": dict(arguments),
        }


def _end(turn: Turn) -> dict[str, Any]:
    usage = {"input_tokens": turn.input_tokens, "output_tokens": turn.output_tokens}
    return {"stop_reason": "tool_use" if turn.calls else "end_turn", "usage": usage}


def _events(turn: Turn, request: Request) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": _message(turn, request)}
    for index, block in enumerate(_content(turn, request)):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        kind, key = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
        for part in pieces(block["text"] if is_text else json.dumps(block["input"])):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: part}}
        yield {"type": "content_block_stop", "index": index}
    end = _end(turn)
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": end["stop_reason"], "stop_sequence": None},
        "usage": end["usage"],
    }
    yield {"type": "message_stop"}
