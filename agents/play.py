"""The player of the engine ``scripted``: prints a recorded history, with the pauses and the end that it asks for.

A history is a text file. A line that is a JSON object with the key ``do`` directs; every other line is printed as it
is, with ``{session}`` and ``{cwd}`` replaced. Directions: ``wait`` (``seconds``), ``stderr`` (``text``), ``write``
(``path``, ``text``), ``raw`` (``hex``: bytes without an end of line), ``exit`` (``code``), ``kill`` (``signal``).
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _direct(step: dict[str, Any]) -> None:
    match step["do"]:
        case "wait":
            time.sleep(float(step["seconds"]))
        case "stderr":
            sys.stderr.write(step["text"] + "\n")
            sys.stderr.flush()
        case "write":
            with open(step["path"], "w", encoding="utf-8") as file:
                file.write(step["text"])
        case "raw":
            _out(bytes.fromhex(step["hex"]))
        case "exit":
            sys.exit(int(step["code"]))
        case "kill":
            os.kill(os.getpid(), int(step["signal"]))
        case unknown:
            sys.exit(f"play: there is no direction {unknown!r}")


def _out(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _direction(line: str) -> dict[str, Any] | None:
    try:
        step = json.loads(line)
    # RecursionError: a history may hold the nesting that decoders have to survive.
    except (ValueError, RecursionError):
        return None
    return step if isinstance(step, dict) and "do" in step else None


def main(path: str, session: str) -> None:
    """Play the history *path* as the session *session*."""
    # Nothing is translated and nothing refused on the way: what is no direction leaves byte by byte as it came.
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as history:
        for line in history:
            if step := _direction(line):
                _direct(step)
            else:
                said = line.replace("{session}", session).replace("{cwd}", os.getcwd())
                _out(said.encode("utf-8", "surrogateescape"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
