"""Signals as a count: what Ctrl-C asks of a running supervisor, without an exception in the middle of a write."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

from agents import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Final

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """How often the operator has asked to stop; :attr:`wakeup` becomes readable when it happens."""

    def __init__(self) -> None:
        self.count = 0
        """One is an orderly stop, two or more mean at once."""
        self.wakeup, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def notice(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Count one request to stop (a signal handler)."""
        self.count += 1
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")

    def clear(self) -> None:
        """Empty the wake-up pipe."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.wakeup, 4096)

    def close(self) -> None:
        """Close the wake-up pipe."""
        os.close(self.wakeup)
        os.close(self._write)


_PDEATHSIG: Final = 1  # linux/prctl.h


def end_with_parent() -> None:
    """Have this process asked to stop when the one that started it dies, by whatever death."""
    parent = os.getppid()
    guard.prctl(_PDEATHSIG, signal.SIGTERM)
    # It may have died in between.
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Count SIGINT, SIGTERM and SIGHUP for the time of the ``with`` instead of dying of them.

    Only the main thread may set handlers; in another one nothing is counted.
    """
    pending = Interrupts()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, pending.notice) for number in _STOPPING}
    try:
        yield pending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        pending.close()
