"""`agent logs`: the recorded stream as people read it, or raw, once or while it grows."""

from __future__ import annotations

import os
import time

from agents import events, files, locks, redact
from agents.errors import OperatorError
from agents.sweep import dialect_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Final

    from agents.context import Context
    from agents.events import Dialect, Event

_HEAD: Final = 200
"""Characters that are shown of an argument, or of a line that could not be read."""
_PAUSE = 0.2
_LONGEST = 64 * 1024
"""Bytes of one line that are shown; the whole of it is in the box."""


def follow(context: Context, name: str, *, to_the_end: bool, whole: bool = False) -> Iterator[bytes]:
    """Lines of the run's stream, huge ones cut unless *whole*; with *to_the_end* goes on until the run is over."""
    path = context.store.box(name).stream
    if not path.exists() and not to_the_end:
        raise OperatorError("This run has said nothing yet.", f"Type: ./agent logs -f {name.rpartition('__')[2]}")
    while to_the_end and not path.exists() and _lives(context, name):
        time.sleep(_PAUSE)
    if not path.exists():
        return
    with os.fdopen(files.open_regular(path), "rb") as stream:
        lines = _Lines(stream, whole=whole)
        while True:
            # Asked before reading: what came between the last read and the end is still read.
            lives = to_the_end and _lives(context, name)
            yield from lines.take(final=not lives)
            if not lives:
                return
            time.sleep(_PAUSE)


class _Lines:
    """Lines of a growing file, in pieces of bounded size; the rest of a huge one is passed over unless *whole*."""

    def __init__(self, stream: IO[bytes], *, whole: bool) -> None:
        self._stream = stream
        self._whole = whole
        self._inside = False
        """Whether the next bytes are the rest of a line whose beginning was given."""

    def take(self, *, final: bool) -> Iterator[bytes]:
        """What has come since the last call; a line without its end waits for it unless this is the *final* look."""
        while piece := self._stream.readline(_LONGEST):
            ended, inside = piece.endswith(b"\n"), self._inside
            if not (ended or inside or final) and len(piece) < _LONGEST:
                self._stream.seek(-len(piece), os.SEEK_CUR)
                return
            self._inside = not ended
            if self._whole or not inside:
                yield piece


def _lives(context: Context, name: str) -> bool:
    """Whether anything may still be added: its supervisor holds the lock from before the first byte to the end."""
    return locks.is_locked(context.store.box(name).owner_lock)


def render(line: bytes, dialect: Dialect) -> str | None:
    """One line for a terminal, without secrets and anything that could drive it; None for what says nothing."""
    event = events.decode(line.rstrip(b"\n"), dialect)
    if isinstance(event, events.Garbage):
        # The line itself, whose beginning the event holds: a secret that was cut could not be known.
        head = line.rstrip(b"\n")[: 8 * _HEAD].decode("utf-8", "replace")
        text: str | None = redact.beginning(head, _HEAD)
    else:
        text = _text(event)
    return redact.visible(redact.redact(text), newlines=True).rstrip() if text else None


def _text(event: Event) -> str | None:
    shown: str | None = None
    match event:
        case events.Init(model=model):
            shown = f"◆ session started ({model or 'no model'})"
        case events.Said(text) | events.Output(text):
            shown = text
        case events.ToolCall(name, argument):
            shown = f"→ {name}({redact.beginning(argument, _HEAD)})"
        case events.ToolResult(is_error=True):
            shown = "← error"
        case events.Result() as result:
            shown = f"◆ {'failed' if result.is_error else 'done'}: {result.subtype}"
        case events.Fact(kind):
            shown = f"◇ {kind}"
    return shown


def rendered(context: Context, name: str, *, to_the_end: bool) -> Iterator[str]:
    """The run's stream, line by line, for people."""
    dialect = dialect_of(context.store.meta(name))
    for line in follow(context, name, to_the_end=to_the_end):
        shown = render(line, dialect)
        if shown:
            yield shown
