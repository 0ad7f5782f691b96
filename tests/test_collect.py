"""`agent gc` removes what is finished and old, says so first, and keeps what may still be needed."""

from __future__ import annotations

import shutil

import pytest

from agents import audit, collect, settle, workshop
from agents.model import Phase, Status
from agents.sweep import sweep
from agents.times import iso
from essentials import records
from tests.support.boxes import Hands, abandoned, claimed, events, every_step, make_context

DAY = 86400.0


@pytest.fixture
def hands():
    return Hands()


@pytest.fixture
def context(tmp_path, hands):
    return make_context(tmp_path, hands)[0]


def over(context, hands, short_id, status=Status.DONE, age=0.0):
    """A run that ended *age* seconds ago, recorded as the supervisor does."""
    then, hands.wall = hands.wall, hands.wall - age
    name = abandoned(context, short_id, status=status, phase=Phase.SETTLED, ended_at=iso(hands.wall))
    if status is not Status.ACTIVE:
        settle.record(context.store, context.journal, context.store.meta(name), context.store.load(name))
    hands.wall = then
    return name


@pytest.mark.parametrize(
    ("status", "goes"),
    [(Status.DONE, True), (Status.MERGED, True), (Status.REJECTED, True), (Status.ACTIVE, False), (Status.REVIEW, False),
     (Status.CRASHED, False), (Status.STALLED, False), (Status.STOPPED, False), (Status.MERGING, False)],
)  # fmt: skip
def test_what_may_be_resumed_or_reviewed_stays(context, hands, status, goes):
    name = over(context, hands, "aaaa", status, age=100 * DAY)
    assert collect.candidates(context, DAY, 0) == ([name] if goes else [])


@pytest.mark.parametrize(
    ("keep_for", "keep_runs", "gone"),
    [(None, None, 0), (1.5 * DAY, None, 2), (10 * DAY, None, 0), (0, None, 4), (None, 3, 1), (None, 0, 4), (None, 9, 0),
     (2.5 * DAY, 2, 2), (1.5 * DAY, 9, 2)],
)  # fmt: skip
def test_age_and_number_each_bound_what_is_kept_oldest_first(context, hands, keep_for, keep_runs, gone):
    names = [over(context, hands, f"aaa{number}", age=age * DAY) for number, age in enumerate((3, 2, 1, 0.1))]
    assert collect.candidates(context, keep_for, keep_runs) == names[:gone]


def test_a_box_that_cannot_be_read_stays(context, hands):
    """C29: it is evidence of something."""
    name = over(context, hands, "aaaa", age=9 * DAY)
    context.store.box(name).state.write_text("{")
    assert collect.candidates(context, 0, 0) == []


def test_a_removed_box_is_gone_from_everywhere_but_the_ledger(context, hands):
    kept, gone = over(context, hands, "aaaa", age=DAY), over(context, hands, "bbbb", age=DAY)
    assert context.store.resolve("last-done") == gone
    collect.remove(context, gone)
    assert context.store.names() == [kept]
    assert not list(context.layout.staging.iterdir())
    assert "last-done" not in context.store.pointers()
    assert not (context.layout.pointers / "last-done").is_symlink()
    assert events(context, gone)[-1] == "run.collected"
    assert gone.rpartition("__")[2] not in context.layout.dashboard.read_text("utf-8")
    assert context.store.resolve("latest") == kept
    assert audit.audit(context).flaws == ()
    # Its id is never given again: it still stands in the ledger.
    assert not context.store.reserve("bbbb", "another")


def test_a_removal_that_dies_is_finished_by_the_next(context, hands, tmp_path):
    """C12: dead before every few system calls; the box is whole or gone, and no audit sees a change in it."""
    name = over(context, hands, "aaaa", age=DAY)
    copy = tmp_path / "copy"
    shutil.copytree(context.store.box(name).path, copy)
    for _ in every_step(lambda: collect.remove(context, name), stride=9):
        box = context.store.box(name).path
        assert not box.exists() or {path.name for path in box.iterdir()} == {path.name for path in copy.iterdir()}
        assert audit.audit(context).flaws == ()
        for name_again in collect.candidates(context, 0, None):
            collect.remove(context, name_again)
        assert context.store.names() == []
        for grave in context.layout.staging.iterdir():
            shutil.rmtree(grave)
        shutil.copytree(copy, box)


def test_a_link_that_an_agent_left_in_its_box_is_not_followed(context, hands, tmp_path):
    name = over(context, hands, "aaaa")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "file").write_text("mine")
    (context.store.box(name).outbox / "link").symlink_to(tmp_path / "own")
    collect.remove(context, name)
    assert (tmp_path / "own" / "file").read_text() == "mine"


def test_a_sweep_after_a_removal_finds_nothing(context, hands):
    name = over(context, hands, "aaaa")
    collect.remove(context, name)
    before = context.layout.ledger.read_bytes()
    assert sweep(context) == []
    assert context.layout.ledger.read_bytes() == before


def test_without_an_end_the_start_counts(context, hands):
    """An old record knows no end."""
    name = over(context, hands, "aaaa", age=9 * DAY)
    context.store.update(name, lambda state: records.replace(state, ended_at=None))
    assert collect.candidates(context, 8 * DAY, None) == [name]
    assert collect.candidates(context, 10 * DAY, None) == []


# --- Airlocks ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def airlocked(context, hands):
    """Makes a fix that ended in *status*, with its airlock; *change* is what its agent left in it."""

    def make(short_id, status, change=None, *, carried=True):
        made, owner = claimed(context, short_id, run_type="fix")
        bench = workshop.ready(context, made, lambda: False)
        if change:
            (made.root / "made.txt").write_text(change)
        patch = workshop.export(context, made.meta, bench) if carried else None
        name = made.meta.run_name
        context.store.update(
            name,
            lambda state: records.replace(
                state, status=status, phase=Phase.SETTLED, ended_at=iso(hands.wall), patch=patch
            ),
        )
        settle.record(context.store, context.journal, made.meta, context.store.load(name))
        owner.release()
        return name

    return make


@pytest.mark.parametrize("status", list(Status))
def test_only_airlocks_of_runs_that_are_over_go(context, airlocked, status):
    """G39: whoever may still review, resume or merge needs them."""
    name = airlocked("aaaa", status, "work\n")
    over_for_good = status in {Status.DONE, Status.MERGED, Status.REJECTED}
    assert collect.airlocks(context) == ([name] if over_for_good else [])


@pytest.mark.parametrize("change", [None, "work\n"])
def test_a_closed_airlock_is_gone_with_its_registration_and_the_box_stays(context, airlocked, change):
    """G39: its work is in the patch."""
    name = airlocked("aaaa", Status.REJECTED, change)
    assert collect.close(context, name) is True
    assert not context.layout.tree(name).exists()
    assert context.store.names() == [name]
    assert collect.airlocks(context) == []
    assert audit.audit(context).flaws == ()


@pytest.mark.parametrize("carried", [True, False])
def test_work_that_nobody_has_carried_into_the_box_stays_with_its_box(context, airlocked, carried):
    """G39: whatever is younger than the patch is in no patch; the operator is told."""
    name = airlocked("aaaa", Status.DONE, "work\n", carried=carried)
    if carried:
        (context.layout.tree(name) / "later.txt").write_text("later\n")
    told = []
    asked = records.replace(context, say=told.append)
    assert collect.close(asked, name) is False
    collect.remove(asked, name)
    assert (context.layout.tree(name) / "made.txt").read_text() == "work\n"
    assert context.store.names() == [name]
    assert len(told) == 2
    assert all(name in line and "in no patch" in line for line in told)
    assert "run.collected" not in events(context, name)


def test_a_box_goes_with_its_airlock(context, airlocked):
    name = airlocked("aaaa", Status.MERGED, "work\n")
    collect.remove(context, name)
    assert not context.layout.tree(name).exists()
    assert context.store.names() == []
    assert events(context, name)[-1] == "run.collected"


def test_what_is_no_run_among_the_airlocks_is_nobodys_business(context):
    """The folder is the operator's, too."""
    (context.layout.trees / "own").mkdir(parents=True)
    (context.layout.trees / "26-03-01_0915__unknown__0be1").mkdir()
    assert collect.airlocks(context) == []
