"""The door to git: it finds the repository, sees what changed in it, and runs nothing that was planted there."""

from __future__ import annotations

import os
import stat
import subprocess
from typing import ClassVar

import pytest

from agents import git
from agents.context import HOME
from agents.errors import HostError, OperatorError
from agents.layout import EXCLUDED
from tests.support.repos import ENVIRONMENT, commit, make_repo
from tests.support.repos import git as plain_git


@pytest.fixture
def root(tmp_path):
    return make_repo(
        tmp_path / "repo", {"README.md": "a project\n", "src/app.py": "print('hello')\n", "old.txt": "old\n"}
    )


class TestLocate:
    """Where a command was typed says which repository is meant."""

    @pytest.mark.parametrize("where", [".", "src"])
    def test_a_work_tree_is_found_from_anywhere_in_it(self, root, where):
        found = git.locate(root / where)
        assert (found.root, found.common_dir) == (root, root / ".git")
        assert found.head == plain_git(root, "rev-parse", "HEAD")

    def test_a_linked_work_tree_shares_the_git_directory(self, root, tmp_path):
        plain_git(root, "worktree", "add", "--quiet", str(tmp_path / "linked"))
        found = git.locate(tmp_path / "linked")
        assert (found.root, found.common_dir) == (tmp_path / "linked", root / ".git")

    def test_a_submodule_is_a_repository_of_its_own(self, root, tmp_path):
        other = make_repo(tmp_path / "other", {"x": "x"})
        plain_git(root, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(other), "sub")
        found = git.locate(root / "sub")
        assert (found.root, found.common_dir) == (root / "sub", root / ".git" / "modules" / "sub")

    def test_a_repository_without_a_commit_has_no_head(self, tmp_path):
        assert git.locate(make_repo(tmp_path / "new")).head is None

    @pytest.mark.parametrize("kind", ["bare", "git directory"])
    def test_where_no_files_are_is_refused(self, root, tmp_path, kind):
        place = root / ".git"
        if kind == "bare":
            place = tmp_path / "bare"
            plain_git(tmp_path, "init", "--quiet", "--bare", str(place))
        with pytest.raises(OperatorError, match="bare"):
            git.locate(place)

    def test_outside_of_any_repository_the_hint_says_how_to_make_one(self, tmp_path):
        with pytest.raises(OperatorError, match="not a git repository") as caught:
            git.locate(tmp_path)
        assert "git init" in caught.value.hint

    def test_a_folder_that_is_gone_is_one_sentence(self, tmp_path):
        with pytest.raises(HostError, match="gone"):
            git.locate(tmp_path / "nowhere")

    def test_a_broken_repository_is_one_sentence(self, root):
        (root / ".git" / "config").write_text("[core\n")
        with pytest.raises(OperatorError, match="does not open"):
            git.locate(root)

    @pytest.mark.parametrize(
        "name",
        [b"two words", b"quote'\"s", b"new\nline", b"\nfirst", b"last\n", b"\xff\xfe", b"-dash", "é".encode(), b"true"],
    )
    def test_odd_names_of_folders_are_kept_exactly(self, tmp_path, name):
        place = make_repo(tmp_path / os.fsdecode(name), {"a": "a"})
        found = git.locate(place)
        assert (found.root, found.common_dir) == (place, place / ".git")

    def test_line_breaks_in_one_of_two_paths_do_not_move_the_border(self, tmp_path):
        place = make_repo(tmp_path / "a\nb\nc", {"a": "a"})
        plain_git(place, "worktree", "add", "--quiet", str(tmp_path / "plain"))
        found = git.locate(tmp_path / "plain")
        assert (found.root, found.common_dir) == (tmp_path / "plain", place / ".git")


def test_variables_that_redirect_git_are_dropped_and_identities_stay():
    """T151: what the operator's shell says about another repository must not reach this one."""
    base = {"GIT_DIR": "/x", "GIT_INDEX_FILE": "/y", "GIT_WORK_TREE": "/z", "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_PARAMETERS": "'a.b=c'", "GIT_EXTERNAL_DIFF": "evil", "GIT_AUTHOR_NAME": "Ada", "HOME": "/h"}  # fmt: skip
    clean = git.environ(base)
    assert {name for name in clean if name in base} == {"GIT_AUTHOR_NAME", "HOME"}


def test_a_redirecting_environment_does_not_redirect(root, tmp_path):
    """The same, with a real process whose environment points elsewhere."""
    other = make_repo(tmp_path / "other", {"x": "x"})
    program = (
        "import sys; from pathlib import Path; from agents import git;"
        "repo = git.locate(Path(sys.argv[1])); print(repo.root, repo.head, git.is_dirty(repo))"
    )
    hostile = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(tmp_path / "none")}
    here = str(HOME)
    done = subprocess.run(
        [os.sys.executable, "-c", program, str(root)], env=ENVIRONMENT | hostile | {"PYTHONPATH": here},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [str(root), plain_git(root, "rev-parse", "HEAD"), "False"]


class TestFingerprint:
    """What changes in the operator's repository is seen, and nothing planted there runs."""

    CHANGES: ClassVar = {
        "edited tracked file": (lambda root: (root / "src/app.py").write_text("evil\n"), "file src/app.py"),
        "new untracked file": (lambda root: (root / "new.txt").write_text("x"), "file new.txt"),
        "file in a new folder": (lambda root: ((root / "d").mkdir(), (root / "d/e").write_text("")), "file d/e"),
        "deleted file": (lambda root: (root / "old.txt").unlink(), "file old.txt"),
        "mode": (lambda root: (root / "old.txt").chmod(0o755), "file old.txt"),
        "file became a link": (
            lambda root: ((root / "old.txt").unlink(), (root / "old.txt").symlink_to("/etc")),
            "file old.txt",
        ),
        "staged file": (lambda root: ((root / "s").write_text(""), plain_git(root, "add", "s")), "file s"),
        "odd name": (lambda root: (root / "a\nb \udcff'").write_text(""), "file a\nb \udcff'"),
        "new branch": (lambda root: plain_git(root, "branch", "evil"), "refs"),
        "tag": (lambda root: plain_git(root, "tag", "evil"), "refs"),
        "moved HEAD": (lambda root: plain_git(root, "commit", "--quiet", "--allow-empty", "-m", "x"), "HEAD"),
        "other branch": (lambda root: plain_git(root, "checkout", "--quiet", "-b", "evil"), "HEAD"),
        "configuration": (lambda root: plain_git(root, "config", "alias.x", "!evil"), "config"),
        "hook": (lambda root: (root / ".git/hooks/post-commit").write_text("#!/bin/sh\n"), "hooks/post-commit"),
        "hook that is a link": (lambda root: (root / ".git/hooks/x").symlink_to("/bin/true"), "hooks/x"),
        "hook that is a pipe": (lambda root: os.mkfifo(root / ".git/hooks/x"), "hooks/x"),
        "attributes": (
            lambda root: (
                (root / ".git/info").mkdir(exist_ok=True),
                (root / ".git/info/attributes").write_text("* filter=x"),
            ),
            "info/attributes",
        ),
        "what is ignored": (
            lambda root: (
                (root / ".git/info").mkdir(exist_ok=True),
                (root / ".git/info/exclude").write_text("*\n"),
            ),
            "info/exclude",
        ),
        "assumed unchanged": (
            lambda root: plain_git(root, "update-index", "--assume-unchanged", "src/app.py"),
            "index flags",
        ),
        "skipped": (lambda root: plain_git(root, "update-index", "--skip-worktree", "src/app.py"), "index flags"),
    }

    @pytest.mark.parametrize("change", CHANGES)
    def test_every_change_is_named(self, root, change):
        """T147: T126: files, branches, HEAD, configuration and hooks are part of it."""
        act, expected = self.CHANGES[change]
        repo = git.locate(root)
        (root / ".git" / "hooks").mkdir(exist_ok=True)
        before = git.fingerprint(repo)
        act(root)
        assert expected in before.changes(git.fingerprint(repo, before))

    def test_an_already_edited_file_that_is_edited_again_is_seen(self, root):
        """T147: the status letters are the same, the file is not."""
        (root / "src/app.py").write_text("mine\n")
        repo = git.locate(root)
        before = git.fingerprint(repo)
        (root / "src/app.py").write_text("not mine\n")
        assert before.changes(git.fingerprint(repo, before)) == ("file src/app.py",)

    def test_a_detached_head_that_moves_is_seen(self, root):
        """T147: no branch moves with it."""
        commit(root, {"more": "x"})
        plain_git(root, "checkout", "--quiet", "--detach", "HEAD")
        repo = git.locate(root)
        before = git.fingerprint(repo)
        plain_git(root, "checkout", "--quiet", "HEAD~1")
        assert before.changes(git.fingerprint(repo, before)) == ("HEAD",)

    def test_a_branch_that_is_left_for_another_at_the_same_commit_is_seen(self, root):
        """T147: the next commit would go elsewhere."""
        plain_git(root, "branch", "other")
        repo = git.locate(root)
        before = git.fingerprint(repo)
        plain_git(root, "checkout", "--quiet", "other")
        assert "HEAD" in before.changes(git.fingerprint(repo, before))

    @pytest.mark.parametrize("split", ["false", "true"])
    def test_a_file_that_git_is_told_to_pass_over_is_seen_though_the_index_was_not_looked_at_again(self, root, split):
        """T147: an index that nobody has touched is not read twice; one that was touched has another stamp."""
        plain_git(root, "-c", f"core.splitIndex={split}", "update-index", "--refresh")
        repo = git.locate(root)
        before = git.fingerprint(repo)
        seen = (root / ".git" / "index").stat()
        plain_git(root, "update-index", "--assume-unchanged", "src/app.py")
        os.utime(root / ".git" / "index", ns=(seen.st_atime_ns, seen.st_mtime_ns))
        (root / "src/app.py").write_text("not mine\n")
        assert "index flags" in before.changes(git.fingerprint(repo, before))

    def test_nothing_changed_is_nothing(self, root):
        (root / "dirty").write_text("x")
        repo = git.locate(root)
        before = git.fingerprint(repo)
        git.write_anchor(repo, b"the ledger's own")
        assert before.changes(git.fingerprint(repo, before)) == ()

    @pytest.mark.parametrize(
        "planted",
        ["core.fsmonitor", "filter.x.clean", "filter.x.process", "core.hooksPath", "diff.x.textconv", "diff.external",
         "core.pager", "core.sshCommand", "core.editor", "include.path"],
    )  # fmt: skip
    def test_a_program_planted_in_the_configuration_is_seen_and_not_run(self, root, tmp_path, planted):
        """T147: G: what an agent left for the supervisor's git to trip over stays where it lies."""
        repo = git.locate(root)
        before = git.fingerprint(repo)
        canary, evil = tmp_path / "canary", tmp_path / "evil"
        evil.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
        evil.chmod(0o755)
        (root / ".gitattributes").write_text("* filter=x diff=x\n")
        if planted == "include.path":
            (tmp_path / "more").write_text(f'[filter "x"]\n clean = {evil}\n')
            plain_git(root, "config", planted, str(tmp_path / "more"))
        elif planted == "core.hooksPath":
            (tmp_path / "hooks").mkdir()
            (tmp_path / "hooks" / "post-index-change").symlink_to(evil)
            plain_git(root, "config", planted, str(tmp_path / "hooks"))
        else:
            plain_git(root, "config", planted, str(evil))
        os.utime(root / "src/app.py", (1, 1))
        assert "config" in before.changes(git.fingerprint(repo, before))
        assert not canary.exists()

    @pytest.mark.parametrize("hook", ["post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-commit"])
    def test_a_planted_hook_is_seen_and_not_run(self, root, tmp_path, hook):
        """T147: neither by the fingerprint nor by what the supervisor writes to the repository itself."""
        repo = git.locate(root)
        before = git.fingerprint(repo)
        canary = tmp_path / "canary"
        path = root / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {canary}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        assert f"hooks/{hook}" in before.changes(git.fingerprint(repo, before))
        git.write_anchor(repo, b"head")
        assert not canary.exists()

    @pytest.mark.parametrize("how", ["its pointer", "its own configuration"])
    def test_a_linked_work_tree_led_to_planted_settings_is_seen_and_they_are_not_obeyed(self, root, tmp_path, how):
        """T147: also what only this work tree reads is part of the fingerprint."""
        plain_git(root, "config", "extensions.worktreeConfig", "true")
        linked = tmp_path / "linked"
        plain_git(root, "worktree", "add", "--quiet", str(linked))
        repo = git.locate(linked)
        before = git.fingerprint(repo)
        canary = tmp_path / "canary"
        (linked / ".gitattributes").write_text("* filter=x\n")
        settings = f'[filter "x"]\n clean = "touch {canary}; cat"\n'
        if how == "its pointer":
            fake = make_repo(tmp_path / "fake", {"a": "a"}) / ".git"
            with (fake / "config").open("a") as file:
                file.write(settings)
            (linked / ".git").write_text(f"gitdir: {fake}\n")
        else:
            (root / ".git" / "worktrees" / "linked" / "config.worktree").write_text(settings)
        os.utime(linked / "src/app.py", (1, 1))
        assert before.changes(git.fingerprint(repo, before))
        assert not canary.exists()

    def test_settings_planted_in_a_submodule_are_not_obeyed(self, root, tmp_path):
        """T147: git would look into it by itself."""
        other = make_repo(tmp_path / "other", {"x": "x"})
        plain_git(root, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(other), "sub")
        plain_git(root, "commit", "--quiet", "-m", "sub")
        repo = git.locate(root)
        before = git.fingerprint(repo)
        canary = tmp_path / "canary"
        (root / "sub" / ".gitattributes").write_text("* filter=x\n")
        plain_git(root / "sub", "config", "filter.x.clean", f"touch {canary}; cat")
        os.utime(root / "sub" / "x", (1, 1))
        git.fingerprint(repo, before)
        assert not canary.exists()
        commit(root / "sub", {"y": "y"})
        canary.unlink(missing_ok=True)
        assert "file sub" in before.changes(git.fingerprint(repo, before))
        assert not canary.exists()


class TestExclude:
    """The box keeps out of git's sight without touching a tracked file."""

    @pytest.mark.parametrize("present", [None, "", "*.log", "*.log\n", "*.log\r\n"])
    def test_patterns_are_added_once_and_what_was_there_stays(self, root, present):
        """T121: whatever the file looked like before."""
        repo = git.locate(root)
        path = root / ".git" / "info" / "exclude"
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True) if present is None else path.write_bytes(present.encode())
        git.exclude(repo, EXCLUDED)
        first = path.read_bytes()
        git.exclude(repo, EXCLUDED)
        assert path.read_bytes() == first
        assert first.startswith((present or "").encode())
        for pattern in EXCLUDED:
            assert first.decode().splitlines().count(pattern) == 1

    def test_what_the_box_makes_is_not_shown(self, root):
        """T121: not even as untracked, while the operator's own files are."""
        for place in (".agents/runs", ".claude/commands/run_a1b2", "agent_box/trees", ".claude/commands/mine"):
            (root / place).mkdir(parents=True)
            (root / place / "file").write_text("x")
        git.exclude(git.locate(root), EXCLUDED)
        shown = plain_git(root, "status", "--porcelain", "--untracked-files=all")
        assert shown == "?? .claude/commands/mine/file"

    def test_a_linked_work_tree_and_a_missing_folder_are_no_obstacle(self, root, tmp_path):
        plain_git(root, "worktree", "add", "--quiet", str(tmp_path / "linked"))
        for path in (root / ".git" / "info").glob("*"):
            path.unlink()
        (root / ".git" / "info").rmdir() if (root / ".git" / "info").exists() else None
        git.exclude(git.locate(tmp_path / "linked"), EXCLUDED)
        (tmp_path / "linked" / ".agents").mkdir()
        (tmp_path / "linked" / ".agents" / "x").touch()
        assert plain_git(tmp_path / "linked", "status", "--porcelain") == ""


def test_a_dirty_checkout_is_told_from_a_clean_one(root):
    repo = git.locate(root)
    assert git.is_dirty(repo) is False
    (root / "new").touch()
    assert git.is_dirty(repo) is True


def test_an_anchor_comes_back_and_is_no_part_of_history(root):
    repo = git.locate(root)
    assert git.read_anchor(repo) is None
    git.write_anchor(repo, b"first\n")
    git.write_anchor(repo, b"second\n")
    assert git.read_anchor(repo) == b"second\n"
    assert plain_git(root, "status", "--porcelain") == ""
    assert plain_git(root, "log", "--format=%s", "HEAD") == "first"


@pytest.mark.parametrize(
    ("text", "age", "stays"),
    [("id", 0, False), ("", 3600, False), ("", 0, True), ("ref: refs/heads/main", 3600, True), ("ab12", 3600, True)],
)
@pytest.mark.parametrize("linked", [False, True])
def test_a_lock_that_a_cut_off_git_left_on_the_anchor_goes_and_no_other(root, tmp_path, text, age, stays, linked):
    """A `git pack-refs` that is at work holds an empty one for a moment."""
    if linked:
        plain_git(root, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    repo = git.locate(tmp_path / "linked" if linked else root)
    git.write_anchor(repo, b"head")
    lock = git.own_dir(repo) / f"{git.ledger_ref(repo)}.lock"
    lock.write_text(f"{plain_git(root, 'rev-parse', 'HEAD')}\n" if text == "id" else text)
    os.utime(lock, (then := lock.stat().st_mtime - age, then))
    git.unlock(repo, git.ledger_ref(repo))
    assert lock.exists() is stays


def test_a_failing_git_is_reported_in_its_own_words(root):
    with pytest.raises(HostError, match="git rev-parse failed: fatal: Needed a single revision"):
        git.output(root, "rev-parse", "--verify", "nothing")


def test_a_demo_repository_has_its_files_in_one_commit(tmp_path):
    git.make_repository(tmp_path / "demo", {"a.txt": "a", "deep/b.txt": "b"}, "a start")
    assert plain_git(tmp_path / "demo", "status", "--porcelain") == ""
    assert plain_git(tmp_path / "demo", "log", "--format=%s by %an") == "a start by Agent Box"
