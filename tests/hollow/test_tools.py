from __future__ import annotations

import inspect
import os
import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hollow.confine import Refusal
from hollow.gitenv import environment
from hollow.toolbox import git as door
from hollow.toolbox import history, reading, searching
from hollow.toolbox.manifest import Tool, bind, describe, schema
from hollow.toolbox.workspace import MAX_CHARS, cut
from hollow.tools import Toolbox, tools_of
from tests.hollow.canaries import plant
from tests.support.repos import commit, git, make_repo, write

FILES = {
    "src/app.py": "import os\n\ndef handle(request):\n    return retry(request)\n",
    "src/web/page.ts": "export const retry = 3\n",
    "docs/notes.md": "How to retry.\n",
    ".gitignore": "build/\n*.pem\n",
}


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "repo", FILES)


@pytest.fixture
def call(repo):
    box = Toolbox(repo, "review")

    def run(name, /, **arguments):
        return box.call(name, arguments)

    return run


def refused(outcome) -> str:
    assert outcome.is_error
    assert outcome.content.endswith(".")
    assert "Traceback" not in outcome.content
    return outcome.content


# --- the manifest -----------------------------------------------------------------------------------------------------


def test_the_tools_of_a_tier_are_those_of_the_design():
    """T147: read-only runs have read-only tools; a review has GitDiff too."""
    assert [t.name for t in tools_of("scout")] == ["Grep", "Ls", "ReadFile", "GitLog"]
    assert [t.name for t in tools_of("review")] == ["Grep", "Ls", "ReadFile", "GitLog", "GitDiff"]
    assert tools_of("plan") == tools_of("benchmark") == tools_of("scout")


@pytest.mark.parametrize("tool", tools_of("review"), ids=lambda t: t.name)
def test_the_schema_says_what_the_signature_says(tool):
    given_ = list(inspect.signature(tool.function).parameters.values())[1:]
    function = schema(tool)["function"]
    properties = function["parameters"]["properties"]
    assert list(properties) == [p.name for p in given_]
    assert function["parameters"]["required"] == [p.name for p in given_ if p.default is p.empty]
    kinds = {"str": "string", "int": "integer", "bool": "boolean"}
    assert [p["type"] for p in properties.values()] == [kinds[p.annotation.removesuffix(" | None")] for p in given_]
    assert function["description"]
    assert all(p["description"] for p in properties.values())
    assert tool.form.startswith(f"{tool.name}(")


GREP = describe(searching.grep)


@pytest.mark.parametrize(
    ("arguments", "bound"),
    [
        (
            {"pattern": "x", "max_results": "5", "ignore_case": "true"},
            {"pattern": "x", "max_results": 5, "ignore_case": True},
        ),
        (
            {"pattern": "x", "max_results": 5.0, "ignore_case": 0},
            {"pattern": "x", "max_results": 5, "ignore_case": False},
        ),
        ({"pattern": "x", "glob": None, "path": "null", "max_results": ""}, {"pattern": "x"}),
        ({"Query": "x", "file-path": "src"}, {"pattern": "x", "path": "src"}),
        ({"regex": "a", "pattern": "b"}, {"pattern": "b"}),
        ({"pattern": ["x"], "maxResults": 3}, {"pattern": "x", "max_results": 3}),
        ({"pattern": 404}, {"pattern": "404"}),
        ('{"pattern": "x"}', {"pattern": "x"}),
    ],
)
def test_arguments_of_a_wrong_type_are_understood_where_they_can_be(arguments, bound):
    """T159: strings for numbers, nulls, lists, other spellings."""
    assert bind(GREP, arguments) == (bound, "")


@pytest.mark.parametrize(
    "arguments",
    [{}, None, [], 7, "no json", {"pattern": {"a": 1}}, {"pattern": "x", "max_results": "many"}, {"pattern": "x", "ignore_case": "perhaps"},
     {"pattern": "x", "max_results": 1e400}],
)  # fmt: skip
def test_arguments_that_mean_nothing_are_answered_with_the_right_form(call, repo, arguments):
    """T159: a sentence naming the form, never an exception."""
    assert "Grep(pattern, path='.'" in refused(Toolbox(repo, "scout").call("Grep", arguments))


def test_unknown_arguments_are_ignored_aloud(call):
    outcome = call("Ls", path="docs", colour="red")
    assert not outcome.is_error
    assert outcome.content.startswith("notes.md")
    assert "Unknown argument ignored: colour" in outcome.content


def test_an_unknown_tool_is_answered_with_those_that_exist(call):
    assert "Grep, Ls, ReadFile, GitLog, GitDiff" in refused(call("Shell", command="ls"))
    assert call("read_file", path="docs/notes.md").content == call("ReadFile", path="docs/notes.md").content
    assert call("functions.read-file", path="docs/notes.md").content == call("ReadFile", path="docs/notes.md").content


WILD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.lists(st.text(max_size=3), max_size=2)
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["Ls", "ReadFile"]),
    arguments=st.dictionaries(st.sampled_from(["path", "offset", "limit", "x"]), WILD),
)
def test_no_argument_raises(repo, name, arguments):
    """T159: whatever a model gives, it is answered."""
    assert Toolbox(repo, "scout").call(name, arguments).content


# --- Grep -------------------------------------------------------------------------------------------------------------


def test_grep_finds_tracked_and_new_files_and_names_path_and_line(call, repo):
    write(repo, {"new.txt": "retry again\n", "build/out.txt": "retry ignored\n"})
    assert call("Grep", pattern=r"\bretry\b").content.splitlines() == [
        "docs/notes.md:1:How to retry.",
        "new.txt:1:retry again",
        "src/app.py:4:    return retry(request)",
        "src/web/page.ts:1:export const retry = 3",
    ]


def test_grep_is_narrowed_by_path_glob_and_case(call):
    def paths(**arguments):
        found = call("Grep", **{"pattern": "retry", **arguments}).content
        return [line.split(":")[0] for line in found.splitlines()]

    assert paths(path="src") == ["src/app.py", "src/web/page.ts"]
    assert paths(path="src/app.py", glob="*.ts") == ["src/app.py"]
    assert paths(glob="*.{py,md}") == ["docs/notes.md", "src/app.py"]
    assert paths(path="src", glob="web/*.ts") == ["src/web/page.ts"]
    assert paths(glob="./src/**") == ["src/app.py", "src/web/page.ts"]
    assert paths(pattern="RETRY", ignore_case=True, path="docs") == ["docs/notes.md"]
    assert call("Grep", pattern="RETRY").content == "No matches."


def test_grep_takes_a_pattern_that_is_no_expression_literally(call):
    found = call("Grep", pattern="def handle(")
    assert not found.is_error
    assert "src/app.py:3:def handle(request):" in found.content
    assert "searched for literally" in found.content


@pytest.mark.parametrize("pattern", ["--output=x", "-e", "-O/bin/sh", "--no-index"])
def test_a_pattern_is_never_an_option(call, repo, pattern):
    """T147: words of the model do not become options of git."""
    assert call("Grep", pattern=pattern).content == "No matches."
    assert git(repo, "status", "--porcelain") == ""


def test_grep_says_when_it_shows_only_some(call, repo):
    write(repo, {"many.txt": "needle\n" * 100})
    found = call("Grep", pattern="needle", max_results=3).content.splitlines()
    assert len(found) == 4
    assert found[-1].startswith("[Only the first 3 matches")


def test_grep_cuts_long_lines_around_the_match(call, repo):
    write(repo, {"min.js": "a" * 5000 + "NEEDLE" + "b" * 5000})
    found = call("Grep", pattern="NEEDLE").content
    assert "NEEDLE" in found
    assert len(found) < 400
    assert found.count("…") == 2


def test_grep_never_shows_a_closed_file(call, repo, tmp_path):
    """T151: secrets stay closed whatever the way to them."""
    write(
        repo,
        {
            ".env": "TOKEN=needle\n",
            ".env.test": "TOKEN=needle\n",
            "agent_box/trees/x/a.py": "needle\n",
            ".agents/y": "needle\n",
        },
    )
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "app.py").write_text("needle\n")
    commit(repo, {"tls/key.pem": "needle\n", "old/app.py": "nothing\n"})
    (repo / "old" / "app.py").unlink()
    (repo / "old").rmdir()
    (repo / "old").symlink_to(tmp_path / "away")
    write(repo, {"untracked.key": "needle\n"})
    found = call("Grep", pattern="needle").content
    assert found.splitlines() == [".env.test:1:TOKEN=needle", "tls/key.pem:1:needle"]


def test_grep_survives_bytes_that_are_no_text(call, repo):
    write(repo, {"latin.txt": b"caf\xe9 needle\n", "blob.bin": b"\0needle\n", "crlf.txt": b"needle\r\n"})
    (repo / os.fsdecode(b"odd\xff.txt")).write_bytes(b"needle\n")
    assert call("Grep", pattern="needle").content.splitlines() == [
        "crlf.txt:1:needle", "latin.txt:1:caf\ufffd needle", "odd\ufffd.txt:1:needle",
    ]  # fmt: skip


def test_a_catastrophic_pattern_ends(call, repo):
    write(repo, {"a.txt": "a" * 60 + "b\n"})
    started = time.monotonic()
    assert "backtracking" in refused(call("Grep", pattern="(a+)+$"))
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("pattern", ["", "x" * 1001, "a\0b"])
def test_an_impossible_pattern_is_refused(call, pattern):
    refused(call("Grep", pattern=pattern))


def test_too_many_braces_are_refused(call):
    assert "alternatives" in refused(call("Grep", pattern="x", glob="{a,b}" * 9))


# --- Ls and ReadFile --------------------------------------------------------------------------------------------------


def test_ls_lists_folders_first_and_hides_what_is_closed(call, repo):
    write(repo, {".env": "x", "a\nb.txt": "x", "zebra.txt": "12345"})
    (repo / "link").symlink_to("src")
    os.mkfifo(repo / "pipe")
    assert call("Ls").content.splitlines() == [
        "docs/", "src/", ".gitignore (13 bytes)", "a\\x0ab.txt (1 bytes)", "link (symbolic link)",
        "pipe (special file)", "zebra.txt (5 bytes)",
    ]  # fmt: skip
    assert "use ReadFile" in refused(call("Ls", path="zebra.txt"))
    assert "leads out" in refused(call("Ls", path=".."))


def test_ls_says_when_a_folder_has_more_entries_than_it_shows(call, repo):
    write(repo, {f"big/{n:04}.txt": "" for n in range(reading.MAX_ENTRIES + 3)})
    lines = call("Ls", path="big").content.splitlines()
    assert len(lines) == reading.MAX_ENTRIES + 1
    assert lines[-1].startswith("[3 more entries")


def test_read_file_numbers_lines_and_says_how_to_go_on(call, repo):
    write(repo, {"long.txt": "".join(f"line {n}\n" for n in range(1, 1001))})
    first = call("ReadFile", path="long.txt", limit=2).content
    assert first == "     1  line 1\n     2  line 2\n[Lines 1 to 2 are shown; for more call ReadFile with offset=3.]"
    assert call("ReadFile", path="long.txt", offset=999).content == "   999  line 999\n  1000  line 1000"
    assert call("ReadFile", path="long.txt", offset=-5, limit=0).content.startswith("     1  line 1\n[Lines 1 to 1")
    assert call("ReadFile", path="long.txt", offset=1001).content == "long.txt has fewer than 1001 lines."


def test_following_the_marks_reads_a_file_whole(call, repo):
    text = [f"{n} {'x' * 90}" for n in range(1500)]
    write(repo, {"long.txt": "\n".join(text)})
    seen, offset = [], 1
    while offset:
        lines = call("ReadFile", path="long.txt", offset=offset, limit=2000).content.splitlines()
        more = lines.pop() if lines[-1].startswith("[") else ""
        seen += [line[8:] for line in lines]
        offset = int(more.split("offset=")[1].rstrip(".]")) if more else 0
    assert seen == text


def test_read_file_names_what_it_cannot_show(call, repo):
    write(repo, {"blob.bin": b"\x00\x01", "empty": "", "latin.txt": b"caf\xe9"})
    assert (
        call("ReadFile", path="blob.bin").content == "blob.bin is a binary file of 2 bytes; its content is not shown."
    )
    assert call("ReadFile", path="empty").content == "empty is empty."
    assert call("ReadFile", path="latin.txt").content == "     1  caf\ufffd"
    assert "is a folder" in refused(call("ReadFile", path="src"))
    assert "closed to agents" in refused(call("ReadFile", path=".git/HEAD"))


def test_a_huge_line_is_cut_and_the_next_one_is_still_read(call, repo):
    write(repo, {"min.js": b"x" * 3_000_000 + b"\nnext\n"})
    lines = call("ReadFile", path="min.js").content.splitlines()
    assert lines[0].endswith("[line cut]")
    assert len(lines[0]) < 2100
    assert lines[1] == "     2  next"


def test_a_file_that_never_ends_is_given_up(call, repo):
    with (repo / "sparse.txt").open("wb") as file:
        file.write(b"start\n" * 2000)
        file.truncate(1 << 40)  # a terabyte of zeros that takes no room
    started = time.monotonic()
    assert "cannot be read" in call("ReadFile", path="sparse.txt", offset=5000).content
    assert time.monotonic() - started < 5


# --- GitLog and GitDiff -----------------------------------------------------------------------------------------------


def test_git_log_is_newest_first_and_follows_a_path(call, repo):
    commit(repo, {"docs/notes.md": "More.\n"}, "Explain retries")
    commit(repo, {"src/app.py": "pass\n"}, "Drop handler")
    (repo / "docs" / "notes.md").unlink()
    subjects = [line.split("  ")[-1] for line in call("GitLog").content.splitlines()]
    assert subjects == ["Drop handler", "Explain retries", "first"]
    assert "Ada" in call("GitLog").content
    assert [line.split("  ")[-1] for line in call("GitLog", path="docs/notes.md", limit="1").content.splitlines()] == [
        "Explain retries", "[The latest 1 are shown; raise limit for more.]",
    ]  # fmt: skip
    assert call("GitLog", path="never.txt").content == "No commit touched never.txt."
    assert "closed" in refused(call("GitLog", path=".env"))


def test_a_repository_without_a_commit_has_answers_too(tmp_path):
    box = Toolbox(make_repo(tmp_path / "new"), "review")
    assert box.call("GitLog", {}).content == "The repository has no commit yet."
    assert box.call("GitDiff", {}).content == "No changes."
    assert box.call("Grep", {"pattern": "x"}).content == "No matches."


def test_outside_a_repository_the_tools_say_so(tmp_path):
    box = Toolbox(tmp_path, "review")
    assert "not a git repository" in refused(box.call("Grep", {"pattern": "x"}))
    refused(box.call("GitDiff", {"revision": "HEAD"}))


def test_git_diff_shows_work_in_progress_a_commit_or_a_range(call, repo):
    second = commit(repo, {"docs/notes.md": "Second.\n"}, "Second thoughts")
    write(repo, {"docs/notes.md": "Third.\n", "new.py": "x\n"})
    now = call("GitDiff").content
    assert "-Second.\n+Third." in now
    assert "[Untracked files, not in the diff: new.py.]" in now
    one = call("GitDiff", revision=second[:8]).content
    assert "Second thoughts" in one
    assert "+Second." in one
    assert "new.py" not in one
    assert "+Second." in call("GitDiff", revision="HEAD~1..").content
    assert "+Second." in call("GitDiff", revision="main~1...main", path="docs").content
    assert call("GitDiff", revision="HEAD~1..HEAD", path="src").content == "No changes."


@pytest.mark.parametrize(
    "revision",
    [
        "--output=pwned",
        "-O",
        "HEAD:.env",
        ":/first",
        "HEAD --ext-diff",
        "a..--output=pwned",
        "nowhere",
        "$(id)",
        "^HEAD",
    ],
)
def test_a_revision_is_never_an_option_nor_a_file(call, repo, revision):
    """T147: only what names a commit reaches git, and as its id."""
    refused(call("GitDiff", revision=revision))
    assert not (repo / "pwned").exists()


def test_git_diff_leaves_closed_files_out_and_says_so(call, repo):
    """T151: a committed .env is not shown either, nor under its new name's rename header."""
    commit(repo, {".env": "TOKEN=hunter2\n" * 20, "a.txt": "x\n"}, "oops")
    assert "hunter2" not in (found := call("GitDiff", revision="HEAD").content)
    assert "a.txt" in found
    assert "[Closed to agents, not shown: 1 file(s).]" in found
    git(repo, "mv", ".env", ".env.old")
    assert "hunter2" not in call("GitDiff").content


def test_a_large_diff_is_cut_and_says_how_to_see_the_rest(call, repo):
    write(repo, {"src/app.py": "line\n" * 20_000})
    found = call("GitDiff").content
    assert len(found) < MAX_CHARS + 300
    assert "Give a path to see one file." in found
    assert found.startswith(" src/app.py")


def test_no_program_of_the_repository_is_started(call, repo, tmp_path):
    """T147: external diff, textconv, filter, fsmonitor, pager and hooks that the repository plants stay silent."""
    mark = plant(repo, tmp_path)
    write(repo, {"src/app.py": "retry changed\n", "src/web/page.ts": "y\n"})
    for tool, arguments in (
        ("Grep", {"pattern": "retry"}),
        ("GitLog", {}),
        ("GitDiff", {}),
        ("GitDiff", {"revision": "HEAD"}),
    ):
        assert not call(tool, **arguments).is_error
    assert "+retry changed" in call("GitDiff").content
    assert not mark.exists()


def test_variables_that_redirect_git_do_not_reach_it():
    """T151: the environment of git is built from nothing."""
    numbered = re.compile(r"GIT_CONFIG_(KEY|VALUE)_\d+")
    assert {name for name in environment({}) if not numbered.fullmatch(name)} == {
        "PATH", "HOME", "LC_ALL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT",
        "GIT_NO_LAZY_FETCH", "GIT_ALLOW_PROTOCOL", "GIT_CONFIG_COUNT",
    }  # fmt: skip


def test_git_is_stopped_when_its_time_is_up(repo):
    """T158: a bound on the wall clock."""
    os.mkfifo(repo / "pipe")
    started = time.monotonic()
    found = door.run(repo, ["hash-object", "--no-filters", "pipe"], timeout=0.2)  # waits for a writer for ever
    assert found.late
    assert time.monotonic() - started < 5


def test_a_part_of_a_larger_repository_is_a_border_too(repo):
    """T147: with src/ as the repository, nothing beside it is seen."""
    commit(repo, {"src/app.py": "retry here\n", "docs/notes.md": "retry there\n"}, "both")
    box = Toolbox(repo / "src", "review")
    assert box.call("Grep", {"pattern": "retry", "glob": "*.py"}).content == "app.py:1:retry here"
    assert "docs" not in box.call("Grep", {"pattern": "retry"}).content
    diff = box.call("GitDiff", {"revision": "HEAD"}).content
    assert "+retry here" in diff
    assert "there" not in diff


def test_more_matches_than_are_read_are_owned_up_to(call, repo):
    write(repo, {"huge.txt": ("needle" + "x" * 1_000_000 + "\n") * 6})
    found = call("Grep", pattern="needle").content
    assert len(found) < 3000
    assert "were not looked through" in found


def test_a_git_that_cannot_start_is_a_sentence(tmp_path):
    with pytest.raises(Refusal, match="git cannot be started"):
        door.run(tmp_path / "nowhere", ["status"])
    assert not door.tracks(tmp_path / "nowhere", "x")


@pytest.mark.parametrize("why", [PermissionError(13, "Permission denied"), RecursionError(), ValueError("x")], ids=repr)
def test_a_fault_of_a_tool_is_told_to_the_agent(repo, why):
    def broken(_place):
        raise why

    box = Toolbox(repo, "scout")
    box._tools["Broken"] = Tool("Broken", "Fails.", (), broken)
    assert refused(box.call("Broken", {})).startswith("Broken failed: ")


def test_cut_keeps_whole_lines_and_says_so():
    assert cut("a\nb\n", "More.", 10) == "a\nb\n"
    assert cut("aaaa\nbbbb\ncccc", "More.", 11) == "aaaa\nbbbb\n[Cut after 9 of 14 characters. More.]"


def test_every_tool_has_a_docstring_line_for_each_parameter():
    for function in (searching.grep, reading.ls, reading.read_file, history.git_log, history.git_diff):
        assert all(p.description for p in describe(function).parameters)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ({"code": 0, "data": b"a"}, None),
        ({"code": 1}, None),
        ({"code": 128, "error": "fatal: bad"}, "The search failed: fatal: bad."),
        ({"code": 128}, "The search failed: git ended with 128."),
        ({"code": 128, "error": "fatal: pcre2_match failed with -47: match limit exceeded"}, "The pattern needs too much backtracking; use a simpler one."),
        ({"code": -9, "late": True, "data": b"a"}, None),
        ({"code": -9, "late": True}, "The search took longer than 20 s; use a simpler pattern or a narrower path."),
        ({"code": -9, "cut": True, "data": b"a"}, None),
    ],
)  # fmt: skip
def test_how_a_search_ended_is_an_answer_or_a_reason(end, said):
    found = door.Output(**{"data": b"", "error": "", "cut": False, "late": False, **end})
    if said is None:
        assert searching._completed(found) is found
    else:
        with pytest.raises(Refusal) as why:
            searching._completed(found)
        assert str(why.value) == said
