"""Recorded boxes, one a folder: real runs that ended, small and with invented content, each replayed by a test."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import ledger
from agents.layout import EVIDENCE, Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FOLDER = Path(__file__).resolve().parent
KEPT = (*EVIDENCE, "state.json", "outbox/report.md")
"""Files of a box that a replay looks at."""
LEDGER = "ledger.jsonl"


def recorded() -> list[str]:
    """Names of the recordings."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{LEDGER}"))


def boxes(name: str) -> list[str]:
    """Names of the runs of the recording *name*; the one that is replayed is the last."""
    entries = (json.loads(line) for line in (FOLDER / name / LEDGER).read_bytes().splitlines())
    told = list(dict.fromkeys(entry["run"] for entry in entries if entry["event"] == "run.started"))
    # The run of several agents begins before theirs.
    return sorted(told, key=lambda run: _meta(FOLDER / name / run)["team"] is None)


def _meta(box: Path) -> dict[str, Any]:
    import yaml

    return yaml.safe_load((box / "meta.yaml").read_bytes())


def place(name: str, root: Path) -> str:
    """Put the recording *name* into the repository at *root*; returns the run that is to be replayed."""
    layout = Layout(root)
    layout.data.mkdir(exist_ok=True)
    layout.ids.mkdir(exist_ok=True)
    for run in boxes(name):
        shutil.copytree(FOLDER / name / run, layout.box(run).path)
        (layout.ids / run.rpartition("__")[2]).write_text(run)
    shutil.copy(FOLDER / name / LEDGER, layout.ledger)
    return boxes(name)[-1]


def add(name: str, root: Path, run: str, others: Mapping[str, str]) -> Path:
    """Keep the run *run* of the repository *root*, and those of its agents, under *name*; returns the folder.

    *others* are words of this machine (paths, names) and what stands for them in the recording. Everything is sealed
    anew, in a ledger that holds these runs alone.
    """
    layout, target = Layout(root), FOLDER / name
    state = json.loads(layout.box(run).state.read_bytes())
    target.mkdir()
    for each in (run, *state["workers"]):
        for file in KEPT:
            source = layout.box(each).path / file
            if source.is_file():
                copy = target / each / file
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(_told(source.read_bytes(), others))
    entries = [json.loads(_told(line, others)) for line in layout.ledger.read_bytes().splitlines()]
    kept = [entry for entry in entries if entry["run"] in {run, *state["workers"]}]
    (target / LEDGER).write_bytes(b"".join(_chained(target, kept)))
    return target


def _told(data: bytes, others: Mapping[str, str]) -> bytes:
    for word in sorted(others, key=len, reverse=True):
        data = data.replace(word.encode(), others[word].encode())
    return data


def _chained(target: Path, entries: Iterable[Mapping[str, Any]]) -> Iterable[bytes]:
    """The lines of *entries* as one chain, with the seals of the files as they are in *target*."""
    head = ledger.Head()
    for entry in entries:
        box, facts = target / entry["run"], dict(entry["facts"])
        if "meta_sha256" in facts:
            facts["meta_sha256"] = _sha256(box / "meta.yaml")
        if "evidence" in facts:
            facts["evidence"] = {file: _sha256(box / file) for file in facts["evidence"] if (box / file).exists()}
        told = {"time": entry["time"], "event": entry["event"], "run": entry["run"]}
        line, head = ledger.link(head, facts=facts, **told)
        yield line


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
