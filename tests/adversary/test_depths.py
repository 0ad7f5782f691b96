"""Trees without a bottom: what an agent has made deeper than programs can call is still exported, refused and removed."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.adversary.arena import Arena

DEPTH = 3000
DIG = f"""
def dig(where):
    here = os.open(where, os.O_RDONLY)
    for _ in range({DEPTH}):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
attempt("airlock", dig, ".")
attempt("outbox", dig, os.environ["RUN_DIR"])
attempt("home", dig, os.environ["HOME"])
"""


@pytest.fixture
def swept(tmp_path: Path) -> Iterator[None]:
    """Remove what a failure leaves: the test runner's own cleaning gives up at such depths."""
    yield
    subprocess.run(["rm", "-rf", "--", str(tmp_path / "repo")], check=True)


@pytest.mark.usefixtures("swept")
def test_a_tree_without_a_bottom_is_exported_or_refused_and_removed(arena: Arena) -> None:
    """T137: the run ends with the truth and everything of it can go; faults G14, G27, C12."""
    story = arena.attack(DIG)
    assert story.tried == {"airlock": "GAINED", "outbox": "GAINED", "home": "GAINED"}, story.said
    assert "Traceback" not in story.done.stderr, story.done.stderr
    assert story.status in {"REVIEW", "CRASHED"}
    assert "internal" not in story.failure, story.failure
    done = arena.command("reject", story.box.name, "too deep")
    assert done.returncode == 0, done.stderr
    # Work that no patch holds is never thrown away, so the operator is told that it is still there.
    left = os.path.lexists(arena.repo / "agent_box" / "trees" / story.box.name)
    assert left == ("The airlock stays" in done.stderr), done.stderr
    collected = arena.command("gc", "--keep-runs", "0", "--json")
    # What is said to be removed is, and what is still there is not said to be.
    assert (json.loads(collected.stdout)["removed"] == [story.box.name]) == (not story.box.exists()), collected.stdout
    assert arena.command("verify").returncode == 0
