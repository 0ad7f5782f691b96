from __future__ import annotations

import pytest

from hollow.usage import Use, _subject, covering_tests, uses
from tests.support.surveys import commit, empty, run_git, write

FILES = {
    "src/cart.py": "def apply(x):\n    return x\n\napply(1)\napplyAll(2)\n",
    "src/till.py": "from cart import apply\n",
    "web/ca*t.js": "apply(3)\r\n",
    "data.bin": b"\0apply\n",
    "README.md": "Apply it. re-apply it.\n",
}


@pytest.fixture
def repo(tmp_path):
    made = empty(tmp_path / "r")
    commit(made, "all", FILES)
    return made


@pytest.mark.parametrize(
    ("names", "places"),
    [
        (["apply"], [("README.md", 1), ("src/cart.py", 1), ("src/cart.py", 4), ("src/till.py", 1), ("web/ca*t.js", 1)]),
        (["applyAll", "applyAll"], [("src/cart.py", 5)]),
        (["applyAll", "cart"], [("src/cart.py", 5), ("src/till.py", 1)]),
        (["nowhere"], []),
        ([], []),
        (["x", "re", ""], []),
        (["a.ply", "--help", "-O", "app*", "ap ply", "apply\n"], []),
    ],
)
def test_whole_words_are_found_by_path_and_line(repo, names, places):
    assert [(use.path, use.line) for use in uses(repo, names)] == places


def test_a_use_has_its_line_without_the_space_around_it(repo):
    assert uses(repo, ["applyAll"]) == [Use("src/cart.py", 5, "applyAll(2)")]
    assert uses(repo, ["apply"])[-1].text == "apply(3)"


def test_the_working_tree_is_searched_and_what_is_untracked_is_not(repo):
    write(repo, {"src/till.py": "brandnew = 1\n", "loose.py": "brandnew = 2\n"})
    assert [use.path for use in uses(repo, ["brandnew"])] == ["src/till.py"]


def test_one_file_does_not_crowd_out_the_others_and_a_line_is_not_endless(repo):
    write(repo, {"src/cart.py": "apply\n" * 100, "src/till.py": f"apply {'x' * 5000}\n"})
    found = uses(repo, ["apply"], most_each=5)
    assert sum(use.path == "src/cart.py" for use in found) == 5
    assert max(len(use.text) for use in found) <= 400


def test_bytes_that_are_no_text_are_searched_too(repo):
    write(repo, {"src/cart.py": b"apply \xff\xfe\n"})
    assert Use("src/cart.py", 1, "apply ��") in uses(repo, ["apply"])


def test_outside_a_repository_there_is_no_use(tmp_path):
    assert uses(tmp_path, ["apply"]) == []
    assert uses(tmp_path / "nowhere", ["apply"]) == []


def test_a_setting_of_the_repository_does_not_change_the_search(repo):
    before = uses(repo, ["apply"])
    for name, value in (("grep.patternType", "perl"), ("grep.fullName", "true"), ("grep.column", "true"), ("color.grep", "always"),
                        ("grep.lineNumber", "false"), ("submodule.recurse", "true")):  # fmt: skip
        run_git(repo, "config", name, value)
    assert uses(repo, ["apply"]) == before


@pytest.mark.parametrize(
    ("test", "subject"),
    [
        ("tests/test_url.py", "url"), ("url_test.go", "url"), ("src/url.spec.ts", "url"), ("url.test.js", "url"), ("UrlTest.java", "url"),
        ("UrlTests.cs", "url"), ("test-url.js", "url"), ("spec/url_spec.rb", "url"), ("url_unittest.cc", "url"), ("tests/url.py", "url"),
        ("tests.py", ""), ("test.py", ""), ("conftest.py", "conf"), ("tests/test_url_map.py", "url_map"), ("testurl.py", "url"),
    ],
)  # fmt: skip
def test_a_test_is_named_after_what_it_tests(test, subject):
    assert _subject(test) == subject


PRESENT = [
    "src/url.py",
    "tests/test_url.py",
    "tests/test_cart.py",
    "web/url.spec.ts",
    "tests/test_all.py",
    "tests/more/test_url.py",
]


def mention(path, times=1):
    return [Use(path, line, "url") for line in range(1, times + 1)]


@pytest.mark.parametrize(
    ("path", "mentions", "expected"),
    [
        ("src/url.py", [], ["tests/more/test_url.py", "tests/test_url.py", "web/url.spec.ts"]),
        ("src/URL.ts", [], ["tests/more/test_url.py", "tests/test_url.py", "web/url.spec.ts"]),
        ("src/_cart.py", [], ["tests/test_cart.py"]),
        ("src/door.py", [], []),
        ("src/door.py", mention("tests/test_all.py"), ["tests/test_all.py"]),
        ("src/door.py", mention("src/url.py"), []),
        ("src/door.py", [*mention("tests/test_all.py"), *mention("tests/test_url.py", 2)], ["tests/test_url.py", "tests/test_all.py"]),
        ("src/door.py", [*mention("tests/b_test.py"), *mention("tests/a_test.py")], ["tests/a_test.py", "tests/b_test.py"]),
        ("src/cart.py", [*mention("tests/test_cart.py", 9), *mention("tests/test_all.py")], ["tests/test_cart.py", "tests/test_all.py"]),
        ("src/url.py", mention("tests/test_all.py", 9), ["tests/more/test_url.py", "tests/test_url.py", "web/url.spec.ts"]),
    ],
)  # fmt: skip
def test_tests_by_name_come_before_tests_by_use(path, mentions, expected):
    assert covering_tests(path, PRESENT, mentions) == expected
    assert covering_tests(path, PRESENT, mentions, most=1) == expected[:1]
