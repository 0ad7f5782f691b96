"""Nothing that a repository or an operator set up reaches the git of an agent, by either of its two doors."""

from __future__ import annotations

import io
import os
import subprocess

import pytest

from hollow import gitread
from hollow.gitenv import FILTERS, SETTINGS, environment, filters_off
from hollow.gitread import GitReadError, blobs
from hollow.mind import Assignment
from hollow.minds.reflex import Reflex
from hollow.reviewing import reviewed
from hollow.stream import Talk
from hollow.survey import survey
from hollow.toolbox import git as toolbox
from hollow.tools import Toolbox
from hollow.tracked import contents, snapshot
from tests.hollow.canaries import plant
from tests.support.surveys import SHOP, commit, empty, run_git, shop, write

CART = SHOP["src/shop/cart.py"] + "\nLIMIT = 3\n"


@pytest.fixture
def repo(tmp_path):
    return shop(tmp_path / "r")


def reflex(run_type):
    def work(repo):
        talk = Talk(io.BytesIO(), session_id="s", model="reflex")
        task = "where is the voucher's discount applied in Cart.applyDiscount?"
        assignment = Assignment(task=task, run_type=run_type, agent="cedar", repo=repo, index=None)
        return Reflex().answer(assignment, talk).text

    return work


def tool(name, **arguments):
    def work(repo):
        outcome = Toolbox(repo, "review").call(name, arguments)
        assert not outcome.is_error, outcome.content
        return outcome.content

    return work


def read_all(repo):
    snap = snapshot(repo)
    return str({file.path: content for file, content in contents(snap, snap.files)})


# Whatever an agent can do to a repository, and a word of its answer, to show that it did it.
WORK = {
    "scout": (reflex("scout"), "src/shop/cart.py"),
    "plan": (reflex("plan"), "tests/test_cart.py"),
    "fix": (reflex("fix"), "A fix needs somebody"),
    "review": (reflex("review"), "the uncommitted change"),
    "benchmark": (reflex("benchmark"), "Existing benchmarks"),
    "survey of a commit": (lambda repo: str(survey(repo, None, "voucher", treeish="HEAD").hits), "cart.py"),
    "review of a commit": (lambda repo: reviewed(repo, "HEAD~1").change.title, "commit "),
    "review of a range": (lambda repo: reviewed(repo, "HEAD~2..HEAD").change.title, "range"),
    "snapshot": (read_all, "LIMIT = 3"),
    "Grep": (tool("Grep", pattern="LIMIT"), "LIMIT = 3"),
    "GitLog": (tool("GitLog"), "Open the shop"),
    "GitDiff": (tool("GitDiff"), "+LIMIT = 3"),
    "GitDiff of a commit": (tool("GitDiff", revision="HEAD"), "submodule"),
    "GitDiff of a range": (tool("GitDiff", revision="HEAD~2..HEAD"), "sub"),
}


@pytest.mark.parametrize("name", WORK)
def test_nothing_that_the_repository_names_is_started(repo, tmp_path, name):
    """External diff, textconv, filter, monitor, pager, hook, gpg, a submodule's git: all stay silent."""
    mark = plant(repo, tmp_path)
    write(repo, {"src/shop/cart.py": CART, "web/basket.js": "let limit;\n", "README.md": "# Other\n"})
    # Times that tell nothing: git has to read these files, through their filters, to see whether they differ.
    os.utime(repo / "src/shop/stock.py", (2**31, 2**31))
    os.utime(repo / ".git/index", (1, 1))
    work, word = WORK[name]
    assert word in work(repo)
    assert not mark.exists(), mark.read_text()


@pytest.mark.parametrize("words", [["diff"], ["diff", "--no-ext-diff", "--no-textconv"], ["log", "-p", "-1", "--", "src"], ["diff-files"],
                                   ["status"], ["diff", "--no-ext-diff", "--ignore-submodules=none", "sub"], ["cat-file", "-p", "1" * 40]],
                         ids=" ".join)  # fmt: skip
def test_the_planted_programs_do_run_where_nothing_forbids_them(repo, tmp_path, words):
    """A canary that cannot sing shows nothing."""
    mark = plant(repo, tmp_path)
    write(repo, {"src/shop/cart.py": CART})
    subprocess.run(["git", *words], cwd=repo, capture_output=True)
    assert mark.exists()


def test_a_missing_object_is_never_fetched(repo, tmp_path):
    mark = plant(repo, tmp_path)
    oid = run_git(repo, "rev-parse", "HEAD:README.md").decode().strip()
    (repo / ".git/objects" / oid[:2] / oid[2:]).unlink()
    assert list(blobs(repo, [oid], 1000)) == [(oid, None)]
    found = toolbox.run(repo, ["cat-file", "-p", oid])
    assert found.broken
    assert not mark.exists()


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_PARAMETERS",
                                  "GIT_CONFIG", "GIT_PAGER", "HOME", "XDG_CONFIG_HOME", "LANG", "LD_PRELOAD", "AWS_SECRET"])  # fmt: skip
def test_no_variable_of_the_caller_reaches_git(monkeypatch, name):
    monkeypatch.setenv(name, "planted")
    assert "planted" not in environment().values()


def test_the_path_is_the_callers_and_all_else_is_fixed(monkeypatch):
    before = environment()
    monkeypatch.setenv("PATH", "/somewhere")
    assert environment() == {**before, "PATH": "/somewhere"}
    monkeypatch.delenv("PATH")
    assert environment()["PATH"] == os.defpath


def test_settings_are_numbered_and_the_callers_come_on_top():
    made = environment({"filter.a=b.clean": "", "diff.renames": "false"})
    count = int(made["GIT_CONFIG_COUNT"])
    told = {made[f"GIT_CONFIG_KEY_{n}"]: made[f"GIT_CONFIG_VALUE_{n}"] for n in range(count)}
    assert told == {**SETTINGS, "filter.a=b.clean": "", "diff.renames": "false"}
    assert f"GIT_CONFIG_KEY_{count}" not in made


@pytest.mark.parametrize("where", ["GIT_CONFIG_GLOBAL", "HOME"])
def test_the_operators_own_settings_are_not_read(repo, tmp_path, monkeypatch, where):
    own = tmp_path / "own"
    own.mkdir()
    (own / ".gitconfig").write_text("[core]\n\tabbrev = 17\n[log]\n\tdate = raw\n")
    monkeypatch.setenv(where, str(own / ".gitconfig" if where == "GIT_CONFIG_GLOBAL" else own))
    assert len(gitread.git(repo, "rev-parse", "--short", "HEAD").strip()) < 17
    assert len(toolbox.run(repo, ["rev-parse", "--short", "HEAD"]).data.strip()) < 17


@pytest.mark.parametrize("setting", ["core.hooksPath", "core.excludesFile", "include.path", "diff.orderFile"])
def test_a_tilde_in_the_repositorys_settings_is_no_failure(repo, setting):
    run_git(repo, "config", setting, "~/there/is/none")
    assert gitread.git(repo, "ls-files", "--others", "--exclude-standard") == b""
    assert not toolbox.run(repo, ["diff"]).broken


@pytest.mark.parametrize(
    ("named", "settings"),
    [
        (b"", {}),
        (b"filter.lfs.clean\0", {"filter.lfs.clean": ""}),
        (b"filter.a=b.process\0filter.a=b.required\0", {"filter.a=b.process": "", "filter.a=b.required": "false"}),
        (b"filter.\xff.clean\0", {"filter.\udcff.clean": ""}),
        (b"filter..clean\0", {"filter..clean": ""}),
    ],
)
def test_every_filter_is_switched_off_by_name(named, settings):
    assert filters_off(named) == settings


def test_the_question_for_filters_finds_all_of_them_and_nothing_else(repo):
    for name in (
        "filter.Evil One.clean",
        "filter.b.process",
        "filter.b.required",
        "filter.c.smudge",
        "other.c.clean",
        "clean.filter",
    ):
        run_git(repo, "config", name, "true")
    run_git(repo, "config", "--file", ".git/more", "filter.included.clean", "cat")
    run_git(repo, "config", "include.path", "more")
    assert gitread.git(repo, *FILTERS).split(b"\0")[:-1] == [
        b"filter.Evil One.clean", b"filter.b.process", b"filter.b.required", b"filter.c.smudge", b"filter.included.clean",
    ]  # fmt: skip


def test_settings_that_cannot_be_read_end_the_comparison_not_the_caution(repo):
    (repo / ".git/config").write_text("[core\n")
    with pytest.raises(GitReadError, match=r"git config failed: .*bad config"):
        gitread.compare(repo, "diff")
    assert "bad config" in Toolbox(repo, "review").call("GitDiff", {}).content


@pytest.mark.parametrize("setting", [("diff.noprefix", "true"), ("diff.mnemonicPrefix", "true"), ("diff.relative", "true"), ("format.pretty", "raw"),
                                     ("grep.fullName", "true"), ("grep.column", "true"), ("color.ui", "always"), ("diff.renames", "false"),
                                     ("core.quotePath", "true"), ("diff.submodule", "log")], ids="=".join)  # fmt: skip
def test_no_setting_of_the_repository_changes_what_is_read(repo, setting):
    run_git(repo, "mv", "src/shop/stock.py", "src/shop/störe.py")
    run_git(repo, "commit", "-qm", "Rename the stock")
    write(repo, {"src/shop/cart.py": CART})
    work = [tool("GitDiff"), tool("GitDiff", revision="HEAD"), tool("GitLog"), tool("Grep", pattern="voucher", path="src"),
            reflex("review"), lambda repo: reviewed(repo, "HEAD").change]  # fmt: skip
    before = [each(repo) for each in work]
    run_git(repo, "config", *setting)
    assert [each(repo) for each in work] == before


def test_an_unborn_branch_and_no_filter_compare_as_well(tmp_path):
    repo = empty(tmp_path / "e")
    assert gitread.compare(repo, "diff-files", "--name-status", "-z") == b""
    commit(repo, "one", {"a.txt": "x\n"})
    write(repo, {"a.txt": "y\n"})
    assert gitread.compare(repo, "diff-files", "--name-status", "-z") == b"M\0a.txt\0"
