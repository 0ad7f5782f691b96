"""The judgement of a change: shapes that are never merged, classes that are shown, nothing else."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.cleanroom import Change
from agents.risk import LONGEST_LINE, MANY_FILES, MANY_LINES, Flag, Sizes, Text, escapes, judge, read_patch, touching
from agents.sensitive import ELEVATED, kinds_of

A, B = "a" * 40, "b" * 40


def change(path, old="100644", new="100644"):
    return Change(path if isinstance(path, bytes) else path.encode(), old, new, A, B)


def refused(*changes, **more):
    return [flag.kind for flag in judge(changes, Sizes(), **more).refused]


def elevated(*changes, sizes=None, **more):
    return [flag.kind for flag in judge(changes, sizes or Sizes(), **more).elevated]


class TestRefused:
    """G33, G34: shapes that git itself would take, or that other file systems take for something else."""

    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            (".git/config", "git directory"),
            (".git", "git directory"),
            (".GIT/hooks/pre-commit", "git directory"),
            ("sub/.Git/config", "git directory"),
            (".g\u200cit/config", "git directory"),
            (".git\u200d/config", "git directory"),
            ("\ufeff.git/config", "git directory"),
            (".git./config", "git directory"),
            (".git /config", "git directory"),
            (".git . ./config", "git directory"),
            (".git::$INDEX_ALLOCATION/config", "git directory"),
            (".git:stream", "git directory"),
            ("git~1/config", "git directory"),
            ("GIT~2", "git directory"),
            ("sub\\.git\\config", "git directory"),
            ("vendor/lib/.git/hooks/post-checkout", "git directory"),
            (".agents/INDEX.jsonl", "agent box"),
            (".AGENTS/runs/x", "agent box"),
            (".agents./x", "agent box"),
            (".agents", "agent box"),
            (".claude/commands/merge.md", "agent box"),
            (".Claude/settings.json", "agent box"),
            ("agent_box/trees/x/a", "agent box"),
            ("../outside", "outside"),
            ("a/../../b", "outside"),
            ("/etc/passwd", "outside"),
            ("a//b", "outside"),
            ("./a", "outside"),
            ("C:/x", "outside"),
            ("c:\\x", "outside"),
            ("\\\\server\\x", "outside"),
            ("..\\x", "outside"),
            (".gitmodules", "submodules"),
            ("sub/.gitmodules", "submodules"),
            (".GitModules", "submodules"),
            ("GITMOD~1", "submodules"),
            ("gi7eba~1", "submodules"),
        ],
    )  # fmt: skip
    def test_a_path_that_is_never_merged(self, path, kind):
        """G33: whether the file comes, changes or goes."""
        for old, new in (("000000", "100644"), ("100644", "100644"), ("100644", "000000")):
            assert refused(change(path, old, new)) == [kind]

    @pytest.mark.parametrize(
        "path",
        ["README.md", ".github/workflows/x.yml", "gitx", ".gitignore", "a.git", "x/.gitkeep", "git", "agents/.agent",
         "sub/.agents/x", "sub/agent_box/x", "a b/c", "ünïcode/ß", "..a/b", "...", "a..b", "git~x", "\u200bx", "x/agents"],
    )  # fmt: skip
    def test_a_path_that_only_looks_alike(self, path):
        assert refused(change(path)) == []

    def test_a_name_that_is_no_text_is_judged_all_the_same(self):
        assert refused(change(b"\xff\xfe/.git/config")) == ["git directory"]
        assert refused(change(b"\xff\xfe/plain")) == []

    @pytest.mark.parametrize(
        ("old", "new"), [("000000", "160000"), ("160000", "160000"), ("160000", "000000"), ("100644", "160000")]
    )
    def test_a_nested_repository(self, old, new):
        """G34: a gitlink comes, moves or goes."""
        assert refused(change("vendor/lib", old, new)) == ["gitlink"]

    @pytest.mark.parametrize("mode", ["100664", "100600", "040000", "140000", "777777", ""])
    def test_a_mode_that_git_does_not_have(self, mode):
        """G36: git's own check of objects accepts odd modes."""
        assert refused(change("x", "000000", mode)) == ["mode"]

    @pytest.mark.parametrize(
        ("path", "target", "leaves"),
        [
            ("link", b"README.md", False),
            ("link", b"docs/../README.md", True),
            ("link", b"..", True),
            ("link", b"../x", True),
            ("a/link", b"../x", False),
            ("a/link", b"..", False),
            ("a/link", b"../..", True),
            ("a/b/link", b"../../x", False),
            ("a/b/link", b"./../../../x", True),
            ("a/b/link", b"../c/../../../x", True),
            ("link", b"/etc/passwd", True),
            ("link", b"\\\\server\\share", True),
            ("link", b"C:\\x", True),
            ("link", b"", True),
            ("link", b".git/config", True),
            ("a/link", b"../.GIT", True),
            ("link", b"sub/.git/hooks", True),
            ("link", b"git~1", True),
            ("link", b".github", False),
            ("link", b"\xff", False),
        ],
    )  # fmt: skip
    def test_a_symbolic_link(self, path, target, leaves):
        """G34: a link out of the repository, or into its git directory; after a name nobody knows where `..` leads."""
        made = change(path, "000000", "120000")
        assert escapes(made.path, target) is leaves
        assert refused(made, links={made.path: target}) == (["link"] if leaves else [])

    def test_a_link_whose_target_is_not_told_counts_as_bad(self):
        assert refused(change("link", "000000", "120000")) == ["link"]

    def test_a_link_that_goes_is_no_danger(self):
        assert refused(change("link", "120000", "000000")) == []


CORPUS = {
    "ci": [".github/workflows/ci.yml", ".gitlab-ci.yml", "Jenkinsfile", ".circleci/config.yml", "azure-pipelines.yml"],
    "hooks": [".husky/pre-commit", ".pre-commit-config.yaml", "lefthook.yml", ".githooks/post-merge"],
    "tests": ["conftest.py", "tests/a.py", "pkg/tests/b.txt", "x_test.go", "src/a.spec.ts", "pytest.ini", "tox.ini",
              "__tests__/a.js", "test_x.py", "jest.config.js"],
    "locks": ["package-lock.json", "sub/yarn.lock", "poetry.lock", "uv.lock", "Cargo.lock", "go.sum", "requirements-dev.txt"],
    "instructions": ["CLAUDE.md", "sub/AGENTS.md", ".cursorrules", ".mcp.json", "agent.yaml", "sub/.claude/settings.json",
                     ".github/copilot-instructions.md"],
    "runs later": [".envrc", "Makefile", "package.json", "setup.py", "pyproject.toml", ".vscode/tasks.json",
                   ".devcontainer/devcontainer.json", "Dockerfile", "sitecustomize.py", "x.pth", ".bashrc", "build.rs"],
    "git settings": [".gitattributes", ".gitignore", "sub/.gitattributes"],
    "owners": ["CODEOWNERS", ".github/CODEOWNERS", "docs/codeowners"],
}  # fmt: skip


class TestElevated:
    """M13: classes that an approval acknowledges."""

    def test_every_class_has_examples(self):
        assert set(CORPUS) == set(ELEVATED)

    @pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind, paths in CORPUS.items() for path in paths])
    def test_a_file_with_a_long_reach(self, kind, path):
        for spelled in (path, path.upper()):
            verdict = judge([change(spelled)], Sizes())
            assert kind in [flag.kind for flag in verdict.elevated]
            assert spelled in next(flag for flag in verdict.elevated if flag.kind == kind).paths
            assert verdict.refused == ()

    @pytest.mark.parametrize(
        "path", ["src/app.py", "README.md", "docs/latest/x.md", "src/contest.py", "makefiles.md", "a.lockx"]
    )
    def test_a_plain_file_is_none(self, path):
        assert kinds_of(path) == ()
        assert elevated(change(path)) == []

    @pytest.mark.parametrize(
        ("old", "new", "kinds"),
        [("000000", "100755", ["executable"]), ("100644", "100755", ["executable"]), ("100755", "100755", []),
         ("100755", "100644", []), ("000000", "120000", ["symlink"]), ("100644", "120000", ["symlink"]), ("120000", "000000", [])],
    )  # fmt: skip
    def test_new_powers(self, old, new, kinds):
        assert elevated(change("x", old, new), links={b"x": b"y"}) == kinds

    @pytest.mark.parametrize(
        ("sizes", "large"),
        [(Sizes(files=MANY_FILES), False), (Sizes(files=MANY_FILES + 1), True), (Sizes(added=MANY_LINES), False),
         (Sizes(added=MANY_LINES - 1, removed=2), True)],
    )  # fmt: skip
    def test_size(self, sizes, large):
        """M12: what is too large to be read is called so."""
        assert elevated(sizes=sizes) == (["size"] if large else [])

    def test_what_the_text_holds(self):
        text = Text(binary=("a.png",), hidden=("b.py",), long=("c.js",))
        assert elevated(text=text) == ["binary", "invisible", "long lines"]

    def test_touching_picks_the_files_of_a_class(self):
        test, plain = change("tests/a.py"), change("src/a.py")
        assert touching([plain, test], "tests") == (test,)

    def test_a_quiet_change_has_no_flag(self):
        verdict = judge([change("src/app.py"), change("src/b.py", "000000")], Sizes(files=2, added=10))
        assert (verdict.refused, verdict.elevated) == ((), ())


def test_a_flag_names_the_first_files_and_counts_the_rest():
    flag = Flag("ci", "It changes CI.", tuple("abcdefg"))
    assert str(flag) == "It changes CI: a, b, c, d, e and 2 more."
    assert str(Flag("size", "It is large.")) == "It is large."


def test_a_name_that_would_drive_a_terminal_is_shown_harmless():
    """M15: the name of a file is the agent's text too."""
    flag = judge([change("Makefile\x1b[2J/conftest.py")], Sizes()).elevated[0]
    assert flag.paths == ("Makefile\\x1b[2J/conftest.py",)


class TestPatch:
    """What is read out of the patch text: only what added lines hold, whatever they look like."""

    HEAD = b"diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n"

    def hunk(self, *lines, old=0):
        new = sum(line.startswith(b"+") for line in lines)
        return self.HEAD + f"@@ -1,{old} +1,{new} @@\n".encode() + b"".join(line + b"\n" for line in lines)

    @pytest.mark.parametrize(
        ("line", "hidden"),
        [(b"plain \t text", False), ("grün ß 日本".encode(), False), (b"crlf\r", False), ("nbsp\u00a0x".encode(), False),
         ("bidi \u202e x".encode(), True), ("zero\u200bwidth".encode(), True), (b"esc \x1b[2J", True), (b"nul\0", True),
         ("tag \U000e0041".encode(), True), ("filler \u3164".encode(), True), (b"mid\rdle", False), (b"bell \x07", True)],
    )  # fmt: skip
    def test_characters_that_hide(self, line, hidden):
        """M15: bidirectional overrides, zero-width characters, escapes."""
        assert bool(read_patch(self.hunk(b"+" + line)).hidden) is hidden

    def test_only_added_lines_count(self):
        bad = "x\u202ey".encode()
        assert read_patch(self.hunk(b"-" + bad, b" " + bad, b"+fine", old=2)).hidden == ()

    def test_lines_that_nobody_reads(self):
        assert read_patch(self.hunk(b"+" + b"x" * (LONGEST_LINE + 1))).long == ("x",)
        assert read_patch(self.hunk(b"+" + b"x" * LONGEST_LINE)).long == ()

    def test_a_line_cannot_pass_for_a_header(self):
        """G34: lines are counted as the hunk announced them."""
        lines = (b"+diff --git a/y b/y", b"+GIT binary patch", b"-diff --git a/z b/z", "+\u202e".encode())
        found = read_patch(self.hunk(*lines, old=1))
        assert (found.binary, found.hidden) == ((), ("x",))

    def test_binary_files_and_odd_names(self):
        patch = b'diff --git "a/tab\\there" "b/tab\\there"\nindex 1..2\nGIT binary patch\nliteral 1\nIcmZ\n\n'
        assert read_patch(patch).binary == ("tab\\there",)
        assert read_patch(b"diff --git a/a b/c b/a b/c\nindex 1..2\nGIT binary patch\n").binary == ("a b/c",)

    def test_the_mark_of_a_missing_line_end_weighs_nothing(self):
        patch = self.hunk(b"-a", b"\\ No newline at end of file", b"+b", b"\\ No newline at end of file", old=1)
        again = patch + b"diff --git a/q b/q\nGIT binary patch\n"
        assert read_patch(again).binary == ("q",)

    @given(st.binary(max_size=300))
    @example(b"@@ -1,99999999999999999999 +1 @@\n+x")
    @example(b"diff --git \n+x\nGIT binary patch")
    def test_nothing_in_a_patch_raises(self, data):
        read_patch(data)


@given(st.binary(max_size=40), st.sampled_from(["000000", "100644", "120000", "160000"]), st.binary(max_size=20))
def test_no_name_and_no_target_raises(path, mode, target):
    judge([change(path, "000000", mode)], Sizes(), links={path: target})
