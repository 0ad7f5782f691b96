"""Goals: progress, failures, standstill, withdrawal, and the registry that keeps them."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from essentials.records import replace
from hollow.memory import goalrecords
from hollow.memory import goals as registry
from hollow.memory.files import Files
from hollow.memory.goals import GoalBook, GoalClash
from hollow.substrate import goals
from hollow.substrate.model import Artifact, Goal, GoalStatus, Result
from hollow.substrate.settings import Settings

NOW = 1_777_777_777.5
OK = Result(ok=True)
DONE = Result(ok=True, wrote=("x",))


def fresh(objective="Survey hollow/index.py", agent="cedar", token="0123456789abcdef", now=NOW, source="existence"):
    return goals.new(agent, objective, source, "b" * 40, token, now)[0]


def file(name="report.md", sha="a", created=True):
    return Artifact(path=f"workspace/cedar/{name}", sha256=sha * 64, created=created, step=0)


def read(goal, number, capability="fs_read"):
    return goals.advance(goal, capability, OK, NOW, call=f"call {number}")[0]


def write(goal, sha="a", name="report.md", created=True):
    return goals.advance(goal, "fs_write", DONE, NOW, call="", files=[file(name, sha, created)])[0]


def test_a_new_goal_is_active_and_says_so():
    goal, said = goals.new("vault", "  Build\n a thing ", "fallback:peer", "c0ffee", "0123456789abcdef", NOW)
    assert (goal.goal_id, goal.objective, goal.progress) == ("goal-0123456789ab", "Build a thing", 0)
    assert goal.status is GoalStatus.ACTIVE
    [(kind, facts)] = said
    assert kind == "goal.created"
    assert facts == {
        "goal_id": goal.goal_id, "agent": "vault", "objective": "Build a thing", "family": "build a thing",
        "progress": 0.0, "source": "fallback:peer",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("capability", "dynamic", "worth"),
    [
        ("fs_write", False, 200), ("fs_edit", False, 200), ("synthesize_capability", False, 200),
        ("propose_change", False, 200), ("fs_read", False, 100), ("memory_set", False, 100),
        ("shell_exec", False, 100), ("test_exec", False, 100), ("agent_message", False, 100),
        ("fs_write", True, 100), ("count_words", True, 100),
    ],
)  # fmt: skip
def test_a_step_is_worth_what_the_table_says(capability, dynamic, worth):
    """T84: fs_write step -> +.20; fs_read -> +.10; never more"""
    goal, said = goals.advance(fresh(), capability, OK, NOW, call="one", dynamic=dynamic)
    assert goal.progress == worth
    assert said[0][1]["delta"] == worth / 1000


def test_one_step_that_writes_many_files_is_one_step():
    """T84: fs_write step -> +.20; never more"""
    files = [file(f"{name}.md", name) for name in "abcdef"]
    goal, _ = goals.advance(fresh(), "fs_write", DONE, NOW, call="", files=files)
    assert (goal.progress, len(goal.artifacts)) == (200, 6)


def test_ten_tenths_are_exactly_one():
    """T85: 10 x .10 -> progress 1.0 and gate fires"""
    goal = fresh()
    for number in range(10):
        goal, said = goals.advance(goal, "fs_read", OK, NOW, call=f"call {number}")
        assert said[0][1]["progress"] == (number + 1) / 10
    assert goal.progress == goals.FULL
    assert read(goal, "more").progress == goals.FULL


def test_what_a_cycle_earned_is_said_in_thousandths_of_one():
    kind, facts = goals.progressed(read(fresh(), 1), 100)
    assert (kind, facts["delta"], facts["progress"]) == ("goal.progressed", 0.1, 0.1)


@pytest.mark.parametrize("capability", ["fs_read", "memory_set", "shell_exec"])
def test_the_same_call_again_is_a_step_like_any_other(capability):
    """T84: fs_read -> +.10, whichever call it is: what effort came to is the gate's to say"""
    one = read(fresh(), 1, capability)
    again, said = goals.advance(one, capability, OK, NOW, call="call 1")
    assert (again.progress, again.steps, len(said)) == (200, 2, 1)


def test_the_same_bytes_again_are_a_step_too_and_go_with_their_file():
    goal = write(write(write(fresh(), "a"), "b"), "a")
    assert goal.progress == 600
    copied, said = goals.advance(goal, "fs_edit", DONE, NOW, call="", files=[file("copy.md", "b")])
    assert (copied.progress, len(said)) == (800, 1)
    assert [each.path for each in copied.artifacts] == ["workspace/cedar/report.md", "workspace/cedar/copy.md"]
    # The second version is what is there: the third was never accepted.
    back, _ = goals.withdraw(copied, {"workspace/cedar/report.md": "b" * 64}, NOW)
    assert back.progress == 600
    gone, _ = goals.withdraw(copied, {"workspace/cedar/report.md": None}, NOW)
    assert gone.progress == 200


def test_a_digest_knows_parameters_and_not_their_order():
    assert goals.digest({"a": 1, "b": [2]}) == goals.digest({"b": [2], "a": 1})
    assert goals.digest({"a": 1}) != goals.digest({"a": "1"})


def test_a_failed_step_is_a_step_and_nothing_else():
    goal, said = goals.advance(fresh(), "fs_write", Result(ok=False, error="no"), NOW, call="", files=[file()])
    assert (goal.steps, goal.progress, goal.artifacts, goal.outputs, said) == (1, 0, (), (), [])


def test_what_steps_leave_is_kept_newest_last():
    goal = fresh()
    for left in ("memory:a", "request:r", "memory:a"):
        goal, _ = goals.advance(goal, "memory_set", Result(ok=True, left=(left,)), NOW, call=left)
    assert goal.outputs == ("request:r", "memory:a")
    # An output step that names nothing has still left something; one that only looks has not.
    assert read(goal, 9, "agent_message").outputs == ("request:r", "memory:a", "agent_message:4")
    assert read(goal, 9, "fs_read").outputs == goal.outputs


def test_whether_a_file_is_new_is_decided_when_it_is_first_written():
    goal = write(write(fresh(), "a", created=True), "b", created=False)
    assert [(each.created, each.sha256[0], each.step) for each in goal.artifacts] == [(True, "b", 2)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Survey hollow/a.py, part 3", "survey hollow/b.py part 12.", True),
        ("Review goal-0a1b2c3d4e5f again", "review goal-ffffffffffff again", True),
        ("Look at `index.py`", "look at queue.py", True),
        ("Look at commit 4c2b391f", "look at commit 9619775a", True),
        ("Survey hollow/a.py", "Survey agents/a.py", False),
        ("Survey hollow/a.py", "Survey hollow/a.md", False),
        ("Ease futility", "Ease invisibility", False),
    ],
)
def test_a_family_is_the_pattern_of_an_objective(one, other, same):
    assert (goals.family(one) == goals.family(other)) is same


@given(st.text(max_size=120))
@settings(max_examples=50, deadline=None)
def test_the_family_of_a_family_is_itself(text):
    assert goals.family(goals.family(text)) == goals.family(text)


@pytest.mark.parametrize(
    ("ends", "blocked"),
    [("aaa", True), ("aa", False), ("aaac", False), ("aaab", True), ("", False), ("bbb", False)],
)
def test_a_family_that_keeps_failing_is_blocked(ends, blocked):
    """W33: not the text is blocked but its family, until one of it is completed"""
    kinds = {
        "a": ("Survey hollow/{}.py", GoalStatus.ABANDONED),
        "b": ("Something else", GoalStatus.ABANDONED),
        "c": ("Survey hollow/{}.py", GoalStatus.COMPLETED),
    }
    past = [replace(fresh(kinds[end][0].format(at)), status=kinds[end][1]) for at, end in enumerate(ends)]
    assert goals.blocked("survey hollow/zeta.py", past) is blocked


@pytest.mark.parametrize(
    ("idle", "cycles", "stands_still"), [(4, 4, False), (5, 5, True), (0, 23, False), (0, 24, True)]
)
def test_a_goal_that_stands_still_is_told_apart(idle, cycles, stands_still):
    reason = goals.stalled(replace(fresh(), idle=idle, cycles=cycles), Settings())
    assert (reason is not None) is stands_still


def test_cycles_are_counted_and_waiting_is_none():
    goal = fresh()
    for gained, waited, expected in [(0, False, (1, 1)), (0, True, (1, 1)), (0, False, (2, 2)), (100, False, (3, 0))]:
        goal, said = goals.end_cycle(goal, gained, NOW, waited=waited)
        assert ((goal.cycles, goal.idle), said) == (expected, [])


def test_the_fifth_failure_gives_a_goal_up():
    """T90: 4 failures -> active; 5th -> abandoned"""
    goal = write(replace(fresh(), progress=1000))
    for number in range(1, 5):
        goal, said = goals.fail(goal, "report.md is empty.", NOW, check="mechanical")
        assert (goal.status, goal.progress, goal.failures) == (GoalStatus.ACTIVE, 850, number)
        assert [kind for kind, _ in said] == ["goal.gate_failed"]
    goal, said = goals.fail(goal, "report.md is empty.", NOW, check="mechanical")
    assert goal.status is GoalStatus.ABANDONED
    assert [kind for kind, _ in said] == ["goal.gate_failed", "goal.abandoned"]
    assert said[1][1]["why"] == "validation"
    assert "report.md is empty." in goal.reason
    assert [each.path for each in goal.artifacts] == ["workspace/cedar/report.md"]


@pytest.mark.parametrize("progress", [0, 840, 850, 851, 1000])
def test_a_failure_sets_progress_back_and_never_forth(progress):
    assert goals.fail(replace(fresh(), progress=progress), "no", NOW)[0].progress == min(progress, 850)


@pytest.mark.parametrize(
    ("found", "progress", "artifacts"),
    [
        ({}, 700, [("report.md", "b"), ("other.md", "c")]),
        ({"report.md": None}, 300, [("other.md", "c")]),
        ({"report.md": None, "other.md": None}, 100, []),
        ({"report.md": "a"}, 500, [("report.md", "a"), ("other.md", "c")]),  # the second version was never accepted
        ({"report.md": "f"}, 300, [("other.md", "c")]),  # somebody else's bytes
        ({"report.md": "b"}, 700, [("report.md", "b"), ("other.md", "c")]),
        ({"stranger.md": None}, 700, [("report.md", "b"), ("other.md", "c")]),
    ],
)
def test_files_that_are_gone_take_their_progress_with_them(found, progress, artifacts):
    goal = read(write(write(write(fresh(), "a"), "b"), "c", "other.md"), 1)
    there = {f"workspace/cedar/{name}": sha and sha * 64 for name, sha in found.items()}
    left, said = goals.withdraw(goal, there, NOW)
    assert left.progress == progress
    assert [(each.path.rsplit("/")[-1], each.sha256[0]) for each in left.artifacts] == artifacts
    assert bool(said) is (progress != 700)
    if said:
        assert said[0][0] == "goal.withdrawn"
        assert math.isclose(said[0][1]["taken"], (700 - progress) / 1000)


def test_an_ended_goal_is_ended():
    for ended_goal in (goals.complete(write(fresh()), NOW)[0], goals.abandon(write(fresh()), "operator", "no", NOW)[0]):
        gone = {"workspace/cedar/report.md": None}
        for after in (
            goals.complete(ended_goal, NOW), goals.abandon(ended_goal, "stalled", "x", NOW),
            goals.fail(ended_goal, "x", NOW), goals.end_cycle(ended_goal, 1, NOW), goals.withdraw(ended_goal, gone, NOW),
            goals.advance(ended_goal, "fs_read", OK, NOW, call="other"),
        ):  # fmt: skip
            assert after == (ended_goal, [])


def test_what_was_withdrawn_can_be_earned_again():
    goal, _ = goals.withdraw(write(fresh()), {"workspace/cedar/report.md": None}, NOW)
    assert (goal.progress, write(goal).progress) == (0, 200)


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "bad", "fail", "cycle", "withdraw", "complete", "abandon"]),
        st.integers(0, 5),
    ),
    max_size=40,
)


def act(goal, name, number):
    path = f"workspace/cedar/{number}.md"
    return {
        "read": lambda: goals.advance(goal, "fs_read", OK, NOW, call=str(number)),
        "write": lambda: goals.advance(goal, "fs_write", DONE, NOW, call="", files=[file(f"{number}.md", "abcdef"[number])]),
        "bad": lambda: goals.advance(goal, "fs_write", Result(ok=False), NOW, call=""),
        "fail": lambda: goals.fail(goal, "no", NOW),
        "cycle": lambda: goals.end_cycle(goal, number, NOW),
        "withdraw": lambda: goals.withdraw(goal, {path: None}, NOW),
        # Rare, or nothing else would ever be seen.
        "complete": lambda: goals.complete(goal, NOW) if number == 5 else (goal, []),
        "abandon": lambda: goals.abandon(goal, "operator", "no more", NOW) if number == 4 else (goal, []),
    }[name]()  # fmt: skip


@given(ACTS)
@settings(max_examples=50, deadline=None)
def test_whatever_happens_in_whatever_order_a_goal_stays_one(acts):
    goal = fresh()
    for name, number in acts:
        before = goal
        goal, said = act(goal, name, number)
        assert 0 <= goal.progress <= 1000
        assert goal.progress - before.progress <= 200 or name == "complete"
        assert 0 <= goal.failures <= goals.FAILURES
        assert (goal.status is GoalStatus.ACTIVE) == (goal.ended_at is None)
        assert all(len(json.dumps(facts)) < 4096 and kind.startswith("goal.") for kind, facts in said)
        if before.status is not GoalStatus.ACTIVE:
            assert (goal, said) == (before, [])
        record = json.loads(json.dumps(goalrecords.encoded(goal)))
        assert goalrecords.decoded(record, "cedar") == goal


# --- The registry -----------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path / "hollow")


@pytest.fixture
def book(files):
    return GoalBook(files)


def log_of(files, agent="cedar"):
    return files.root / f"goals/{agent}/registry.jsonl"


def place(files, *records, agent="cedar"):
    path = log_of(files, agent)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in records))


def test_progress_carries_over_a_restart(files):
    """T81: .40 after cycle 1, restart -> cycle 2 starts at .40"""
    goal = write(write(fresh(), "a"), "b")
    GoalBook(files).put(goal, "cycle")
    again = GoalBook(Files(files.root)).active("cedar")
    assert again == goal
    assert again.progress == 400
    # And it knows what it was made of.
    assert goals.withdraw(again, {"workspace/cedar/report.md": None}, NOW)[0].progress < again.progress


def test_only_three_statuses_are_ever_on_disk(files, book):
    """T80: only active/completed/abandoned ever on disk"""
    for at, end in enumerate([None, lambda g: goals.complete(g, NOW), lambda g: goals.abandon(g, "stalled", "x", NOW)]):
        goal = fresh(agent=f"agent{at}")
        book.put(goal, "created")
        book.put(end(goal)[0] if end else read(goal, 1), "ended")
        lines = [json.loads(line) for line in log_of(files, f"agent{at}").read_text().splitlines()]
        assert {line["status"] for line in lines} <= {"active", "completed", "abandoned"}
        assert lines[0]["metrics"]["progress"] == 0.0


@pytest.mark.parametrize(
    ("status", "meant"),
    [
        ("active", "active"), ("paused", "active"), (None, "active"), ("completed", "completed"),
        ("abandoned", "abandoned"), ("failed", "abandoned"), (["odd"], "abandoned"), (7, "abandoned"),
    ],
)  # fmt: skip
def test_a_status_found_on_disk_becomes_one_of_the_three(files, book, status, meant):
    """T80: only active/completed/abandoned ever on disk"""
    place(files, {"goal_id": "goal-1", "objective": "Look", "status": status})
    goal = book.get("cedar", "goal-1")
    assert goal.status.value == meant
    book.put(goal, "seen")
    assert json.loads(log_of(files).read_text().splitlines()[-1])["status"] == meant


def test_a_goal_placed_by_hand_with_the_seeds_names_loads_and_keeps_its_own(files, book):
    place(files, {
        "goal_id": "goal-aaaaaaaaaaaa", "agent_id": "cedar", "objective": "Map the router", "priority": 7,
        "status": "active", "parent_goal_id": "goal-0", "subgoals": [],
        "metrics": {"progress": 0.4, "steps_completed": 3, "last_cap": "fs_read", "has_output": True,
                    "artifact_check_failures": 2, "failure_reason": "thin"},
        "created_at": "2026-05-03 07:30", "updated_at": 1777793400, "completed_at": None,
    })  # fmt: skip
    goal = book.active("cedar")
    assert (goal.progress, goal.steps, goal.failures, goal.reason) == (400, 3, 2, "thin")
    assert goal.created_at == goal.updated_at == 1777793400.0
    book.put(read(goal, 1), "progressed")
    last = json.loads(log_of(files).read_text().splitlines()[-1])
    assert (last["priority"], last["parent_goal_id"], last["event"]) == (7, "goal-0", "progressed")
    assert last["metrics"]["progress"] == 0.5


DAMAGED = [
    {"metrics": {"progress": "much"}}, {"metrics": {"progress": math.nan}}, {"metrics": {"progress": 10**400}},
    {"metrics": {"progress": -3}}, {"metrics": {"progress": True}}, {"metrics": []}, {"created_at": "yesterday"},
    {"created_at": 1e300}, {"updated_at": {}}, {"artifacts": [7, {"path": 1}, {}]}, {"credits": [[1], "x", [1, 2, 3, 4]]},
    {"outputs": "memory:a"}, {"agent_id": 5}, {"cycles": "many"}, {"base": None},
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED, ids=lambda damage: json.dumps(damage)[:40])
def test_a_damaged_value_costs_only_itself(files, book, damage):
    place(files, {"goal_id": "goal-1", "objective": "Look", "idle": 2, **damage})
    goal = book.active("cedar")
    assert (goal.goal_id, goal.agent, goal.idle) == ("goal-1", "cedar", 2)
    assert 0 <= goal.progress <= 1000
    book.put(goal, "seen")
    assert book.active("cedar") == goal


def test_lines_that_are_none_are_passed_over_and_told_of(tmp_path):
    told = []
    files = Files(tmp_path, lambda kind, **facts: told.append((kind, facts["lines"])))
    place(
        files,
        "not json",
        {"objective": "no id"},
        {"goal_id": "goal-1"},
        '"text"',
        {"goal_id": "g", "objective": "Look"},
    )
    assert GoalBook(files).active("cedar").goal_id == "g"
    assert told == [("memory.malformed", 2)]


def test_there_is_one_active_goal_and_a_second_placed_by_hand_waits(files, book):
    """W19: the goal in work is never the one that gives way"""
    place(files, {"goal_id": "old", "objective": "First"}, {"goal_id": "new", "objective": "Second"})
    first = book.active("cedar")
    assert first.goal_id == "old"
    with pytest.raises(GoalClash, match="old"):
        book.put(fresh(), "created")
    book.put(book.get("cedar", "new"), "seen")
    book.put(read(first, 1), "cycle")
    assert book.active("cedar").goal_id == "old"
    book.put(goals.complete(first, NOW)[0], "completed")
    assert book.active("cedar").goal_id == "new"


def test_goals_of_another_agent_are_no_hindrance(book):
    book.put(fresh(), "created")
    book.put(fresh(agent="cipher"), "created")
    assert (book.active("cedar").agent, book.active("cipher").agent) == ("cedar", "cipher")


def ended(number, now=NOW, source="existence"):
    goal = fresh(f"Survey part {number}", token=f"{number:012x}", now=now, source=source)
    return goals.complete(goal, now)[0]


def test_recent_goals_come_newest_last_from_the_snapshot_or_from_the_log(book):
    for number in range(30):
        book.put(ended(number), "completed")
    for n in (0, 3, 24, 29, 100):
        expected = [f"goal-{number:012x}" for number in range(30)][-n:] if n else []
        assert [goal.goal_id for goal in book.recent("cedar", n)] == expected
    assert book.get("cedar", "goal-000000000000").objective == "Survey part 0"
    assert book.get("cedar", "goal-ffffffffffff") is None


def test_the_goal_that_ended_last_can_be_opened_again_with_all_it_knows(book):
    goal = write(fresh(token="a" * 12))
    done = replace(goals.complete(goal, NOW)[0], confirmed=True)
    book.put(goal, "created")
    book.put(done, "completed")
    assert book.recent("cedar", 1) == (done,)
    book.put(ended(2), "completed")
    assert book.recent("cedar", 2)[0] == replace(done, credits=())
    assert book.get("cedar", done.goal_id).confirmed


def test_a_plain_goal_becomes_one_with_credits():
    plain = Goal(goal_id="goal-1", agent="cedar", objective="Look", artifacts=(file(),), progress=100)
    assert read(plain, 1).progress == 200
    assert goals.withdraw(plain, {"workspace/cedar/report.md": None}, NOW)[0].artifacts == ()


def test_where_the_rotation_of_fallbacks_stands_survives_a_restart(files, book):
    assert book.last_fallback("cedar") == ""
    for source in ("fallback:question", "existence"):
        book.put(ended(len(source), source=source), "completed")
    assert GoalBook(Files(files.root)).last_fallback("cedar") == "fallback:question"


def spoil_snapshot(files):
    (files.root / "goals/cedar/snapshot.json").write_text("{")


def stale_snapshot(files):
    path = files.root / "goals/cedar/snapshot.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "offset": 3, "tail": [2, "x"], "active": None}))


def later_snapshot(files):
    path = files.root / "goals/cedar/snapshot.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 2}))


def odd_snapshot(files):
    (files.root / "goals/cedar/snapshot.json").write_text('{"schema": 1, "tail": 5, "offset": []}')


def lost_log(files):
    lines = log_of(files).read_bytes()
    log_of(files).unlink()
    GoalBook(files).active("cedar")
    log_of(files).write_bytes(lines)


def another_log(files):
    place(files, {**json.loads(log_of(files).read_text().splitlines()[-1]), "agent_id": "cedar", "more": "x" * 4000})


@pytest.mark.parametrize("spoil", [spoil_snapshot, stale_snapshot, odd_snapshot, later_snapshot, lost_log, another_log])
def test_a_snapshot_that_does_not_fit_the_log_is_made_again(files, book, spoil):
    goal = write(fresh())
    book.put(fresh(), "created")
    book.put(goal, "cycle")
    spoil(files)
    assert book.active("cedar") == goal
    book.put(read(goal, 1), "cycle")
    assert json.loads((files.root / "goals/cedar/snapshot.json").read_text())["active"]["metrics"]["progress"] == 0.3


def test_a_log_that_is_gone_holds_no_goal(files, book):
    book.put(fresh(), "created")
    log_of(files).unlink()
    assert book.active("cedar") is None


def test_another_log_of_the_same_length_is_another_log(files, book):
    book.put(fresh(), "created")
    log_of(files).write_bytes(log_of(files).read_bytes().replace(b"goal-0123", b"goal-ffff"))
    assert book.active("cedar").goal_id == "goal-ffff456789ab"


def test_a_line_appended_by_hand_after_the_snapshot_is_seen(files, book):
    book.put(ended(1), "completed")
    with log_of(files).open("a") as log:
        log.write('{"goal_id": "placed", "objective": "By hand"}\n{"torn": ')
    assert book.active("cedar").goal_id == "placed"


def test_reading_does_not_open_what_lies_before_the_snapshot(files, book):
    for number in range(5):
        book.put(ended(number), "completed")
    snapshot = json.loads((files.root / "goals/cedar/snapshot.json").read_text())
    data = log_of(files).read_bytes()
    start = snapshot["offset"] - snapshot["tail"][0]
    # Were it read, the spoilt beginning would be missing from what is told.
    log_of(files).write_bytes(b"#" * (start - 1) + b"\n" + data[start:])
    assert len(book.recent("cedar", 5)) == 5


def test_a_log_that_grew_too_large_keeps_the_last_line_of_each_newest_goal(files, book):
    goal = fresh(token="f" * 12)
    padding = "x" * 40_000
    rows = [{"goal_id": f"goal-{at:03}", "objective": padding, "status": "completed"} for at in range(250)]
    place(files, *({**row, "status": "active"} for row in rows[:1]), *rows)
    assert log_of(files).stat().st_size > registry.LARGEST
    book.put(goal, "created")
    lines = [json.loads(line)["goal_id"] for line in log_of(files).read_text().splitlines()]
    assert lines == [f"goal-{at:03}" for at in range(250 - registry.GOALS_KEPT, 250)] + [goal.goal_id]
    assert book.active("cedar") == goal
    assert len(book.recent("cedar", 10)) == 10


def test_the_last_outcome_is_kept_and_cut(files, book):
    assert book.last_outcome("cedar") == ""
    book.set_outcome("cedar", "  Done: " + "ä" * 600)
    assert book.last_outcome("cedar") == "Done: " + "ä" * 494
    assert (files.root / "goals/cedar/last_outcome.txt").exists()
