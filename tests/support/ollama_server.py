"""A stand-in for an Ollama server: a real HTTP server on loopback that plays scripted turns and keeps what it was asked.

with OllamaServer(turns=[Turn(calls=[("Grep", {"pattern": "x"})]), "The report."]) as server:
    …  OLLAMA_HOST=server.url  …
assert server.chats[0]["options"]["num_ctx"] == 32768

A cycle's questions are told apart by their JSON schema: ``answers`` maps a purpose to a text, an object or a function of
the request, and is asked when the turns are used up. ``fail`` makes the next requests go wrong.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MODEL = "qwen3.5:9b"
EMBEDDING_MODEL = "nomic-embed-text"
DIMENSIONS = 64

# What only the schema of one purpose asks for; the first that fits counts.
_TELLING = (
    ("existence", "suffering_assessment"), ("plan", "steps"), ("fact", "accurate"), ("semantic", "lesson"),
    ("evaluate", "accomplished"), ("chat", "reply"),
)  # fmt: skip


def purpose_of(body: Mapping[str, Any]) -> str:
    """What a chat is for, by the JSON schema in its ``format``; empty where it has none that is known."""
    schema = body.get("format")
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    return next((purpose for purpose, name in _TELLING if name in properties), "")


def agent_of(body: Mapping[str, Any]) -> str:
    """Who asks, by the words with which every prompt begins; empty where it does not say."""
    content = body["messages"][0]["content"] if body.get("messages") else ""
    found = re.match(r"You are (\w+)", content)
    return found[1] if found else ""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one POST to /api/chat is answered with. A plain string means ``Turn(text=…)``."""

    text: str = ""
    thinking: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    """Tool calls: name and arguments."""
    status: int = 200
    """Another status answers with *error* as the server's words."""
    error: str = ""
    """With status 200: an error inside the stream, after *text*."""
    delay: float = 0.0
    """Seconds before the first byte."""
    drip: float = 0.0
    """Seconds between single bytes; the turn then never ends by itself."""
    drop: bool = False
    """Whether the connection is reset after *text*, before the answer is done."""
    unfinished: bool = False
    """Whether the stream ends properly but without a part that says done."""
    raw: bytes | None = None
    """Sent as the body instead of anything else."""
    prompt_tokens: int = 100
    output_tokens: int = 10
    done_reason: str = "stop"
    pieces: int = 3
    """Parts that a streamed text comes in."""


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    method: str
    path: str
    body: Any


@dataclass
class OllamaServer:
    """The server; runs while entered. *turns* are played in order, one a chat; after the last comes a status 500."""

    turns: Sequence[Turn | str | Callable[[dict[str, Any]], Turn | str]] = ()
    models: Sequence[str] = (MODEL,)
    knows_tools: bool = True
    """If not, a chat with tools is refused as Ollama does, and no turn is used up."""
    version: str = "0.99.0"
    requests: list[Request] = field(default_factory=list)
    answers: Mapping[str, Any] = field(default_factory=dict)
    """Purpose to what a chat for it is answered with, once the turns are used up: a Turn, a text, an object (sent as
    JSON), or a function of the request that gives one of these. The key "" answers what fits none."""
    loaded: set[str] = field(default_factory=set)
    """Models in memory, as /api/ps lists them."""
    mishaps: list[Turn] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.stopping = threading.Event()
        self._left = list(self.turns)
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
        """Address to use as OLLAMA_HOST."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def chats(self) -> list[dict[str, Any]]:
        """Bodies of the chat requests so far."""
        return [request.body for request in self.requests if request.path == "/api/chat"]

    def purposes(self) -> list[str]:
        """What the chats so far were for, in order."""
        return [purpose_of(body) for body in self.chats]

    def embeddings(self, texts: Sequence[str]) -> Any:
        """The vectors of *texts*; a test of odd ones gives its own."""
        return [embedding(text) for text in texts]

    def fail(self, mishap: Turn, times: int = 1) -> None:
        """Answer the next *times* chats with *mishap*, whatever they ask; no turn is used up."""
        with self._lock:
            self.mishaps += [mishap] * times

    def next_turn(self, body: dict[str, Any]) -> Turn:
        """Return the turn that answers *body*."""
        with self._lock:
            if self.mishaps:
                return self.mishaps.pop(0)
            answer = self._left.pop(0) if self._left else self._by_purpose(body)
        answer = answer(body) if callable(answer) else answer
        if isinstance(answer, Turn):
            return answer
        return Turn(text=answer if isinstance(answer, str) else json.dumps(answer))

    def _by_purpose(self, body: dict[str, Any]) -> Any:
        answer = self.answers.get(purpose_of(body), self.answers.get(""))
        return Turn(status=500, error="the script has no more turns") if answer is None else answer


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    owner: OllamaServer

    def __init__(self, *args: Any) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is not worth a traceback."""

    def hang_up(self) -> None:
        """Wake every thread that waits for a next request on a kept connection."""
        for request in list(self._open):
            try:
                request.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, *args: Any) -> None:
        """Say nothing: stderr belongs to the program under test."""

    def do_HEAD(self) -> None:
        self._json({})

    def do_GET(self) -> None:
        owner = self.server.owner
        owner.requests.append(Request("GET", self.path, None))
        listed = [
            {"name": m, "model": m, "size": 1, "digest": hashlib.sha256(m.encode()).hexdigest()} for m in owner.models
        ]
        running = [{"name": m, "model": m, "size": 1} for m in sorted(owner.loaded)]
        answers = {
            "/api/tags": {"models": listed}, "/api/version": {"version": owner.version}, "/api/ps": {"models": running},
        }  # fmt: skip
        if self.path in answers:
            self._json(answers[self.path])
        elif self.path == "/":
            self._body(200, b"Ollama is running", "text/plain")
        else:
            self._body(404, b"404 page not found", "text/plain")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        self.server.owner.requests.append(Request("POST", self.path, body))
        known = {
            "/api/chat": self._chat, "/api/show": self._show, "/api/embed": self._embed, "/api/generate": self._generate,
        }  # fmt: skip
        answer = known.get(self.path)
        if answer is None:
            self._body(404, b"404 page not found", "text/plain")
        elif body.get("model") not in self.server.owner.models:
            self._json({"error": f"model '{body.get('model')}' not found"}, 404)
        else:
            answer(body)

    def _show(self, body: dict[str, Any]) -> None:
        capabilities = ["completion", *(["tools"] if self.server.owner.knows_tools else [])]
        self._json({"capabilities": capabilities, "model_info": {"qwen.context_length": 262144}, "details": {}})

    def _embed(self, body: dict[str, Any]) -> None:
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        self._json({"model": body["model"], "embeddings": self.server.owner.embeddings(texts)})

    def _generate(self, body: dict[str, Any]) -> None:
        """Without a prompt the model is loaded, or, with keep_alive 0, let go."""
        unloads = body.get("keep_alive") in (0, "0", "0s")
        (self.server.owner.loaded.discard if unloads else self.server.owner.loaded.add)(body["model"])
        reason = "unload" if unloads else "load"
        self._json({"model": body["model"], "response": "", "done": True, "done_reason": reason})

    def _chat(self, body: dict[str, Any]) -> None:
        owner = self.server.owner
        if body.get("tools") and not owner.knows_tools:
            self._json({"error": f"registry.ollama.ai/library/{body['model']} does not support tools"}, 400)
            return
        owner.loaded.add(body["model"])
        turn = owner.next_turn(body)
        owner.stopping.wait(turn.delay)
        if turn.raw is not None:
            self._body(turn.status, turn.raw, "application/x-ndjson")
        elif turn.status != 200:
            self._json({"error": turn.error}, turn.status)
        elif turn.drip:
            self._drip(turn)
        elif body.get("stream", True):
            self._stream(turn, body["model"])
        else:
            self._json(_whole(turn, body["model"]))

    def _stream(self, turn: Turn, model: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in _parts(turn, model):
            self._chunk(json.dumps(part).encode() + b"\n")
        if turn.drop:
            # Linger 0: closing sends a reset, as a server that was killed does.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _drip(self, turn: Turn) -> None:
        """One byte at a time, never a whole line: no read times out, no line ever ends."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while not self.server.owner.stopping.wait(turn.drip):
            self._chunk(b" ")

    def _json(self, value: Any, status: int = 200) -> None:
        self._body(status, json.dumps(value).encode(), "application/json")

    def _body(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def embedding(text: str) -> list[float]:
    """The vector of *text*: its words, hashed into a few dimensions, so that like texts have like vectors."""
    vector = [0.0] * DIMENSIONS
    # nomic's own prefixes tell a query from a document; to this stand-in they are the same.
    for word in re.findall(r"\w+", re.sub(r"^search_(query|document): ", "", text.lower())) or ["nothing"]:
        vector[hashlib.sha256(word.encode()).digest()[0] % DIMENSIONS] += 1.0
    length = sum(number * number for number in vector) ** 0.5
    return [number / length for number in vector]


def _parts(turn: Turn, model: str) -> list[dict[str, Any]]:
    """The NDJSON parts of a streamed turn, in the order in which Ollama sends them."""
    step = max(1, -(-len(turn.text) // max(1, turn.pieces)))
    pieces = [turn.text[start : start + step] for start in range(0, len(turn.text), step)]
    messages: list[dict[str, Any]] = [{"content": "", "thinking": turn.thinking}] if turn.thinking else []
    messages += [{"content": piece} for piece in pieces]
    if turn.calls:
        messages.append({"content": "", "tool_calls": _calls(turn)})
    parts = [{"model": model, "message": {"role": "assistant", **message}, "done": False} for message in messages]
    if turn.error:
        return [*parts, {"error": turn.error}]
    return parts if turn.drop or turn.unfinished else [*parts, {**_end(turn, model), "message": _said("")}]


def _whole(turn: Turn, model: str) -> dict[str, Any]:
    extras = {"thinking": turn.thinking} if turn.thinking else {}
    message = {**_said(turn.text), **extras, **({"tool_calls": _calls(turn)} if turn.calls else {})}
    return {**_end(turn, model), "message": message}


def _said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _calls(turn: Turn) -> list[dict[str, Any]]:
    return [{"function": {"name": name, "arguments": arguments}} for name, arguments in turn.calls]


def _end(turn: Turn, model: str) -> dict[str, Any]:
    counts = {"prompt_eval_count": turn.prompt_tokens, "eval_count": turn.output_tokens}
    return {"model": model, "done": True, "done_reason": turn.done_reason, **counts}
