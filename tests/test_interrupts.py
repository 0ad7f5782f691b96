"""Requests to stop are counted, and a process that is to end with its starter is asked to when that one dies."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from agents.interrupts import interrupts
from tests.support.world import PROJECT, eventually, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# The starter says the pid of its child and then waits; the child says how often it was asked to stop, and ends.
CHILD = f"""
import os, select, sys
sys.path.insert(0, {str(PROJECT)!r})
from agents.interrupts import end_with_parent, interrupts
with interrupts() as pending:
    end_with_parent()
    print("ready", os.getpid(), flush=True)
    select.select([pending.wakeup], [], [], 60)
    print("asked", pending.count, flush=True)
"""
STARTER = """
import signal, subprocess, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the suite itself may have been started with it ignored
child = subprocess.Popen([sys.executable, "-I", "-c", sys.argv[1], sys.argv[2]])
time.sleep(300)
"""


@pytest.fixture
def starter(mark: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has started :data:`CHILD`, which says what it says on the same pipe."""
    words = [sys.executable, "-I", "-c", STARTER, CHILD, mark]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_who_ends_with_its_starter_is_asked_to_stop_by_any_death_of_it(
    starter: subprocess.Popen[str], mark: str, death: signal.Signals
) -> None:
    """A starter that is killed cannot pass anything on, so the kernel does."""
    assert starter.stdout is not None
    ready, pid = starter.stdout.readline().split()
    assert (ready, int(pid) in tree_of(mark)) == ("ready", True)
    starter.send_signal(death)
    assert starter.stdout.readline() == "asked 1\n"
    eventually(lambda: not tree_of(mark))


def test_a_starter_that_lives_asks_for_nothing(starter: subprocess.Popen[str]) -> None:
    assert starter.stdout is not None
    starter.stdout.readline()
    assert select.select([starter.stdout], [], [], 0.5)[0] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_request_is_counted_wakes_and_kills_nobody(number: signal.Signals) -> None:
    """One is an orderly stop, two mean at once."""
    before = signal.getsignal(number)
    with interrupts() as pending:
        for count in (1, 2):
            os.kill(os.getpid(), number)
            eventually(lambda count=count: pending.count == count)
            assert select.select([pending.wakeup], [], [], 30)[0]
            pending.clear()
            assert not select.select([pending.wakeup], [], [], 0)[0]
    assert signal.getsignal(number) is before


def test_in_another_thread_nothing_is_counted_and_nothing_breaks() -> None:
    """Only the main thread may set handlers."""
    seen: list[object] = []

    def look() -> None:
        before = signal.getsignal(signal.SIGINT)
        with interrupts() as pending:
            seen.append((pending.count, signal.getsignal(signal.SIGINT) is before))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [(0, True)]


def test_a_flood_of_requests_does_not_block() -> None:
    """A pipe that nobody empties is full at some time."""
    with interrupts() as pending:
        for _ in range(100_000):
            pending.notice()
        assert pending.count == 100_000
