"""The airlock: opened byte for byte, exported whole, found again after a crash, never removed with work in it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from agents import worktrees
from agents.airlock import close, existing, export, open_airlock, stamp
from agents.errors import HostError, Tampered
from agents.layout import Layout
from tests.support.repos import commit, make_repo
from tests.support.repos import git as plain_git
from tests.support.trees import (
    NAME,
    File,
    Link,
    applied,
    clear,
    edits,
    expected,
    listing,
    make_exact,
    place,
    plain,
    write,
)
from tests.support.world import eventually

PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture
def root(tmp_path):
    return make_repo(tmp_path / "repo", {"a.txt": "a\n", "src/b.py": "b\n", "src/c.py": "c\n"})


@pytest.fixture
def here(root):
    return place(root)


@pytest.fixture
def airlock(here):
    return here.open()


def changed(airlock, done) -> set[bytes]:
    return {each.path for each in airlock.room.changes(airlock.base, done.tree)}


def said(done) -> str:
    return "\n".join(done.findings)


def close_(here, **more):
    close(here.repo, here.layout, here.box.name, **{"exported_tree": None, **more})


def found(here):
    return existing(here.repo, here.layout, here.box, here.base)


class TestOpening:
    """An airlock is a work tree at the base commit, and the operator's own files stay out of it."""

    def test_it_holds_the_base_byte_for_byte(self, here, airlock, root):
        """T125: a tree of its own at the commit at which the run started; the checkout and HEAD are untouched (T126)."""
        assert airlock.path == root / "agent_box" / "trees" / NAME
        assert {path.name for path in airlock.path.iterdir()} == {".git", "a.txt", "src"}
        assert plain_git(airlock.path, "rev-parse", "HEAD") == here.base
        assert plain_git(airlock.path, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
        assert plain_git(root, "status", "--porcelain", "--untracked-files=no") == ""

    def test_the_agent_s_own_git_finds_it_clean(self, airlock):
        assert plain_git(airlock.path, "status", "--porcelain") == ""
        (airlock.path / "a.txt").write_text("agent\n")
        assert plain_git(airlock.path, "diff", "--name-only") == "a.txt"

    def test_uncommitted_work_of_the_operator_stays_his(self, root):
        """The agent sees the commit, not what is being worked on (G01)."""
        (root / "a.txt").write_text("in the making\n")
        (root / "untracked").write_text("u\n")
        airlock = place(root).open()
        assert (airlock.path / "a.txt").read_text() == "a\n"
        assert not (airlock.path / "untracked").exists()
        assert (root / "a.txt").read_text() == "in the making\n"

    @pytest.mark.parametrize("kind", ["detached", "linked", "submodule", "sha256", "odd name"])
    def test_it_opens_in_any_kind_of_checkout(self, root, tmp_path, kind):
        """Detached HEAD, linked work tree, submodule, SHA-256 names, a folder with a line break (G02, G04, G38)."""
        if kind == "detached":
            plain_git(root, "checkout", "-q", "--detach")
        elif kind == "linked":
            plain_git(root, "worktree", "add", "-q", str(tmp_path / "linked"))
            root = tmp_path / "linked"
        elif kind == "submodule":
            outer = make_repo(tmp_path / "outer", {"x": "x"})
            plain_git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(root), "sub")
            root = outer / "sub"
        elif kind == "sha256":
            root = make_exact(tmp_path / "sha256", {b"a.txt": File(b"a\n")}, form="sha256")
        else:
            root = make_repo(tmp_path / 'odd "name"\nhere é', {"a.txt": "a\n"})
        here = place(root)
        airlock = here.open()
        write(airlock.path, {b"new": File(b"n\n")})
        done = export(airlock)
        assert changed(airlock, done) == {b"new"}
        close_(here, exported_tree=done.tree)
        assert not airlock.path.exists()

    @pytest.mark.parametrize(
        "attributes",
        ["* text=auto eol=crlf\n", "* ident\n", "*.txt working-tree-encoding=UTF-16\n", "* filter=absent\n"],
    )
    def test_attributes_and_line_ends_make_no_noise(self, tmp_path, attributes):
        """A checkout with conversions would show every file as changed (G08)."""
        root = make_exact(
            tmp_path / "repo", {b".gitattributes": File(attributes.encode()), b"x.txt": File(b"a\r\n$Id$\n")}
        )
        plain_git(root, "config", "core.autocrlf", "true")
        airlock = place(root).open()
        assert (airlock.path / "x.txt").read_bytes() == b"a\r\n$Id$\n"
        assert export(airlock).patch == b""

    def test_pointers_of_large_files_stay_pointers(self, tmp_path):
        """Git LFS is not run: no network, no program of the configuration; the operator is told (G07)."""
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
        root = make_exact(
            tmp_path / "repo", {b".gitattributes": File(b"*.bin filter=lfs diff=lfs\n"), b"x.bin": File(pointer)}
        )
        plain_git(root, "config", "filter.lfs.smudge", "false")
        plain_git(root, "config", "filter.lfs.required", "true")
        airlock = place(root).open()
        assert (airlock.path / "x.bin").read_bytes() == pointer
        assert "pointers" in airlock.notes[0]

    @pytest.mark.parametrize("cone", [True, False])
    def test_a_sparse_checkout_stays_sparse(self, root, cone):
        """Files outside of the operator's patterns are absent, and not deleted by the patch (fact 8, G08)."""
        commit(root, {"big/one.bin": "1", "big/two.bin": "2"})
        plain_git(root, "sparse-checkout", "set", "--cone" if cone else "--no-cone", "src" if cone else "/src/")
        airlock = place(root).open()
        assert not (airlock.path / "big").exists()
        assert export(airlock).patch == b""
        write(airlock.path, {b"src/new.py": File(b"n\n"), b"big/made": File(b"m\n")})
        (airlock.path / "src" / "b.py").unlink()
        assert changed(airlock, export(airlock)) == {b"src/new.py", b"src/b.py", b"big/made"}

    def test_a_disk_too_small_is_refused_before_and_leaves_nothing(self, here, root):
        with pytest.raises(HostError, match="MiB are free"):
            here.open(reserve=1 << 60)
        assert not here.layout.tree(NAME).exists()
        assert not here.box.room.exists()
        assert len(plain_git(root, "worktree", "list").splitlines()) == 1

    def test_what_a_sparse_checkout_leaves_out_needs_no_space(self, root):
        commit(root, {f"big/{n}": "x" * 100_000 for n in range(40)})
        plain_git(root, "sparse-checkout", "set", "src")
        free = shutil.disk_usage(root).free
        place(root).open(reserve=max(free - 3_000_000, 0))

    @pytest.mark.parametrize("what", ["folder", "link", "file"])
    def test_something_in_the_way_is_left_alone(self, here, root, tmp_path, what):
        path = here.layout.tree(NAME)
        path.parent.mkdir(parents=True)
        if what == "folder":
            path.mkdir()
            (path / "work").write_text("somebody's")
        elif what == "link":
            path.symlink_to(tmp_path)
        else:
            path.write_text("x")
        with pytest.raises(HostError, match="in the way"):
            here.open()
        assert os.path.lexists(path)

    @pytest.mark.parametrize("level", ["agent_box", "agent_box/trees"])
    def test_airlocks_are_not_made_through_a_link(self, here, root, tmp_path, level):
        (root / level).parent.mkdir(exist_ok=True)
        (root / level).symlink_to(tmp_path)
        with pytest.raises(HostError, match="is a link"):
            here.open()

    def test_a_commit_that_is_not_there_is_said(self, here):
        with pytest.raises(HostError, match="failed in the clean room"):
            open_airlock(here.repo, here.layout, here.box, "0" * 40)
        assert not here.box.room.exists()

    def test_a_second_one_for_the_same_run_is_refused(self, here, airlock):
        (airlock.path / "work").write_text("w")
        with pytest.raises(HostError, match="has an airlock already"):
            here.open()
        assert (airlock.path / "work").exists()

    def test_its_registration_is_what_git_would_have_made(self, here, airlock, root, tmp_path):
        """It is written without git, in git's own format (gitrepository-layout)."""
        theirs = tmp_path / "theirs"
        plain_git(root, "worktree", "add", "-q", "--no-checkout", "--detach", "--lock", "--reason", "why", str(theirs))
        names = {"HEAD", "commondir", "gitdir", "locked"}
        read = [
            {name: (root / ".git" / "worktrees" / each / name).read_text() for name in names}
            | {".git": (tree / ".git").read_text()}
            for each, tree in ((NAME, airlock.path), ("theirs", theirs))
        ]
        for each in read[1]:
            read[1][each] = read[1][each].replace(str(theirs), str(airlock.path)).replace("/theirs", f"/{NAME}")
        read[1]["locked"] = read[1]["locked"].replace("why", NAME)
        assert read[0] == read[1]
        told = plain_git(root, "worktree", "list", "--porcelain")
        assert f"worktree {airlock.path}\nHEAD {here.base}\ndetached\nlocked {NAME}\n" in told
        plain_git(airlock.path, "status", "--porcelain")
        plain_git(root, "worktree", "prune", "--expire=now")
        assert found(here) == airlock

    @pytest.mark.parametrize("what", ["settings", "patterns", "rights", "in the way"])
    def test_what_takes_git_is_left_to_git(self, here, root, what):
        """Settings of each work tree, sparse patterns, a repository of several users, a name that is taken."""
        taken = root / ".git" / "worktrees" / NAME
        if what == "settings":
            plain_git(root, "config", "extensions.worktreeConfig", "true")
            plain_git(root, "config", "--worktree", "agent.box", "yes")
        elif what == "patterns":
            plain_git(root, "sparse-checkout", "set", "src")
        elif what == "rights":
            (root / ".git").chmod(0o2775)
        else:
            taken.mkdir(parents=True)
            (taken / "locked").write_text("somebody else")
        opened = here.open()
        entry = worktrees.vouching(here.repo, opened.path, NAME)
        # Of what is written by hand there is no such file.
        assert (entry / "logs").exists()
        assert (entry == taken) is (what != "in the way")
        if what == "settings":
            assert plain_git(opened.path, "config", "agent.box").strip() == "yes"
        elif what == "patterns":
            assert (entry / "info" / "sparse-checkout").exists()

    def test_the_operator_s_own_git_may_hold_a_lock_for_a_moment(self, here, root):
        """A try that fails is made again (fact 5)."""
        (root / ".git" / "worktrees").write_text("in the way for a moment")
        opener = subprocess.Popen([sys.executable, "-c", OPEN, str(root), NAME], cwd=PROJECT, stdout=subprocess.PIPE)
        eventually(lambda: here.box.room.joinpath("index").exists())
        (root / ".git" / "worktrees").unlink()
        out, _ = opener.communicate(timeout=60)
        assert (opener.returncode, out) == (0, b"open\n")

    def test_few_processes_are_started(self, root, tmp_path):
        """Opening and exporting a small airlock costs ten processes of git."""
        log, shim = tmp_path / "log", tmp_path / "shim"
        shim.mkdir()
        real = shutil.which("git")
        (shim / "git").write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {real} "$@"\n')
        (shim / "git").chmod(0o755)
        code = f"{OPEN}\nopened.path.joinpath('n').write_text('n')\nfrom agents.airlock import export\nassert export(opened).files == 1"
        env = {**os.environ, "PATH": f"{shim}:{os.environ['PATH']}"}
        subprocess.run(
            [sys.executable, "-c", code, str(root), NAME, place(root).base],
            cwd=PROJECT,
            env=env,
            check=True,
            capture_output=True,
        )
        assert len(log.read_text().splitlines()) <= 10, log.read_text()


OPEN = """
import sys; from pathlib import Path; from agents import git; from agents.airlock import open_airlock
from agents.layout import Layout
root, name = Path(sys.argv[1]), sys.argv[2]
# Where the repository is may be known already.
repo = git.Repository(root=root, common_dir=root / ".git", head=sys.argv[3]) if sys.argv[3:] else git.locate(root)
opened = open_airlock(repo, Layout(root), Layout(root).box(name), repo.head)
print("open", flush=True)
"""


class TestManyAtOnce:
    """Parallel starts are the normal case."""

    def test_twenty_at_once_are_twenty(self, root):
        """Without one lock over all, half of parallel `git worktree add` fail (N03, fact 5, T119)."""
        names = [f"26-11-22_0300__try__{number:04x}" for number in range(20)]
        openers = [
            subprocess.Popen(
                [sys.executable, "-c", OPEN, str(root), name],
                cwd=PROJECT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for name in names
        ]
        ends = [(opener.communicate(timeout=100), opener.returncode) for opener in openers]
        assert [code for _, code in ends] == [0] * 20, [err for (_, err), _ in ends if err]
        assert len(plain_git(root, "worktree", "list").splitlines()) == 21
        for name in names:
            here = place(root, name)
            assert export(found(here)).patch == b""
            close_(here)
        assert len(plain_git(root, "worktree", "list").splitlines()) == 1


class TestExport:
    """Whatever the agent did to the files is in the patch, and what cannot be is said."""

    @given(pair=edits())
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_base_and_patch_give_the_very_tree(self, tmp_path_factory, pair):
        """T127: an airlock's export holds exactly its files, and its patch rebuilds that tree here and in a clone (G08, G14,
        G15).
        """
        folder = tmp_path_factory.mktemp("trip")
        root = make_exact(folder / "repo", pair[0])
        airlock = place(root).open()
        clear(airlock.path)
        write(airlock.path, pair[1])
        done = export(airlock)
        assert listing(airlock, done.tree) == expected(pair[1])
        assert airlock.room.apply(airlock.base, done.patch) == done.tree
        exact = any(b".gitattributes" in model for model in pair)
        assert applied(root, done.patch, folder / "clone", exact=exact) == done.tree

    def test_every_kind_of_change_at_once(self, tmp_path):
        """T127: new, deleted, renamed, binary, mode, link, kind, line ends: plain `git apply` gives the airlock's tree; the
        box's own folders are not in it (G15).
        """
        private = {b".claude/c.md": File(b"c\n"), b".agents/x": File(b"x\n"), b"agent_box/y": File(b"y\n")}
        old = {
            b"gone": File(b"1\n"), b"moved": File(b"2\n" * 9), b"mode": File(b"3\n"), b"bin": File(b"\0\1"), b"kind": File(b"4\n"),
            b"link": Link(b"mode"), b"dir/f": File(b"5\n"), b"crlf": File(b"a\r\nb\r\n"), b"end": File(b"no end"), **private,
        }  # fmt: skip
        new = {
            b"new": File(b"n\n"), b"deep/moved to": File(b"2\n" * 9), b"mode": File(b"3\n", run=True), b"bin": File(b"\0\2"),
            b"kind": Link(b"mode"), b"link": File(b"now a file\n"), b"dir": File(b"now a file\n"), b"crlf": File(b"a\r\nB\r\n"),
            b"end": File(b"no end at all"), b"empty": File(), b"-dash\n\xff": File(b"odd\n"),
        }  # fmt: skip
        root = make_exact(tmp_path / "repo", old)
        airlock = place(root).open()
        clear(airlock.path)
        write(airlock.path, {**new, b".claude/c.md": File(b"rules for me\n"), b".agents/new": File(b"forged\n")})
        done = export(airlock)
        assert listing(airlock, done.tree) == expected({**new, **private})
        assert applied(root, done.patch, tmp_path / "clone") == done.tree
        assert not any(each.startswith((b".claude", b".agents", b"agent_box")) for each in changed(airlock, done))
        assert ".claude/c.md" in said(done)
        assert ".agents/new" in said(done)
        assert (done.files, done.binary) == (len(changed(airlock, done)), 1)

    def test_it_can_be_done_again(self, airlock):
        """A recovery that does it once more gets the same (S13)."""
        write(airlock.path, {b"a.txt": File(b"agent\n"), b"n": File(b"n")})
        assert export(airlock) == export(airlock)

    @pytest.mark.parametrize(
        "trick",
        ["commit", "amend", "stash", "skip-worktree", "assume-unchanged", "branch", "no index", "own repository"],
    )
    def test_what_the_agent_does_with_git_does_not_matter(self, root, airlock, trick):
        """Commits, stashes and flags of the agent's index change nothing about what is in its tree (G24, G25, G20)."""
        (airlock.path / "a.txt").write_text("agent\n")
        tricks = {
            "commit": [["commit", "-qam", "m"]],
            "amend": [["commit", "-qam", "m", "--amend"]],
            "stash": [["stash", "-q"], ["stash", "apply", "-q"]],
            "skip-worktree": [["update-index", "--skip-worktree", "a.txt"]],
            "assume-unchanged": [["update-index", "--assume-unchanged", "a.txt"]],
            "branch": [["checkout", "-qb", "mine"], ["commit", "-qam", "m"], ["branch", "-f", "main"]],
            "no index": [["rm", "-rq", "--cached", "."]],
        }
        for words in tricks.get(trick, []):
            subprocess.run(["git", *words], cwd=airlock.path, env={**os.environ, "GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@y",
                           "GIT_COMMITTER_NAME": "x", "GIT_COMMITTER_EMAIL": "x@y"}, capture_output=True)  # fmt: skip
        if trick == "own repository":
            (airlock.path / ".git").unlink()
            plain_git(airlock.path, "init", "-q")
            plain_git(airlock.path, "add", "-A")
            plain_git(airlock.path, "commit", "-qm", "all mine")
        done = export(airlock)
        assert changed(airlock, done) == {b"a.txt"}
        assert applied(root, done.patch, root.parent / "clone") == done.tree

    def test_a_huge_file_is_left_out_before_git_reads_it(self, airlock):
        """One core dump does not keep the rest from being exported (G12)."""
        write(airlock.path, {b"a.txt": File(b"agent\n")})
        with (airlock.path / "core").open("wb") as file:
            file.truncate(3 * 1024**3)
        done = export(airlock)
        assert changed(airlock, done) == {b"a.txt"}
        assert "Too large for the patch, left out: core." in done.findings

    @pytest.mark.parametrize("name", [":(top)core", "-core", "co*re", "new\nline"])
    def test_a_huge_file_may_be_called_anything(self, airlock, name):
        write(airlock.path, {os.fsencode(name): File(b"x" * 1000), b"core": File(b"c")})
        done = export(airlock, huge=100)
        assert changed(airlock, done) == {b"core"}
        assert len(done.findings) == 1

    def test_a_huge_file_that_git_ignores_is_nobody_s_concern(self, root):
        commit(root, {".gitignore": "build/\n"})
        airlock = place(root).open()
        write(airlock.path, {b"build/big": File(b"x" * 1000)})
        assert export(airlock, huge=100).findings == ()

    def test_private_folders_that_the_operator_ignores_are_passed_over(self, root):
        """`git add` complains where what it is told to pass over is ignored as well, as in every repository of ours."""
        (root / ".git" / "info" / "exclude").write_text("/.agents\n/agent_box\n")
        airlock = place(root).open()
        write(airlock.path, {b".agents/x": File(b"x"), b"agent_box/y": File(b"y"), b"new": File(b"n\n")})
        done = export(airlock)
        assert changed(airlock, done) == {b"new"}
        assert ".agents/x, agent_box/y" in said(done)

    def test_too_much_altogether_is_refused_before_git_reads_it(self, airlock):
        """A patch is held in memory as a whole; what git ignores does not count (G12)."""
        write(airlock.path, {b".gitignore": File(b"*.ignored\n")})
        for number in range(3):
            with (airlock.path / f"{number}.ignored").open("wb") as file:
                file.truncate(400 * 1024**2)
        assert changed(airlock, export(airlock)) == {b".gitignore"}
        for number in range(3):
            with (airlock.path / f"large{number}").open("wb") as file:
                file.truncate(400 * 1024**2)
        with pytest.raises(HostError, match="too much for a patch"):
            export(airlock)

    def test_pipes_sockets_and_their_like_are_passed_over(self, airlock, tmp_path):
        """git would wait for the writer of a pipe that is called `.gitignore` (G13)."""
        os.mkfifo(airlock.path / "pipe")
        os.mkfifo(airlock.path / ".gitignore")
        os.mkfifo(airlock.path / "src" / ".gitattributes")
        home = Path.cwd()
        with socket.socket(socket.AF_UNIX) as server:
            os.chdir(airlock.path)
            try:
                server.bind("socket")
            finally:
                os.chdir(home)
            write(airlock.path, {b"new": File(b"n\n")})
            done = export(airlock)
        assert changed(airlock, done) == {b"new"}
        assert all(name in said(done) for name in ("pipe", ".gitignore", "src/.gitattributes", "socket"))

    @pytest.mark.parametrize("commits", [True, False])
    def test_a_repository_in_the_tree_is_said(self, airlock, commits):
        """Its files would be missing without a word, and one without a commit would end the export (G19)."""
        inner = make_repo(airlock.path / "inner", {"x": "x\n"} if commits else None)
        write(inner, {b"more": File(b"m\n")})
        write(airlock.path, {b"new": File(b"n\n")})
        done = export(airlock)
        assert changed(airlock, done) == {b"new"}
        assert "Repositories of their own, whose files are not in the patch: inner." in done.findings

    @pytest.mark.parametrize("kind", ["empty folder", "folder of trash"])
    def test_a_git_folder_that_is_none_hides_nothing(self, airlock, kind):
        (airlock.path / "src" / ".git").mkdir()
        if kind == "folder of trash":
            (airlock.path / "src" / ".git" / "trash").write_text("t")
        write(airlock.path, {b"src/new.py": File(b"n\n")})
        assert changed(airlock, export(airlock)) == {b"src/new.py"}

    def test_names_that_are_one_on_other_systems_are_said(self, airlock):
        """Two files there, one after a checkout on a system that folds case or composes letters (G14)."""
        write(airlock.path, {b"A.txt": File(b"twin\n"), "é".encode(): File(b"1"), "e\u0301".encode(): File(b"2")})
        assert "One name on systems" in said(export(airlock))
        assert "A.txt ~ a.txt" in said(export(airlock))

    def test_twins_that_were_there_before_are_not_the_agent_s(self, tmp_path):
        airlock = place(make_exact(tmp_path / "repo", {b"x": File(b"1"), b"X": File(b"2")})).open()
        assert export(airlock).findings == ()

    def test_names_that_git_refuses_are_said(self, airlock):
        write(airlock.path, {b".GIT/config": File(b"x"), b"new": File(b"n")})
        done = export(airlock)
        assert changed(airlock, done) == {b"new"}
        assert "Names that git refuses" in said(done)

    def test_what_the_agent_has_git_ignore_is_said(self, root):
        """Nothing disappears behind a rule that the agent wrote; what the base ignores is no news (G23)."""
        commit(root, {".gitignore": "*.pyc\nout/\n", "src/.gitignore": "gen\n"})
        airlock = place(root).open()
        write(airlock.path, {
            b".gitignore": File(b"*.pyc\nout/\nhidden*\nnode_modules/\n"), b"hidden.sh": File(b"h"), b"x.pyc": File(), b"out/x": File(),
            b"src/gen": File(), b"node_modules/m/i.js": File(),
        })  # fmt: skip
        done = export(airlock)
        assert changed(airlock, done) == {b".gitignore"}
        assert "Not in the patch, because the agent has git ignore it: hidden.sh, node_modules/." in done.findings

    def test_a_tracked_file_is_exported_though_it_is_ignored_now(self, airlock):
        write(airlock.path, {b".gitignore": File(b"*\n"), b"a.txt": File(b"agent\n")})
        assert b"a.txt" in changed(airlock, export(airlock))

    def test_a_link_carries_its_target_not_what_it_leads_to(self, airlock):
        """A link to the outside is a link in the patch, not the file behind it (G17)."""
        write(airlock.path, {b"passwd": Link(b"/etc/passwd"), b"etc": Link(b"/etc")})
        done = export(airlock)
        assert listing(airlock, done.tree)[b"passwd"] == expected({b"passwd": Link(b"/etc/passwd")})[b"passwd"]
        assert changed(airlock, done) == {b"passwd", b"etc"}

    def test_everything_deleted_is_said_and_no_crash(self, airlock, root):
        """The agent emptied its tree (G27)."""
        clear(airlock.path)
        (airlock.path / ".git").unlink()
        done = export(airlock)
        assert "Every file of the base is deleted (3)." in done.findings
        assert applied(root, done.patch, root.parent / "clone") == done.tree

    @pytest.mark.parametrize("kind", ["gone", "link", "file"])
    def test_an_airlock_that_is_no_folder_is_tampering(self, airlock, tmp_path, kind):
        shutil.rmtree(airlock.path)
        if kind == "link":
            (tmp_path / "elsewhere").mkdir()
            airlock.path.symlink_to(tmp_path / "elsewhere")
        elif kind == "file":
            airlock.path.write_text("x")
        with pytest.raises(Tampered, match="gone or no folder"):
            export(airlock)

    def test_folders_nested_without_end_are_refused_and_can_be_removed(self, here, airlock):
        """Deeper than a path can be long and than Python can call itself."""
        folder = os.open(airlock.path, os.O_RDONLY)
        for _ in range(2500):
            os.mkdir("dd", dir_fd=folder)
            inner = os.open("dd", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = inner
        os.close(folder)
        with pytest.raises(HostError, match="cannot be read"):
            export(airlock)
        close_(here, force=True)
        assert not airlock.path.exists()

    @pytest.mark.parametrize("mode", [0o000, 0o200])
    def test_what_was_made_unreadable_is_exported(self, airlock, mode):
        write(airlock.path, {b"new": File(b"n\n"), b"d/x": File(b"x\n")})
        (airlock.path / "new").chmod(mode)
        (airlock.path / "d").chmod(mode)
        assert changed(airlock, export(airlock)) == {b"new", b"d/x"}


class TestSubmodules:
    """Their files are there without network and without their settings; what is changed in them is said."""

    @pytest.fixture
    def outer(self, tmp_path):
        inner = make_repo(tmp_path / "inner", {"lib.py": "l\n"})
        middle = make_repo(tmp_path / "middle", {"m.py": "m\n"})
        outer = make_repo(tmp_path / "outer", {"o.py": "o\n"})
        allow = ("-c", "protocol.file.allow=always", "submodule")
        plain_git(middle, *allow, "add", "-q", str(inner), "deps/inner")
        plain_git(middle, "commit", "-qm", "sub")
        plain_git(outer, *allow, "add", "-q", "--name", "a/name", str(middle), "vendor/middle")
        plain_git(outer, "commit", "-qm", "sub")
        plain_git(outer, *allow, "update", "-q", "--init", "--recursive")
        return outer

    def test_their_files_are_there_from_the_clones_at_hand(self, outer, tmp_path):
        """Also those of submodules in submodules; no program of their configuration runs (G06)."""
        canary = tmp_path / "canary"
        for config in (outer / ".git" / "modules").rglob("config"):
            plain_git(config.parent, "config", "--file", str(config), "core.fsmonitor", f"touch {canary}")
        shutil.rmtree(tmp_path / "inner")
        airlock = place(outer).open()
        assert (airlock.path / "vendor/middle/m.py").read_text() == "m\n"
        assert (airlock.path / "vendor/middle/deps/inner/lib.py").read_text() == "l\n"
        assert airlock.notes == ()
        assert export(airlock).patch == b""
        assert export(airlock).findings == ()
        assert not canary.exists()

    def test_one_that_is_not_here_stays_empty_and_is_said(self, outer):
        shutil.rmtree(outer / ".git" / "modules")
        airlock = place(outer).open()
        assert list((airlock.path / "vendor/middle").iterdir()) == []
        assert "git submodule update --init" in airlock.notes[0]

    def test_one_that_was_cloned_by_hand_is_there_too(self, tmp_path):
        outer = make_repo(tmp_path / "outer", {"o.py": "o\n"})
        make_repo(outer / "by hand", {"h.py": "h\n"})
        plain_git(outer, "submodule", "add", "-q", "./by hand")
        plain_git(outer, "commit", "-qm", "sub")
        assert (outer / "by hand" / ".git").is_dir()
        assert (place(outer).open().path / "by hand" / "h.py").read_text() == "h\n"

    @pytest.mark.parametrize("name", ["../../elsewhere", "/etc", "a/../../b"])
    def test_a_name_that_climbs_out_of_the_clones_is_not_followed(self, outer, name):
        modules = plain(
            outer, "config", "--file", ".gitmodules", "--rename-section", "submodule.a/name", f"submodule.{name}"
        )
        assert modules == b""
        plain_git(outer, "commit", "-qam", "climb")
        assert "is empty" in place(outer).open().notes[0]

    @pytest.mark.parametrize("act", ["change", "remove", "own commit"])
    def test_a_change_in_one_is_said_and_not_in_the_patch(self, outer, act):
        """A submodule removed by the agent is not a deletion in the patch (G06)."""
        airlock = place(outer).open()
        assert found(place(outer)) == airlock
        where = airlock.path / "vendor" / "middle"
        if act == "change":
            (where / "m.py").write_text("agent\n")
        elif act == "remove":
            shutil.rmtree(where)
        else:
            make_repo(where, {"z": "z"})
        write(airlock.path, {b"new": File(b"n\n")})
        done = export(airlock)
        assert changed(airlock, done) == {b"new"}
        assert "Changes in submodules are not in the patch: vendor/middle." in done.findings


class TestFindingAgain:
    """A later process finds the airlock that its run has, and cleans up what a killed one left."""

    def test_it_is_the_same_value(self, here, airlock):
        assert found(here) == airlock
        write(airlock.path, {b"a.txt": File(b"agent\n")})
        assert changed(airlock, export(found(here))) == {b"a.txt"}

    def test_there_is_none_before(self, here):
        assert found(here) is None

    def test_another_base_is_not_this_airlock(self, here, airlock, root):
        later = commit(root, {"x": "x"})
        assert existing(here.repo, here.layout, here.box, later) is None
        assert airlock.path.exists()

    @pytest.mark.parametrize("how", ["gone", "link", "unregistered", "other reason"])
    def test_a_folder_that_nothing_vouches_for_is_not_taken(self, here, airlock, root, tmp_path, how):
        """Neither path nor `.git` file count, only the registration in the repository (G39, G20)."""
        entry = worktrees.vouching(here.repo, airlock.path, NAME)
        if how == "gone":
            shutil.rmtree(airlock.path)
        elif how == "link":
            airlock.path.rename(tmp_path / "moved")
            airlock.path.symlink_to(tmp_path / "moved")
        elif how == "unregistered":
            shutil.rmtree(entry)
        else:
            (entry / "locked").write_text("somebody else")
        assert found(here) is None

    @pytest.mark.parametrize("pointer", [None, "gitdir: /nowhere\n", "trash"])
    def test_what_the_agent_wrote_into_its_git_file_does_not_matter(self, here, airlock, pointer):
        (airlock.path / ".git").unlink()
        if pointer:
            (airlock.path / ".git").write_text(pointer)
        assert found(here) == airlock

    def test_locks_that_a_dead_supervisor_left_in_the_room_are_cleared(self, here, airlock):
        (here.box.room / "index.lock").write_text("")
        (here.box.room / "scratch-0.lock").write_text("")
        assert export(found(here)).patch == b""
        assert not (here.box.room / "index.lock").exists()

    def test_a_room_that_is_lost_takes_no_work_along(self, here, airlock):
        """Without its clean room an airlock cannot be exported, but it may hold work all the same."""
        (airlock.path / "work").write_text("w")
        shutil.rmtree(here.box.room)
        assert found(here) is None
        with pytest.raises(HostError, match="in the way"):
            here.open()
        with pytest.raises(HostError, match="Nothing says what is in the airlock"):
            close_(here)
        assert (airlock.path / "work").exists()

    @pytest.mark.parametrize("stop", ["read-tree", "ls-files", "cat-file", "checkout-index"])
    @pytest.mark.parametrize("then", ["existing", "close"])
    def test_killed_in_the_middle_of_opening(self, here, root, tmp_path, stop, then):
        """SIGKILL at each step of the opening: what comes next finds nothing or cleans up, and opening works again (S5)."""
        shim, real = tmp_path / "shim", shutil.which("git")
        shim.mkdir()
        (shim / "git").write_text(
            f'#!/bin/sh\ncase " $* " in *" {stop} "*) {real} "$@"; kill -9 $PPID; exit 0;; esac\nexec {real} "$@"\n'
        )
        (shim / "git").chmod(0o755)
        env = {**os.environ, "PATH": f"{shim}:{os.environ['PATH']}"}
        done = subprocess.run([sys.executable, "-c", OPEN, str(root), NAME], cwd=PROJECT, env=env, capture_output=True)
        assert done.returncode == -signal.SIGKILL
        if then == "close":
            close_(here)
        assert found(here) is None
        assert len(plain_git(root, "worktree", "list").splitlines()) == 1
        assert export(here.open()).patch == b""

    def test_a_registration_half_made_is_ours_by_its_reason(self, here, root):
        """git was killed in `worktree add`: there is a reason and nothing else (S5, G39)."""
        here.box.room.mkdir(parents=True)
        half = root / ".git" / "worktrees" / NAME
        half.mkdir(parents=True)
        (half / "locked").write_text(NAME)
        assert found(here) is None
        assert not half.exists()

    @pytest.mark.parametrize("files", [(), ("locked",), ("locked", "HEAD"), ("locked", "HEAD", "commondir")])
    def test_killed_in_the_middle_of_registering(self, here, airlock, root, files):
        """Whatever is there of a registration but what makes git see it: it goes, and the next opening works (S5, G39)."""
        entry = root / ".git" / "worktrees" / NAME
        for each in entry.iterdir():
            if each.name not in files:
                each.unlink()
        if not files:
            # The folder of the work tree is made after the reason.
            shutil.rmtree(airlock.path)
        (here.box.room / "airlock.json").unlink()
        assert found(here) is None
        assert not entry.exists()
        assert export(here.open()).patch == b""

    def test_an_empty_registration_of_another_name_is_nobody_s(self, here, root):
        """Who else is making one at this moment will not find it gone."""
        other = root / ".git" / "worktrees" / "another"
        other.mkdir(parents=True)
        here.box.room.mkdir(parents=True)
        assert found(here) is None
        assert other.exists()


class TestClosing:
    """Removing an airlock never loses work, and removes nothing but the airlock."""

    def test_without_work_it_goes(self, here, airlock, root):
        close_(here)
        assert not airlock.path.exists()
        assert len(plain_git(root, "worktree", "list").splitlines()) == 1
        assert not any((root / ".git" / "worktrees").iterdir())
        plain_git(root, "fsck")

    def test_twice_is_fine(self, here, airlock):
        close_(here)
        close_(here)

    @pytest.mark.parametrize("work", [{b"new": File(b"n\n")}, {b"a.txt": File(b"agent\n")}])
    def test_work_that_is_in_no_patch_is_kept(self, here, airlock, work):
        """Peers lost their users' work this way: untracked files and changes count alike (G39)."""
        write(airlock.path, work)
        with pytest.raises(HostError, match="holds work that is in no patch"):
            close_(here)
        assert (airlock.path / os.fsdecode(next(iter(work)))).exists()
        done = export(airlock)
        write(airlock.path, {b"later": File(b"l\n")})
        with pytest.raises(HostError, match="holds work that is in no patch"):
            close_(here, exported_tree=done.tree)
        close_(here, exported_tree=export(airlock).tree)
        assert not airlock.path.exists()

    @pytest.mark.parametrize("lost", [b"", b"\0" * 5000], ids=["empty", "zeros"])
    def test_what_a_power_cut_took_after_it_was_carried_over_is_no_work(self, here, airlock, lost):
        write(airlock.path, {b"new": File(b"n\n"), b"other": File(b"o\n")})
        done = export(airlock)
        write(airlock.path, {b"new": File(lost), b"a.txt": File(lost)})
        (airlock.path / "other").unlink()
        close_(here, exported_tree=done.tree)
        assert not airlock.path.exists()

    def test_work_goes_where_it_is_meant_to(self, here, airlock):
        write(airlock.path, {b"new": File(b"n\n")})
        close_(here, force=True)
        assert not airlock.path.exists()

    def test_links_are_removed_not_followed(self, here, airlock, tmp_path):
        keep = tmp_path / "keep"
        keep.mkdir()
        (keep / "file").write_text("kept")
        write(airlock.path, {b"out": Link(os.fsencode(keep)), b"src/out": Link(os.fsencode(keep))})
        close_(here, force=True)
        assert (keep / "file").read_text() == "kept"

    @pytest.mark.parametrize("force", [True, False])
    @pytest.mark.parametrize("how", ["unregistered", "other reason", "replaced by a link"])
    def test_what_no_registration_vouches_for_stays(self, here, airlock, tmp_path, how, force):
        """A path alone is no proof that a folder is ours to remove, forced or not (G39)."""
        entry = worktrees.vouching(here.repo, airlock.path, NAME)
        if how == "unregistered":
            shutil.rmtree(entry)
        elif how == "other reason":
            (entry / "locked").write_text("somebody else")
        else:
            (tmp_path / "theirs").mkdir()
            (tmp_path / "theirs" / "file").write_text("kept")
            shutil.rmtree(airlock.path)
            airlock.path.symlink_to(tmp_path / "theirs")
            close_(here, force=force)
            assert (tmp_path / "theirs" / "file").read_text() == "kept"
            return
        with pytest.raises(HostError, match="not registered as the airlock"):
            close_(here, force=force)
        assert (airlock.path / "a.txt").exists()

    def test_one_that_the_operator_moved_is_his(self, here, airlock, root, tmp_path):
        plain_git(root, "worktree", "move", "-f", "-f", str(airlock.path), str(tmp_path / "his"))
        close_(here)
        assert (tmp_path / "his" / "a.txt").exists()
        assert plain_git(tmp_path / "his", "status", "--porcelain") == ""

    @pytest.mark.parametrize("how", ["removed by hand", "removed by git", "unlocked", "dirty .git"])
    def test_whatever_the_operator_did_it_ends_clean(self, here, airlock, root, how):
        """Removed, unlocked or damaged: what remains is cleaned up (G39)."""
        if how == "removed by hand":
            shutil.rmtree(airlock.path)
        elif how == "removed by git":
            plain_git(root, "worktree", "remove", "-f", "-f", str(airlock.path))
        elif how == "unlocked":
            plain_git(root, "worktree", "unlock", str(airlock.path))
        else:
            (airlock.path / ".git").write_text("gitdir: /etc\n")
        close_(here)
        assert not airlock.path.exists()
        assert len(plain_git(root, "worktree", "list").splitlines()) == 1

    def test_folders_that_the_agent_closed_are_removed(self, here, airlock):
        write(airlock.path, {b"d/e/f": File(b"x")})
        (airlock.path / "d" / "e").chmod(0o000)
        (airlock.path / "d").chmod(0o500)
        close_(here, force=True)
        assert not airlock.path.exists()

    def test_the_base_survives_a_prune_while_the_airlock_is_open(self, root):
        """The registration keeps the commit that the patch is made against (G40)."""
        here = place(root)
        airlock = here.open()
        plain_git(root, "commit", "-q", "--amend", "--allow-empty", "-m", "another history")
        plain_git(root, "reflog", "expire", "--expire=now", "--all")
        plain_git(root, "gc", "-q", "--prune=now")
        plain_git(root, "worktree", "prune", "--expire=now")
        write(airlock.path, {b"a.txt": File(b"agent\n")})
        done = export(existing(here.repo, here.layout, here.box, airlock.base))
        assert changed(airlock, done) == {b"a.txt"}
        assert airlock.room.apply(airlock.base, done.patch) == done.tree


class TestStamp:
    """A cheap answer to: did anything change?"""

    @pytest.mark.parametrize("act", ["new", "gone", "content", "mode", "deep", "renamed"])
    def test_any_change_shows(self, airlock, act):
        before = stamp(airlock.path)
        assert stamp(airlock.path) == before
        target = airlock.path / "src" / "b.py"
        acts = {
            "new": (airlock.path / "n").touch,
            "gone": target.unlink,
            "content": lambda: target.write_text("bb\n"),
            "mode": lambda: target.chmod(0o755),
            "deep": lambda: (airlock.path / "src" / "d" / "e").mkdir(parents=True),
            "renamed": lambda: target.rename(target.with_name("z.py")),
        }
        acts[act]()
        assert stamp(airlock.path) != before

    def test_git_s_own_pointer_and_absent_folders_do_not_matter(self, airlock, tmp_path):
        before = stamp(airlock.path)
        os.utime(airlock.path / ".git", (0, 0))
        assert stamp(airlock.path) == before
        assert stamp(tmp_path / "absent") == stamp(tmp_path / "absent too")


def test_the_layout_says_where_airlocks_are(root):
    assert Layout(root).tree(NAME) == root / "agent_box" / "trees" / NAME
