from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.kinds import Kind, is_code, kind, language

KINDS = {
    Kind.SOURCE: [
        "a.py", "src/shop/cart.py", "lib/url.ts", "cmd/main.go", "flask/testing.py", "src/protest.py", "latest.py", "contest/x.py",
        ".hidden/tool.py", "src/attestation/a.rs", "src/workbench.c", "Makefile.sh", "bin/run.sh", "schema.sql", "Rakefile",
    ],
    Kind.TEST: [
        "tests/test_cart.py", "test/a.rb", "pkg/url_test.go", "src/url.spec.ts", "src/url.test.js", "conftest.py", "a/conftest.py",
        "test_a.py", "tests.py", "spec/a_spec.rb", "src/test/java/A.java", "CartTest.java", "CartTests.cs", "e2e/login.ts",
        "__tests__/a.js", "tests/data.json", "fixtures/a.yaml", "tests/README.md", "unit-tests/a.py", "test_utils/b.py", ".ci/tests/a.py",
    ],
    Kind.DOC: [
        "README.md", "docs/conf.py", "doc/a.txt", "CHANGELOG", "changes/12.bugfix", "HISTORY.rst", "man/box.1", "examples/README.md",
        "AUTHORS", "notes.adoc", "website/index.html", "TODO", "newsfragments/1.feature", "src/notes.txt",
    ],
    Kind.EXAMPLE: ["examples/a.py", "samples/b.go", "demo/c.js", "benchmarks/d.py", "benches/e.rs", "docs_src/f.py", "tutorial/g.py"],
    Kind.GENERATED: [
        "vendor/a.go", "third_party/x/y.c", "node_modules/a/index.js", "package-lock.json", "Cargo.lock", "go.sum", "a/b.min.js",
        "app.js.map", "api_pb2.py", "api_pb2_grpc.py", "api.pb.go", "logo.svg", "locale/de/x.po", "__snapshots__/a.snap",
        "vendor/tests/test_a.py", "dist/app.js", "build/README.md", "poetry.lock",
    ],
    Kind.CONFIG: [
        "pyproject.toml", "a.yaml", "index.html", "style.css", "Dockerfile", "CMakeLists.cmake", ".github/workflows/test/ci.yml",
        "x.proto", "setup.cfg", "templates/a.jinja",
    ],
    Kind.OTHER: ["LICENSE", "a.bin", ".gitignore", "picture.png", "", "a.", "no ending"],
}  # fmt: skip


@pytest.mark.parametrize(("path", "sort"), [(path, sort) for sort, paths in KINDS.items() for path in paths])
def test_a_path_says_what_sort_of_file_it_is(path, sort):
    assert kind(path) is sort


@pytest.mark.parametrize(
    ("path", "spoken"),
    [
        ("a.py", "python"), ("a.PY", "python"), ("a/b.tsx", "javascript"), ("a.h", "c"), ("x.tar.gz", ""), ("Makefile", "make"),
        ("sub/Dockerfile", "config"), ("Gemfile", "ruby"), ("a", ""), ("py", ""), (".py", "python"), ("a.py/b", ""), ("", ""),
        ("a.md", "markdown"), ("a.kts", "kotlin"), ("build.gradle", "config"), ("A.SQL", "sql"),
    ],
)  # fmt: skip
def test_a_name_says_what_language_a_file_is_in(path, spoken):
    assert language(path) == spoken


@pytest.mark.parametrize(
    ("path", "code"), [("a.py", True), ("tests/a.go", True), ("a.md", False), ("a.toml", False), ("a.css", False), ("x", False)]
)  # fmt: skip
def test_program_text_is_told_from_other_text(path, code):
    assert is_code(path) is code


PIECES = st.sampled_from(
    ["src", "tests", "docs", "vendor", "examples", ".github", "a.py", "b.md", "test_c.go", "LICENSE", "d.json"]
)


@settings(max_examples=150)
@given(st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=5).map("/".join)))
def test_every_path_has_one_sort_and_program_text_never_the_last(path):
    assert kind(path) in Kind
    assert kind(path) is kind(str(path))
    if is_code(path):
        assert kind(path) not in {Kind.CONFIG, Kind.OTHER}


@settings(max_examples=60)
@given(st.lists(PIECES, min_size=1, max_size=4).map("/".join))
def test_what_is_vendored_is_vendored_whatever_it_is(path):
    assert kind(f"vendor/{path}") is Kind.GENERATED
