"""Verbs that make runs: scout, plan, review, benchmark, fix, resume; what they do stands in `running`."""

from __future__ import annotations

import sys
from types import MappingProxyType

from agents.verbs import options  # noqa: TC001 - Typer reads the annotations when the program runs
from agents.verbs.words import Annotated, Argument, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final


Task = Annotated[str, Argument(help="What to do, in quotes; - reads it from standard input.")]
Program = Annotated[
    list[str] | None, Argument(metavar="[-- PROGRAM ARGUMENT ...]", help="The program of --engine command.")
]

_HELP = {
    "scout": (
        'Answer a question about this repository, read-only.\n\nExample: ./agent scout "why is db latency high?"'
    ),
    "plan": ('Plan a change, read-only; writes plan.md.\n\nExample: ./agent plan "cache the price list"'),
    "review": ('Review what has changed, read-only.\n\nExample: ./agent review "the last commit"'),
    "benchmark": ('Find out how fast something is and why, read-only.\n\nExample: ./agent benchmark "start-up time"'),
}


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
        max_turns: options.MaxTurns = None,
        max_usd: options.MaxUsd = None,
        max_tokens: options.MaxTokens = None,
        sandbox: options.Sandbox = None,
        isolation: options.Isolation = None,
        network: options.Network = None,
        detach: options.Detach = False,
        dry_run: options.DryRun = False,
        json_: options.Json = False,
    ) -> int:
        from agents.verbs import running

        flags = {
            "engine": engine, "model": model, "mind": mind, "timeout": timeout, "stall_after": stall_after,
            "max_output": max_output, "max_turns": max_turns, "max_usd": max_usd, "max_tokens": max_tokens,
            "sandbox": sandbox, "isolation": isolation, "network": network,
        }  # fmt: skip
        ask = running.asked(run_type, task, program, sys.argv)
        if dry_run:
            return running.dry_run(ask, flags, json_=json_)
        return (running.detach if detach else running.start)(ask, flags, json_=json_)

    verb.__name__ = run_type
    verb.__doc__ = _HELP[run_type]
    return verb


def fix(
    task: Task,
    program: Program = None,
    agents: Annotated[int, Option("--agents", "-n", min=1, max=16, help="Agents that try it side by side.")] = 1,
    engines: Annotated[str | None, Option(help="Engines of those agents, in turn, like hollow,claude.")] = None,
    engine: options.Engine = None,
    model: options.Model = None,
    mind: options.Mind = None,
    timeout: options.Timeout = None,
    stall_after: options.StallAfter = None,
    max_output: options.MaxOutput = None,
    max_turns: options.MaxTurns = None,
    max_usd: options.MaxUsd = None,
    max_tokens: options.MaxTokens = None,
    sandbox: options.Sandbox = None,
    isolation: options.Isolation = None,
    network: options.Network = None,
    detach: options.Detach = False,
    dry_run: options.DryRun = False,
    json_: options.Json = False,
) -> int:
    """Change something, in an airlock of its own; what comes out is a patch for you to review and merge.

    Example: ./agent fix "optimize auth middleware" --engine claude
    """
    from agents.verbs import running

    flags = {
        "engine": engine, "model": model, "mind": mind, "timeout": timeout, "stall_after": stall_after,
        "max_output": max_output, "max_turns": max_turns, "max_usd": max_usd, "max_tokens": max_tokens,
        "sandbox": sandbox, "isolation": isolation, "network": network,
    }  # fmt: skip
    ask = running.asked("fix", task, program, sys.argv)
    if dry_run or detach:
        return (running.dry_run if dry_run else running.detach)(ask, flags, agents, engines, json_=json_)
    if agents > 1 or engines:
        return running.team(ask, flags, agents, engines, json_=json_)
    return running.start(ask, flags, json_=json_)


def resume(
    target: options.Target = "latest",
    message: Annotated[str, Argument(help="What to tell the agent in addition.")] = "",
    fresh: Annotated[bool, Option("--fresh", help="Begin a new session in the same airlock.")] = False,
    timeout: options.Timeout = None,
    stall_after: options.StallAfter = None,
    max_turns: options.MaxTurns = None,
    max_usd: options.MaxUsd = None,
    max_tokens: options.MaxTokens = None,
    json_: options.Json = False,
) -> int:
    """Go on with a run that crashed, stalled, was stopped or waits for review, under the same envelope.

    Example: ./agent resume latest "the tests in tests/db still fail"
    """
    from agents.verbs import running

    flags = {
        "timeout": timeout, "stall_after": stall_after, "max_turns": max_turns, "max_usd": max_usd,
        "max_tokens": max_tokens,
    }  # fmt: skip
    return running.resume(target, message, flags, fresh=fresh, json_=json_)


VERBS: Final = MappingProxyType({**{name: _verb(name) for name in _HELP}, "fix": fix, "resume": resume})
"""What is typed for each."""
