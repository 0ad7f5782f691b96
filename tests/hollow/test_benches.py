from __future__ import annotations

import pytest

from hollow.benches import Bench, find
from hollow.report_benchmark import benchmark
from hollow.survey import survey
from hollow.tracked import snapshot
from tests.support.surveys import commit, empty, shop

# Path, content, and the benchmarks in it as (line, name, command).
FILES = [
    ("a_test.go", "package a\n\nfunc BenchmarkAdd(b *testing.B) {\n}\nfunc BenchmarkSub(tb *testing.B) {}\n",
     [(3, "BenchmarkAdd", "go test -run '^$' -bench '^BenchmarkAdd$' ./"), (5, "BenchmarkSub", "go test -run '^$' -bench '^BenchmarkSub$' ./")]),
    ("pkg/b_test.go", "func TestAdd(t *testing.T) {}\nfunc (s S) BenchmarkX(b *testing.B) {}\n", []),
    ("pkg/c.go", "func BenchmarkAdd(b *testing.B) {}\n", []),
    ("Makefile", "bench:\n\tx\nperf-all: a\nrebench := 3\ntest:\n", [(1, "bench", "make bench"), (3, "perf-all", "make perf-all")]),
    ("sub/GNUmakefile", "x:\nbench/one:\n", [(2, "bench/one", "make -C sub bench/one")]),
    ("Cargo.toml", '[package]\nname = "x"\n[[bench]]\nharness = false\nname = "deep"\n[[bench]]\nname = "two"\n[[bin]]\nname = "no"\n',
     [(5, "deep", "cargo bench --bench deep"), (7, "two", "cargo bench --bench two")]),
    ("package.json", '{\n "scripts": {\n  "test": "jest",\n  "bench": "node b.js",\n  "speed": "run benchmarks"\n }\n}\n',
     [(4, "bench", "npm run bench"), (5, "speed", "npm run speed")]),
    ("x/package.json", '{"scripts": {"bench": 3, "test": 4}}', [(1, "bench", "npm run bench")]),
    ("y/package.json", "[]", []),
    ("z/package.json", '{"scripts": null}', []),
    ("pyproject.toml", '[project]\ntest = ["pytest-benchmark"]\nmore = "benchmarks"\n', [(2, 'test = ["pytest-benchmark"]', "")]),
    ("tox.ini", "[testenv:bench]\n", [(1, "[testenv:bench]", "tox --list")]),
    ("noxfile.py", "import nox\n\ndef benchmarks(session):\n", [(3, "def benchmarks(session):", "nox --list")]),
    ("q/tox.ini", "[tox]\n", []),
    ("perf/test_io.py", "def test_read(benchmark):\n  pass\nasync def bench_all(x, benchmark):\n  pass\ndef test_no(x): pass\n",
     [(1, "test_read", "python -m pytest perf/test_io.py -k test_read"), (3, "bench_all", "python -m pytest perf/test_io.py -k bench_all")]),
    ("bench_io.py", "import x\n", [(1, "bench_io.py", "python bench_io.py")]),
    ("tools/io-bench.sh", "x\n", [(1, "io-bench.sh", "sh tools/io-bench.sh")]),
    ("benchmark/a.rb", "x\n", [(1, "a.rb", "ruby benchmark/a.rb")]),
    ("benchmark/a.mjs", "x\n", [(1, "a.mjs", "node benchmark/a.mjs")]),
    ("benches/wide.rs", "x\n", [(1, "wide.rs", "cargo bench --bench wide")]),
    ("benchmarks/A.java", "x\n", [(1, "A.java", "")]),
    ("benchmarks/README.md", "x\n", []),
    ("benchmarks/data.json", "{}\n", []),
    ("benchmarks/noending", "x\n", []),
    ("benchmarks/a.py", b"\0", []),
    ("asv.conf.json", "{}\n", [(1, "asv suite", "asv run")]),
    ("src/workbench.py", "x\n", []),
    ("src/benchpress.py", "x\n", []),
]  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    repo = empty(tmp_path_factory.mktemp("benches") / "r")
    commit(repo, "all", {path: content for path, content, _ in FILES})
    return find(snapshot(repo))


@pytest.mark.parametrize(("path", "expected"), [(path, expected) for path, _, expected in FILES])
def test_the_benchmarks_of_a_file_with_line_and_command(found, path, expected):
    assert [(one.line, one.name, one.command) for one in found if one.path == path] == expected


def test_those_that_can_be_run_come_first_then_by_path(found):
    assert [bool(one.command) for one in found] == sorted((bool(one.command) for one in found), reverse=True)
    runnable = [(one.path, one.line) for one in found if one.command]
    assert runnable == sorted(runnable)


def test_a_repository_without_any_has_none(tmp_path):
    assert find(snapshot(shop(tmp_path / "r"))) == []


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, ["0 existing benchmarks found", "None was found"]), (1, ["1 existing benchmark found", "`b0.py:1` b0: `run 0`"]),
     (30, ["30 existing benchmarks found", "`b24.py:1`", "… and 5 more"])],
)  # fmt: skip
def test_a_report_counts_lists_and_bounds_them(tmp_path, count, words):
    existing = [Bench(f"b{n}.py", 1, f"b{n}", f"run {n}") for n in range(count)]
    text = benchmark(survey(shop(tmp_path / "r"), None, "voucher"), existing)
    for word in words:
        assert word in text
    assert "`b25.py:1`" not in text
    assert "## What to measure" in text


def test_a_benchmark_without_a_command_is_named_alone(tmp_path):
    text = benchmark(survey(shop(tmp_path / "r"), None, "zyxwv"), [Bench("b.py", 3, "b *x*", "")])
    assert "- `b.py:3` b \\*x\\*\n" in text
    assert "Nothing in this repository matches" in text
