"""The operator's verbs on what the agents' environment remembers: parse, call, show, exit."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hollow.desk.trouble import Broken, Trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hollow.memory.memory import Memory

State = Annotated[Path, typer.Option(help="Folder with the agents' memory.")]
Repo = Annotated[Path, typer.Option(help="The repository: whether a file that is named exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Id = Annotated[str, typer.Argument(help="Id of the request, like req-0123456789ab.")]
Again = Annotated[bool, typer.Option("--again", help="Change an answer that stands.")]

RUN_MARKS = ("AGENT_BOX_MARK", "AGENT_BOX_RUN")
"""Variables that every process of a run carries; what decides is no verb for an agent (T24)."""

_LONGEST = 64 * 1024

app = typer.Typer(help="What the agents remember, for their operator.", no_args_is_help=True)
queue = typer.Typer(help="The requests of the agents.", no_args_is_help=True)
app.add_typer(queue, name="requests")


@queue.command("list")
def list_(
    state: State,
    repo: Repo,
    everything: Annotated[bool, typer.Option("--all", help="Answered ones too.")] = False,
    json_: Json = False,
) -> None:
    """List the open requests, with flags that say where to look.

    Example: python -m hollow desk requests list --state .agents/hollow --repo .
    """
    from hollow.desk import requests, views

    with _desk(state) as memory:
        rows = requests.listed(memory, repo, everything=everything)
        _show(rows, lambda: views.requests(rows, time.time(), _width()), json_)


@queue.command()
def show(request_id: Id, state: State, repo: Repo, json_: Json = False) -> None:
    """Show one request whole, with its document and the policy.

    Example: python -m hollow desk requests show req-0123456789ab --state .agents/hollow --repo .
    """
    from hollow.desk import requests, views

    with _desk(state) as memory:
        row = requests.shown(memory, repo, request_id, time.time())
        _show(row, lambda: views.request(row, time.time(), _width()), json_)


@queue.command()
def fulfil(
    request_id: Id,
    state: State,
    result: Annotated[str, typer.Option(help="What the agent is told; - reads it from standard input.")],
    again: Again = False,
    json_: Json = False,
) -> None:
    """Say that a request is done.

    Example: python -m hollow desk requests fulfil req-0123456789ab --result "written" --state .agents/hollow
    """
    _answer(state, request_id, "fulfilled", result, again=again, json_=json_)


@queue.command()
def reject(
    request_id: Id,
    state: State,
    reason: Annotated[str, typer.Option(help="What the agent is told; - reads it from standard input.")],
    again: Again = False,
    json_: Json = False,
) -> None:
    """Say that a request will not be done.

    Example: python -m hollow desk requests reject req-0123456789ab --reason "no such file" --state .agents/hollow
    """
    _answer(state, request_id, "rejected", reason, again=again, json_=json_)


def _answer(state: Path, request_id: str, status: str, text: str, *, again: bool, json_: bool) -> None:
    from hollow.desk import requests, views

    with _desk(state, decides=True) as memory:
        row = requests.answered(memory, request_id, status, _text(text), time.time(), again=again)
        words = f"{row['request_id']} is {row['status']}; {row['agent'] or 'nobody'} will be told."
        _show(row, lambda: views.visible(words), json_)


@queue.command()
def link(
    request_id: Id,
    state: State,
    run: Annotated[str, typer.Option(help="Name of the run.")],
    json_: Json = False,
) -> None:
    """Note the run that a request was turned into.

    Example: python -m hollow desk requests link req-0123456789ab --run NAME --state .agents/hollow
    """
    from hollow.desk import requests, views

    with _desk(state, decides=True) as memory:
        row = requests.linked(memory, request_id, run, time.time())
        _show(row, lambda: views.visible(f"{row['request_id']} became {run}."), json_)


@app.command()
def suffering(state: State, json_: Json = False) -> None:
    """Show what each agent suffers from.

    Example: python -m hollow desk suffering --state .agents/hollow
    """
    from hollow.desk import standing, views

    with _desk(state) as memory:
        rows = standing.suffering(memory, time.time())
        _show(rows, lambda: views.suffering(rows, _width()), json_)


@app.command()
def goals(state: State, json_: Json = False) -> None:
    """Show what the agents are after, and how their last goals ended.

    Example: python -m hollow desk goals --state .agents/hollow
    """
    from hollow.desk import standing, views

    with _desk(state) as memory:
        rows = standing.goals(memory, time.time())
        _show(rows, lambda: views.goals(rows, _width()), json_)


@app.command()
def lessons(state: State, json_: Json = False) -> None:
    """Show what the agents have learned.

    Example: python -m hollow desk lessons --state .agents/hollow
    """
    from hollow.desk import standing, views

    with _desk(state) as memory:
        rows = standing.lessons(memory)
        _show(rows, lambda: views.lessons(rows, _width()), json_)


@app.command()
def tools(state: State, json_: Json = False) -> None:
    """Show the tools that the agents have made.

    Example: python -m hollow desk tools --state .agents/hollow
    """
    from hollow.desk import standing, views

    with _desk(state) as memory:
        rows = standing.tools(memory, time.time()) if state.is_dir() else []
        _show(rows, lambda: views.tools(rows, _width()), json_)


@app.command()
def tell(
    text: Annotated[str, typer.Argument(help="What to say; - reads it from standard input.")],
    state: State,
    to: Annotated[str | None, typer.Option(help="Only to this agent.")] = None,
    json_: Json = False,
) -> None:
    """Say something to the agents; it stands in their next prompts until one was answered.

    Example: python -m hollow desk tell "the tests are slow" --to cedar --state .agents/hollow
    """
    with _desk(state, decides=True) as memory:
        words = _text(text)
        try:
            number = memory.host.say(words.strip(), time.time(), to)
        except ValueError as why:
            raise Trouble(str(why), 'Type: ./agent tell "the tests are slow" --to cedar') from why
        row = {"number": number, "to": to, "text": words.strip()}
        _show(row, lambda: f"{to or 'All agents'} will read it in the next prompt.", json_)


@app.command("backup")
def backup_(file: Annotated[Path, typer.Argument(help="The file to make.")], state: State, json_: Json = False) -> None:
    """Keep all that the agents remember in one file.

    Example: python -m hollow desk backup hollow.tar.gz --state .agents/hollow
    """
    from hollow.desk import backup, views

    with _desk(state):
        row = backup.backup(state, file, time.time())
        _show(row, lambda: f"{row['files']} files, {row['bytes']} bytes are in {views.visible(row['file'])}.", json_)


@app.command("restore")
def restore_(file: Annotated[Path, typer.Argument(help="The backup.")], state: State, json_: Json = False) -> None:
    """Put a backup in the place of what the agents remember now, which is kept aside.

    Example: python -m hollow desk restore hollow.tar.gz --state .agents/hollow
    """
    from hollow.desk import backup, views

    with _desk(state, decides=True):
        row = backup.restore(state, file)
        kept = f" What was there is in {views.visible(row['aside'])}." if row["aside"] else ""
        _show(row, lambda: f"{row['files']} files are restored.{kept}", json_)


@contextlib.contextmanager
def _desk(state: Path, *, decides: bool = False) -> Iterator[Memory]:
    """The memory below *state*; trouble becomes a sentence and an exit code. *decides*: no verb for an agent."""
    from hollow.desk import views
    from hollow.memory.files import MemoryFault
    from hollow.memory.memory import Memory

    try:
        if decides:
            _outside()
        yield Memory(state.absolute(), _warned)
    except Trouble as why:
        raise typer.Exit(_explain(why)) from None
    except MemoryFault as why:
        raise typer.Exit(_explain(Broken(str(why), "Type: ./agent doctor"))) from None
    except OSError as why:
        words = f"{views.visible(str(why.filename or state))} cannot be used: {why.strerror or why}."
        raise typer.Exit(_explain(Broken(words, "Type: ./agent doctor"))) from None


def _outside() -> None:
    marks = [name for name in RUN_MARKS if os.environ.get(name)]
    if marks:
        raise Trouble(f"Only the operator may: this is inside of a run ({marks[0]} is set).")


def _explain(why: Trouble) -> int:
    from hollow.desk import views

    print(f"hollow: {views.visible(why.message)}", file=sys.stderr)
    if why.hint:
        print(f"  {views.visible(why.hint)}", file=sys.stderr)
    return why.code


def _warned(kind: str, **facts: Any) -> None:
    from hollow.desk import views

    told = ", ".join(f"{name} {value}" for name, value in facts.items())
    print(f"! {kind}: {views.visible(told)}", file=sys.stderr)


def _text(given: str) -> str:
    """*given*, or what standard input holds where it is a dash; too much is read as too much, and refused later."""
    return sys.stdin.buffer.read(_LONGEST).decode("utf-8", "replace") if given == "-" else given


def _show(value: Any, words: Callable[[], str], json_: bool) -> None:
    print(json.dumps(value, indent=1) if json_ else words())


def _width() -> int:
    return shutil.get_terminal_size((100, 24)).columns
