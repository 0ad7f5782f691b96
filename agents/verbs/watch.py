"""The verb `watch`: what the agents are at, as a picture that is drawn again every second."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from agents.verbs import options

Once = Annotated[bool, typer.Option("--once", help="Print it once, as plain text; so it is in a pipe, too.")]

_PIPE_WIDTH = 100


def register(app: typer.Typer) -> None:
    """Add the verb to *app*."""
    app.command()(watch)


def watch(once: Once = False, json_: options.Json = False) -> int:
    """Watch the agents: load, goal, last steps, requests and what was recorded last. Leave with q or Ctrl-C.

    Example: ./agent watch
    """
    from agents import screen, watchview
    from agents.watching import Watcher

    context = options.here()
    watcher = Watcher(context.layout, context.store)
    if json_:
        options.show(watchview.as_json(watcher.look(time.time())))
    elif once or not screen.can_draw():
        width = screen.size()[0] if screen.can_draw() else _PIPE_WIDTH
        options.show(watchview.plain(watcher.look(time.time()), width))
    else:
        screen.run(lambda columns, rows: watchview.lines(watcher.look(time.time()), columns, rows))
    return 0
