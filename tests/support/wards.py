"""Guarded processes without a run around them: start one, hear what its guard says."""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import TYPE_CHECKING, Any

from agents import procs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


@contextlib.contextmanager
def ward(
    folder: Path,
    argv: Sequence[str],
    *,
    grace: float = 1.0,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    spool: Path | None = None,
) -> Iterator[procs.Child]:
    """The program *argv*, held at its gate; ended with all it has started when the ``with`` is left."""
    given = folder / "stdin"
    given.write_bytes(stdin)
    child = procs.spawn(argv, cwd=folder, env=env or {"PATH": os.defpath}, stdin=given, spool=spool, grace=grace)
    with contextlib.ExitStack() as undo:
        undo.callback(child.close)
        yield child


def hear(child: procs.Child, word: str, deadline: float = 30.0) -> dict[str, Any]:
    """What the guard says that has the key *word*; waits for it."""
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        for said in child.told:
            if word in said:
                return said
        select.select([child.line], [], [], 0.1)
        if not child.listen():
            break
    found = [said for said in child.told if word in said]
    assert found, f"the guard never said {word}: {child.told}"
    return found[0]


def output(child: procs.Child, until: bytes, deadline: float = 30.0) -> bytes:
    """What the program prints, up to and with *until*."""
    assert child.stdout is not None
    end, data = time.monotonic() + deadline, b""
    while until not in data:
        assert time.monotonic() < end, f"never printed {until!r}: {data!r}"
        select.select([child.stdout], [], [], 0.1)
        with contextlib.suppress(BlockingIOError):
            piece = os.read(child.stdout, 65536)
            assert piece, f"it ended and never printed {until!r}: {data!r}"
            data += piece
    return data
