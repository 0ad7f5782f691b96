"""Which tools must not be called: ghosts, known broken ones, and how a tool becomes one of them and stops being it."""

from __future__ import annotations

from essentials.records import dataclass, replace
from hollow.oneline import bare
from hollow.substrate.model import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any, Final

    from hollow.substrate.synthesis import Tool

    Said = tuple[str, dict[str, Any]]

THRESHOLD: Final = 3
"""Cycles with a failure after which a tool is known to be broken (seed 002; D9, T113)."""
NO_CODE: Final = "ghost: no .py found"
NULL: Final = "null stub: returned None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """What is held against one tool."""

    name: str
    failures: int
    """Cycles in which it failed; several failures of one cycle are one."""
    reason: str
    """Why it failed last."""
    first_seen: float = 0.0
    last_seen: float = 0.0
    """Seconds since the epoch, of the first and last failure that counted."""
    code_sha: str = ""
    """SHA-256 of the code that failed; empty for a tool without code."""
    last_cycle: str = ""
    """Id of the cycle that counted last."""

    @property
    def is_broken(self) -> bool:
        """Whether it has failed often enough to be known for it."""
        return self.failures >= THRESHOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a capability is not called."""

    trouble: Trouble
    """ghost or unknown."""
    reason: str
    """One sentence."""
    counts: bool
    """Whether it is one failure of this cycle against the tool, which then goes on the cycle's blacklist."""
    record: str = ""
    """What stands in the record of a failure that counts."""


def precheck(
    name: str,
    loaded: Mapping[str, Tool],
    quarantined: Collection[str],
    broken: Mapping[str, Broken],
    blacklist: Collection[str],
    *,
    builtins: Collection[str] = (),
) -> Stop | None:
    """Return why the capability *name* must not be called, None if it may be (C20, T111).

    *loaded* are the tools with an implementation, *quarantined* the names of what was found without one, *broken* the
    records, *blacklist* what has failed in this cycle already. A name that never existed is unknown and counts
    nothing: the mind made it up, and no tool is to blame (W16). Built-ins always pass (T115).
    """
    if name in builtins:
        return None
    if name in blacklist:
        return Stop(
            trouble=Trouble.GHOST, reason=f"{name} has failed in this cycle; it is not tried again.", counts=False
        )
    tool, held = loaded.get(name), broken.get(name)
    if held is not None and held.is_broken and (tool is None or tool.sha == held.code_sha):
        sentence = f"{name} is known to be broken ({held.failures} failures, {held.reason}); do without it."
        return Stop(trouble=Trouble.GHOST, reason=sentence, counts=True, record=held.reason)
    if tool is not None:
        return None
    if name in quarantined:
        sentence = f"{name} has no implementation that was tested; synthesize it, or do without it."
        return Stop(trouble=Trouble.GHOST, reason=sentence, counts=True, record=NO_CODE)
    return Stop(trouble=Trouble.UNKNOWN, reason=f"There is no capability {name}.", counts=False)


def counts(trouble: Trouble | None) -> bool:
    """Whether *trouble* of a synthesized tool is held against it: ghosts and nulls, never wrong arguments (W16)."""
    return trouble in {Trouble.GHOST, Trouble.NULL}


def failed(
    held: Broken | None, name: str, *, cycle: str, reason: str, sha: str, now: float
) -> tuple[Broken, tuple[Said, ...]]:
    """Return the record of *name* after a failure in *cycle* of the code *sha*, and what is to be said (T112, T113).

    The failures of another code are not held against this one. *now* in seconds since the epoch.
    """
    # Without a sum the code is not known, which is no reason to forget what it did.
    if held is None or (sha and held.code_sha != sha):
        held = Broken(name=name, failures=0, reason="", first_seen=now)
    # A plan that calls a tool three times has found one fault, not three.
    if cycle and held.last_cycle == cycle:
        return held, ()
    record = Broken(
        name=name,
        failures=held.failures + 1,
        reason=_line(reason),
        first_seen=held.first_seen,
        last_seen=now,
        code_sha=sha or held.code_sha,
        last_cycle=cycle,
    )
    # Once: from here on it stands in every prompt.
    newly = record.is_broken and not held.is_broken
    facts = {"name": name, "failures": record.failures, "reason": record.reason}
    return record, (("capability.broken", facts),) if newly else ()


def redeployed(held: Broken, sha: str) -> tuple[Said, ...] | None:
    """Return what is to be said when *held* is forgiven because the code *sha* was deployed; None if it is not.

    Only new code is a new chance: the same code would fail the same way (C23, T114).
    """
    if held.code_sha == sha:
        return None
    return (("capability.rehabilitated", {"name": held.name}),) if held.is_broken else ()


def cleaned(record: Broken) -> Broken:
    """Return *record* with a name and reason that are one short line each: files may be placed by hand, and every
    prompt shows them (T114).
    """
    return replace(record, name=_line(record.name)[:60], reason=_line(record.reason) or "no reason was recorded")


def _line(text: str) -> str:
    return bare(text)[:160]
