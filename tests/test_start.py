"""What keeps a start short: packages, patterns, digests, JSON and copies do what those that they stand in for would."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import pkgutil
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agents
import hollow
from agents import copies, plainjson
from essentials import digests
from essentials.patterns import late
from tests.support.cli import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = [
    each.name
    for package in (agents, hollow)
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not each.name.endswith(("__main__", "forge_child"))
]
SIZES = [0, 1, digests.LARGE - 1, digests.LARGE, digests.LARGE + 1, 3 * digests.LARGE]


def expressions(value: object) -> Iterator[Any]:
    """The late expressions in *value*, a table of a module."""
    if type(value) is type(late("")):
        yield value
    elif isinstance(value, tuple | list | frozenset):
        for each in value:
            yield from expressions(each)
    elif isinstance(value, Mapping):
        yield from expressions(tuple(value.values()))


def alone(code: str) -> str:
    """What *code* prints in a Python as the launcher starts it."""
    begin = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from essentials import packages\n"
    done = subprocess.run([sys.executable, "-IS", "-c", begin + code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestPackages:
    def test_what_python_brings_and_what_is_ours_need_no_site_folder(self):
        code = (
            "packages.defer()\nimport json, agents.errors\n"
            "for name in ('msvcrt', 'agents.nothing', 'essentials.nothing', 'hollow.nothing'):\n"
            "    try: __import__(name)\n    except ModuleNotFoundError as why: print(why.name)\n"
            "print('site' in sys.modules)"
        )
        assert alone(code).split() == ["msvcrt", "agents.nothing", "essentials.nothing", "hollow.nothing", "False"]

    def test_a_package_of_others_is_found_at_its_first_import(self):
        code = "packages.defer()\nimport yaml.nodes, typer\nprint(yaml.__name__, typer.__name__, 'site' in sys.modules)"
        assert alone(code).split() == ["yaml", "typer", "True"]

    def test_what_is_nowhere_is_said_as_ever(self):
        code = (
            "packages.defer()\n"
            "for _ in range(2):\n"
            "    try: import nowhere_to_be_found.at_all\n    except ImportError as why: print(type(why).__name__, why.name)"
        )
        assert alone(code).splitlines() == ["ModuleNotFoundError nowhere_to_be_found"] * 2

    def test_asked_for_everything_it_looks_once(self):
        code = (
            "packages.defer()\nbefore = len(sys.path)\npackages.complete()\nafter = list(sys.path)\n"
            "packages.complete()\nimport typer\nprint(len(after) > before, after == sys.path)"
        )
        assert alone(code).split() == ["True", "True"]


class TestPatterns:
    @pytest.mark.parametrize("name", NAMES)
    def test_every_expression_of_a_module_can_be_compiled(self, name):
        """A fault in one would show at its first use only."""
        for value in vars(importlib.import_module(name)).values():
            for each in expressions(value):
                assert isinstance(each.fullmatch.__self__, re.Pattern)

    def test_all_of_hollows_tables_are_looked_through(self):
        """What no variable of a module leads to would not be tried by the test above."""
        found = sum(
            1 for name in NAMES for value in vars(importlib.import_module(name)).values() for _ in expressions(value)
        )
        assert found > 190

    @pytest.mark.parametrize("flags", [0, re.IGNORECASE, re.VERBOSE | re.IGNORECASE])
    def test_it_answers_as_a_compiled_one(self, flags):
        text = r"(?P<word> a+ ) b"
        mine, other = late(text, flags), re.compile(text, flags)
        for said in ("", "aab", "xAAB", " aa  b aab"):
            for ask in ("search", "match", "fullmatch", "findall"):
                assert repr(getattr(mine, ask)(said)) == repr(getattr(other, ask)(said))
            assert mine.sub("-", said) == other.sub("-", said)
        assert (mine.pattern, mine.flags) == (other.pattern, other.flags)
        assert late(rb"\x00+").sub(b"", b"a\0\0b") == b"ab"


class TestDigests:
    @pytest.mark.parametrize("size", SIZES)
    def test_of_bytes_and_of_files_they_are_those_of_hashlib(self, size, tmp_path):
        data = os.urandom(size)
        (tmp_path / "file").write_bytes(data)
        expected = hashlib.sha256(data).hexdigest()
        assert digests.sha256(data).hexdigest() == expected
        with (tmp_path / "file").open("rb") as file:
            assert digests.of_file(file) == expected
        assert digests.sha1(data, usedforsecurity=False).digest() == hashlib.sha1(data).digest()
        assert digests.blake2b(data, digest_size=8).digest() == hashlib.blake2b(data, digest_size=8).digest()

    @given(pieces=st.lists(st.binary(max_size=200), max_size=5))
    def test_one_can_be_gone_on_with(self, pieces):
        made = digests.sha256()
        for piece in pieces:
            made.update(piece)
        assert made.hexdigest() == hashlib.sha256(b"".join(pieces)).hexdigest()

    def test_what_is_small_costs_no_openssl(self):
        code = (
            "import io\nfrom essentials import digests\ndigests.sha256(b'x')\n"
            "digests.of_file(io.BufferedReader(io.BytesIO(b'x')))\nprint('_hashlib' in sys.modules)"
        )
        assert alone(code).split() == ["False"]

    def test_a_file_is_read_from_its_beginning_to_its_end(self):
        data = bytes(range(256)) * (digests.LARGE // 128)
        assert digests.of_file(io.BufferedReader(io.BytesIO(data))) == hashlib.sha256(data).hexdigest()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def told(read: Any, data: bytes) -> str:
    try:
        return repr(read(data))
    except (ValueError, RecursionError) as why:
        return f"{type(why).__name__}: {why}"


class TestPlainJson:
    @given(value=JSON, ascii_=st.booleans(), coding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32-le"]))
    def test_of_every_value_it_is_what_json_says(self, value, ascii_, coding):
        data = f" {json.dumps(value, ensure_ascii=ascii_)}\n".encode(coding, "surrogatepass")
        assert told(plainjson.loads, data) == told(json.loads, data)

    @given(value=JSON, at=st.integers(0, 60), put=st.binary(max_size=3), drop=st.integers(0, 3))
    def test_of_what_is_damaged_too(self, value, at, put, drop):
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        data = data[:at] + put + data[at + drop :]
        assert told(plainjson.loads, data) == told(json.loads, data)

    @pytest.mark.parametrize(
        "data",
        [
            b"", b" ", b"{} {}", b"\xff", b"[1e999, -0, -0.0, 1E5]", b"[NaN, Infinity, -Infinity]", b"[" * 100_000, b"\x0b1",
            b'"\t"', b'{"a":1,"a":2}', b'"\\ud800"', b"\xed\xa0\x80", b'"\xed\xa0\x80"', b"01", b"-", b"9" * 5000,
        ],
    )  # fmt: skip
    def test_at_the_edges(self, data):
        assert told(plainjson.loads, data) == told(json.loads, data)

    def test_a_plain_line_is_read_without_json(self):
        code = "from agents import plainjson\nprint(plainjson.loads(b'{\"a\": [1, 2.5, null]}'), 'json' in sys.modules)"
        assert alone(code).strip() == "{'a': [1, 2.5, None]} False"


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o400])
@pytest.mark.parametrize("size", [0, 5, 3 * 1024 * 1024 + 1])
def test_a_copy_is_the_same_to_the_nanosecond(size: int, mode: int, tmp_path: Path) -> None:
    """As `shutil.copy2` makes it, also over what is there and through a link."""
    source, target, other = tmp_path / "source", tmp_path / "target", tmp_path / "other"
    source.write_bytes(os.urandom(size))
    source.chmod(mode)
    os.utime(source, ns=(1_700_000_000_123_456_789, 1_700_000_001_987_654_321))
    (tmp_path / "link").symlink_to("source")
    target.write_bytes(b"what was there before" * 10)
    copies.copy(tmp_path / "link", target)
    shutil.copy2(source, other)
    assert target.read_bytes() == source.read_bytes()
    for attribute in ("st_mode", "st_mtime_ns", "st_size"):
        assert getattr(target.stat(), attribute) == getattr(other.stat(), attribute)
    assert stat.S_IMODE(target.stat().st_mode) == mode
