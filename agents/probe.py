"""Ask an Ollama server, within a second, whether it is there and which models it has."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from urllib.parse import urlsplit

from essentials.patterns import late
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    import http.client
    from collections.abc import Mapping
    from typing import Final

MODEL: Final = "qwen3.5:9b"
"""The model that hollow asks for where nothing else is set."""
DEFAULT_HOST: Final = "http://127.0.0.1:11434"
PATIENCE: Final = 1.0
"""Seconds: a server that takes longer to say hello counts as absent for the default mind (issue 2, part 7)."""
_PORT: Final = 11434
_PORTS: Final = 65536
_PORT_DIGITS: Final = 5
_PLACE: Final = late(r"(\[[^\]]*\]|[^:]*)(?::([^:]*))?")
# What a server listens on when it listens on every address is no address to call.
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - it is replaced, not bound
_LIMIT: Final = 4 * 1024 * 1024
_CHUNK: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ollama:
    """What a server said."""

    url: str
    reachable: bool
    models: tuple[str, ...] = ()

    def has(self, model: str) -> bool:
        """Whether *model* is there; a name without a tag means its ``latest``."""
        return model in self.models or f"{model}:latest" in self.models


@dataclass(frozen=True, slots=True)
class Choice:
    """Which mind a hollow run gets, and why."""

    mind: str
    model: str | None
    why: str
    """One sentence, with what to type where something is missing."""


def url_of(environ: Mapping[str, str]) -> str:
    """The server's address by the rules of ``OLLAMA_HOST``: scheme and port may be missing, 0.0.0.0 means here."""
    given = environ.get("OLLAMA_HOST", "").strip()
    if not given:
        return DEFAULT_HOST
    scheme, full, rest = given.rpartition("://")
    # Only a bare host gets Ollama's own port; a full URL gets that of its scheme.
    usual = {"http": 80, "https": 443}.get(scheme, _PORT) if full else _PORT
    place, slash, path = rest.partition("/")
    host, port = _host_and_port(place.rpartition("@")[2])
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme or 'http'}://{shown}:{port or usual}{slash}{path}".rstrip("/")


def _host_and_port(place: str) -> tuple[str, int | None]:
    """Host and port of ``host:port``, either of which may be missing; an IPv6 address may do without brackets."""
    match = _PLACE.fullmatch(place)
    host, port = match.groups() if match else (place, None)
    host = host.strip("[]") or "127.0.0.1"
    number = int(port) if port and port.isdecimal() and len(port) <= _PORT_DIGITS else None
    return _EVERYWHERE.get(host, host), number if number and number < _PORTS else None


def ask(url: str, patience: float = PATIENCE) -> Ollama:
    """What the server at *url* has, waiting at most *patience* seconds altogether."""
    answers: list[Ollama] = []
    # In a thread of its own: neither a name server nor an answer that comes byte by byte keeps to a socket's timeout.
    asking = threading.Thread(target=lambda: answers.append(_ask(url, patience)), daemon=True)
    asking.start()
    asking.join(patience)
    return answers[0] if answers else Ollama(url, reachable=False)


def _ask(url: str, patience: float) -> Ollama:
    # Here, because every command imports this module and few of them ask.
    import http.client

    try:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        with contextlib.closing(kind(parts.hostname or "127.0.0.1", parts.port, timeout=patience)) as connection:
            connection.request("GET", f"{parts.path}/api/tags")
            answer = connection.getresponse()
            body = json.loads(_read(answer, time.monotonic() + patience))
            # A server without any model says null in some versions; one without the key is something else.
            models = tuple(str(each["name"]) for each in body["models"] or ())
            return Ollama(url, reachable=answer.status == http.client.OK, models=models)
    # Whatever else listens on that port and whatever it says: it is no Ollama.
    except (OSError, ValueError, LookupError, TypeError, RecursionError, http.client.HTTPException):
        return Ollama(url, reachable=False)


def _read(answer: http.client.HTTPResponse, deadline: float) -> bytes:
    """The body, given up at *deadline*, so that no thread is left behind with a server that never ends."""
    body = bytearray()
    while (part := answer.read1(_CHUNK)) and len(body) < _LIMIT and time.monotonic() < deadline:
        body += part
    return bytes(body)


def is_here(url: str) -> bool:
    """Whether the server at *url* is on this machine by its address: a stranger's memory is not ours to free."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or _LOOPBACK.fullmatch(host) is not None


_LOOPBACK: Final = late(r"127(?:\.[0-9]{1,3}){3}")


def unload(url: str, model: str, patience: float = PATIENCE) -> bool:
    """Ask the server at *url* to let go of *model*, waiting at most *patience* seconds; returns whether it agreed.

    A server elsewhere is not asked: others may be using the model there.
    """
    import http.client

    if not is_here(url):
        return False
    parts = urlsplit(url)
    words = json.dumps({"model": model, "keep_alive": 0})
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    try:
        with contextlib.closing(kind(parts.hostname or "127.0.0.1", parts.port, timeout=patience)) as connection:
            connection.request("POST", f"{parts.path}/api/generate", words, {"Content-Type": "application/json"})
            return connection.getresponse().status == http.client.OK
    except (OSError, ValueError, http.client.HTTPException):
        return False


def choose(wanted: str, model: str, server: Ollama | None) -> Choice:
    """The mind for the setting *wanted* (auto, ollama, reflex), given what the *server* said (None: not asked)."""
    if wanted == "ollama":
        at = f" at {server.url}" if server else ""
        return Choice("ollama", model, f"mind ollama: {model}{at}")
    if wanted == "reflex" or server is None:
        return Choice("reflex", None, "mind reflex: no model is used, as asked for")
    if not server.reachable:
        return Choice("reflex", None, f"mind reflex: no Ollama answers at {server.url} (ollama serve)")
    if not server.has(model):
        return Choice("reflex", None, f"mind reflex: Ollama has no {model} (ollama pull {model})")
    return Choice("ollama", model, f"mind ollama: {model} at {server.url}")
