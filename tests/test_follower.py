"""The follower sees what a naive reader of whole lines sees, in bounded memory, however the bytes were cut."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.engines.stream_json import AGENT_JSON, STREAM_JSON
from agents.events import (
    PARSE_LIMIT,
    PLAIN,
    Dialect,
    Fact,
    Garbage,
    Init,
    Output,
    Result,
    Said,
    ToolResult,
    Unread,
    decode,
)
from agents.follower import EFFORT, SIGHT, TAIL, Follower
from tests.support.world import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from agents.events import Event

MARKED = Dialect(
    readers=MappingProxyType({("mark", None): lambda raw: Said(str(raw["n"]))}), markers=(b'"mark"', b"other")
)
"""Reads ``{"type": "mark"}``; everything else needs no reading."""

ODD = [b"\x85", b"\r", b"\x0b", b"\x0c", b"\xe2\x80\xa8", b"\xc2\x85", b"\x1c", b"\0", b"\xff", b"", b" ", b"{", b'"mark"', b"null", b"[]"]  # fmt: skip
lines = st.one_of(
    st.integers(0, 99).map(lambda n: json.dumps({"type": "mark", "n": n}).encode()),
    st.sampled_from(ODD),
    st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")),
)
texts = st.builds(lambda parts, end: b"\n".join(parts) + end, st.lists(lines, max_size=30), st.sampled_from([b"", b"\n"]))  # fmt: skip


def naive(data: bytes) -> list[Event]:
    """The marked events of *data*, read line by line."""
    found = [decode(line, MARKED) for line in data.split(b"\n") if any(marker in line for marker in MARKED.markers)]
    return [event for event in found if isinstance(event, Said)]


def said(events: Iterable[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, Said)]


def lines_in(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


@settings(max_examples=150, deadline=None)
@given(data=texts, cuts=st.lists(st.integers(0, 600), max_size=6))
def test_any_bytes_in_any_pieces_read_as_whole_lines_would(data: bytes, cuts: list[int], tmp_path_factory) -> None:
    r"""T135: lines end at \n alone, none is lost, and marked ones are decoded as if read one by one."""
    path = tmp_path_factory.mktemp("follow") / "stream"
    path.touch()
    follower = Follower(path, MARKED)
    found: list[Event] = []
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in itertools.pairwise(places):
        with path.open("ab") as file:
            file.write(data[start:end])
        found += follower.advance()
        assert follower.lines == data[:end].count(b"\n")
    found += follower.finish()
    assert said(found) == naive(data)
    assert follower.lines == lines_in(data)
    follower.close()


@pytest.mark.parametrize("size", [1, 255 * 1024, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 700 * 1024])
@pytest.mark.parametrize("ended", [True, False])
def test_lines_across_chunks_are_whole(size: int, ended: bool, tmp_path: Path) -> None:
    """A line may be longer than what is read at once, and begin anywhere in it."""
    big = json.dumps({"type": "mark", "n": 1, "pad": "x" * size}).encode()
    small = json.dumps({"type": "mark", "n": 2}).encode()
    data = b"\n".join([small, big, b"noise", big, small]) + (b"\n" if ended else b"")
    (tmp_path / "s").write_bytes(data)
    follower = Follower(tmp_path / "s", MARKED)
    assert said(follower.finish()) == [Said("2"), Said("1"), Said("1"), Said("2")]
    assert follower.lines == 5
    follower.close()


@pytest.mark.parametrize("ended", [True, False])
def test_a_line_above_the_limit_is_counted_and_passed(ended: bool, tmp_path: Path) -> None:
    """P15: it is never parsed; what follows is."""
    huge = b'{"type":"mark","n":0,"pad":"' + b"x" * PARSE_LIMIT + b'"}'
    small = b'{"type":"mark","n":3}'
    (tmp_path / "s").write_bytes(b"\n".join([small, huge, small]) + b"\n" if ended else small + b"\n" + huge)
    follower = Follower(tmp_path / "s", MARKED)
    events = list(follower.finish())
    assert said(events) == [Said("3")] * (2 if ended else 1)
    assert [type(event) for event in events if isinstance(event, Garbage)] == [Garbage]
    assert follower.lines == (3 if ended else 2)
    follower.close()


def test_the_last_line_of_a_piece_is_shown_though_it_is_not_marked(tmp_path: Path) -> None:
    """What stands on the status line is the newest, not the newest that matters."""
    (tmp_path / "s").write_bytes(b'{"type":"a"}\n{"type":"b"}\n{"type":"c"}\n')
    follower = Follower(tmp_path / "s", MARKED)
    assert list(follower.advance()) == [Output("c")]
    follower.close()


def test_it_begins_where_it_is_told_to(tmp_path: Path) -> None:
    """T143: a resumed run's stream is read from where the attempt before it ended."""
    before = b'{"type":"mark","n":1}\n'
    (tmp_path / "s").write_bytes(before + b'{"type":"mark","n":2}\n')
    follower = Follower(tmp_path / "s", MARKED, start=len(before))
    assert list(follower.finish()) == [Said("2")]
    assert follower.lines == 1
    follower.close()


def test_plain_text_has_no_events_but_a_tail(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"one\ntwo\n\xff\n")
    follower = Follower(tmp_path / "s", PLAIN)
    list(follower.finish())
    assert follower.tail() == "one\ntwo\n\ufffd\n"
    follower.close()


def test_the_tail_of_much_text_begins_with_a_whole_line_and_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"".join(b"line %d\n" % number for number in range(20_000)))
    follower = Follower(tmp_path / "s", PLAIN)
    first, second, *_, last = follower.tail().splitlines()
    assert "raw/stream.jsonl" in first
    assert second.startswith("line ")
    assert last == "line 19999"
    assert len(follower.tail()) < TAIL + 200
    follower.close()


@pytest.mark.slow
def test_memory_does_not_follow_the_length_of_a_line(tmp_path: Path) -> None:
    """P15: a line of 100 MB costs a chunk and the parse limit, not 100 MB."""
    path = tmp_path / "s"
    with path.open("wb") as file:
        file.write(b'{"type":"mark","pad":"')
        for _ in range(100):
            file.write(b"x" * 1024 * 1024)
        file.write(b'"}\n{"type":"mark","n":7}\n')
    source = f"""
import resource, sys
sys.path.insert(0, {str(PROJECT)!r})
from tests.test_follower import MARKED, Follower, said
from pathlib import Path
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
follower = Follower(Path({str(path)!r}), MARKED)
print(said(follower.finish())[0].text, follower.lines, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=100)
    text, count, grown = done.stdout.split()
    assert (text, count) == ("7", "2")
    assert int(grown) * 1024 < 3 * PARSE_LIMIT


def test_an_opening_is_looked_for_at_the_beginning_of_what_is_followed_only(tmp_path: Path) -> None:
    """T133: an init in the first mebibyte is heard in the middle of others; one far behind is not worth the search."""
    init = b'{"type":"init","session_id":"%d"}\n'
    noise = b'{"type":"progress"}\n' * 1000
    path = tmp_path / "stream"
    path.write_bytes(noise + init % 1 + noise * 80 + init % 2 + noise)
    follower = Follower(path, STREAM_JSON)
    heard = [event.session_id for event in follower.advance() if isinstance(event, Init)]
    follower.close()
    assert heard == ["1"]
    resumed = Follower(path, STREAM_JSON, start=len(noise) * 81 + len(init % 1))
    heard = [event.session_id for event in resumed.advance() if isinstance(event, Init)]
    resumed.close()
    assert heard == ["2"]


def counted(number: int, size: int = 0) -> bytes:
    """A line that is only counted, of about *size* bytes."""
    return json.dumps(
        {"type": "assistant", "message": {"id": f"m{number}", "content": f"{number}{'x' * size}"}}
    ).encode()


def follow(path: Path, *, rests: int = 0) -> list[Event]:
    """What a live run hears of the file *path* at once, and after *rests* more seconds in which it grew by as much."""
    follower = Follower(path, STREAM_JSON)
    found = list(follower.advance())
    whole = path.read_bytes()
    for _ in range(rests):
        follower.rest()
        with path.open("ab") as file:
            file.write(whole)
        found += follower.advance()
    follower.close()
    return found


def test_every_counted_line_of_a_burst_is_read(tmp_path: Path) -> None:
    """P12: usage and loops are told from all lines, also where several come at once."""
    (tmp_path / "s").write_bytes(b"\n".join(counted(number) for number in range(100)) + b"\n")
    events = follow(tmp_path / "s")
    assert [event.text for event in events if isinstance(event, Said)] == [str(number) for number in range(100)]
    assert not [event for event in events if isinstance(event, Unread)]


@pytest.mark.parametrize("size", [0, 3_000, 100_000])
def test_a_flood_is_read_as_far_as_the_effort_goes_and_says_where_it_ends(size: int, tmp_path: Path) -> None:
    """P14: what is passed over is named, so that nobody takes the rest for all there was; what decides is still heard."""
    count = 80 * EFFORT // (size + 100)
    text = b"\n".join([*(counted(number, size) for number in range(count)), b'{"type":"result","result":"done"}'])
    (tmp_path / "s").write_bytes(text + b"\n")
    events = follow(tmp_path / "s", rests=1)
    read = [event for event in events if isinstance(event, Said)]
    # Of every chunk the last line is shown, whatever it is.
    assert sum(len(event.text) for event in read) < 2 * EFFORT + 2 * len(text) // (256 * 1024) * (size + 100) + size
    assert sum(event.size for event in events if isinstance(event, Unread)) > len(text)
    assert [event.text for event in events if isinstance(event, Result)] == ["done", "done"]


def results(events: Iterable[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Result)]


def result_line(text: str, size: int = 0) -> bytes:
    """A result that says *text*, in a line of about *size* bytes."""
    return json.dumps({"pad": "x" * size, "type": "result", "result": text}).encode() + b"\n"


NOISE = json.dumps({"type": "progress", "pad": "n" * 80}).encode() + b"\n"


def noise(size: int) -> bytes:
    """Lines that say nothing, of *size* bytes at least."""
    return NOISE * -(-size // len(NOISE))


@pytest.mark.parametrize("size", [0, 300_000, 3 * SIGHT], ids=["short", "longer than a chunk", "longer than sight"])
@pytest.mark.parametrize("torn", [b"", b'{"type":"pro'], ids=["whole", "torn"])
def test_the_last_result_of_what_a_flood_says_counts(size: int, torn: bytes, tmp_path: Path) -> None:
    """P14: it is looked for from behind where it was passed over; an object of that name that is none does not count."""
    none = b'{"type":"progress","of":"result"}\n'
    flood = [result_line("first"), noise(2 * SIGHT), result_line("last", size), noise(SIGHT), none, noise(2 * SIGHT)]
    data = b"".join(flood) + torn
    path = tmp_path / "s"
    path.write_bytes(noise(SIGHT) + data)
    follower = Follower(path, AGENT_JSON)
    live = [*follower.advance()]
    assert results(live) == []
    follower.rest()
    live += follower.advance()
    assert results(live) == []
    assert results(follower.recall()) == ["last"]
    assert results(follower.recall()) == []
    assert results(follower.finish()) == []
    assert follower.lines == lines_in(path.read_bytes())
    follower.close()


def test_a_result_behind_what_was_passed_over_is_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(noise(SIGHT) + result_line("passed") + noise(3 * SIGHT) + result_line("seen") + noise(SIGHT // 2))
    follower = Follower(path, AGENT_JSON)
    live = [*follower.advance()]
    follower.rest()
    live += follower.advance()
    assert results(live) == ["seen"]
    assert results(follower.finish()) == []
    follower.close()


@pytest.mark.parametrize("pieces", [1, 3, 7])
def test_a_line_that_never_ends_is_not_lost_in_a_flood(pieces: int, tmp_path: Path) -> None:
    """P15: a result of many megabytes that comes over some seconds is read whole, once it has ended."""
    path = tmp_path / "s"
    data = noise(SIGHT) + result_line("long", 5 * SIGHT) + noise(3 * SIGHT)
    follower = Follower(path, AGENT_JSON)
    events: list[Event] = []
    for start in range(0, len(data), len(data) // pieces):
        with path.open("ab") as file:
            file.write(data[start : start + len(data) // pieces])
        follower.rest()
        events += follower.advance()
    events += follower.finish()
    assert results(events) == ["long"]
    assert not [event for event in events if isinstance(event, Garbage)]
    assert follower.lines == data.count(b"\n")
    follower.close()


FLOOD = {
    "little": noise(100),
    "much": noise(SIGHT),
    "result": result_line("r"),
    "long result": result_line("R", 400_000),
    "nothing": b"\n",
    "no text": b"\xff\n",
    "torn": b"[" * 9,
}


@settings(max_examples=25, deadline=None)
@given(words=st.lists(st.sampled_from(sorted(FLOOD)), max_size=12), cuts=st.lists(st.floats(0, 1), max_size=4))
def test_a_flood_in_any_pieces_ends_with_the_same(words: list[str], cuts: list[float], tmp_path_factory) -> None:
    """P14: however fast it came, the last result and the number of lines are those that a patient reader finds."""
    path = tmp_path_factory.mktemp("flood") / "s"
    data = b"".join(FLOOD[word] for word in words)
    path.touch()
    live = Follower(path, AGENT_JSON)
    heard: list[Event] = []
    places = sorted({int(cut * len(data)) for cut in cuts} | {0, len(data)})
    for number, (start, end) in enumerate(itertools.pairwise(places)):
        with path.open("ab") as file:
            file.write(data[start:end])
        if number % 2:
            live.rest()
        heard += live.advance()
    live.rest()
    heard += itertools.chain(live.advance(), live.finish())
    patient = Follower(path, AGENT_JSON)
    assert results(heard)[-1:] == results(patient.finish())[-1:]
    assert live.lines == patient.lines == lines_in(data)
    live.close()
    patient.close()


def test_where_every_marked_line_has_to_be_heard_nothing_is_passed_over(tmp_path: Path) -> None:
    """What hollow says of its own state reaches the ledger, however much it says."""
    fact = b'{"type":"system","subtype":"hollow","kind":"goal.set","n":%d}\n'
    path = tmp_path / "s"
    path.write_bytes(b"".join(fact % number + noise(SIGHT) for number in range(6)))
    follower = Follower(path, STREAM_JSON)
    assert [event.facts["n"] for event in follower.advance() if isinstance(event, Fact)] == list(range(6))
    follower.close()


def test_after_a_second_the_next_burst_is_read_again(tmp_path: Path) -> None:
    lines_of_a_burst = 2 * EFFORT // 3 // (256 + len(counted(10)))
    (tmp_path / "s").write_bytes(b"\n".join(counted(number) for number in range(lines_of_a_burst)) + b"\n")
    events = follow(tmp_path / "s", rests=5)
    assert len([event for event in events if isinstance(event, Said)]) == 6 * lines_of_a_burst
    assert not [event for event in events if isinstance(event, Unread)]


def test_what_is_passed_over_stands_between_what_was_read(tmp_path: Path) -> None:
    """P12: a repetition is told from neighbours; a gap is no neighbour."""
    answer = {"type": "user", "message": {"content": [{"type": "tool_result", "content": "y" * 300_000}]}}
    text = [counted(1), json.dumps(answer).encode(), counted(2), counted(3)]
    (tmp_path / "s").write_bytes(b"\n".join(text) + b"\n")
    kinds = [type(event) for event in follow(tmp_path / "s")]
    assert kinds == [Said, Unread, Said, Said]


def test_of_a_dead_run_all_is_read(tmp_path: Path) -> None:
    """C08: what it has used is told from its recorded stream as if it had been heard, however much that is at once."""
    count = 20 * EFFORT // 400
    (tmp_path / "s").write_bytes(b"\n".join(counted(number, 300) for number in range(count)))
    follower = Follower(tmp_path / "s", STREAM_JSON)
    events = list(follower.finish())
    follower.close()
    assert len([event for event in events if isinstance(event, Said)]) == count


@pytest.mark.parametrize("size", [100_000, 200_000])
def test_a_long_answer_of_a_tool_is_read_where_it_ends_a_piece(size: int, tmp_path: Path) -> None:
    answer = {"type": "user", "message": {"content": [{"type": "tool_result", "content": "y" * size}]}}
    (tmp_path / "s").write_bytes(json.dumps(answer).encode() + b"\n")
    (event,) = follow(tmp_path / "s")
    assert isinstance(event, ToolResult)
    assert event.digest


def test_the_space_on_the_disk_is_that_of_the_box(tmp_path: Path) -> None:
    """C17: in bytes, for those who are not the administrator."""
    (tmp_path / "s").touch()
    follower = Follower(tmp_path / "s", PLAIN)
    disk = os.statvfs(tmp_path)
    assert abs(follower.free() - disk.f_bavail * disk.f_frsize) < 2 * 1024**3
    follower.close()
