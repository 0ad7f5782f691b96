"""The door to the disk holds what it promises, in real processes, on real file systems, under SIGKILL."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from agents import files, locks
from agents.errors import HostError
from agents.lockorder import Rank
from tests.support.boxes import child, ended, every_step, fork, killed_at_random, together, until


@pytest.fixture
def tiny(tmp_path):
    """A file system of 64 KiB, or None where none can be mounted."""
    place = tmp_path / "tiny"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True)
    if done.returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_old_or_new_whenever_its_writer_is_killed(tmp_path, durable):
    """T157: SIGKILL at 100 random moments (50 of each kind); what a reader finds is one of the whole files."""
    path, chance = tmp_path / "state.json", random.Random(7)
    versions = [bytes([letter]) * 200_000 for letter in b"abc"]
    files.write(path, versions[0])

    def rewrite():
        for version in versions:
            files.write(path, version, durable=durable)

    for _ in range(50):
        killed_at_random(rewrite, chance, 0.012)
        assert path.read_bytes() in versions


def test_a_write_is_old_or_new_at_each_of_its_steps(tmp_path):
    """T157: the same, dying before every single system call in turn."""
    path = tmp_path / "state.json"
    steps = 0
    for _ in every_step(lambda: files.write(path, b"new")):
        steps += 1
        assert not path.exists() or path.read_bytes() == b"new"
    assert path.read_bytes() == b"new"
    assert steps > 5


def test_a_created_file_is_whole_or_absent_at_each_of_its_steps(tmp_path):
    """T157: also an exclusively created file has its name only when its bytes are there."""
    path = tmp_path / "a1b2"
    for _ in every_step(lambda: files.create(path, b"26-01-01_0000__x__a1b2")):
        assert not path.exists() or path.read_bytes() == b"26-01-01_0000__x__a1b2"
    assert path.exists()


@pytest.mark.parametrize("act", [files.write, files.create], ids=["write", "create"])
def test_a_full_disk_leaves_the_old_file_and_no_rubbish(tiny, act):
    """C16: a full disk, on a file system that is really full."""
    if tiny is None:
        pytest.skip("mounting needs root")
    path = tiny / "state.json"
    if act is files.write:
        path.write_bytes(b"old")
    with pytest.raises(OSError) as caught:
        act(path, b"x" * 200_000)
    assert caught.value.errno == errno.ENOSPC
    assert (path.read_bytes() == b"old") if act is files.write else not path.exists()
    assert leftovers(tiny) == []


def test_a_file_that_may_grow_no_further_leaves_the_old_one(tmp_path):
    """C16: the same without root, by the limit on a file's size."""
    path = tmp_path / "state.json"
    path.write_bytes(b"old")

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with pytest.raises(OSError):
            files.write(path, b"x" * 5000)

    assert ended(fork(limited)) == 0
    assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == []


def test_a_disk_error_becomes_a_sentence_with_a_hint():
    with pytest.raises(HostError, match=r"Cannot write a test: .*space") as caught, files.reported("write a test"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "gc" in caught.value.hint


def test_files_and_folders_are_private(tmp_path):
    files.make_folder(tmp_path / "a" / "b")
    files.write(tmp_path / "a" / "b" / "c", b"")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "b" / "c").stat().st_mode & 0o777 == 0o600


def test_of_twenty_processes_one_creates_the_file(tmp_path):
    path = tmp_path / "id"

    def contend(number):
        if files.create(path, f"{number}".encode()):
            (tmp_path / f"won-{number}").touch()

    together([lambda number=number: contend(number) for number in range(20)])
    (winner,) = tmp_path.glob("won-*")
    assert path.read_bytes() == winner.name.removeprefix("won-").encode()
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("there", ["file", "folder", "dangling link"])
def test_create_replaces_nothing(tmp_path, there):
    path = tmp_path / "id"
    {"file": path.touch, "folder": path.mkdir, "dangling link": lambda: path.symlink_to("nowhere")}[there]()
    assert files.create(path, b"mine") is False
    assert not (tmp_path / "nowhere").exists()


def test_a_link_is_swapped_while_readers_never_miss_it(tmp_path):
    """N14: readers of a pointer that two writers move see one of its targets, never nothing."""
    link = tmp_path / "latest"
    files.point(link, "one")

    def move():
        while True:
            for target in ("one", "two"):
                files.point(link, target)

    seen = set()
    with child(move), child(move):
        deadline = time.monotonic() + 20
        while len(seen) < 2 and time.monotonic() < deadline:
            seen.update(link.readlink().name for _ in range(2000))
    assert seen == {"one", "two"}


def test_a_link_is_whole_at_each_of_its_steps(tmp_path):
    """N14: also when its mover is killed."""
    link = tmp_path / "latest"
    files.point(link, "one")
    for _ in every_step(lambda: files.point(link, "two")):
        assert link.readlink().name in {"one", "two"}
    assert link.readlink().name == "two"


@pytest.mark.parametrize("there", ["folder", "file"])
def test_what_is_no_link_is_not_replaced_by_one(tmp_path, there):
    """N15: somebody's own folder at the place of a pointer stays."""
    place = tmp_path / "latest"
    place.mkdir() if there == "folder" else place.write_text("mine")
    with pytest.raises(HostError, match="not a link"):
        files.point(place, "one")
    assert not place.is_symlink()


def test_a_lock_is_free_as_soon_as_its_holder_is_killed(tmp_path):
    """N10: the kernel drops it; nobody waits for a pid or a clock."""
    path = tmp_path / "owner.lock"

    def hold():
        with locks.Lock(path, Rank.OWNER):
            signal.pause()

    with child(hold) as pid:
        until(lambda: locks.is_locked(path), "the lock of the child")
        assert locks.Lock(path, Rank.OWNER).acquire(timeout=0) is False
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert locks.is_locked(path) is False
        with locks.Lock(path, Rank.OWNER):
            assert locks.is_locked(path)
    assert path.exists()


def test_two_that_probe_at_once_do_not_take_each_other_for_the_owner(tmp_path):
    path = tmp_path / "owner.lock"
    path.touch()

    def probe():
        assert not any(locks.is_locked(path) for _ in range(2000))

    together([probe] * 4)


@pytest.mark.parametrize("kind", ["absent", "link", "folder", "file as folder"])
def test_what_is_no_lock_file_is_not_locked(tmp_path, kind):
    path = tmp_path / "owner.lock"
    if kind == "link":
        (tmp_path / "real").touch()
        path.symlink_to("real")
    elif kind == "folder":
        path.mkdir()
    elif kind == "file as folder":
        path.touch()
        path = path / "private"
    assert locks.is_locked(path) is False


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_lock_file_of_another_user_counts_as_held(tmp_path):
    """P02: a run that may not be looked at is not taken for dead."""
    path = tmp_path / "owner.lock"
    path.touch(0o600)
    tmp_path.chmod(0o755)

    def look():
        # The folders above are closed to others, but not to a process that stands here already.
        os.chdir(tmp_path)
        os.setuid(65534)
        assert locks.is_locked(path.name)

    assert ended(fork(look)) == 0


def test_two_locks_of_one_process_exclude_each_other(tmp_path):
    """N20: a second holder is told so instead of waiting for itself."""
    with locks.Lock(tmp_path / "lock", Rank.OWNER):
        assert locks.Lock(tmp_path / "lock", Rank.OWNER).acquire(timeout=0.05) is False
    assert locks.Lock(tmp_path / "lock", Rank.OWNER).acquire(timeout=0.05)


@pytest.mark.parametrize("kind", ["absent", "link", "dangling", "pipe", "folder", "device", "too long"])
def test_only_a_regular_file_is_read(tmp_path, kind):
    """A link, a pipe or a folder in the place of a report is passed over at once and leaks no descriptor."""
    path = tmp_path / "report.md"
    secret = tmp_path / "secret"
    secret.write_text("password")
    if kind == "too long":
        path = tmp_path / ("x" * 300)
    elif kind == "device":
        path = Path("/dev/null")
    else:
        make = {"link": lambda: path.symlink_to(secret), "dangling": lambda: path.symlink_to("nowhere"),
                "pipe": lambda: os.mkfifo(path), "folder": path.mkdir, "absent": lambda: None}  # fmt: skip
        make[kind]()
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert files.read_capped(path, 100) is None
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(("limit", "expected"), [(0, b""), (3, b"abc"), (100, b"abcdef")])
def test_a_file_is_read_up_to_the_limit(tmp_path, limit, expected):
    (tmp_path / "file").write_bytes(b"abcdef")
    assert files.read_capped(tmp_path / "file", limit) == expected


def test_a_tree_deeper_than_a_path_can_be_is_removed(tmp_path):
    """S05: what an agent has nested without end does not keep its airlock from going."""
    tree = tmp_path / "tree"
    tree.mkdir()
    folder = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=folder)
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
        inner = os.open("deep", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    before = {path.name for path in tmp_path.iterdir()}
    files.remove_tree(tree)
    assert {path.name for path in tmp_path.iterdir()} == before - {"tree"}


def test_rights_that_were_taken_from_folders_do_not_keep_them(tmp_path):
    """S05: nor do names that are no text."""
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "file").touch()
    (tree / os.fsdecode(b"odd \xff\n")).mkdir()
    for folder in (tree / "a" / "b", tree / "a", tree):
        folder.chmod(0)
    files.remove_tree(tree)
    assert not tree.exists()


def test_a_file_in_the_place_of_a_tree_is_removed(tmp_path):
    (tmp_path / "tree").touch()
    files.remove_tree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_the_free_space_is_what_this_user_can_write(tiny, tmp_path):
    """C17: a full disk has none."""
    if tiny is None:
        pytest.skip("no file system can be mounted here")
    before = files.free(tiny)
    assert 0 < before < files.free(tmp_path)
    (tiny / "big").write_bytes(b"x" * (before // 2))
    assert files.free(tiny) <= before - before // 2


def test_removing_a_tree_follows_no_link(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "deep" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "alias").symlink_to(tmp_path / "outside")
    for path in (tree, tmp_path / "alias", tmp_path / "never there"):
        files.remove_tree(path)
        assert not path.exists()
    assert (tmp_path / "outside" / "kept").exists()
