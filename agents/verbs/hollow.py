"""Verbs on what the hollow agents remember: requests, suffering, goals, lessons, tools, tell, hollow backup|restore."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - Typer reads the annotations when the program runs
from types import MappingProxyType

from agents.errors import OperatorError
from agents.verbs import options
from agents.verbs.words import Annotated, Argument, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    import typer

    from agents.context import Context

Id = Annotated[str, Argument(help="Id of the request, like req-0123456789ab.")]
Again = Annotated[bool, Option("--again", help="Change an answer that stands.")]
All = Annotated[bool, Option("--all", help="Answered ones too.")]

_VIEWS = {
    "suffering": "Show what each agent suffers from, and what would end it.",
    "goals": "Show what the agents are after, and how their last goals ended.",
    "lessons": "Show the rules that the agents have learned.",
    "tools": "Show the tools that the agents have made for themselves.",
}

REQUESTS = (
    "Requests of the agents to you: list, show, fulfil, reject, run.\n\n"
    'Example: ./agent requests fulfil req-0123456789ab --result "written"'
)
MEMORY = "Keep, or bring back, all that the agents remember.\n\nExample: ./agent hollow backup hollow.tar.gz"


def _view(name: str) -> Any:
    def verb(json_: options.Json = False) -> int:
        return _shown(options.here(), [name], json_=json_)

    verb.__name__ = name
    verb.__doc__ = f"{_VIEWS[name]}\n\nExample: ./agent {name}"
    return verb


def requests(context: typer.Context, everything: All = False, json_: options.Json = False) -> int:
    """List the open requests where no verb of the group was typed; help and example stand with the group."""
    return list_(everything, json_) if context.invoked_subcommand is None else 0


def list_(everything: All = False, json_: options.Json = False) -> int:
    """List the open requests, with flags that say where to look.

    Example: ./agent requests list
    """
    here = options.here()
    words = ["requests", "list", "--repo", str(here.layout.root), *(["--all"] if everything else [])]
    return _shown(here, words, json_=json_)


def show(request_id: Id, json_: options.Json = False) -> int:
    """Show one request whole, with its document.

    Example: ./agent requests show req-0123456789ab
    """
    here = options.here()
    return _shown(here, ["requests", "show", request_id, "--repo", str(here.layout.root)], json_=json_)


def fulfil(
    request_id: Id,
    result: Annotated[str, Option(help="What the agent is told; - reads it from standard input.")],
    again: Again = False,
    json_: options.Json = False,
) -> int:
    """Say that a request is done; the agent reads the result in its next prompt.

    Example: ./agent requests fulfil req-0123456789ab --result "classifier.py is written"
    """
    return _answered(["requests", "fulfil", request_id, "--result"], result, again=again, json_=json_)


def reject(
    request_id: Id,
    reason: Annotated[
        str, Option("--reason", "--result", help="What the agent is told; - reads it from standard input.")
    ],
    again: Again = False,
    json_: options.Json = False,
) -> int:
    """Say that a request will not be done, and why.

    Example: ./agent requests reject req-0123456789ab --reason "there is no such component"
    """
    return _answered(["requests", "reject", request_id, "--reason"], reason, again=again, json_=json_)


def run(
    request_id: Id,
    engine: options.Engine = None,
    model: options.Model = None,
    mind: options.Mind = None,
    timeout: options.Timeout = None,
    max_usd: options.MaxUsd = None,
    max_tokens: options.MaxTokens = None,
    sandbox: options.Sandbox = None,
    isolation: options.Isolation = None,
    network: options.Network = None,
    detach: options.Detach = False,
    dry_run: options.DryRun = False,
    json_: options.Json = False,
) -> int:
    """Turn a request into a fix in an airlock of its own; what comes out is for you to review and merge.

    Example: ./agent requests run req-0123456789ab --engine claude
    """
    flags = {
        "engine": engine, "model": model, "mind": mind, "timeout": timeout, "max_usd": max_usd,
        "max_tokens": max_tokens, "sandbox": sandbox, "isolation": isolation, "network": network,
    }  # fmt: skip
    return _run(request_id, flags, detach=detach, dry_run=dry_run, json_=json_)


def _run(request_id: str, flags: dict[str, Any], *, detach: bool, dry_run: bool, json_: bool) -> int:
    from agents import desk
    from agents.plan import Ask
    from agents.verbs import running

    here = options.here(**flags)
    desk.outside(here)
    found = desk.request(here, request_id)
    if found["status"] != "pending":
        raise OperatorError(f"{found['request_id']} is {found['status']} already.", "Type: ./agent requests")
    ask = Ask(run_type="fix", task=found["task"])
    if dry_run:
        return running.dry_run(ask, flags, json_=json_)

    def claimed(name: str) -> None:
        """Note the run beside its request."""
        desk.linked(here, found["request_id"], name)

    code = (running.detach if detach else running.start)(ask, flags, json_=json_, claimed=claimed)
    if not json_:
        options.show(f"  answer it: ./agent requests fulfil {found['request_id']} --result TEXT", err=True)
    return code


def tell(
    text: Annotated[str, Argument(help="What to say; - reads it from standard input.")],
    to: Annotated[str | None, Option(help="Only to this agent: cedar, cipher or vault.")] = None,
    json_: options.Json = False,
) -> int:
    """Say something to the agents; it stands in their next prompts until one was answered.

    Example: ./agent tell "the tests are slow" --to cedar
    """
    from agents import desk
    from agents.context import prepare

    here = options.here()
    desk.outside(here)
    prepare(here)
    words = ["tell", "-", *(["--to", to] if to else [])]
    return _shown(here, words, _given(text), json_=json_)


def backup(file: Annotated[Path, Argument(help="The file to make.")], json_: options.Json = False) -> int:
    """Keep all that the agents remember in one file.

    Example: ./agent hollow backup hollow.tar.gz
    """
    return _shown(options.here(), ["backup", str(file.absolute())], json_=json_)


def restore(file: Annotated[Path, Argument(help="The backup.")], json_: options.Json = False) -> int:
    """Put a backup in the place of what the agents remember now, which is kept aside; not while they live.

    Example: ./agent hollow restore hollow.tar.gz
    """
    from agents import desk

    here = options.here()
    desk.outside(here)
    with desk.quiet(here):
        return _shown(here, ["restore", str(file.absolute())], json_=json_)


def _shown(here: Context, words: list[str], given: str = "", *, json_: bool) -> int:
    from agents import desk, redact

    text = desk.ask(here, [*words, *(["--json"] if json_ else [])], given)
    options.show(text if json_ else redact.visible(redact.redact(text), newlines=True))
    return 0


def _answered(words: list[str], text: str, *, again: bool, json_: bool) -> int:
    from agents import desk, redact

    here = options.here()
    desk.outside(here)
    row = desk.answered(here, [*words, "-", *(["--again"] if again else [])], _given(text))
    told = redact.visible(f"{row['request_id']} is {row['status']}; {row['agent'] or 'nobody'} will be told.")
    options.show(json.dumps(row, indent=1) if json_ else told)
    return 0


def _given(text: str) -> str:
    """*text*, or what standard input holds where it is a dash. It never stands in a command line of ours."""
    return sys.stdin.buffer.read(_LONGEST).decode("utf-8", "replace") if text == "-" else text


_LONGEST = 64 * 1024

VERBS: Final = MappingProxyType({**{name: _view(name) for name in _VIEWS}, "tell": tell})
"""What is typed for each."""
QUEUE: Final = MappingProxyType({"list": list_, "show": show, "fulfil": fulfil, "reject": reject, "run": run})
"""What is typed after `requests`."""
KEEPING: Final = MappingProxyType({"backup": backup, "restore": restore})
"""What is typed after `hollow`."""
