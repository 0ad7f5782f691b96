"""INDEX.md as a file: drawn from the ledger while no writer waits, and dated by what it was drawn from."""

from __future__ import annotations

import contextlib
import os

from agents import files, locks, views
from agents.lockorder import Rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from agents.layout import Layout
    from agents.portraits import Portraits


class Dashboard:
    """The ledger's picture in the data folder of *layout*; *rows* tells what it shows and whether there is more."""

    def __init__(self, layout: Layout, rows: Callable[[], tuple[list[dict[str, Any]], bool]]) -> None:
        self._layout = layout
        self._rows = rows
        self._portraits: Portraits | None = None

    def draw(self, told: int | None = None, *, patient: bool = True) -> None:
        """Draw it, unless it shows already what the ledger was told at *told* (its modification time, ns).

        Of many that have written at once one draws for all who wait. Who is not *patient* leaves it to whoever is at
        it. A picture that cannot be written is left as it was.
        """
        lock = locks.Lock(self._layout.dashboard_lock, Rank.DASHBOARD)
        # A picture that cannot be hung must not cost the entry that it shows: the next one draws it again.
        with contextlib.suppress(OSError):
            if not lock.acquire(-1 if patient else 0):
                return
            try:
                if told is None or not self._shows(told):
                    self._write()
            finally:
                lock.release()

    def _shows(self, told: int) -> bool:
        """Whether it was drawn after *told*; in the same tick of the kernel's clock it may have been before."""
        return self._layout.dashboard.exists() and self._layout.dashboard.stat().st_mtime_ns > told

    def _write(self) -> None:
        moment = self._now()
        rows, older = self._rows()
        page = views.index_md(rows, older=older, lives=self._lives())
        # Dated by the moment before it was looked at: an entry that came meanwhile is younger, and so is known to be
        # missing here even if its writer is killed before it gets to draw.
        files.write(self._layout.dashboard, page.encode(), durable=False, ordered=True, moment=moment)

    def _now(self) -> int:
        """The time by the clock that dates the ledger, ns: that of the kernel, which goes in ticks."""
        os.utime(self._layout.dashboard_lock)
        return self._layout.dashboard_lock.stat().st_mtime_ns

    def _lives(self) -> list[str]:
        """Lines on the hollow agents; what draws them is imported where some have lived."""
        if not any((self._layout.memory / each).is_dir() for each in ("identity", "goals")):
            return []
        if self._portraits is None:
            from agents.portraits import Portraits

            self._portraits = Portraits(self._layout)
        return self._portraits.lines()
