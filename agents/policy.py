"""Which tools a run type gets, whether it may change anything, who does it, and the hash that seals the envelope."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from agents.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HASH_LENGTH: Final = 8
"""Hex digits of config_hash, as in the seed's examples (003, phase 1, step 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """What one run type may do (seed 003, section 3; design, section 8)."""

    level: int | None
    tools: tuple[str, ...]
    """Logical names; each engine maps them to its real ones (D15)."""
    mutates: bool
    agent: str
    """The hollow agent whose role fits (design, section 10)."""


_READ: Final = ("Grep", "Ls", "ReadFile", "cat")

TIERS: Final[Mapping[str, Tier]] = MappingProxyType(
    {
        "scout": Tier(level=1, tools=_READ, mutates=False, agent="cedar"),
        "review": Tier(level=1, tools=(*_READ, "GitDiff"), mutates=False, agent="cipher"),
        "benchmark": Tier(level=1, tools=_READ, mutates=False, agent="cipher"),
        "plan": Tier(level=2, tools=_READ, mutates=False, agent="cipher"),
        "fix": Tier(level=3, tools=(*_READ, "EditFile"), mutates=True, agent="vault"),
    }
)


def tier(run_type: str) -> Tier:
    """The tier of *run_type*; raises OperatorError for a type that does not exist (T148)."""
    if run_type not in TIERS:
        raise OperatorError(f"There is no run type “{run_type[:40]}”.", f"Run types: {', '.join(sorted(TIERS))}.")
    return TIERS[run_type]


def config_hash(tools: Iterable[str], safe: Iterable[str], human_only: Iterable[str]) -> str:
    """Seal of an envelope: the same for the same three sets in any order, another one for any other sets (T123).

    The first eight hex digits of SHA-256 over canonical JSON (seed 003, phase 1, step 2).
    """
    sets = [sorted(set(names)) for names in (tools, safe, human_only)]
    canonical = json.dumps(sets, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:HASH_LENGTH]
