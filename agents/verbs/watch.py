"""The verb `watch`: what the agents are at, as a picture that is drawn again every second."""

from __future__ import annotations

import time
from types import MappingProxyType

from agents.verbs import options
from agents.verbs.words import Annotated, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


Once = Annotated[bool, Option("--once", help="Print it once, as plain text; so it is in a pipe, too.")]

_PIPE_WIDTH = 100


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


VERBS: Final = MappingProxyType({"watch": watch})
"""What is typed for it."""
