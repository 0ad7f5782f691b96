"""The files of a goal in a real airlock: what was written, what is gone, and how it is undone."""

from __future__ import annotations

import hashlib

import pytest

from essentials.records import replace
from hollow.living.undoing import lost, undo, written
from hollow.substrate import goals
from hollow.substrate.model import Result
from hollow.toolbox.workspace import workspace
from tests.support import repos

OLD = "An earlier success.\r\nTwo lines, \u00e4 and no line end"
A, B = "workspace/cedar/deep/er/a.md", "workspace/cedar/b.md"
PEER, SHARED = "workspace/cipher/own.md", "design/shared.md"


@pytest.fixture
def root(tmp_path):
    files = {B: OLD, PEER: "cipher's\n", SHARED: "everybody's\n", "src/code.py": "X = 1\n", ".gitignore": "*.log\n"}
    return repos.make_repo(tmp_path / "airlock", files)


@pytest.fixture
def place(root):
    return workspace(root)


def begun(root, agent="cedar"):
    base = repos.git(root, "rev-parse", "HEAD")
    return goals.new(agent, "Describe it", "existence", base, "0123456789ab", 1.0)[0]


def step(goal, place, files):
    """Write *files* as a step of *goal* does."""
    repos.write(place.root, files)
    done = written(goal, place, list(files), goal.steps + 1)
    return goals.advance(goal, "fs_write", Result(ok=True, wrote=tuple(files)), 2.0, call="", files=done)[0]


def commit(root, goal=None, message="a cycle"):
    trailer = f"\n\nAgent-Goal: {goal.goal_id}" if goal else ""
    repos.git(root, "add", "--all")
    repos.git(root, "commit", "--quiet", "--allow-empty", "--message", message + trailer)


def bytes_of(root):
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def test_what_was_written_is_known_by_its_bytes_and_by_git(root, place):
    goal = begun(root)
    repos.write(root, {A: "new", B: "changed"})
    new, changed = written(goal, place, [A, B, A, "workspace/cedar/nothing.md"], 7)
    assert (new.path, new.created, new.step) == (A, True, 7)
    assert (changed.path, changed.created) == (B, False)
    assert new.sha256 == hashlib.sha256(b"new").hexdigest()


@pytest.mark.parametrize("base", ["", "--output=x", "0" * 40, "HEAD"])
def test_without_its_beginning_nothing_is_taken_for_new_and_nothing_is_touched(root, place, base):
    goal = replace(begun(root), base=base)
    goal = step(goal, place, {A: "new", B: "changed"})
    assert [each.created for each in goal.artifacts] == [False, False]
    before = bytes_of(root)
    assert undo(goal, place) == ((), ())
    assert bytes_of(root) == before


@pytest.mark.parametrize("accepted", [False, True])
def test_an_abandoned_goal_leaves_what_was_there_before_it(root, place, accepted):
    """T91: goal created A, modified B (earlier success) -> A gone, B restored to old content"""
    before = bytes_of(root)
    goal = step(step(begun(root), place, {A: "one", B: "changed"}), place, {A: "two"})
    if accepted:
        commit(root, goal)
    assert undo(goal, place) == ((B,), (A,))
    assert bytes_of(root) == before
    assert not (root / "workspace/cedar/deep").exists()
    assert (root / "workspace/cedar").is_dir()


def test_undoing_twice_is_undoing_once(root, place):
    goal = step(begun(root), place, {A: "one", B: "changed"})
    undo(goal, place)
    before = bytes_of(root)
    assert undo(goal, place) == ((), ())
    assert bytes_of(root) == before


def test_what_is_gone_already_is_restored_or_left_at_that(root, place):
    goal = step(begun(root), place, {A: "one", B: "changed"})
    (root / A).unlink()
    (root / B).unlink()
    assert undo(goal, place) == ((B,), ())
    assert (root / B).read_bytes() == OLD.encode()


def test_other_bytes_of_the_same_length_are_other_bytes(root, place):
    goal = step(begun(root), place, {B: OLD.upper()})
    assert undo(goal, place) == ((B,), ())
    assert (root / B).read_bytes() == OLD.encode()


def test_files_of_earlier_goals_and_of_others_stay(root, place):
    """T91: clean-up is precise"""
    neighbour = "workspace/cedar/deep/neighbour.md"
    repos.write(root, {neighbour: "mine, earlier\n", "workspace/cedar/run.log": "ignored by git\n"})
    repos.git(root, "add", "--all")
    repos.git(root, "commit", "--quiet", "--message", "earlier")
    before = bytes_of(root)
    goal = step(begun(root), place, {A: "one"})
    undo(goal, place)
    assert bytes_of(root) == before


def test_a_file_that_somebody_else_changed_meanwhile_goes_back_to_theirs(root, place):
    goal = step(begun(root), place, {SHARED: "cedar's\n", "design/new.md": "cedar's\n"})
    commit(root, goal)
    repos.write(root, {SHARED: "cipher's\n", "design/new.md": "cipher's\n"})
    commit(root)
    goal = step(goal, place, {SHARED: "cedar's again\n", "design/new.md": "cedar's again\n"})
    commit(root, goal)
    assert undo(goal, place) == ((SHARED, "design/new.md"), ())
    assert (root / SHARED).read_text() == (root / "design/new.md").read_text() == "cipher's\n"


def test_a_shared_file_that_is_somebody_elses_by_now_is_left_alone(root, place):
    goal = step(begun(root), place, {SHARED: "cedar's\n", "design/own.md": "cedar's\n"})
    repos.write(root, {SHARED: "cipher's\n"})
    assert undo(goal, place) == ((), ("design/own.md",))
    assert (root / SHARED).read_text() == "cipher's\n"
    assert (root / "design").is_dir()


@pytest.mark.parametrize("path", [PEER, "src/code.py", ".git/config", "../outside.md", "workspace/cedar", "design"])
def test_nothing_outside_the_own_folders_is_touched(root, place, path):
    """T91: what others made is never touched, whatever the registry says"""
    (root.parent / "outside.md").write_text("outside\n")
    if (root / path).is_file() and ".git" not in path:
        (root / path).write_text("outside\n")  # changed since the goal began: undoing would show
    before = bytes_of(root), (root / ".git/config").read_bytes()
    digest = hashlib.sha256((root / path).read_bytes()).hexdigest() if (root / path).is_file() else "a" * 64
    goal = step(begun(root), place, {A: "one"})
    goal = replace(goal, artifacts=tuple(replace(each, path=path, sha256=digest) for each in goal.artifacts))
    (root / A).unlink()
    assert undo(goal, place) == ((), ())
    assert (bytes_of(root), (root / ".git/config").read_bytes()) == before
    assert (root.parent / "outside.md").read_text() == "outside\n"


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(root, place):
    goal = step(begun(root), place, {A: "one", B: "changed"})
    for path in (A, B):
        (root / path).unlink()
        (root / path).symlink_to(root / "src/code.py")
    assert undo(goal, place) == ((B,), (A,))
    assert (root / "src/code.py").read_text() == "X = 1\n"
    assert (root / B).read_bytes() == OLD.encode()
    assert not (root / B).is_symlink()
    assert not (root / B).stat().st_mode & 0o111


def test_a_link_in_the_place_of_a_folder_is_not_followed(root, place):
    goal = step(begun(root), place, {A: "one"})
    folder = root / "workspace/cedar/deep/er"
    (folder / "a.md").unlink()
    folder.rmdir()
    folder.symlink_to(root / "workspace/cipher")
    repos.write(root, {"workspace/cipher/a.md": "cipher's\n"})
    assert undo(goal, place) == ((), ())
    assert (root / "workspace/cipher/a.md").read_text() == "cipher's\n"


def test_a_folder_in_the_place_of_a_file_stays(root, place):
    goal = step(begun(root), place, {A: "one", B: "changed"})
    for path in (A, B):
        (root / path).unlink()
        (root / path).mkdir()
        (root / path / "x.md").write_text("x")
    assert undo(goal, place) == ((), ())


def test_no_filter_and_no_hook_of_the_repository_is_run(root, place, tmp_path):
    trace = tmp_path / "ran"
    repos.write(root, {".git/info/attributes": "*.md filter=evil diff=evil\n"})
    for name in ("filter.evil.smudge", "filter.evil.clean", "diff.evil.textconv", "core.fsmonitor"):
        repos.git(root, "config", name, f"touch {trace}; cat")
    goal = step(begun(root), place, {A: "one", B: "changed"})
    assert undo(goal, place) == ((B,), (A,))
    assert (root / B).read_bytes() == OLD.encode()
    assert not trace.exists()


def test_permissions_of_a_restored_file_stay(root, place):
    goal = step(begun(root), place, {B: "changed"})
    (root / B).chmod(0o640)
    undo(goal, place)
    assert (root / B).stat().st_mode & 0o777 == 0o640


def test_git_may_change_line_ends_of_what_was_accepted(root, place):
    goal = step(begun(root), place, {A: "one\r\ntwo\r\n", B: "one\ntwo\n"})
    repos.write(root, {A: "one\ntwo\n", B: "one\r\ntwo\r\n"})
    assert lost(goal, place) == {}
    repos.write(root, {A: "one\ntwo", B: "onetwo"})
    assert set(lost(goal, place)) == {A, B}


def test_a_cycle_that_was_never_accepted_leaves_nothing_to_stand_on(root, place):
    goal = step(begun(root), place, {B: "first version"})
    commit(root, goal)
    goal = step(goal, place, {A: "one", B: "second version"})
    assert lost(goal, place) == {}
    # The next airlock holds what was accepted, and nothing of the cycle that crashed.
    repos.git(root, "checkout", "--quiet", "--", B)
    (root / A).unlink()
    gone = lost(goal, place)
    assert gone == {A: None, B: hashlib.sha256(b"first version").hexdigest()}
    left, said = goals.withdraw(goal, gone, 3.0)
    assert (goal.progress, left.progress, [each.path for each in left.artifacts]) == (400, 200, [B])
    assert said[0][1]["paths"] == [B, A]
    assert lost(left, place) == {}
