"""What the load is put on: places with histories, repositories and ledgers of a size, and files for agents to print."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from agents import ledger
from agents.layout import Layout
from benchmarks.material import Material, finished_runs
from tests.load.meter import Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


PER_RUN: Final = 4
"""Lines that a run leaves in the ledger of :meth:`Ground.ledger`."""


class Ground:
    """Builds places in *folder*, each once; whoever made the folder removes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._material = Material(folder)
        self._places: dict[Path, Place] = {}

    def _place(self, root: Path) -> Place:
        if root not in self._places:
            self._places[root] = Place(root, self._folder / f"home-{len(self._places)}")
        return self._places[root]

    def empty(self) -> Place:
        """A repository of one file without any run."""
        return self._place(self._material.history(0))

    def history(self, runs: int) -> Place:
        """A repository of one file with that many finished *runs*, each with its box."""
        return self._place(self._material.history(runs))

    def repository(self, files: int) -> Place:
        """A repository of that many tracked *files*."""
        return self._place(self._material.repository(files))

    def ledger(self, lines: int) -> Place:
        """A repository with a ledger of that many *lines* about runs whose boxes are collected since."""
        root = Material(self._folder / f"ledger-{lines}").history(0)
        if root not in self._places:
            _collected(Layout(root), lines)
        return self._place(root)

    def lines(self, kind: str, size: int) -> Path:
        """A file of about *size* bytes of lines of the *kind* of :data:`benchmarks.material.STREAMS`."""
        return self._material.stream(kind, size)


def _collected(layout: Layout, lines: int) -> None:
    """Write a ledger of *lines* lines: each run starts, ends, is merged and collected."""
    head = ledger.Head()
    with layout.ledger.open("wb") as file:
        for run in finished_runs(lines // PER_RUN):
            for event, facts in _life(run.facts):
                line, head = ledger.link(head, time=facts.get("ended_at") or "", event=event, run=run.name, facts=facts)
                file.write(line)


def _life(facts: tuple[dict[str, Any], dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    begun, over = facts
    merged = {name: value for name, value in over.items() if name != "evidence"} | {"status": "MERGED"}
    yield from (("run.started", begun), ("run.finished", over), ("run.merged", merged))
    yield "run.collected", {"status": "COLLECTED"}


def state(place: Place) -> dict[str, Any]:
    """state.json of the latest run."""
    found: dict[str, Any] = json.loads((place.root / ".agents" / "latest" / "state.json").read_bytes())
    return found


def last_entry(place: Place) -> dict[str, Any]:
    """The newest entry of the ledger."""
    with (place.root / ".agents" / "INDEX.jsonl").open("rb") as file:
        file.seek(-min(ledger.LONGEST, file.seek(0, 2)), 2)
        entry: dict[str, Any] = json.loads(file.read().splitlines()[-1])
        return entry


def sealed_stream(place: Place) -> str | None:
    """The hash of the latest run's stream as the newest entry of the ledger has sealed it."""
    found: str | None = last_entry(place)["facts"]["evidence"].get("raw/stream.jsonl")
    return found


def patch_hash(place: Place) -> str:
    """What a human approves of the latest run."""
    return hashlib.sha256((place.root / ".agents" / "latest" / "changes.patch").read_bytes()).hexdigest()


def digest_of(file: Path, times: int) -> str:
    """SHA-256 of the bytes of *file*, that many *times* one after the other."""
    data, found = file.read_bytes(), hashlib.sha256()
    for _ in range(times):
        found.update(data)
    return found.hexdigest()
