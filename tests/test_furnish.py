"""What an airlock gets besides its commit: only what may be handed out, and none of it counts as the agent's work."""

from __future__ import annotations

import os

import pytest

from agents.airlock import export
from agents.errors import HostError, OperatorError
from agents.furnish import Furnished, furnish, is_secret, recall
from tests.support.repos import commit, git, make_repo, write
from tests.support.trees import place


@pytest.fixture
def root(tmp_path):
    root = make_repo(
        tmp_path / "repo", {"a.txt": "a\n", ".gitignore": "*.local\nnode_modules/\nbuild/\n", "lib/x.py": "x\n"}
    )
    write(root, {
        "one.local": "1\n", "conf/two.local": "2\n", "node_modules/m/index.js": "m\n", "build/out": "o\n",
        "loose.txt": "untracked\n", ".env": "SECRET=1\n", ".env.test": "OPEN=1\n", ".env.local": "SECRET=2\n",
    })  # fmt: skip
    return root


@pytest.fixture
def airlock(root):
    return place(root).open()


def names(given: Furnished) -> set[str]:
    return {os.fsdecode(path) for path in given.paths}


class TestCopy:
    """Files of the checkout, by name, folder or glob."""

    @pytest.mark.parametrize(
        ("entries", "copied"),
        [
            (["one.local"], {"one.local"}),
            (["conf"], {"conf/two.local"}),
            (["*.local"], {"one.local"}),
            (["**/*.local"], {"one.local", "conf/two.local"}),
            ([".env.test", "build/*"], {".env.test", "build/out"}),
            ([], set()),
        ],
    )
    def test_what_is_named_is_there(self, root, airlock, entries, copied):
        given = furnish(root, airlock.path, copy=entries)
        assert names(given) == copied
        for name in copied:
            assert (airlock.path / name).read_bytes() == (root / name).read_bytes()

    def test_the_mode_comes_along(self, root, airlock):
        (root / "one.local").chmod(0o755)
        furnish(root, airlock.path, copy=["one.local"])
        assert os.access(airlock.path / "one.local", os.X_OK)

    def test_what_is_not_there_is_said(self, root, airlock):
        given = furnish(root, airlock.path, copy=["absent", "*.absent"])
        assert given.paths == ()
        assert [note for note in given.notes if "names no file" in note] == list(given.notes)
        assert len(given.notes) == 2

    @pytest.mark.parametrize(
        "entry",
        [
            "/etc/passwd",
            "../other",
            "conf/../../x",
            "",
            ".",
            ".env",
            ".env.local",
            ".ENV",
            ".git/config",
            ".agents/x",
            "agent_box/x",
            "conf/.git/x",
        ],
    )
    def test_what_may_not_be_handed_out_is_refused(self, root, airlock, entry):
        """Secrets, git's and the box's own files and everything outside of the checkout stay where they are (T151)."""
        write(root, {".agents/x": "x", "agent_box/x": "x", ".ENV": "x"})
        with pytest.raises(OperatorError, match="copy"):
            furnish(root, airlock.path, copy=[entry])

    @pytest.mark.parametrize("entry", ["link", "out/passwd"])
    def test_a_link_out_of_the_checkout_is_not_followed(self, root, airlock, entry):
        (root / "link").symlink_to("/etc/passwd")
        (root / "out").symlink_to("/etc")
        with pytest.raises(OperatorError, match=r"link|not a file to copy"):
            furnish(root, airlock.path, copy=[entry])

    def test_a_link_among_many_is_passed_over_and_said(self, root, airlock):
        (root / "z.local").symlink_to("/etc/passwd")
        given = furnish(root, airlock.path, copy=["*.local"])
        assert names(given) == {"one.local"}
        assert "z.local" in "".join(given.notes)

    def test_secrets_that_a_glob_or_a_folder_holds_are_passed_over_and_said(self, root, airlock):
        write(root, {"conf/.env": "SECRET=1\n"})
        given = furnish(root, airlock.path, copy=["conf", ".env*"])
        assert names(given) == {"conf/two.local", ".env.test"}
        assert "conf/.env" in given.notes[0]
        assert ".env, .env.local" in given.notes[1]

    def test_a_pipe_is_not_waited_for(self, root, airlock):
        os.mkfifo(root / "pipe")
        assert furnish(root, airlock.path, copy=["pipe"]).paths == ()

    def test_a_tracked_link_does_not_lead_the_copy_out_of_the_airlock(self, root, tmp_path):
        outside = tmp_path / "outside"
        outside.mkdir()
        (root / "away").symlink_to(outside)
        commit(root, {"b.txt": "b\n"})
        git(root, "add", "away")
        git(root, "commit", "-qm", "a link")
        airlock = place(root).open()
        (root / "away").unlink()
        write(root, {"away/file": "x\n"})
        with pytest.raises(OperatorError, match="through a link"):
            furnish(root, airlock.path, copy=["away/file"])
        assert list(outside.iterdir()) == []


class TestInclude:
    """``.worktreeinclude`` names untracked files by patterns."""

    @pytest.mark.parametrize(
        ("text", "copied"),
        [
            ("*.local\n", {"one.local", "conf/two.local"}),
            ("# a comment\n\n/one.local\n", {"one.local"}),
            ("*.local\n!one.local\n", {"conf/two.local"}),
            ("build/\n", {"build/out"}),
            ("loose.txt\r\n", {"loose.txt"}),
            ("a.txt\nlib/\n", set()),
            ("# nothing\n", set()),
        ],
    )
    def test_patterns_name_what_git_does_not_track(self, root, airlock, text, copied):
        assert names(furnish(root, airlock.path, include_text=text)) == copied

    def test_secrets_that_the_patterns_name_are_passed_over_and_said(self, root, airlock):
        given = furnish(root, airlock.path, include_text=".env*\n")
        assert names(given) == {".env.test"}
        assert ".env, .env.local" in "".join(given.notes)

    def test_the_box_s_own_files_and_other_repositories_are_no_files_to_copy(self, root, airlock):
        make_repo(root / "inner", {"x.local": "x\n"})
        write(root, {".agents/x.local": "x\n"})
        given = furnish(root, airlock.path, include_text="*.local\ninner\n.agents\n")
        assert {name for name in names(given) if name.startswith(("inner", ".agents", "agent_box"))} == set()


class TestLink:
    """Folders that are too large to copy are shared."""

    def test_a_folder_is_linked_and_the_operator_told(self, root, airlock):
        given = furnish(root, airlock.path, link=["node_modules"])
        assert (airlock.path / "node_modules").readlink() == root / "node_modules"
        assert "read-only" in given.notes[0]

    def test_what_is_not_there_is_said(self, root, airlock):
        assert "Nothing to link" in furnish(root, airlock.path, link=["absent"]).notes[0]

    @pytest.mark.parametrize("entry", ["a.txt", "lib", "/etc", "..", ".git", "away"])
    def test_only_an_untracked_folder_of_the_checkout_is_linked(self, root, airlock, entry):
        (root / "away").symlink_to("/etc")
        with pytest.raises(OperatorError, match="link"):
            furnish(root, airlock.path, link=[entry])


class TestRecord:
    """What was there before the agent is not the agent's work."""

    def test_what_is_left_as_it_was_is_not_in_the_patch(self, root, airlock):
        """Copies, links and what setup did stay out of the patch until the agent touches them."""
        given = furnish(root, airlock.path, copy=["loose.txt", "one.local"], link=["node_modules"])
        write(airlock.path, {"made/by/setup.txt": "s\n", "a.txt": "changed by setup\n", "lib/y.py": "y\n"})
        (airlock.path / "lib" / "x.py").unlink()
        given = given.record(airlock)
        assert export(airlock, given=given).files == 0
        assert export(airlock, given=given).patch == b""
        write(airlock.path, {"loose.txt": "agent\n", "lib/y.py": "agent\n", "new.txt": "n\n"})
        done = export(airlock, given=given)
        assert {each.path for each in airlock.room.changes(airlock.base, done.tree)} == {
            b"loose.txt",
            b"lib/y.py",
            b"new.txt",
        }
        assert airlock.room.apply(airlock.base, done.patch) == done.tree

    def test_what_setup_made_and_the_agent_removed_is_no_change(self, airlock, root):
        write(airlock.path, {"made.txt": "s\n"})
        Furnished().record(airlock)
        (airlock.path / "made.txt").unlink()
        assert export(airlock).files == 0

    def test_a_file_that_setup_turned_into_a_folder_comes_back(self, airlock, root):
        (airlock.path / "a.txt").unlink()
        write(airlock.path, {"a.txt/inside": "i\n"})
        given = Furnished().record(airlock)
        write(airlock.path, {"new.txt": "n\n"})
        done = export(airlock, given=given)
        assert {each.path for each in airlock.room.changes(airlock.base, done.tree)} == {b"new.txt"}

    def test_the_record_is_found_again_without_the_value(self, root, airlock):
        """A recovery that knows nothing of the start exports the same (S13)."""
        given = furnish(root, airlock.path, copy=["loose.txt"]).record(airlock)
        assert recall(airlock.room.path) == given
        assert export(airlock) == export(airlock, given=given)
        assert export(airlock).files == 0

    def test_without_a_record_everything_counts(self, root, airlock):
        given = furnish(root, airlock.path, copy=["loose.txt"])
        assert recall(airlock.room.path) is None
        assert export(airlock, given=given).files == 1

    def test_a_full_disk_is_said(self, root, airlock):
        (airlock.path / "conf").write_text("in the way of a folder")
        with pytest.raises(HostError, match="Cannot copy"):
            furnish(root, airlock.path, copy=["conf/two.local"])


@pytest.mark.parametrize(
    ("name", "secret"),
    [(".env", True), (".ENV", True), (".env.local", True), (".env.production", True), (".env.test", False),
     (".env.example", False), ("env", False), (".envrc", False), ("x.env", False)],
)  # fmt: skip
def test_files_with_secrets_are_known_by_name(name, secret):
    assert is_secret(name) is secret
