"""Fixtures of a sealed world: a home of its own, no settings of this machine, no server, nothing left running."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import needs, world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from agents.context import Context

# What would let a test see the operator's own world. REQUIRE_ALL is the test runner's own word.
FORBIDDEN = ("GIT_", "CLAUDE", "ANTHROPIC", "OLLAMA", "AGENT_BOX_", "XDG_")
KEPT = {"AGENT_BOX_REQUIRE_ALL"}


@pytest.fixture(autouse=True)
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the operator's: every test has its own home, and no model server is ever reached."""
    for name in [each for each in os.environ if each.startswith(FORBIDDEN) and each not in KEPT]:
        monkeypatch.delenv(name)
    for name, folder in (("HOME", "home"), ("XDG_STATE_HOME", "state")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # The supervisor must keep its promises without a sandbox too; tests of the sandbox ask for it.
    monkeypatch.setenv("AGENT_BOX_ISOLATION", "none")
    # Port 9 (discard) is closed: a connection is refused at once.
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")


@pytest.fixture(scope="session")
def bwrap() -> None:
    """A machine on which bubblewrap makes sandboxes."""
    if why := needs.why_no_bwrap():
        needs.lacking(why)


@pytest.fixture
def walled(bwrap: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best isolation there is, which is the full one."""
    monkeypatch.delenv("AGENT_BOX_ISOLATION")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a few Python files and one commit."""
    return world.make_repo(tmp_path / "repo")


@pytest.fixture
def context(repo: Path) -> Context:
    """The context of ``repo``, as a verb gets it."""
    return world.context_of(repo)


@pytest.fixture
def agent(repo: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the real command line in ``repo`` and returns how it ended."""

    def run(
        *words: str,
        cwd: Path = repo,
        env: dict[str, str] | None = None,
        launch: Sequence[str] = world.AGENT,
        **more: Any,
    ) -> Any:
        given = {"capture_output": True, "text": True, "errors": "replace", "timeout": 100, **more}
        if "input" not in given:
            given.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([*launch, *words], cwd=cwd, env={**os.environ, **(env or {})}, **given)

    return run


@pytest.fixture
def background(repo: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts the real command line in ``repo``; at the end of the test it is killed, and its guard ends the rest."""
    with contextlib.ExitStack() as undo:

        def start(*words: str, cwd: Path = repo, env: dict[str, str] | None = None, **more: Any) -> Any:
            given = {
                "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
                "start_new_session": True, **more,
            }  # fmt: skip
            process = subprocess.Popen([*world.AGENT, *words], cwd=cwd, env={**os.environ, **(env or {})}, **given)
            undo.callback(_end, process)
            return process

        yield start


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(30)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


@pytest.fixture
def mark() -> Iterator[str]:
    """A word for the command line of what a test starts; whatever still carries it at the end is killed."""
    word = world.new_mark()
    yield word
    world.end_tree_of(word)
