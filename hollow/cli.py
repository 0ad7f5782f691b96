"""The command line of the agent process for whoever types it by hand; the supervisor's is read by hollow.orders."""

from __future__ import annotations

import uuid  # noqa: TC003 - Typer reads the annotations
from pathlib import Path  # noqa: TC003 - likewise
from typing import Annotated

import typer

from hollow import __version__, orders
from hollow.desk.cli import app as desk
from hollow.orders import LEAST_CTX, LEAST_TIMEOUT, Agent, MindName, RunType, Surroundings

app = typer.Typer(
    name="hollow",
    help="The agent process of Agent Box. `./agent` starts it; by hand it is of use for tests only.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
app.add_typer(desk, name="desk")


@app.callback()
def _root() -> None:
    """Keep `cycle` a verb of its own; with a single command Typer would drop its name."""


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


@app.command("cycle")
def cycle_verb(
    mind: Annotated[MindName, typer.Option(help="What thinks.")],
    run_type: Annotated[RunType, typer.Option(help="What the cycle is for.")],
    agent: Annotated[Agent, typer.Option(help="Who does it.")],
    repo: Annotated[Path, typer.Option(help="Top folder of the repository; the tools never leave it.")],
    index: Annotated[Path, typer.Option(help="Folder for the reflex mind's search index.")],
    session_id: Annotated[uuid.UUID, typer.Option(help="Stands in every event.")],
    model: Annotated[str, typer.Option(help="Model of the ollama mind.")] = "qwen3.5:9b",
    system_prompt: Annotated[str, typer.Option(help="The supervisor's words.")] = "",
    system_prompt_file: Annotated[Path | None, typer.Option(help="A file with them instead.")] = None,
    num_ctx: Annotated[int, typer.Option(min=LEAST_CTX, help="Context window in tokens.")] = 32768,
    keep_alive: Annotated[str, typer.Option(help="How long the server keeps the model loaded.")] = "10m",
    call_timeout: Annotated[float, typer.Option(min=LEAST_TIMEOUT, help="Seconds one model call may take.")] = 600.0,
    max_turns: Annotated[int, typer.Option(min=1, help="Generations at most.")] = 24,
    sandbox: Annotated[Surroundings, typer.Option(help="What surrounds this process.")] = Surroundings.NONE,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what an earlier session left in --repo.")
    ] = False,
    script: Annotated[Path | None, typer.Option(help="JSON list of turns for the scripted mind.")] = None,
    state: Annotated[Path | None, typer.Option(help="Folder of what the environment remembers.")] = None,
    run: Annotated[str, typer.Option(help="Name of the run, as the supervisor calls it.")] = "",
    substrate: Annotated[str, typer.Option(help="JSON object with settings of the environment.")] = "",
) -> None:
    """Run one cycle: the task on stdin, events on stdout, one JSON object a line.

    Exit codes: 0 done, 2 bad request, 3 the agent failed, 4 the machine failed, 128+n stopped by signal n.

    Example: echo "where are retries decided?" | python -m hollow cycle --mind reflex --run-type scout --agent cedar
    --repo . --index /tmp/index --session-id 00000000-0000-4000-8000-000000000000
    """
    raise typer.Exit(
        orders.begin(
            mind, run_type, agent, repo, index, str(session_id), model=model,
            system_prompt=_words(system_prompt, system_prompt_file), num_ctx=num_ctx, keep_alive=keep_alive,
            call_timeout=call_timeout, max_turns=max_turns, sandbox=sandbox, resume=resume, script=script, state=state,
            run=run, substrate=substrate,
        )
    )  # fmt: skip


def _words(text: str, file: Path | None) -> str:
    if file is None:
        return text
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError as why:
        raise typer.BadParameter(f"{file} cannot be read: {why.strerror}.") from None
