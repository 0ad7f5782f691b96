"""Fixtures of the arena: the wall of a test, and the arena behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agents import landlock
from tests.adversary.arena import Arena
from tests.support import needs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(params=["full", "none"])
def wall(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The isolation that the runs of a test get: the full one, or none at all; partial where a test asks for it."""
    if request.param == "full":
        request.getfixturevalue("walled")
    if request.param == "partial":
        if not landlock.abi():
            needs.lacking("the kernel has no Landlock")
        monkeypatch.setenv("AGENT_BOX_ISOLATION", "partial")
    return str(request.param)


@pytest.fixture
def arena(wall: str, repo: Path, tmp_path: Path, agent: Callable[..., Any]) -> Arena:
    """The repository of a test as an arena."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Arena.make(repo, scratch, wall, agent)
