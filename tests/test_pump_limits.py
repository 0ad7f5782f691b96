"""The event loop with real processes: budgets, circles, a full disk, and a supervisor that was stopped itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from agents import procs
from agents.engines.stream_json import AGENT_JSON
from agents.follower import SIGHT, Follower
from agents.interrupts import Interrupts
from agents.model import FailureKind
from agents.pump import Ending, Pump
from agents.recorder import BURST, CHUNK, PipeRecorder
from agents.timers import Limits
from agents.times import Clock
from tests.support import boxes, fakes, world
from tests.support.fakes import INIT, result

if TYPE_CHECKING:
    from pathlib import Path

    from agents.events import Event, Progress


class Listener:
    """Hears everything and keeps nothing but the last of it."""

    def __init__(self) -> None:
        self.progress: Progress | None = None

    def event(self, event: Event, progress: Progress) -> None:
        self.progress = progress

    def beat(self, progress: Progress, lines: int, *, signs: bool) -> None:
        self.progress = progress

    def stalled(self, *, silent: bool) -> None:
        raise AssertionError(silent)


def drive(folder: Path, source: str, mark: str, limits: Limits, **more: Any) -> Ending:
    """Run the Python program *source* to its end under *limits*, as a supervisor does."""
    (folder / "in").touch()
    argv = fakes.program(folder / "agent.py", source, mark)
    env = {"PATH": os.environ["PATH"], procs.RUN_MARK: procs.mark(folder)}
    child = procs.spawn(argv, cwd=folder, env=env, stdin=folder / "in", spool=None, grace=limits.grace)
    with contextlib.ExitStack() as undo:
        undo.callback(child.close)
        assert child.stdout is not None
        stream = PipeRecorder(child.stdout, folder / "stream", limits.max_output)
        undo.callback(stream.close)
        stderr = PipeRecorder(child.stderr, folder / "stderr", limits.max_output, drop=True)
        undo.callback(stderr.close)
        follower = Follower(folder / "stream", AGENT_JSON)
        undo.callback(follower.close)
        interrupts = Interrupts()
        undo.callback(interrupts.close)
        return Pump(child, stream, stderr, follower, limits, Clock(), Listener(), **more).run(interrupts)


def saying(lines: list[Any], every: float, end: str = "") -> str:
    """A program that says *lines*, one after the other, and notes it when it is asked to go; then *end*."""
    return f"""
def leave(number, frame):
    open("left", "w").close()
    os._exit(0)
signal.signal(signal.SIGTERM, leave)
for line in {[json.dumps(line) for line in lines]!r}:
    print(line, flush=True)
    time.sleep({every})
{end}
"""


def turns(count: int) -> list[Any]:
    return [
        {"type": "assistant", "message": {"id": f"m{n}", "content": f"step {n}", "usage": {"input_tokens": 100}}}
        for n in range(count)
    ]


def circles(count: int) -> list[Any]:
    """*count* times the same call with the same answer, under ids of their own."""
    block = {"type": "tool_use", "name": "Bash", "input": {"command": "make"}}
    answer = {"type": "tool_result", "content": "nothing to be done"}
    return [
        event
        for n in range(count)
        for event in (
            {"type": "assistant", "message": {"id": f"m{n}", "content": [{**block, "id": f"t{n}"}]}},
            {"type": "user", "message": {"content": [{**answer, "tool_use_id": f"t{n}"}]}},
        )
    ]


@pytest.mark.parametrize(
    ("limits", "words"),
    [(Limits(max_turns=3), "3 turns"), (Limits(max_tokens=350), "350 tokens")],
    ids=["turns", "tokens"],
)
def test_a_spent_budget_ends_the_run_politely(limits: Limits, words: str, tmp_path: Path, mark: str) -> None:
    """P12: it is asked to go, and what it has said and used until then is known, so it can be resumed."""
    ending = drive(tmp_path, saying([INIT, *turns(200)], 0.2), mark, limits)
    assert (ending.cause, words in ending.message) == (FailureKind.BUDGET, True)
    assert (tmp_path / "left").exists()
    assert ending.progress.session_id == fakes.SESSION
    assert 4 <= ending.progress.tally.turns < 200
    assert world.tree_of(mark) == []


def test_a_run_that_has_given_its_result_was_faster_than_its_budget(tmp_path: Path, mark: str) -> None:
    """P12: its work is not thrown away; what it used is noted."""
    lines = "\n".join(json.dumps(line) for line in [INIT, *turns(9), result()])
    ending = drive(tmp_path, f"os.write(1, {lines.encode()!r} + b'\\n')", mark, Limits(max_turns=3))
    assert (ending.cause, ending.exit_code) == (None, 0)
    assert [note for note in ending.notes if "budget of 3 turns" in note]


@pytest.mark.parametrize("end", ["", "time.sleep(300)"], ids=["gone", "lingers"])
def test_a_result_in_a_flood_is_the_end_all_the_same(end: str, tmp_path: Path, mark: str) -> None:
    """P13, P14: it is heard though most of what came with it was passed over; who stays after it is ended."""
    noise = b'{"type":"progress"}\n' * (3 * SIGHT // 20)
    flood = json.dumps(INIT).encode() + b"\n" + noise + json.dumps(result()).encode() + b"\n" + noise
    (tmp_path / "flood").write_bytes(flood)
    copy = f"shutil.copyfileobj(open({str(tmp_path / 'flood')!r}, 'rb'), sys.stdout.buffer); sys.stdout.flush()"
    ending = drive(tmp_path, f"import shutil; {copy}\n{end}", mark, Limits(linger=1, grace=1))
    assert ending.progress.session_id == fakes.SESSION
    assert ending.progress.result
    assert ending.lines == flood.count(b"\n")
    assert (ending.cause, ending.lingered) == (None, bool(end))
    assert world.tree_of(mark) == []


def test_going_in_circles_ends_the_run_politely(tmp_path: Path, mark: str) -> None:
    """P12: the same command with the same answer, the tree unchanged: the sentence names it."""
    ending = drive(tmp_path, saying(circles(100), 0.05), mark, Limits(loop_after=5), stamp=lambda: "tree")
    assert ending.cause is FailureKind.NO_PROGRESS
    assert "Bash(make)" in ending.message
    assert "5 times" in ending.message
    assert (tmp_path / "left").exists()


@pytest.mark.parametrize("broken", [False, True], ids=["changing", "cannot be looked at"])
def test_a_tree_that_changes_is_no_circle(broken: bool, tmp_path: Path, mark: str) -> None:
    """P12: nor is one that nobody could look at."""
    looks: list[int] = []

    def stamp() -> object:
        looks.append(1)
        if broken:
            raise OSError(5, "Input/output error")
        return len(looks)

    ending = drive(tmp_path, saying([*circles(12), result()], 0.05), mark, Limits(loop_after=4), stamp=stamp)
    assert (ending.cause, ending.exit_code) == (None, 0)
    assert 2 <= len(looks) <= 12


def test_a_disk_that_is_nearly_full_ends_the_run_at_once(tmp_path: Path, mark: str) -> None:
    """C17: while its end can still be written; the grace would let it fill what is left."""
    left = iter([10_000, 10_000, 999])
    source = saying([INIT], 0, "time.sleep(300)")
    began = time.monotonic()
    ending = drive(tmp_path, source, mark, Limits(min_free=1000, grace=200), free=lambda: next(left))
    assert (ending.cause, "less than 1000 B" in ending.message) == (FailureKind.QUOTA, True)
    assert not (tmp_path / "left").exists()
    assert time.monotonic() - began < 150, "it did not wait for the grace"
    assert world.tree_of(mark) == []


def test_without_being_told_it_looks_at_the_disk_of_the_box(tmp_path: Path, mark: str) -> None:
    """C17: no disk is as large as this asks for."""
    ending = drive(tmp_path, "time.sleep(300)", mark, Limits(min_free=2**62))
    assert ending.cause is FailureKind.QUOTA


def test_a_flood_is_stopped_before_it_has_filled_what_has_to_be_left(tmp_path: Path, mark: str) -> None:
    """C17: in pieces of any size, and however late its end comes, no more than some bursts are recorded beyond."""
    room, streams = 4 * BURST, [tmp_path / "stream", tmp_path / "stderr"]

    def recorded() -> int:
        return sum(stream.stat().st_size for stream in streams)

    source = "while True: os.write(1, b'x' * 300_000), os.write(2, b'y' * 100_000)"
    ending = drive(tmp_path, source, mark, Limits(min_free=0, grace=200), free=lambda: room - recorded() - 1)
    assert ending.cause is FailureKind.QUOTA
    assert room <= recorded() < room + 3 * BURST + 2 * CHUNK


def test_a_supervisor_that_was_stopped_takes_nobody_for_silent(tmp_path: Path, mark: str) -> None:
    """C26: after its own sleep it first reads what was said meanwhile, and then judges."""
    stop_at, told = tmp_path / "stop", tmp_path / "told"
    source = f"""
for number in range(60):
    print("line", flush=True)
    time.sleep(0.1)
    if number == 3: open({str(stop_at)!r}, "w").close()
"""

    def supervise() -> None:
        ending = drive(tmp_path, source, mark, Limits(stall_after=2.5))
        told.write_text(f"{ending.cause} {ending.exit_code}")

    with boxes.child(supervise) as pid:
        world.eventually(stop_at.exists)
        os.kill(pid, signal.SIGSTOP)
        # Longer than the silence that is allowed; the agent goes on talking all the time.
        time.sleep(3.5)
        os.kill(pid, signal.SIGCONT)
        world.eventually(lambda: told.exists() and told.read_text(), 60)
    assert told.read_text() == "None 0"


def test_an_agent_that_stops_itself_is_silent_and_is_ended_all_the_same(tmp_path: Path, mark: str) -> None:
    """P28: a stopped process hears nothing but KILL."""
    source = "print('bye', flush=True); os.kill(os.getpid(), signal.SIGSTOP); time.sleep(300)"
    ending = drive(tmp_path, source, mark, Limits(stall_after=1, grace=0.3))
    assert ending.cause is FailureKind.STALLED
    assert world.tree_of(mark) == []
