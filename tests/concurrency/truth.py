"""What must be true after a crowd, whatever the order was in which its commands came through."""

from __future__ import annotations

import collections
import itertools
import json
import subprocess
from typing import TYPE_CHECKING, Any, Final

from agents import ledger
from tests.support import world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.concurrency.crowd import Command, Field

BEGUN: Final = {"run.started", "run.resumed"}
OVER: Final = {"run.finished", "run.crashed"}
ANCHORED: Final = OVER | {"run.merged", "run.collected"}


def hold(place: Field) -> None:
    """Assert all of it for *place*, whose commands have ended."""
    entries = world.ledger_of(place.root)
    answered(place.commands)
    chained(place.root, entries)
    pictured(place)
    told(place, entries)
    stated(place, entries)
    merged(place, entries)
    collected(place, entries)
    tidy(place.root)
    registered(place.root)


def answered(commands: list[Command]) -> None:
    """Every command did what it was asked to, the merges that were told to be late at another try."""
    for each in commands:
        assert each.code == 0, (each.words, each.code, each.said)


def chained(root: Path, entries: list[dict[str, Any]]) -> None:
    """One whole chain: numbers without a gap, each with the hash of the one before, times that never go back."""
    lines = (root / ".agents/INDEX.jsonl").read_bytes().splitlines()
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry["prev"] for entry in entries[1:]] == [ledger.digest(line) for line in lines[:-1]]
    times = [entry["time"] for entry in entries]
    assert times == sorted(times)


def pictured(place: Field) -> None:
    """INDEX.md, which one draws for all who wait, shows the ledger to its end; and git's ref vouches for its end."""
    shown = place.context.layout.dashboard.read_bytes()
    place.context.journal.redraw()
    assert place.context.layout.dashboard.read_bytes() == shown
    last = max(entry["seq"] for entry in world.ledger_of(place.root) if entry["event"] in ANCHORED)
    (in_git,) = (head for where, head in place.context.journal.anchors().items() if "ref" in where)
    assert in_git.seq >= last


def told(place: Field, entries: list[dict[str, Any]]) -> None:
    """Every run of the crowd began once and ended once; every resume likewise; none of it was told twice."""
    new = collections.Counter(entry["event"] for entry in entries[place.before :])
    wanted = collections.Counter(each.kind for each in place.commands)
    assert new["run.started"] == wanted["scout"] + wanted["fix"]
    assert new["run.resumed"] == wanted["resume"]
    assert new["run.finished"] == new["run.started"] + new["run.resumed"]
    for name, events in by_run(entries):
        assert events.count("run.started") == 1, (name, events)
        # Beginnings and ends take turns: no attempt began before the one before it was over.
        turns = [event in OVER for event in events if event in BEGUN | OVER]
        assert turns == [False, True] * (len(turns) // 2), (name, events)
        assert events[0] == "run.started"


def by_run(entries: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Every run with its events, in the ledger's order."""
    rows = sorted((entry["run"], entry["seq"], entry["event"]) for entry in entries if entry["run"])
    for name, group in itertools.groupby(rows, key=lambda row: row[0]):
        yield name, [event for _, _, event in group]


def stated(place: Field, entries: list[dict[str, Any]]) -> None:
    """Every box says what the ledger said last, under an id of its own, and nobody is left at work."""
    last = {entry["run"]: entry["facts"] for entry in entries if "status" in entry["facts"]}
    boxes = world.boxes(place.root)
    for box in boxes:
        state = world.state_of(place.root, box)
        assert (state["status"], state["phase"], state["pid"]) == (last[box.name]["status"], "settled", None), box.name
        assert state["attempt"] == last[box.name]["attempt"]
    ids = [box.name.rpartition("__")[2] for box in boxes]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= {path.name for path in (place.root / ".agents/ids").iterdir()}
    kinds = collections.Counter((world.meta_of(place.root, box)["run_type"], last[box.name]["status"]) for box in boxes)
    wanted = collections.Counter(each.kind for each in place.commands)
    assert kinds["scout", "DONE"] == wanted["scout"] + wanted["resume"]
    assert kinds["fix", "REVIEW"] == wanted["fix"]
    assert kinds["fix", "MERGED"] == wanted["merge"]


def merged(place: Field, entries: list[dict[str, Any]]) -> None:
    """The branch is the merges, each once, in the ledger's order, and nothing else; and so is the checkout."""
    done = sorted(each.run or "" for each in place.commands if each.kind == "merge")
    in_ledger = [entry["run"] for entry in entries if entry["event"] == "run.merged"]
    assert sorted(in_ledger) == done
    form = "--format=%(trailers:key=Agent-Run,valueonly,separator=%x2C)"
    assert world.git(place.root, "log", "--first-parent", "--reverse", form, "HEAD").split() == in_ledger
    there = {path.name for path in place.root.glob("new-*")}
    assert len(there) == len(done)
    assert set(world.git(place.root, "ls-files", "new-*").split()) == there


def collected(place: Field, entries: list[dict[str, Any]]) -> None:
    """What was old is gone, told once each, and nothing else is."""
    gone = [entry["run"] for entry in entries if entry["event"] == "run.collected"]
    assert sorted(gone) == sorted(place.old)
    assert not {box.name for box in world.boxes(place.root)} & set(place.old)
    answer = next(each.said for each in place.commands if each.kind == "gc")
    assert sorted(json.loads(answer[answer.index("{") :])["removed"]) == sorted(place.old)


def tidy(root: Path) -> None:
    """No marker, no half box, no half file, no slash command, no lock of git's, and a checkout that is clean."""
    data = root / ".agents"
    assert [path.name for part in ("active", "staging") for path in (data / part).iterdir()] == []
    assert world.published(root) == []
    assert [str(path) for path in data.rglob("*.tmp")] == []
    assert not (data / "quarantine").exists()
    assert [path.name for path in (root / ".git").rglob("*.lock")] == ["agent-box.lock"]
    assert world.git(root, "status", "--porcelain", "--untracked-files=all") == ""
    assert subprocess.run([*world.AGENT, "verify"], cwd=root, capture_output=True).returncode == 0


def registered(root: Path) -> None:
    """git knows exactly the airlocks that are there, each of a run that still needs it, and its objects are sound."""
    words = world.git(root, "worktree", "list", "--porcelain").split("\n\n")
    known = sorted(block.splitlines()[0].removeprefix("worktree ") for block in words if block.strip())
    trees = sorted(str(path.resolve()) for path in (root / "agent_box/trees").iterdir())
    assert known == sorted([str(root.resolve()), *trees])
    needed = {box.name for box in world.boxes(root) if world.state_of(root, box)["worktree_path"]}
    assert {tree.rpartition("/")[2] for tree in trees} == needed
    assert world.git(root, "worktree", "prune", "--dry-run", "--verbose") == ""
    assert world.git(root, "fsck", "--strict", "--no-dangling", "--no-progress").strip() == ""
