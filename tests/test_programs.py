"""Programs of engines: found where the operator has them, asked once a version, never the repository's own."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from agents import programs
from agents.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ENGINE = SimpleNamespace(name="told", program="told", version_argv=("--version",), help_argv=("--help",))


def install(folder: Path, version: str = "1.2.3 (Told)", *, count: Path | None = None) -> Path:
    """A program in *folder* that says *version* and counts in *count* how often it was asked."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "told"
    noted = f"echo asked >> {count}\n" if count else ""
    path.write_text(
        f'#!/bin/sh\n{noted}if [ "$1" = --version ]; then echo "{version}"; else echo "--max-turns N"; fi\n'
    )
    path.chmod(0o755)
    return path


def environ(*folders: Path | str) -> Mapping[str, str]:
    return {"PATH": os.pathsep.join(map(str, (*folders, "/usr/bin", "/bin")))}


def test_an_engine_without_a_program_needs_none(tmp_path: Path) -> None:
    assert programs.find(SimpleNamespace(name="own"), {}, tmp_path, None) is None


def test_what_a_program_says_of_itself_is_known(tmp_path: Path) -> None:
    path = install(tmp_path / "bin")
    found = programs.find(ENGINE, environ(tmp_path / "bin"), tmp_path / "repo", None)
    assert found is not None
    assert (found.path, found.version, found.help_text) == (str(path), "1.2.3 (Told)", "--max-turns N\n")


def test_it_is_asked_once_a_version(tmp_path: Path) -> None:
    count = tmp_path / "count"
    install(tmp_path / "bin", count=count)
    for _ in range(3):
        programs.find(ENGINE, environ(tmp_path / "bin"), tmp_path / "repo", tmp_path / "cache")
    assert count.read_text() == "asked\n" * 2
    install(tmp_path / "bin", "2.0.0", count=count)
    again = programs.find(ENGINE, environ(tmp_path / "bin"), tmp_path / "repo", tmp_path / "cache")
    assert again is not None
    assert again.version == "2.0.0"


@pytest.mark.parametrize("spoiled", [b"", b"[]", b"{", b'{"identity": 1}', b'{"version": "9", "help_text": "x"}'])
def test_a_spoiled_memory_is_not_believed(tmp_path: Path, spoiled: bytes) -> None:
    install(tmp_path / "bin")
    programs.find(ENGINE, environ(tmp_path / "bin"), tmp_path / "repo", tmp_path / "cache")
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_bytes(spoiled)
    found = programs.find(ENGINE, environ(tmp_path / "bin"), tmp_path / "repo", tmp_path / "cache")
    assert found is not None
    assert found.version == "1.2.3 (Told)"


def test_what_a_repository_brings_is_not_the_operators_program(tmp_path: Path) -> None:
    """P27: neither by an entry of PATH inside of it, nor by a relative one, nor by a link that leads there."""
    repo = tmp_path / "repo"
    install(repo / "bin")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "told").symlink_to(repo / "bin" / "told")
    with pytest.raises(HostError, match="not on PATH"):
        programs.find(ENGINE, environ(repo / "bin", "bin", ".", "", tmp_path / "links"), repo, None)
    own = install(tmp_path / "own")
    found = programs.find(ENGINE, environ(repo / "bin", tmp_path / "own"), repo, None)
    assert found is not None
    assert found.path == str(own)


def test_a_program_that_cannot_be_run_is_said_in_one_sentence(tmp_path: Path) -> None:
    path = install(tmp_path / "bin")
    path.write_text("#!/no/such/interpreter\n")
    with pytest.raises(HostError, match="cannot be run"):
        programs.find(ENGINE, environ(tmp_path / "bin"), tmp_path / "repo", None)


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    install(tmp_path / "bin")
    (tmp_path / "cache").write_text("a file in its place")
    assert programs.find(ENGINE, environ(tmp_path / "bin"), tmp_path / "repo", tmp_path / "cache")
