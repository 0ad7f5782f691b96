from __future__ import annotations

import os

import pytest

from hollow.benches import find
from hollow.change import Change, Line, Touched, under_review
from hollow.findings import findings, masked
from hollow.report_review import Review, review
from hollow.reviewing import reviewed
from hollow.tracked import snapshot
from hollow.usage import Use
from tests.support.surveys import SHOP, commit, empty, run_git, shop, write

TOKEN = "ghp_" + "a1B2" * 9


def touched(path, *lines, **more):
    kept = {"status": "modified", "added": len(lines), "removed": 0, "binary": False, **more}
    return Touched(
        path, path, lines=tuple(Line(number, text) for number, text in enumerate(lines, 1)), hunks=(1,), **kept
    )


def whats(*files):
    return [(one.line, one.what) for one in findings(files)]


def test_without_a_change_the_last_commit_is_reviewed(tmp_path):
    repo = shop(tmp_path / "r")
    change = under_review(repo, "please review")
    assert "Send receipts again" in change.title
    assert [(file.path, file.added, file.removed, file.hunks) for file in change.files] == [
        ("src/shop/mail.py", 1, 1, (6,))
    ]


def test_the_uncommitted_change_comes_first_staged_or_not(tmp_path):
    repo = shop(tmp_path / "r")
    write(repo, {"src/shop/cart.py": SHOP["src/shop/cart.py"] + "\nLIMIT = 3\n", "new.py": "x = 1\n"})
    run_git(repo, "add", "new.py")
    change = under_review(repo, "review")
    assert (change.title, change.revision) == ("the uncommitted change", None)
    assert {file.path: file.status for file in change.files} == {"src/shop/cart.py": "modified", "new.py": "added"}


@pytest.mark.parametrize("task", ["look at HEAD~1..HEAD please", "HEAD~1...", "review {sha}", "{sha}^..{sha}"])
def test_the_change_that_the_task_names_is_reviewed(tmp_path, task):
    repo = shop(tmp_path / "r")
    write(repo, {"README.md": "changed\n"})
    sha = run_git(repo, "rev-parse", "HEAD").decode().strip()
    assert [file.path for file in under_review(repo, task.format(sha=sha[:10])).files] == ["src/shop/mail.py"]


@pytest.mark.parametrize("task", ["1234567 and 1.2..3", "--output=/tmp/x..HEAD", "a..b", "HEAD~99"])
def test_what_names_no_revision_is_no_revision(tmp_path, task):
    assert "commit " in under_review(shop(tmp_path / "r"), task).title


def test_renames_deletions_binaries_and_odd_names(tmp_path):
    repo = shop(tmp_path / "r")
    run_git(repo, "mv", "src/shop/cart.py", 'src/shop/new\ncart "x".py')
    run_git(repo, "rm", "-q", "README.md")
    write(repo, {"a.bin": b"\0\1\2", "tab\there.py": "x = 1\ny = 2\n"})
    (repo / os.fsdecode(b"\xff.py")).write_text("z = 1\n")
    run_git(repo, "add", "-A")
    found = {file.path: file for file in under_review(repo, "").files}
    moved = found['src/shop/new\ncart "x".py']
    assert (moved.status, moved.old_path, moved.added) == ("renamed", "src/shop/cart.py", 0)
    assert (found["README.md"].status, found["README.md"].removed) == ("deleted", 3)
    assert found["a.bin"].binary
    assert [line.text for line in found["tab\there.py"].lines] == ["x = 1", "y = 2"]
    assert [line.text for line in found[os.fsdecode(b"\xff.py")].lines] == ["z = 1"]
    assert "nothing to review" not in review(reviewed(repo, ""))


def test_the_first_commit_and_no_commit(tmp_path):
    repo = empty(tmp_path / "r")
    assert "nothing to review" in review(reviewed(repo, ""))
    write(repo, {"a.py": "x = 1\n"})
    run_git(repo, "add", "-A")
    assert [file.path for file in under_review(repo, "").files] == ["a.py"]
    commit(repo, "first", {})
    assert [(file.path, file.status) for file in under_review(repo, "").files] == [("a.py", "added")]


def test_a_program_that_the_repository_names_is_never_run(tmp_path):
    repo = shop(tmp_path / "r")
    for setting in ("diff.external", "diff.evil.textconv", "diff.evil.command", "core.pager", "core.fsmonitor"):
        run_git(repo, "config", setting, f"touch {tmp_path / 'ran'};")
    write(repo, {".gitattributes": "*.py diff=evil\n", "src/shop/cart.py": "x = 1\n"})
    assert review(reviewed(repo, ""))
    assert not (tmp_path / "ran").exists()


def test_the_operators_settings_do_not_change_what_is_read(tmp_path):
    repo = shop(tmp_path / "r")
    plain = review(reviewed(repo, "HEAD"))
    settings = {
        "color.ui": "always", "color.grep": "always", "grep.column": "true", "diff.noprefix": "true", "diff.mnemonicPrefix": "true",
        "diff.interHunkContext": "9", "diff.context": "9", "log.showRoot": "false", "diff.renames": "false", "grep.fullName": "true",
        "format.pretty": "raw", "log.date": "relative", "diff.algorithm": "patience", "core.quotePath": "true",
    }  # fmt: skip
    for name, value in settings.items():
        run_git(repo, "config", name, value)
    assert review(reviewed(repo, "HEAD")) == plain


def test_histories_that_never_met_are_compared_as_they_are(tmp_path):
    repo = shop(tmp_path / "r")
    run_git(repo, "checkout", "-q", "--orphan", "island")
    commit(repo, "island", {"palm.py": "x = 1\n"})
    assert [file.path for file in under_review(repo, "main...island").files] == ["palm.py"]


@pytest.mark.parametrize(
    ("path", "line", "what"),
    [
        ("a.py", "<<<<<<< HEAD", "a merge conflict marker"),
        ("a.py", "    breakpoint()", "a debug print or breakpoint"),
        ("a.py", "    print(x)", "a debug print"),
        ("a.js", "  console.log(x)", "a debug print"),
        ("a.go", '\tfmt.Println("x")', "a debug print"),
        ("a.c", "// TODO: later", "a note to do later"),
        ("a.py", "    except Exception: pass", "an exception swallowed"),
        ("a.py", "run(x, shell=True)", "code that runs text"),
        ("a.py", "get(x, verify=False)", "a disabled check"),
        ("tests/test_a.py", "@pytest.mark.skip", "a skipped test"),
        ("a.py", f'key = "{TOKEN}"', "what looks like a secret"),
        ("a.py", 'password = "correct horse".strip() or "hunter2hunter2"', None),
        ("tests/test_a.py", "    print(x)", None),
        ("a.py", "x = blueprint(y)", None),
        ("a.md", "=======", "a merge conflict marker"),
    ],
)
def test_what_stands_out_in_a_line(path, line, what):
    assert whats(touched(path, line)) == ([(1, what)] if what else [])


def test_what_stands_out_in_a_file_and_the_gravest_first():
    assert whats(touched("a.png", binary=True)) == [(0, "a binary file, which a diff does not show")]
    assert whats(touched(".github/workflows/ci.yml")) == [(0, "a file that runs code later")]
    assert whats(touched("a.py", added=900)) == [(0, "a large addition (900 lines)")]
    assert whats(touched("a.lock", added=900)) == []
    assert whats(touched("a.py", "# TODO", ">>>>>>> x"))[0] == (2, "a merge conflict marker")


def test_secrets_are_masked():
    assert masked(f"token: {TOKEN}") == "token: ghp_****"
    assert masked("api_key = 'abcdefghij'") == "api_key = 'abcd****'"


def test_the_review_names_symbols_tests_uses_and_risks(tmp_path):
    repo = shop(tmp_path / "r")
    cart = SHOP["src/shop/cart.py"].replace("return self.total", f'key = "{TOKEN}"\n        return self.total')
    commit(repo, "Note", {"src/shop/till.py": "def pay(cart):\n    return cart.applyDiscount(None)\n"})
    write(repo, {"src/shop/cart.py": cart})
    text = review(reviewed(repo, "is this safe?"))
    assert text.startswith("**Reviewed the uncommitted change: 1 file, +1 −0; 1 place deserves a second look.**")
    assert "- `src/shop/cart.py:13` modified, +1 −0: `Cart.applyDiscount`" in text
    assert "what looks like a secret" in text
    assert TOKEN not in text
    assert "**The change touches program text but no test.**" in text
    assert "`src/shop/cart.py` is likely covered by `tests/test_cart.py`: run it" in text
    assert "- `applyDiscount`: `src/shop/till.py:2`, `tests/test_cart.py:5`" in text
    assert "Open the shop" in text
    assert "ollama pull" in text


def test_existing_benchmarks_and_how_to_run_them(tmp_path):
    repo = empty(tmp_path / "r")
    files = {
        "pkg/a_test.go": "package a\n\nfunc BenchmarkAdd(b *testing.B) {\n}\n",
        "Cargo.toml": '[package]\nname = "x"\n\n[[bench]]\nname = "parse"\nharness = false\n',
        "package.json": '{"name": "x", "scripts": {"test": "t", "bench": "node b.js"}}',
        "bad/package.json": "{",
        "odd/package.json": '{"scripts": ["bench"]}',
        "Makefile": "all:\n\tcc\nbench-all:\n\t./b\n",
        "benchmarks/test_speed.py": "def test_speed(benchmark):\n    benchmark(len, [])\n",
        "benchmarks/run.py": "print(1)\n",
        "benches/big.rs": "fn main() {}\n",
        "pyproject.toml": '[tool.x]\ndeps = ["pytest-benchmark"]\n',
        "asv.conf.json": "{}",
        "src/workbench.py": "x = 1\n",
        "bench.bin": b"\0",
    }
    commit(repo, "all", files)
    found = {(bench.path, bench.line): bench.command for bench in find(snapshot(repo))}
    assert found == {
        ("pkg/a_test.go", 3): "go test -run '^$' -bench '^BenchmarkAdd$' ./pkg",
        ("Cargo.toml", 5): "cargo bench --bench parse",
        ("package.json", 1): "npm run bench",
        ("Makefile", 3): "make bench-all",
        ("benchmarks/test_speed.py", 1): "python -m pytest benchmarks/test_speed.py -k test_speed",
        ("benchmarks/run.py", 1): "python benchmarks/run.py",
        ("benches/big.rs", 1): "cargo bench --bench big",
        ("pyproject.toml", 2): "",
        ("asv.conf.json", 1): "asv run",
    }


SOURCE, TEST, OTHER = touched("src/cart.py", "x"), touched("tests/test_cart.py", "x"), touched("README.md", "x")
UNTESTED = "- **The change touches program text but no test.**"


@pytest.mark.parametrize(
    ("files", "tests", "rows"),
    [
        ([OTHER], {}, ["- The change touches no program text."]),
        ([TEST], {}, ["- `tests/test_cart.py` is part of the change"]),
        ([SOURCE], {}, [UNTESTED, "- no test was found for `src/cart.py` by name or use"]),
        ([SOURCE], {"src/cart.py": ["a_test.py", "b_test.py"]}, [UNTESTED, "- `src/cart.py` is likely covered by `a_test.py`, `b_test.py`: run it"]),
        ([SOURCE, TEST], {"src/cart.py": ["tests/test_cart.py"]}, ["- `tests/test_cart.py` is part of the change"]),
        ([SOURCE, TEST], {"src/cart.py": ["tests/test_cart.py", "a_test.py"]},
         ["- `tests/test_cart.py` is part of the change", "- `src/cart.py` is likely covered by `a_test.py`: run it"]),
        ([touched("src/cart.py", status="deleted")], {}, ["- The change touches no program text."]),
    ],
)  # fmt: skip
def test_what_a_review_says_of_tests(files, tests, rows):
    seen = Review(change=Change("x", tuple(files), None), findings=(), symbols={}, uses={}, tests=tests)
    said = review(seen).split("## Tests\n\n")[1].split("\n\n")[0]
    assert said.split("\n") == rows


def test_a_review_of_very_much_is_bounded_and_says_so():
    files = [touched(f"src/f{number:03}.py", "print(1)") for number in range(100)]
    text = review(Review(change=Change("x", tuple(files), None, cut=True), findings=findings(files), symbols={}, tests={},
                         uses={"name": [Use("a.py", number, "") for number in range(1, 20)]}))  # fmt: skip
    assert "… and 60 more" in text
    assert text.count("no test was found") == 10
    assert "`name`: `a.py:1`" in text
    assert " and 13 more" in text
    assert "The diff is too large to be read whole." in text
    assert "100 places deserve a second look" in text
