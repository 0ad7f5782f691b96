"""Bytecode is there before an agent starts that could not keep any."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.world import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

TAG = sys.implementation.cache_tag


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package with a module above and one below, and one that does not compile."""
    (tmp_path / "pack/deep").mkdir(parents=True)
    (tmp_path / "pack/one.py").write_text("X = 1\n")
    (tmp_path / "pack/deep/two.py").write_text("X = 2\n")
    (tmp_path / "pack/notes.txt").write_text("x\n")
    return tmp_path / "pack"


def keep(folder: Path, **environ: str) -> None:
    """Call it in a Python that may write bytecode; the one of the tests may have been told not to."""
    code = f"import pathlib\nfrom agents import bytecode\nbytecode.keep(pathlib.Path({str(folder)!r}))"
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | environ
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def compiled(folder: Path) -> dict[str, int]:
    """Bytecode below *folder* to when it was written (ns)."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*.pyc")}


BOTH = {f"__pycache__/one.{TAG}.pyc", f"deep/__pycache__/two.{TAG}.pyc"}


def test_every_module_is_compiled_once(folder: Path) -> None:
    keep(folder)
    first = compiled(folder)
    assert set(first) == BOTH
    keep(folder)
    assert compiled(folder) == first


def test_what_is_newer_than_its_bytecode_is_compiled_again(folder: Path) -> None:
    keep(folder)
    first = compiled(folder)
    (folder / "one.py").write_text("X = 11111\n")
    keep(folder)
    second = compiled(folder)
    assert {name for name in second if second[name] != first[name]} == {f"__pycache__/one.{TAG}.pyc"}


def test_a_module_that_does_not_compile_stops_nobody(folder: Path) -> None:
    (folder / "bad.py").write_text("def\n")
    keep(folder)
    assert set(compiled(folder)) >= BOTH


def test_nothing_is_written_where_bytecode_is_not_wanted(folder: Path) -> None:
    keep(folder, PYTHONDONTWRITEBYTECODE="1")
    keep(folder, PYTHONPYCACHEPREFIX=str(folder.parent / "elsewhere"))
    assert compiled(folder) == {}


def test_a_folder_that_is_gone_stops_nobody(tmp_path: Path) -> None:
    keep(tmp_path / "gone")


def test_a_walled_run_of_hollow_leaves_it_compiled(tmp_path: Path, repo: Path) -> None:
    """Issue 5: in the sandbox hollow cannot keep bytecode, so every run compiled all of it anew."""
    box = tmp_path / "box"
    for name in ("agents", "essentials", "hollow"):
        shutil.copytree(PROJECT / name, box / name, ignore=shutil.ignore_patterns("__pycache__"))
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    words = [sys.executable, "-IS", str(box / "agents/__main__.py"), "scout", "where is x", "--mind", "reflex"]
    done = subprocess.run(words, cwd=repo, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in ("hollow", "essentials"):
        sources = {path.stem for path in (box / name).glob("*.py")}
        assert {path.name.partition(".")[0] for path in (box / name / "__pycache__").iterdir()} == sources
