"""The verb `replay`: a recorded run through the same machine again."""

from __future__ import annotations

import json
from types import MappingProxyType

from agents.errors import Tampered
from agents.verbs import options
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


def replay(target: options.Target = "latest", json_: options.Json = False) -> int:
    """Feed a finished run's recorded stream through the same machine again; show the first difference. Writes nothing.

    Example: ./agent replay latest
    """
    from agents import replaying

    context = options.here()
    name = context.store.resolve(target)
    done = replaying.replay(context, name)
    short = name.rpartition("__")[2]
    found = done.difference
    if json_:
        shown = records.asdict(done) | {"matches": found is None}
        if found:
            recorded, replayed = found.shown()
            shown["difference"] = {"what": found.what, "recorded": recorded, "replayed": replayed}
        options.show(json.dumps(shown, indent=1))
        return Tampered.code if found else 0
    if found is None:
        options.show(f"replay {short}: {done.lines} lines, state, report and ledger facts match")
        return 0
    recorded, replayed = found.shown()
    options.show(f"replay {short}: {found.what} is not what the stream leads to")
    options.show(f"  recorded  {recorded}\n  replayed  {replayed}")
    return Tampered.code


VERBS: Final = MappingProxyType({"replay": replay})
"""What is typed for it."""
