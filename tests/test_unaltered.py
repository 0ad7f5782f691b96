"""What an airlock came to is believed for as long as nothing in it was touched, and not a moment longer."""

from __future__ import annotations

import json
import os
import shutil
import time

import pytest

from agents import unaltered
from agents.airlock import close, export
from agents.errors import HostError
from agents.inspection import inspect
from agents.unaltered import SETTLED, Stamp, recalled, remember
from tests.support.repos import git as plain_git
from tests.support.repos import make_repo
from tests.support.trees import File, Link, place, write

TREE = "a" * 40


@pytest.fixture
def here(tmp_path):
    return place(
        make_repo(tmp_path / "repo", {"a.txt": "a\n", "src/b.py": "b\n", "src/c.py": "c\n", ".gitignore": "*.o\n"})
    )


@pytest.fixture
def airlock(here):
    """An airlock with some work in it that lies back long enough."""
    opened = here.open()
    write(
        opened.path, {b"new": File(b"n\n"), b"link": Link(b"new"), b"src/made.o": File(b"o\n"), b"caf\xe9": File(b"")}
    )
    time.sleep(3 * SETTLED / 1e9)
    return opened


def seen(seconds: int, nanoseconds: int) -> os.stat_result:
    """How a file looks that was changed then."""
    changed = seconds * 1_000_000_000 + nanoseconds
    return os.stat_result((0o100644, 5, 1, 1, 0, 0, 3, 0, 0, 0), {"st_mtime_ns": 7, "st_ctime_ns": changed})


def rewritten(tree):
    """Other bytes of the same size, and the time of writing put back."""
    path = tree / "new"
    before = path.stat()
    path.write_bytes(b"m\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def exchanged(tree):
    """Two names of files that are equally large."""
    (tree / "src/b.py").rename(tree / "b")
    (tree / "src/c.py").rename(tree / "src/b.py")
    (tree / "b").rename(tree / "src/c.py")


def relinked(tree):
    (tree / "link").unlink()
    (tree / "link").symlink_to("old")


def into_a_link(tree):
    """A folder is a link to the same folder, which lies elsewhere now."""
    shutil.move(tree / "src", tree.parent / "elsewhere")
    (tree / "src").symlink_to(tree.parent / "elsewhere")


ACTS = {
    "rewritten": rewritten,
    "exchanged": exchanged,
    "relinked": relinked,
    "a folder became a link": into_a_link,
    "made": lambda tree: (tree / "src" / "more").write_bytes(b""),
    "made in a new folder": lambda tree: write(tree, {b"deep/er/more": File(b"")}),
    "removed": lambda tree: (tree / "new").unlink(),
    "mode": lambda tree: (tree / "new").chmod(0o755),
    "moved": lambda tree: (tree / "new").rename(tree / "src" / "new"),
    "ignored": lambda tree: (tree / "src" / "made.o").write_bytes(b"p\n"),
    "pipe": lambda tree: os.mkfifo(tree / "pipe"),
    "repository": lambda tree: plain_git(tree, "init", "-q", "inner"),
    "all gone": shutil.rmtree,
}


@pytest.mark.parametrize("act", ACTS)
def test_every_change_shows(airlock, act):
    done = export(airlock)
    assert recalled(airlock.room.path, airlock.path) == done.tree
    ACTS[act](airlock.path)
    assert recalled(airlock.room.path, airlock.path) is None


def test_what_git_does_in_its_own_file_is_no_change(airlock):
    done = export(airlock)
    (airlock.path / ".git").write_text("gitdir: elsewhere\n")
    assert recalled(airlock.room.path, airlock.path) == done.tree


def test_git_is_not_asked_where_nothing_was_touched(here, airlock):
    """A room in which git can do nothing any more: only what needs git fails."""
    done = export(airlock)
    (airlock.room.path / "HEAD").unlink()
    (airlock.path / "new").touch()
    with pytest.raises(HostError):
        close(here.repo, here.layout, here.box.name, exported_tree=done.tree)
    assert airlock.path.exists()
    (airlock.room.path / "HEAD").write_text("ref: refs/heads/none\n")
    time.sleep(3 * SETTLED / 1e9)
    assert export(airlock).tree == done.tree
    (airlock.room.path / "HEAD").unlink()
    close(here.repo, here.layout, here.box.name, exported_tree=done.tree)
    assert not airlock.path.exists()


def test_work_after_the_export_stays_though_it_was_looked_at(here, airlock):
    done = export(airlock)
    rewritten(airlock.path)
    with pytest.raises(HostError, match="holds work that is in no patch"):
        close(here.repo, here.layout, here.box.name, exported_tree=done.tree)
    assert (airlock.path / "new").read_bytes() == b"m\n"


def test_an_export_with_another_cap_is_not_remembered(airlock):
    """A file that is too large for one export may be carried over by the next."""
    first = export(airlock)
    small = export(airlock, huge=1)
    assert small.tree != first.tree
    assert recalled(airlock.room.path, airlock.path) is None


@pytest.mark.parametrize("odd", ["pipe", "repository"])
def test_what_no_stamp_vouches_for_is_not_remembered(airlock, odd):
    ACTS[odd](airlock.path)
    time.sleep(3 * SETTLED / 1e9)
    assert inspect(airlock.path).stamp == ""
    export(airlock)
    assert recalled(airlock.room.path, airlock.path) is None


@pytest.mark.parametrize(
    ("changed", "proves"),
    [
        ((100, 5), True),
        ((100, 0), False),
        ((107, 1_000_000_000 - SETTLED), False),
        ((108, 5), False),
        ((200, 5), False),
    ],
    ids=["long ago", "a clock of seconds", "a moment ago", "now", "in the future"],
)
def test_a_file_proves_something_when_its_clock_has_gone_on(changed, proves):
    stamp = Stamp(now=108_000_000_000)
    stamp.add(b"a", seen(99, 5))
    stamp.add(b"b", seen(*changed))
    assert bool(stamp.told()) is proves


def test_names_and_what_follows_them_are_told_apart():
    one, other = Stamp(now=2**60), Stamp(now=2**60)
    one.add(b"ab", seen(1, 1))
    other.add(b"a", seen(1, 1))
    other.add(b"b", seen(1, 1))
    assert one.told() != other.told() != ""
    one.spoil()
    assert one.told() == ""


@pytest.mark.parametrize(
    "note",
    [b"", b"{", b"[]", b"null", b'{"stamp": 5}', b"[" * 3000, b'{"stamp": "", "tree": "%s"}' % TREE.encode(), None,
     b'{"stamp": "STAMP", "tree": "--output=x"}', b'{"stamp": "STAMP", "tree": ["a"]}', b'{"stamp": "STAMP", "tree": ""}'],
)  # fmt: skip
def test_a_note_that_nobody_wrote_says_nothing(tmp_path, note):
    """A power cut leaves half of it; and an agent without a sandbox can write there."""
    tree = tmp_path / "tree"
    write(tree, {b"a": File(b"a")})
    time.sleep(3 * SETTLED / 1e9)
    stamp = inspect(tree).stamp
    remember(tmp_path, stamp, TREE)
    assert recalled(tmp_path, tree) == TREE
    path = tmp_path / unaltered.NOTE
    path.unlink() if note is None else path.write_bytes(note.replace(b"STAMP", stamp.encode()))
    assert recalled(tmp_path, tree) is None


def test_the_last_note_counts(tmp_path):
    """A look that proves nothing takes back what an earlier one has said."""
    tree = tmp_path / "tree"
    write(tree, {b"a": File(b"a")})
    time.sleep(3 * SETTLED / 1e9)
    stamp = inspect(tree).stamp
    for other in (TREE, "b" * 64):
        remember(tmp_path, stamp, other)
        assert json.loads((tmp_path / unaltered.NOTE).read_bytes())["tree"] == recalled(tmp_path, tree) == other
    remember(tmp_path, "", TREE)
    assert recalled(tmp_path, tree) is None
