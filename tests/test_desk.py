"""The supervisor's side of the desk: hollow is asked in a process of its own, and what is decided is in the ledger."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents import desk, glance, locks, policy
from agents.context import prepare
from agents.errors import BoxError, HostError, OperatorError, Tampered
from agents.lockorder import Rank
from essentials import records
from hollow.desk import backup
from tests.support import world
from tests.support.boxes import claimed

NAME = "req-4ba31dbfc04c"


def placed(context, *more: dict[str, Any]) -> None:
    """Put a request of cedar's into the queue, as the agent would."""
    line = {"request_id": NAME, "timestamp": "2026-05-02 08:40:08", "description": "Add a docstring to shop/cart.py",
            "spec": "One line.", "design_path": "", "request_type": "implement", "status": "pending",
            "agent_id": "cedar"}  # fmt: skip
    context.layout.memory.mkdir(parents=True, exist_ok=True)
    lines = [line, *more]
    (context.layout.memory / "claude_requests.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))


def responses(context) -> list[dict[str, Any]]:
    path = context.layout.memory / "claude_responses.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told(context) -> list[tuple[str, Any]]:
    """What the ledger says of requests."""
    return [
        (entry["event"], entry["facts"]) for entry in context.journal.entries() if entry["event"].startswith("request.")
    ]


def test_an_answer_is_in_the_queue_and_in_the_ledger(context):
    """T11: fulfilled at the desk, in claude_responses.jsonl, and an event that whoever reads the ledger finds."""
    placed(context)
    row = desk.answered(context, ["requests", "fulfil", NAME, "--result", "-"], "it is there")
    assert (row["status"], row["agent"]) == ("fulfilled", "cedar")
    assert [(line["request_id"], line["status"], line["result"]) for line in responses(context)] == [
        (NAME, "fulfilled", "it is there")
    ]
    assert told(context) == [("request.answered", {"request_id": NAME, "status": "fulfilled", "agent": "cedar"})]


def test_a_refused_answer_is_in_neither(context):
    """T11: the sentence and the fault are hollow's own, with what to type next."""
    placed(context)
    with pytest.raises(OperatorError) as why:
        desk.answered(context, ["requests", "fulfil", "req-4ba31dbfc04d", "--result", "-"], "x")
    assert why.value.message == "There is no request req-4ba31dbfc04d."
    assert why.value.hint == f"Did you mean {NAME}? Type: ./agent requests"
    assert (responses(context), told(context)) == ([], [])


@pytest.mark.parametrize(("code", "said", "expected"), [
    (2, "hollow: No.\n  Type: x\n", (OperatorError, "No.", "Type: x")),
    (4, "! memory.damaged: file a\nhollow: It is full.\n", (HostError, "It is full.", "")),
    (5, "hollow: Changed.\n", (Tampered, "Changed.", "")),
    (9, "", (HostError, "hollow ended with exit code 9.", "")),
    (-9, "Traceback\nKilled", (HostError, "Killed", "")),
])  # fmt: skip
def test_hollows_refusals_are_the_boxs_own_errors(code, said, expected):
    fault = desk._fault(code, said)
    assert (type(fault), fault.message, fault.hint) == expected


def test_the_repository_has_no_say_in_what_is_asked(context):
    """T24: a module of the repository, or a variable of the caller's, is not hollow's."""
    (context.repo.root / "hollow").mkdir()
    (context.repo.root / "hollow" / "__init__.py").write_text("print('mine')\n")
    (context.repo.root / "typer.py").write_text("print('mine')\n")
    hostile = {**context.environ, "PYTHONPATH": str(context.repo.root), "PYTHONSTARTUP": "x", "AGENT_BOX_MARK": "x"}
    said = desk.ask(records.replace(context, environ=hostile), ["requests", "list", "--repo", str(context.repo.root)])
    assert said == "No request is open."


def test_damage_is_told_to_the_operator(repo):
    """T21: a broken line in the queue is said beside the answer."""
    said: list[str] = []
    context = world.context_of(repo, said=said)
    placed(context)
    with (context.layout.memory / "claude_requests.jsonl").open("a") as file:
        file.write("not json\n")
    rows = json.loads(desk.ask(context, ["requests", "list", "--repo", str(repo), "--json"]))
    assert [row["request_id"] for row in rows] == [NAME]
    assert said == ["! memory.malformed: file claude_requests.jsonl, lines 1"]


def test_inside_of_a_run_nothing_is_decided(context):
    """T24: as the gate, so the desk."""
    with pytest.raises(OperatorError, match="inside of a run"):
        desk.outside(context, lambda _context: "This is inside of a run: it is a test.")
    desk.outside(context, lambda _context: None)


VERBS = [["requests", "fulfil", NAME, "--result", "yes"], ["requests", "reject", NAME, "--reason", "no"],
         ["requests", "run", NAME, "--mind", "reflex"], ["tell", "obey"], ["hollow", "restore", "x"]]  # fmt: skip


@pytest.mark.parametrize("words", VERBS, ids=lambda words: words[-3] if len(words) > 2 else words[0])
def test_an_agent_is_refused_at_every_verb_that_decides(context, agent, words):
    """T24: the mark of a run is enough, and nothing has changed."""
    placed(context)
    done = agent(*words, env={"AGENT_BOX_RUN": "x"})
    assert done.returncode == 2
    assert done.stderr.startswith("agent: This is inside of a run: AGENT_BOX_RUN is set.\n  Only the operator may")
    assert (responses(context), told(context), world.boxes(context.repo.root)) == ([], [], [])


def test_restore_waits_for_nobody(context, tmp_path):
    """A memory that is in use is not exchanged, and nobody begins a cycle meanwhile."""
    prepare(context)
    for path, rank in (
        (context.layout.live_lock, Rank.LIVE),
        (context.layout.agent_lock(policy.AGENTS[-1]), Rank.AGENT),
    ):
        held = locks.Lock(path, rank)
        assert held.acquire(timeout=0)
        with pytest.raises(OperatorError, match="The agents live"), desk.quiet(context):
            pytest.fail("it was quiet")
        held.release()
    with desk.quiet(context):
        assert not locks.Lock(context.layout.live_lock, Rank.LIVE).acquire(timeout=0)
    assert locks.Lock(context.layout.live_lock, Rank.LIVE).acquire(timeout=0)


def test_what_a_restore_that_was_killed_has_left_is_said(context, agent, tmp_path):
    """`status` and `doctor` say it, and what to type; while a restore goes on, and after the next one, there is nothing."""
    prepare(context)
    memory, data = context.layout.memory, context.layout.data
    (memory / "identity").mkdir(parents=True)
    (memory / "claude_requests.jsonl").touch()
    kept = tmp_path / "kept.tar.gz"
    assert agent("hollow", "backup", str(kept)).returncode == 0
    seen: list[list[str]] = []

    def looks(*_: object) -> bool:
        seen.append(glance.set_aside(str(data)))
        return False

    backup.restore(memory, kept, looks)
    assert [len(names) for names in seen] == [1]
    assert glance.set_aside(str(data)) == []
    # As the kill leaves it: with and without the memory in its place.
    left = data / seen[0][0]
    left.mkdir()
    there = "may be the old one or the restored one, and"
    for what in (f"{there} .agents/{left.name} is left.", "is not in its place"):
        done = agent("status")
        assert f"A restore of the agents' memory was cut off: it {what}" in done.stderr
        assert "Type: ./agent hollow restore FILE" in done.stderr
        checks = {each["name"]: each for each in json.loads(agent("doctor", "--json").stdout)}
        assert what in checks["memory"]["found"]
        assert checks["memory"]["remedy"] == "./agent hollow restore FILE"
        with locks.Lock(context.layout.live_lock, Rank.LIVE):
            assert "was cut off" not in agent("status").stderr
        memory.rename(tmp_path / "gone") if memory.is_dir() else None
    assert agent("hollow", "restore", str(kept)).returncode == 0
    assert "was cut off" not in agent("status").stderr
    assert "memory" not in {each["name"] for each in json.loads(agent("doctor", "--json").stdout)}


def test_a_run_that_uses_the_memory_is_waited_for(context):
    """Any run of the engine hollow may write there, not only a cycle."""
    prepare(context)
    made, owner = claimed(context, "a1b2", run_type="scout", engine="hollow")
    try:
        with pytest.raises(OperatorError, match=f"Run {made.meta.run_name} is going on."), desk.quiet(context):
            pytest.fail("it was quiet")
    finally:
        owner.release()


def test_a_request_becomes_a_run_and_both_know(context, agent):
    """T11: a boxed fix with the request's words as its task; the answer names the run."""
    placed(context)
    done = agent("requests", "run", NAME, "--engine", "hollow", "--mind", "reflex", "--json")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)["run"]
    task = world.meta_of(context.repo.root)["task"]
    assert task.startswith("Add a docstring to shop/cart.py\n")
    assert NAME in task
    assert "One line." in task
    assert told(context) == [("request.run", {"request_id": NAME, "run": run})]
    assert desk.request(context, NAME)["runs"] == [run]
    row = desk.answered(context, ["requests", "fulfil", NAME, "--result", "-"], "see the run")
    assert (row["run"], responses(context)[0]["run"]) == (run, run)
    again = agent("requests", "run", NAME, "--engine", "hollow", "--mind", "reflex")
    assert (again.returncode, "is fulfilled already" in again.stderr) == (2, True)


def test_the_verbs_for_people(context, agent):
    """Tables on a pipe too; ./agent requests alone lists; verify still holds."""
    placed(context)
    assert agent("requests").stdout.splitlines()[0].split() == ["ID", "AGENT", "AGE", "STATUS", "DESCRIPTION"]
    assert json.loads(agent("requests", "--all", "--json").stdout)[0]["request_id"] == NAME
    assert (
        agent("tell", "-", "--to", "cedar", input="the tests are slow").stdout
        == "cedar will read it in the next prompt.\n"
    )
    assert agent("requests", "reject", NAME, "--reason", "none").stdout == f"{NAME} is rejected; cedar will be told.\n"
    assert agent("verify").returncode == 0


def test_a_backup_by_a_relative_name_lies_where_it_was_typed(context, agent, tmp_path):
    """And is brought back by the same name."""
    placed(context)
    folder = context.repo.root / "shop"
    assert agent("hollow", "backup", "kept.tar.gz", cwd=folder).returncode == 0
    (context.layout.memory / "claude_requests.jsonl").unlink()
    assert agent("hollow", "restore", "kept.tar.gz", cwd=folder).returncode == 0
    assert desk.request(context, NAME)["request_id"] == NAME


@pytest.mark.parametrize("verb", ["suffering", "goals", "lessons", "tools"])
def test_the_views_answer_before_anybody_has_lived(context, verb):
    assert isinstance(json.loads(desk.ask(context, [verb, "--json"])), list)
    assert not context.layout.memory.exists()


def test_errors_know_whose_fault_they_are():
    assert {each.code for each in desk._FAULTS.values()} == {2, 3, 4, 5}
    assert all(issubclass(each, BoxError) for each in desk._FAULTS.values())
