"""Folders go at once, whatever is in them, and nothing of them stays."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from agents.trash import LARGE, discard
from tests.support import world

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    folder = tmp_path / "staging"
    folder.mkdir()
    return folder


def filled(folder: Path, count: int) -> Path:
    """A *folder* with *count* files, a hundred in each of its own."""
    for number in range(count):
        part = folder / str(number // 100)
        if number % 100 == 0:
            part.mkdir(parents=True)
        (part / str(number)).touch()
    return folder


def test_a_small_folder_is_gone_with_all_that_is_in_it(staging: Path, tmp_path: Path) -> None:
    folder = filled(tmp_path / "tree", 120)
    (folder / "locked").mkdir(mode=0)
    discard(folder, staging)
    assert not folder.exists()
    assert list(staging.iterdir()) == []


def test_a_large_folder_is_out_of_the_way_at_once_and_emptied_behind_the_operators_back(
    staging: Path, tmp_path: Path
) -> None:
    """G39: what is on its way out lies where a sweep finds it, and is young, so that no sweep does the work again."""
    kept = tmp_path / "kept"
    kept.write_text("mine")
    folder = filled(tmp_path / "tree", LARGE + 1)
    (folder / "link").symlink_to(tmp_path)
    os.utime(folder, (0, 0))
    discard(folder, staging)
    assert not folder.exists()
    assert all(time.time() - grave.lstat().st_mtime < 300 for grave in staging.iterdir())
    world.eventually(lambda: not list(staging.iterdir()), 60)
    assert kept.read_text() == "mine"


@pytest.mark.parametrize("what", ["nothing", "a link", "a file"])
def test_what_is_no_folder_goes_without_what_it_leads_to(what: str, staging: Path, tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "tree", filled(tmp_path / "elsewhere", 3)
    if what == "a link":
        path.symlink_to(elsewhere)
    elif what == "a file":
        path.touch()
    discard(path, staging)
    assert not os.path.lexists(path)
    assert len(list((elsewhere / "0").iterdir())) == 3
    assert list(staging.iterdir()) == []


def test_without_a_place_to_move_it_to_it_goes_where_it_stands(tmp_path: Path) -> None:
    folder = filled(tmp_path / "tree", 120)
    discard(folder, tmp_path / "not there")
    assert not folder.exists()
    assert not (tmp_path / "not there").exists()
