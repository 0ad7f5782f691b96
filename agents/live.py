"""Tells a living run's progress: to its state on disk, at most once a second, and to the operator's terminal."""

from __future__ import annotations

import contextlib
import os
import sys

from agents import budget, plan, redact, views
from agents.events import Init
from agents.model import Actor, Failure, FailureKind, Status, step
from agents.times import iso
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TextIO

    from agents.context import Context
    from agents.events import Event, Progress
    from agents.model import RunMeta, RunState

_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SAID: Final = 200
"""Characters of what an agent said that are shown at most."""
_PLAIN_EVERY: Final = 30.0
"""Seconds between two lines of progress where nobody looks at a terminal."""


class Line:
    """One line that is redrawn on a terminal; on anything else a plain line now and then.

    A terminal that was closed or a reader that had enough costs the line, never the run.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        self._frame = 0
        self._last: float | None = None

    def show(self, text: str, now: float) -> None:
        """Show *text* at the instant *now* (monotonic seconds)."""
        if self._live:
            self._frame += 1
            shown = f"{_FRAMES[self._frame % len(_FRAMES)]} {views.plain(text, self._width())}"
            # No wrapping: of a line that wraps only the last part could be taken back.
            self._write(f"\r\x1b[K\x1b[?7l{shown}\x1b[?7h")
        elif self._last is None:
            self._last = now
        elif now - self._last >= _PLAIN_EVERY:
            self._write(f"{views.plain(text, 200)}\n")
            self._last = now

    def _width(self) -> int:
        try:
            columns = os.get_terminal_size(self._out.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        # A terminal that does not know its size says 0.
        return max((columns or 80) - 3, 10)

    def clear(self) -> None:
        """Leave the terminal as it was."""
        if self._live and self._frame:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._out.write(text)
            self._out.flush()


class LiveRun:
    """The listener of one run (:class:`agents.vigil.Listener`)."""

    def __init__(self, context: Context, meta: RunMeta, line: Line) -> None:
        self._context = context
        self._meta = meta
        self._line = line
        self._started = context.clock.mono()

    def event(self, event: Event, progress: Progress) -> None:
        """Keep the session id the moment it is known: without it nothing can be resumed."""
        if isinstance(event, Init):
            known = {"session_id": progress.session_id, "model": progress.model}
            self._save({name: value for name, value in known.items() if value}, durable=True)

    def beat(self, progress: Progress, lines: int, *, signs: bool) -> None:
        """Write the heartbeat if the agent gave a sign of life, and redraw the line."""
        if signs:
            clock = self._context.clock
            beat = {"last_heartbeat": iso(clock.wall()), "clock_offset": clock.offset(), "events": lines}
            self._save(beat, durable=False)
        lasted = views.span(self._context.clock.mono() - self._started)
        doing = plan.title(redact.beginning(progress.said, _SAID)) if progress.said else "at work"
        meta = self._meta
        spent = views.spent(budget.usage(progress))
        told = [f"{meta.run_type} {meta.short_id}", lasted, f"{lines} events", *([spent] if spent else []), doing]
        self._line.show(" · ".join(told), self._context.clock.mono())

    def stalled(self, *, silent: bool) -> None:
        """Mark the run STALLED, or ACTIVE again: only with ``on_stall: mark`` (T141)."""
        failure = Failure(kind=FailureKind.STALLED, message="It is silent; it was left alone as asked for.")

        def change(state: RunState) -> RunState:
            """*state* with what the silence makes of it; a run that has ended meanwhile stays as it is."""
            if silent and state.status is Status.ACTIVE:
                return step(state, Status.STALLED, Actor.OWNER, failure=failure)
            if not silent and state.status is Status.STALLED:
                return step(state, Status.ACTIVE, Actor.OWNER, failure=None)
            return state

        state = self._context.store.update(self._meta.run_name, change)
        event = "run.stalled" if silent else "run.resumed"
        self._context.journal.append(event, self._meta.run_name, plan.facts(self._meta, state))

    def _save(self, changes: dict[str, Any], *, durable: bool) -> None:
        name = self._meta.run_name
        self._context.store.update(name, lambda state: records.replace(state, **changes), durable=durable)
