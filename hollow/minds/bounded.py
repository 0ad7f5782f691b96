"""A wall-clock bound around a blocking call that does not know when to give up."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Overdue(Exception):  # noqa: N818 - it says what happened
    """The call did not end in time."""


def within(
    seconds: float,
    work: Callable[[], T],
    abort: Callable[[], None],
    *,
    tick: Callable[[float], None] = lambda _passed: None,
    every: float = 15.0,
) -> T:
    """Return what *work* returns or raise what it raises, but raise :class:`Overdue` after *seconds*.

    The work is done in another thread, because timeouts of HTTP libraries hold for one read: a server that drips a byte
    a second never meets them. *abort*, called when time is up or a signal ends the wait, must make the work give up;
    whether it does or not, nobody waits for it. *tick* is told every *every* seconds how many have passed.
    """
    started = time.monotonic()
    future: Future[T] = Future()

    def worker() -> None:
        """Do the work and keep what came of it."""
        try:
            future.set_result(work())
        except BaseException as why:  # noqa: BLE001 - it is raised again where the caller waits
            future.set_exception(why)

    # A daemon, because a read that never ends must not keep the process from leaving.
    threading.Thread(target=worker, name="model-call", daemon=True).start()
    try:
        while True:
            passed = time.monotonic() - started
            if passed >= seconds:
                raise Overdue
            try:
                return future.result(timeout=min(every, seconds - passed))
            except TimeoutError:
                if future.done():  # the work itself raised it
                    raise
                if (passed := time.monotonic() - started) < seconds:
                    tick(passed)
    finally:
        if not future.done():
            abort()
