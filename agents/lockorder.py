"""The order in which one thread may wait for locks; waiting against it is a fault of this program, not of a user."""

from __future__ import annotations

import os
import threading
from enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class Rank(IntEnum):
    """The locks on files, outermost first (design, section 6): who waits for one holds only such as stand above it."""

    LIVE = 1
    """``locks/live.lock``: one ``agent live`` a repository."""
    AGENT = 2
    """``locks/agent-NAME.lock``: one cycle of an agent at a time."""
    MERGE = 3
    """``locks/merge.lock``: the gate, one decision at a time."""
    OWNER = 4
    """``private/owner.lock`` of a box: whoever holds it is the run's supervisor."""
    WORKTREES = 5
    """``agent-box.lock`` in the common git directory: registrations of work trees, and the commons."""
    REPO = 6
    """``locks/repo.lock``: the exclude list and the folders of slash commands."""
    STATE = 7
    """``private/state.lock`` of a box: every read-modify-write of its state."""
    ANCHOR = 8
    """``locks/anchor.lock``: the head of the ledger that the repository's ref keeps."""
    LEDGER = 9
    """``locks/ledger.lock``: the ledger, and its head in the user's state folder."""
    DASHBOARD = 10
    """``locks/dashboard.lock``: the ledger's picture."""


PATIENCE: Final = 10.0
"""Seconds. Who gives up after no more than so long may ask out of order: that can cost time, but never ends in a ring
of threads that wait for each other. It is how long the gate waits for another merge."""


class LockOrderError(RuntimeError):
    """A thread was about to wait for a lock that ranks no lower than one that it holds."""


class _Thread(threading.local):
    """What the current thread holds."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.held: list[Rank] = []


_THREAD: Final = _Thread()


def _mine() -> list[Rank]:
    # What a fork has copied is held by its parent.
    if _THREAD.process != os.getpid():
        _THREAD.process, _THREAD.held = os.getpid(), []
    return _THREAD.held


def check(rank: Rank, timeout: float) -> None:
    """Raise LockOrderError where this thread may not wait *timeout* seconds (negative: for ever) for a lock of *rank*.

    Two threads that wait in opposite orders would wait for ever; so would one for a second lock of the same rank.
    """
    innermost = max(_mine(), default=None)
    if innermost is not None and innermost >= rank and not 0 <= timeout <= PATIENCE:
        raise LockOrderError(f"The lock {rank.name} is waited for by one who holds {innermost.name}.")


def taken(rank: Rank) -> list[Rank]:
    """Note that this thread holds a lock of *rank*; returns the list to remove it from, whichever thread does that."""
    _mine().append(rank)
    return _mine()


def held() -> tuple[Rank, ...]:
    """The ranks of what this thread holds, in the order of taking."""
    return tuple(_mine())
