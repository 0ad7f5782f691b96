"""The disk below ``.agents/hollow``: nothing torn, nothing lost that was said to be there, nothing silently empty."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from hollow.memory.files import Files, Loaded, MemoryFault

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="folder")
def empty_folder(tmp_path: Path) -> Path:
    (tmp_path / "memory").mkdir()
    return tmp_path / "memory"


class Said(list):
    def __call__(self, kind: str, **facts: object) -> None:
        self.append((kind, facts))


def written(files: Files, name: str, *values: object) -> Path:
    for value in values:
        with files.hold():
            files.write(name, value)
    return files.root / name


class TestWholeFiles:
    def test_what_is_not_there_is_nothing(self, folder: Path) -> None:
        assert Files(folder / "never").read("a.json") == Loaded(None)

    def test_round_trip_and_private(self, folder: Path) -> None:
        files = Files(folder / "state")
        path = written(files, "deep/a.json", {"x": "é", "n": [1, None]})
        assert files.read("deep/a.json") == Loaded({"x": "é", "n": [1, None]})
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("garbage", [b"", b"{", b"\xff\xfe", b"null", b"[" * 100_000, b'{"a": 1'])
    def test_damage_is_put_aside_and_the_last_good_copy_comes_back(self, folder: Path, garbage: bytes) -> None:
        said = Said()
        files = Files(folder, said)
        path = written(files, "a.json", {"v": 1}, {"v": 2})
        path.unlink()
        path.write_bytes(garbage)
        with files.hold():
            assert files.read("a.json") == Loaded({"v": 1}, damaged=True)
        assert json.loads(path.read_bytes()) == {"v": 1}
        assert [each.read_bytes() for each in (folder / "quarantine").iterdir()] == [garbage]
        assert said == [("memory.damaged", {"file": "a.json", "restored": True})]
        assert files.read("a.json") == Loaded({"v": 1})

    def test_without_a_copy_it_is_said_and_not_taken_for_empty(self, folder: Path) -> None:
        said = Said()
        (folder / "a.json").write_bytes(b"{")
        assert Files(folder, said).read("a.json") == Loaded(None, damaged=True)
        assert said == [("memory.damaged", {"file": "a.json", "restored": False})]

    def test_a_reader_without_the_lock_changes_nothing(self, folder: Path) -> None:
        (folder / "a.json").write_bytes(b"{")
        Files(folder).read("a.json")
        assert [each.name for each in folder.iterdir()] == ["a.json"]

    def test_damage_never_becomes_the_last_good_copy(self, folder: Path) -> None:
        files = Files(folder)
        path = written(files, "a.json", {"v": 1}, {"v": 2})
        path.unlink()
        path.write_bytes(b"{")
        written(files, "a.json", {"v": 3})
        path.unlink()
        path.write_bytes(b"{")
        assert files.read("a.json").value == {"v": 1}

    def test_a_file_that_is_a_folder_is_damage(self, folder: Path) -> None:
        (folder / "a.json").mkdir()
        assert Files(folder).read("a.json").damaged


class TestLogs:
    def test_lines_come_back_in_order(self, folder: Path) -> None:
        files = Files(folder)
        for number in range(3):
            with files.hold():
                files.append("log.jsonl", {"n": number, "text": "a\nb\u2028c"})
        assert [each["n"] for each in files.lines("log.jsonl")] == [0, 1, 2]
        assert len((folder / "log.jsonl").read_bytes().splitlines()) == 3

    def test_a_broken_line_loses_itself_alone(self, folder: Path) -> None:
        """T21: a line that is no JSON object is left out and told of; the others are there."""
        said = Said()
        (folder / "log.jsonl").write_bytes(b'{"n": 1}\n{"n": \n[]\n\xff\n\n{"n": 2}\n')
        assert [each["n"] for each in Files(folder, said).lines("log.jsonl")] == [1, 2]
        assert said == [("memory.malformed", {"file": "log.jsonl", "lines": 3})]

    def test_a_torn_end_is_put_aside_before_the_next_append(self, folder: Path) -> None:
        said = Said()
        files = Files(folder, said)
        (folder / "log.jsonl").write_bytes(b'{"n": 1}\n{"n": 2, "to')
        assert [each["n"] for each in files.lines("log.jsonl")] == [1]
        with files.hold():
            files.append("log.jsonl", {"n": 3})
        assert (folder / "log.jsonl").read_bytes() == b'{"n":1}\n{"n":3}\n'.replace(b'{"n":1}', b'{"n": 1}')
        assert [each.read_bytes() for each in (folder / "quarantine").iterdir()] == [b'{"n": 2, "to']
        assert said == [("memory.torn", {"file": "log.jsonl", "bytes": 12})]

    def test_compacting_keeps_what_is_given(self, folder: Path) -> None:
        files = Files(folder)
        with files.hold():
            for number in range(10):
                files.append("log.jsonl", {"n": number})
            files.compact("log.jsonl", files.lines("log.jsonl")[-2:])
        assert [each["n"] for each in files.lines("log.jsonl")] == [8, 9]


class TestTheLock:
    def test_nothing_is_changed_without_it(self, folder: Path) -> None:
        files = Files(folder)
        for change in (lambda: files.write("a", 1), lambda: files.append("a", {}), lambda: files.remove("a")):
            with pytest.raises(MemoryFault):
                change()
        assert list(folder.iterdir()) == []

    def test_taken_twice_it_is_refused_and_not_waited_for(self, folder: Path) -> None:
        files = Files(folder)
        began = time.monotonic()
        with files.hold(), pytest.raises(MemoryFault, match="one layer"), files.hold():
            pass
        assert time.monotonic() - began < 20

    def test_another_thread_waits_its_turn(self, folder: Path) -> None:
        files = Files(folder)

        def add() -> None:
            for _ in range(20):
                with files.hold():
                    files.write("n.json", {"n": (files.read("n.json").value or {"n": 0})["n"] + 1})

        threads = [threading.Thread(target=add) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert files.read("n.json").value == {"n": 80}


def _works_until_it_is_killed(root: Path, told: int) -> None:
    """Adds numbers to a log and a file for ever; says each on *told* once it is on disk."""
    files = Files(root)
    number = len(files.lines("log.jsonl"))
    while True:
        with files.hold():
            files.append("log.jsonl", {"n": number})
            files.write("whole.json", {"n": number, "pad": "x" * 5000})
        os.write(told, f"{number}\n".encode())
        number += 1


def test_kills_at_any_moment_lose_nothing_that_was_told(folder: Path) -> None:
    """T157: killed with SIGKILL at 100 random points, every file parses and every record that was said is there."""
    chance = random.Random(157)
    files = Files(folder)
    for _ in range(100):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(read)
                _works_until_it_is_killed(folder, write)
            finally:
                os._exit(1)
        os.close(write)
        time.sleep(chance.uniform(0.0005, 0.012))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(read, "rb") as told:
            said = [int(line) for line in told.read().split()]
        kept = [each["n"] for each in files.lines("log.jsonl")]
        assert kept == list(range(len(kept)))
        whole = files.read("whole.json")
        assert not whole.damaged
        if said:
            assert said[-1] < len(kept)
            assert whole.value["n"] >= said[-1]
    assert len(files.lines("log.jsonl")) > 20
