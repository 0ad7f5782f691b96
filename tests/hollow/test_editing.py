from __future__ import annotations

import os
import resource
import stat
import threading

import pytest

from hollow.confine import Confinement, Refusal
from hollow.placing import MAX_FILE, spot
from hollow.tools import Toolbox, tools_of
from tests.support.repos import git, make_repo

FILES = {"src/app.py": "def handle():\n    return 1\n", "dos.txt": b"one\r\ntwo\r\n", "bare.txt": "no end", "tool.sh": "#!/bin/sh\necho a\n"}  # fmt: skip


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "repo", FILES)


@pytest.fixture
def box(repo):
    return Toolbox(repo, "fix")


def edit(box, path, old, new, **more):
    return box.call("EditFile", {"path": path, "old_text": old, "new_text": new, **more})


def put(box, path, content):
    return box.call("WriteFile", {"path": path, "content": content})


# --- which tools there are --------------------------------------------------------------------------------------------


def test_the_run_type_alone_decides_whether_anything_can_be_edited():
    """T147: no reading run has a tool that writes, wherever commands could be run."""
    for run_type in ("scout", "plan", "review", "benchmark"):
        names = {tool.name for tool in tools_of(run_type, commands=True)}
        assert not names & {"EditFile", "WriteFile", "Shell"}
    assert [t.name for t in tools_of("fix")][-3:] == ["GitDiff", "EditFile", "WriteFile"]
    assert [t.name for t in tools_of("fix", commands=True)][-1] == "Shell"


def test_a_reading_run_cannot_call_them_by_name_either(repo):
    """T147: what is not offered does not exist."""
    outcome = edit(Toolbox(repo, "scout"), "src/app.py", "1", "2")
    assert outcome.is_error
    assert "There is no tool" in outcome.content
    assert (repo / "src/app.py").read_text() == FILES["src/app.py"]


# --- EditFile ---------------------------------------------------------------------------------------------------------


def test_an_edit_changes_what_was_meant_and_shows_it(box, repo):
    outcome = edit(box, "src/app.py", "return 1", "return 2")
    assert (outcome.is_error, outcome.changed) == (False, True)
    assert outcome.content == "src/app.py changed at line 2.\n     1  def handle():\n     2      return 2\n     3  "
    assert (repo / "src/app.py").read_text() == "def handle():\n    return 2\n"


@pytest.mark.parametrize(
    ("path", "old", "new", "result"),
    [
        ("dos.txt", "one\ntwo", "1\n2", b"1\r\n2\r\n"),
        ("bare.txt", "no", "an", b"an end"),
        ("src/app.py", "    return 1\n", "", b"def handle():\n"),
        ("tool.sh", "a", "None", b"#!/bin/sh\necho None\n"),
    ],
)
def test_bytes_line_ends_and_a_missing_last_line_end_are_kept(box, repo, path, old, new, result):
    assert not edit(box, path, old, new).is_error
    assert (repo / path).read_bytes() == result


@pytest.mark.parametrize("mode", [0o755, 0o640, 0o444])
def test_the_mode_of_a_file_is_kept(box, repo, mode):
    (repo / "tool.sh").chmod(mode)
    assert not edit(box, "tool.sh", "a", "b").is_error
    assert not put(box, "tool.sh", "#!/bin/sh\n").is_error
    assert stat.S_IMODE((repo / "tool.sh").stat().st_mode) == mode


def test_rights_that_a_file_lends_are_not_handed_on(box, repo):
    (repo / "tool.sh").chmod(0o4755)
    assert not edit(box, "tool.sh", "a", "b").is_error
    assert stat.S_IMODE((repo / "tool.sh").stat().st_mode) == 0o755


def test_all_places_are_changed_if_asked(box, repo):
    (repo / "many.txt").write_text("a\nb\na\n")
    assert "2 times" in edit(box, "many.txt", "a", "x").content
    outcome = edit(box, "many.txt", "a", "x", replace_all="true")
    assert outcome.content.startswith("many.txt changed at 2 places: 1, 3.")
    assert (repo / "many.txt").read_text() == "x\nb\nx\n"


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("new.bin", b"a\0a", "binary"),
        ("latin.txt", b"caf\xe9 a", "not valid UTF-8"),
        ("big.txt", b"a" * (MAX_FILE + 1), "larger than"),
    ],
)
def test_what_cannot_be_edited_without_damage_is_refused_with_a_sentence(box, repo, path, content, words):
    (repo / path).write_bytes(content)
    for outcome in (edit(box, path, "a", "b"), put(box, path, "text")):
        assert (outcome.is_error, outcome.changed) == (True, False)
        assert words in outcome.content
    assert (repo / path).read_bytes() == content


def test_an_edit_may_not_grow_a_file_beyond_measure(box, repo):
    (repo / "a.txt").write_text("x" * 1000)
    assert "would be larger" in edit(box, "a.txt", "x", "y" * 5000, replace_all=True).content
    assert "would be larger" in put(box, "deep/a.txt", "y" * (MAX_FILE + 1)).content
    assert (repo / "a.txt").read_text() == "x" * 1000
    assert not (repo / "deep/a.txt").exists()


def test_a_file_that_is_not_there_is_named(box):
    assert "nowhere.py does not exist; use WriteFile" in edit(box, "nowhere.py", "a", "b").content


# --- WriteFile --------------------------------------------------------------------------------------------------------


def test_a_new_file_comes_with_its_folders_and_a_plain_mode(box, repo):
    outcome = put(box, "docs/a/new.md", "# New\n")
    assert outcome.content == "docs/a/new.md created: 1 lines, 6 bytes."
    assert (repo / "docs/a/new.md").read_bytes() == b"# New\n"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((repo / "docs/a/new.md").stat().st_mode) == 0o666 & ~umask
    assert "docs/a/new.md" in git(repo, "status", "--porcelain", "-uall")


@pytest.mark.parametrize("content", ["", "null", "None", "no line end", "a\r\nb\n", "é ☃ \u2028\n"])
def test_a_new_file_holds_exactly_what_was_said(box, repo, content):
    assert not put(box, "new.txt", content).is_error
    assert (repo / "new.txt").read_bytes() == content.encode()


def test_a_file_with_cr_lf_keeps_it_when_it_is_written_anew(box, repo):
    assert put(box, "dos.txt", "a\nb\n").content.endswith("Its line ends stay CR LF.")
    assert (repo / "dos.txt").read_bytes() == b"a\r\nb\r\n"


def test_other_spellings_of_the_arguments_are_understood(box, repo):
    """T159: what models trained on other tools say."""
    asked = {"file_path": "src/app.py", "old_string": "return 1", "new_string": "return 3"}
    assert not box.call("edit_file", asked).is_error
    assert not box.call("WriteFile", {"filename": "a.txt", "text": "a"}).is_error
    assert "return 3" in (repo / "src/app.py").read_text()
    outcome = box.call("EditFile", {"path": "src/app.py"})
    assert outcome.content == "EditFile needs old_text (text). The form is EditFile(path, old_text, new_text, replace_all=False)."  # fmt: skip


# --- the border -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "../out.txt", "/etc/passwd", "a/../../out.txt", ".git/config", ".GIT/hooks/pre-commit", "sub/.git/config", ".agents/x",
        ".Agents/x", "agent_box/x", ".claude/commands/x.md", ".Claude/settings.json", ".env", "src/.env.local", ".", "src", "",
        "nul\0name", "key.pem", "src/app.py/x", "out-link.txt", "out-folder/x.txt", "git-link/config", "claude-link/x.md", "id_rsa",
        "dangling",
    ],
)  # fmt: skip
def test_nothing_outside_or_closed_is_written(box, repo, tmp_path, path):
    """T147: whatever the path is spelled like and wherever a link leads; no byte changes and no folder appears."""
    (tmp_path / "out.txt").write_text("outside")
    (tmp_path / "out").mkdir()
    (repo / ".claude").mkdir()
    links = {"out-link.txt": tmp_path / "out.txt", "out-folder": tmp_path / "out", "git-link": ".git", "claude-link": ".claude", "dangling": tmp_path / "new"}  # fmt: skip
    for name, goal in links.items():
        (repo / name).symlink_to(goal)
    before = world(tmp_path)
    for outcome in (put(box, path, "evil"), edit(box, path, "outside", "evil")):
        assert outcome.is_error
        assert outcome.content
        assert "Traceback" not in outcome.content
    assert world(tmp_path) == before


def world(folder):
    """Every path below *folder* with its bytes."""
    return {p: p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def test_a_link_inside_leads_to_the_file_it_means_and_stays_a_link(box, repo):
    (repo / "alias.py").symlink_to("src/app.py")
    assert edit(box, "alias.py", "return 1", "return 4").content.startswith("src/app.py changed")
    assert (repo / "alias.py").is_symlink()
    assert "return 4" in (repo / "src/app.py").read_text()


def test_a_hard_link_to_the_outside_is_cut_not_written_through(box, repo, tmp_path):
    (tmp_path / "out.txt").write_text("outside")
    os.link(tmp_path / "out.txt", repo / "inside.txt")
    assert not edit(box, "inside.txt", "outside", "mine").is_error
    assert (tmp_path / "out.txt").read_text() == "outside"


def test_a_special_file_is_no_file(box, repo):
    os.mkfifo(repo / "pipe")
    assert "regular files" in put(box, "pipe", "x").content


def test_a_secret_that_is_tracked_is_no_secret(box, repo):
    (repo / "ca.pem").write_text("public\n")
    git(repo, "add", "--force", "ca.pem")
    assert not edit(box, "ca.pem", "public", "known").is_error


def test_a_folder_that_becomes_a_link_on_the_way_is_not_followed(repo, tmp_path):
    """T147: the way is walked by descriptor, so a link planted after the judgement is refused, not followed."""
    border = Confinement(repo, lambda _: False)
    (tmp_path / "out").mkdir()
    (repo / "late").symlink_to(tmp_path / "out")
    with pytest.raises(Refusal, match="is no folder"):
        border.walk(("late",), "late/x", make=True)
    with spot(border, "src/new.py", make=True) as file:
        (repo / "src").rename(repo / "moved")
        (repo / "src").symlink_to(tmp_path / "out")
        file.replace(b"x")
    assert list((tmp_path / "out").iterdir()) == []
    assert (repo / "moved/new.py").read_bytes() == b"x"


# --- whole or not at all ----------------------------------------------------------------------------------------------


def test_a_reader_sees_the_old_file_or_the_new_one(box, repo):
    """T157: never half of it."""
    whole = {b"a" * 200_000, b"b" * 200_000}
    (repo / "big.txt").write_bytes(b"a" * 200_000)
    over, seen = threading.Event(), set()

    def read():
        while not over.is_set():
            seen.add((repo / "big.txt").read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for letter in "ba" * 20:
            assert not put(box, "big.txt", letter * 200_000).is_error
    finally:
        over.set()
        reader.join(30)
    assert seen <= whole


def test_a_disk_that_refuses_leaves_the_old_file_and_no_debris(box, repo):
    """T157: the limit on file sizes stands in for a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    files = {p.name for p in (repo / "src").iterdir()}
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        outcome = put(box, "src/app.py", "x" * 300_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (outcome.is_error, outcome.content) == (True, "WriteFile failed: File too large.")
    assert (repo / "src/app.py").read_text() == FILES["src/app.py"]
    assert {p.name for p in (repo / "src").iterdir()} == files
