"""Which tools a run type gets, whether it may change anything, who does it, and the hash that seals the envelope."""

from __future__ import annotations

import json
from types import MappingProxyType

from agents.errors import OperatorError
from essentials import digests
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

CYCLE: Final = "cycle"
"""The run type of a hollow agent's own life: no task is given, it finds its goal itself (issue 4)."""

AGENTS: Final = ("cedar", "cipher", "vault")
"""The hollow agents: the scout, the analyst and the builder (design, section 1)."""

PATH_OUT: Final = frozenset({
    "retire_capability", "fs_read", "ollama_chat", "memory_set", "memory_get", "invoke_claude", "propose_change",
    "shell_exec", "check_claude_status", "agent_message", "self_evaluate",
})  # fmt: skip
"""What no setting may lock, whatever an agent suffers: without it there is no way out (T58, T59).

The agent enforces the same list; it is repeated here because neither package imports the other, and a test compares."""

LOCKS: Final[Mapping[str, float]] = MappingProxyType({"fs_edit": 0.75, "fs_write": 0.75, "synthesize_capability": 0.55})
"""Load from which on each capability is locked, inclusive (seed 001; T55, T56); the agent's own table is the same."""

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
        CYCLE: Tier(level=3, tools=(*_READ, "EditFile"), mutates=True, agent="cedar"),
    }
)


def tier(run_type: str) -> Tier:
    """The tier of *run_type*; raises OperatorError for a type that does not exist (T148)."""
    if run_type not in TIERS:
        raise OperatorError(f"There is no run type “{run_type[:40]}”.", f"Run types: {', '.join(sorted(TIERS))}.")
    return TIERS[run_type]


def is_own(agent: str, path: bytes) -> bool:
    """Whether a cycle of *agent* may change *path*: below its own folder, or the one that all share (design, 10)."""
    return path.startswith((f"workspace/{agent}/".encode(), b"design/"))


def config_hash(tools: Iterable[str], safe: Iterable[str], human_only: Iterable[str]) -> str:
    """Seal of an envelope: the same for the same three sets in any order, another one for any other sets (T123).

    The first eight hex digits of SHA-256 over canonical JSON (seed 003, phase 1, step 2).
    """
    sets = [sorted(set(names)) for names in (tools, safe, human_only)]
    canonical = json.dumps(sets, ensure_ascii=True, separators=(",", ":"))
    return digests.sha256(canonical.encode()).hexdigest()[:HASH_LENGTH]
