"""`agent replay`: recorded runs lead to the same state, report and ledger facts again, and what does not is shown."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from agents import attempts, differing, replaying, settle
from agents.differing import Difference
from agents.engines.stream_json import STREAM_JSON, TEXT_OR_JSON
from agents.errors import OperatorError, Tampered
from agents.events import Init, Progress, Result
from agents.layout import Layout
from agents.model import Actor
from agents.pump import Ending
from agents.rereading import attentive, reread
from agents.tally import Spend, Tally
from essentials import records
from tests import replays
from tests.support import world


@pytest.fixture
def bare(tmp_path):
    """A repository without a commit, which is all that a replay needs."""
    root = tmp_path / "bare"
    root.mkdir()
    world.git(root, "init", "-q")
    return root


def replay(root, run):
    return replaying.replay(world.context_of(root), run)


def edit_state(root, run, **changes):
    path = Layout(root).box(run).state
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))


def edit_ledger(root, change):
    """Have *change* edit every entry of the ledger in place; an entry for which it returns False goes."""
    path = Layout(root).ledger
    entries = [json.loads(line) for line in path.read_bytes().splitlines()]
    kept = [entry for entry in entries if change(entry) is not False]
    path.write_text("".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in kept))


def settled(**facts):
    def change(entry):
        if entry["facts"].get("phase") == "settled":
            entry["facts"].update(facts)

    return change


def reseal(root, run):
    """Seal the evidence of *run* as it is now."""
    box = Layout(root).box(run)

    def change(entry):
        if "evidence" in entry["facts"]:
            entry["facts"]["evidence"] = {name: replays._sha256(box.path / name) for name in entry["facts"]["evidence"]}

    edit_ledger(root, change)


@pytest.mark.parametrize("name", replays.recorded())
def test_every_recorded_run_leads_to_the_same_again(bare, name):
    done = replay(bare, replays.place(name, bare))
    assert (done.difference, done.lines > 0) == (None, True)


def test_there_are_recordings_of_every_kind():
    kinds = {"claude_fix", "codex_fix", "hollow_cycle", "command_scout", "crashed_and_resumed", "supervisor_killed"}
    assert kinds <= set(replays.recorded())


def test_the_verb_says_that_all_is_the_same_and_writes_nothing(bare, agent):
    run = replays.place("crashed_and_resumed", bare)
    before = {path: path.stat().st_mtime_ns for path in bare.rglob("*")}
    done = agent("replay", run[-4:], cwd=bare)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"replay {run[-4:]}: 6 lines, state, report and ledger facts match\n"
    told = json.loads(agent("replay", run, "--json", cwd=bare).stdout)
    assert told == {"run": run, "lines": 6, "attempts": 2, "difference": None, "matches": True}
    assert {path: path.stat().st_mtime_ns for path in bare.rglob("*")} == before


def test_the_verb_shows_the_first_difference_harmlessly(bare, agent):
    run = replays.place("plan_with_garbage", bare)
    report = Layout(bare).box(run).report
    report.write_text(report.read_text().replace("Cache", "\x1b[2Jtoken=ghp_0123456789abcdefghij0123"))
    done = agent("replay", run, cwd=bare)
    assert done.returncode == 5
    assert "report.md, line 3 is not what the stream leads to" in done.stdout
    assert ("\x1b" in done.stdout, "\\x1b[2J" in done.stdout, "ghp_" in done.stdout) == (False, True, False)
    told = json.loads(agent("replay", run, "--json", cwd=bare).stdout)
    assert (told["matches"], told["difference"]["what"]) == (False, "report.md, line 3")
    assert told["difference"]["replayed"].startswith("1. Cache it.")


STATES = [
    ("claude_fix", "usage", {"input_tokens": 1}),
    ("claude_fix", "model", "another"),
    ("claude_fix", "session_id", "another"),
    ("claude_fix", "events", 12),
    ("claude_fix", "exit_code", 1),
    ("claude_fix", "cycle", {"goal": "g"}),
    ("claude_fix", "patch", None),
    ("hollow_cycle", "cycle", {"goal": "g-99", "outcome": "completed"}),
    ("crashed_and_resumed", "usage", {"input_tokens": 6, "output_tokens": 3, "turns": 1}),
    ("budget_spent", "failure", {"kind": "budget", "message": "Its budget of 500 tokens is spent: it used 501."}),
    ("budget_spent", "failure", {"kind": "oom", "message": "It was killed."}),
    ("in_circles", "failure", {"kind": "no_progress", "message": "It did the same."}),
    ("supervisor_killed", "events", 3),
    ("plan_with_garbage", "session_id", None),
]


@pytest.mark.parametrize(("name", "field", "value"), STATES, ids=[f"{name}-{field}" for name, field, _ in STATES])
def test_a_state_that_the_stream_does_not_lead_to_is_found(bare, name, field, value):
    run = replays.place(name, bare)
    edit_state(bare, run, **{field: value})
    found = replay(bare, run).difference
    assert found is not None
    assert found.recorded != found.replayed


LEDGERS = [
    ("claude_fix", settled(usage={"turns": 77}), "ledger, run.finished: usage"),
    ("claude_fix", settled(model="another"), "ledger, run.finished: model"),
    ("claude_fix", settled(task="another"), "ledger, run.finished: task"),
    ("claude_fix", settled(status="DONE"), "status"),
    ("command_scout", settled(exit_code=3), "ledger, run.finished: exit_code"),
    ("hollow_cycle", lambda entry: not entry["event"].startswith("goal."), "ledger: fact 1 of the agent"),
    ("claude_fix", lambda entry: "evidence" not in entry["facts"], "the ledger's entry of the end of run"),
]


@pytest.mark.parametrize(("name", "change", "what"), LEDGERS, ids=[what for _, _, what in LEDGERS])
def test_a_ledger_that_tells_otherwise_is_found(bare, name, change, what):
    run = replays.place(name, bare)
    edit_ledger(bare, change)
    found = replay(bare, run).difference
    assert found is not None
    assert found.what.startswith(what)


def test_a_fact_that_the_agent_did_not_tell_is_found(bare):
    run = replays.place("hollow_cycle", bare)

    def change(entry):
        if entry["event"].startswith("goal."):
            entry["facts"]["said"]["goal_id"] = "another"

    edit_ledger(bare, change)
    assert replay(bare, run).difference.what == "ledger: fact 1 of the agent"


@pytest.mark.parametrize("name", ["raw/stream.jsonl", "raw/launch.json", "meta.yaml"])
def test_evidence_that_is_not_the_sealed_one_is_the_first_difference(bare, name):
    run = replays.place("claude_fix", bare)
    path = Layout(bare).box(run).path / name
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    assert replay(bare, run).difference.what == f"SHA-256 of {name}"


def test_a_stream_that_is_gone_is_said_to_be(bare):
    run = replays.place("claude_fix", bare)
    Layout(bare).box(run).stream.unlink()
    found = replay(bare, run).difference
    assert (found.what, found.replayed) == ("SHA-256 of raw/stream.jsonl", "nothing")


@pytest.mark.parametrize("name", ["claude_fix", "command_scout", "hollow_cycle", "codex_fix"])
def test_another_end_of_the_stream_leads_elsewhere_even_under_a_new_seal(bare, name):
    run = replays.place(name, bare)
    stream = Layout(bare).box(run).stream
    lines = stream.read_bytes().splitlines(keepends=True)
    stream.write_bytes(b"".join(lines[:-2]))
    reseal(bare, run)
    assert replay(bare, run).difference is not None


def test_a_report_that_is_gone_is_a_difference(bare):
    run = replays.place("plan_with_garbage", bare)
    Layout(bare).box(run).plan.unlink()
    found = replay(bare, run).difference
    assert (found.what, found.recorded) == ("plan.md", "nothing")


def test_the_difference_in_one_of_several_agents_is_named(bare):
    run = replays.place("team", bare)
    worker = json.loads(Layout(bare).box(run).state.read_bytes())["workers"][1]
    edit_state(bare, worker, events=99)
    assert replay(bare, run).difference == Difference("agent 2, state.json: events", 99, 1)


@pytest.mark.parametrize("changes", [{"status": "ACTIVE", "phase": "running"}, {"status": "STALLED", "phase": "running"}, {"status": "MERGING"}])  # fmt: skip
def test_a_run_that_is_not_over_is_refused(bare, agent, changes):
    run = replays.place("claude_fix", bare)
    edit_state(bare, run, **changes)
    done = agent("replay", run, cwd=bare)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"is {changes['status']} and not over yet" in done.stderr


def test_what_a_human_decided_later_is_no_difference(bare):
    run = replays.place("claude_fix", bare)
    layout = Layout(bare)
    edit_state(bare, run, status="REJECTED")
    assert replay(bare, run).difference == Difference("status", "REJECTED in state.json", "REVIEW in the ledger")
    entry = json.loads(layout.ledger.read_bytes().splitlines()[-1])
    rejected = {**entry, "event": "run.rejected", "facts": {"status": "REJECTED", "phase": "settled"}}
    layout.ledger.write_bytes(layout.ledger.read_bytes() + json.dumps(rejected).encode() + b"\n")
    assert replay(bare, run).difference is None


def test_a_state_that_cannot_be_read_is_tampering(bare):
    run = replays.place("claude_fix", bare)
    Layout(bare).box(run).state.write_text("[]")
    with pytest.raises(Tampered):
        replay(bare, run)


def drop(*names):
    def change(entry):
        for name in names:
            entry["facts"].pop(name, None)

    return change


def test_a_ledger_of_an_older_version_does_not_say_who_settled(bare):
    for name in ("claude_fix", "supervisor_killed"):
        run = replays.place(name, bare)
        edit_ledger(bare, drop("by"))
        assert replay(bare, run).difference is None
        shutil.rmtree(bare / ".agents")


def test_attempts_that_nobody_told_apart_are_not_guessed_at(bare):
    run = replays.place("crashed_and_resumed", bare)
    edit_ledger(bare, drop("stream_from"))
    with pytest.raises(OperatorError, match="where an attempt begins"):
        replay(bare, run)


def test_an_attempt_that_nobody_announced_was_settled_by_a_sweep():
    began = {"event": "run.started", "facts": {"meta_sha256": "0"}}
    ended = {"event": "run.crashed", "facts": {"phase": "settled", "attempt": 1, "by": "owner"}}
    swept = {"event": "run.crashed", "facts": {"phase": "settled", "attempt": 2, "by": "watchdog"}}
    again = {"event": "run.resumed", "facts": {"meta_sha256": "0", "stream_from": 70, "resumes": True}}
    said = {"event": "goal.set", "facts": {"said": {}}}
    marked = {"event": "run.resumed", "facts": {"phase": "running"}}
    story = [began, ended, said, swept, again, marked, said, ended]
    one, two, three = attempts.told(story)
    assert [(each.start, each.end, each.is_apart, each.is_last) for each in (one, two, three)] == [
        (0, None, False, False), (None, 70, False, False), (70, None, True, True)]  # fmt: skip
    assert [(each.actors, len(each.copied)) for each in (one, two, three)] == [
        ((Actor.OWNER,), 0), ((Actor.WATCHDOG,), 1), ((Actor.OWNER,), 1)]  # fmt: skip
    assert three.resumes
    assert attempts.told([said, swept]) == []


# --- Pace: what depends on it is accepted within bounds, and only of a stream that was too much to be read whole ---------

FLOOD = """
import json
print(json.dumps({"type": "system", "subtype": "init", "session_id": "s", "model": "m"}))
for n in range(%d):
    usage = {"input_tokens": 2, "output_tokens": 1}
    words = [{"type": "text", "text": f"{n} " * 50}]
    print(json.dumps({"type": "assistant", "message": {"id": f"m{n}", "content": words, "usage": usage}}))
print(json.dumps({"type": "result", "is_error": False, "session_id": "s", "result": "done", "usage": {"output_tokens": 40}}))
"""


@pytest.mark.parametrize(("lines", "used"), [(2000, {41: True, 39: False, 3000: False}), (90, {41: False})])
def test_usage_may_lie_between_what_no_pace_hides_and_all_only_in_a_flood(repo, agent, tmp_path, lines, used):
    (tmp_path / "flood.py").write_text(FLOOD % lines)
    done = agent("scout", "flood", "--engine", "command", "--", sys.executable, "-IS", str(tmp_path / "flood.py"))
    assert done.returncode == 0, done.stderr
    run = world.boxes(repo)[-1].name
    assert replay(repo, run).difference is None
    for tokens, accepted in used.items():
        usage = {**world.state_of(repo)["usage"], "output_tokens": tokens}
        edit_state(repo, run, usage=usage)
        edit_ledger(repo, settled(usage=usage))
        assert (replay(repo, run).difference is None) == accepted, tokens


def test_usage_of_a_kind_that_nobody_told_is_never_accepted():
    told = Progress(tally=Tally().plus(Spend("m", {"input_tokens": 9})), result=Result(usage={"cost_usd": 0.5}))
    assert differing.between({"input_tokens": 9, "turns": 1, "cost_usd": 0.5}, {}, told, told)
    assert differing.between({"turns": 1, "cost_usd": 0.5}, {}, told, told)
    assert not differing.between({"turns": 1, "cost_usd": 0.6}, {}, told, told)
    assert not differing.between({"turns": 1, "cost_usd": 0.5, "output_tokens": 1}, {}, told, told)


def test_a_name_that_was_told_late_may_have_been_missed(bare):
    """Who the agent is is looked for at the beginning alone."""
    run = replays.place("command_scout", bare)
    context, box = world.context_of(bare), Layout(bare).box(run)
    late = b'{"type":"system","subtype":"init","session_id":"late","model":"late"}\n'
    box.stream.write_bytes(b"x\n" * (600 * 1024) + late + b"three\n")
    heard = reread(box.stream, TEXT_OR_JSON)
    settle.write_report(box, context.store.meta(run), Ending(), heard.answer)
    reseal(bare, run)
    for name, accepted in ((None, True), ("late", True), ("other", False)):
        edit_state(bare, run, model=name, session_id=name, events=heard.lines)
        edit_ledger(bare, settled(model=name))
        assert (replay(bare, run).difference is None) == accepted, name


def test_rereading_takes_the_part_it_is_told_to(tmp_path):
    stream = tmp_path / "stream.jsonl"
    one = b'{"type":"system","subtype":"init","session_id":"one","model":"m"}\n{"type":"assistant","mess'
    two = b'{"type":"system","subtype":"init","session_id":"two","model":"m"}\n{"type":"result","result":"x","is_error":false}'
    stream.write_bytes(one + two)
    heard = []
    first = reread(stream, STREAM_JSON, 0, len(one), listen=lambda event, _: heard.append(event))
    second = reread(stream, STREAM_JSON, len(one))
    assert (first.progress.session_id, first.lines, first.progress.result) == ("one", 2, None)
    assert (second.progress.session_id, second.lines, second.greeted.session_id) == ("two", 2, "two")
    assert isinstance(heard[0], Init)
    assert second.progress.result == records.replace(second.progress.result, text="x")
    every = attentive(STREAM_JSON)
    assert (every.opening, every.counted, every.last) == ((), (), ())
    assert b'"init"' in every.markers


def test_long_values_are_shown_from_where_they_part():
    one, other = Difference("x", "a" * 1000 + "b", "a" * 1000 + "c").shown()
    assert (one, other) == ("…" + "a" * 60 + "b", "…" + "a" * 60 + "c")
    assert Difference("x", {"a": 1}, None).shown() == ('{"a": 1}', "null")
