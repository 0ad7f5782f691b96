"""Processes: who is alive, who may be signalled, and what is ended when the guard is no help."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from agents import guard, procs
from agents.errors import HostError
from tests.support import fakes, world
from tests.support.wards import hear, output, ward

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOBODY = 2**22 + 1
SLEEP = "import time; time.sleep(300)"
BURN = "while True: pass"


@pytest.fixture
def stranger() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes that are none of any run's."""
    started: list[subprocess.Popen[bytes]] = []

    def start(source: str = SLEEP, **env: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-IS", "-c", source], env={"PATH": os.defpath, **env})
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def identity(process: subprocess.Popen[bytes]) -> tuple[int, int | None]:
    return process.pid, procs.start_of(process.pid)


def test_the_machine_and_its_boot_have_an_identity() -> None:
    assert len(procs.boot_id()) == 36
    assert procs.boot_id() == procs.boot_id()
    assert len(procs.host_id()) == 16
    assert procs.host_id() == procs.host_id()


def test_a_process_is_its_pid_and_its_start(stranger) -> None:
    """T140: the same pid with another start time is somebody else."""
    pid, start = identity(stranger())
    assert start is not None
    assert procs.is_alive(pid, start)
    assert not procs.is_alive(pid, start - 1)
    assert not procs.is_alive(pid, None)
    assert not procs.is_alive(None, start)
    assert procs.start_of(None) is None
    assert procs.start_of(NOBODY) is None


def test_a_zombie_is_dead(stranger) -> None:
    """P04: ended but not waited for yet."""
    process = stranger("")
    world.eventually(lambda: procs.start_of(process.pid) is None)
    assert os.path.exists(f"/proc/{process.pid}")  # noqa: PTH110 - a process, not a file


class TestInterrupt:
    def test_reaches_the_process_it_means(self, stranger) -> None:
        process = stranger()
        assert procs.interrupt(*identity(process))
        assert process.wait(30) == -signal.SIGTERM

    def test_never_reaches_one_that_took_the_pid_over(self, stranger) -> None:
        """T140: a reused pid is never signalled."""
        process = stranger()
        pid, start = identity(process)
        assert start is not None
        assert not procs.interrupt(pid, start - 1)
        assert not procs.interrupt(pid, None)
        time.sleep(0.1)
        assert process.poll() is None

    def test_of_nobody_is_no_error(self) -> None:
        assert not procs.interrupt(NOBODY, 1)


class TestBusyTicks:
    def test_a_working_tree_uses_time_an_idle_one_does_not(self, stranger) -> None:
        worker = stranger(f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BURN!r}]); {SLEEP}")
        before = procs.busy_ticks(*identity(worker))
        world.eventually(lambda: procs.busy_ticks(*identity(worker)) > before + 5)
        for pid in guard.descendants(worker.pid):
            os.kill(pid, signal.SIGKILL)
        idle = stranger()
        world.eventually(lambda: guard.stat_fields(idle.pid)[:1] == [b"S"])
        ticks = procs.busy_ticks(*identity(idle))
        time.sleep(0.2)
        assert procs.busy_ticks(*identity(idle)) <= ticks + 1

    def test_of_nobody_is_nothing(self) -> None:
        assert procs.busy_ticks(None, None) == 0
        assert procs.busy_ticks(NOBODY, 1) == 0


class TestEndRemains:
    def test_ends_what_carries_the_runs_mark(self, stranger) -> None:
        marked = stranger(SLEEP, **{procs.RUN_MARK: "run-a"})
        other = stranger(SLEEP, **{procs.RUN_MARK: "run-ab"})
        world.eventually(lambda: procs.marked("run-a") == [marked.pid])
        assert procs.end_remains("run-a", [], wait=0) == 1
        assert marked.wait(30) == -signal.SIGKILL
        assert other.poll() is None

    def test_ends_what_a_marked_process_has_started_without_its_environment(self, stranger, mark) -> None:
        source = (
            f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}, {mark!r}], env={{}}); {SLEEP}"
        )
        parent = stranger(source, **{procs.RUN_MARK: mark})
        world.eventually(lambda: len(world.tree_of(mark)) == 2)
        assert procs.end_remains(mark, [], wait=0) == 2
        assert parent.wait(30) == -signal.SIGKILL
        world.eventually(lambda: not world.tree_of(mark))

    def test_never_ends_a_stranger_that_took_a_pid_over(self, stranger) -> None:
        """T140: processes without the mark are left alone, also those that a record names: it may be a forgery."""
        process = stranger()
        pid, start = identity(process)
        assert start is not None
        assert procs.end_remains("run-of-nobody", [(pid, start - 1), (pid, None), (None, None)], wait=0) == 0
        assert procs.end_remains("run-of-nobody", [(pid, start)], wait=0) == 0
        time.sleep(0.1)
        assert process.poll() is None

    def test_waits_for_a_guard_that_is_at_it(self, stranger) -> None:
        going = stranger("import time; time.sleep(0.5)")
        assert procs.end_remains("run-of-nobody", [identity(going)], wait=30) == 0
        assert going.wait(30) == 0


class TestWithoutTheGuard:
    """The agent is of the same user, so it can do to its guard what it likes."""

    def test_a_guard_killed_by_its_ward_is_stood_in_for(self, stranger, tmp_path: Path, mark: str) -> None:
        """P03: the strays of the dead guard are ended, what this process had before is left alone."""
        kin = stranger()
        source = fakes.EVIL_TREE + "print('ready', flush=True)\nos.kill(os.getppid(), 9)\ntime.sleep(300)"
        with ward(tmp_path, fakes.program(tmp_path / "evil.py", source, mark)) as child:
            child.release()
            output(child, b"ready")
            world.eventually(lambda: child.process.poll() is not None)
            assert len(world.tree_of(mark)) >= fakes.EVIL_COUNT
        assert world.tree_of(mark) == []
        assert kin.poll() is None

    def test_a_guard_stopped_by_its_ward_is_woken(self, tmp_path: Path, mark: str) -> None:
        source = "os.kill(os.getppid(), signal.SIGSTOP)\nprint('ready', flush=True)\ntime.sleep(300)"
        with ward(tmp_path, fakes.program(tmp_path / "a.py", source, mark), grace=30) as child:
            child.release()
            output(child, b"ready")
            world.eventually(lambda: guard.stat_fields(child.process.pid)[:1] == [b"T"])
            child.end(politely=True)
            hear(child, "reaped")
        assert world.tree_of(mark) == []

    def test_a_guard_stopped_for_good_does_not_keep_the_supervisor(self, tmp_path: Path, mark: str) -> None:
        source = "print('ready', flush=True)\nwhile True: os.kill(os.getppid(), signal.SIGSTOP)"
        with ward(tmp_path, fakes.program(tmp_path / "a.py", source, mark)) as child:
            child.release()
            output(child, b"ready")
        assert world.tree_of(mark) == []


def test_a_machine_that_cannot_start_anything_says_so(tmp_path: Path) -> None:
    """C21: an argument list that the kernel refuses is an error of the machine, with nothing left open."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as many as there are
    with pytest.raises(HostError, match="cannot be started"), ward(tmp_path, ["/bin/true", "x" * 3_000_000]):
        pass
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - as many as there are


def test_a_spool_is_a_file_and_not_a_pipe(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    with ward(tmp_path, ["/bin/sh", "-c", "echo to the file; echo to the pipe >&2"], spool=spool) as child:
        assert child.stdout is None
        child.release()
        hear(child, "exit")
        world.eventually(lambda: spool.read_bytes() == b"to the file\n")
        assert os.read(child.stderr, 100) == b"to the pipe\n"
