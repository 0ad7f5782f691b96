"""Verbs that make runs: scout, plan, review, benchmark, resume."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agents import control, core, launch, plan, redact, views
from agents.engines import registry
from agents.errors import OperatorError
from agents.model import HOST_FAILURES, Status
from agents.plan import Ask
from agents.verbs import options

if TYPE_CHECKING:
    from agents.context import Context
    from agents.core import Outcome

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


# Said with every run until there is a sandbox around it (design, section 8): whether its own tools hold it.
_ISOLATION = {
    True: "no sandbox; its tools can only read inside this repository",
    False: "no sandbox; it runs with your rights, and a change to this repository fails the run afterwards",
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
        flags = {
            "engine": engine, "model": model, "mind": mind, "timeout": timeout, "stall_after": stall_after,
            "max_output": max_output,
        }  # fmt: skip
        _check_quotes(program, sys.argv)
        ask = Ask(run_type=run_type, task=_task(task), argv=tuple(program or ()))
        if detach:
            return _detach(ask, flags)
        context = options.here(**flags)
        if json_:
            context = dataclasses.replace(context, say=lambda _: None)
        return _dry_run(context, ask, json_=json_) if dry_run else _start(context, ask, json_=json_)

    verb.__name__ = run_type
    return verb


def _check_quotes(program: list[str] | None, argv: list[str]) -> None:
    if program and "--" not in argv:
        raise OperatorError("The task is more than one word without quotes.", 'Type: ./agent scout "why is it slow?"')


def _task(given: str) -> str:
    return sys.stdin.buffer.read(plan.TASK_LIMIT + 1).decode("utf-8", "surrogateescape") if given == "-" else given


def _start(context: Context, ask: Ask, *, json_: bool) -> int:
    def claimed(name: str) -> None:
        control.report_claim(name)
        context.say(f"{ask.run_type} {name.rpartition('__')[2]} · box .agents/runs/{name}")
        context.say(f"isolation none: {_ISOLATION[registry.engine(context.config.engine).confined]}")

    return _show(context, core.start(context, ask, claimed=claimed), json_=json_)


def _show(context: Context, outcome: Outcome, *, json_: bool) -> int:
    box = context.store.box(outcome.meta.run_name)
    if json_:
        typer.echo(core.as_json(outcome, context))
    else:
        typer.echo(box.report.read_text("utf-8", "replace"))
        facts = plan.facts(outcome.meta, outcome.state)
        typer.echo(views.outcome(facts, f".agents/runs/{box.name}"), err=True)
        typer.echo(f"  report {_report(outcome)}", err=True)
    return exit_code(outcome)


def _report(outcome: Outcome) -> str:
    return ".agents/latest/" + ("plan.md" if outcome.meta.run_type == "plan" else "report.md")


def exit_code(outcome: Outcome) -> int:
    """Exit code of a run: 0 done, 2 stopped by its operator, 3 the agent's fault, 4 the machine's."""
    state = outcome.state
    if state.status in {Status.DONE, Status.REVIEW}:
        return 0
    if state.status is Status.STOPPED:
        return 2
    return 4 if state.failure and state.failure.kind in HOST_FAILURES else 3


def _dry_run(context: Context, ask: Ask, *, json_: bool) -> int:
    made, _ = core.decide(context, ask)
    env = launch.agent_environment(context, made, context.store.box(made.meta.run_name))
    shown = plan.describe(made, sorted(env))
    if json_:
        typer.echo(json.dumps(shown, indent=1))
        return 0
    import yaml

    typer.echo(redact.visible(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True), newlines=True))
    typer.echo("Nothing was touched.", err=True)
    return 0


def _detach(ask: Ask, flags: dict[str, Any]) -> int:
    given = [word for name, value in flags.items() if value for word in (f"--{name.replace('_', '-')}", str(value))]
    try:
        name = control.detach([ask.run_type, *given, "--", ask.task, *ask.argv])
    except control.Refused as why:
        typer.echo(why.words.rstrip(), err=True)
        return why.code
    short_id = name.rpartition("__")[2]
    typer.echo(name)
    typer.echo(f"  follow: ./agent logs -f {short_id}   stop: ./agent stop {short_id}", err=True)
    return 0


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
    context = options.here(timeout=timeout, stall_after=stall_after)
    return _show(context, core.resume(context, target, message), json_=json_)
