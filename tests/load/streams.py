"""Floods: one agent that prints without end, many that print at once, one that prints more than it may."""

from __future__ import annotations

import contextlib
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.load import worlds
from tests.load.meter import MIB
from tests.load.table import Row, ended, small, unless

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.load.meter import Place, Spent
    from tests.load.worlds import Ground

FLOOD: Final = 1_000_000_000
"""Bytes that one agent prints."""
PIECE: Final = 64 * MIB
STREAMS: Final = 10
PACE: Final = 50_000
"""Lines a second of each."""
LASTS: Final = 10.0
"""Seconds for which they print."""
GROWTH: Final = 20 * MIB
"""Memory that a supervisor may need beyond that of a silent run."""
LARGEST: Final = 64 * MIB
"""Memory that the largest process of a flooded run may have, in bytes."""

# Prints what FILE holds, LINES lines of it twenty times a second, COUNT times, as far as the reader keeps up; says at
# the end by how many seconds it came too late.
_PACED: Final = """
import sys, time
lines = open(sys.argv[1], "rb").read().splitlines(keepends=True)
share, turns = int(sys.argv[2]), int(sys.argv[3])
pieces = [b"".join(lines[at:at + share]) for at in range(0, len(lines) - share + 1, share)]
begun = time.monotonic()
for turn in range(turns):
    sys.stdout.buffer.write(pieces[turn % len(pieces)])
    sys.stdout.buffer.flush()
    time.sleep(max(0.0, begun + (turn + 1) / 20 - time.monotonic()))
print("late", round(time.monotonic() - begun - turns / 20, 2), file=sys.stderr)
"""
_PER_SECOND: Final = 20


_KINDS: Final = {"small": "text, lines of 120 B", "typical": "JSON events", "huge": "a single line"}


def flood(ground: Ground, scale: float, kinds: Sequence[str] = tuple(_KINDS)) -> Iterator[Row]:
    """One agent that prints a gigabyte, in each of some *kinds* of lines; one without end; one that fills the disk."""
    place = ground.empty()
    silent = place.agent("scout", "x", "--engine", "command", "--", "true")
    size = int(FLOOD * scale)
    for kind in kinds:
        yield _flooded(place, ground, silent, kind, size)
    yield _limited(place, ground.lines("small", PIECE), size)
    yield _reserved(place, ground.lines("small", PIECE), size)


def _printing(file: Path, times: int) -> tuple[str, ...]:
    return (
        "--engine",
        "command",
        "--",
        "sh",
        "-c",
        f'i=0; while [ $i -lt {times} ]; do cat "$0"; i=$((i+1)); done',
        str(file),
    )


def _flooded(place: Place, ground: Ground, silent: Spent, kind: str, size: int) -> Row:
    file = ground.lines(kind, size if kind == "huge" else min(size, PIECE))
    times = max(1, round(size / file.stat().st_size))
    spent = place.agent("scout", "x", *_printing(file, times))
    box = place.root / ".agents" / "latest" / "raw" / "stream.jsonl"
    there, wanted = box.stat().st_size, file.stat().st_size * times
    seal = worlds.sealed_stream(place)
    faults = (
        *ended(spent), *small(spent, min(LARGEST, silent.peak + GROWTH)),
        *unless(there == wanted, f"{there} bytes recorded, {wanted} printed"),
        *unless(seal == worlds.digest_of(file, times), "what was sealed is not what was printed"),
    )  # fmt: skip
    box.write_bytes(b"")
    return Row(
        operation=f"one agent floods: {_KINDS[kind]}", size=f"{wanted / 1e6:,.0f} MB", spent=spent, faults=faults,
        beside=f"{(spent.peak - silent.peak) / MIB:+.0f} MiB over a silent run",
        promise=f"every byte, at most {GROWTH // MIB} MiB more",
    )  # fmt: skip


def _limited(place: Place, file: Path, size: int) -> Row:
    """An agent that prints twice what it may."""
    limit = size // 2 // MIB * MIB
    spent = place.agent("scout", "x", "--max-output", str(limit), *_printing(file, max(2, size // file.stat().st_size)))
    box = place.root / ".agents" / "latest" / "raw" / "stream.jsonl"
    there, kind = box.stat().st_size, (worlds.state(place)["failure"] or {}).get("kind")
    box.write_bytes(b"")
    return Row(
        operation="one agent prints more than it may", size=f"{limit / 1e6:,.0f} MB allowed", spent=spent,
        beside=f"{there - limit:+d} bytes", promise="ended at its limit to the byte",
        faults=(*unless(there == limit, f"{there} bytes instead of {limit}"),
                *unless(kind == "output_limit", f"failure {kind}")),
    )  # fmt: skip


def _reserved(place: Place, file: Path, size: int) -> Row:
    """An agent that would take what is reserved of the disk; the reserve is set to just below what is free now."""
    reserve = shutil.disk_usage(place.root).free - size // 4
    endless = _printing(file, 10**6)
    with place.setting("AGENT_BOX_MIN_FREE", str(reserve)):
        spent = place.agent("scout", "x", "--max-output", str(64 * size), *endless)
    box = place.root / ".agents" / "latest" / "raw" / "stream.jsonl"
    there, kind = box.stat().st_size, (worlds.state(place)["failure"] or {}).get("kind")
    box.write_bytes(b"")
    return Row(
        operation="one agent fills the disk", size=f"{size / 4e6:,.0f} MB above the reserve", spent=spent,
        beside=f"{there / 1e6:,.0f} MB were printed", promise="ended for it, not by it",
        faults=unless(kind == "quota", f"failure {kind}"),
    )  # fmt: skip


def many(ground: Ground, scale: float) -> Iterator[Row]:
    """Ten agents that each print 50,000 lines a second, side by side."""
    place = ground.empty()
    silent = place.agent("scout", "x", "--engine", "command", "--", "true")
    share, turns = PACE // _PER_SECOND, max(1, round(LASTS * scale * _PER_SECOND))
    file = ground.lines("small", 4 * share * 125)
    words = ("--engine", "command", "--", sys.executable, "-IS", "-c", _PACED, str(file), str(share), str(turns))
    before = set((place.root / ".agents" / "runs").iterdir())
    with contextlib.ExitStack() as stack:
        start = partial(place.running, *place.command("scout", "x", *words))
        spents = [running.wait() for running in [stack.enter_context(start()) for _ in range(STREAMS)]]
    boxes = sorted(set((place.root / ".agents" / "runs").iterdir()) - before)
    worst = max(spents, key=lambda spent: spent.peak)
    lines = [_count(box / "raw" / "stream.jsonl") for box in boxes]
    late = max(float((box / "raw" / "stderr.log").read_text().split()[1]) for box in boxes)
    faults = (
        *(fault for spent in spents for fault in ended(spent)), *small(worst, min(LARGEST, silent.peak + GROWTH)),
        *unless(lines == [share * turns] * STREAMS, f"{lines} lines recorded, {share * turns} printed by each"),
    )  # fmt: skip
    for box in boxes:
        (box / "raw" / "stream.jsonl").write_bytes(b"")
    yield Row(
        operation=f"{STREAMS} agents at {PACE:,} lines/s each", size=f"{share * turns * STREAMS:,} lines",
        spent=worst, beside=f"{(worst.peak - silent.peak) / MIB:+.0f} MiB; the last writer was {late:.1f} s late",
        promise="every line, bounded memory", faults=faults,
    )  # fmt: skip


def _count(file: Path) -> int:
    with file.open("rb") as opened:
        return sum(piece.count(b"\n") for piece in iter(lambda: opened.read(MIB), b""))
