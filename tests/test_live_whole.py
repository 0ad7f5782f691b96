"""The agents' life as the operator has it: the real command line, a model server that stands in, a small repository."""

from __future__ import annotations

import hashlib
import json
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hollow.memory.memory import Memory
from hollow.substrate.model import AGENTS, GoalStatus
from tests.support.ollama_server import EMBEDDING_MODEL, MODEL, OllamaServer, Turn, agent_of
from tests.support.thinkers import Clever
from tests.support.world import boxes, eventually, git, state_of, tree_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BRANCH = "agent-box/commons"
TRUST = {"AGENT_BOX_TRUST_UNSANDBOXED": "1"}


def checkout(repo: Path) -> tuple[str, ...]:
    """All that is the operator's: commit, branch, index, state of the files."""
    words = (["rev-parse", "HEAD"], ["symbolic-ref", "HEAD"], ["ls-files", "--stage"], ["status", "--porcelain"])
    return tuple(git(repo, *each) for each in words)


def on_commons(repo: Path) -> list[str]:
    return git(repo, "ls-tree", "-r", "--name-only", BRANCH, "--", "workspace", "design").splitlines()


def test_thirty_cycles_leave_a_verified_ledger_documents_and_a_dashboard(agent, repo):
    """T82: every generation of thirty cycles is asked for with a schema; their traces are whole, and all is the agents' own."""
    before = checkout(repo)
    with OllamaServer(models=[MODEL, EMBEDDING_MODEL], answers=Clever().answers) as server:
        lived = agent("live", "--cycles", "30", "--heartbeat", "0s", env={"OLLAMA_HOST": server.url}, timeout=200)
        assert (lived.returncode, lived.stdout.splitlines()[0]) == (0, "30 cycles"), lived.stderr
        # One line for each cycle on its way, and none of them came to grief.
        ends = [line.split()[2] for line in lived.stderr.splitlines() if line.startswith(AGENTS)]
        assert set(ends) == {"DONE", "REVIEW"}, lived.stderr
        _look_at_the_requests(server)
    verified = agent("verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert {path.split("/")[1] for path in on_commons(repo)} == set(AGENTS)
    assert checkout(repo) == before
    assert len(boxes(repo)) == 30
    assert git(repo, "worktree", "list").count("\n") == 1
    head = (repo / ".agents" / "INDEX.md").read_text().partition("# Runs")[0]
    assert [line.split()[:2] for line in head.splitlines() if " load " in line] == [[each, "load"] for each in AGENTS]
    _merge(agent, repo, lived.stdout.split()[-1])


def _look_at_the_requests(server: OllamaServer) -> None:
    purposes = server.purposes()
    assert purposes.count("existence") == 30
    assert "" not in purposes
    for chat in server.chats:
        assert chat["format"]["type"] == "object"
        assert chat["format"]["properties"]
        assert chat["options"]["num_ctx"] >= 8192
    unloads = [each.body for each in server.requests if each.path == "/api/generate"]
    assert unloads[-1] == {"model": MODEL, "keep_alive": 0}
    assert MODEL not in server.loaded


def _merge(agent: Any, repo: Path, short_id: str) -> None:
    """A goal that passed the gate: its patch holds all of it, and merges."""
    box = next(each for each in boxes(repo) if each.name.endswith(f"__{short_id}"))
    patch = (box / "changes.patch").read_bytes()
    assert state_of(repo, box)["status"] == "REVIEW"
    merged = agent("merge", short_id, "--approve", hashlib.sha256(patch).hexdigest()[:8], env=TRUST)
    assert merged.returncode == 0, merged.stderr
    made = [line.removeprefix(b"+++ b/").decode() for line in patch.splitlines() if line.startswith(b"+++ b/")]
    # Two cycles of a page and the notes on it, and the goal's patch has them all.
    assert len(made) >= 3
    assert all((repo / path).is_file() for path in made)


class Hanging(Clever):
    """The same agents, whose second plan is long in coming as long as :attr:`hold` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.hold = threading.Event()
        self.hold.set()
        self.planned: set[str] = set()
        self.waiting: set[str] = set()

    def plan(self, body: dict[str, Any]) -> Any:
        name = agent_of(body)
        if self.hold.is_set() and name in self.planned:
            self.waiting.add(name)
            return Turn(text="{}", delay=60.0)
        self.planned.add(name)
        return super().plan(body)


def test_a_stop_in_the_middle_loses_nothing(agent, background, repo):
    """T81: asked to stop within a cycle, it stops; what the goals had gained is where the next life begins."""
    clever = Hanging()
    before = checkout(repo)
    with OllamaServer(models=[MODEL, EMBEDDING_MODEL], answers=clever.answers) as server:
        env = {"OLLAMA_HOST": server.url, "AGENT_BOX_GRACE": "2s"}
        alive = background("live", "--agents", "cedar,vault", "--heartbeat", "0s", env=env)
        eventually(lambda: clever.waiting == {"cedar", "vault"}, 90.0)
        alive.send_signal(signal.SIGTERM)
        assert alive.wait(60) == 2
        eventually(lambda: not tree_of(str(repo)), 10.0)
        assert MODEL not in server.loaded
        memory = Memory(repo / ".agents" / "hollow")
        begun = {name: memory.goals.active(name) for name in ("cedar", "vault")}
        assert {name: goal and goal.progress for name, goal in begun.items()} == {"cedar": 700, "vault": 700}
        clever.hold.clear()
        again = agent("live", "--agents", "cedar,vault", "--cycles", "2", "--heartbeat", "0s", env=env)
        assert again.returncode == 0, again.stderr
    for name, goal in begun.items():
        after = memory.goals.get(name, goal.goal_id)
        assert (after.status, after.progress) == (GoalStatus.COMPLETED, 1000)
    shown = [chat["messages"][0]["content"] for chat in server.chats if "suffering_assessment" in str(chat["format"])]
    assert all("progress 0.70 of 1.00" in each for each in shown[-2:])
    assert agent("verify").returncode == 0
    assert checkout(repo) == before
    assert git(repo, "worktree", "list").count("\n") == 1


REACH = """\
echo mine > workspace/cedar/mine.md; echo other > workspace/vault/x; echo top > top.txt; echo m > {memory}/mine
ls -A .agents {memory} 2>&1; cat {memory}/tools/key 2>&1; git config user.name evil 2>&1; true"""
TOOL = "def word_count(text='', **kwargs):\n    return {'words': len(text.split())}\n"


def test_behind_the_full_wall_a_cycle_reaches_what_is_its_own_and_nothing_else(agent, walled, repo):
    """T103: a tool is made and called in one plan. T24: neither a shell nor a tool sees what the environment remembers."""
    memory = repo / ".agents" / "hollow"
    peek = f"import os; print(os.path.exists({str(memory / 'tools')!r}))"
    plan = [
        ("shell_exec", {"command": REACH.format(memory=memory)}),
        ("test_exec", {"code": peek}),
        ("synthesize_capability", {"name": "word_count", "description": "Count words", "implementation": TOOL}),
        ("word_count", {"text": "one two three"}),
        ("fs_write", {"path": "/agentOS/agents/core.py", "content": "x"}),
    ]
    steps = [{"capability_id": name, "params": given, "rationale": "to see"} for name, given in plan]
    answers = {**Clever().answers, "plan": {"steps": steps}}
    with OllamaServer(models=[MODEL, EMBEDDING_MODEL], answers=answers) as server:
        done = agent("cycle", "cedar", "--mind", "ollama", "--json", env={"OLLAMA_HOST": server.url}, timeout=120)
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in (repo / ".agents/latest/raw/stream.jsonl").read_text().splitlines()]
    results = [each["message"]["content"][0]["content"] for each in said if each["type"] == "user"]
    assert state_of(repo)["isolation"] == "full"
    assert on_commons(repo) == ["workspace/cedar/mine.md"]
    assert (memory / "tools" / "key").read_bytes() not in (repo / ".agents/latest/raw/stream.jsonl").read_bytes()
    assert "False" in results[1]
    assert '"status": "deployed"' in results[2]
    assert "3" in results[3]
    assert not (memory / "mine").exists()
    assert not (repo / "agents").exists()
    assert b"evil" not in (repo / ".git" / "config").read_bytes()
