"""The pass that fills the disk: at the system call not one block is free any more, and the command has to end by itself."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import secrets
import shutil
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from tests.crash import disk, points
from tests.crash.disk import Disk
from tests.crash.frozen import Frozen
from tests.crash.kill import TRIES, closer
from tests.crash.model import Before, Point, Scenario, Struck, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

SPOKEN: Final = frozenset({0, 2, 3, 4, 5})
"""Exit codes that the manual knows: whatever fails has one of them, and a sentence."""
_TRACEBACK: Final = re.compile(r"Traceback|Agent Box itself failed|Exception ignored")


class FullDisk:
    """A full disk: the command is frozen at the call, every free block is taken, and it goes on.

    It has to end by itself with a sentence, `status` has to answer beside it, and once there is space again everything
    must be as after any other death, with nothing claimed that did not come to the disk.
    """

    name = "full"
    pardons: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def missing(self) -> str:
        """Why no disk can be filled here, or nothing."""
        return points.why_not() or disk.why_not()

    def strikes(self, scenario: Scenario, folder: Path, at: Sequence[Point]) -> Iterator[Struck]:
        """One disk for each point of *at*, all copies of one image."""
        made = Disk.made(folder)
        world = World(made.place / "world")
        with made.mounted():
            scenario.prepare(world)
            assert not world.quiet(), f"{scenario.name}: its preparation leaves processes"
            made.sync()
        with _copied(made, folder) as used:
            started = _started(scenario, used, folder)
        for point in at:
            nth = point.nth
            for tried in range(1, TRIES + 1):
                # Never the same file: a disk that somebody still has open goes on writing to it.
                with _copied(made, folder) as used:
                    before = Before.of(world)
                    scenario.arm(world)
                    log = points.Log(folder / "log", world, started)
                    struck, seen = _strike(scenario, before, Point(point.call, nth, point.label), used, log)
                    struck = dataclasses.replace(struck, point=point)
                    if struck.label == point.label or tried == TRIES:
                        yield struck
                        break
                nth = closer(point, nth, seen)


def _started(scenario: Scenario, used: Disk, folder: Path) -> list[str]:
    """Names of the programs that the command of *scenario* starts, found by running it on the disk *used*."""
    world, template = World(used.place / "world"), folder / "template"
    world.keep(template)
    try:
        return points.started_by(scenario, world, template, folder / "log")
    finally:
        shutil.rmtree(template)


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
        wrong = [*_ended(code, frozen.said()), *_looked_at(world)]
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


def _ended(code: int, said: str) -> Iterator[str]:
    if code not in SPOKEN or _TRACEBACK.search(said):
        yield f"struck: on a full disk it ended with {code}: {said}"
    elif code and not said.strip():
        yield f"struck: on a full disk it ended with {code} and said nothing."


def _looked_at(world: World) -> Iterator[str]:
    """The operator looks while the disk is still full."""
    done = world.agent("status")
    said = f"{done.stdout}{done.stderr}"
    yield from (f"full: status: {each.removeprefix('struck: ')}" for each in _ended(done.returncode, said))


def _kept_word(scenario: Scenario, world: World) -> Iterator[str]:
    scenario.calm(world)
    world.agent("status")
    yield from (f"claimed: {each}" for each in (scenario.claims or scenario.end)(world))
