"""What the passes that need a disk of their own share: when they can strike, and how a world comes to such a disk."""

from __future__ import annotations

import contextlib
import shutil
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from tests.crash import disk, points
from tests.crash.disk import Disk
from tests.crash.model import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.crash.model import Point, Scenario


class DiskPass:
    """A pass whose worlds lie on a disk of their own."""

    pardons: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def missing(self) -> str:
        """Why no such disk can be struck here, or nothing."""
        return points.why_not() or disk.why_not()

    def points(self, scenario: Scenario, world: World, template: Path, log: Path) -> list[Point]:
        """All points of the command itself, in order."""
        return points.of_command(scenario, world, template, log)

    @contextlib.contextmanager
    def prepared(self, scenario: Scenario, folder: Path) -> Iterator[tuple[Disk, points.Log]]:
        """A new disk in *folder*, mounted for the time of the ``with``, and the log of strikes at *scenario*'s world on it.

        All of it comes to the disk at the end. Raises AssertionError where the preparation leaves processes.
        """
        made = Disk.made(folder)
        world = World(made.place / "world")
        with made.mounted():
            scenario.prepare(world)
            assert not world.quiet(), f"{scenario.name}: its preparation leaves processes"
            yield made, points.Log(folder / "log", world, _started(scenario, world, folder))
            made.sync()


def _started(scenario: Scenario, world: World, folder: Path) -> list[str]:
    """Names of the programs that the command of *scenario* starts, found by running it; *world* is then as it was."""
    template = folder / "template"
    world.keep(template)
    try:
        found = points.started_by(scenario, world, template, folder / "log")
        world.restore(template)
    finally:
        shutil.rmtree(template)
    return found
