"""The command line of the agent process; the supervisor is the one who types it."""

from __future__ import annotations

import sys
import uuid  # noqa: TC003 - Typer reads the annotations
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - likewise
from typing import TYPE_CHECKING, Annotated

import typer

from hollow import __version__, cycle
from hollow.desk.cli import app as desk
from hollow.mind import Assignment

if TYPE_CHECKING:
    from collections.abc import Callable

    from hollow.mind import Mind, Thinker


class MindName(StrEnum):
    """What may think."""

    OLLAMA = "ollama"
    REFLEX = "reflex"
    SCRIPTED = "scripted"


class RunType(StrEnum):
    """What a cycle is for."""

    SCOUT = "scout"
    PLAN = "plan"
    REVIEW = "review"
    BENCHMARK = "benchmark"
    FIX = "fix"
    CYCLE = "cycle"
    """The agent's own life: no task is given, it finds its goal itself."""


class Agent(StrEnum):
    """Who does it."""

    CEDAR = "cedar"
    CIPHER = "cipher"
    VAULT = "vault"


class Surroundings(StrEnum):
    """What confines this process."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


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
    num_ctx: Annotated[int, typer.Option(min=2048, help="Context window in tokens.")] = 32768,
    keep_alive: Annotated[str, typer.Option(help="How long the server keeps the model loaded.")] = "10m",
    call_timeout: Annotated[float, typer.Option(min=0.1, help="Seconds one model call may take.")] = 600.0,
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
    makers: dict[MindName, Callable[[], Mind]] = {
        MindName.OLLAMA: lambda: _ollama(model, num_ctx, keep_alive, call_timeout),
        MindName.REFLEX: _reflex,
        MindName.SCRIPTED: lambda: _scripted(script),
    }
    words = _words(system_prompt, system_prompt_file)
    assignment = Assignment(
        task="", run_type=run_type.value, agent=agent.value, repo=repo.absolute(), index=index.absolute(),
        system_prompt=words, max_turns=max_turns,
    )  # fmt: skip
    order = cycle.Order(
        assignment=assignment, session_id=str(session_id), mind=makers[mind], surroundings=sandbox.value,
        resumed=resume, state=state.absolute() if state else None, run=run, substrate=substrate,
        thinker=_thinker(mind, agent, repo, index, model, num_ctx, keep_alive, call_timeout, script, state),
    )  # fmt: skip
    raise typer.Exit(cycle.run(order, sys.stdin.buffer if sys.stdin is not None else None))


def _thinker(
    mind: MindName, agent: Agent, repo: Path, index: Path, model: str, num_ctx: int, keep_alive: str,
    call_timeout: float, script: Path | None, state: Path | None,
) -> Callable[[Callable[..., None]], Thinker]:  # fmt: skip
    def made(fact: Callable[..., None]) -> Thinker:
        """The mind of a cycle, which says signs of life through *fact*."""
        from hollow.minds import thinking

        return thinking.make(
            mind.value, agent=agent.value, repo=repo.absolute(), index=index.absolute(), fact=fact, model=model,
            num_ctx=num_ctx, keep_alive=keep_alive, call_timeout=call_timeout, script=script,
            cursor=state / "script.json" if state else None,
        )  # fmt: skip

    return made


def _ollama(model: str, num_ctx: int, keep_alive: str, call_timeout: float) -> Mind:
    from hollow.minds.ollama import Ollama, Settings

    return Ollama(Settings(model=model, num_ctx=num_ctx, keep_alive=keep_alive, call_timeout=call_timeout))


def _reflex() -> Mind:
    from hollow.minds.reflex import Reflex

    return Reflex()


def _scripted(script: Path | None) -> Mind:
    from hollow.minds.scripted import Scripted

    if script is None:
        raise cycle.BadRequest("The scripted mind needs --script PATH.")
    return Scripted(script)


def _words(text: str, file: Path | None) -> str:
    if file is None:
        return text
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError as why:
        raise typer.BadParameter(f"{file} cannot be read: {why.strerror}.") from None
