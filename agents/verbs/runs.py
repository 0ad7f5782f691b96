"""Verbs that make runs: scout, plan, review, benchmark, resume; what they do stands in `running`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from agents.verbs import options  # noqa: TC001 - Typer reads the annotations when the program runs

Task = Annotated[str, typer.Argument(help="What to do, in quotes; - reads it from standard input.")]
Program = Annotated[
    list[str] | None, typer.Argument(metavar="[-- PROGRAM ARGUMENT ...]", help="The program of --engine command.")
]

_HELP = {
    "scout": (
        'Answer a question about this repository, read-only.\n\nExample: ./agent scout "why is db latency high?"'
    ),
    "plan": ('Plan a change, read-only; writes plan.md.\n\nExample: ./agent plan "cache the price list"'),
    "review": ('Review what has changed, read-only.\n\nExample: ./agent review "the last commit"'),
    "benchmark": ('Find out how fast something is and why, read-only.\n\nExample: ./agent benchmark "start-up time"'),
}


def register(app: typer.Typer) -> None:
    """Add the verbs to *app*."""
    for run_type, text in _HELP.items():
        app.command(name=run_type, help=text)(_verb(run_type))
    app.command()(resume)


def _verb(run_type: str) -> Any:
    def verb(
        task: Task,
        program: Program = None,
        engine: options.Engine = None,
        model: options.Model = None,
        mind: options.Mind = None,
        timeout: options.Timeout = None,
        stall_after: options.StallAfter = None,
        max_output: options.MaxOutput = None,
        detach: options.Detach = False,
        dry_run: options.DryRun = False,
        json_: options.Json = False,
    ) -> int:
        from agents.verbs import running

        flags = {
            "engine": engine, "model": model, "mind": mind, "timeout": timeout, "stall_after": stall_after,
            "max_output": max_output,
        }  # fmt: skip
        ask = running.asked(run_type, task, program, sys.argv)
        if dry_run:
            return running.dry_run(ask, flags, json_=json_)
        return (running.detach if detach else running.start)(ask, flags, json_=json_)

    verb.__name__ = run_type
    return verb


def resume(
    target: options.Target = "latest",
    message: Annotated[str, typer.Argument(help="What to tell the agent in addition.")] = "",
    timeout: options.Timeout = None,
    stall_after: options.StallAfter = None,
    json_: options.Json = False,
) -> int:
    """Go on with a crashed, stalled or stopped run under the same envelope.

    Example: ./agent resume latest
    """
    from agents.verbs import running

    return running.resume(target, message, {"timeout": timeout, "stall_after": stall_after}, json_=json_)
