"""Ends a run that oversteps what it may use, goes in circles, or leaves no room on the disk for its own end."""

from __future__ import annotations

import errno

from agents import budget, units
from agents.errors import BoxError
from agents.loops import Loops
from agents.model import FailureKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.events import Event, Progress
    from agents.timers import Limits


def unchanging() -> object:
    """The stamp of a tree that nobody can change, as it is in a read-only run."""
    return None


class Referee:
    """Judges one attempt of a run by its *limits*.

    *stamp* returns a value that equals an earlier one where the agent's tree has not changed in between; it is asked
    only when a loop is suspected, so it may cost something. *free* returns the bytes of disk space that are left.
    """

    def __init__(self, limits: Limits, stamp: Callable[[], object], free: Callable[[], int]) -> None:
        self._limits = limits
        self._stamp = stamp
        self._free = free
        self._loops = Loops(after=limits.loop_after)
        self._circles: str | None = None

    def heard(self, event: Event, now: float) -> None:
        """Take note of *event*, heard at *now* (monotonic seconds)."""
        self._loops = self._loops.heard(event, now)
        if self._loops.is_suspicious and not self._circles:
            self._loops, self._circles = self._loops.judged(self._tree())

    def _tree(self) -> object:
        try:
            return self._stamp()
        except (OSError, BoxError):
            # A tree that cannot be looked at, perhaps for a moment, is none of which to say that it did not change.
            return object()

    def verdict(self, progress: Progress) -> tuple[FailureKind, str] | None:
        """Why the run has to end, or None; one that has given its result has ended by itself (P12, P13)."""
        if progress.result is not None:
            return None
        spent = budget.spent(self._limits, progress)
        if spent:
            return FailureKind.BUDGET, spent
        return (FailureKind.NO_PROGRESS, self._circles) if self._circles else None

    def shortage(self) -> str | None:
        """The sentence that says that the disk is nearly full, or None where there is room (C17)."""
        left, least = self._free(), self._limits.min_free
        if left >= least:
            return None
        return f"Only {units.format_size(left)} of disk space are left, less than {units.format_size(least)}."

    def remark(self, progress: Progress) -> str | None:
        """What is odd about the usage of a run that has ended: overstepped at its very end, or not fully read."""
        if progress.result is not None:
            spent = None if progress.result.is_error else budget.spent(self._limits, progress)
            return spent and f"it had given its result already: {spent}"
        if progress.unread and budget.usage(progress):
            return "it talked too fast for all of it to be read: it may have used more than is shown"
        return None


def trouble(why: OSError | BoxError) -> tuple[FailureKind, str]:
    """Failure kind and sentence for a disk that failed with *why*, or with the error that *why* reports."""
    cause = why if isinstance(why, OSError) else why.__cause__
    number = cause.errno if isinstance(cause, OSError) else None
    kind = FailureKind.ENOSPC if number in {errno.ENOSPC, errno.EDQUOT} else FailureKind.IO
    words = why.message if isinstance(why, BoxError) else f"The box cannot be written: {why.strerror or why}."
    return kind, words
