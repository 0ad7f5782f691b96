"""The player of recorded histories, as a process: every direction, and every byte that is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.play import main

PLAYER = Path(__file__).resolve().parents[1] / "agents" / "play.py"


def play(folder: Path, *lines: bytes | dict[str, Any]) -> subprocess.CompletedProcess[bytes]:
    """Play a history of *lines* in *folder* as the session s-1."""
    history = folder / "history.jsonl"
    history.write_bytes(
        b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    )
    return subprocess.run(
        [sys.executable, "-IS", str(PLAYER), str(history), "s-1"], cwd=folder, capture_output=True, timeout=60
    )


VERBATIM = [
    b'{"type":"result"}\n', b"not json\n", b"\n", b"carriage\r\nreturn\rkept\r\n", b"caf\xe9 \xff\xfe\n", b"no end of line",
    "separators \u2028 \x0b \x0c\n".encode(), b"[" * 100_000 + b"\n", b"9" * 5000 + b"\n", b"null\n3\n[]\n", b'{"did":"wait"}\n', b"\0\n",
]  # fmt: skip


@pytest.mark.parametrize("line", VERBATIM, ids=range(len(VERBATIM)))
def test_what_is_no_direction_is_printed_byte_by_byte(tmp_path: Path, line: bytes) -> None:
    done = play(tmp_path, line)
    assert (done.returncode, done.stdout, done.stderr) == (0, line, b"")


def test_session_and_folder_are_filled_in(tmp_path: Path) -> None:
    done = play(tmp_path, b'{"session_id":"{session}","cwd":"{cwd}","other":"{x}"}\n')
    assert json.loads(done.stdout) == {"session_id": "s-1", "cwd": str(tmp_path), "other": "{x}"}


DIRECTIONS = [
    ({"do": "wait", "seconds": 0.01}, 0, b"ab", b""),
    ({"do": "stderr", "text": "ouch"}, 0, b"ab", b"ouch\n"),
    ({"do": "raw", "hex": "ff0a00"}, 0, b"a\xff\n\0b", b""),
    ({"do": "exit", "code": 7}, 7, b"a", b""),
    ({"do": "kill", "signal": 9}, -9, b"a", b""),
    ({"do": "kill", "signal": 15}, -15, b"a", b""),
    ({"do": "dance"}, 1, b"a", b"play: there is no direction 'dance'\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("direction", "code", "stdout", "stderr"),
    DIRECTIONS,
    ids=[f"{n}-{each[0]['do']}" for n, each in enumerate(DIRECTIONS)],
)
def test_a_direction_is_followed_and_not_printed(
    tmp_path: Path, direction: dict[str, Any], code: int, stdout: bytes, stderr: bytes
) -> None:
    done = play(tmp_path, {"do": "raw", "hex": b"a".hex()}, direction, {"do": "raw", "hex": b"b".hex()})
    assert (done.returncode, done.stdout, done.stderr) == (code, stdout, stderr)


def test_a_file_is_written_where_the_history_says(tmp_path: Path) -> None:
    done = play(tmp_path, {"do": "write", "path": "made.txt", "text": "Grüße\n"})
    assert done.returncode == 0
    assert (tmp_path / "made.txt").read_bytes() == "Grüße\n".encode()


def test_the_demonstration_is_a_history_that_plays(tmp_path: Path) -> None:
    done = play(tmp_path, (PLAYER.parent / "demo.jsonl").read_bytes())
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert {event.get("session_id") for event in events} == {"s-1"}
    assert (events[0]["subtype"], events[-1]["type"]) == ("init", "result")


def test_a_history_is_played_in_order(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    made = tmp_path / "made.txt"
    steps: list[dict[str, Any]] = [
        {"do": "wait", "seconds": 0}, {"do": "stderr", "text": "ouch"}, {"do": "write", "path": str(made), "text": "x"},
        {"do": "raw", "hex": "00ff"}, {"do": "kill", "signal": 0}, {"do": "exit", "code": 3},
    ]  # fmt: skip
    history = tmp_path / "history.jsonl"
    history.write_text("\n".join(["{session}", *map(json.dumps, steps), "never"]))
    with pytest.raises(SystemExit) as ended:
        main(str(history), "s-1")
    assert ended.value.code == 3
    assert capsysbinary.readouterr() == (b"s-1\n\x00\xff", b"ouch\n")
    assert made.read_text() == "x"


def test_an_unknown_direction_ends_the_play(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text('[1]\n{"do":"dance"}\n')
    with pytest.raises(SystemExit, match="dance"):
        main(str(history), "s-1")
