"""Options that several verbs share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agents.context import Context, open_context
from agents.errors import HostError

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Target = Annotated[str, typer.Argument(help="latest, last-fail, an id, a run name or a prefix of one.")]
Engine = Annotated[str | None, typer.Option(help="What drives the agent: hollow, command, scripted.")]
Model = Annotated[str | None, typer.Option(help="The model, in the engine's own spelling.")]
Mind = Annotated[str | None, typer.Option(help="What thinks inside hollow: auto, ollama, reflex.")]
Timeout = Annotated[str | None, typer.Option(help="End the run after this long, like 90s or 10m.")]
StallAfter = Annotated[str | None, typer.Option(help="Silence that counts as stalled, like 5m.")]
MaxOutput = Annotated[str | None, typer.Option(help="End the run when it has printed this much, like 2GiB.")]
Detach = Annotated[bool, typer.Option("--detach", "-d", help="Return at once; see logs -f and stop.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would happen; touch nothing.")]


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
    if context.layout.data.is_dir():
        from agents.sweep import sweep

        sweep(context)
    return context
