from __future__ import annotations

import contextlib
import http.server
import socket
import threading
import time

import pytest

from hollow.confine import Refusal
from hollow.hands.fetching import fetched, plain_text
from hollow.substrate.model import Trouble
from tests.support.hands import CONTACT, do, no_cell, scene

PAGE = (
    b"<html><head><title>Lamps</title><style>wick {}</style></head><body><p>A <b>wick</b> draws &amp; burns oil."
    b"<script>wick()</script><li>Nothing else</body></html>"
)


@pytest.fixture
def stage(tmp_path):
    return scene(tmp_path)


@contextlib.contextmanager
def serving(answer):
    """A page server on loopback; *answer* is given the handler. Yields its address and the paths it was asked for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            with contextlib.suppress(OSError):
                answer(self)

        def log_message(self, *_words):
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def page(body=PAGE, kind="text/html; charset=utf-8", status=200, **headers):
    def answer(handler):
        handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def drip(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/plain")
    handler.end_headers()
    for _ in range(60):
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.05)


@pytest.mark.parametrize(("load", "window"), [(0.16, (CONTACT,)), (0.9, (CONTACT,)), (None, (CONTACT,)), (0.0, ())])
def test_while_it_is_not_earned_nobody_is_called(stage, load, window):
    """T62: a socket that is configured as source sees no connection, whatever else the agent does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/page"
        hands = stage.hands(load, window=window, research=(address,), cell=no_cell)
        assert do(hands, "research_topic", topic="wick").trouble is Trouble.DENIED
        for name, params in (
            ("fs_read", {"path": address}), ("ollama_chat", {"message": address}), ("shell_exec", {"command": address}),
            ("memory_set", {"key": "k", "value": address}), ("invoke_claude", {"description": address}),
        ):  # fmt: skip
            do(hands, name, **params)
        listener.settimeout(0.05)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_the_configured_folders_are_searched(stage):
    hands = stage.hands(window=(CONTACT,), research=("docs",))
    found = do(hands, "research_topic", topic="How does a wick draw oil?").output["found"]
    assert found[0] == {"source": "docs/wick.md:3", "text": "A wick draws oil by capillary action."}
    assert {each["source"].partition(":")[0] for each in found} == {"docs/wick.md"}
    assert do(hands, "research_topic", topic="zeppelin").output["found"] == []


def test_a_configured_page_is_read_as_a_person_would(stage):
    with serving(page()) as (address, asked):
        hands = stage.hands(window=(CONTACT,), research=(f"{address}/lamps", "docs"))
        found = do(hands, "research_topic", topic="wick burns").output["found"]
    assert asked == ["/lamps"]
    assert found[0] == {"source": f"{address}/lamps#2", "text": "A wick draws & burns oil."}
    assert not any("wick()" in each["text"] or "{}" in each["text"] for each in found)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_leads_nowhere(status):
    with serving(page()) as (other, asked), serving(page(b"", status=status, Location=f"{other}/x")) as (address, _):
        with pytest.raises(Refusal, match=f"answered with {status}"):
            fetched(address, (address,))
        assert asked == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (page(kind="application/octet-stream"), "not text"),
        (page(status=404), "404"),
        (lambda handler: handler.wfile.write(b"no http\r\n\r\n"), "cannot be read"),
        (drip, "longer than 0.4 s"),
    ],
)
def test_what_is_no_page_is_a_sentence(answer, why):
    """W8: one that drips a byte at a time does not get more time for it."""
    started = time.monotonic()
    with serving(answer) as (address, _), pytest.raises(Refusal, match=why):
        fetched(address, (address,), 0.4)
    assert time.monotonic() - started < 5


def test_a_page_in_no_known_letters_is_read_as_it_can_be():
    with serving(page(b"a wick \xff", kind="text/plain; charset=klingon")) as (address, _):
        assert fetched(address, (address,)) == "a wick \ufffd"


def test_sources_that_are_left_when_the_time_is_up_are_named(stage):
    """T158: all sources together have the time of one step."""
    with serving(drip) as (address, _):
        hands = stage.hands(window=(CONTACT,), research=(address, "docs"), step_seconds=0.3)
        result = do(hands, "research_topic", topic="wick")
    assert result.trouble is Trouble.HOST
    assert "docs was left out" in result.error


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/other", "file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x"])
def test_only_configured_pages_are_read(address):
    with pytest.raises(Refusal, match="no configured source"):
        fetched(address, ("http://127.0.0.1:9/", "file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x"))


def test_a_source_that_is_away_does_not_spoil_the_others(stage):
    hands = stage.hands(window=(CONTACT,), research=("http://127.0.0.1:9/", "none", "docs"))
    told = do(hands, "research_topic", topic="wick").output
    assert told["found"]
    assert len(told["problems"]) == 2
    alone = stage.hands(window=(CONTACT,), research=("http://127.0.0.1:9/",))
    assert do(alone, "research_topic", topic="wick").trouble is Trouble.HOST


def test_research_without_sources_or_words_is_refused(stage):
    assert do(stage.hands(window=(CONTACT,)), "research_topic", topic="wick").trouble is Trouble.HOST
    assert (
        do(stage.hands(window=(CONTACT,), research=("docs",)), "research_topic", topic=" ? ").trouble is Trouble.USAGE
    )


def test_a_broken_page_is_still_words():
    assert plain_text("<p>one<script>two<p>three</script>four<b>five</p></p>&lt;six&gt;") == "onefourfive\n<six>"
