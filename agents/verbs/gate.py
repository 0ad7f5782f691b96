"""Verbs of the human gate: diff, merge, reject, undo."""

from __future__ import annotations

import json
from types import MappingProxyType

from agents.verbs import options
from agents.verbs.words import Annotated, Argument, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from agents.context import Context
    from agents.judgement import Case
    from agents.model import RunState

Approve = Annotated[
    str | None, Option(help="Approve without a terminal: 8 or more hex digits of SHA-256 of changes.patch.")
]
Branch = Annotated[str | None, Option(help="Make this branch with the result; touch nothing else.")]
Pick = Annotated[int | None, Option(min=1, help="Which of several agents' patches to merge.")]


def diff(target: options.Target = "latest", pick: Pick = None) -> int:
    """Show what a run changed, with everything made visible that could hide in it.

    Example: ./agent diff latest
    """
    from agents import choosing, gate

    context = options.swept()
    name = choosing.picked(context, context.store.resolve(target), pick, "diff")
    options.show(gate.diff(context, name).rstrip("\n"))
    return 0


def merge(
    target: options.Target = "latest",
    approve: Approve = None,
    branch: Branch = None,
    pick: Pick = None,
    json_: options.Json = False,
) -> int:
    """Merge what a run changed into the current branch, after you have looked at it. Only a human may.

    Example: ./agent merge latest
    """
    from agents import choosing, gate

    context = options.swept()
    name = choosing.picked(context, context.store.resolve(target), pick, "merge")
    state = gate.merge(context, name, approve=approve, ask=None if json_ else _asked, branch=branch)
    choosing.follow(context, name)
    return _done(context, name, state, json_=json_)


def reject(
    target: options.Target = "latest",
    why: Annotated[str, Argument(help="Why, for the ledger.")] = "",
    json_: options.Json = False,
) -> int:
    """Refuse what a run changed: its airlock goes, its box and its patch stay.

    Example: ./agent reject latest "breaks the cache"
    """
    from agents import choosing

    context = options.swept()
    name = context.store.resolve(target)
    return _done(context, name, choosing.reject(context, name, why), json_=json_)


def undo(target: options.Target = "latest", json_: options.Json = False) -> int:
    """Take a merge back, while the branch still stands there.

    Example: ./agent undo latest
    """
    from agents import choosing

    context = options.swept()
    name = context.store.resolve(target)
    return _done(context, name, choosing.undo(context, name), json_=json_)


def _asked(case: Case) -> str:
    """What the operator types at the terminal, after the case was shown there."""
    from agents import terminal

    # The risks last: of a long diff only the end is still on the screen.
    checks = [f"  verify: {each} on the {each.tree}" for each in case.verified]
    flags = [f"  ! {flag}" for flag in case.flags]
    shown = "\n".join([case.diff.rstrip("\n"), "", case.summary, *checks, *flags])
    return terminal.ask(shown, f"To merge exactly this type “{case.words}”:")


def _done(context: Context, name: str, state: RunState, *, json_: bool) -> int:
    from agents import plan, views

    facts: dict[str, Any] = {**plan.facts(context.store.meta(name), state), "run": name}
    if json_:
        facts["merge"] = dict(state.merge) if state.merge else None
        options.show(json.dumps(facts, indent=1))
    else:
        options.show(views.outcome(facts, f".agents/runs/{name}"))
        if state.merge and state.status.value == "MERGED":
            options.show(f"  commit {str(state.merge['commit'])[:12]} on {state.merge['target']}")
    return 0


VERBS: Final = MappingProxyType({"diff": diff, "merge": merge, "reject": reject, "undo": undo})
"""What is typed for each."""
