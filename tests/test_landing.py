"""A merge into the checkout is whole or not there: every kind of change, every obstacle, a SIGKILL before every effect."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path

import pytest

from agents import git, landing, staging
from agents.cleanroom import CleanRoom
from agents.errors import HostError, OperatorError, Tampered
from agents.landing import Move
from essentials import records
from tests.support import gates, repos
from tests.support.boxes import ended, fork
from tests.support.gates import disk, planted, status, tree_at

FILES = {
    **gates.FILES,
    "run.sh": "#!/bin/sh\n",
    "swap": "a file\n",
    "kept.txt": "kept\n",
}


def everything(root):
    """Every kind of change at once."""
    (root / "src/app.py").write_text("print('changed')\n")
    (root / "src/old.py").unlink()
    (root / "folder/one.txt").unlink()
    (root / "folder").rmdir()
    (root / "folder").write_text("now a file\n")
    (root / "swap").unlink()
    (root / "swap").mkdir()
    (root / "swap/inner.txt").write_text("now a folder\n")
    (root / "deep/er/still").mkdir(parents=True)
    (root / "deep/er/still/new.txt").write_bytes(b"no newline at end")
    (root / "run.sh").chmod(0o755)
    (root / "data.bin").write_bytes(bytes(reversed(range(256))))
    (root / "link").symlink_to("src/app.py")
    (root / "crlf.txt").write_bytes(b"a\r\nb\r\n")
    (root / "empty").write_bytes(b"")
    (root / " odd \"name'\n\t*?[").write_text("odd\n")
    (root / "-dash").write_text("dash\n")
    invalid = root / os.fsdecode(b"inv\xff/\xfe")
    invalid.parent.mkdir()
    invalid.write_bytes(b"invalid")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def twin(root, change, folder):
    """The commit that *change* makes of HEAD, prepared in a clone so that the checkout at *root* is untouched."""
    repos.git(root, "clone", "--quiet", "--no-hardlinks", str(root), str(folder))
    for key in ("core.autocrlf", "core.attributesFile"):
        repos.git(folder, "config", key, "false" if "crlf" in key else os.devnull)
    change(folder)
    repos.git(folder, "add", "--all", "--force")
    repos.git(folder, "commit", "--quiet", "--message", "the change")
    repos.git(root, "fetch", "--quiet", str(folder), "HEAD")
    return repos.git(folder, "rev-parse", "HEAD")


class Field:
    """A repository with a commit that waits to be landed on main."""

    def __init__(self, tmp_path, change=everything, files=FILES):
        self.root = repos.make_repo(tmp_path / "repo", dict(files))
        self.after = twin(self.root, change, tmp_path / "twin")
        self.before = repos.git(self.root, "rev-parse", "HEAD")
        self.repo = git.locate(self.root)
        self.room = CleanRoom.make(tmp_path / "room.git", self.repo)
        self.folder = tmp_path / "journal"
        self.move = self.moved(self.before, self.after)

    def moved(self, before, after):
        return Move(
            run="a-run", target="refs/heads/main", before=before, after=after, reason="merge a-run",
            changes=self.room.changes(before, after), checkout=True,
        )  # fmt: skip

    def land(self, step=landing.unwatched, **how):
        return landing.land(self.repo, self.room, self.move, self.folder, step, **how)

    def seen(self):
        """What a merge that is refused must not change."""
        refs = repos.git(self.root, "for-each-ref")
        return (
            refs,
            repos.git(self.root, "ls-files", "-s", "-z"),
            disk(self.root),
            names(self.root / ".git"),
        )

    def whole(self):
        """Whether the commit is there: branch, index and files."""
        assert tree_at(self.root, "main") == tree_at(self.root, self.after)
        assert repos.git(self.root, "write-tree") == tree_at(self.root, self.after)
        assert not (self.root / ".git/index.lock").exists()


@pytest.fixture
def field(tmp_path):
    return Field(tmp_path)


def test_every_kind_of_change_lands_as_the_identical_tree(field, tmp_path):
    """G31: and the checkout is what a fresh checkout of the result would be."""
    assert field.land() == landing.Landed(moved=True)
    field.whole()
    assert status(field.root) == []
    assert disk(field.root) == disk(tmp_path / "twin")
    assert "merge a-run" in repos.git(field.root, "reflog", "-1", "main")
    landing.clear(field.folder)
    assert not landing.is_unfinished(field.folder)


def test_and_back_again(field):
    """M20: the same protocol, the other way round."""
    before = field.seen()
    field.land()
    landing.clear(field.folder)
    field.move = field.moved(field.after, field.before)
    field.land()
    assert field.seen() == before
    assert status(field.root) == []


@pytest.mark.parametrize("back", [False, True])
def test_a_link_to_a_folder_becomes_a_folder_and_back(tmp_path, back):
    """What lies behind the link is neither in the way nor touched."""
    files = {**FILES, "target/x.txt": "behind\n"}

    def link(root):
        (root / "place").symlink_to("target")

    def folder(root):
        (root / "place").unlink()
        (root / "place").mkdir()
        (root / "place/x.txt").write_text("before\n")

    field = Field(tmp_path, link, files)
    field.land()
    landing.clear(field.folder)
    field.before, field.after = field.after, twin(field.root, folder, tmp_path / "second")
    field.move = field.moved(field.before, field.after)
    field.land()
    if back:
        landing.clear(field.folder)
        field.move = field.moved(field.after, field.before)
        field.land()
    assert status(field.root) == []
    assert (field.root / "place").is_symlink() is back
    assert (field.root / "target/x.txt").read_text() == "behind\n"


def test_the_index_knows_the_new_files(field):
    """A plain diff-files sees no difference that would have to be read away first."""
    field.land()
    assert repos.git(field.root, "diff-files", "--name-only") == ""


def edit(root):
    """Uncommitted work of the operator's on files that no merge touches, in every stage."""
    (root / "kept.txt").write_text("edited\n")
    (root / "docs/guide.md").write_text("staged\n")
    repos.git(root, "add", "docs/guide.md")
    (root / "docs/guide.md").write_text("staged, and edited again\n")
    (root / "staged-new.txt").write_text("new\n")
    repos.git(root, "add", "staged-new.txt")
    (root / "untracked.txt").write_text("untracked\n")


EDITED = ["MM docs/guide.md", " M kept.txt", "A  staged-new.txt", "?? untracked.txt"]


def test_unrelated_work_of_the_operator_stays_as_it_was(field):
    """G31: staged, edited, both, new, untracked."""
    edit(field.root)
    mine = {name: disk(field.root)[name] for name in ("kept.txt", "docs/guide.md", "staged-new.txt", "untracked.txt")}
    field.land()
    assert status(field.root) == EDITED
    assert {name: disk(field.root)[name] for name in mine} == mine


def stage(root, name, text):
    (root / name).write_text(text)
    repos.git(root, "add", "--", name)


OBSTACLES = {
    "edited": (lambda root: (root / "src/app.py").write_text("mine\n"), "src/app.py"),
    "staged": (lambda root: stage(root, "src/app.py", "mine\n"), "src/app.py"),
    "staged and restored": (
        lambda root: (stage(root, "src/app.py", "mine\n"), (root / "src/app.py").write_text(FILES["src/app.py"])),
        "src/app.py",
    ),
    "deleted": (lambda root: (root / "src/app.py").unlink(), "src/app.py"),
    "edited where it goes": (lambda root: (root / "src/old.py").write_text("mine\n"), "src/old.py"),
    "mode": (lambda root: (root / "src/app.py").chmod(0o755), "src/app.py"),
    "untracked in the way": (lambda root: (root / "crlf.txt").write_text("mine\n"), "crlf.txt"),
    "the same text in the way": (lambda root: (root / "empty").write_text(""), "empty"),
    "dangling link in the way": (lambda root: (root / "empty").symlink_to("nowhere"), "empty"),
    "file for a folder": (lambda root: (root / "deep").write_text("mine\n"), "deep"),
    "link for a folder": (lambda root: (root / "deep").symlink_to(root.parent), "deep"),
    "folder with files in the way": (
        lambda root: ((root / "empty").mkdir(), (root / "empty/mine").write_text("mine\n")),
        "empty/mine",
    ),
    "file in a folder that goes": (lambda root: (root / "folder/mine").write_text("mine\n"), "folder/mine"),
    "added by the operator": (lambda root: stage(root, "crlf.txt", "mine\n"), "crlf.txt"),
}  # fmt: skip


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_what_is_in_the_way_refuses_the_whole(field, obstacle):
    """G31: nothing is changed, and the file is named."""
    put, name = OBSTACLES[obstacle]
    put(field.root)
    before = field.seen()
    with pytest.raises(OperatorError) as refusal:
        field.land()
    assert name in refusal.value.message
    assert "--branch" in refusal.value.hint
    assert field.seen() == before
    assert not landing.is_unfinished(field.folder)


def test_an_ignored_file_in_the_way_is_not_overwritten(field):
    """git's own two-way merge would: what is ignored is still somebody's."""
    (field.root / ".git/info/exclude").write_text("empty\n")
    (field.root / "empty").write_text("precious\n")
    with pytest.raises(OperatorError, match="empty"):
        field.land()
    assert (field.root / "empty").read_text() == "precious\n"


def test_an_empty_folder_is_no_obstacle(field):
    (field.root / "empty").mkdir()
    field.land()
    field.whole()


def test_a_git_at_work_is_waited_for(field):
    """G30: a lock that goes away in time costs nothing."""
    lock = field.root / ".git/index.lock"
    lock.write_bytes(b"")
    threading.Timer(0.3, lock.unlink).start()
    field.land(patience=30)
    field.whole()


def test_a_lock_that_stays_refuses_and_stays(field):
    """G30: it may be a live git's; only our own is ever removed."""
    lock = field.root / ".git/index.lock"
    lock.write_bytes(b"theirs")
    before = field.seen()
    with pytest.raises(OperatorError, match="git command"):
        field.land(patience=0.1)
    assert field.seen() == before
    assert lock.read_bytes() == b"theirs"
    assert landing.recover(field.repo, field.folder) is None
    assert lock.read_bytes() == b"theirs"


def test_a_branch_that_moved_refuses(field):
    """N04, M10: what was approved is no longer what would come out."""

    def commit_meanwhile(name):
        if name == "move the ref":
            tree = repos.git(field.root, "commit-tree", "-p", "HEAD", "-m", "meanwhile", "HEAD^{tree}")
            repos.git(field.root, "update-ref", "refs/heads/main", tree)

    before = disk(field.root)
    with pytest.raises(OperatorError, match="main has moved"):
        field.land(commit_meanwhile)
    assert disk(field.root) == before
    assert status(field.root) == []
    assert not (field.root / ".git/index.lock").exists()
    assert not landing.is_unfinished(field.folder)


def test_the_operators_git_cannot_commit_half_a_merge(field):
    """Between the first file and the last the index is locked."""
    said = []

    def try_commit(name):
        if name == "place a file" and not said:
            with pytest.raises(Exception) as refusal:
                repos.git(field.root, "commit", "--quiet", "--all", "--message", "half")
            said.append(refusal.value.stderr.decode())

    field.land(try_commit)
    assert "index.lock" in said[0]
    field.whole()


def test_a_ref_that_cannot_be_locked_leaves_everything(field):
    (field.root / ".git/refs/heads/main.lock").write_bytes(b"")
    before = field.seen()
    with pytest.raises(HostError, match="move the branch"):
        field.land()
    assert field.seen() == before


class TestBranch:
    """`--branch NAME`: a ref and nothing else."""

    def make(self, field):
        return records.replace(field.move, target="refs/heads/look", before=None, checkout=False)

    def test_a_new_branch_touches_no_checkout(self, field):
        edit(field.root)
        (field.root / "src/app.py").write_text("mine\n")
        before = disk(field.root)
        field.move = self.make(field)
        assert field.land().moved
        assert tree_at(field.root, "look") == tree_at(field.root, field.after)
        assert disk(field.root) == before
        assert repos.git(field.root, "rev-parse", "main") == field.before

    def test_one_that_exists_is_left_alone(self, field):
        repos.git(field.root, "branch", "look")
        field.move = self.make(field)
        with pytest.raises(OperatorError, match="look"):
            field.land()
        assert repos.git(field.root, "rev-parse", "look") == field.before

    def test_and_it_can_be_taken_back(self, field):
        field.move = self.make(field)
        field.land()
        field.move = records.replace(field.move, before=field.after, after=None)
        assert field.land().moved
        assert landing.where(field.repo, "refs/heads/look") == (None, "refs/heads/look", "")


class TestPrograms:
    """G32: hooks, filters and helpers that were planted are not run."""

    def test_nothing_that_was_planted_runs(self, tmp_path):
        canary = tmp_path / "canary"

        def attributes(root):
            (root / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
            (root / "src/app.py").write_text("print('filtered?')\n")
            (root / "sub").mkdir()
            (root / "sub/.gitattributes").write_text("* filter=evil\n")
            (root / "sub/new.txt").write_text("new\n")

        field = Field(tmp_path, attributes)
        planted(field.root, canary)
        field.land()
        assert not canary.exists()
        assert (field.root / "sub/new.txt").read_text() == "new\n"
        assert repos.git(field.root, "rev-parse", "main^{tree}") == tree_at(field.root, field.after)

    def test_an_attribute_file_that_goes_still_counts(self, tmp_path):
        """What was in force before the merge is what the operator chose."""
        files = {**FILES, ".gitattributes": "*.txt eol=crlf\n"}

        def change(root):
            (root / ".gitattributes").unlink()
            (root / "kept.txt").write_bytes(b"changed\n")

        field = Field(tmp_path, change, files)
        field.land()
        field.whole()
        assert (field.root / "kept.txt").read_bytes() == b"changed\r\n"

    def test_filters_of_the_operators_own_are_his(self, tmp_path):
        """A conversion in force at HEAD gives the files that he is used to."""
        files = {**FILES, ".gitattributes": "*.txt filter=upper eol=crlf\n"}

        def change(root):
            (root / "kept.txt").write_bytes(b"changed\n")
            (root / "fresh.txt").write_bytes(b"fresh\n")

        field = Field(tmp_path, change, files)
        repos.git(field.root, "config", "filter.upper.smudge", "tr a-z A-Z")
        repos.git(field.root, "config", "filter.upper.clean", "tr A-Z a-z")
        field.land()
        field.whole()
        assert (field.root / "kept.txt").read_bytes() == b"CHANGED\r\n"
        assert (field.root / "fresh.txt").read_bytes() == b"FRESH\r\n"
        assert status(field.root) == []


class TestKinds:
    """Repositories of other shapes."""

    def test_a_linked_work_tree_has_an_index_of_its_own(self, tmp_path):
        field = Field(tmp_path)
        repos.git(field.root, "switch", "--quiet", "--create", "side")
        linked = tmp_path / "linked"
        repos.git(field.root, "worktree", "add", "--quiet", str(linked), "main")
        before = disk(field.root)
        field.repo = git.locate(linked)
        landing.land(field.repo, field.room, field.move, field.folder)
        assert status(linked) == []
        assert disk(field.root) == before
        assert landing.where(field.repo, "refs/heads/main") == (field.after, "refs/heads/main", str(linked))

    def test_a_sparse_checkout_stays_sparse(self, tmp_path):
        def change(root):
            (root / "src/app.py").write_text("print('sparse')\n")
            (root / "docs/guide.md").write_text("outside of the cone\n")

        field = Field(tmp_path, change)
        repos.git(field.root, "sparse-checkout", "set", "src")
        field.room = CleanRoom.make(tmp_path / "sparse.git", field.repo)
        field.land()
        field.whole()
        assert status(field.root) == []
        assert not (field.root / "docs").exists()

    @pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
    def test_a_file_that_git_was_told_to_pass_over_is_merged_all_the_same(self, tmp_path, flag):
        """Without a sparse checkout the flag says nothing of where the file is; the new index keeps it."""
        field = Field(tmp_path, lambda root: (root / "kept.txt").write_text("changed\n"))
        repos.git(field.root, "update-index", flag, "kept.txt")
        field.land()
        field.whole()
        assert (field.root / "kept.txt").read_text() == "changed\n"

    def test_what_is_staged_and_not_committed_stays_staged(self, tmp_path):
        """The files that are put into the checkout come from an index that holds the operator's own edits as well."""
        field = Field(tmp_path, lambda root: (root / "kept.txt").write_text("changed\n"))
        (field.root / "src/app.py").write_text("print('mine')\n")
        (field.root / "mine.txt").write_text("mine\n")
        repos.git(field.root, "add", "src/app.py", "mine.txt")
        field.land()
        assert (field.root / "kept.txt").read_text() == "changed\n"
        assert (field.root / "src/app.py").read_text() == "print('mine')\n"
        assert sorted(status(field.root)) == ["A  mine.txt", "M  src/app.py"]

    def test_a_split_index(self, tmp_path):
        field = Field(tmp_path)
        repos.git(field.root, "update-index", "--split-index")
        field.land()
        field.whole()
        assert status(field.root) == []

    def test_a_private_umask_is_the_operators_own(self, field):
        old = os.umask(0o077)
        try:
            field.land()
        finally:
            os.umask(old)
        modes = {name: disk(field.root)[name][0] & 0o777 for name in ("src/app.py", "run.sh")}
        assert modes == {"src/app.py": 0o600, "run.sh": 0o700}


# --- After a crash ----------------------------------------------------------------------------------------------------


def steps_of(tmp_path):
    """The names of all effects of one landing, in order."""
    seen = []
    Field(tmp_path).land(seen.append)
    return seen


def killed(field, at):
    """Land in a child that dies by SIGKILL just before its effect number *at*."""
    left = at

    def watch(_name):
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return ended(fork(lambda: field.land(watch)))


def test_the_effects_come_in_this_order(tmp_path):
    steps = steps_of(tmp_path)
    assert steps[:4] == ["lock the index", "stage the files", "write the journal", "move the ref"]
    assert steps[-2:] == ["publish the index", "unlock the index"]
    assert {"place a file", "remove a file"} == set(steps[4:-2])
    assert len(steps) == EFFECTS


EFFECTS = 21
"""How many effects the landing of `everything` has."""


@pytest.mark.parametrize("at", range(EFFECTS))
def test_a_kill_before_any_effect_is_finished_or_taken_back(field, at):
    """C11: whole, or not there; the operator's own edits are there either way."""
    edit(field.root)
    before, mine = field.seen(), status(field.root)
    assert mine == EDITED
    assert killed(field, at) == -signal.SIGKILL
    landed = landing.recover(field.repo, field.folder)
    again = landing.recover(field.repo, field.folder) if landed is None else landed
    if at <= 2:
        # No journal yet: nothing of the operator's has changed, his index is free.
        assert (landed, again) == (None, None)
        assert field.seen() == before
    else:
        assert landed == landing.Landed(moved=True)
        assert tree_at(field.root, "main") == tree_at(field.root, field.after)
    assert status(field.root) == mine
    assert not (field.root / ".git/index.lock").exists()
    landing.clear(field.folder)
    assert not landing.is_unfinished(field.folder)


@pytest.mark.parametrize("at", [4, 9, 15, 20])
def test_a_recovery_that_is_killed_is_recovered(field, at):
    """Recovery is swept itself."""
    edit(field.root)
    killed(field, at)

    def die(name):
        if name in {"place a file", "publish the index"}:
            os.kill(os.getpid(), signal.SIGKILL)

    assert ended(fork(lambda: landing.recover(field.repo, field.folder, die))) == -signal.SIGKILL
    assert landing.recover(field.repo, field.folder) == landing.Landed(moved=True)
    assert status(field.root) == EDITED
    assert landing.recover(field.repo, field.folder) == landing.Landed(moved=True)


def at_step(name, count=0):
    """The number of effects before the one called *name*, *count* of that name passed over."""
    order = ["lock the index", "stage the files", "write the journal", "move the ref"]
    return order.index(name) if name in order else len(order) + count


def test_edits_after_the_crash_are_the_operators(field):
    """A file that he has changed since is left as it is, and he is told."""
    killed(field, at_step("place", 8))
    (field.root / "src/app.py").write_text("rescued\n")
    (field.root / "crlf.txt").unlink(missing_ok=True)
    (field.root / "crlf.txt").write_text("mine\n")
    landed = landing.recover(field.repo, field.folder)
    assert landed.moved
    assert "src/app.py" in landed.kept
    assert (field.root / "src/app.py").read_text() == "rescued\n"
    assert (field.root / "crlf.txt").read_text() == "mine\n"
    assert " M src/app.py" in status(field.root)


def test_edits_before_the_ref_moved_take_it_back(field):
    killed(field, at_step("move the ref"))
    (field.root / "src/app.py").write_text("mine\n")
    assert landing.recover(field.repo, field.folder) == landing.Landed(moved=False)
    assert repos.git(field.root, "rev-parse", "main") == field.before
    assert status(field.root) == [" M src/app.py"]
    assert not landing.is_unfinished(field.folder)


@pytest.mark.parametrize("obstacle", ["deep", "empty"])
def test_what_was_put_in_the_way_after_the_crash_stays(field, obstacle):
    """A file where a folder has to be, a full folder where a file has to be."""
    killed(field, at_step("place", 0))
    if obstacle == "deep":
        (field.root / "deep").write_text("mine\n")
    else:
        (field.root / "empty").mkdir()
        (field.root / "empty/mine").write_text("mine\n")
    before = {name: seen for name, seen in disk(field.root).items() if name.startswith(obstacle)}
    landed = landing.recover(field.repo, field.folder)
    assert landed.moved
    assert [name.startswith(obstacle) for name in landed.kept] == [True]
    assert {name: seen for name, seen in disk(field.root).items() if name.startswith(obstacle)} == before


@pytest.mark.parametrize("at", range(2))
def test_a_new_branch_that_was_cut_off_is_made(field, at):
    field.move = records.replace(field.move, target="refs/heads/look", before=None, checkout=False)
    assert killed(field, at) == -signal.SIGKILL
    landed = landing.recover(field.repo, field.folder)
    assert landed == (landing.Landed(moved=True) if at else None)
    assert landing.where(field.repo, "refs/heads/look")[0] == (field.after if at else None)


def test_a_journal_on_another_file_system(field):
    """A part of the checkout may be mounted from elsewhere: files are then copied beside their place first."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == field.root.stat().st_dev:
        pytest.skip("there is no second file system here")
    field.folder = Path(tempfile.mkdtemp(dir=shared, prefix="agent-box-test-"))
    try:
        field.land()
        field.whole()
        assert status(field.root) == []
    finally:
        shutil.rmtree(field.folder)


def test_an_attribute_file_that_is_a_link_is_made_as_one(tmp_path):
    def change(root):
        (root / ".gitattributes").symlink_to("README.md")

    field = Field(tmp_path, change)
    field.land()
    field.whole()
    assert (field.root / ".gitattributes").is_symlink()


def test_a_checkout_without_an_index(field):
    """Everything is staged as deleted then, so everything that the merge touches is in its way."""
    (field.root / ".git/index").unlink()
    with pytest.raises(OperatorError, match=r"src/app.py"):
        field.land()
    assert not (field.root / ".git/index").exists()


def test_a_lock_that_the_operator_removed_is_taken_again(field):
    """git itself advises to remove it."""
    edit(field.root)
    killed(field, at_step("place", 5))
    (field.root / ".git/index.lock").unlink()
    assert landing.recover(field.repo, field.folder) == landing.Landed(moved=True)
    assert status(field.root) == EDITED


def test_one_who_went_elsewhere_keeps_his_files(field):
    """The lock removed by hand, another branch checked out: the merge is on its branch, the checkout is not touched."""
    killed(field, at_step("place", 0))
    (field.root / ".git/index.lock").unlink()
    repos.git(field.root, "branch", "side", field.before)
    repos.git(field.root, "symbolic-ref", "HEAD", "refs/heads/side")
    before = disk(field.root)
    assert landing.recover(field.repo, field.folder) == landing.Landed(moved=True)
    assert disk(field.root) == before
    assert status(field.root) == []
    assert tree_at(field.root, "main") == tree_at(field.root, field.after)


@pytest.mark.parametrize("built_on", [True, False])
def test_a_branch_that_went_on_is_left_alone(field, built_on):
    killed(field, at_step("place", 0))
    (field.root / ".git/index.lock").unlink()
    parent = field.after if built_on else field.before
    commit = repos.git(field.root, "commit-tree", "-p", parent, "-m", "more", f"{parent}^{{tree}}")
    repos.git(field.root, "update-ref", "refs/heads/main", commit)
    assert landing.recover(field.repo, field.folder) == landing.Landed(moved=built_on)
    assert repos.git(field.root, "rev-parse", "main") == commit


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b'{"changes": [["x"]]}', b"\xff", b'{"changes": 3}'])
def test_a_journal_that_was_not_written_so_is_not_obeyed(field, damage):
    killed(field, at_step("place", 0))
    before = disk(field.root)
    (field.folder / "merge.json").write_bytes(damage)
    with pytest.raises(Tampered):
        landing.recover(field.repo, field.folder)
    assert disk(field.root) == before


def test_a_disk_that_says_no_after_the_swap_is_gone_on_with(field):
    """A folder that may not be written: the merge waits, the next try finishes it."""
    (field.root / "folder/one.txt").parent.chmod(0o755)

    def break_stage(name):
        if name == "place a file" and (field.folder / "stage").exists():
            (field.folder / "stage").rename(field.folder / "away")
            (field.folder / "stage").write_text("not a folder")

    with pytest.raises(HostError):
        field.land(break_stage)
    assert landing.is_unfinished(field.folder)
    (field.folder / "stage").unlink()
    (field.folder / "away").rename(field.folder / "stage")
    assert landing.recover(field.repo, field.folder) == landing.Landed(moved=True)
    field.whole()
    assert status(field.root) == []


def test_without_a_journal_there_is_nothing_to_recover(field):
    assert landing.recover(field.repo, field.folder) is None
    assert landing.pending(field.folder) is None


def test_a_file_is_moved_whole_to_another_file_system(tmp_path):
    staged, place = tmp_path / "staged", tmp_path / "place"
    staged.write_text("new\n")
    staged.chmod(0o755)
    place.write_text("old\n")
    staging._copy(staged, place)
    assert place.read_text() == "new\n"
    assert place.stat().st_mode & 0o777 == 0o755
    assert names(tmp_path) == ["home", "place", "state"]


class TestIdentity:
    """Who commits (design, section 7)."""

    @pytest.mark.parametrize(
        ("config", "environ", "author"),
        [
            ({}, {}, None),
            ({"user.name": "Ada", "user.email": "a@x"}, {}, ("Ada", "a@x")),
            ({"user.name": "Ada"}, {}, None),
            ({"user.name": "Ada", "user.email": "a@x", "author.name": "Bob"}, {}, ("Bob", "a@x")),
            ({}, {"GIT_AUTHOR_NAME": "Eve", "GIT_AUTHOR_EMAIL": "e@x"}, ("Eve", "e@x")),
            ({"user.name": "Ada", "user.email": "a@x"}, {"GIT_AUTHOR_EMAIL": "e@x"}, ("Ada", "e@x")),
        ],
    )  # fmt: skip
    def test_the_operators_own_or_none(self, field, config, environ, author):
        for key, value in config.items():
            repos.git(field.root, "config", key, value)
        found = landing.identity(field.repo, environ)
        got = (found["GIT_AUTHOR_NAME"], found["GIT_AUTHOR_EMAIL"]) if "GIT_AUTHOR_NAME" in found else None
        assert got == author


def test_a_merge_does_not_wait_for_nothing(field):
    start = time.monotonic()
    field.land()
    assert time.monotonic() - start < 30
    shutil.rmtree(field.folder)
