"""The ollama mind: a local model behind the Ollama HTTP API. The only module that imports ``ollama``."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from hollow.mind import Answer
from hollow.minds.bounded import Overdue, within
from hollow.minds.loop import Failure, Garbled, NoToolSupport, Reply, ToolLoop
from hollow.parsing import Call, plain
from hollow.tools import toolbox_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hollow.mind import Assignment
    from hollow.stream import Talk

DEFAULT_HOST: Final = "http://127.0.0.1:11434"
"""Where Ollama listens unless it is told otherwise."""

PAUSES: Final = (0.5, 1.0, 2.0)
"""Seconds before each further try after a transport error; a server that is starting up needs about that long."""

BUSY: Final = frozenset({502, 503})
"""Statuses that mean: not now. Every other status means: not this request."""

CONNECT_TIMEOUT: Final = 5.0
"""Seconds to reach the server; only generating takes long."""

MAX_PREDICT: Final = 8192
"""Tokens of one generation at most: a model that repeats itself for ever must end."""

MAX_REPLY: Final = 2_000_000
"""Characters of one generation that are kept, against a server that ignores ``num_predict``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the server is asked."""

    model: str = "qwen3.5:9b"
    num_ctx: int = 32768
    """Context window in tokens; sent with every call, because the server's own default may cut silently (W24)."""
    keep_alive: str = "10m"
    """How long the server keeps the model loaded: a duration, seconds, or -1 for ever."""
    call_timeout: float = 600.0
    """Seconds one generation may take, retries included."""
    host: str = ""
    """Address of the server; empty for ``OLLAMA_HOST`` or the usual one."""
    pauses: tuple[float, ...] = PAUSES
    """Seconds between tries; their number is the number of retries."""
    beat: float = 15.0
    """Seconds between signs of life while the model computes."""


class _Lost(Exception):  # noqa: N818 - it is retried, then becomes a Failure
    """The connection failed; the message says how. *absent* is whether nobody listens there."""

    def __init__(self, message: str, *, absent: bool = False) -> None:
        super().__init__(message)
        self.absent = absent


class Ollama:
    """The mind that *settings* describe."""

    name = "ollama"
    acts = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.model: str | None = settings.model

    def answer(self, assignment: Assignment, talk: Talk) -> Answer:
        """Let the model answer *assignment* with tools, every step told on *talk*; failures are error answers."""
        try:
            server = _Server(self._settings, talk)
        except ValueError:
            host = _without_credentials(_address(self._settings.host))
            return Answer(text=f"OLLAMA_HOST is no address: {host}.", subtype="error_during_execution", turns=0)
        with contextlib.closing(server):
            return ToolLoop(server, toolbox_of(assignment, talk), assignment, talk).run()


class _Server:
    """One kept connection to the server."""

    def __init__(self, settings: Settings, talk: Talk) -> None:
        from httpx import Timeout
        from ollama import Client

        self._settings = settings
        self._talk = talk
        address = _address(settings.host)
        self._address = _without_credentials(address)
        self._socket: socket.socket | None = None
        self.num_ctx = settings.num_ctx
        # A quarter of the window at most, so that three quarters are left for what was read.
        self.num_predict = min(settings.num_ctx // 4, MAX_PREDICT)
        # A proxy of the environment is for the outside; a model on this machine is never behind it.
        local = (urlsplit(address).hostname or "") in {"127.0.0.1", "localhost", "::1", "0.0.0.0"}  # noqa: S104 - an address to call, not to bind
        hooks: dict[str, list[Callable[..., None]]] = {"request": [self._watch]}
        timeout = Timeout(settings.call_timeout, connect=min(CONNECT_TIMEOUT, settings.call_timeout))
        self._client: Any = Client(address, timeout=timeout, trust_env=not local, event_hooks=hooks)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def generate(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> Reply:
        """Return the model's next message, within the time one call may take; raises :class:`Failure`."""
        # One bound for all tries: a server that comes and goes must not stretch it.
        deadline = time.monotonic() + self._settings.call_timeout
        lost = _Lost("")
        for pause in (*self._settings.pauses, None):
            try:
                return self._attempt(messages, tools, deadline - time.monotonic())
            except Overdue:
                seconds = self._settings.call_timeout
                raise Failure(f"The model {self._settings.model} did not answer within {seconds:g} s.") from None
            except _Lost as why:
                lost = why
            if pause is None or time.monotonic() + pause >= deadline:
                break
            self._talk.fact("mind.retry", reason=str(lost), pause=pause)
            time.sleep(pause)
        if lost.absent:
            raise Failure(f"No Ollama server answers at {self._address}. Start one with: ollama serve")
        raise Failure(f"The connection to the Ollama server at {self._address} failed: {lost}.")

    def _attempt(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]], seconds: float) -> Reply:
        def work() -> Reply:
            """Ask, and translate what went wrong."""
            try:
                return self._ask(messages, tools)
            except Exception as why:  # noqa: BLE001 - two libraries' worth of classes; each is told apart below
                raise self._meaning(why) from None

        return within(seconds, work, self._hang_up, tick=self._beat, every=self._settings.beat)

    def _ask(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> Reply:
        parts = self._client.chat(
            self._settings.model,
            messages,
            tools=tools or None,
            stream=True,
            keep_alive=_keep_alive(self._settings.keep_alive),
            # Temperature 0 and a fixed seed: the same question should be answered alike as far as the server can.
            options={"num_ctx": self.num_ctx, "num_predict": self.num_predict, "temperature": 0, "seed": 1},
        )
        with contextlib.closing(parts):
            return _collect(parts)

    def _meaning(self, why: Exception) -> Exception:
        """Return what the exception *why* of the client means for us."""
        import httpx
        from ollama import ResponseError

        if isinstance(why, (_Lost, Failure)):
            return why
        if isinstance(why, ResponseError):
            return self._refusal(str(why.error), why.status_code)
        if isinstance(why, httpx.UnsupportedProtocol):
            return Failure(f"OLLAMA_HOST is no address: {self._address}.")
        absent = isinstance(why, (ConnectionError, httpx.ConnectError, httpx.ConnectTimeout))
        if isinstance(why, httpx.TimeoutException) and not absent:
            return Overdue()
        if absent or isinstance(why, (httpx.HTTPError, OSError)):
            return _Lost(str(why) or type(why).__name__, absent=absent)
        # ValueError: no JSON, or JSON that is no chat message. Anything else would be a fault; it is told as one.
        return Failure(f"The server at {self._address} does not speak as Ollama does ({type(why).__name__}).")

    def _refusal(self, error: str, status: int) -> Exception:
        words = " ".join(error.split())[:300]
        if status in BUSY:
            return _Lost(f"status {status}: {words}")
        # The server has no codes for these; its words are all there is to go by.
        if "does not support tools" in error:
            return NoToolSupport(words)
        if "parsing tool call" in error:
            return Garbled(words)
        if status == 404 and "not found" in error:  # noqa: PLR2004 - HTTP's own number
            model = self._settings.model
            return Failure(f"The Ollama server has no model {model}. Get it with: ollama pull {model}")
        return Failure(f"The Ollama server at {self._address} refused: {words or f'status {status}'}.")

    def _beat(self, passed: float) -> None:
        # A model that computes for minutes must not look like a dead agent to the watchdog.
        self._talk.fact("mind.waiting", seconds=round(passed), model=self._settings.model)

    def _watch(self, request: Any) -> None:
        """Have httpx name each socket it opens for *request*: only a shutdown wakes a thread that waits in a read."""
        request.extensions["trace"] = self._note_socket

    def _note_socket(self, event: str, info: dict[str, Any]) -> None:
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._socket = info["return_value"].get_extra_info("socket")

    def _hang_up(self) -> None:
        """Cut the connection; the server stops generating when it notices."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


def _collect(parts: Iterable[Any]) -> Reply:
    """Return the reply that the stream *parts* adds up to; raises :class:`_Lost` if it ends before it is done."""
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
        raise _Lost("the answer ended in the middle")
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


def _keep_alive(words: str) -> str | float:
    """Return *words* as the server wants them: a bare number is a number of seconds, not a duration."""
    try:
        return float(words)
    except ValueError:
        return words


def _address(host: str) -> str:
    """Return the server's address from *host*, the environment, or the default."""
    given = (host or os.environ.get("OLLAMA_HOST", "")).strip() or DEFAULT_HOST
    return given if "://" in given else f"http://{given}"


def _without_credentials(address: str) -> str:
    """Return *address* as it may be shown."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
