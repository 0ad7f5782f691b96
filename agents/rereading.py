"""Hears a recorded stream again: the events of one part of it, put together as a live supervisor puts them together."""

from __future__ import annotations

from agents.events import Init, Progress, reduce
from agents.follower import Follower
from essentials import records
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agents.events import Dialect, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a part of a stream tells."""

    progress: Progress = records.field(default_factory=Progress)
    lines: int = 0
    answer: str = ""
    """Of a program that prints plain text the end of it; empty for every other dialect."""
    greeted: Progress = records.field(default_factory=Progress)
    """What was known when the agent last said who it is: a live supervisor writes that down at once."""


def reread(
    path: Path,
    dialect: Dialect,
    start: int = 0,
    end: int | None = None,
    *,
    listen: Callable[[Event, Progress], None] | None = None,
) -> Heard:
    """What the stream *path* tells in *dialect* from its byte *start* up to its byte *end*; None is its own end.

    *listen* is told every event and what is known after it. The reading does not depend on the pace at which the bytes
    once came. Raises OSError where the stream cannot be read.
    """
    progress = greeted = Progress()
    follower = Follower(path, dialect, start, end)
    try:
        for event in follower.finish():
            progress = reduce(progress, event)
            greeted = progress if isinstance(event, Init) else greeted
            if listen:
                listen(event, progress)
        answer = follower.tail() if dialect.plain else ""
        return Heard(progress=progress, lines=follower.lines, answer=answer, greeted=greeted)
    finally:
        follower.close()


def attentive(dialect: Dialect) -> Dialect:
    """*dialect* read as nobody can who has to keep up: every line that could tell something, wherever it stands."""
    every = (*dialect.markers, *dialect.last, *dialect.opening, *dialect.counted)
    return records.replace(dialect, markers=every, last=(), opening=(), counted=())
