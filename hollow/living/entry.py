"""From what the command line says to one cycle of an agent's life: doors are opened here and closed again."""

from __future__ import annotations

import contextlib
import functools
import os
import time

from hollow import gitread
from hollow.forge import Forge
from hollow.hands import paths
from hollow.hands.registry import BUILT_IN
from hollow.living.cycle import turn
from hollow.living.life import Life
from hollow.memory.memory import Memory
from hollow.sandbox import narrowed, offered
from hollow.substrate import routing, settings
from hollow.toolbox.workspace import workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from hollow.answer import Answer
    from hollow.mind import Thinker
    from hollow.sandbox import Cell
    from hollow.stream import Talk


def live(
    *, agent: str, repo: Path, state: Path, run: str, substrate: str, surroundings: str, thinker: Thinker, talk: Talk
) -> Answer:
    """Run one cycle of *agent* in the airlock *repo* with the memory at *state*; returns what it comes to.

    *run* names the cycle in all that is remembered, *substrate* holds settings of the environment as JSON,
    *surroundings* is what already confines this process, *thinker* the mind, and *talk* hears every step. Raises
    :class:`hollow.substrate.settings.Contradiction`, :class:`hollow.mind.Away` and
    :class:`hollow.memory.files.MemoryFault`.
    """
    agreed = settings.read(substrate)

    def heard(kind: str, **facts: Any) -> None:
        """Say a fact, with whose it is."""
        talk.fact(kind, **{"agent": agent, **facts})

    memory = Memory(state, warn=heard)
    own = own_folders(repo, agent)
    cell = _cells(repo, state, surroundings, own)
    life = Life(
        agent=agent, cycle=run, memory=memory, thinker=thinker, settings=agreed, talk=talk, now=time.time, cell=cell,
        place=workspace(repo, beat=lambda passed: talk.fact("step.waiting", seconds=round(passed))),
        forge=Forge(
            memory.shelf, memory.broken, cell, time.time, strict=agreed.strict_tools, fact=heard,
            builtins={name: each.description for name, each in BUILT_IN.items()}, forget=memory.vectors.forget,
            similar=routing.likeness(thinker.embed, [each.description for each in BUILT_IN.values()]),
        ),
        base=_head(repo),
    )  # fmt: skip
    with contextlib.closing(thinker):
        return turn(life)


def own_folders(repo: Path, agent: str) -> tuple[Path, ...]:
    """Make and return the folders of the airlock *repo* that *agent* may write in (seed 000; Q6).

    Where the repository has a link of that name nothing is made: it would be made wherever the link leads. Raises
    :class:`OSError` where it has a file there.
    """
    folders = tuple(repo / folder for folder in paths.own_folders(agent))
    for folder in folders:
        if folder.resolve() != repo.resolve() / folder.relative_to(repo):
            continue
        # They have to be there before a sandbox can have them writable.
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def _cells(repo: Path, state: Path, surroundings: str, own: tuple[Path, ...]) -> Callable[[bool], Cell | None]:
    @functools.cache
    def best() -> Cell | None:
        """Looked for once, and only when a child is to be run: the probe takes a moment."""
        return offered(repo, state / "index", surroundings, os.environ)

    @functools.cache
    def cell(writing: bool) -> Cell | None:
        """The sandbox of a child that may write the agent's own folders, or nothing at all (T57)."""
        found = best()
        return None if found is None else narrowed(found, own if writing else ())

    return cell


def _head(repo: Path) -> str:
    try:
        return gitread.git(repo, "rev-parse", "--verify", "HEAD").decode().strip()
    except gitread.GitReadError:
        return ""
