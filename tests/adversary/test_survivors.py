"""What tries to outlive its run: nothing of an agent's tree is left, however the run ends; and a terminal stays closed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support import fakes, world

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.adversary.arena import Arena

QUICK = {"AGENT_BOX_GRACE": "200ms"}
TREE = fakes.EVIL_TREE + "\nprint('tried|tree|GAINED|', flush=True)\n"
STAYS = TREE + "\ntime.sleep(300)\n"
STORM = """
mark = sys.argv[1]
made = []
for _ in range(150):
    try:
        made.append(subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(300)", mark], start_new_session=True))
    except OSError:
        break
print(f"tried|storm|GAINED|{len(made)}", flush=True)
"""


def _words(arena: Arena, source: str, mark: str, *options: str) -> list[str]:
    return ["fix", "outlive", *options, *fakes.command(arena.scratch / "tree.py", source, mark)]


def _is_up(arena: Arena, mark: str) -> Callable[[], bool]:
    def up() -> bool:
        box = arena.repo / ".agents" / "latest"
        said = box.joinpath("raw", "stream.jsonl")
        return said.is_file() and b"tried|tree" in said.read_bytes() and len(world.tree_of(mark)) >= fakes.EVIL_COUNT

    return up


def _all_gone(mark: str) -> None:
    world.eventually(lambda: not world.tree_of(mark))


@pytest.mark.parametrize("end", ["success", "failure", "storm"])
def test_nothing_survives_the_end_of_its_agent(end: str, arena: Arena, mark: str) -> None:
    """T138: daemons, sessions, the deaf and a crowd are gone when the command returns; faults P03, P06, P07."""
    source = {"success": TREE, "failure": TREE + "\nsys.exit(7)\n", "storm": STORM}[end]
    done = arena.run(*_words(arena, source, mark), env=QUICK)
    story = arena.story(done)
    assert story.tried, story.done.stderr
    assert story.status == {"success": "DONE", "failure": "CRASHED", "storm": "DONE"}[end]
    assert world.tree_of(mark) == []


def test_nothing_survives_a_timeout(arena: Arena, mark: str) -> None:
    """T137: the whole tree pays for its time; faults P05, P12."""
    story = arena.story(arena.run(*_words(arena, STAYS, mark, "--timeout", "3s"), env=QUICK))
    assert (story.status, story.tried) == ("CRASHED", {"tree": "GAINED"}), story.done.stderr
    assert story.failure.startswith("timeout")
    assert world.tree_of(mark) == []


def test_nothing_survives_a_stop(arena: Arena, mark: str, background: Callable[..., Any]) -> None:
    """T138: `stop` leaves nobody, nor the deaf; faults P03, P05."""
    process = background(*_words(arena, STAYS, mark), env=QUICK)
    world.eventually(_is_up(arena, mark))
    assert arena.command("stop").returncode == 0
    process.wait(30)
    assert world.state_of(arena.repo)["status"] == "STOPPED"
    assert world.tree_of(mark) == []


def test_nothing_survives_the_murder_of_the_supervisor(arena: Arena, mark: str, background: Callable[..., Any]) -> None:
    """T139: SIGKILL of the supervisor ends the tree as well, and the next command tells; faults P03, C08, C22."""
    process = background(*_words(arena, STAYS, mark), env=QUICK)
    world.eventually(_is_up(arena, mark))
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    _all_gone(mark)
    assert "CRASHED" in arena.command("status").stdout
    assert arena.command("verify").returncode == 0


KILLERS = {
    "guard": "os.kill(os.getppid(), signal.SIGKILL)",
    "supervisor": "os.kill(int(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1]), signal.SIGKILL)",
}


@pytest.mark.parametrize("victim", KILLERS)
@pytest.mark.parametrize("wall", ["none"], indirect=True)
def test_an_agent_that_kills_its_keepers_is_ended_and_told_of(victim: str, arena: Arena, mark: str) -> None:
    """T139: without a wall it can kill them; what is left of it is ended by the next command at the latest; fault M02."""
    source = f"{TREE}\n{KILLERS[victim]}\ntime.sleep(300)\n"
    done = arena.run(*_words(arena, source, mark), env=QUICK)
    assert done.returncode != 0
    assert "CRASHED" in arena.command("status").stdout
    _all_gone(mark)
    assert arena.command("verify").returncode == 0


PUSH = """
def push(number):
    for byte in b"touch evil\\n":
        fcntl.ioctl(number, 0x5412, bytes([byte]))
attempt("open", os.open, "/dev/tty", os.O_RDWR)
for number in (0, 1, 2):
    attempt(f"push {number}", push, number)
"""


def test_a_terminal_is_not_typed_into(arena: Arena) -> None:
    """T149: started at a real terminal, its agent has none, so nothing can be typed for the operator; faults S11, M15."""
    words = [*world.AGENT, "fix", "type", "--engine", "command", "--", *arena.program(PUSH)]
    at_terminal = [sys.executable, "-c", f"import pty, sys; sys.exit(pty.spawn({words!r}) >> 8)"]
    done = subprocess.run(
        at_terminal,
        cwd=arena.repo,
        env=os.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )
    story = arena.story(done)
    assert len(story.tried) == 4, done.stdout
    assert set(story.tried.values()) == {"HELD"}, story.said
