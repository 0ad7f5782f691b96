from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.change import Line, Touched
from hollow.findings import Finding, findings, masked


def touched(path, *lines, **more):
    kept = {"status": "modified", "added": len(lines), "removed": 0, "binary": False, **more}
    return Touched(path, path, lines=tuple(Line(at, text) for at, text in enumerate(lines, 1)), hunks=(1,), **kept)


LATER = "a note to do later"

RULES = {
    "a merge conflict marker": {
        "a.py": ["<<<<<<< HEAD", ">>>>>>> side", "=======", "||||||| base"],
        "not": [("a.py", "======== title"), ("a.py", " <<<<<<< HEAD"), ("a.py", "<<<<<<<"), ("a.rst", "==========")],
    },
    "a debug print or breakpoint": {
        "a.py": ["breakpoint()", "  import pdb", "import ipdb; ipdb.set_trace()", "pdb.set_trace()"],
        "a.js": ["  debugger;", "debugger"], "a.rb": ["binding.pry"], "a.rs": ["    dbg!(x)"],
        "not": [("a.py", "# no breakpoint()"), ("a.js", "debuggers")],
    },
    "a debug print": {
        "a.py": ["print(x)", "    print('a')"], "a.ts": ["console.log(1)", " console.debug(2)"], "a.go": ["\tfmt.Println(1)", "fmt.Printf(x)", "fmt.Print(x)"],
        "not": [("a.py", "pprint(x)"), ("a.js", "print(x)"), ("a.py", "console.log(1)"), ("test_a.py", "print(x)"), ("a.go", "fmt.Fprintln(w)"), ("a.py", "x = print(1)")],
    },
    LATER: {
        "a.py": ["# TO" + "DO: x", "x = 1  # FIX" + "ME", "# XX" + "X"], "a.c": ["/* HA" + "CK */"], "a.md": ["TO" + "DO"],
        "not": [("a.py", "# todo"), ("a.py", "HACKER"), ("a.py", "XXXX")],
    },
    "an exception swallowed": {
        "a.py": ["except: pass", "    except Exception: pass", "except Exception:", "except BaseException: ...", "except:  # why"],
        "not": [("a.py", "except ValueError: pass"), ("a.js", "except: pass"), ("a.py", "except Exception as why:"), ("a.py", "except Exception: raise")],
    },
    "code that runs text": {
        "a.py": ["eval(x)", "y = exec(x)", "run(x, shell=True)", "run(x, shell = True)", "os.system(x)"], "a.js": ["eval(x)"],
        "not": [("a.py", "model.eval()"), ("a.py", "retrieval(x)"), ("a.py", "shell=False"), ("a.py", "re.exec(x)")],
    },
    "a disabled check": {
        "a.py": ["get(u, verify=False)", "verify = False"], "a.go": ["InsecureSkipVerify: true"], "a.js": ["rejectUnauthorized: false"],
        "not": [("a.py", "verify=True"), ("a.go", "InsecureSkipVerify: false")],
    },
    "a skipped test": {
        "tests/test_a.py": ["@pytest.mark.skip", "@pytest.mark.xfail(strict=True)", "@unittest.skip('x')", "@skipUnless(x)"],
        "a.test.js": ["it.skip('x')", "describe.skip(x)"], "a_test.go": ["\tt.Skip()"],
        "not": [("a.py", "skip(x)"), ("a.py", "submit.skip(x)")],
    },
    "what looks like a secret": {
        "a.py": ["AKIA" + "ABCDEFGHIJKLMNOP", "x = 'ghp_" + "a1B2" * 8 + "'", "sk-" + "abcd1234" * 3, "xoxb-" + "123456789012", "-----BEGIN " + "RSA PRIVATE KEY-----",
                 "-----BEGIN " + "PRIVATE KEY-----", "password = 'hunter2hunter2'", 'API_KEY: "abcdefgh"', "client_secret_x='12345678'", "Token = 'abcdefghij'"],
        "not": [("a.py", "password = 'short'"), ("a.py", "password = os.environ['PASSWORD']"), ("a.py", "password = 'with some spaces in'"),
                ("a.py", "sk-short"), ("a.py", "-----BEGIN PUBLIC KEY-----"), ("a.py", "tokens = 12345678"), ("a.py", "AKIA")],
    },
}  # fmt: skip
HITS = [
    (what, path, line) for what, by in RULES.items() for path, lines in by.items() if path != "not" for line in lines
]
MISSES = [(what, path, line) for what, by in RULES.items() for path, line in by["not"]]


@pytest.mark.parametrize(("what", "path", "line"), HITS)
def test_a_line_that_meets_a_rule_is_named_with_its_number(what, path, line):
    assert (path, 2, what) in [(one.path, one.line, one.what) for one in findings([touched(path, "x", line)])]


@pytest.mark.parametrize(("what", "path", "line"), MISSES)
def test_a_line_that_only_resembles_one_is_not(what, path, line):
    assert what not in [one.what for one in findings([touched(path, line)])]


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml", "sub/.github/actions/x/action.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile", ".husky/pre-commit",
        "hooks/post-merge", "setup.py", "a/setup.py", "conftest.py", "tests/conftest.py", "noxfile.py", "tox.ini", "Makefile", "package.json",
        "pyproject.toml", "build.rs", "Dockerfile", "Dockerfile.dev", ".envrc", "site/a.pth", "install.sh", "a.ps1", "a.BAT", "CLAUDE.md", "AGENTS.md",
        ".claude/settings.json", ".pre-commit-config.yaml",
    ],
)  # fmt: skip
def test_a_file_that_is_run_by_being_there_is_named(path):
    assert findings([touched(path)]) == [Finding(path, 0, "a file that runs code later")]


@pytest.mark.parametrize(
    "path", ["src/setup.pyx", "mysetup.py", "src/makefile.py", "docs/package.json.md", "a.shx", "a/build.rst", "x.env"]
)
def test_a_file_of_a_similar_name_is_not(path):
    assert findings([touched(path)]) == []


@pytest.mark.parametrize(
    ("file", "whats"),
    [
        (touched("a.png", binary=True), ["a binary file, which a diff does not show"]),
        (touched("a.png", binary=True, status="deleted"), []),
        (touched("a.py", added=800), []),
        (touched("a.py", added=801), ["a large addition (801 lines)"]),
        (touched("vendor/a.py", added=9000), []),
    ],
)
def test_what_stands_out_in_a_file_as_a_whole(file, whats):
    assert [one.what for one in findings([file])] == whats


def test_the_gravest_come_first_and_equals_in_the_order_of_the_change():
    files = [
        touched("b.py", "print(1)", "eval(x)"),
        touched("a.py", "print(1)", "password = 'hunter2hunter2'"),
        touched("m.sh", ">>>>>>> x"),
    ]
    assert [(one.path, one.what.split()[-1]) for one in findings(files)] == [
        ("m.sh", "marker"), ("a.py", "secret"), ("m.sh", "later"), ("b.py", "print"), ("b.py", "text"), ("a.py", "print"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nothing to hide", "nothing to hide"),
        ("password = 'hunter2hunter2'", "password = 'hunt****'"),
        ("a = '" + "ghp_" + "a1B2" * 8 + "' # x", "a = 'ghp_****' # x"),
        ("AKIA" + "ABCDEFGHIJKLMNOP" + " and " + "AKIA" + "QRSTUVWXYZABCDEF", "AKIA**** and AKIA****"),
        ("token: 'aaaaaaaa' aaaaaaaa", "token: 'aaaa****' aaaaaaaa"),
    ],
)
def test_a_secret_is_shown_by_its_first_four_characters(text, shown):
    assert masked(text) == shown


SECRETS = st.from_regex(r"(ghp_[A-Za-z0-9]{30,40}|sk-[A-Za-z0-9]{20,30}|AKIA[A-Z0-9]{16})", fullmatch=True)


@settings(max_examples=100)
@given(st.text(max_size=30), SECRETS, st.text(max_size=30))
def test_no_finding_shows_a_secret_whole(before, secret, after):
    for one in findings([touched("a.py", f"{before} {secret} {after}")]):
        assert secret not in one.text
        assert one.line == 1


@settings(max_examples=100)
@given(st.lists(st.text(max_size=60), max_size=4), st.sampled_from(["a.py", "b.js", "tests/test_c.py", "d.md", "e"]))
def test_any_lines_can_be_judged(lines, path):
    found = findings([touched(path, *lines)])
    assert all(one.path == path and 0 <= one.line <= len(lines) and one.what for one in found)
    assert found == findings([touched(path, *lines)])
