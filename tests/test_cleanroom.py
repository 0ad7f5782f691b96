"""The clean room: objects and files are looked at byte for byte, and nothing of an agent's making runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from agents import git
from agents.cleanroom import ABSENT, CleanRoom, Counts, Survey
from agents.errors import HostError, Tampered
from tests.support.repos import commit, make_repo
from tests.support.repos import git as plain_git
from tests.support.trees import File, Link, applied, clear, edits, expected, listing, make_exact, place, plain, write

LINES = "".join(f"line {number}\n" for number in range(20))


@pytest.fixture
def root(tmp_path):
    return make_repo(tmp_path / "repo", {"a.txt": LINES, "b.txt": "b\n", "src/c.py": "c = 1\n"})


@pytest.fixture
def room(root, tmp_path):
    return CleanRoom.make(tmp_path / "room.git", git.locate(root))


def tree_with(room: CleanRoom, base: str, **files: str | None) -> str:
    """Tree of *base* with the content of some files replaced; None takes a file out."""
    ids = {name: text if text is None else room.output("hash-object", "-w", "--stdin", stdin=text.encode()).decode().strip()
           for name, text in files.items()}  # fmt: skip
    entries = [("100644" if oid else ABSENT, oid or "0" * 40, f"{name}.txt".encode()) for name, oid in ids.items()]
    return room.with_entries(base, entries)


class TestMaking:
    """A room has nothing from outside but the objects, and the operator's own exclusions."""

    @pytest.mark.parametrize("name", ["repo", "re po", 're"po', "re\npo", "#repo", "réponse", ":repo"])
    def test_it_sees_the_objects_wherever_the_repository_lies(self, tmp_path, name):
        there = make_repo(tmp_path / name, {"x": "x\n"})
        repo = git.locate(there)
        room = CleanRoom.make(tmp_path / "room.git", repo)
        assert room.output("cat-file", "blob", f"{repo.head}:x") == b"x\n"

    @pytest.mark.parametrize("form", ["sha1", "sha256"])
    def test_either_kind_of_object_name_works(self, tmp_path, form):
        """A room of a repository with SHA-256 names does all that one with SHA-1 does (G38)."""
        there = make_exact(tmp_path / "repo", {b"a": File(b"a\n")}, form=form)
        repo = git.locate(there)
        room = CleanRoom.make(tmp_path / "room.git", repo)
        room.seed(repo.head)
        work = tmp_path / "work"
        work.mkdir()
        room.checkout(work)
        (work / "a").write_text("b\n")
        tree = room.snapshot(work)
        assert room.apply(repo.head, room.difference(repo.head, tree)) == tree
        made = room.commit(tree, [repo.head], "m")
        room.send(made)
        assert plain(there, "show", f"{made}:a") == b"b\n"

    def test_an_alternate_of_the_repository_is_followed(self, root, tmp_path):
        plain_git(tmp_path, "clone", "-q", "--shared", str(root), str(tmp_path / "shared"))
        room = CleanRoom.make(tmp_path / "room.git", git.locate(tmp_path / "shared"))
        assert len(room.tree_of(plain_git(root, "rev-parse", "HEAD"))) == 1

    def test_a_shallow_clone_works(self, root, tmp_path):
        """The borders of a shallow history are known in the room (G09)."""
        commit(root, {"b.txt": "two\n"})
        plain_git(tmp_path, "clone", "-q", "--depth=1", root.as_uri(), str(tmp_path / "shallow"))
        repo = git.locate(tmp_path / "shallow")
        room = CleanRoom.make(tmp_path / "room.git", repo)
        assert room.output("rev-list", "--count", repo.head) == b"1\n"

    def test_a_partial_clone_that_lacks_files_says_so(self, root, tmp_path):
        """Missing objects are not fetched behind the operator's back (G10)."""
        plain_git(root, "config", "uploadpack.allowFilter", "true")
        plain_git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", root.as_uri(), str(tmp_path / "part"))
        repo = git.locate(tmp_path / "part")
        room = CleanRoom.make(tmp_path / "room.git", repo)
        room.seed(repo.head)
        (tmp_path / "work").mkdir()
        with pytest.raises(HostError, match="partial clone lacks") as caught:
            room.checkout(tmp_path / "work")
        assert "--refetch" in caught.value.hint

    @pytest.mark.parametrize("where", ["info", "setting", "default"])
    def test_the_operators_exclusions_hold(self, root, tmp_path, where):
        home = Path(os.environ["HOME"])
        if where == "info":
            (root / ".git" / "info" / "exclude").write_text("*.secret\n")
        elif where == "setting":
            (tmp_path / "mine").write_text("*.secret\n")
            plain_git(root, "config", "core.excludesFile", str(tmp_path / "mine"))
        else:
            (home / ".config" / "git").mkdir(parents=True)
            (home / ".config" / "git" / "ignore").write_text("*.secret")
        room = CleanRoom.make(tmp_path / "room.git", git.locate(root))
        room.seed(plain_git(root, "rev-parse", "HEAD"))
        work = tmp_path / "work"
        work.mkdir()
        room.checkout(work)
        (work / "x.secret").write_text("s")
        (work / "x.open").write_text("o")
        assert [each.path for each in room.changes(plain_git(root, "rev-parse", "HEAD"), room.snapshot(work))] == [
            b"x.open"
        ]

    def test_the_environment_does_not_lead_it_elsewhere(self, root, tmp_path):
        """What redirects git is set by the room itself (T04)."""
        code = (
            "import sys; from pathlib import Path; from agents import git; from agents.cleanroom import CleanRoom; "
            "repo = git.locate(Path(sys.argv[1])); room = CleanRoom.make(Path(sys.argv[2]), repo); "
            "print(room.output('rev-parse', '--absolute-git-dir').decode())"
        )
        lost = {
            "GIT_DIR": "/nowhere",
            "GIT_INDEX_FILE": "/nowhere",
            "GIT_OBJECT_DIRECTORY": "/nowhere",
            "GIT_CONFIG_COUNT": "x",
        }
        done = subprocess.run(
            [sys.executable, "-c", code, str(root), str(tmp_path / "r.git")],
            cwd=Path(__file__).parents[1], env={**os.environ, **lost}, capture_output=True, text=True,
        )  # fmt: skip
        assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "r.git")), done.stderr


class TestSealed:
    """Nothing that was planted in the repository or in the tree runs (G21)."""

    def test_no_program_of_the_configuration_runs(self, root, tmp_path):
        """Fourteen ways to have git run a program, all planted at once; the room obeys none of them (G21, G22, G32)."""
        canary = tmp_path / "canary"
        evil = tmp_path / "evil"
        evil.write_text(f"#!/bin/sh\necho $0 $* >> {canary}\ncat\n")
        evil.chmod(0o755)
        config = {
            "core.fsmonitor": evil, "core.hooksPath": tmp_path / "hooks", "filter.evil.clean": evil, "filter.evil.smudge": evil,
            "filter.evil.process": evil, "diff.external": evil, "diff.evil.textconv": evil, "diff.evil.command": evil,
            "merge.evil.driver": evil, "gpg.program": evil, "core.sshCommand": evil, "core.pager": evil, "core.editor": evil,
            "core.attributesFile": tmp_path / "attributes",
        }  # fmt: skip
        attributes = "* filter=evil diff=evil merge=evil\n"
        (tmp_path / "attributes").write_text(attributes)
        (tmp_path / "hooks").mkdir()
        for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "fsmonitor-watchman"):
            os.link(evil, tmp_path / "hooks" / hook)
            os.link(evil, root / ".git" / "hooks" / hook)
        repo = git.locate(root)
        for key, value in config.items():
            plain_git(root, "config", key, str(value))
        (root / ".git" / "info" / "attributes").write_text(attributes)
        room = CleanRoom.make(tmp_path / "room.git", repo)
        work = tmp_path / "work"
        work.mkdir()
        room.seed(repo.head)
        room.checkout(work)
        write(work, {b".gitattributes": File(attributes.encode()), b"a.txt": File(b"changed\n"), b"n.bin": File(b"\0")})
        (work / ".git").write_text(f"gitdir: {root}/.git\n")
        tree = room.snapshot(work)
        assert room.apply(repo.head, room.difference(repo.head, tree)) == tree
        assert room.numstat(repo.head, tree).files == 3
        assert room.merge(repo.head, room.commit(tree_with(room, repo.head, b="x\n"), [repo.head], "m"), tree).tree
        room.send(room.commit(tree, [repo.head], "m"))
        assert not canary.exists(), canary.read_text()
        subprocess.run(["git", "add", "-A"], cwd=root, capture_output=True)
        assert canary.exists(), "the canary itself does not sing"

    @pytest.mark.parametrize(
        "attributes",
        [
            "* -diff\n",
            "* binary\n",
            "* text eol=crlf\n",
            "* working-tree-encoding=UTF-16\n",
            "* ident\n",
            "[attr]m -diff\n* m\n",
        ],
    )
    def test_attributes_of_the_tree_hide_and_convert_nothing(self, root, room, tmp_path, attributes):
        """A patch shows the text whatever ``.gitattributes`` says, and the bytes are those of the file (G08, G22)."""
        head = plain_git(root, "rev-parse", "HEAD")
        room.seed(head)
        work = tmp_path / "work"
        work.mkdir()
        room.checkout(work)
        content = b"\xc3\xa4 $Id$\r\nmixed\n"
        write(work, {b".gitattributes": File(attributes.encode()), b"b.txt": File(content)})
        tree = room.snapshot(work)
        assert room.output("cat-file", "blob", f"{tree}:b.txt") == content
        assert b"+mixed" in room.difference(head, tree)


class TestFiles:
    """What lies in a tree is what is in the tree object, and the other way round."""

    def test_a_change_within_the_tick_of_the_checkout_is_seen(self, root, room, tmp_path):
        """Same size, same time to the second: the copy of the index must not look younger than the file (N07)."""
        head = plain_git(root, "rev-parse", "HEAD")
        for turn in range(10):
            work = tmp_path / f"work{turn}"
            work.mkdir()
            room.seed(head)
            room.checkout(work)
            seen = (work / "b.txt").stat()
            (work / "b.txt").write_text(f"{turn}\n")
            os.utime(work / "b.txt", ns=(seen.st_atime_ns, seen.st_mtime_ns))
            assert room.output("cat-file", "blob", f"{room.snapshot(work)}:b.txt") == b"%d\n" % turn

    def test_a_snapshot_leaves_the_rooms_index_alone(self, root, room, tmp_path):
        work = tmp_path / "work"
        work.mkdir()
        room.seed(plain_git(root, "rev-parse", "HEAD"))
        room.checkout(work)
        before = room.index.read_bytes()
        (work / "b.txt").unlink()
        assert room.snapshot(work) == room.snapshot(work)
        assert room.index.read_bytes() == before
        assert list(room.path.glob("scratch-*")) == []

    @pytest.mark.parametrize("name", [".GIT/config", "git~1", ".git /x", ".g\u200cit/x", "d/.gIt"])
    def test_a_name_that_git_refuses_keeps_nothing_else_out(self, root, room, tmp_path, name):
        """Names that are `.git` elsewhere are left out and said; without a list to say them in they are an error (G33)."""
        head = plain_git(root, "rev-parse", "HEAD")
        room.seed(head)
        work = tmp_path / "work"
        work.mkdir()
        room.checkout(work)
        write(work, {name.encode(): File(b"x"), b"zz": File(b"z")})
        refused: list[bytes] = []
        assert [each.path for each in room.changes(head, room.snapshot(work, refused=refused))] == [b"zz"]
        assert len(refused) == 1
        with pytest.raises(HostError, match="git add failed"):
            room.snapshot(work)

    def test_a_file_system_without_modes_makes_no_noise(self, root, tmp_path):
        """Where the operator's git does not trust modes, the room does not either (G38)."""
        plain_git(root, "config", "core.fileMode", "false")
        airlock = place(root).open()
        (airlock.path / "a.txt").chmod(0o755)
        assert airlock.room.snapshot(airlock.path) == airlock.room.tree_of(airlock.base)[0]

    def test_what_is_to_be_left_stays_as_in_the_index(self, root, room, tmp_path):
        head = plain_git(root, "rev-parse", "HEAD")
        room.seed(head)
        work = tmp_path / "work"
        work.mkdir()
        room.checkout(work)
        clear(work)
        write(work, {b"src/new": File(), b"b*": File()})
        got = {each.path for each in room.changes(head, room.snapshot(work, leave=[b"src", b"b.txt", b"b*"]))}
        assert got == {b"a.txt"}


class TestTrees:
    """Trees are compared, rebuilt and merged without a checkout."""

    def test_changes_say_what_each_side_has(self, root, room):
        head = plain_git(root, "rev-parse", "HEAD")
        tree = tree_with(room, head, a=None, b="new\n", d="d\n")
        seen = {each.path: (each.old_mode, each.new_mode) for each in room.changes(head, tree)}
        assert seen == {b"a.txt": ("100644", ABSENT), b"b.txt": ("100644", "100644"), b"d.txt": (ABSENT, "100644")}
        assert room.numstat(head, tree) == Counts(3, 2, 21, 0)
        whole = Survey(room.changes(head, tree), Counts(3, 2, 21, 0), room.difference(head, tree))
        assert room.survey(head, tree) == whole
        assert room.survey(head, head) == Survey((), Counts(0, 0, 0, 0), b"")

    def test_a_binary_file_is_counted_as_one(self, root, room):
        head = plain_git(root, "rev-parse", "HEAD")
        assert room.numstat(head, tree_with(room, head, x="\0\1")) == Counts(1, 0, 0, 1)

    @given(pair=edits())
    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_a_patch_rebuilds_the_tree(self, tmp_path, pair):
        """T127: whatever the names, modes, kinds and bytes, base and patch give the very tree; so does plain `git apply`
        in a fresh clone (G08, G14, G15).
        """
        old, new = pair
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            root = make_exact(Path(folder) / "repo", old)
            airlock = place(root).open()
            clear(airlock.path)
            write(airlock.path, new)
            tree = airlock.room.snapshot(airlock.path)
            patch = airlock.room.difference(airlock.base, tree)
            assert listing(airlock, tree) == expected(new)
            one_by_one = Survey(
                airlock.room.changes(airlock.base, tree), airlock.room.numstat(airlock.base, tree), patch
            )
            assert airlock.room.survey(airlock.base, tree) == one_by_one
            assert airlock.room.apply(airlock.base, patch) == tree
            exact = any(model.get(b".gitattributes") for model in pair)
            assert applied(root, patch, Path(folder) / "clone", exact=exact) == tree

    @pytest.mark.parametrize("damage", [b"", b"garbage\n"])
    def test_an_empty_patch_changes_nothing_and_garbage_is_refused(self, root, room, damage):
        head = plain_git(root, "rev-parse", "HEAD")
        if damage:
            with pytest.raises(Tampered, match="does not apply"):
                room.apply(head, damage)
        else:
            assert (room.apply(head, damage),) == room.tree_of(head)

    def test_a_patch_with_a_line_changed_is_refused_or_gives_another_tree(self, root, room):
        head = plain_git(root, "rev-parse", "HEAD")
        tree = tree_with(room, head, a=LINES.replace("line 7", "seven"))
        patch = room.difference(head, tree)
        assert room.apply(head, patch.replace(b"+seven", b"+eleven")) != tree
        with pytest.raises(Tampered):
            room.apply(head, patch.replace(b" line 6", b" line six"))


class TestMerge:
    """Three trees become one in memory, or nothing does (G28, G29)."""

    def test_what_stands_on_today_s_base_is_taken_as_it_is(self, root, room):
        head = plain_git(root, "rev-parse", "HEAD")
        tree = tree_with(room, head, b="new\n")
        assert room.merge(head, head, tree).tree == tree

    def test_work_on_both_sides_is_joined(self, root, room):
        base = plain_git(root, "rev-parse", "HEAD")
        theirs = tree_with(room, base, a=LINES.replace("line 2\n", "two\n"))
        ours = commit(root, {"a.txt": LINES.replace("line 17\n", "seventeen\n"), "d.txt": "d\n"})
        merged = room.merge(base, ours, theirs)
        text = room.output("cat-file", "blob", f"{merged.tree}:a.txt").decode()
        assert text == LINES.replace("line 2\n", "two\n").replace("line 17\n", "seventeen\n")
        assert {each.path for each in room.changes(ours, merged.tree)} == {b"a.txt"}

    def test_a_conflict_names_the_files_and_gives_no_tree(self, root, room):
        base = plain_git(root, "rev-parse", "HEAD")
        theirs = tree_with(room, base, a="theirs\n", b="theirs\n")
        ours = commit(root, {"a.txt": "ours\n", "b.txt": "ours\n"})
        merged = room.merge(base, ours, theirs)
        assert (merged.tree, merged.conflicts) == (None, (b"a.txt", b"b.txt"))

    def test_the_base_is_what_was_said_even_where_history_has_no_common_one(self, root, room):
        base = plain_git(root, "rev-parse", "HEAD")
        plain_git(root, "checkout", "-q", "--orphan", "other")
        ours = commit(root, {"e.txt": "e\n"})
        theirs = tree_with(room, base, b="new\n")
        merged = room.merge(base, ours, theirs)
        assert {each.path for each in room.changes(base, merged.tree)} == {b"b.txt", b"e.txt"}

    @pytest.mark.parametrize(("words", "why"), [("usage: git merge-tree", "2.38 or newer"), ("fatal: odd", "git fsck")])
    def test_a_git_that_cannot_do_it_says_so(self, root, tmp_path, words, why):
        shim, real = tmp_path / "shim", shutil.which("git")
        shim.mkdir()
        (shim / "git").write_text(
            f'#!/bin/sh\ncase " $* " in *" merge-tree "*) echo "{words}" >&2; exit 129;; esac\nexec {real} "$@"\n'
        )
        (shim / "git").chmod(0o755)
        ours, base = commit(root, {"b.txt": "new\n"}), plain_git(root, "rev-parse", "HEAD~1")
        code = (
            "import sys; from pathlib import Path; from agents import git; from agents.cleanroom import CleanRoom\n"
            "from agents.errors import HostError\n"
            "room = CleanRoom.make(Path(sys.argv[2]), git.locate(Path(sys.argv[1])))\n"
            "try: room.merge(*sys.argv[3:])\nexcept HostError as why: print(why.hint)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(root), str(tmp_path / "r.git"), base, ours, base],
            cwd=Path(__file__).parents[1], env={**os.environ, "PATH": f"{shim}:{os.environ['PATH']}"}, capture_output=True, text=True,
        )  # fmt: skip
        assert why in done.stdout, done.stderr

    def test_a_merge_driver_of_the_attributes_does_not_decide(self, root, room):
        base = commit(root, {".gitattributes": "* merge=union\n"})
        theirs = tree_with(room, base, b="theirs\n")
        ours = commit(root, {"b.txt": "ours\n"})
        assert room.merge(base, ours, theirs).conflicts == (b"b.txt",)


class TestSending:
    """What was made in the room gets into the repository on request only, and whole."""

    def test_nothing_is_in_the_repository_before(self, root, room):
        head = plain_git(root, "rev-parse", "HEAD")
        tree = tree_with(room, head, b="new\n")
        made = room.commit(tree, [head], "subject\n\nAgent-Run: x\n", when="@1700000000 +0000")
        assert subprocess.run(["git", "cat-file", "-e", made], cwd=root, capture_output=True).returncode != 0
        room.send(made)
        assert plain_git(root, "log", "-1", "--format=%an <%ae> %at %(trailers)%P", made) == (
            f"Agent Box <agent-box@localhost> 1700000000 Agent-Run: x\n{head}"
        )
        assert plain_git(root, "show", f"{made}:b.txt") == "new"
        plain_git(root, "fsck", "--strict")

    def test_a_tree_can_be_sent_alone_and_twice(self, root, room):
        tree = tree_with(room, plain_git(root, "rev-parse", "HEAD"), b="new\n")
        room.send(tree)
        room.send(tree)
        assert plain_git(root, "cat-file", "-t", tree) == "tree"

    def test_another_identity_is_kept(self, room, root):
        head = plain_git(root, "rev-parse", "HEAD")
        made = room.commit(
            head, [head], "m", identity={"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
        )
        assert b"author Ada <ada@example.org>" in room.output("cat-file", "commit", made)

    @pytest.mark.parametrize("name", [".git", "git~1", ".."])
    def test_a_malformed_object_is_refused(self, root, room, name):
        """A tree with an entry that git must never check out does not enter the repository (G36)."""
        blob = room.output("hash-object", "-w", "--stdin", stdin=b"x").decode().strip()
        raw = b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob)
        tree = room.output("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=raw).decode().strip()
        with pytest.raises(HostError, match="repository refuses"):
            room.send(tree)

    def test_a_commit_whose_parent_is_nowhere_is_refused(self, root, room):
        head = plain_git(root, "rev-parse", "HEAD")
        lonely = room.commit(head, (), "not sent")
        with pytest.raises(HostError, match="repository refuses"):
            room.send(room.commit(head, [lonely], "m"))

    def test_a_blob_is_read_up_to_a_limit(self, room):
        oid = room.output("hash-object", "-w", "--stdin", stdin=b"0123456789").decode().strip()
        assert (room.blob(oid), room.blob(oid, 4)) == (b"0123456789", b"0123")

    def test_links_and_modes_survive_a_checkout(self, tmp_path):
        model = {b"x": File(b"#!/bin/sh\n", run=True), b"l": Link(b"../out"), b"d/e": File(b"\r\n")}
        airlock = place(make_exact(tmp_path / "repo", model)).open()
        assert (airlock.path / "l").readlink() == Path("../out")
        assert os.access(airlock.path / "x", os.X_OK)
        assert (airlock.path / "d" / "e").read_bytes() == b"\r\n"
