"""A small disk of its own: an ext4 image on a loop device that can be copied as a power cut leaves it, and filled up."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE: Final = 768 * 1024**2
"""Bytes of an image; it is sparse, and an airlock wants 256 MiB to spare."""
_MAKE: Final = ("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-J", "size=8",
                "-E", "lazy_itable_init=1,lazy_journal_init=1")  # fmt: skip
# Nothing gets to the disk by itself: the journal waits for minutes, and a rename does not flush what it renames.
_OPTIONS: Final = "loop,commit=300,noauto_da_alloc"
_NAME: Final = "crash-disk-"
_WRITES: Final = slice(4, 7)
"""Requests, merges and sectors written, in the statistics of a block device."""
_TRIES: Final = 20


@cache
def why_not() -> str:
    """Why this machine makes no disk, or nothing."""
    if os.geteuid() != 0:
        return "only root can mount a disk image"
    lacking = [name for name in ("mkfs.ext4", "mount", "umount", "losetup") if shutil.which(name) is None]
    if lacking:
        return f"{lacking[0]} is not installed"
    done = subprocess.run(["losetup", "--find"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"there is no loop device: {done.stderr.strip()[:200]}"


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk whose image is the file *image*, to be mounted at the folder *place*."""

    image: Path
    place: Path

    @classmethod
    def made(cls, folder: Path) -> Disk:
        """A new, empty disk in *folder*; what dead processes left mounted is unmounted first."""
        unmount_stale()
        disk = cls(folder / "disk.img", folder / f"{_NAME}{os.getpid()}")
        disk.place.mkdir(parents=True)
        disk.image.touch()
        os.truncate(disk.image, SIZE)
        _told(*_MAKE, str(disk.image))
        return disk

    @contextlib.contextmanager
    def mounted(self) -> Iterator[Path]:
        """Mount it for the time of the ``with``; the folder that its files lie in."""
        _told("mount", "-o", _OPTIONS, str(self.image), str(self.place))
        try:
            yield self.place
        finally:
            unmount(self.place)

    def sync(self) -> None:
        """Bring everything to the disk that was written so far."""
        _told("sync", "-f", str(self.place))

    def written(self) -> str:
        """A word that changes whenever something has come to the disk."""
        device = self.place.stat().st_dev
        stat = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text()
        return " ".join(stat.split()[_WRITES])

    def copy(self, target: Path) -> str:
        """Copy the image of the mounted disk to *target*: what a power cut would leave of it; returns :meth:`written`.

        Raises AssertionError where the disk does not stand still for the moment of a copy.
        """
        for _ in range(_TRIES):
            before = self.written()
            duplicate(self.image, target)
            if self.written() == before:
                return before
        raise AssertionError(f"{self.image} never stands still")

    def fill(self) -> Path:
        """Take every free block of the mounted disk; returns the file that has them."""
        filler = self.place / "filler"
        handle = os.open(filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            piece = SIZE
            while piece >= 4096:
                try:
                    os.posix_fallocate(handle, os.fstat(handle).st_size, piece)
                except OSError as why:
                    if why.errno != errno.ENOSPC:
                        raise
                    piece //= 2
        finally:
            os.close(handle)
        return filler


def duplicate(image: Path, target: Path) -> None:
    """Copy *image* to *target* without its holes."""
    _told("cp", "--sparse=always", str(image), str(target))


def unmount(place: Path) -> None:
    """Unmount what is at *place*; a process that still has a file open keeps the disk, but not its place."""
    if subprocess.run(["umount", str(place)], check=False, capture_output=True).returncode:
        _told("umount", "-l", str(place))


def unmount_stale() -> None:
    """Unmount what processes that are dead have left mounted; their loop devices go with it."""
    for line in Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines():
        place = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), line.split()[1])
        owner = re.search(rf"/{_NAME}(\d+)$", place)
        if owner and not Path("/proc", owner[1]).exists():
            subprocess.run(["umount", "-l", place], check=False, capture_output=True)


def _told(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr.strip()}"
