"""`agent demo`: a recorded run in a throw-away repository, with every artefact it leaves, in a few seconds."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from types import MappingProxyType

from agents import core, git
from agents.context import open_context
from agents.plan import Ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Final

HISTORY: Final = Path(__file__).with_name("demo.jsonl")
TASK: Final = "why is the checkout slow?"
SHOP: Final[Mapping[str, str]] = MappingProxyType(
    {
        "README.md": "# Shop\n\nA small shop, made for a demonstration.\n",
        "shop/db.py": (
            "import time\n\n\ndef connect():\n    time.sleep(0.05)  # a new connection each time\n    return {}\n"
        ),
        "shop/cart.py": (
            "from shop.db import connect\n\n\ndef total(items):\n    price = 0\n    for item in items:\n"
            "        price += connect().get(item, 0)\n    return price\n"
        ),
    }
)

# What is shown of the box, and how much of it.
SHOWN: Final = (
    ("meta.yaml", 14, "the request and its envelope, written once"),
    ("raw/stream.jsonl", 4, "every byte the agent said"),
    ("report.md", 20, "its answer, secrets taken out"),
)


def play(flags: Mapping[str, object], environ: Mapping[str, str]) -> Iterator[str]:
    """Play the demonstration, saying what happens line by line; the repository is gone at the end."""
    with contextlib.ExitStack() as undo:
        root = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="agent-box-demo-"))).resolve() / "shop"
        root.mkdir()
        git.make_repository(root, SHOP, "A small shop")
        yield f"A throw-away repository: {root}"
        yield f'$ ./agent scout "{TASK}" --engine scripted -- demo.jsonl'
        # The witness in the user's state folder is left out: this ledger lives for seconds.
        here = {**environ, "HOME": "", "XDG_STATE_HOME": ""}
        context = open_context(root, flags={**flags, "engine": "scripted"}, environ=here, say=lambda _: None)
        outcome = core.start(context, Ask(run_type="scout", task=TASK, argv=(str(HISTORY),)))
        box = context.store.box(outcome.meta.run_name)
        yield f"  {outcome.state.status} · {outcome.state.events} events · .agents/runs/{box.name}/"
        for name, lines, what in SHOWN:
            yield f"\n── {name}: {what}"
            yield from _head(box.path / name, lines)
        yield "\n── .agents/INDEX.md: the dashboard"
        yield from _head(context.layout.dashboard, 6)
        yield "\n── .agents/INDEX.jsonl: the ledger, each line chained to the one before"
        yield from _head(context.layout.ledger, 3)
        yield '\nNow yours: cd to a git repository and type  /path/to/agent scout "how does this work?"'


def _head(path: Path, lines: int) -> Iterator[str]:
    every = path.read_text("utf-8", "replace").splitlines()
    for line in every[:lines]:
        yield f"   {line[:150]}{'…' if len(line) > 150 else ''}"  # noqa: PLR2004 - a terminal's width and a half
    if len(every) > lines:
        yield f"   … {len(every) - lines} more lines"
