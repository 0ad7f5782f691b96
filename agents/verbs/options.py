"""Options that several verbs share, spelled once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agents import files, glance
from agents.context import Context, open_context
from agents.errors import HostError
from agents.layout import COMMANDS
from agents.verbs.words import Annotated, Argument, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agents.layout import Box

Json = Annotated[bool, Option("--json", help="Print JSON.")]
Target = Annotated[str, Argument(help="latest, last-fail, an id, a run name or a prefix of one.")]
Engine = Annotated[str | None, Option(help="What drives the agent: hollow, claude, codex, command, scripted.")]
Model = Annotated[str | None, Option(help="The model, in the engine's own spelling.")]
Mind = Annotated[str | None, Option(help="What thinks inside hollow: auto, ollama, reflex.")]
Timeout = Annotated[str | None, Option(help="End the run after this long, like 90s or 10m.")]
StallAfter = Annotated[str | None, Option(help="Silence that counts as stalled, like 5m.")]
MaxOutput = Annotated[str | None, Option(help="End the run when it has printed this much, like 2GiB.")]
MaxTurns = Annotated[str | None, Option(help="Model turns the run may take.")]
MaxUsd = Annotated[str | None, Option(help="Dollars the run may cost.")]
MaxTokens = Annotated[str | None, Option(help="Tokens the run may use.")]
Sandbox = Annotated[str | None, Option(help="Least isolation the run needs: full, partial, none.")]
Isolation = Annotated[str | None, Option(help="Isolation to use: auto (the best there is), full, partial, none.")]
Network = Annotated[str | None, Option(help="Whether the agent reaches the network: auto, on, off.")]
Detach = Annotated[bool, Option("--detach", "-d", help="Return at once; see logs -f and stop.")]
DryRun = Annotated[bool, Option("--dry-run", help="Print what would happen; touch nothing.")]


def here(**flags: Any) -> Context:
    """The context of the repository around the current folder, with *flags* as settings."""
    try:
        folder = Path.cwd()
    except FileNotFoundError as why:
        raise HostError("The current folder is gone.", "cd to a folder that exists.") from why
    return open_context(folder, flags=flags)


def swept(**flags: Any) -> Context:
    """Like :func:`here`, after the watchdog's round: what it shows is the truth (seed 003, phase 3)."""
    context = here(**flags)
    if _has_work_for_a_sweep(context):
        # Imported here: most of the time nothing is alive, and what a sweep needs is a third of a verb's start-up.
        from agents.sweep import sweep

        sweep(context)
    return context


def _has_work_for_a_sweep(context: Context) -> bool:
    """Whether a run may be alive, or something of a dead one may be left."""
    layout = context.layout
    behind = glance.is_behind(str(layout.ledger), str(layout.dashboard))
    if behind or glance.set_aside(str(layout.data)) or (context.repo.common_dir / glance.COMMONS_LOCK).exists():
        return True
    places = ((layout.active, "*"), (layout.staging, "*"), (layout.root / COMMANDS, "run_*"))
    return any(True for folder, pattern in places if layout.data.is_dir() for _ in folder.glob(pattern))


def show(text: str, *, err: bool = False) -> None:
    """Print *text*; a reader that has had enough is no error, and the verb's own exit code stands."""
    stream = sys.stderr if err else sys.stdout
    try:
        print(text, file=stream, flush=True)
    except OSError as why:
        # Nothing more must be written to it, at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(why, BrokenPipeError):
            raise


def report(box: Box) -> str:
    """The report of the run in *box*, or nothing where there is none."""
    return (files.read_capped(box.report, _LARGEST_REPORT) or b"").decode("utf-8", "replace")


_LARGEST_REPORT = 16 * 1024 * 1024
