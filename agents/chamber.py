"""An open airlock as a value, and how it is kept beside its clean room."""

from __future__ import annotations

import json
import os

from agents import files
from agents.errors import HostError
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any, Final

    from agents.cleanroom import CleanRoom

PRIVATE: Final = (b".agents", b".claude", b"agent_box")
"""Folders that no patch ever touches (design, section 7): as in the base, whatever the agent did to them."""

DAMAGED: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading a note raises that somebody else has written: an agent without a sandbox can."""

_OPENED: Final = "airlock.json"
_OPENED_CAP: Final = 16 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Airlock:
    """An open airlock."""

    path: Path
    """The work tree, where the agent works."""
    room: CleanRoom
    """What the supervisor looks through."""
    base: str
    """Commit that the files were checked out from."""
    files: int = 0
    """Number of files that were checked out."""
    submodules: Mapping[bytes, str] = field(default_factory=dict)
    """Paths of submodules and the stamp of the files they had when the airlock was opened."""
    tracked_private: tuple[bytes, ...] = ()
    """Those of the private folders that the base holds files of."""
    notes: tuple[str, ...] = ()
    """Sentences for the operator."""

    @property
    def private(self) -> tuple[bytes, ...]:
        """Folders that no patch touches."""
        return PRIVATE

    @property
    def left(self) -> tuple[bytes, ...]:
        """Paths that stay as in the base, whatever is there now."""
        return (*PRIVATE, *self.submodules)


def save(airlock: Airlock) -> None:
    """Note in its clean room that *airlock* is open: from now on an agent may have worked in it."""
    # Without the room nobody could say any more what the agent did: it must outlast a power cut before the note does.
    airlock.room.keep()
    files.write(airlock.room.path / _OPENED, _encode(airlock))


def load(path: Path, room: CleanRoom) -> Airlock | None:
    """The airlock at *path* that was noted in *room*, or None where its opening never came to its end.

    Raises HostError where the note is damaged (C29).
    """
    text = files.read_capped(room.path / _OPENED, _OPENED_CAP)
    if text is None:
        return None
    try:
        return Airlock(path=path, room=room, **_decode(text))
    except DAMAGED as why:
        raise HostError(f"What was noted of the airlock {path.name} is damaged.", f"Look at it: {path}") from why


def _encode(airlock: Airlock) -> bytes:
    told = {
        "base": airlock.base,
        "files": airlock.files,
        "submodules": {os.fsdecode(path): seen for path, seen in airlock.submodules.items()},
        "tracked_private": [os.fsdecode(path) for path in airlock.tracked_private],
        "notes": airlock.notes,
    }
    return json.dumps(told).encode()


def _decode(text: bytes) -> dict[str, Any]:
    told = json.loads(text)
    return {
        **told,
        "submodules": {os.fsencode(path): seen for path, seen in told["submodules"].items()},
        "tracked_private": tuple(map(os.fsencode, told["tracked_private"])),
        "notes": tuple(told["notes"]),
    }
