"""Rows of the table of outcomes through the real command line, with a model that says the same again and again."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from agents import views
from tests.support.ollama_server import MODEL, OllamaServer, agent_of
from tests.support.world import git

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(120)

BRANCH = "agent-box/commons"
PAGE = "workspace/cedar/page.md"
TEXT = (
    "The shop keeps what it knows in shop/db.py:1, and README.md says the same of it in the words of its makers.\n" * 3
)
WANTS = {
    "action": "goal", "content": f"Describe the shop in {PAGE}", "reasoning": "because", "worldview_update": None,
    "new_open_questions": [], "new_opinions": [], "suffering_assessment": {"new_stressors": [], "resolved": []},
}  # fmt: skip
YES = {"accomplished": True, "reason": "It does what the goal says.", "lesson": None}


def steps(*given: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"steps": [{"capability_id": name, "params": params, "rationale": "why"} for name, params in given]}


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    """A model without ideas of its own: the same goal, the same plan, the same verdict."""
    plan = steps(*[("fs_write", {"path": PAGE, "content": TEXT})] * 5)
    answers = {"existence": WANTS, "plan": plan, "semantic": YES, "fact": {"accurate": True, "reason": "It is so."}}
    with OllamaServer(models=[MODEL], answers=answers) as given:
        yield given


@pytest.fixture
def live(agent: Any, server: OllamaServer) -> Any:
    """The command line with that model; its answer as an object."""

    def run(*words: str) -> Any:
        done = agent(*words, "--json", env={"OLLAMA_HOST": server.url})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def on_commons(repo: Any) -> list[str]:
    return git(repo, "ls-tree", "-r", "--name-only", BRANCH, "--", "workspace").splitlines()


@pytest.mark.slow
def test_a_plan_that_is_always_the_same_fails_five_times_and_leaves_nothing(
    live: Any, server: OllamaServer, repo: Any
) -> None:
    """T90: 4 failures -> active; 5th -> abandoned; its file goes (T91)."""
    server.answers = {**server.answers, "semantic": {**YES, "accomplished": False, "reason": "Too thin."}}
    for number in (1, 4, 5):
        if number == 4:
            # As the seeds' files have it; two cycles more would show nothing that these do not.
            log = repo / ".agents" / "hollow" / "goals" / "cedar" / "registry.jsonl"
            last = json.loads(log.read_text().splitlines()[-1])
            last["metrics"]["artifact_check_failures"] = 3
            log.write_text(log.read_text() + json.dumps(last) + "\n")
        assert live("cycle", "cedar", "--mind", "ollama")["status"] == "DONE"
        [goal] = live("goals")
        assert (goal["failures"], goal["status"]) == (number, "abandoned" if number == 5 else "active")
        assert on_commons(repo) == ([] if number == 5 else [PAGE])
    assert server.purposes() == ["existence", "plan", "semantic"] * 3


@pytest.mark.slow
def test_what_waits_for_the_operator_is_not_pushed_out_by_what_came_after(
    live: Any, agent: Any, server: OllamaServer
) -> None:
    """T82: exactly one existence generation a cycle, and the goal that is reached waits, however many cycles follow."""
    done = live("cycle", "cedar", "--mind", "ollama")
    assert (done["status"], done["cycle"]["outcome"], done["patch"]["files"]) == ("REVIEW", "completed", 1)
    assert server.purposes() == ["existence", "plan", "semantic", "fact"]
    server.answers = {**server.answers, "plan": steps(("fs_read", {"path": "README.md"}))}
    for _ in range(2):
        live("cycle", "vault", "--mind", "ollama")
    assert [each["status"] for each in live("status")] == ["DONE", "DONE", "REVIEW"]
    assert f"./agent merge {done['id']}" in agent("status").stdout
    assert [agent_of(chat) for chat in server.chats] == ["cedar"] * 4 + ["vault"] * 4


def test_a_status_holds_what_is_open_and_the_newest_of_the_rest() -> None:
    """T136: a run that waits for review is one that status tells of."""
    rows = [{"id": f"{number:04}", "status": "DONE", "started_at": None} for number in range(30)]
    rows[25]["status"], rows[29]["status"] = "REVIEW", "ACTIVE"
    shown = views.at_hand(rows)
    assert [row["id"] for row in shown] == [*(f"{number:04}" for number in range(10)), "0025", "0029"]
    text = views.status(rows, 0.0)
    assert text.splitlines()[:2] == ["1 running, 1 waiting for review", "  0025  ./agent merge 0025"]
    assert len(re.findall(r"^DONE ", text, re.MULTILINE)) == 10


def test_a_scout_that_cites_an_empty_file_has_found_it(agent: Any, repo: Any) -> None:
    """T89: what cites the first line of a file without any claims nothing that is not so."""
    assert (repo / "shop" / "__init__.py").read_bytes() == b""
    told = agent("scout", "where is the shop?", "--engine", "hollow", "--mind", "reflex")
    assert (told.returncode, "shop/__init__.py:1" in told.stdout) == (0, True), told.stderr
    events = [json.loads(line)["event"] for line in (repo / ".agents" / "INDEX.jsonl").read_text().splitlines()]
    assert [each for each in events if each.startswith("goal.")] == ["goal.created", "goal.completed"]
