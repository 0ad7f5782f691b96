"""Commands of the operator's in a cell: their exit code, their output with an end, their time with an end, nothing left."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agents import checks, landlock
from agents.cell import Cell
from tests.support import cells, fakes, needs, world

if TYPE_CHECKING:
    from collections.abc import Callable

LEVELS = ("full", "partial", "none")


@pytest.fixture(params=LEVELS)
def run(request, tmp_path: Path) -> Callable[..., checks.Checked]:
    """Runs a command in a cell of each level, in a folder of its own."""
    if request.param == "full" and needs.why_no_bwrap():
        needs.lacking(needs.why_no_bwrap())
    if request.param == "partial" and landlock.abi() < landlock.SCOPE_SINCE:
        pytest.skip("Landlock here is too old")
    work = tmp_path / "work"
    work.mkdir()
    home = Path(sys.executable).resolve().parents[1]

    def start(command: str, *, timeout: float = 60, limit: int = 100_000, **more) -> checks.Checked:
        cell = Cell(level=request.param, cwd=work, write=(work,), read=(home, tmp_path / "programs"), network=False)
        return checks.run_command(
            command,
            cell,
            {**cells.ENV, **more.pop("env", {})},
            timeout=timeout,
            log=tmp_path / "log",
            limit=limit,
            **more,
        )

    return start


@pytest.mark.parametrize(
    ("command", "code", "tail"),
    [
        ("true", 0, ""),
        ("exit 3", 3, ""),
        ("echo out; echo err >&2; echo out", 0, "out\nerr\nout\n"),
        ("printf 'a\\377b'", 0, "a\N{REPLACEMENT CHARACTER}b"),
        ("cat", 0, ""),
        ("no-such-program-anywhere", 127, "not found"),
        ("if", 2, ""),
        ('echo $ONLY; test -z "$HOME"', 0, "this\n"),
        ("pwd > where; cat where | wc -l", 0, "1\n"),
    ],
)
def test_a_command_ends_as_its_shell_says(command: str, code: int, tail: str, run) -> None:
    """T137: exit code, both outputs in one order, no input, no environment but the given one."""
    done = run(command, env={"ONLY": "this"})
    assert (done.exit_code, done.timed_out, done.stopped, done.command) == (code, False, False, command)
    assert tail in done.tail
    assert 0 < done.seconds < 60


def test_a_command_that_is_killed_is_told(run) -> None:
    """P25: a signal is a negative number or, from inside of a sandbox, what a shell makes of it."""
    assert run("kill -9 $$").exit_code in {-signal.SIGKILL, 128 + signal.SIGKILL}


def test_a_command_out_of_time_is_ended_with_its_tree(run, tmp_path: Path, mark: str) -> None:
    """P05: TERM, grace, KILL; what it had started in other sessions goes too."""
    (tmp_path / "programs").mkdir()
    argv = fakes.program(
        tmp_path / "programs" / "evil.py", fakes.EVIL_TREE + "print('ready', flush=True)\ntime.sleep(300)", mark
    )
    done = run(" ".join([str(Path(argv[0]).resolve()), *argv[1:]]), timeout=3)
    assert done.timed_out
    assert not done.stopped
    assert done.exit_code is None
    assert "ready" in done.tail
    world.eventually(lambda: not world.tree_of(mark))


def test_a_command_may_clean_up_before_its_time_is_over(run) -> None:
    done = run("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done", timeout=1.5)
    assert done.timed_out
    assert done.exit_code is None
    assert done.tail.startswith("up\n")
    assert done.tail.endswith("bye\n")


def test_somebody_who_asks_to_stop_is_heard(run) -> None:
    """C23: Ctrl-C during a check ends the check."""
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 2

    done = run("echo up; sleep 300", stop=stop)
    assert done.stopped
    assert not done.timed_out
    assert done.exit_code is None
    assert done.seconds < 60


def test_a_child_that_holds_the_output_open_is_not_waited_for(run, mark: str) -> None:
    """P07: the end of the command is the end."""
    done = run(f"sleep 300 {mark} 2> /dev/null & sleep 300 & echo up")
    assert done.exit_code == 0
    assert done.tail == "up\n"
    assert done.seconds < 60
    assert world.tree_of(mark) == []


def test_much_output_is_read_and_cut(run, tmp_path: Path) -> None:
    """P14: the log has an end, the command gets its exit code, and the tail is the last of it."""
    done = run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last", limit=1000)
    log = (tmp_path / "log").read_bytes()
    assert done.exit_code == 0
    assert done.tail.endswith("x\nlast\n")
    assert len(done.tail) == 4000
    assert log.startswith(b"$ head -c 3000000")
    assert 1000 <= len(log) < 1100
    assert log.endswith(b"more bytes were left out]\n")


def test_several_commands_share_a_log(run, tmp_path: Path) -> None:
    run("echo one")
    run("echo two")
    assert (tmp_path / "log").read_text() == "$ echo one\none\n$ echo two\ntwo\n"
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_a_log_that_is_a_link_is_not_written_through(run, tmp_path: Path) -> None:
    """An agent without a sandbox may have put it there."""
    (tmp_path / "log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        run("echo x")
    assert not (tmp_path / "elsewhere").exists()


def test_nothing_stays_open(run) -> None:
    run("true")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as many as there are
    run("echo x; exit 1")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - as many as there are
