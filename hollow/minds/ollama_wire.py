"""What goes over the wire to an Ollama server and back, as values: addresses, durations, streamed parts."""

from __future__ import annotations

import math
from urllib.parse import urlsplit

from hollow.minds.loop import Reply
from hollow.parsing import Call, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

DEFAULT_HOST: Final = "http://127.0.0.1:11434"
"""Where Ollama listens unless it is told otherwise."""

MAX_REPLY: Final = 2_000_000
"""Characters of one generation that are kept, against a server that ignores ``num_predict``."""

_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0"})  # noqa: S104 - an address to call, not to bind


class Lost(Exception):  # noqa: N818 - it is retried, then becomes a Failure
    """The connection failed; the message says how. *absent* is whether nobody listens there."""

    def __init__(self, message: str, *, absent: bool = False) -> None:
        super().__init__(message)
        self.absent = absent


def collected(parts: Iterable[Any]) -> Reply:
    """Return the reply that the stream *parts* adds up to; raises :class:`Lost` if it ends before it is done."""
    text: list[str] = []
    thinking: list[str] = []
    calls: list[Call] = []
    size = 0
    last = None
    # Read on after the last part: only a response that was read to its end leaves the connection fit for the next one.
    for part in parts:
        text.append(part.message.content or "")
        thinking.append(part.message.thinking or "")
        calls += [Call(c.function.name, plain(c.function.arguments)) for c in part.message.tool_calls or ()]
        size += len(text[-1]) + len(thinking[-1])
        last = part if part.done else last
        if size > MAX_REPLY:
            break
    if last is None and size <= MAX_REPLY:
        raise Lost("the answer ended in the middle")
    prompt_tokens, output_tokens, cut = _ending(last)
    return Reply(
        text="".join(text),
        thinking="".join(thinking),
        calls=tuple(calls),
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        cut=cut,
    )


def _ending(last: Any) -> tuple[int, int, bool]:
    """Tokens read, tokens written and whether the output was cut, by the *last* part; None where we hung up before."""
    if last is None:
        return 0, 0, True
    return last.prompt_eval_count or 0, last.eval_count or 0, last.done_reason == "length"


def vectors(given: Any, count: int) -> list[list[float]]:
    """Return the *count* embeddings in *given*; raises ValueError where there is one that means nothing.

    A vector of zeros is as near to everything as to nothing; kept, it would spoil every search after it (W23).
    """
    found = [[float(number) for number in vector] for vector in given]
    sizes = {len(vector) for vector in found}
    sound = all(any(vector) and all(map(math.isfinite, vector)) for vector in found)
    if len(found) != count or len(sizes) > 1 or not sound:
        raise ValueError("the server gave embeddings that are none")
    return found


def keep_alive(words: str) -> str | float:
    """Return *words* as the server wants them: a bare number is a number of seconds, not a duration."""
    try:
        return float(words)
    except ValueError:
        return words


def address(host: str, environment: str) -> str:
    """Return the server's address from *host*, else from *environment* (``OLLAMA_HOST``), else the default."""
    given = (host or environment).strip() or DEFAULT_HOST
    return given if "://" in given else f"http://{given}"


def without_credentials(address: str) -> str:
    """Return *address* as it may be shown."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def is_local(address: str) -> bool:
    """Whether *address* is on this machine; raises ValueError where it is no address."""
    return (urlsplit(address).hostname or "") in _LOCAL
