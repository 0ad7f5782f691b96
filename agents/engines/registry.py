"""All engines by name: the built-in ones, then those that other packages bring."""

from __future__ import annotations

import reprlib
from types import MappingProxyType

from agents.engines.claude import Claude
from agents.engines.codex import Codex
from agents.engines.command import AnyCommand
from agents.engines.hollow import Hollow
from agents.engines.scripted import Scripted
from agents.errors import HostError, OperatorError
from essentials import packages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint
    from typing import Final

    from agents.engines.base import Engine

GROUP: Final = "agent_box.engines"
BUILT_IN: Final[Mapping[str, Engine]] = MappingProxyType(
    {engine.name: engine for engine in (Hollow(), Claude(), Codex(), AnyCommand(), Scripted())}
)


_MEMBERS: Final = ("name", "output", "confined", "dialect", "tools", "version_argv", "command")
"""What the protocol asks for; a missing one would only show in the middle of a run."""


def engine(name: str) -> Engine:
    """The engine called *name*; a built-in one cannot be replaced.

    Raises OperatorError where there is none, HostError where the package that brings it is broken.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    from importlib.metadata import entry_points

    packages.complete()
    others = entry_points(group=GROUP)
    for entry in others.select(name=name):
        return _loaded(entry)
    known = ", ".join(sorted({*BUILT_IN, *others.names}))
    raise OperatorError(f"There is no engine {reprlib.repr(name)}.", f"Engines: {known}.")


def _loaded(entry: EntryPoint) -> Engine:
    brings = entry.dist.name if entry.dist else entry.value
    try:
        found: Engine = entry.load()()
        lacks = [member for member in _MEMBERS if not hasattr(found, member)]
    except Exception as why:  # noqa: BLE001 - a stranger's module may raise anything at import; nothing of it is swallowed
        why_not = f"{type(why).__name__}: {why}"
    else:
        if not lacks:
            return found
        why_not = f"it has no {', '.join(lacks)}"
    raise HostError(f"The engine “{entry.name}” of {brings} does not work ({why_not}).", f"Reinstall {brings}.")
