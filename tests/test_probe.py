"""Is an Ollama there, and which mind follows: real servers on loopback, honest, silent, slow and strange ones."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from agents.probe import DEFAULT_HOST, Choice, Ollama, ask, choose, url_of
from tests.support.ollama_server import OllamaServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.mark.parametrize(
    ("given", "url"),
    [
        (None, DEFAULT_HOST),
        ("", DEFAULT_HOST),
        ("  ", DEFAULT_HOST),
        ("example.org", "http://example.org:11434"),
        ("example.org:8080", "http://example.org:8080"),
        (" 10.0.0.7:80 ", "http://10.0.0.7:80"),
        (":8080", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("http://example.org", "http://example.org:80"),
        ("https://example.org", "https://example.org:443"),
        ("https://example.org:8443", "https://example.org:8443"),
        ("http://example.org:8080/", "http://example.org:8080"),
        ("https://example.org/ollama/", "https://example.org:443/ollama"),
        ("example.org/ollama", "http://example.org:11434/ollama"),
        ("http://user:pass@example.org", "http://example.org:80"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("::1", "http://[::1]:11434"),
        ("::", "http://[::1]:11434"),
        ("http://[::1", "http://[::1]:80"),
        ("example.org:port", "http://example.org:11434"),
        ("example.org:99999", "http://example.org:11434"),
        ("example.org:0", "http://example.org:11434"),
        ("example.org:", "http://example.org:11434"),
        ("example.org:" + "9" * 5000, "http://example.org:11434"),
        ("http://", "http://127.0.0.1:80"),
    ],
)
def test_the_address_follows_the_rules_of_its_variable(given: str | None, url: str) -> None:
    assert url_of({} if given is None else {"OLLAMA_HOST": given}) == url


@contextlib.contextmanager
def serving(answer: Callable[[socket.socket, threading.Event], None]) -> Iterator[str]:
    """A server that accepts one connection after the other and gives each to *answer*; its address."""
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listening.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    connection.recv(4096)
                    answer(connection, stop)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            stop.set()
            thread.join(10)


def saying(body: bytes, status: str = "200 OK") -> Callable[[socket.socket, threading.Event], None]:
    """A server's answer with *body*."""
    return lambda connection, _: connection.sendall(
        b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)
    )


def test_a_server_says_which_models_it_has() -> None:
    with OllamaServer(models=["qwen3.5:9b", "tiny:latest"]) as server:
        said = ask(server.url, patience=20)
        prefixed = ask(f"{server.url}/nothing/here", patience=20)
    assert said == Ollama(server.url, reachable=True, models=("qwen3.5:9b", "tiny:latest"))
    assert said.has("qwen3.5:9b")
    assert said.has("tiny")
    assert not said.has("qwen3.5")
    assert not said.has("")
    assert not prefixed.reachable


def test_the_path_of_an_address_leads_to_the_server_behind_it() -> None:
    heard: list[bytes] = []

    def answer(connection: socket.socket, stop: threading.Event) -> None:
        saying(b'{"models":[{"name":"m"}]}')(connection, stop)

    def listen(connection: socket.socket, stop: threading.Event) -> None:
        heard.append(b"asked")
        answer(connection, stop)

    with serving(listen) as url:
        assert ask(f"{url}/ollama", patience=20).models == ("m",)
    assert heard


STRANGE = {
    "another program": saying(b"<html>hello</html>"),
    "nothing": saying(b""),
    "a list": saying(b"[]"),
    "null": saying(b"null"),
    "a number": saying(b"5"),
    "no models": saying(b"{}"),
    "models of another kind": saying(b'{"models":5}'),
    "models without names": saying(b'{"models":[{}]}'),
    "models that are texts": saying(b'{"models":["m"]}'),
    "no UTF-8": saying(b'{"models":"\xff"}'),
    "deep nesting": saying(b"[" * 100_000),
    "a long number": saying(b'{"models":' + b"9" * 5000 + b"}"),
    "not found": saying(b'{"models":[]}', "404 Not Found"),
    "an error": saying(b'{"error":"x"}', "500 Internal Server Error"),
    "elsewhere": lambda connection, _: connection.sendall(b"HTTP/1.1 301 Moved\r\nLocation: http://example.org/\r\nContent-Length: 0\r\n\r\n"),
    "no HTTP": lambda connection, _: connection.sendall(b"220 mail.example.org ESMTP\r\n"),
    "a cut answer": lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"),
    "a hang-up": lambda connection, _: connection.close(),
}  # fmt: skip


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE.keys())
def test_whatever_else_listens_there_is_no_ollama(answer: Callable[[socket.socket, threading.Event], None]) -> None:
    with serving(answer) as url:
        assert ask(url, patience=20) == Ollama(url, reachable=False, models=ask(url, patience=20).models)
        assert not ask(url, patience=20).reachable


def test_a_server_without_any_model_is_one_all_the_same() -> None:
    for body in (b'{"models":[]}', b'{"models":null}'):
        with serving(saying(body)) as url:
            assert ask(url, patience=20) == Ollama(url, reachable=True)


def drip(connection: socket.socket, stop: threading.Event) -> None:
    """One byte at a time, for ever: every single one comes within any timeout of a socket."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n")
    while not stop.wait(0.05):
        connection.sendall(b" ")


def drip_the_head(connection: socket.socket, stop: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not stop.wait(0.05):
        connection.sendall(b"x")


SLOW = {"silent": lambda _, stop: stop.wait(60), "drip": drip, "drip in the head": drip_the_head}


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW.keys())
def test_a_server_that_takes_longer_counts_as_absent(
    answer: Callable[[socket.socket, threading.Event], None],
) -> None:
    """The start of a run must not hang on a server that does not say hello in time."""
    with serving(answer) as url:
        began = time.monotonic()
        assert ask(url, patience=0.3) == Ollama(url, reachable=False)
        assert time.monotonic() - began < 20


def test_a_port_where_nobody_listens_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    assert ask(f"http://127.0.0.1:{port}", patience=20) == Ollama(f"http://127.0.0.1:{port}", reachable=False)


@pytest.mark.parametrize(
    "url",
    ["http://[::1", "http://127.0.0.1:99999", "http://a b:1", "http://" + "x" * 300 + ":1", "https://127.0.0.1:9"],
)
def test_an_address_that_is_none_is_no_server(url: str) -> None:
    assert ask(url, patience=20) == Ollama(url, reachable=False)


HERE = "http://127.0.0.1:1"
GOOD = Ollama(HERE, reachable=True, models=("m:latest",))
LACKS = Ollama(HERE, reachable=True, models=("other:1b",))
GONE = Ollama(HERE, reachable=False)


@pytest.mark.parametrize(
    ("wanted", "server", "mind", "told"),
    [
        ("auto", GOOD, "ollama", "m at http://127.0.0.1:1"),
        ("auto", LACKS, "reflex", "ollama pull m"),
        ("auto", GONE, "reflex", "ollama serve"),
        ("auto", None, "reflex", "no model is used"),
        ("ollama", GOOD, "ollama", "m at http://127.0.0.1:1"),
        ("ollama", LACKS, "ollama", "m at http://127.0.0.1:1"),
        ("ollama", GONE, "ollama", "m at http://127.0.0.1:1"),
        ("ollama", None, "ollama", "mind ollama: m"),
        ("reflex", GOOD, "reflex", "as asked for"),
        ("reflex", None, "reflex", "as asked for"),
    ],
)
def test_the_mind_follows_the_setting_and_what_is_there(
    wanted: str, server: Ollama | None, mind: str, told: str
) -> None:
    """What was asked for by name is tried; the default falls back and says what to type."""
    choice = choose(wanted, "m", server)
    assert choice == Choice(mind, "m" if mind == "ollama" else None, choice.why)
    assert told in choice.why
