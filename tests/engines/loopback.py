"""What both stand-in model servers share: scripted turns, a log of requests, and a socket on loopback."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One answer of the model. A plain string means ``Turn(text=…)``."""

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """Tool calls: name and arguments."""
    status: int = 200
    """Another status answers with *error* instead."""
    error: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the first byte; a server that stops does not wait."""
    drop: bool = False
    """Whether the connection is reset in the middle of the answer."""
    input_tokens: int = 100
    output_tokens: int = 10


Script = Turn | str
"""What a turn may be written as."""


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]


@dataclass
class ModelServer:
    """A model server; runs while entered. A sequence in place of a turn answers that turn's repetitions in order."""

    turns: Sequence[Script | Sequence[Script]] = ()
    requests: list[Request] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.stopping = threading.Event()
        self._asked: dict[int, int] = {}
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.hang_up()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Address without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def turn(self, number: int) -> Turn:
        """The answer to turn *number*; one that the script does not have is told as a client's error."""
        if number >= len(self.turns):
            return Turn(status=400, error=f"the script has no turn {number}")
        with self._lock:
            again = self._asked.get(number, 0)
            self._asked[number] = again + 1
        turn = self.turns[number]
        if not isinstance(turn, Turn | str):
            turn = turn[min(again, len(turn) - 1)]
        return Turn(text=turn) if isinstance(turn, str) else turn

    def answers(self, request: Request) -> Turn | dict[str, Any]:
        """What *request* is answered with: a turn, or a JSON object at once."""
        raise NotImplementedError

    def stream(self, turn: Turn, request: Request) -> Iterable[tuple[str, Mapping[str, Any]]]:
        """The server-sent events of *turn*: name and data."""
        raise NotImplementedError

    def whole(self, turn: Turn, request: Request) -> Mapping[str, Any]:
        """The answer of *turn* to a request that wants no stream."""
        raise NotImplementedError

    def failure(self, turn: Turn) -> Mapping[str, Any]:
        """The body of a *turn* whose status is an error."""
        raise NotImplementedError


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    owner: ModelServer

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self._open.discard(request)

    def hang_up(self) -> None:
        """End what is still being answered, so that no thread waits for a client that waits for it."""
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: object) -> None:
        """A client that was killed is what these servers are for."""


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """The log is ``requests``."""

    def do_HEAD(self) -> None:
        self._json({})

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._serve(json.loads(data or b"{}"))

    def _serve(self, body: dict[str, Any]) -> None:
        owner = self.server.owner
        request = Request(self.path, body, dict(self.headers))
        owner.requests.append(request)
        answer = owner.answers(request)
        if isinstance(answer, dict):
            self._json(answer, answer.get("status", 200))
            return
        owner.stopping.wait(answer.delay)
        if answer.status != 200:
            self._json(owner.failure(answer), answer.status, answer.headers)
        elif body.get("stream"):
            self._stream(owner.stream(answer, request), drop=answer.drop)
        else:
            self._json(owner.whole(answer, request))

    def _stream(self, events: Iterable[tuple[str, Mapping[str, Any]]], *, drop: bool) -> None:
        self._head(200, {"Content-Type": "text/event-stream"})
        sent = [f"event: {name}\ndata: {json.dumps(data)}\n\n".encode() for name, data in events]
        for each in sent[: len(sent) // 2] if drop else sent:
            self.wfile.write(each)
        if drop:
            # Linger 0: closing sends a reset, as a server that was killed does.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def _json(self, value: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self._head(status, {"Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})})
        if self.command != "HEAD":
            self.wfile.write(data)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        # One answer a connection: the end of a stream is then the end of the connection.
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True


def pieces(text: str, size: int = 4000) -> Iterator[str]:
    """*text* in parts, as a model's words arrive."""
    for start in range(0, len(text), size):
        yield text[start : start + size]
