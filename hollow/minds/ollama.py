"""The ollama mind: a local model behind the Ollama HTTP API. The only module that imports ``ollama``."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from essentials.records import dataclass
from hollow.mind import Answer
from hollow.minds import ollama_wire as wire
from hollow.minds.bounded import Overdue, within
from hollow.minds.loop import Failure, Garbled, NoToolSupport, Reply, ToolLoop
from hollow.minds.ollama_wire import Lost
from hollow.tools import toolbox_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hollow.mind import Assignment
    from hollow.stream import Talk

PAUSES: Final = (0.5, 1.0, 2.0)
"""Seconds before each further try after a transport error; a server that is starting up needs about that long."""

BUSY: Final = frozenset({502, 503})
"""Statuses that mean: not now. Every other status means: not this request."""

CONNECT_TIMEOUT: Final = 5.0
"""Seconds to reach the server; only generating takes long."""

MAX_PREDICT: Final = 8192
"""Tokens of one generation at most: a model that repeats itself for ever must end."""

T = TypeVar("T")


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
            server = Server(self._settings, talk.fact)
        except ValueError:
            return Answer(text=no_address(self._settings), subtype="error_during_execution", turns=0)
        with contextlib.closing(server):
            return ToolLoop(server, toolbox_of(assignment, talk), assignment, talk).run()


def no_address(settings: Settings) -> str:
    """Return the sentence for *settings* whose address is none."""
    return f"OLLAMA_HOST is no address: {wire.without_credentials(_address(settings))}."


def _address(settings: Settings) -> str:
    return wire.address(settings.host, os.environ.get("OLLAMA_HOST", ""))


class Server:
    """One kept connection to the server that *settings* name; *fact* says what happens while one waits.

    Raises ValueError where the address is none; nothing is sent before the first call.
    """

    def __init__(self, settings: Settings, fact: Callable[..., None]) -> None:
        from httpx import Timeout
        from ollama import Client

        self._settings = settings
        self._fact = fact
        address = _address(settings)
        self._address = wire.without_credentials(address)
        self._socket: socket.socket | None = None
        self.num_ctx = settings.num_ctx
        # A quarter of the window at most, so that three quarters are left for what was read.
        self.num_predict = min(settings.num_ctx // 4, MAX_PREDICT)
        hooks: dict[str, list[Callable[..., None]]] = {"request": [self._watch]}
        timeout = Timeout(settings.call_timeout, connect=min(CONNECT_TIMEOUT, settings.call_timeout))
        # A proxy of the environment is for the outside; a model on this machine is never behind it.
        trust = not wire.is_local(address)
        self._client: Any = Client(address, timeout=timeout, trust_env=trust, event_hooks=hooks)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def generate(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> Reply:
        """Return the model's next message, within the time one call may take; raises :class:`Failure`."""
        # Temperature 0 and a fixed seed: the same question should be answered alike as far as the server can.
        return self.chat(messages, options={"temperature": 0, "seed": 1}, tools=tools or None)

    def chat(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        options: Mapping[str, Any],
        seconds: float | None = None,
        **more: Any,
    ) -> Reply:
        """Return the answer to *messages* within *seconds* (None: what one call may take), with *more* for the client.

        The context window and the output limit go with every call, beside *options* (W24). Raises :class:`Failure`.
        """
        sent = {"num_ctx": self.num_ctx, "num_predict": self.num_predict, **options}

        def ask() -> Reply:
            """One try."""
            parts = self._client.chat(
                self._settings.model,
                messages,
                stream=True,
                keep_alive=wire.keep_alive(self._settings.keep_alive),
                options=sent,
                **more,
            )
            with contextlib.closing(parts):
                return wire.collected(parts)

        return self._tried(ask, self._seconds(seconds), self._settings.pauses)

    def embed(self, model: str, texts: Sequence[str], num_ctx: int, seconds: float) -> list[list[float]]:
        """Return the vectors of *texts* by *model* with a window of *num_ctx* tokens, within *seconds*.

        One try only: whoever asks has another way. Raises :class:`Failure`.
        """

        def ask() -> list[list[float]]:
            """The one try."""
            given = self._client.embed(
                model, texts, options={"num_ctx": num_ctx}, keep_alive=wire.keep_alive(self._settings.keep_alive)
            )
            return wire.vectors(given.embeddings, len(texts))

        return self._tried(ask, seconds, ())

    def unload(self, seconds: float) -> None:
        """Have the server let go of the model's memory, within *seconds*; raises :class:`Failure`."""
        self._tried(lambda: self._client.generate(self._settings.model, keep_alive=0), seconds, ())

    def _seconds(self, asked: float | None) -> float:
        limit = self._settings.call_timeout
        return limit if asked is None else min(asked, limit)

    def _tried(self, ask: Callable[[], T], seconds: float, pauses: Sequence[float]) -> T:
        """What *ask* gives, tried again after each of *pauses* while it is the connection that fails."""
        # One bound for all tries: a server that comes and goes must not stretch it.
        deadline = time.monotonic() + seconds
        lost = Lost("")
        for pause in (*pauses, None):
            try:
                return self._attempt(ask, deadline - time.monotonic())
            except Overdue:
                raise Failure(f"The model {self._settings.model} did not answer within {seconds:g} s.") from None
            except Lost as why:
                lost = why
            if pause is None or time.monotonic() + pause >= deadline:
                break
            self._fact("mind.retry", reason=str(lost), pause=pause)
            time.sleep(pause)
        if lost.absent:
            raise Failure(f"No Ollama server answers at {self._address}. Start one with: ollama serve")
        raise Failure(f"The connection to the Ollama server at {self._address} failed: {lost}.")

    def _attempt(self, ask: Callable[[], T], seconds: float) -> T:
        def work() -> T:
            """Ask, and translate what went wrong."""
            try:
                return ask()
            except Exception as why:  # noqa: BLE001 - two libraries' worth of classes; each is told apart below
                raise self._meaning(why) from None

        return within(seconds, work, self._hang_up, tick=self._beat, every=self._settings.beat)

    def _meaning(self, why: Exception) -> Exception:
        """Return what the exception *why* of the client means for us."""
        import httpx
        from ollama import ResponseError

        if isinstance(why, (Lost, Failure)):
            return why
        if isinstance(why, ResponseError):
            return self._refusal(str(why.error), why.status_code)
        if isinstance(why, httpx.UnsupportedProtocol):
            return Failure(f"OLLAMA_HOST is no address: {self._address}.")
        absent = isinstance(why, (ConnectionError, httpx.ConnectError, httpx.ConnectTimeout))
        if isinstance(why, httpx.TimeoutException) and not absent:
            return Overdue()
        if absent or isinstance(why, (httpx.HTTPError, OSError)):
            return Lost(str(why) or type(why).__name__, absent=absent)
        # ValueError: no JSON, or JSON that is no chat message. Anything else would be a fault; it is told as one.
        return Failure(f"The server at {self._address} does not speak as Ollama does ({type(why).__name__}).")

    def _refusal(self, error: str, status: int) -> Exception:
        words = " ".join(error.split())[:300]
        if status in BUSY:
            return Lost(f"status {status}: {words}")
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
        self._fact("mind.waiting", seconds=round(passed), model=self._settings.model)

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
