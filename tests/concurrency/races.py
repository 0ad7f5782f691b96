"""Two that are let go at the same moment, each in a process of its own, and what each came to."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agents.errors import BoxError
from tests.support.boxes import together

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

TIMES: Final = int(os.environ.get("AGENT_BOX_RACES", "3"))
"""How often each pair races; hundreds find more, and take longer."""


@dataclass(frozen=True, slots=True)
class Came:
    """What one of the two came to."""

    value: str
    """What it returned, or the sentence with which it was refused."""
    refused: bool = False


def race(folder: Path, chance: random.Random, apart: float, *actions: Callable[[], object]) -> list[Came]:
    """Let *actions* go at once, each up to *apart* seconds late; a refusal is an answer, any other error a failure."""
    delays = [chance.uniform(0, apart) for _ in actions]
    together([_kept(folder / f"came-{number}", *pair) for number, pair in enumerate(zip(delays, actions, strict=True))])
    return [Came(*json.loads((folder / f"came-{number}").read_text())) for number in range(len(actions))]


def _kept(place: Path, delay: float, action: Callable[[], object]) -> Callable[[], None]:
    """*action*, *delay* seconds late, with what it comes to written to *place*."""

    def go() -> None:
        time.sleep(delay)
        try:
            came = (str(action()), False)
        except BoxError as why:
            came = (why.message, True)
        place.write_text(json.dumps(came))

    return go
