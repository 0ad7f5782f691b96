"""The real programs through the whole box: `./agent fix --engine claude`, killed, resumed, merged."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import install
from tests.engines.loopback import Turn
from tests.engines.messages_api import MessagesServer
from tests.engines.responses_api import ResponsesServer
from tests.engines.stage import NOWHERE
from tests.engines.test_codex_real import CONFIG, shell
from tests.support.world import eventually, git, ledger_of, meta_of, published, state_of, stream_of

if TYPE_CHECKING:
    from collections.abc import Callable

EDITED = "def connect():\n    return {'a': 1}\n"


@pytest.fixture(scope="session")
def claude() -> Path:
    """The real Claude Code."""
    return install.require(install.CLAUDE)


@pytest.fixture(scope="session")
def codex() -> Path:
    """The real Codex."""
    return install.require(install.CODEX)


def operator(program: Path, server: MessagesServer | ResponsesServer | None = None) -> dict[str, str]:
    """The operator's environment: the program on PATH, a key that opens nothing, an endpoint on loopback and no way out."""
    url = server.url if server else "http://127.0.0.1:9"
    return {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-of-nobody", "CODEX_API_KEY": "sk-of-nobody", "CLAUDE_CODE_MAX_RETRIES": "1", **NOWHERE,
    }  # fmt: skip


def tree_of(repo: Path) -> Path:
    """The airlock of the latest run."""
    return repo / state_of(repo)["worktree_path"]


def writes(tree: Path) -> list[tuple[str, dict[str, Any]]]:
    """Calls that read a file of the shop and write another content into it."""
    return [("Write", {"file_path": str(tree / "shop" / "db.py"), "content": EDITED})]


def airlock(body: dict[str, Any]) -> Path:
    """Where the agent works, as its own request says: the run's name is not known before."""
    text = str(body["messages"]) + str(body.get("system"))
    found = [word.strip("'\"\\,") for word in text.replace("\\n", " ").split() if "agent_box/trees/" in word]
    assert found, text[:3000]
    return Path(found[0])


class Agent(MessagesServer):
    """A model that edits the shop wherever its airlock is: reads, writes, and then says that it is done."""

    halt: bool = False
    """Whether it falls silent after the edit."""

    def turn(self, number: int) -> Turn:
        tree = airlock(self.chats[-1])
        steps = [
            Turn(text="Looking.", calls=[("Read", {"file_path": str(tree / "shop" / "db.py")})]),
            Turn(calls=writes(tree)),
            Turn(delay=100) if self.halt else Turn(text="Connected.", output_tokens=25),
        ]
        return steps[min(number, 2)]


def approval(repo: Path) -> str:
    """What a human would type who has seen the patch."""
    return hashlib.sha256((repo / ".agents" / "latest" / "changes.patch").read_bytes()).hexdigest()[:8]


@pytest.mark.usefixtures("walled")
def test_claude_fixes_and_a_human_merges(agent: Callable[..., Any], repo: Path, claude: Path) -> None:
    """T126: the checkout is untouched until the merge; T136: a patch ends in REVIEW; T149: the hash merges it."""
    with Agent() as server:
        done = agent("fix", "connect to something", "--engine", "claude", env=operator(claude, server))
    assert done.returncode == 0, done.stderr
    state, meta = state_of(repo), meta_of(repo)
    assert (state["status"], state["failure"], state["isolation"]) == ("REVIEW", None, "full")
    assert (repo / "shop" / "db.py").read_text() == "def connect():\n    return {}\n"
    assert git(repo, "status", "--porcelain") == ""
    assert (meta["engine"], meta["engine_version"][:7]) == ("claude", install.CLAUDE.version)
    assert state["usage"]["output_tokens"] == 45
    assert "Connected." in (repo / ".agents" / "latest" / "report.md").read_text()
    init = json.loads(stream_of(repo).split(b"\n")[0])
    assert f"run-{meta['short_id']}:scout_{meta['short_id']}" in init["slash_commands"]
    assert published(repo) == []
    merged = agent("merge", "latest", "--approve", approval(repo))
    assert merged.returncode == 0, merged.stderr
    assert state_of(repo)["status"] == "MERGED"
    assert (repo / "shop" / "db.py").read_text() == EDITED


@pytest.mark.usefixtures("walled")
def test_claude_killed_in_the_middle_resumes_in_its_airlock_and_is_merged(
    agent: Callable[..., Any], background: Callable[..., Any], repo: Path, claude: Path
) -> None:
    """T143: CRASHED after SIGKILL, then the same session and airlock; the patch holds what was done before the kill."""
    with Agent() as server:
        server.halt = True
        box = background("fix", "connect to something", "--engine", "claude", env=operator(claude, server))
        eventually(lambda: len(server.chats) >= 3, 60)
        os.kill(state_of(repo)["pid"], signal.SIGKILL)
        box.wait(60)
        crashed, tree = state_of(repo), tree_of(repo)
        assert crashed["status"] == "CRASHED"
        assert (tree / "shop" / "db.py").read_text() == EDITED
        server.halt = False
        done = agent("resume", "latest", "and be quick", env=operator(claude, server))
        assert done.returncode == 0, done.stderr
        assert "and be quick" in server.words()
    state = state_of(repo)
    assert (state["status"], state["session_id"], tree_of(repo)) == ("REVIEW", crashed["session_id"], tree)
    assert agent("merge", "latest", "--approve", approval(repo)).returncode == 0
    assert (repo / "shop" / "db.py").read_text() == EDITED
    assert [entry["event"] for entry in ledger_of(repo)][-1] == "run.merged"


@pytest.mark.parametrize(
    ("turn", "words", "kind"),
    [
        (Turn(status=401, error="no such key"), (), "tool_error"),
        (Turn(text="Again.", calls=[("Glob", {"pattern": "*"})]), ("--max-turns", "1"), "budget"),
    ],
    ids=["no key", "no turns left"],
)
def test_what_ends_badly_is_told_as_what_it_was(
    agent: Callable[..., Any], repo: Path, claude: Path, turn: Turn, words: tuple[str, ...], kind: str
) -> None:
    """T137: CRASHED with the kind of failure, whatever the program's exit code says."""
    with MessagesServer(turns=[turn] * 5) as server:
        done = agent("scout", "what is here?", "--engine", "claude", *words, env=operator(claude, server))
    assert done.returncode == 3
    assert (state_of(repo)["status"], state_of(repo)["failure"]["kind"]) == ("CRASHED", kind)


@pytest.mark.usefixtures("walled")
def test_codex_fixes_and_ends_in_review(agent: Callable[..., Any], repo: Path, codex: Path) -> None:
    """T136: the same way for the other program; T126: the checkout is untouched."""
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: shop/db.py\n@@\n-    return {}\n+    return {'a': 1}\n*** End Patch\nEOF\n"
    with ResponsesServer(
        turns=[
            Turn(calls=shell(patch)),
            Turn(calls=shell("sleep 0.2; ls; cat .git; ls ../.. ; echo x > ../../evil")),
            "Connected.",
        ]
    ) as server:
        own = Path(os.environ["HOME"]) / ".config" / "agent-box" / "codex.toml"
        own.parent.mkdir(parents=True)
        own.write_text(CONFIG.format(url=server.url))
        done = agent("fix", "connect to something", "--engine", "codex", "--timeout", "60s", env=operator(codex))
    assert done.returncode == 0, done.stderr
    state = state_of(repo)
    assert state["status"] == "REVIEW"
    assert (tree_of(repo) / "shop" / "db.py").read_text() == EDITED
    assert git(repo, "status", "--porcelain") == ""
    assert not (repo / "agent_box" / "evil").exists()
    assert "Connected." in (repo / ".agents" / "latest" / "report.md").read_text()
    assert state["session_id"]


def test_a_program_that_is_not_installed_is_named_with_what_to_type(agent: Callable[..., Any], repo: Path) -> None:
    """T137: nothing is begun without it."""
    done = agent("scout", "what is here?", "--engine", "codex", env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 4
    assert "codex" in done.stderr
    assert not (repo / ".agents" / "latest").exists()
