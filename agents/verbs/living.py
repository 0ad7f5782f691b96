"""Verbs that let the hollow agents live: cycle (one agent, once) and live (all of them, on and on)."""

from __future__ import annotations

import json
from types import MappingProxyType

from agents.errors import OperatorError
from agents.verbs import options
from agents.verbs.words import Annotated, Argument, Option
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final


Name = Annotated[str, Argument(help="cedar (the scout), cipher (the analyst) or vault (the builder).")]
Agents = Annotated[str, Option("--agents", help="Which agents live, with commas between them.")]
Heartbeat = Annotated[str, Option(help="Time between the beginnings of an agent's cycles, like 6s.")]
Cycles = Annotated[int | None, Option(min=1, help="Stop after this many cycles of all agents together.")]


def cycle(
    agent: Name,
    model: options.Model = None,
    mind: options.Mind = None,
    timeout: options.Timeout = None,
    stall_after: options.StallAfter = None,
    max_output: options.MaxOutput = None,
    max_turns: options.MaxTurns = None,
    max_tokens: options.MaxTokens = None,
    sandbox: options.Sandbox = None,
    isolation: options.Isolation = None,
    network: options.Network = None,
    dry_run: options.DryRun = False,
    json_: options.Json = False,
) -> int:
    """Let one agent live for one cycle: it perceives, chooses its goal, plans, acts, and is judged.

    Example: ./agent cycle cedar
    """
    from agents import living, policy
    from agents.plan import Ask
    from agents.verbs import running

    living.follow_parent()
    flags = {
        "model": model, "mind": mind, "timeout": timeout, "stall_after": stall_after, "max_output": max_output,
        "max_turns": max_turns, "max_tokens": max_tokens, "sandbox": sandbox, "isolation": isolation,
        "network": network,
    }  # fmt: skip
    known(agent)
    ask = Ask(run_type=policy.CYCLE, task=f"one cycle of {agent}", agent=agent)
    given = {**flags, "engine": _engine(flags)}
    return (running.dry_run if dry_run else running.start)(ask, given, json_=json_)


def known(agent: str) -> str:
    """*agent*, if there is one of that name; raises OperatorError otherwise."""
    from agents import policy

    if agent not in policy.AGENTS:
        raise OperatorError(f"There is no agent “{agent[:40]}”.", f"Agents: {', '.join(policy.AGENTS)}.")
    return agent


def _engine(flags: dict[str, Any]) -> str:
    """The engine that the settings name if its agents have a life of their own, else the built-in one."""
    from agents.engines import registry

    named = options.here(**flags).config.engine
    return named if getattr(registry.engine(named), "lives", False) else "hollow"


def live(
    agents: Agents = "cedar,cipher,vault",
    heartbeat: Heartbeat = "6s",
    cycles: Cycles = None,
    model: options.Model = None,
    mind: options.Mind = None,
    timeout: options.Timeout = None,
    sandbox: options.Sandbox = None,
    isolation: options.Isolation = None,
    json_: options.Json = False,
) -> int:
    """Let the agents live side by side, each cycle a run, until Ctrl-C or until --cycles are done.

    What they make lies on the branch agent-box/commons; a goal that is complete waits in REVIEW for `agent merge`.

    Example: ./agent live --agents cedar,vault --cycles 30
    """
    from agents import living
    from agents.units import parse_duration

    names = tuple(dict.fromkeys(known(name.strip()) for name in agents.split(",") if name.strip()))
    flags = {"model": model, "mind": mind, "timeout": timeout, "sandbox": sandbox, "isolation": isolation}
    context = options.here(**flags)
    chosen = living.choose(context)
    context.say(chosen.why)
    if json_:
        context = records.replace(context, say=lambda _: None)
    words = {name: value for name, value in flags.items() if name not in {"model", "mind"}}
    life = living.Life(
        agents=names or tuple(known("")), heartbeat=parse_duration(heartbeat), cycles=cycles, mind=chosen.mind,
        model=chosen.model, words=tuple(w for name, value in words.items() if value for w in (f"--{name}", value)),
    )  # fmt: skip
    found = living.live(context, life)
    if json_:
        options.show(json.dumps(found, indent=1))
    else:
        options.show("\n".join(living.told(found)))
    return 2 if found["stopped"] else 0


VERBS: Final = MappingProxyType({"cycle": cycle, "live": live})
"""What is typed for each."""
