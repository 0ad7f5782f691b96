"""A vigil over one agent: its signs of life, its silence, and how long anything may still take."""

from __future__ import annotations

from agents.procs import busy_ticks
from agents.timers import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from agents.events import Event, Progress
    from agents.procs import Child
    from agents.timers import Due, Limits
else:
    Protocol = object  # its meaning is a type checker's


class Listener(Protocol):
    """Who is told how the run goes on."""

    def event(self, event: Event, progress: Progress) -> None:
        """Take note of *event*, which led to *progress*."""

    def beat(self, progress: Progress, lines: int, *, signs: bool) -> None:
        """Called at most about once a second; *signs* says whether the agent gave a sign of life since the last."""

    def stalled(self, *, silent: bool) -> None:
        """Called when a run that is only to be marked falls silent, and when it speaks again."""


class Vigil:
    """Knows since when *child* is silent, and what *limits* make of that; all instants are monotonic seconds.

    It begins at *now*. *listener* is told of a run that is only to be marked.
    """

    def __init__(self, child: Child, limits: Limits, listener: Listener, now: float) -> None:
        self._child = child
        self._limits = limits
        self._listener = listener
        self._timers = Timers(now, now)
        self._marked = False
        self._ticks: int | None = None
        """CPU time of the tree when its silence began; None while it talks."""
        self.signs = False
        """Whether there was a sign of life since the last :meth:`watch`."""

    def wait(self, now: float) -> float:
        """Seconds from *now* until the next limit is over."""
        return self._timers.wait(self._limits, now)

    def due(self, now: float) -> Due | None:
        """The limit that is over at *now*, when everything that was said until then has been heard."""
        return self._timers.due(self._limits, now)

    def signed(self, now: float) -> None:
        """The agent said something at *now*."""
        self.signs, self._ticks = True, None
        self._timers = self._timers.sign(now)
        if self._marked:
            self._marked = False
            self._listener.stalled(silent=False)

    def resulted(self, now: float) -> None:
        """The agent gave a result at *now*."""
        self._timers = self._timers.result(now)

    def watch(self, progress: Progress) -> bool:
        """Whether there was a sign of life since the last call; *progress* is what has been heard."""
        if self._ticks is None and not self.signs and progress.in_flight:
            self._ticks = self._busy()
        signs, self.signs = self.signs, False
        return signs

    def endures(self, progress: Progress, now: float) -> bool:
        """Whether the silence, which is as long as it may be at *now*, does not end the run (T141).

        It is forgiven while a tool call is in flight and its tree works, and may be one that is only to be marked.
        """
        ticks = self._busy()
        works = progress.in_flight is not None and ticks > (self._ticks or 0)
        self._ticks, self._timers = ticks, self._timers.sign(now)
        if works:
            self.signs = True
            return True
        if self._limits.on_stall == "reap":
            return False
        if not self._marked:
            self._marked = True
            self._listener.stalled(silent=True)
        return True

    def _busy(self) -> int:
        return busy_ticks(self._child.pid, self._child.start)
