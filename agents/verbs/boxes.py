"""Verbs that look at boxes: status, list, show, logs, stop."""

from __future__ import annotations

import json
import sys
import time
from types import MappingProxyType

from agents import journal, views
from agents.errors import BoxError, OperatorError
from agents.layout import EVIDENCE
from agents.verbs import options
from agents.verbs.words import Annotated, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    from agents.context import Context

All = Annotated[bool, Option("--all", "-a", help="All runs, not only the newest.")]
Follow = Annotated[bool, Option("--follow", "-f", help="Go on until the run is over.")]
Raw = Annotated[bool, Option("--raw", help="The bytes as they were recorded.")]


def rows(
    context: Context, *, every: bool = False, wanted: Callable[[str], bool] = journal.is_told
) -> list[dict[str, Any]]:
    """Rows of the newest runs, or of *every* one, with what the state of a living run says now.

    Of every one the facts *wanted* by name are kept: there may be a hundred thousand.
    """
    found = views.fold(context.journal.each(), wanted) if every else context.journal.rows()[0]
    live = {name: _now(context, name) for name in context.store.active().values() if name}
    return [{**row, **live.get(row["run"], {})} for row in found]


def _now(context: Context, name: str) -> dict[str, str]:
    """How the run *name* stands by its own state; one bad box must not keep the others from being shown."""
    try:
        state = context.store.load(name)
    except OperatorError:
        return {"status": "GONE"}
    except BoxError:
        return {"status": "UNREADABLE"}
    return {"status": "UNKNOWN" if _is_foreign(state.host_id) else str(state.status), "phase": str(state.phase)}


def _is_foreign(host_id: str | None) -> bool:
    from agents.procs import host_id as here

    return host_id is not None and host_id != here()


def status(json_: options.Json = False) -> int:
    """What runs, what waits for you, and what ended last.

    Example: ./agent status
    """
    found = views.at_hand(rows(options.swept()))
    options.show(journal.as_json(found) if json_ else views.status(found, time.time()))
    return 0


def list_(all_: All = False, json_: options.Json = False) -> int:
    """List runs, newest first.

    Example: ./agent list --all
    """
    found = rows(options.swept(), every=all_, wanted=journal.is_told if json_ else views.SHOWN.__contains__)
    for text in journal.json_texts(found) if json_ else (views.listing(found, time.time()),):
        options.show(text)
    return 0


def show(target: options.Target = "latest", json_: options.Json = False) -> int:
    """Show one run: how it stands, its files, its report.

    Example: ./agent show a1b2
    """
    from agents import plan, redact

    context = options.swept()
    name = context.store.resolve(target)
    meta, state, box = context.store.meta(name), context.store.load(name), context.store.box(name)
    if json_:
        whole = {"meta": meta.to_dict(), "state": json.loads(state.to_json()), "box": str(box.path)}
        options.show(json.dumps(whole, indent=1))
        return 0
    options.show(views.outcome(plan.facts(meta, state), f".agents/runs/{name}"))
    details = {
        "task": plan.title(meta.task), "type": meta.run_type, "engine": meta.engine, "mind": meta.mind,
        "model": state.model, "isolation": state.isolation, "tools": ", ".join(meta.tools_allowlist),
        "base": meta.repo_sha_start[:12] + (" (with uncommitted changes beside it)" if meta.dirty else ""),
        "session": state.session_id, "attempt": state.attempt,
        "files": ", ".join(each for each in EVIDENCE if (box.path / each).exists()),
    }  # fmt: skip
    for key, value in details.items():
        options.show(f"  {key:10}{redact.visible(str(value))}") if value else None
    for note in state.notes:
        options.show(f"  note      {redact.visible(note)}")
    if options.report(box):
        options.show("\n" + options.report(box).rstrip())
    return 0


def logs(target: options.Target = "latest", follow: Follow = False, raw: Raw = False) -> int:
    """Print what the agent said.

    Example: ./agent logs -f latest
    """
    from agents import transcript

    context = options.swept()
    name = context.store.resolve(target)
    if raw:
        for line in transcript.follow(context, name, to_the_end=follow, whole=True):
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        return 0
    for shown in transcript.rendered(context, name, to_the_end=follow):
        options.show(shown)
    return 0


def stop(target: options.Target = "latest", json_: options.Json = False) -> int:
    """End a running agent and all its processes; what it did so far is kept.

    Example: ./agent stop a1b2
    """
    from agents import control, plan

    context = options.swept()
    name = context.store.resolve(target)
    state = control.stop(context, name)
    facts = plan.facts(context.store.meta(name), state)
    options.show(json.dumps(facts, indent=1) if json_ else views.outcome(facts, f".agents/runs/{name}"))
    return 0


VERBS: Final = MappingProxyType({"status": status, "list": list_, "show": show, "logs": logs, "stop": stop})
"""What is typed for each."""
