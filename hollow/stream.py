"""The agent's voice: one JSON object a line on stdout, flushed at once."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO, Any

    from hollow.answer import Answer


class Talk:
    """Writes the events of one cycle (``system/init``, ``assistant``, ``user``, ``system/hollow``, ``result``).

    *out* is a binary stream, *session_id* stands in every event, *model* names who speaks. The shapes are those that
    the supervisor's ``claude`` dialect reads too, so one decoder serves both (design, section 9).
    """

    def __init__(self, out: IO[bytes], *, session_id: str, model: str) -> None:
        self._out = out
        self._session_id = session_id
        self._model = model
        self._calls = 0
        # A resumed run speaks in the same session; by this its messages differ from those before.
        self._start = os.urandom(6).hex()
        self._generations = 0
        self._usage: Mapping[str, int] | None = None

    def generation(self, usage: Mapping[str, int]) -> None:
        """Begin a new message: what is said from here on belongs to one generation of the model, which took *usage*.

        Every event of a message carries its id and usage, so that whoever adds up counts each id once.
        """
        self._generations += 1
        self._usage = dict(usage)

    def _write(self, event: Mapping[str, Any]) -> None:
        line = json.dumps({**event, "session_id": self._session_id}, ensure_ascii=False)
        # A lone surrogate (an undecodable file name) is not encodable; a replaced character beats a lost event.
        self._out.write(line.encode("utf-8", "backslashreplace") + b"\n")
        # At once: the watchdog takes silence for a dead agent.
        self._out.flush()

    def init(self, **facts: Any) -> None:
        """Say who speaks, where and with which tools; the first event of a cycle."""
        self._write({"type": "system", "subtype": "init", "model": self._model, **facts})

    def say(self, text: str) -> None:
        """Say *text* as the agent."""
        self._assistant({"type": "text", "text": text})

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Announce a tool call; returns the id that :meth:`outcome` refers to."""
        self._calls += 1
        call_id = f"call_{self._calls}"
        self._assistant({"type": "tool_use", "id": call_id, "name": name, "input": dict(arguments)})
        return call_id

    def outcome(self, call_id: str, content: str, *, is_error: bool = False) -> None:
        """Say what the tool call *call_id* gave."""
        block = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}
        self._write({"type": "user", "message": {"role": "user", "content": [block]}})

    def fact(self, kind: str, **facts: Any) -> None:
        """Say a typed fact about the agent's own state (``system/hollow``); the supervisor copies it to the ledger."""
        # Ours last: a fact is made of an agent's words too, and none of them may make another event of it.
        self._write({**facts, "type": "system", "subtype": "hollow", "kind": kind})

    def result(self, answer: Answer, duration_ms: int) -> None:
        """Say how the cycle ended; the last event."""
        usage = {"input_tokens": answer.usage.input_tokens, "output_tokens": answer.usage.output_tokens}
        self._write(
            {
                "type": "result",
                "subtype": answer.subtype,
                "is_error": answer.is_error,
                "result": answer.text,
                "num_turns": answer.turns,
                "duration_ms": duration_ms,
                "total_cost_usd": 0,
                "usage": usage,
            }
        )

    def _assistant(self, block: Mapping[str, Any]) -> None:
        message: dict[str, Any] = {
            "id": f"msg_{self._start}_{self._generations}",
            "role": "assistant",
            "model": self._model,
            "content": [block],
        }
        if self._usage is not None:
            message["usage"] = self._usage
        self._write({"type": "assistant", "message": message})
