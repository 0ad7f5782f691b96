"""All engines by name: the built-in ones, then those that other packages bring."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from agents.engines.command import AnyCommand
from agents.engines.hollow import Hollow
from agents.engines.scripted import Scripted
from agents.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents.engines.base import Engine

GROUP: Final = "agent_box.engines"
BUILT_IN: Final[Mapping[str, Engine]] = MappingProxyType(
    {engine.name: engine for engine in (Hollow(), AnyCommand(), Scripted())}
)


def engine(name: str) -> Engine:
    """The engine called *name*; a built-in one cannot be replaced. Raises OperatorError where there is none."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        found: Engine = entry.load()()
        return found
    raise OperatorError(f"There is no engine “{name[:40]}”.", f"Engines: {', '.join(sorted(BUILT_IN))}.")
