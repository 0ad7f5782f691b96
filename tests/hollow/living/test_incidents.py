"""Incidents of the seeds as whole cycles: what a locked agent tries, whose tool is whose, and no word to the outside."""

from __future__ import annotations

import functools
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from hollow.sandbox import Cell, narrowed, offered
from hollow.substrate.settings import Settings
from tests.support.forges import plain_cell
from tests.support.living import World, reads, steps, wants, write
from tests.support.needs import needs_bwrap
from tests.support.repos import write as write_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCRIBBLE = """def scribble(path="f", mode="w"):
    try:
        with open(path, mode) as file:
            file.write("x")
        return "wrote"
    except OSError as why:
        return "refused: " + why.strerror
"""
COUNTS = "def count_words(text=''):\n    return {'words': len(text.split())}\n"
SYNTHESIZE = "synthesize_capability"
OWN = {"workspace/cedar/note.md": "one\n", "design/plan.md": "a plan\n"}


def make(name: str, code: str) -> tuple[str, dict[str, Any]]:
    """The step that makes the tool *name*."""
    return SYNTHESIZE, {"name": name, "description": f"The tool {name} of the lamp keepers", "code": code}


def files(root: Path) -> dict[str, bytes]:
    """Every file below *root* but git's own."""
    every = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path): path.read_bytes() for path in every if ".git" not in path.relative_to(root).parts}


def sandbox(world: World, agent: str = "cedar") -> Callable[[bool], Cell | None]:
    """The sandbox of the children of *agent*, as a cycle has it."""

    @functools.cache
    def cell(writing: bool) -> Cell | None:
        whole = offered(world.repo, world.root / "index", "none", os.environ)
        own = (world.repo / "workspace" / agent, world.repo / "design")
        return narrowed(whole, own if writing else ()) if whole else None

    return cell


# --- Locks ------------------------------------------------------------------------------------------------------------


@needs_bwrap
def test_a_locked_agent_changes_no_byte_by_any_way(tmp_path: Path) -> None:
    """T57: at load .80 a plan that writes with every means there is leaves the airlock as it was; each way says why."""
    world = World.make(tmp_path)
    world.cell = sandbox(world)
    write_files(world.repo, OWN)
    world.live(existence=wants(), plan=steps(make("scribble", SCRIBBLE)))
    assert world.memory.shelf.loaded().keys() == {"scribble"}
    world.place("cedar", dread=0.45, doubt=0.35)
    before = files(world.repo)
    target = "workspace/cedar/f.md"
    code = f"for mode in 'wax':\n    try: open({target!r}, mode)\n    except OSError as why: print(why.strerror)"
    ways = [
        write(path=target),
        ("fs_edit", {"path": "workspace/cedar/note.md", "old": "one", "new": "two"}),
        (
            "shell_exec",
            {"command": f"echo x > {target}; echo x >> workspace/cedar/note.md; rm -f design/plan.md; true"},
        ),
        ("test_exec", {"code": code}),
        ("scribble", {"path": target, "mode": "w"}),
        ("scribble", {"path": "workspace/cedar/note.md", "mode": "a"}),
    ]
    world.live(existence=wants(), plan=steps(*ways))
    assert files(world.repo) == before
    assert [("locked" in each, "ead-only file system" in each) for each in world.results] == [
        (True, False), (True, False), (False, True), (False, True), (False, True), (False, True),
    ]  # fmt: skip
    # Well again, the same shell and the same tool may write: it was the lock that held them.
    world.place("cedar", dread=0.1)
    world.live(existence=wants(), plan=steps(*ways[2:3], *ways[4:5]))
    assert (world.repo / target).read_text() == "x"
    assert not (world.repo / "design/plan.md").exists()


# --- Tools that one makes and another calls ---------------------------------------------------------------------------


def test_what_one_agent_makes_another_calls_and_so_does_the_next_process(tmp_path: Path) -> None:
    """T103: made in one step, called in the next of the same plan, and by a peer in its next cycle, which is offered it.
    T104: a new process, with the same memory, calls it as well.
    """
    world = World.make(tmp_path)
    cell = plain_cell(tmp_path)
    world.cell = lambda _writing: cell
    call = ("count_words", {"text": "a b c"})
    world.live("vault", existence=wants(), plan=steps(make("count_words", COUNTS), call))
    # Its name is looked up when its step comes: as the plan was read there was no such tool.
    assert world.results[1:] == ['{"words": 3}']
    assert [each["name"] for each in world.said("capability.deployed")] == ["count_words"]
    world.live("cedar", existence=wants(), plan=steps(call))
    assert world.results == ['{"words": 3}']
    assert "count_words(text='')" in world.prompt("plan")
    again = World(repo=world.repo, root=world.root, at=world.at, cycles=50, cell=world.cell)
    again.live("cipher", existence=wants(), plan=steps(call))
    assert again.results == ['{"words": 3}']
    assert again.memory.shelf.loaded()["count_words"].by == "vault"


# --- The world outside ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.0, 0.6])
def test_a_whole_cycle_speaks_to_nobody(tmp_path: Path, load: float) -> None:
    """T62: with a socket that listens on loopback and is named in goal, plan and configuration, a cycle makes none of
    the calls that reach it.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/page"
        world = World.make(tmp_path, {"docs/links.md": f"See {address}\n"})
        # Configured is not earned: that takes a peer, and to be well.
        world.settings = Settings(research=(address,))
        cell = plain_cell(tmp_path)
        world.cell = lambda _writing: cell
        if load:
            world.place("cedar", dread=load)
        tries = [
            ("research_topic", {"topic": address}), ("fs_read", {"path": address}), ("memory_set", {"key": "k", "value": address}),
            ("agent_message", {"to": "vault", "message": address}), ("invoke_claude", {"description": f"Read {address}"}),
            *reads(1),
        ]  # fmt: skip
        world.live(existence=wants(f"Describe what {address} says in workspace/cedar/a.md"), plan=steps(*tries))
        assert len(world.results) == len(tries)
        listener.settimeout(0.05)
        with pytest.raises(TimeoutError):
            listener.accept()
