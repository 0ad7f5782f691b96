"""The passes of the crash matrix that need a disk of their own: controls that prove them, and a sample of each."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from tests.crash import disk, matrix, points, scenarios
from tests.crash.disk import Disk
from tests.crash.disk_full import FullDisk
from tests.crash.disk_power import PowerCut
from tests.crash.model import Point
from tests.support import needs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.crash.model import Pass, Verdict


@pytest.fixture
def made(tmp_path: Path) -> Disk:
    """An empty disk."""
    if why := disk.why_not():
        needs.lacking(why)
    return Disk.made(tmp_path)


@pytest.fixture
def traced(made: Disk) -> None:
    """A machine on which a program can be frozen at a call, and that makes disks."""
    if why := points.why_not():
        needs.lacking(why)


def fsynced(path: Path, data: bytes) -> None:
    """Write *data* to *path*, and bring it to the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(handle, data)
    os.fsync(handle)
    os.close(handle)


def flushed(folder: Path) -> None:
    """Bring the names in *folder* to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


class TestTheDisk:
    """Controls: what a power cut takes here, and what it leaves; and that full is full."""

    def test_a_power_cut_takes_what_was_not_brought_to_the_disk_and_nothing_else(self, made, tmp_path):
        """C13: a control, without which a pass that loses nothing would prove nothing."""
        with made.mounted() as folder:
            fsynced(folder / "old", b"old")
            fsynced(folder / "renamed", b"old")
            flushed(folder)
            (folder / "lost").write_bytes(b"x" * 9000)
            (folder / "half").write_bytes(b"new")
            (folder / "half").replace(folder / "renamed")
            before = made.written()
            assert made.copy(tmp_path / "early.img") == before
            # The journal brings every name with it, and no byte of what they stand for.
            fsynced(folder / "kept", b"kept")
            flushed(folder)
            assert made.written() != before
            made.copy(tmp_path / "late.img")
        with Disk(tmp_path / "early.img", made.place).mounted() as folder:
            assert (folder / "old").read_bytes() == b"old"
            assert (folder / "renamed").read_bytes() == b"old"
            assert not (folder / "lost").exists()
            assert not (folder / "kept").exists()
        with Disk(tmp_path / "late.img", made.place).mounted() as folder:
            assert [(folder / name).read_bytes() for name in ("old", "kept")] == [b"old", b"kept"]
            assert [(folder / name).read_bytes() for name in ("lost", "renamed")] == [b"", b""]

    def test_a_disk_that_is_filled_has_no_block_left_until_it_is_freed(self, made):
        """C16: a control; not even a byte of a new file finds a place."""
        with made.mounted() as folder:
            filler = made.fill()
            with pytest.raises(OSError, match="No space left") as refused:
                fsynced(folder / "more", b"x" * 8192)
            assert refused.value.errno == errno.ENOSPC
            filler.unlink()
            fsynced(folder / "more", b"x" * 8192)
            assert (folder / "more").stat().st_size == 8192

    def test_what_a_dead_process_has_left_mounted_is_unmounted(self, made, tmp_path):
        stale = Disk(made.image, tmp_path / "crash-disk-4194399")
        stale.place.mkdir()
        with made.mounted():
            pass
        with stale.mounted():
            assert os.path.ismount(stale.place)
            disk.unmount_stale()
            assert not os.path.ismount(stale.place)
            # The end of the `with` finds something to unmount all the same.
            os.system(f"mount -t tmpfs none {stale.place}")


def struck(by: Pass, name: str, labels: Sequence[str], folder: Path) -> list[Verdict]:
    """The verdicts of *by* on the scenario *name* at the last point of each of the *labels*."""
    scenario = scenarios.named(name)
    found = matrix.look(scenario, folder / "look").points
    at = [max((each for each in found if each.label == label), key=lambda each: each.nth) for label in labels]
    return matrix.strike(scenario, by, at, folder / "strikes")


def wrong(verdicts: Sequence[Verdict]) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.label, each.wrong) for each in verdicts if each.wrong]


@pytest.mark.slow
@pytest.mark.timeout(600)
class TestASample:
    """Of each pass; `python -m tests.crash` takes all of it."""

    def test_after_a_power_cut_a_merge_is_whole_or_was_never_begun(self, traced, tmp_path):
        """C13: nothing that git was told to keep is an empty file, and what is called merged is merged."""
        labels = ["rename .git/index", "write INDEX.jsonl (run.merged)", "exit"]
        verdicts = struck(PowerCut(), "merge", labels, tmp_path)
        assert wrong(verdicts) == []
        assert [each.hit for each in verdicts] == [True] * len(labels)

    def test_after_a_power_cut_a_tool_is_the_old_one_or_the_new_one(self, traced, tmp_path):
        """C13: the pair of code and description never disagrees, whichever of the two has come to the disk."""
        labels = ["rename hollow/tools/dynamic/count_lines.py", "rename hollow/tools/dynamic/count_lines.json", "exit"]
        assert wrong(struck(PowerCut(), "publish a tool", labels, tmp_path)) == []

    def test_on_a_full_disk_a_run_ends_by_itself_and_says_why(self, traced, tmp_path):
        """C16: with a sentence and its exit code, and with space again its state is the truth."""
        labels = ["rename runs/<run>", "start guard.py"]
        verdicts = struck(FullDisk(), "scout", labels, tmp_path)
        assert wrong(verdicts) == []
        assert [each.hit for each in verdicts] == [True] * len(labels)
        assert any(each.code in {3, 4} and each.said for each in verdicts)

    def test_a_point_that_never_comes_is_no_hit(self, traced, tmp_path):
        """A control: a strike that finds nothing to strike must not pass for one that was survived."""
        scenario = scenarios.named("tell")
        [verdict] = matrix.strike(scenario, FullDisk(), [Point("rename", 999, "never")], tmp_path / "strikes")
        assert (verdict.hit, verdict.code) == (False, 0)
