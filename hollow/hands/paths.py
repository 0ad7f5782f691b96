"""What the paths of an agent mean: its own folders, its peers' folders, and what it may only read."""

from __future__ import annotations

import os
from pathlib import Path

from hollow.confine import Refusal, shown
from hollow.substrate.model import AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from hollow.confine import Confinement

_OLD_TOP: Final = "/agentOS"
"""How the seeds write the top of the airlock."""

DESIGN: Final = "design"
"""The folder of design documents, which all agents write (seed 000)."""
WORKSPACE: Final = "workspace"


def here(path: str) -> str:
    """Return *path* as one below the top of the airlock: ``/agentOS/design/x.md`` is ``design/x.md``."""
    asked = path.strip()
    if asked == _OLD_TOP or asked.startswith(f"{_OLD_TOP}/"):
        return asked[len(_OLD_TOP) :].lstrip("/") or "."
    return asked


def own_folders(agent: str) -> tuple[str, ...]:
    """Return the folders that *agent* may write, relative to the top of the airlock: all others are closed (Q6, Q7)."""
    return f"{WORKSPACE}/{agent}", DESIGN


def peer_of(path: str, agent: str) -> str | None:
    """Return whose folder *path*, relative to the top and without links, lies in, if that is another agent's."""
    parts = path.split("/")
    named = parts[1] if len(parts) > 1 and parts[0] == WORKSPACE else ""
    return named if named in AGENTS and named != agent else None


def writable(border: Confinement, path: str, agent: str) -> str:
    """Return the file *path* relative to the top, for writing by *agent*; it need not exist.

    Raises :class:`Refusal` unless it lies in one of the agent's own folders by its name and in truth: ``..``, another
    root or a symbolic link on the way is no door (T23, W6). Nothing is made by asking.
    """
    asked = here(path)
    named = border.name(asked)
    real = Path(os.path.realpath(border.root.joinpath(*named)))
    if real != border.root.joinpath(*named):
        raise Refusal(f"{path} leads through a symbolic link; write to the place itself.")
    parts = shown(named)
    # At least one part below the folder: the folder itself is no file.
    if not any(parts.startswith(f"{folder}/") for folder in own_folders(agent)):
        mine = " and ".join(f"{folder}/" for folder in own_folders(agent))
        raise Refusal(f"{path} is not yours to write: only {mine} are. For anything else use propose_change.")
    return parts


def readable(border: Confinement, path: str) -> str:
    """Return what *path* leads to, relative to the top, links followed; raises :class:`Refusal` where it is closed."""
    return shown(border.resolve(here(path))) or "."
