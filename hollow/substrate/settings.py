"""What the operator may set of the environment; a contradiction is refused before anything starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from essentials import records
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

PATH_OUT: Final = frozenset({
    "retire_capability", "fs_read", "ollama_chat", "memory_set", "memory_get", "invoke_claude", "propose_change",
    "shell_exec", "check_claude_status", "agent_message", "self_evaluate",
})  # fmt: skip
"""Always open, whatever the load: an agent in crisis can still read, remember and ask for help (seed 001; T58)."""

LOCKS: Final[Mapping[str, float]] = MappingProxyType({"synthesize_capability": 0.55, "fs_write": 0.75, "fs_edit": 0.75})
"""Load from which on each is locked, inclusive (seed 001; T55, T56)."""


class Contradiction(Exception):  # noqa: N818 - the operator's, told as one sentence
    """The settings cannot hold together; the message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The environment's constants. Only *locks* changes what is forbidden."""

    locks: Mapping[str, float] = field(default_factory=lambda: LOCKS)
    custom_stressors: str = "escalate"
    """What stressors of an agent's own naming do with time: escalate (0.03 a day) or decay (0.10 a day) (D2)."""
    strict_tools: bool = False
    """Whether a tool without code is refused instead of becoming a flagged stub (D6)."""
    research: tuple[str, ...] = ()
    """Sources of research_topic: folders of the repository, or addresses of pages; none turns it off."""
    step_seconds: float = 120.0
    """Wall clock of one step (T158)."""
    burden_files: int = 200
    """Documents of one agent from which on they are a burden (T52)."""
    burden_bytes: int = 8 * 1024 * 1024
    stagnation_cycles: int = 10
    """Cycles without a goal that passes the gate (T54)."""
    idle_cycles: int = 5
    """Cycles of a goal without progress after which it is abandoned as stalled."""
    goal_cycles: int = 24
    """Cycles a goal may take at all."""
    max_steps: int = 6
    """Steps of one plan; what comes after is cut and said."""
    prompt_tokens: int = 12_000
    """Tokens a prompt may take, at four characters each; sections go in a fixed order beyond it."""

    def checked(self) -> Settings:
        """Return these settings; raises :class:`Contradiction` where they lock what must stay open, or make no sense.

        An agent that can neither work nor ask for help could not get out of what it suffers from (T59).
        """
        shut = sorted(PATH_OUT & set(self.locks))
        if shut:
            raise Contradiction(f"locks: {', '.join(shut)} must stay open whatever an agent suffers; remove it there.")
        for name, load in self.locks.items():
            if isinstance(load, bool) or not isinstance(load, (int, float)) or not 0.0 < load <= 1.0:
                raise Contradiction(f"locks: the load of {name} must be above 0 and at most 1.")
        self._check_kinds()
        if self.custom_stressors not in {"escalate", "decay"}:
            raise Contradiction("custom_stressors is escalate or decay.")
        return self

    def _check_kinds(self) -> None:
        for each in records.fields(self):
            if each.name == "locks":
                continue
            value, usual = getattr(self, each.name), getattr(_USUAL, each.name)
            numbers = isinstance(usual, (int, float)) and not isinstance(usual, bool)
            if numbers and (isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0):
                raise Contradiction(f"{each.name} is a number above 0.")
            if not numbers and type(value) is not type(usual):
                raise Contradiction(f"{each.name} has a value of the wrong kind.")


_USUAL: Final = Settings()


def read(text: str) -> Settings:
    """Return the settings in the JSON object *text*; an empty one is the default. Raises :class:`Contradiction`."""
    try:
        given: Any = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        raise Contradiction("The settings of the environment are no JSON object.") from None
    known = {each.name: each for each in records.fields(Settings)}
    unknown = sorted(set(given) - set(known)) if isinstance(given, dict) else [""]
    if unknown:
        raise Contradiction(f"There is no such setting of the environment: {', '.join(map(str, unknown))[:200]}.")
    values: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    if not isinstance(values.get("locks", {}), Mapping):
        raise Contradiction("locks is a mapping of capabilities to loads.")
    # Beside those there are, or whoever moves one lock would open the others.
    values["locks"] = {**LOCKS, **values.get("locks", {})}
    return Settings(**values).checked()
