"""Benchmarks that a repository already has, and how to run them."""

from __future__ import annotations

import json
import re

from essentials.patterns import late
from essentials.records import dataclass
from hollow.documents import decoded, is_text
from hollow.kinds import language
from hollow.tracked import Snapshot, contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

_WORD: Final = late(r"bench(?:mark)?s?", re.IGNORECASE)
# By folder or by file name, but not "workbench" or "benchpress": a separator must stand on both sides.
_PLACE: Final = late(
    r"(?:^|/)(?:bench(?:mark)?(?:es|s)?|perf|asv_bench)/|(?:^|[/_.-])bench(?:mark)?s?(?:[_.-][^/]*)?\.\w+$",
    re.IGNORECASE,
)
_GO: Final = late(r"^func (Benchmark\w*)\(\w+ \*testing\.B\)", re.MULTILINE)
_PYTEST: Final = late(r"^\s*(?:async )?def (test_\w+|bench_\w+)\([^)]*\bbenchmark\b", re.MULTILINE)
_TARGET: Final = late(r"^([\w./-]*(?:bench|perf)[\w./-]*):(?!=)", re.MULTILINE)
# The name may follow other keys of the same table, never a new table.
_CARGO: Final = late(r"^\[\[bench\]\]\s*(?:^\w[^\n]*\n)*?^name\s*=\s*\"([\w-]+)\"", re.MULTILINE)
_READ_MOST: Final = 3000
"""Files looked into; a repository with more is searched by name beyond them."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark or a way to run some."""

    path: str
    line: int
    """1-based."""
    name: str
    command: str
    """What to type, or "" where that is not known."""


def find(snap: Snapshot) -> list[Bench]:
    """Return the benchmarks among the files of *snap*, by path and line."""
    likely = [file for file in snap.files if _likely(file.path)][:_READ_MOST]
    found = []
    for file, content in contents(snap, likely):
        if content is not None and is_text(content):
            found += list(_in_file(file.path, decoded(content)))
    return sorted(found, key=lambda bench: (not bench.command, bench.path, bench.line, bench.name))


def _likely(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    known = {
        "Makefile",
        "makefile",
        "GNUmakefile",
        "package.json",
        "Cargo.toml",
        "pyproject.toml",
        "tox.ini",
        "noxfile.py",
        "asv.conf.json",
    }
    return name in known or name.endswith("_test.go") or bool(_PLACE.search(path))


def _in_file(path: str, text: str) -> Iterator[Bench]:
    name = path.rsplit("/", 1)[-1]
    folder = path.rpartition("/")[0]
    rules = {
        "package.json": _scripts,
        "Cargo.toml": _cargo,
        "pyproject.toml": _tools,
        "tox.ini": _tools,
        "noxfile.py": _tools,
    }
    if name.lower().endswith("makefile"):
        yield from _matches(path, text, _TARGET, f"make{' -C ' + folder if folder else ''} {{}}")
    elif name in rules:
        yield from rules[name](path, text)
    elif name.endswith("_test.go"):
        yield from _matches(path, text, _GO, f"go test -run '^$' -bench '^{{}}$' ./{folder}")
    # pytest-benchmark is a fixture of that name; a file without it is run as a script, below.
    elif language(path) == "python" and _PYTEST.search(text):
        yield from _matches(path, text, _PYTEST, f"python -m pytest {path} -k {{}}")
    elif name == "asv.conf.json":
        yield Bench(path, 1, "asv suite", "asv run")
    elif _PLACE.search(path) and language(path) not in {"markdown", "text", "rst", "config", "web", ""}:
        yield Bench(path, 1, name, _script(path))


def _matches(path: str, text: str, pattern: re.Pattern[str], command: str) -> Iterator[Bench]:
    for hit in pattern.finditer(text):
        yield Bench(path, text.count("\n", 0, hit.start(1)) + 1, hit[1], command.format(hit[1]))


def _cargo(path: str, text: str) -> Iterator[Bench]:
    yield from _matches(path, text, _CARGO, "cargo bench --bench {}")


def _scripts(path: str, text: str) -> Iterator[Bench]:
    """Scripts of a package.json whose name or command speaks of benchmarks."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return
    scripts = read.get("scripts") if isinstance(read, dict) else None
    for name, told in (scripts if isinstance(scripts, dict) else {}).items():
        if _WORD.search(name) or (isinstance(told, str) and _WORD.search(told)):
            # JSON keeps no lines; the first place of the key is close enough to open the file at.
            at = text.find(json.dumps(name))
            yield Bench(path, text.count("\n", 0, max(0, at)) + 1, name, f"npm run {name}")


def _tools(path: str, text: str) -> Iterator[Bench]:
    """The first line of a Python tool's configuration that speaks of benchmarks."""
    for number, line in enumerate(text.split("\n"), 1):
        if _WORD.search(line):
            # Listing what there is always works; the name of the right session stands in prose and is not guessed.
            runner = {"tox.ini": "tox", "noxfile.py": "nox"}.get(path.rsplit("/", 1)[-1], "")
            yield Bench(path, number, line.strip()[:80], f"{runner} --list" if runner else "")
            return


def _script(path: str) -> str:
    """How a file that is a benchmark by its place is usually run."""
    runners = {
        "python": "python",
        "shell": "sh",
        "ruby": "ruby",
        "php": "php",
        "javascript": "node",
        "lua": "lua",
        "perl": "perl",
    }
    runner = runners.get(language(path))
    if language(path) == "rust":
        return f"cargo bench --bench {path.rsplit('/', 1)[-1].removesuffix('.rs')}"
    return f"{runner} {path}" if runner else ""
