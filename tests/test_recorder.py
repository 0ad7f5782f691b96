"""The evidence is exact: every byte, on every path, up to the limit and no further."""

from __future__ import annotations

import os
import resource
import signal
import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.recorder import BURST, PipeRecorder, SpoolRecorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Ends = tuple[int, int]


@pytest.fixture(params=["splice", "copy"])
def source(request) -> Iterator[Callable[[], Ends]]:
    """Makes (read end, write end): a pipe is spliced, a socket cannot be and is copied."""
    made: list[int] = []

    def make() -> Ends:
        if request.param == "splice":
            ends = os.pipe()
        else:
            pair = socket.socketpair()
            ends = (pair[0].detach(), pair[1].detach())
        made.extend(ends)
        for end in ends:
            os.set_blocking(end, False)
        return ends

    yield make
    for end in made:
        try:
            os.close(end)
        except OSError:
            continue


def recorded(recorder: PipeRecorder | SpoolRecorder, path: Path) -> bytes:
    recorder.close()
    return path.read_bytes()


class TestPipe:
    @pytest.mark.parametrize("chunks", [[], [b""], [b"a"], [b"\0\xff\n", b"half"], [bytes(range(256)) * 100]])
    def test_is_recorded_byte_for_byte(self, chunks: list[bytes], source, tmp_path: Path) -> None:
        """T134: raw bytes as they came, whatever they are."""
        read, write = source()
        recorder = PipeRecorder(read, tmp_path / "out", 10**9)
        for chunk in chunks:
            os.write(write, chunk)
            assert recorder.drain() == len(chunk)
            assert not recorder.ended
        os.close(write)
        assert recorder.drain() == 0
        assert recorder.ended
        assert recorder.size == sum(map(len, chunks))
        assert recorded(recorder, tmp_path / "out") == b"".join(chunks)

    def test_is_appended_to_what_was_there(self, source, tmp_path: Path) -> None:
        (tmp_path / "out").write_bytes(b"before ")
        read, write = source()
        os.write(write, b"after")
        recorder = PipeRecorder(read, tmp_path / "out", 10**9)
        assert recorder.size == 7
        recorder.drain()
        assert recorded(recorder, tmp_path / "out") == b"before after"

    @pytest.mark.parametrize("limit", [1, 10, 99])
    def test_stops_at_its_limit_and_leaves_the_rest(self, limit: int, source, tmp_path: Path) -> None:
        """P14: what is beyond the limit stays in the pipe, which holds the writer back."""
        read, write = source()
        os.write(write, b"x" * 100)
        recorder = PipeRecorder(read, tmp_path / "out", limit)
        assert recorder.drain() == limit
        assert recorder.full
        assert recorder.drain() == 0
        assert not recorder.ended
        assert os.read(read, 1000) == b"x" * (100 - limit)
        assert recorded(recorder, tmp_path / "out") == b"x" * limit

    def test_drops_what_is_beyond_its_limit_where_the_writer_must_not_wait(self, source, tmp_path: Path) -> None:
        """P09: stderr is read to its end, kept up to the limit, and the rest is counted."""
        read, write = source()
        recorder = PipeRecorder(read, tmp_path / "err", 10, drop=True)
        for _ in range(3):
            os.write(write, b"x" * 100)
            assert recorder.drain() == 100
        os.close(write)
        recorder.drain()
        assert (recorder.ended, recorder.dropped) == (True, 290)
        assert recorded(recorder, tmp_path / "err") == b"x" * 10

    def test_takes_a_burst_at_most(self, tmp_path: Path) -> None:
        """The loop must look at its clock in between: an endless file stands for an endless agent."""
        with open("/dev/zero", "rb") as endless:  # noqa: PTH123 - a device
            recorder = PipeRecorder(endless.fileno(), tmp_path / "out", 10**9)
            assert recorder.drain() == BURST
        recorder.close(sync=False)

    def test_tells_of_a_disk_that_takes_no_more(self, source, tmp_path: Path) -> None:
        """C16: a write that fails is an error, not a shorter record."""
        read, write = source()
        os.write(write, b"x" * 100)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        recorder = PipeRecorder(read, tmp_path / "out", 10**9)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        try:
            # The copy writes what fits first, then fails; the splice does so at its second call.
            with pytest.raises(OSError, match="File too large"):
                [recorder.drain() for _ in range(3)]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, handler)
        assert recorded(recorder, tmp_path / "out") == b"x" * 10


class TestSpool:
    @given(chunks=st.lists(st.binary(max_size=300), max_size=8))
    def test_is_followed_while_it_grows(self, chunks: list[bytes], tmp_path_factory) -> None:
        folder = tmp_path_factory.mktemp("spool")
        spool, copy = folder / "spool", folder / "out"
        spool.touch()
        recorder = SpoolRecorder(spool, copy, 10**9)
        with spool.open("ab", buffering=0) as file:
            for chunk in chunks:
                file.write(chunk)
                assert recorder.drain() == len(chunk)
        assert (recorder.drain(), recorder.ended, recorder.tampered) == (0, False, False)
        assert recorded(recorder, copy) == b"".join(chunks)

    def test_that_was_shortened_keeps_what_was_copied(self, tmp_path: Path) -> None:
        """T134: an agent that empties its own output file has tampered; the copy stays."""
        spool, copy = tmp_path / "spool", tmp_path / "out"
        spool.write_bytes(b"evidence\n")
        recorder = SpoolRecorder(spool, copy, 10**9)
        recorder.drain()
        os.truncate(spool, 0)
        assert recorder.drain() == 0
        assert recorder.tampered
        spool.write_bytes(b"innocent, really\n")
        recorder.drain()
        assert recorded(recorder, copy).startswith(b"evidence\n")

    def test_that_was_rewritten_in_place_keeps_what_was_copied(self, tmp_path: Path) -> None:
        spool, copy = tmp_path / "spool", tmp_path / "out"
        spool.write_bytes(b"evidence\n")
        recorder = SpoolRecorder(spool, copy, 10**9)
        recorder.drain()
        spool.write_bytes(b"invented\nmore\n")
        recorder.drain()
        assert recorded(recorder, copy) == b"evidence\nmore\n"

    def test_stops_at_its_limit(self, tmp_path: Path) -> None:
        spool, copy = tmp_path / "spool", tmp_path / "out"
        spool.write_bytes(b"x" * 100)
        recorder = SpoolRecorder(spool, copy, 30)
        assert recorder.drain() == 30
        assert (recorder.full, recorder.drain()) == (True, 0)
        assert recorded(recorder, copy) == b"x" * 30

    def test_takes_a_burst_at_most(self, tmp_path: Path) -> None:
        spool = tmp_path / "spool"
        with spool.open("wb") as file:
            file.truncate(BURST + 5)
        recorder = SpoolRecorder(spool, tmp_path / "out", 10**9)
        assert (recorder.drain(), recorder.drain(), recorder.drain()) == (BURST, 5, 0)
        recorder.close(sync=False)

    def test_that_is_a_link_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "spool").symlink_to("/etc/passwd")
        with pytest.raises(OSError, match="symbolic links"):
            SpoolRecorder(tmp_path / "spool", tmp_path / "out", 10**9)
