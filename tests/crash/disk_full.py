"""The pass that fills the disk: at the system call not one block is free any more, and the command has to end by itself."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
from typing import TYPE_CHECKING

from tests.crash import disk, points
from tests.crash.disk import Disk
from tests.crash.disk_pass import DiskPass
from tests.crash.frozen import Frozen, ended
from tests.crash.kill import aimed
from tests.crash.model import Before, Point, Scenario, Struck, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class FullDisk(DiskPass):
    """A full disk: the command is frozen at the call, every free block is taken, and it goes on.

    It has to end by itself with a sentence, `status` has to answer beside it, and once there is space again everything
    must be as after any other death, with nothing claimed that did not come to the disk.
    """

    name = "full"

    def points(self, scenario: Scenario, world: World, template: Path, log: Path) -> list[Point]:
        """All points of the command itself, in order, but its exit: there it can no longer be frozen."""
        return [each for each in DiskPass.points(self, scenario, world, template, log) if each.label != "exit"]

    def strikes(self, scenario: Scenario, folder: Path, at: Sequence[Point]) -> Iterator[Struck]:
        """One disk for each point of *at*, all copies of one image."""
        with self.prepared(scenario, folder) as (made, log):
            world = log.world

        def fresh() -> contextlib.AbstractContextManager[Disk]:
            """The world on a disk of its own: one that somebody still has open goes on writing to it."""
            return _copied(made, folder)

        def strike(on: Disk, point: Point, nth: int) -> tuple[Struck, Sequence[points.Seen]]:
            """Strike the world that is on the disk *on*."""
            before = Before.of(world)
            scenario.arm(world)
            struck, seen = _strike(scenario, before, Point(point.call, nth, point.label), on, log)
            return dataclasses.replace(struck, point=point), seen

        for point in at:
            yield from aimed(point, fresh, strike)


@contextlib.contextmanager
def _copied(made: Disk, folder: Path) -> Iterator[Disk]:
    """A copy of the disk *made*, mounted in its place for the time of the ``with``."""
    used = Disk(folder / f"used-{secrets.token_hex(6)}.img", made.place)
    disk.duplicate(made.image, used.image)
    try:
        with used.mounted():
            yield used
    finally:
        used.image.unlink()


def _strike(
    scenario: Scenario, before: Before, point: Point, on: Disk, log: points.Log
) -> tuple[Struck, Sequence[points.Seen]]:
    world = log.world
    argv = scenario.argv(world)
    frozen = Frozen(world, points.traced(argv, log.path, f"{point.call}:signal=SIGSTOP:when={point.nth}"), log.path)
    label = ""
    filler = on.place / "filler"
    try:
        for lines in frozen.stops():
            if not frozen.over():
                label = label or list(points.read(lines, world, log.started))[-1].label
                on.fill()
        code = frozen.end()
        wrong = [*ended(code, frozen.said(), "on a full disk"), *_looked_at(world)]
    except AssertionError as why:
        code, wrong = -1, [f"struck: {why}"]
    finally:
        frozen.kill()
    filler.unlink(missing_ok=True)
    if code in scenario.exits and not wrong:
        # What it says is done has to be done: nobody looks a second time.
        wrong += _kept_word(scenario, world)
    seen = log.read()
    return Struck(point, world, before, bool(label), label, code, frozen.said(), tuple(wrong)), seen


def _looked_at(world: World) -> Iterator[str]:
    """The operator looks while the disk is still full."""
    done = world.agent("status")
    said = f"{done.stdout}{done.stderr}"
    yield from (
        f"full: status: {each.removeprefix('struck: ')}" for each in ended(done.returncode, said, "on a full disk")
    )


def _kept_word(scenario: Scenario, world: World) -> Iterator[str]:
    scenario.calm(world)
    world.agent("status")
    yield from (f"claimed: {each}" for each in (scenario.claims or scenario.end)(world))
