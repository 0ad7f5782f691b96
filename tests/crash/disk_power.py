"""The pass that cuts the power: the disk is what has come to it by the end of the system call, and nothing else."""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.crash import points
from tests.crash.disk import Disk
from tests.crash.disk_pass import DiskPass
from tests.crash.frozen import Frozen
from tests.crash.model import Before, Point, Scenario, Struck, World

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.crash.points import Seen

    Group = Sequence[tuple[Point, str]]
    """Points that share a disk, each with the label of the call that was really made there."""

# A call that a signal interrupts before it has done anything is begun anew for ever, if every one is interrupted.
STOPPED: Final = tuple(name for name in points.FILES if name not in {"splice", "sendfile", "copy_file_range", "openat"})
"""System calls after which the command is frozen; the points between two of them see the disk of the later one."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What a power cut would leave at a moment."""

    image: Path
    known: Before
    """What the command may already have said to be so: it has told the disk to keep it."""
    code: int | None = None
    """Exit code of the command, where it is over."""
    said: str = ""


@dataclass(frozen=True, slots=True)
class Rebooted(World):
    """A world in which every command finds that the machine has been started anew."""

    def run(self, argv: Sequence[str], **more: object) -> subprocess.CompletedProcess[str]:
        """Run *argv* with another identity of the boot in its place, which it alone sees."""
        boot = self.path.parent / "boot_id"
        if not boot.exists():
            boot.write_text(f"{uuid.uuid4()}\n")
        return World.run(self, ["unshare", "--mount", "sh", "-c", _REBOOTED, str(boot), *argv], **more)


_REBOOTED: Final = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'


class PowerCut(DiskPass):
    """A power cut: the command runs once, and at every call the image of its disk is copied as the kernel has it.

    Between two calls that bring nothing to the disk it stays the same, and is judged once, by the last one's claims.
    """

    name = "power"

    def strikes(self, scenario: Scenario, folder: Path, at: Sequence[Point]) -> Iterator[Struck]:
        """The worlds at each point of *at*, those of one disk one after the other."""
        with self.prepared(scenario, folder) as (made, log):
            world = log.world
            before = Before.of(world)
            scenario.arm(world)
            # Last, because git has refreshed its index to tell, and does not bring it to the disk by itself.
            made.sync()
            seen, cuts = _recorded(scenario, before, made, log)
        for cut, group in _grouped(seen, cuts, at):
            yield from _struck(scenario, Rebooted(world.path), Disk(cut.image, made.place), cut, group)


def _recorded(scenario: Scenario, known: Before, on: Disk, log: points.Log) -> tuple[list[Seen], list[Cut]]:
    """Run the command of *scenario*: every call of it, and for each the cut that comes with or after it.

    *known* is what stands in the world before it.
    """
    world, folder = log.world, log.path.parent
    inject = f"{','.join(f'?{name}' for name in STOPPED)}:signal=SIGSTOP:when=1+"
    frozen = Frozen(world, points.traced(scenario.argv(world), log.path, inject), log.path)
    lines: list[str] = []
    cuts: list[Cut] = []
    written, image = "", folder / "cut-0.img"
    try:
        for number, fresh in enumerate(frozen.stops()):
            calls = list(points.read(fresh, world))
            known = _grown(known, world, calls[-1].label if calls else "")
            if on.written() != written:
                image = folder / f"cut-{number}.img"
                written = on.copy(image)
            cuts += [Cut(image, known)] * len(calls)
            lines += fresh
        code = frozen.end()
    finally:
        frozen.kill()
    assert code in scenario.exits, f"{scenario.name}: {code}: {frozen.said()}"
    assert not world.quiet(), f"{scenario.name}: processes are left"
    cuts[-1] = dataclasses.replace(cuts[-1], code=code, said=frozen.said())
    return list(points.read(lines, world, log.started)), cuts


def _grown(known: Before, world: World, label: str) -> Before:
    """*known* and what the call *label*, which has just been made, has made last."""
    if label in {"fsync INDEX.jsonl", "fdatasync INDEX.jsonl"}:
        return dataclasses.replace(known, ledger=(world.repo / ".agents" / "INDEX.jsonl").read_bytes())
    if label == "fsync runs":
        names = {path.name for path in (world.repo / ".agents" / "runs").iterdir()}
        return dataclasses.replace(known, runs=known.runs | names)
    return known


def _grouped(seen: Sequence[Seen], cuts: Sequence[Cut], at: Sequence[Point]) -> Iterator[tuple[Cut, Group]]:
    """The points of *at* that share a disk, the last one first, with the last cut of that disk."""
    wanted: dict[int, list[Point]] = {}
    for point in at:
        wanted.setdefault(_place_of(point, seen), []).append(point)
    groups: dict[Path, list[tuple[Point, str]]] = {}
    last: dict[Path, Cut] = {}
    for number, (each, cut) in enumerate(zip(seen, cuts, strict=True)):
        last[cut.image] = cut
        for point in wanted.get(number, ()):
            groups.setdefault(cut.image, []).insert(0, (point, each.label or point.label))
    return ((last[image], group) for image, group in groups.items())


def _place_of(point: Point, seen: Sequence[Seen]) -> int:
    """Index of the call that is *point*, or comes nearest to it: how often some calls are made is chance."""

    def far(at: int) -> tuple[bool, bool, int, int]:
        """How far the call *at* is from the point."""
        one = seen[at]
        return one.call != point.call, one.label != point.label, abs(one.nth - point.nth), at

    return min(range(len(seen)), key=far)


def _struck(scenario: Scenario, world: World, on: Disk, cut: Cut, group: Group) -> Iterator[Struck]:
    """The world of *cut*, once for each point of *group*; all but the first are like that one."""
    with on.mounted():
        (first, label), *others = group
        wrong = tuple(_broken_word(scenario, world)) if cut.code is not None else ()
        struck = Struck(first, world, cut.known, bool(label), label, cut.code or 0, cut.said, wrong)
        yield struck
        for point, label in others:
            yield dataclasses.replace(struck, point=point, hit=bool(label), label=label, like=first)


def _broken_word(scenario: Scenario, world: World) -> Iterator[str]:
    """What a command has said to be done and the power cut after it has undone."""
    with contextlib.suppress(OSError):
        world.agent("status")
    yield from (f"claimed: {each}" for each in scenario.end(world))
