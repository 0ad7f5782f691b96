"""Ask an Ollama server, within a second, whether it is there and which models it has."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_HOST: Final = "http://127.0.0.1:11434"
PATIENCE: Final = 1.0
"""Seconds: a server that takes longer to say hello counts as absent for the default mind (issue 2, part 7)."""
_PORT: Final = 11434
_LIMIT: Final = 4 * 1024 * 1024


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
    parts = urlsplit(given if "://" in given else f"http://{given}")
    host = parts.hostname or "127.0.0.1"
    host = "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 - it is replaced, not bound
    try:
        port = parts.port
    except ValueError:
        port = None
    # Only a bare host gets Ollama's own port; a full URL gets that of its scheme.
    port = port or ({"http": 80, "https": 443}.get(parts.scheme, _PORT) if "://" in given else _PORT)
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme or 'http'}://{shown}:{port}"


def ask(url: str, patience: float = PATIENCE) -> Ollama:
    """What the server at *url* has, waiting at most *patience* seconds for each word of it."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=patience)
    try:
        connection.request("GET", "/api/tags")
        answer = connection.getresponse()
        body = json.loads(answer.read(_LIMIT))
        models = tuple(str(each.get("name")) for each in body.get("models") or ())
        return Ollama(url, reachable=answer.status == http.client.OK, models=models)
    # Whatever else listens on that port and whatever it says: it is no Ollama.
    except (OSError, ValueError, AttributeError, TypeError, http.client.HTTPException):
        return Ollama(url, reachable=False)
    finally:
        connection.close()


def choose(wanted: str, model: str, server: Ollama | None) -> Choice:
    """The mind for the setting *wanted* (auto, ollama, reflex), given what the *server* said (None: not asked)."""
    if wanted == "reflex" or server is None:
        return Choice("reflex", None, "mind reflex: no model is used, as asked for")
    if wanted == "ollama":
        return Choice("ollama", model, f"mind ollama: {model} at {server.url}")
    if not server.reachable:
        return Choice("reflex", None, f"mind reflex: no Ollama answers at {server.url} (ollama serve)")
    if not server.has(model):
        return Choice("reflex", None, f"mind reflex: Ollama has no {model} (ollama pull {model})")
    return Choice("ollama", model, f"mind ollama: {model} at {server.url}")
