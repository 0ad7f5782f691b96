"""Load locks: what an agent that suffers may not do, decided by what a capability does to the world."""

from __future__ import annotations

import math
from types import MappingProxyType

from essentials.records import dataclass
from hollow.substrate.model import Effect
from hollow.substrate.settings import PATH_OUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Final

    from hollow.substrate.settings import Settings

_BY_EFFECT: Final[Mapping[Effect, tuple[str, ...]]] = MappingProxyType(
    {Effect.WRITE: ("fs_write", "fs_edit"), Effect.SYNTHESIZE: ("synthesize_capability",)}
)
"""Effect to the names under which the settings lock it: whatever has that effect is closed with them (W9)."""

_HAIR: Final = 1e-9
"""A load is a sum of floats, and 0.1 + 0.2 + … may fall short of the edge by a rounding error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """Why a capability may not be called now."""

    lock: str
    """Name of the lock that is closed, as in the settings, or ``earned``."""
    sentence: str
    """What the agent is told."""


def denied(name: str, effects: Collection[Effect], load: float | None, settings: Settings) -> Denial | None:
    """Return why the capability *name*, which does *effects*, is locked at *load* (0 to 1), or None where it is open.

    A *load* of None, which is one that could not be read, closes whatever has a lock at all (S16, T60). What leads out
    of suffering is open at any load (S17, T58); a child that it starts is bound by :func:`may_write` all the same.
    """
    if name in PATH_OUT:
        return None
    lock = _lowest(name, effects, settings)
    if lock is None or _open(load, settings.locks[lock]):
        return None
    return Denial(lock=lock, sentence=_sentence(name, load, settings.locks[lock]))


def may_write(load: float | None, settings: Settings) -> bool:
    """Return whether a child of the agent may write the agent's own folders at *load* (T57).

    A command or a synthesized tool writes by other names than ``fs_write``; the lock would mean nothing if it could.
    """
    lock = _lowest("", (Effect.WRITE,), settings)
    return lock is None or _open(load, settings.locks[lock])


def sentences(load: float | None, settings: Settings) -> tuple[str, ...]:
    """Return what is locked at *load*, one sentence each, in the order in which the locks close; for the prompt."""
    closed = sorted((at, name) for name, at in settings.locks.items() if not _open(load, at))
    told = tuple(_sentence(name, load, at) for at, name in closed)
    if may_write(load, settings):
        return told
    return (*told, "Commands and synthesized tools still run, but every file is read-only to them.")


def _lowest(name: str, effects: Collection[Effect], settings: Settings) -> str | None:
    """Name of the lock that closes first for *name* and *effects*, its own where others do too; None without any."""
    names = {name, *(each for effect in effects for each in _BY_EFFECT.get(effect, ()))}
    return min(names & settings.locks.keys(), key=lambda each: (settings.locks[each], each != name, each), default=None)


def _open(load: float | None, at: float) -> bool:
    # Inclusive (T55, T56). A load that is no number compares as false, and so stays closed.
    return load is not None and math.isfinite(load) and load < at - _HAIR


def _sentence(name: str, load: float | None, at: float) -> str:
    if load is None or not math.isfinite(load):
        return f"{name} is locked: your suffering cannot be read now, and until it can whatever has a lock is closed."
    return f"{name} is locked: your suffering load is {load:.2f}, and it is open only below {at:.2f}."
