"""The table of the built-in capabilities: which there are, and what each does to the world."""

from __future__ import annotations

from types import MappingProxyType

from hollow.hands import asking, filing, peers, proposing, remembering, researching, running, tooling
from hollow.hands.manifest import Capability, describe
from hollow.substrate.model import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

_READ, _WRITE, _EXEC, _STATE = Effect.READ, Effect.WRITE, Effect.EXEC, Effect.STATE

_TABLE: Final = (
    describe(filing.fs_read, _READ),
    describe(filing.fs_write, _WRITE, output=True, high=True),
    describe(filing.fs_edit, _WRITE, output=True, high=True),
    # Code in a child writes only where the sandbox lets it, which is nowhere while writing is locked: no WRITE here.
    describe(running.shell_exec, _READ, _EXEC),
    describe(running.test_exec, _READ, _EXEC),
    describe(remembering.memory_set, _STATE, output=True),
    describe(remembering.memory_get, _READ),
    describe(asking.ollama_chat),
    describe(asking.self_evaluate, _READ),
    describe(peers.agent_message, _STATE, output=True),
    describe(peers.read_peer, _READ),
    describe(proposing.invoke_claude, _READ, _STATE, output=True),
    describe(proposing.check_claude_status, _READ),
    describe(proposing.propose_change, _READ, _STATE, output=True, high=True),
    describe(tooling.synthesize_capability, Effect.SYNTHESIZE, _EXEC, output=True, high=True),
    describe(tooling.retire_capability, _STATE),
    describe(researching.research_topic, _READ, Effect.NET),
)

BUILT_IN: Final[Mapping[str, Capability]] = MappingProxyType({each.name: each for each in _TABLE})
"""Name to capability, in the order in which they are listed."""
