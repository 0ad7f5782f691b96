"""What one would write first, for floors and for comparison; standard library alone, and nothing of the box.

    python benchmarks/drivers/naive.py literal            # standard input, line by line, into the current folder
    python benchmarks/drivers/naive.py exact              # the same, in one file, counting usage
    python benchmarks/drivers/naive.py scan FOLDER        # a table of the runs in FOLDER, from each state.json
    python benchmarks/drivers/naive.py read FOLDER        # every state.json in FOLDER, looked at
    python benchmarks/drivers/naive.py hash FOLDER        # SHA-256 of every file below FOLDER
    python benchmarks/drivers/naive.py pace RATE SECONDS [FILE]   # that many lines a second; FILE holds their number
    python benchmarks/drivers/naive.py edit               # change 10 tracked files, delete one, add five and a binary

The last one in the work tree that is the current folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def literal() -> None:
    """Follow an agent as plainly as can be: parse, log and save the state at every line."""
    state: dict[str, Any] = {"status": "ACTIVE", "session_id": None, "events": 0, "last_heartbeat": None}
    for line in sys.stdin:
        event = json.loads(line)
        with Path("stream.jsonl").open("a", encoding="utf-8") as log:
            log.write(line)
        state["session_id"] = event.get("session_id")
        state["events"] += 1
        state["last_heartbeat"] = datetime.now(UTC).isoformat()
        Path("state.json").write_text(json.dumps(state, indent=2), "utf-8")


def exact() -> None:
    """Record the stream, parse every line, and add up the usage of every message."""
    used: dict[str, int] = {}
    with Path("stream.jsonl").open("wb") as log:
        for line in sys.stdin.buffer:
            log.write(line)
            message = json.loads(line).get("message") or {}
            for name, count in (message.get("usage") or {}).items():
                used[name] = used.get(name, 0) + count
    print(json.dumps(used))


def scan(folder: Path) -> None:
    """Show the newest of all runs, each from its own file."""
    states = [(path.parent.name, json.loads(path.read_text("utf-8"))) for path in folder.glob("*/state.json")]
    for name, state in sorted(states, reverse=True)[:30]:
        print(f"{name:60} {state['status']:10} {state['started_at']}")


def read(folder: Path) -> None:
    """Read what a complete look at all runs has to read, and find those that are not over."""
    active = 0
    for name in os.listdir(folder):  # noqa: PTH208 - a floor does as little as can be
        handle = os.open(f"{folder}/{name}/state.json", os.O_RDONLY)
        active += b'"ACTIVE"' in os.read(handle, 65536)
        os.close(handle)
    print(active)


def hashed(folder: Path) -> None:
    """Hash every file, as whoever verifies evidence must."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                hashlib.file_digest(file, "sha256")


def pace(rate: float, seconds: float, count: Path | None) -> None:
    """Print a line at a time, at moments that do not drift; *count* is told of each line that was written whole."""
    begun = time.monotonic()
    handle = os.open(count, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if count else None
    for number in range(int(rate * seconds)):
        time.sleep(max(0.0, begun + number / rate - time.monotonic()))
        event = {"type": "assistant", "message": {"content": [{"type": "text", "text": f"line {number} " + "x" * 200}]}}
        os.write(1, json.dumps(event).encode() + b"\n")
        if handle is not None:
            os.pwrite(handle, b"%d" % (number + 1), 0)
    os.write(1, b'{"type":"result","subtype":"success","is_error":false,"result":"done"}\n')


def edit() -> None:
    """Change the work tree that is the current folder in the way of a middling patch."""
    tracked = sorted(Path("src").rglob("*.py"))
    for path in tracked[:10]:
        path.write_text(path.read_text("utf-8").replace("limit", "bound") + "# changed\n", "utf-8")
    tracked[10].unlink()
    for number in range(5):
        Path(f"new_{number}.py").write_text(f"NUMBER = {number}\n" * 40, "utf-8")
    Path("picture.bin").write_bytes(bytes(range(256)) * 64)


def main(words: Sequence[str]) -> None:
    """Do what *words* say."""
    name, *rest = words
    if name == "pace":
        pace(float(rest[0]), float(rest[1]), Path(rest[2]) if rest[2:] else None)
    elif rest:
        {"scan": scan, "read": read, "hash": hashed}[name](Path(rest[0]))
    else:
        {"literal": literal, "exact": exact, "edit": edit}[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
