"""The `verify:` commands see the result byte for byte, also with the tests as they were, and leave nothing behind."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from agents import git, verifying
from agents.cleanroom import CleanRoom
from agents.errors import HostError
from agents.verifying import Verified
from tests.support import gates, repos
from tests.support.gates import disk
from tests.support.needs import needs_bwrap

FILES = {"app.py": "x = 1\n", "tests/test_app.py": "old\n", "tests/test_gone.py": "gone\n", "run.sh": "#!/bin/sh\n"}


class Field:
    """A room with a change: the code, a test changed, a test removed, a test added."""

    def __init__(self, tmp_path, changes):
        root = repos.make_repo(tmp_path / "repo", FILES)
        self.before = repos.git(root, "rev-parse", "HEAD")
        (root / "app.py").write_bytes(b"x = 2\r\n")
        (root / "run.sh").chmod(0o755)
        changes(root)
        repos.git(root, "add", "--all")
        repos.git(root, "commit", "--quiet", "--message", "change")
        self.tree = repos.git(root, "rev-parse", "HEAD^{tree}")
        self.room = CleanRoom.make(tmp_path / "room.git", git.locate(root))
        self.folder = tmp_path / "verify" / "a-run"
        self.changes = self.room.changes(self.before, self.tree)

    def verify(self, run, commands=("make test",), **more):
        return verifying.verify(self.room, self.tree, self.changes, commands, self.folder, run, **more)


def changed_tests(root):
    (root / "tests/test_app.py").write_text("new\n")
    (root / "tests/test_gone.py").unlink()
    (root / "tests/test_more.py").write_text("more\n")


def code_only(_root):
    pass


def telling(*codes, seen=None):
    """A runner whose commands end with *codes* in turn, the last one again and again."""
    left = list(codes)

    def run(command, folder):
        if seen is not None:
            seen.append({name: content for name, (_, content) in disk(folder).items()})
        code = left.pop(0) if len(left) > 1 else left[0]
        return SimpleNamespace(command=command, exit_code=code, seconds=1.25, timed_out=code is None, tail="said\n")

    return run


def test_the_result_is_seen_as_it_is(tmp_path):
    seen, field = [], Field(tmp_path, code_only)
    found = field.verify(telling(0, seen=seen))
    assert [(each.tree, each.passed) for each in found] == [("result", True)]
    assert seen == [
        {
            "app.py": b"x = 2\r\n",
            "tests/test_app.py": b"old\n",
            "tests/test_gone.py": b"gone\n",
            "run.sh": b"#!/bin/sh\n",
        }
    ]


def test_touched_tests_are_tried_as_they_were_too(tmp_path):
    """An agent may have made a test agree with its mistake: changed ones are put back, new ones taken out."""
    seen, field = [], Field(tmp_path, changed_tests)
    found = field.verify(telling(0, 1, seen=seen))
    assert [(each.tree, each.passed) for each in found] == [("result", True), ("base tests", False)]
    assert seen[0]["tests/test_app.py"] == b"new\n"
    assert seen[1]["tests/test_app.py"] == b"old\n"
    assert seen[1]["tests/test_gone.py"] == b"gone\n"
    assert "tests/test_more.py" not in seen[1]
    assert seen[1]["app.py"] == b"x = 2\r\n"


def test_what_fails_is_not_tried_with_other_tests(tmp_path):
    found = Field(tmp_path, changed_tests).verify(telling(1))
    assert [each.tree for each in found] == ["result"]


def test_without_commands_no_tree_is_made(tmp_path):
    field = Field(tmp_path, changed_tests)
    assert field.verify(telling(0), commands=()) == ()
    assert not field.folder.exists()


def test_commands_share_one_tree_and_all_of_them_run(tmp_path):
    """Builds come before tests; the first failure does not hide the second."""
    field, left = Field(tmp_path, code_only), []

    def run(command, folder):
        left.append((command, (folder / "built").exists()))
        (folder / "built").write_text("x\n")
        return telling(1)(command, folder)

    assert len(field.verify(run, commands=("build", "test"))) == 2
    assert left == [("build", False), ("test", True)]


@pytest.mark.parametrize("how", ["passes", "fails", "raises"])
def test_the_tree_is_gone_whatever_happens(tmp_path, how):
    field = Field(tmp_path, code_only)

    def run(command, folder):
        (folder / "deep").mkdir()
        (folder / "deep/link").symlink_to(tmp_path)
        if how == "raises":
            raise HostError("no", "hint")
        return telling(0 if how == "passes" else 1)(command, folder)

    if how == "raises":
        with pytest.raises(HostError):
            field.verify(run)
    else:
        field.verify(run)
    assert not field.folder.exists()
    assert (tmp_path / "repo").exists()


def test_what_an_earlier_one_left_is_not_seen(tmp_path):
    field, seen = Field(tmp_path, code_only), []
    field.folder.mkdir(parents=True)
    (field.folder / "left.txt").write_text("left\n")
    field.verify(telling(0, seen=seen))
    assert "left.txt" not in seen[0]


def test_what_no_commit_holds_is_laid_beside_it(tmp_path):
    field, seen = Field(tmp_path, changed_tests), []
    field.verify(telling(0, seen=seen), furnish=lambda folder: (folder / ".env.test").write_text("A=1\n"))
    assert [each[".env.test"] for each in seen] == [b"A=1\n"] * 2


@pytest.mark.parametrize(
    ("code", "timed_out", "passed", "shown"),
    [(0, False, True, "test (exit code 0, 2.0 s)"), (1, False, False, "test (exit code 1, 2.0 s)"),
     (None, True, False, "test (ran out of time, 2.0 s)"), (0, True, False, "test (ran out of time, 2.0 s)"),
     (None, False, False, "test (exit code None, 2.0 s)"), (-9, False, False, "test (exit code -9, 2.0 s)")],
)  # fmt: skip
def test_how_a_command_ended(code, timed_out, passed, shown):
    made = Verified(command="test", tree="result", exit_code=code, seconds=2.0, timed_out=timed_out, tail="")
    assert (made.passed, str(made)) == (passed, shown)


def test_a_failure_on_the_result_stops_and_one_with_old_tests_is_shown(tmp_path):
    found = Field(tmp_path, changed_tests).verify(telling(0, 1))
    assert verifying.failures(found) == ()
    assert [flag.kind for flag in verifying.flags(found)] == ["base tests"]
    failed = Field(tmp_path / "again", changed_tests).verify(telling(None))
    assert len(verifying.failures(failed)) == 1
    flag = verifying.flags(failed)[0]
    assert (flag.kind, flag.paths) == ("verify", ("make test (ran out of time, 1.2 s)",))


def test_last_words_are_kept_harmless(tmp_path):
    """What a command prints is the agent's text: no secret, no control character, no end of it."""
    secret = "ghp_" + "a1B2" * 9
    tail = "x" * 9000 + f"\n\x1b[2J token {secret}\nlast line\n"

    def run(command, _folder):
        return SimpleNamespace(command=command, exit_code=1, seconds=0.0, timed_out=False, tail=tail)

    found = Field(tmp_path, code_only).verify(run)[0]
    assert len(found.tail) <= 4000
    assert secret not in found.tail
    assert "\x1b" not in found.tail
    assert found.tail.endswith("last line\n")


def test_the_record_says_what_ran_on_what(tmp_path):
    found = Field(tmp_path, changed_tests).verify(telling(0, 1))
    verifying.record(tmp_path / "verify.json", "a" * 40, found)
    told = json.loads((tmp_path / "verify.json").read_text())
    assert told["tree"] == "a" * 40
    assert [(each["tree"], each["passed"], each["seconds"]) for each in told["commands"]] == [
        ("result", True, 1.25), ("base tests", False, 1.25),
    ]  # fmt: skip


@needs_bwrap
def test_in_the_sandbox_a_command_sees_its_tree_and_not_the_checkout(tmp_path):
    """M18: verify commands run the agent's code."""
    context = gates.make_context(
        tmp_path,
        verify=[
            "test -f src/app.py && test -e node_modules/x",
            "! cat ../../../README.md && ! cat ../../../.agents/INDEX.jsonl",
        ],
        link=["node_modules"],
    )
    (context.layout.root / "node_modules").mkdir()
    (context.layout.root / "node_modules/x").write_text("x\n")
    with (context.layout.root / ".git/info/exclude").open("a") as file:
        file.write("node_modules\n")
    name = gates.reviewed(context, lambda root: (root / "src/app.py").write_text("print('better')\n"))
    state = gates.approved(context, name)
    told = json.loads((context.store.box(name).path / "verify.json").read_text())
    assert [each["passed"] for each in told["commands"]] == [True, True]
    assert gates.tree_at(context.layout.root) == state.merge["tree"]
    assert gates.status(context.layout.root) == []
