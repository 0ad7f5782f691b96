"""The messages of a model conversation as values, and how they are kept within a context window."""

from __future__ import annotations

import json
import math

from essentials.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Final

    from hollow.parsing import Call

PER_MESSAGE: Final = 8
"""Tokens that a chat template spends on a message beside its content."""

FIRST_GUESS: Final = 0.33
"""Tokens a byte before the server has counted once; English is about 0.25, code 0.3 to 0.4."""

_KEPT_OF_SAID: Final = 200
"""Characters kept of something the agent said long ago."""

_LEAST_CUT: Final = 400
"""Bytes below which the newest result is not cut: less would say nothing."""


class TooLong(Exception):  # noqa: N818 - it says what is the matter
    """Even without any tool result the conversation does not fit; *tokens* is what it would need."""

    def __init__(self, tokens: int) -> None:
        super().__init__(tokens)
        self.tokens = tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message."""

    role: str
    """system, user, assistant or tool."""
    content: str
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    tool: str = ""
    """For a tool result: the tool's name."""
    key: str = ""
    """For a tool result: what identifies the call, so that it may be repeated once the result is gone."""
    native: bool = True
    """Whether the model knows tool calls; if not, a result is told as the user's words."""
    pinned: bool = False
    """Whether it must never be shortened (system prompt, task)."""

    @property
    def is_result(self) -> bool:
        """Whether it is a tool result that is still whole."""
        return bool(self.key)

    def wire(self) -> dict[str, Any]:
        """Return it in the shape of Ollama's chat endpoint."""
        if self.tool and not self.native:
            return {"role": "user", "content": f"Result of {self.tool}:\n{self.content}"}
        shape: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool:
            # The client library knows no call ids: results are told apart by order and name.
            shape["tool_name"] = self.tool
        if self.thinking:
            shape["thinking"] = self.thinking
        if self.calls:
            shape["tool_calls"] = [{"function": {"name": c.name, "arguments": c.arguments}} for c in self.calls]
        return shape

    @property
    def size(self) -> int:
        """Bytes on the wire, roughly."""
        return len(json.dumps(self.wire(), ensure_ascii=False).encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Meter:
    """Estimates tokens from bytes; learns from what the server counted."""

    per_byte: float = FIRST_GUESS

    def tokens(self, sizes: Sequence[int], extra: int = 0) -> int:
        """Return the estimated tokens of messages of *sizes* bytes and of *extra* bytes beside them."""
        return math.ceil((sum(sizes) + extra) * self.per_byte) + PER_MESSAGE * len(sizes)

    def learned(self, sizes: Sequence[int], extra: int, counted: int) -> Meter:
        """Return the meter after the server *counted* the tokens of messages of *sizes* bytes and *extra* bytes.

        It only ever learns upwards: a server that had the beginning cached counts too few.
        """
        measured = (counted - PER_MESSAGE * len(sizes)) / max(1, sum(sizes) + extra)
        return Meter(min(1.0, max(self.per_byte, measured)))


class _Draft:
    """Messages in the course of being shortened, with their sizes kept beside them."""

    def __init__(self, messages: Sequence[Message], budget: int, meter: Meter, extra: int) -> None:
        self.messages = list(messages)
        self._sizes = [message.size for message in messages]
        self._budget, self._meter, self._extra = budget, meter, extra

    @property
    def tokens(self) -> int:
        """Tokens that all messages take, by the meter's estimate."""
        return self._meter.tokens(self._sizes, self._extra)

    @property
    def over(self) -> int:
        """Bytes too many."""
        return math.ceil((self.tokens - self._budget) / self._meter.per_byte)

    def shorten(self, indices: range, how: Callable[[Message], Message]) -> None:
        """Apply *how* to the messages at *indices* in turn, until the whole fits."""
        for index in indices:
            if self.over <= 0:
                return
            if not self.messages[index].pinned:
                self.messages[index] = how(self.messages[index])
                self._sizes[index] = self.messages[index].size


def fit(messages: Sequence[Message], budget: int, meter: Meter, extra: int = 0) -> list[Message]:
    """Return *messages* shortened, visibly and oldest first, so that they need at most *budget* tokens.

    First old thinking goes, then the oldest tool results, then what the agent said and wrote long ago, then the end of
    the newest results. Pinned messages are never touched (W24); raises :class:`TooLong` if that is not enough.
    """
    draft = _Draft(messages, budget, meter, extra)
    # What came after the agent's last words is what it has not seen yet: it is shortened last.
    last = max((i for i, m in enumerate(messages) if m.role == "assistant"), default=len(messages))
    old, new = range(last), range(last + 1, len(messages))
    for how in (_without_thinking, _without_result, _without_words, _without_arguments):
        draft.shorten(old, how)
    draft.shorten(new, lambda message: _cut(message, draft.over))
    # Cut results may still not fit if there are many; a note is better than no answer at all.
    draft.shorten(new, _without_result)
    if draft.over > 0:
        raise TooLong(draft.tokens)
    return draft.messages


def _without_thinking(message: Message) -> Message:
    return replace(message, thinking="")


def _without_result(message: Message) -> Message:
    if not message.is_result or message.size <= _LEAST_CUT:
        return message
    note = f"[This result of {len(message.content)} characters was dropped to stay within the context window.]"
    return replace(message, content=note, key="")


def _without_words(message: Message) -> Message:
    if message.role != "assistant" or len(message.content) <= _KEPT_OF_SAID:
        return message
    return replace(message, content=f"{message.content[:_KEPT_OF_SAID]} [shortened]")


def _without_arguments(message: Message) -> Message:
    # A file that was written long ago stands in the repository; its text need not stand here as well.
    return replace(message, calls=tuple(replace(call, arguments=_clipped(call.arguments)) for call in message.calls))


def _clipped(arguments: Any) -> Any:
    if not isinstance(arguments, dict):
        return arguments
    long = {key: value for key, value in arguments.items() if isinstance(value, str) and len(value) > _KEPT_OF_SAID}
    return {**arguments, **{key: f"{value[:_KEPT_OF_SAID]} [shortened]" for key, value in long.items()}}


def _cut(message: Message, excess: int) -> Message:
    """Return the tool result *message* without its last *excess* bytes or a few more, marked."""
    if not message.is_result:
        return message
    note = "\n[The rest of this result did not fit the context window; ask for a smaller part.]"
    content = message.content.encode("utf-8", "replace")
    # JSON escapes make a message longer on the wire than its content is: the cut grows in proportion.
    excess = math.ceil(excess * len(content) / max(1, message.size)) + 2 * len(note)
    left = max(_LEAST_CUT, len(content) - excess)
    if left >= len(content):
        return message
    return replace(message, content=content[:left].decode("utf-8", "ignore") + note)
