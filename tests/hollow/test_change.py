from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.change import Line, _added, _bodies, _named_files, _plain, _sizes, under_review
from hollow.gitread import GitReadError
from tests.support.surveys import commit, empty, run_git, shop, write

NUMBERS = ("one", "two", "three", "four")


@pytest.fixture
def repo(tmp_path):
    """Four commits, each of which adds a file of its name; the branch ``side`` adds another to the second."""
    made = empty(tmp_path / "r")
    for name in NUMBERS:
        commit(made, f"Add {name}", {f"{name}.py": f"{name} = 1\n"})
    run_git(made, "branch", "side.line/x-1", "HEAD~2")
    run_git(made, "tag", "v1.0", "HEAD~1")
    run_git(made, "checkout", "-q", "side.line/x-1")
    commit(made, "Add aside", {"aside.py": "aside = 1\n"})
    run_git(made, "checkout", "-q", "main")
    return made


def paths(repo, task):
    return [file.path for file in under_review(repo, task).files]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("HEAD~3..", ["four.py", "three.py", "two.py"]),
        ("review HEAD~3.. please", ["four.py", "three.py", "two.py"]),
        ("HEAD~2..HEAD~1", ["three.py"]),
        ("HEAD^^..HEAD^", ["three.py"]),
        ("HEAD~2...", ["four.py", "three.py"]),
        ("main...side.line/x-1", ["aside.py"]),
        ("side.line/x-1..main", ["aside.py", "four.py", "three.py"]),
        ("what changed in v1.0..main?", ["four.py"]),
        ("(v1.0..main)", ["four.py"]),
        ("`v1.0..main`", ["four.py"]),
        ("HEAD~1", ["three.py"]),
        ("HEAD^", ["three.py"]),
        ("HEAD~3", ["one.py"]),
        ("nothing..here, then v1.0..main", ["four.py"]),
        ("HEAD@{0}..main or v1.0..HEAD", []),
    ],
)
def test_a_range_or_a_commit_in_the_task_is_what_is_reviewed(repo, task, expected):
    write(repo, {"one.py": "changed = 1\n"})
    assert paths(repo, task) == expected


@pytest.mark.parametrize(
    "task",
    [
        "", "please review", "--output=x", "--output=x..HEAD", "look at --output=/tmp/x..", "-O..HEAD", "--foo..HEAD", "--end-of-options..HEAD", "--ext-diff", "..", "...", "....",
        "HEAD", "the head", "a..b", "1.0..2.0", "main", "src/../one.py", "../one.py", "./..", "one.py..two.py", "deadbeef", "0000000",
        "HEAD~99", "HEAD^9", "v9..", "HEAD:one.py..", "$(touch x)..HEAD", "wait ... what", "e.g. this...",
    ],
)  # fmt: skip
def test_what_names_no_revision_leaves_the_uncommitted_change(repo, task, tmp_path):
    before = sorted(path.name for path in tmp_path.rglob("*"))
    write(repo, {"one.py": "changed = 1\n"})
    assert under_review(repo, task).title == "the uncommitted change"
    assert sorted(path.name for path in tmp_path.rglob("*")) == before  # no word of a task made a file


@pytest.mark.parametrize("length", [7, 12, 40])
def test_a_commit_id_is_enough(repo, length):
    oid = run_git(repo, "rev-parse", "HEAD~2").decode().strip()
    change = under_review(repo, f"is {oid[:length]} right?")
    assert ([file.path for file in change.files], change.revision) == (["two.py"], oid)
    assert change.title == f"commit {oid[:8]} “Add two”"


def test_an_id_inside_a_word_or_too_short_is_none(repo):
    oid = run_git(repo, "rev-parse", "HEAD~2").decode().strip()
    for word in (oid[:6], f"x{oid[:10]}", f"{oid[:10]}x", f"a/{oid[:10]}"):
        assert "Add four" in under_review(repo, word).title


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="abHEAD0123456789~^.@{}/-= :\n\0", max_size=30))
def test_no_task_makes_the_choice_fail(shared, task):
    assert under_review(shared, task).title


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return shop(tmp_path_factory.mktemp("shared") / "r")


def test_outside_a_repository_it_is_said(tmp_path):
    with pytest.raises(GitReadError, match="git"):
        under_review(tmp_path, "HEAD~1..")


def test_a_mode_or_a_type_that_changed_is_named(repo):
    (repo / "one.py").chmod(0o755)
    (repo / "two.py").unlink()
    (repo / "two.py").symlink_to("one.py")
    found = {file.path: (file.status, file.added, file.removed) for file in under_review(repo, "").files}
    assert found == {"one.py": ("modified", 0, 0), "two.py": ("type changed", 1, 1)}


def test_the_places_and_the_lines_of_a_change_are_those_of_the_new_file(repo):
    text = "".join(f"line {number}\n" for number in range(1, 21))
    commit(repo, "long", {"long.txt": text})
    changed = text.replace("line 3\n", "").replace("line 10\n", "LINE 10\nand more\n") + "no end of line"
    write(repo, {"long.txt": changed})
    (file,) = under_review(repo, "").files
    assert file.hunks == (2, 9, 21)
    assert file.lines == (Line(9, "LINE 10"), Line(10, "and more"), Line(21, "no end of line"))
    assert (file.added, file.removed, file.binary) == (3, 2, False)


def test_a_file_emptied_or_deleted_has_no_lines_but_a_size(repo):
    write(repo, {"one.py": ""})
    (repo / "two.py").unlink()
    one, two = under_review(repo, "").files
    assert (one.status, one.added, one.removed, one.lines, one.hunks) == ("modified", 0, 1, (), (1,))
    assert (two.status, two.removed, two.lines) == ("deleted", 1, ())


def test_lines_that_look_like_a_diff_are_lines(repo):
    lines = ["diff --git a/x b/x", "+++ b/evil.py", "--- a/evil.py", "@@ -1 +1 @@", "+", "-"]
    write(repo, {"one.py": "".join(line + "\n" for line in lines)})
    (file,) = under_review(repo, "").files
    assert (file.path, [line.text for line in file.lines]) == ("one.py", lines)


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (b"b/a.py", "a.py"), (b"b/sp ace.py\t", "sp ace.py"), (b'"b/tab\\there.py"', "tab\there.py"), (b'"b/quo\\"te.py"', 'quo"te.py'),
        (b'"b/new\\nline.py"', "new\nline.py"), (b'"b/back\\\\slash.py"', "back\\slash.py"), (b'"b/\\303\\266.py"', "ö.py"),
        (b'"b/\\377.py"', os.fsdecode(b"\xff.py")), (b'"b/bell\\a.py"', "bell\a.py"), (b"b/b/a.py", "b/a.py"),
    ],
)  # fmt: skip
def test_a_name_that_git_quotes_is_read_as_it_is(row, name):
    assert _plain(row) == name


@pytest.mark.parametrize(
    ("listing", "rows"),
    [
        (b"", []),
        (b"M\0a.py\0", [("modified", "a.py", "a.py")]),
        (b"A\0a\0D\0b\0T\0c\0U\0d\0", [("added", "a", "a"), ("deleted", "b", "b"), ("type changed", "c", "c"), ("modified", "d", "d")]),
        (b"R087\0old\0new\0C100\0from\0copy\0", [("renamed", "old", "new"), ("added", "from", "copy")]),
    ],
)  # fmt: skip
def test_names_and_statuses_are_read(listing, rows):
    assert list(_named_files(listing)) == rows


@pytest.mark.parametrize(
    ("listing", "sizes"),
    [
        (b"", {}),
        (b"3\t1\ta.py\0", {"a.py": (3, 1)}),
        (b"-\t-\ta.bin\0", {"a.bin": (None, None)}),
        (b"0\t2\t\0old\0new\0001\t0\tx\ty\0", {"new": (0, 2), "x\ty": (1, 0)}),
    ],
)
def test_sizes_are_read(listing, sizes):
    assert _sizes(listing) == sizes


@settings(max_examples=100)
@given(st.binary(max_size=120), st.sampled_from([b"", b"\ndiff --git a/x b/x\n+++ b/x\n@@ -1 +1,2 @@\n+"]))
def test_no_diff_makes_the_reading_fail(text, before):
    for path, (lines, hunks) in _bodies(before + text):
        assert isinstance(path, str)
        assert all(line.number >= 0 for line in lines)
        assert all(hunk >= 1 for hunk in hunks)


def test_a_very_long_added_line_is_kept_in_part():
    lines, hunks = _added([b"@@ -0,0 +1 @@", b"+" + b"x" * 100_000])
    assert (len(lines), hunks) == (1, (1,))
    assert 1000 < len(lines[0].text) < 10_000
