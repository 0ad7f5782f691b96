"""Calling a synthesized tool: what must hold before, what it means to its maker, and what is held against it."""

from __future__ import annotations

import ast
import functools
import json

from hollow.hands.call import Failed, done
from hollow.hands.traces import noticing
from hollow.substrate import ghosts, toolcode
from hollow.substrate.model import Effect, Kind, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from hollow.hands.call import Call
    from hollow.substrate.model import Happening, Result
    from hollow.substrate.synthesis import Tool

EFFECTS: Final = frozenset({Effect.READ, Effect.EXEC})
"""What any synthesized tool does: it is code in a child, which the sandbox keeps from writing while that is locked."""
MAX_PARAMS: Final = 256 * 1024
"""Bytes of the parameters as JSON."""
_MOST_FORM: Final = 200
"""Characters of a tool's parameters that stand in a prompt; its author can make them as long as it likes."""


@functools.lru_cache(maxsize=512)
def form(name: str, code: str) -> str:
    """Return how to call the tool *name*, in one line, as its *code* has it; nothing of the code is run for that."""
    try:
        tree = toolcode.parsed(code)
    except toolcode.Unparsable:
        return f"{name}(…)"
    entries = (each for each in reversed(tree.body) if isinstance(each, ast.FunctionDef) and each.name == name)
    entry = next(entries, None)
    told = ast.unparse(entry.args) if entry else "…"
    return f"{name}({told if len(told) <= _MOST_FORM else '…'})"


def found(reach: Call, name: str, blacklist: set[str]) -> Tool:
    """Return the loaded tool *name*; raises :class:`Failed` for one that is a ghost, broken, or nothing at all.

    A ghost or broken tool that a plan names counts one failure of this cycle and is not tried again in it (C20); a name
    that never existed counts nothing (T111, W16).
    """
    memory = reach.memory
    loaded = reach.forge.loaded()
    stop = ghosts.precheck(name, loaded, memory.shelf.quarantined(), memory.broken.records(), blacklist)
    if stop is None:
        return loaded[name]
    if stop.counts:
        tool = loaded.get(name)
        _held_against(reach, name, stop.record, tool.sha if tool else "", blacklist)
    raise Failed(stop.trouble, stop.reason)


def used(reach: Call, tool: Tool, params: Mapping[str, Any], blacklist: set[str]) -> Result:
    """Return what *tool* gave for *params*; raises :class:`Failed` where it gave nothing."""
    _check(params)
    with noticing(reach) as wrote:
        called = reach.forge.call(tool.name, dict(params), timeout=reach.seconds, writable=reach.writes)
    happenings = _told(reach, tool, ok=called.ok)
    if called.ok:
        reach.memory.broken.worked(tool.name)
        return done(called.value, wrote=tuple(wrote), happenings=happenings)
    why = called.trouble or Trouble.FAILED
    if ghosts.counts(why):
        _held_against(reach, tool.name, called.error or ghosts.NULL, tool.sha, blacklist)
    raise Failed(why, called.error or f"{tool.name} failed.", wrote=tuple(wrote), happenings=happenings)


def _check(params: Mapping[str, Any]) -> None:
    try:
        size = len(json.dumps(dict(params)).encode())
    except (TypeError, ValueError, RecursionError):
        raise Failed(Trouble.USAGE, "The params are no JSON object.") from None
    if size > MAX_PARAMS:
        raise Failed(Trouble.USAGE, f"The params take {size} bytes and {MAX_PARAMS} fit; pass the path of a file.")


def _held_against(reach: Call, name: str, reason: str, sha: str, blacklist: set[str]) -> None:
    blacklist.add(name)
    for kind, facts in reach.memory.broken.failed(name, cycle=reach.cycle, reason=reason, sha=sha, now=reach.now()):
        reach.fact(kind, **facts)


def _told(reach: Call, tool: Tool, *, ok: bool) -> tuple[Happening, ...]:
    """That the tool was called, to its caller and, if it was of use, to the peer who made it (S4, F15)."""
    facts = {"name": tool.name, "ok": ok, "by": reach.agent}
    mine = reach.happened(Kind.CALLED, **facts)
    if tool.by == reach.agent or not ok:
        return (mine,)
    return (
        mine,
        reach.happened(Kind.PEER, peer=tool.by, how="call"),
        reach.happened(Kind.CALLED, **facts, of=tool.by),
        reach.happened(Kind.REFERENCE, what=tool.name, by=reach.agent, of=tool.by),
    )
