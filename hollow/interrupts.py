"""Signals as an exception, and a stdout that never holds half a line because of one."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType
    from typing import Final, Self

# The supervisor's stop and the operator's Ctrl-C; SIGKILL follows where neither is heard.
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""What ends a cycle early; the exit code is then 128 plus the number."""


class Stopped(BaseException):
    """A signal asked the cycle to end. No :class:`Exception`: whoever catches those must not swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interrupts:
    """While entered, SIGTERM and SIGINT raise :class:`Stopped`, but never inside :meth:`held`."""

    def __init__(self) -> None:
        self._seen = 0
        self._holds = 0
        self._over = False
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def ignore(self) -> None:
        """Let the cycle finish: from here on signals do nothing."""
        self._over = True

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Put signals off until the block is done; they are raised at its end."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
        self._raise_if_due()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        # The first one names the exit code; the second only says it again.
        self._seen = self._seen or number
        self._raise_if_due()

    def _raise_if_due(self) -> None:
        if self._seen and not self._holds and not self._over:
            raise Stopped(self._seen)


class WholeLines(io.BufferedWriter):
    """A binary stream that writes each line whole: a signal waits until it is out."""

    def __init__(self, raw: io.RawIOBase, interrupts: Interrupts) -> None:
        super().__init__(raw)
        self._interrupts = interrupts

    def write(self, line: bytes, /) -> int:  # type: ignore[override]
        """Write *line* and flush it; returns its length."""
        with self._interrupts.held():
            super().write(line)
            super().flush()
        return len(line)


def private_stdout(interrupts: Interrupts) -> WholeLines:
    """Return the real standard output; whatever else prints to it from now on goes to standard error.

    Raises :class:`OSError` if there is no standard output.
    """
    if sys.stdout is not None:
        # What was printed before belongs in front of the first event, not between two.
        sys.stdout.flush()
    # By descriptor, not by sys.stdout: a library or a child process prints past Python's own stream.
    descriptor = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed: then nobody wants to read stray prints
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return WholeLines(io.FileIO(descriptor, "wb"), interrupts)
