"""What an agent said is shown line by line, while it grows and to the end, whatever the lines are."""

from __future__ import annotations

import itertools
import json
import tracemalloc

import pytest

from agents import transcript
from agents.engines.stream_json import STREAM_JSON
from agents.errors import OperatorError
from agents.events import PLAIN
from tests.support.boxes import PATIENCE, abandoned, child, claimed, make_context, until

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def context(tmp_path):
    return make_context(tmp_path)[0]


def event(kind, /, **more):
    return json.dumps({"type": kind, **more}).encode()


def assistant(**block):
    return event("assistant", message={"content": [block]})


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (event("system", subtype="init", model="m", session_id="s"), "◆ session started (m)"),
        (event("system", subtype="init"), "◆ session started (no model)"),
        (assistant(type="text", text="hello\nthere"), "hello\nthere"),
        (assistant(type="tool_use", name="Grep", input={"pattern": "x"}), "→ Grep(x)"),
        (event("user", message={"content": [{"type": "tool_result", "is_error": True}]}), "← error"),
        (event("user", message={"content": [{"type": "tool_result"}]}), None),
        (event("result", subtype="success", result="x"), "◆ done: success"),
        (event("result", subtype="error_max_turns", is_error=True), "◆ failed: error_max_turns"),
        (event("system", subtype="hollow", kind="goal.created"), "◇ goal.created"),
        (b"not json", "not json"), (b"", None), (b"\xff\xfe", "\ufffd\ufffd"), (b"[" * 100_000, "[" * 200),
        (assistant(type="text", text=f"key {SECRET}"), "key [redacted]"),
        (assistant(type="text", text="\x1b]0;title\x07\x1b[2J"), "\\x1b]0;title\\x07\\x1b[2J"),
    ],
)  # fmt: skip
def test_every_kind_of_line_reads_well_and_drives_no_terminal(line, shown):
    assert transcript.render(line + b"\n", STREAM_JSON) == shown


def test_plain_text_is_shown_as_it_is():
    assert transcript.render(b"plain \xc3\xa9 text \x1b[0m\n", PLAIN) == "plain é text \\x1b[0m"


def test_a_finished_stream_is_given_once_with_its_last_half_line(context):
    name = abandoned(context, stream=b"one\ntwo\nhal")
    assert list(transcript.follow(context, name, to_the_end=False)) == [b"one\n", b"two\n", b"hal"]
    assert list(transcript.rendered(context, name, to_the_end=True)) == ["one", "two", "hal"]


@pytest.mark.parametrize("to_the_end", [True, False])
def test_a_run_that_has_said_nothing(context, to_the_end):
    made, owner = claimed(context)
    owner.release()
    if to_the_end:
        assert list(transcript.follow(context, made.meta.run_name, to_the_end=True)) == []
    else:
        with pytest.raises(OperatorError, match="said nothing"):
            list(transcript.follow(context, made.meta.run_name, to_the_end=False))


def grow(context, made, pieces):
    """A supervisor that records *pieces*, each when the one before has been shown, and then ends."""
    stream, shown = context.store.box(made.meta.run_name).stream, context.layout.data / "shown"
    shown.touch()

    def supervise():
        context.store.reserve(made.meta.short_id, made.meta.run_name)
        owner = context.store.claim(made.meta, made.state, {})
        for number, piece in enumerate(pieces):
            until(lambda number=number: shown.stat().st_size >= number, "the reader")
            with stream.open("ab") as file:
                file.write(piece)
        owner.release()

    return supervise, shown


@pytest.mark.parametrize("whole", [True, False])
def test_a_growing_stream_is_followed_from_before_its_first_byte_to_the_end(context, whole):
    """Also before there is a pid, and while the supervisor writes a line in pieces: none is shown in halves."""
    from tests.support.boxes import planned

    made = planned(context)
    pieces = [b"one\n", b"tw", b"o\nthr", b"ee", b"\n", b"rest"]
    supervise, shown = grow(context, made, pieces)
    seen = []
    with child(supervise):
        until(context.store.box(made.meta.run_name).state.exists, "the box")
        # The reader does not say when it has seen a half line, so those are waved through at once.
        shown.write_bytes(b"." * 5)
        for line in transcript.follow(context, made.meta.run_name, to_the_end=True, whole=whole):
            seen.append(line)
            shown.write_bytes(b"." * 10)
    assert seen == [b"one\n", b"two\n", b"three\n", b"rest"]
    assert PATIENCE > 1


@pytest.mark.parametrize("length", [64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 5_000_000])
def test_a_huge_line_is_cut_and_the_next_is_whole(context, length):
    """P15: its rest is passed over, unless all is wanted."""
    text = b"x" * length
    name = abandoned(context, stream=b"before\n" + text + b"\nafter\n")
    before, cut, after = transcript.follow(context, name, to_the_end=False)
    assert (before, after) == (b"before\n", b"after\n")
    assert text.startswith(cut.rstrip(b"\n"))
    assert len(cut) <= 64 * 1024
    every = b"".join(transcript.follow(context, name, to_the_end=False, whole=True))
    assert every == b"before\n" + text + b"\nafter\n"


def test_a_huge_line_that_grows_is_one_line(context):
    """P15: its pieces come at different times; what follows its beginning is never taken for another line."""
    made, owner = claimed(context)
    name = made.meta.run_name
    stream = context.store.box(name).stream
    stream.write_bytes(b"x" * 100_000)
    lines = transcript.follow(context, name, to_the_end=True)
    first = next(lines)
    with stream.open("ab") as file:
        file.write(b"x" * 30_000)
        file.flush()
        file.write(b"\nnext\n")
    assert next(lines) == b"next\n"
    assert first == b"x" * 64 * 1024
    owner.release()
    assert list(lines) == []


def test_a_huge_line_costs_no_memory(context):
    """P14, P15: fifty megabytes without a line's end."""
    name = abandoned(context)
    with context.store.box(name).stream.open("wb") as file:
        file.truncate(50_000_000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in transcript.rendered(context, name, to_the_end=False)) <= 1
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_following_ends_with_the_supervisor_however_it_ends(context):
    """A killed supervisor writes no end; the lock says that nobody will."""
    made, owner = claimed(context)
    context.store.box(made.meta.run_name).stream.write_bytes(b"one\n")
    lines = transcript.follow(context, made.meta.run_name, to_the_end=True)
    assert list(itertools.islice(lines, 1)) == [b"one\n"]
    owner.release()
    assert list(lines) == []
