"""A terminal that is drawn on again and again and left as it was, however that ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

from agents.interrupts import interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Final

    from agents.interrupts import Interrupts
    from agents.watchview import Line

EVERY: Final = 1.0
"""Seconds between two pictures."""
_LEAVING: Final = frozenset({b"", b"q", b"Q", b"\x03", b"\x04", b"\x1b"})
"""What ends it when it is typed alone: a longer code that begins with escape is a cursor key. Nothing at all is the end
of a terminal that was closed."""
_USUAL: Final = (80, 24)


def can_draw(stream: Any = None) -> bool:
    """Whether *stream* (standard output) is a terminal that knows how to move its cursor."""
    out = stream if stream is not None else sys.stdout
    return bool(out.isatty()) and os.environ.get("TERM", "dumb") not in {"", "dumb", "unknown"}


def size() -> tuple[int, int]:
    """Columns and lines of the terminal on standard output; a terminal that does not know says 0."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return _USUAL
    return found.columns or _USUAL[0], found.lines or _USUAL[1]


def run(draw: Callable[[int, int], Sequence[Line]], every: float = EVERY) -> None:
    """Show what *draw* gives for so many columns and lines, every *every* seconds, until a key or a signal ends it.

    The alternate screen, the cursor and the modes of the terminal are put back in any case: after q, Ctrl-C, SIGTERM,
    a hang-up, and an exception of *draw*, which is raised again. A terminal that is gone ends it like a key.
    """
    try:
        with interrupts() as pending, _unsuspended(), _keys() as keys, _picture() as show:
            while not pending.count:
                columns, rows = size()
                show(draw(columns, rows), columns, rows)
                if _left(pending, keys, time.monotonic() + every):
                    return
    except OSError:
        # Nobody is there to read it any more; nothing must be written at exit either.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _unsuspended() -> Iterator[None]:
    """Ctrl-Z would leave the shell in the alternate screen, without a cursor: it does nothing here."""
    before = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


@contextlib.contextmanager
def _keys() -> Iterator[int | None]:
    """Standard input by single keys, unseen; None where it is no terminal. Its modes are put back."""
    import termios
    import tty

    if sys.stdin is None or not sys.stdin.isatty():
        yield None
        return
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    try:
        tty.setcbreak(handle)
        yield handle
    finally:
        # A terminal that was hung up takes no settings any more.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(handle, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _picture() -> Iterator[Callable[[Sequence[Line], int, int], None]]:
    """The alternate screen; yields what draws lines on so many columns and rows."""
    from rich.console import Console, ConsoleDimensions
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:

        def show(drawn: Sequence[Line], columns: int, rows: int) -> None:
            """One picture."""
            console.size = ConsoleDimensions(columns, rows)
            text = Text(no_wrap=True, overflow="crop", end="")
            for number, line in enumerate(drawn):
                text.append(("\n" if number else "") + line.text, line.style or None)
            live.update(text, refresh=True)

        yield show


def _left(pending: Interrupts, keys: int | None, until: float) -> bool:
    """Wait *until* then (monotonic seconds) or for a key or a signal; returns whether it is time to leave."""
    waited = [pending.wakeup, *([] if keys is None else [keys])]
    while not pending.count and (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select(waited, [], [], left)
        if keys is not None and keys in ready and os.read(keys, 64) in _LEAVING:
            return True
    return pending.count > 0
