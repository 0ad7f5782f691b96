"""The ledger's file is read whole from either end, whatever its lines are, and never held whole."""

from __future__ import annotations

import os
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import scroll
from agents.scroll import PAGE, Scroll


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


def seen(path):
    with Scroll(path) as opened:
        return list(opened.forwards()), list(opened.backwards()), opened.end, opened.torn


SIZES = [0, 1, 7, PAGE - 2, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE + 3]


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.sampled_from(SIZES), max_size=6), torn=st.sampled_from(SIZES))
def test_all_lines_are_read_from_either_end(tmp_path_factory, sizes, torn):
    path = tmp_path_factory.mktemp("scroll") / "file"
    lines = [bytes([97 + number]) * size for number, size in enumerate(sizes)]
    path.write_bytes(b"".join(line + b"\n" for line in lines) + b"z" * torn)
    whole = sum(sizes) + len(sizes)
    assert seen(path) == (lines, lines[::-1], whole, torn)
    with Scroll(path) as opened:
        assert b"".join(opened.copied()) == path.read_bytes()[:whole]
        pages = list(opened.pages())
    assert all(page.endswith(b"\n") for page in pages)
    assert b"".join(reversed(pages)) == path.read_bytes()[:whole]


@pytest.mark.parametrize("data", [b"", b"torn", b"\0" * (2 * PAGE)])
def test_what_holds_no_line_is_empty(path, data):
    path.write_bytes(data)
    assert seen(path) == ([], [], 0, len(data))


def test_where_there_is_no_file_there_is_no_line(path):
    assert seen(path) == ([], [], 0, 0)


def test_a_pipe_is_not_waited_for(path):
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        Scroll(path)


def test_what_is_written_or_replaced_later_is_not_seen(path):
    path.write_bytes(b"one\ntwo\n")
    with Scroll(path) as opened:
        with path.open("ab") as file:
            file.write(b"three\n")
        assert list(opened.forwards()) == [b"one", b"two"]
        (path.parent / "new").write_bytes(b"other\n")
        (path.parent / "new").replace(path)
        assert list(opened.backwards()) == [b"two", b"one"]


def test_an_endless_line_is_never_held_and_never_taken_for_an_entry(path):
    """Somebody may have written one: it counts as a line, as none that could be read."""
    with path.open("wb") as file:
        file.write(b'{"seq":1}\n{"seq":2}')
        for _ in range(64):
            file.write(b" " * 2**20)
        file.write(b'\n{"seq":3}\n')
    tracemalloc.start()
    forwards, backwards, _, _ = seen(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * scroll._HELD
    for lines in (forwards, backwards[::-1]):
        assert (lines[0], lines[2]) == (b'{"seq":1}', b'{"seq":3}')
        assert len(lines) == 3
        assert b"\0" in lines[1]


def test_a_long_file_is_read_in_little_memory(path):
    with path.open("wb") as file:
        for _ in range(200):
            file.write((b"x" * 999 + b"\n") * 200)
    tracemalloc.start()
    with Scroll(path) as opened:
        count = [sum(1 for _ in opened.forwards()), sum(1 for _ in opened.backwards())]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == [40_000, 40_000]
    assert peak < 8 * PAGE, "the file has 40 MB"
