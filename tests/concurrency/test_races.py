"""Pairs that race for the same run: one wins and the other is told why, or both come through; nothing is half of each."""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from agents import audit, collect, control, core, locks, plan, settle
from agents.errors import OperatorError
from agents.lockorder import Rank
from agents.model import Actor, Phase, Status, step
from agents.plan import Ask
from agents.sweep import sweep
from essentials import records
from tests.concurrency.races import TIMES, Came, race
from tests.support import fakes, gates, repos, world
from tests.support.boxes import child, claimed, ended, events, fork, until
from tests.support.lives import Small

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agents.context import Context

QUICK = (fakes.INIT, fakes.result())


@pytest.fixture
def chance() -> random.Random:
    return random.Random(5)


@pytest.fixture
def context(repo: Path) -> Context:
    """The repository as a command finds it whose agents are played."""
    return world.context_of(repo, engine="scripted")


def ids() -> Iterator[str]:
    """Short ids, one a race."""
    return (f"{0xA000 + number:x}" for number in range(TIMES))


def reviewed(context: Context, short_id: str) -> str:
    return gates.reviewed(context, lambda tree: (tree / short_id).write_text("new\n"), short_id)


def merge(context: Context, name: str) -> str:
    return str(gates.approved(context, name).status)


def reject(context: Context, name: str) -> str:
    return str(gates.reject(context, name, "no").status)


def undo(context: Context, name: str) -> str:
    return str(gates.undo(context, name).status)


def sound(context: Context) -> None:
    """Ledger, seals and states agree, nobody is at work, and the checkout is clean."""
    sweep(context)
    assert audit.audit(context).flaws == ()
    assert context.store.active() == {}
    assert list(context.layout.staging.iterdir()) == []
    assert repos.git(context.layout.root, "status", "--porcelain") == ""


def prepared(context: Context) -> Context:
    gates.prepare(context)
    return context


@pytest.mark.parametrize("other", [merge, reject])
def test_of_a_merge_and_another_word_on_the_same_run_one_counts(context, tmp_path, chance, other):
    """N05: one wins, the other is told how the run stands; the branch has the commit exactly where the merge won."""
    prepared(context)
    for short_id in ids():
        name = reviewed(context, short_id)
        came = race(
            tmp_path, chance, 0.1, lambda name=name: merge(context, name), lambda name=name: other(context, name)
        )
        status = context.store.load(name).status
        assert sorted(each.refused for each in came) == [False, True], came
        assert [each.value for each in came if not each.refused] == [str(status)]
        assert str(status).lower() in next(each.value.lower() for each in came if each.refused)
        told = [event for event in events(context, name) if event in {"run.merged", "run.rejected"}]
        assert told == [f"run.{str(status).lower()}"]
        assert (context.layout.root / short_id).exists() == (status is Status.MERGED)
        sound(context)


def test_of_a_collection_and_an_undo_one_is_first(context, tmp_path, chance):
    """K05: a run that its operator has taken back is in REVIEW with all of its evidence, or it was gone before."""
    prepared(context)
    for short_id in ids():
        name = reviewed(context, short_id)
        merge(context, name)
        gone, back = race(tmp_path, chance, 0.1, lambda: collect_all(context), lambda name=name: undo(context, name))
        assert (gone.value == str([name])) == back.refused, (gone, back)
        assert context.store.box(name).path.exists() != back.refused
        if not back.refused:
            assert context.store.load(name).status is Status.REVIEW
            assert reject(context, name) == "REJECTED"
            assert collect_all(context) == [name]
        sound(context)


def collect_all(context: Context) -> list[str]:
    """What `agent gc --keep-runs 0` does."""
    return [name for name in collect.candidates(context, None, 0) if collect.remove(context, name)]


def test_what_was_taken_back_since_it_was_listed_is_not_collected(context):
    """K05: between the look and the lock somebody may have said otherwise."""
    name = reviewed(prepared(context), "a1b2")
    merge(context, name)
    listed = collect.candidates(context, None, 0)
    undo(context, name)
    assert listed == [name]
    assert not collect.remove(context, name)
    assert context.store.load(name).status is Status.REVIEW
    assert "run.collected" not in events(context, name)


def test_two_collections_remove_each_box_once(context, tmp_path, chance):
    """What one has removed is no fault of the other's, and nothing of a box comes back."""
    prepared(context)
    names = [reviewed(context, short_id) for short_id in ids()]
    for name in names:
        reject(context, name)
    came = race(tmp_path, chance, 0.01, *[lambda: collect_all(context)] * 2)
    assert not any(each.refused for each in came), came
    assert sorted(name for name in names for each in came if name in each.value) == sorted(names)
    assert list(context.layout.runs.iterdir()) == []
    assert [events(context, name).count("run.collected") for name in names] == [1] * len(names)
    sound(context)


def crashed(context: Context, path: Path) -> str:
    """A run that edits and whose agent failed; when it goes on it will not."""
    fakes.history(path, fakes.INIT, fakes.do("exit", code=9))
    name = core.start(context, Ask(run_type="fix", task="x", argv=(str(path),))).meta.run_name
    fakes.history(path, fakes.INIT, fakes.do("write", path=path.name, text="new\n"), fakes.result())
    return name


def test_a_run_that_goes_on_is_not_collected(context, tmp_path, chance):
    """K05: the supervisor's lock keeps the box, whatever its last state was."""
    for number in range(TIMES):
        name = crashed(context, tmp_path / f"h{number}")
        came = race(tmp_path, chance, 0.2, lambda name=name: resume(context, name), lambda: collect_all(context))
        assert came[0] == Came("REVIEW")
        # Runs of earlier rounds, which were rejected, may go.
        assert name not in came[1].value
        reject(context, name)
        sound(context)


def resume(context: Context, name: str) -> str:
    return str(core.resume(context, name).state.status)


OTHERS = {"resume": resume, "merge": merge}


@pytest.mark.parametrize("pair", sorted(OTHERS))
def test_of_two_who_go_on_with_a_run_one_is_first(context, tmp_path, chance, pair):
    """N07: a second supervisor, or a merge, is told that there is one; what is merged is what was approved."""
    trusting = records.replace(context, config=records.replace(context.config, trust_unsandboxed=True))
    for number in range(TIMES):
        name = crashed(context, tmp_path / f"h{number}")
        if pair == "merge":
            assert resume(context, name) == "REVIEW"
        before = context.store.load(name).attempt - 1
        actions = [lambda name=name: resume(context, name), lambda name=name: OTHERS[pair](trusting, name)]
        came = race(tmp_path, chance, 0.2, *actions)
        done = [each.value for each in came if not each.refused]
        state = context.store.load(name)
        # Both come through where one began after the other had ended; what is merged is not resumed.
        assert done, came
        assert str(state.status) == ("MERGED" if "MERGED" in done else "REVIEW"), came
        assert events(context, name).count("run.resumed") == state.attempt - 1 == before + done.count("REVIEW")
        if state.status is Status.REVIEW:
            reject(context, name)
        sound(context)


def test_a_stop_that_meets_the_end_says_how_it_ended(context, tmp_path, chance):
    """T133: a run that is asked to stop while it ends is DONE or STOPPED, and everybody says the same."""
    path = tmp_path / "h"
    fakes.history(path, fakes.INIT, fakes.do("wait", seconds=0.3), fakes.result())
    for _ in range(TIMES):
        names = set(context.store.names())
        pid = fork(lambda: core.start(context, Ask(run_type="scout", task="x", argv=(str(path),))))
        until(lambda names=names: set(context.store.names()) - names, "the box")
        (name,) = set(context.store.names()) - names
        (came,) = race(tmp_path, chance, 0.8, lambda name=name: control.stop(context, name).status)
        assert ended(pid) == 0
        state = context.store.load(name)
        assert str(state.status) in {"DONE", "STOPPED"}
        assert came.value == str(state.status) if not came.refused else f"it is {state.status}" in came.value, came
        assert events(context, name) == ["run.started", "run.finished" if state.status == "DONE" else "run.stopped"]
        sound(context)


def test_a_life_and_a_cycle_of_one_agent_take_turns(agent, repo, tmp_path, chance):
    """Two cycles of one agent never live at once; whoever comes second waits for nobody and says so."""
    small = Small(tmp_path / "small")
    small.does('fact("goal.progressed", goal_id="goal-1"); end("goal-1")')
    run = small.runner(agent)
    for _ in range(max(1, TIMES // 3)):
        words = ("live", "--agents", "cedar", "--cycles", "1", "--heartbeat", "0s", "--mind", "reflex")
        with small.background(repo, *words) as lived:
            time.sleep(chance.uniform(0, 0.6))
            cycled = run("cycle", "cedar")
            said = lived.communicate(timeout=100)[0].decode()
            assert lived.returncode == 0, said
        assert cycled.returncode == 0 or "is in the middle of a cycle" in cycled.stderr, cycled.stderr
    told = [entry for entry in world.ledger_of(repo) if entry["event"] in {"run.started", "run.finished"}]
    assert [entry["event"] for entry in told] == ["run.started", "run.finished"] * (len(told) // 2)
    assert [entry["run"] for entry in told[::2]] == [entry["run"] for entry in told[1::2]]
    assert run("verify").returncode == 0


def test_two_processes_append_each_its_own(context, tmp_path, chance):
    """T153: none is lost, each is once there, and each writer's entries stand in the order in which it wrote them."""
    many = 100 * TIMES
    prepared(context)

    def write(who: str) -> None:
        for number in range(many):
            context.journal.append("goal.progressed", None, {"who": who, "n": number})

    race(tmp_path, chance, 0, lambda: write("one"), lambda: write("two"))
    entries = context.journal.entries()
    assert [entry["seq"] for entry in entries] == list(range(1, 2 * many + 1))
    for who in ("one", "two"):
        assert [entry["facts"]["n"] for entry in entries if entry["facts"]["who"] == who] == list(range(many))
    assert [entry["time"] for entry in entries] == sorted(entry["time"] for entry in entries)
    sound(context)


def test_status_is_answered_while_the_ledger_is_held(agent, repo, context):
    """An operator who looks waits for nobody: not for the gate, nor for the ledger, whose picture may be behind it."""
    prepared(context)
    context.journal.append("goal.progressed", None, {})
    context.layout.ledger.touch()
    outermost_first: Any = [
        locks.Lock(context.layout.merge_lock, Rank.MERGE),
        locks.Lock(context.layout.ledger_lock, Rank.LEDGER),
    ]
    with contextlib.ExitStack() as held:
        for lock in outermost_first:
            held.enter_context(lock)
        assert agent("status", timeout=30).returncode == 0
        assert agent("list", "--json", timeout=30).returncode == 0


def test_an_audit_beside_many_ends_accuses_nobody(context):
    """T157: whoever ends between two looks of `verify` is no forger, however many do so one after the other."""
    prepared(context)

    def short_runs(first: int) -> None:
        for number in itertools.count(first, 10):
            made, owner = claimed(context, f"{number:06x}")
            name = made.meta.run_name
            sealed = {"meta_sha256": settle.hash_file(context.store.box(name), "meta.yaml")}
            context.journal.append("run.started", name, {**plan.facts(made.meta, made.state), **sealed})
            state = context.store.update(name, lambda now: step(now, Status.DONE, Actor.OWNER, phase=Phase.SETTLED))
            settle.record(context.store, context.journal, made.meta, state)
            owner.release()

    with contextlib.ExitStack() as writers:
        for number in range(3):
            writers.enter_context(child(lambda number=number: short_runs(number)))
        # So many that a look takes longer than a run.
        until(lambda: len(context.store.names()) > 100, "the first runs")
        assert [audit.audit(context).flaws for _ in range(TIMES)] == [()] * TIMES


@pytest.mark.parametrize("late", ["own", "update"])
def test_a_box_that_was_collected_is_not_brought_back(context, late):
    """K05: whoever comes late is told that the run is gone, and leaves nothing in its place."""
    name = reviewed(prepared(context), "a1b2")
    reject(context, name)
    assert collect_all(context) == [name]
    with pytest.raises(OperatorError, match="There is no run"):
        context.store.own(name) if late == "own" else context.store.update(name, lambda state: state)
    assert not context.store.box(name).path.exists()


def test_a_box_whose_locks_an_agent_has_removed_can_still_be_owned(context):
    """Without a wall an agent can take them away; the run must come to an end all the same."""
    name = reviewed(prepared(context), "a1b2")
    shutil.rmtree(context.store.box(name).private)
    assert context.store.update(name, lambda state: records.replace(state, events=7)).events == 7
    owner = context.store.own(name)
    assert owner
    owner.release()
