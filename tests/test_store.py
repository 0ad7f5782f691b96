"""A box is there whole or not at all, an id is given once, no update is lost, and every target finds its run."""

from __future__ import annotations

import itertools
import random
import shutil
from pathlib import Path

import pytest

from agents import files, locks, naming
from agents.errors import HostError, OperatorError, Tampered
from agents.model import Phase, Status
from essentials import records
from tests.support.boxes import (
    claimed,
    every_step,
    killed_at_random,
    make_context,
    planned,
    together,
    until,
)


@pytest.fixture
def context(tmp_path):
    return make_context(tmp_path)[0]


def check_whole(context, name):
    """Every part of a visible box can be read, and its marker is there."""
    assert context.store.meta(name).run_name == name
    assert context.store.load(name).status is Status.ACTIVE
    assert context.store.box(name).outbox.is_dir()
    assert context.store.box(name).owner_lock.exists()
    assert name in context.store.active().values()


def test_a_box_is_whole_or_invisible_at_each_step_of_its_claim(context):
    """T157: C01, C02, C03: its maker dies before every single system call; what is visible is complete."""
    made = planned(context)
    name = made.meta.run_name
    dead = 0
    for step in every_step(lambda: context.store.claim(made.meta, made.state, {"private/note": b"more"})):
        dead = step
        for visible in context.store.names():
            check_whole(context, visible)
            assert (context.store.box(visible).path / "private" / "note").read_bytes() == b"more"
        assert not locks.is_locked(context.store.box(name).owner_lock)
        if context.store.names():
            # A second claim of the same name cannot happen; the next death needs an empty place.
            shutil.rmtree(context.store.box(name).path)
    assert dead > 40


def test_boxes_are_whole_when_their_maker_is_killed_at_random(context):
    """T157: C01, C02: the same with a maker that claims box after box."""
    chance = random.Random(11)
    counter = context.layout.data / "counter"
    counter.write_text("4096")

    def claim_next():
        number = int(counter.read_text())
        files.write(counter, str(number + 1).encode(), durable=False)
        made = planned(context, f"{number:x}")
        context.store.reserve(made.meta.short_id, made.meta.run_name)
        context.store.claim(made.meta, made.state, {}).release()

    for _ in range(40):
        killed_at_random(claim_next, chance, 0.05)
    names = context.store.names()
    assert names
    for name in names:
        check_whole(context, name)


def test_a_claim_that_fails_leaves_nothing(context):
    """C16: what cannot be made is reported, and neither box nor marker nor staging folder stays."""
    made = planned(context)
    occupied = context.store.box(made.meta.run_name).path
    (occupied / "something").mkdir(parents=True)
    with pytest.raises(HostError, match="make a box"):
        context.store.claim(made.meta, made.state, {})
    assert [path.name for path in context.layout.runs.iterdir()] == [occupied.name]
    assert context.store.active() == {}


def test_a_claimed_box_is_owned_by_its_maker_under_its_final_name(context):
    made, owner = claimed(context)
    name = made.meta.run_name
    assert locks.is_locked(context.store.box(name).owner_lock)
    assert context.store.own(name) is None
    owner.release()
    again = context.store.own(name)
    assert again is not None
    again.release()


@pytest.mark.parametrize("same_token", [False, True], ids=["own tokens", "the same token"])
def test_twenty_starts_of_one_task_in_one_minute_are_twenty_runs(context, tmp_path, same_token):
    """T119: N01, N02: names, short ids and command names are distinct, also when chance fails."""

    shared = random.Random(1).randbytes(32).hex()

    def start(number):
        # One token has eight ids; who finds all of them taken draws another, as a second start would.
        own = random.Random(100 + number).randbytes(32).hex()
        for short_id in itertools.chain(naming.short_ids(shared if same_token else own), naming.short_ids(own)):
            made = planned(context, short_id)
            if context.store.reserve(short_id, made.meta.run_name):
                context.store.claim(made.meta, made.state, {}).release()
                return

    together([lambda number=number: start(number) for number in range(20)])
    metas = [context.store.meta(name) for name in context.store.names()]
    assert len(metas) == 20
    assert len({meta.short_id for meta in metas}) == 20
    assert len({command for meta in metas for command in meta.safe_commands}) == 60
    for meta in metas:
        check_whole(context, meta.run_name)
        assert context.store.resolve(meta.short_id) == meta.run_name


def test_an_id_is_given_once_even_after_its_box_is_gone(context):
    assert context.store.reserve("a1b2", "one")
    assert not context.store.reserve("a1b2", "two")


def test_no_update_is_lost_when_eight_processes_write(context):
    """N08: every change survives and the revision counts them all."""
    made, owner = claimed(context)
    owner.release()
    name = made.meta.run_name

    def count():
        for _ in range(25):
            context.store.update(name, lambda state: records.replace(state, events=state.events + 1), durable=False)

    together([count] * 8)
    state = context.store.load(name)
    assert (state.events, state.revision) == (200, 200)


def test_an_update_that_changes_nothing_writes_nothing(context):
    made, _owner = claimed(context)
    before = context.store.box(made.meta.run_name).state.stat().st_mtime_ns
    assert context.store.update(made.meta.run_name, lambda state: state).revision == 0
    assert context.store.box(made.meta.run_name).state.stat().st_mtime_ns == before


def test_a_state_is_old_or_new_at_each_step_of_an_update(context):
    """T157: C09: no death of its writer leaves a state that cannot be read."""
    made, owner = claimed(context)
    owner.release()
    name = made.meta.run_name

    def change():
        context.store.update(name, lambda state: records.replace(state, phase=Phase.RUNNING))

    for _ in every_step(change):
        assert context.store.load(name).phase in {Phase.CREATED, Phase.RUNNING}
    assert context.store.load(name).phase is Phase.RUNNING


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"status": "NEW"}', b"\xff\xfe", b"[" * 100_000])
def test_a_state_that_is_none_is_reported_and_not_overwritten(context, data):
    """C29: what cannot be read is never guessed."""
    made, _owner = claimed(context)
    box = context.store.box(made.meta.run_name)
    box.state.write_bytes(data)
    with pytest.raises(Tampered):
        context.store.update(made.meta.run_name, lambda state: records.replace(state, events=1))
    assert box.state.read_bytes() == data


@pytest.mark.parametrize(
    "data", [None, b"", b"- a list", b"a: [", b"\xff\xfe\xfa", b"run_name: x", b"!!python/object:x {}"]
)
def test_an_envelope_that_is_none_is_reported(context, data):
    made, _owner = claimed(context)
    path = context.store.box(made.meta.run_name).meta
    path.unlink() if data is None else path.write_bytes(data)
    with pytest.raises(Tampered):
        context.store.meta(made.meta.run_name)


def test_a_task_of_any_characters_comes_back_from_the_envelope(context):
    task = "why?\n\u2028 \x85 : - # ' \" \u00e9\U0001f600 {a: [b]} \t end"
    made, _owner = claimed(context, task=task)
    assert context.store.meta(made.meta.run_name) == made.meta
    assert context.store.meta(made.meta.run_name).task == task


def test_there_is_no_state_of_a_run_that_is_not_there(context):
    with pytest.raises(OperatorError, match="no run"):
        context.store.load("26-01-01_0000__nothing__ffff")


class TestResolve:
    """What the operator types leads to one run or to one sentence."""

    @pytest.fixture
    def runs(self, context):
        """Three runs on disk, oldest first, two of whose ids begin alike."""
        names = []
        for short_id in ("a1b2", "a1c3", "bbbb"):
            made, owner = claimed(context, short_id, task=f"task of {short_id}")
            owner.release()
            names.append(made.meta.run_name)
        return names

    @pytest.mark.parametrize(
        ("target", "index"),
        [("latest", 1), ("last-fail", 0), ("a1b2", 0), ("a1c", 1), ("b", 2), ("25-11-22_1430__task-of-b", 2)],
    )
    def test_every_way_to_name_a_run(self, context, runs, target, index):
        """T146: `latest`, pointers, short ids, unique prefixes of ids and names."""
        context.store.point("latest", runs[1])
        context.store.point("last-fail", runs[0])
        assert context.store.resolve(target) == runs[index]
        assert context.store.resolve(runs[index]) == runs[index]

    @pytest.mark.parametrize("target", ["a1", "25-11", "25-11-22_1430__task-of-a1"])
    def test_what_fits_two_runs_is_refused_with_both_named(self, context, runs, target):
        """T146: ambiguous is an error."""
        with pytest.raises(OperatorError, match="fits") as caught:
            context.store.resolve(target)
        assert runs[0] in caught.value.message
        assert runs[1] in caught.value.message

    @pytest.mark.parametrize(
        "target",
        ["", " ", "..", ".", "/", "../../etc/passwd", "a1b2/", "/etc", "-x", "--help", "a1b2\n", "\0", "a\0b", "*", "é",
         "\udcff", "x" * 5000, "٤٤٤٤", "raw", "state.json", "zzzz", "last-review", "%s", "$(id)", "A1B2"],
    )  # fmt: skip
    def test_a_strange_or_unknown_target_is_one_sentence(self, context, runs, target):
        """T146: unknown or hostile text is an operator's error, never another exception."""
        with pytest.raises(OperatorError):
            context.store.resolve(target)

    def test_a_name_with_a_year_of_four_digits_is_a_run(self, context, runs):
        """T146: D12: the seed shows both forms."""
        old = "2025-11-22_1430__from-another-version__cafe"
        shutil.copytree(context.store.box(runs[0]).path, context.store.box(old).path)
        assert context.store.resolve(old) == old
        assert context.store.resolve("cafe") == old
        context.store.point("latest", old)
        assert context.store.resolve("latest") == old

    def test_without_a_pointer_latest_is_the_newest_run(self, context, runs):
        assert context.store.resolve("latest") == runs[-1]

    def test_there_is_no_latest_of_no_runs(self, context):
        with pytest.raises(OperatorError, match="no run"):
            context.store.resolve("latest")

    @pytest.mark.parametrize(
        "target", ["runs/25-11-22_1430__gone__dddd", "../../elsewhere", "/etc", "runs", "runs/../../outside", "latest"]
    )
    def test_a_pointer_that_leads_nowhere_or_outside_is_not_followed(self, context, runs, target):
        """T146: N15: dangling, outside, or a loop: the newest run is meant instead."""
        context.layout.latest.symlink_to(target)
        assert context.store.pointers() == {}
        assert context.store.resolve("latest") == runs[-1]

    def test_a_pointer_to_a_namesake_outside_gives_nothing_from_there(self, context, runs, tmp_path):
        """N15: a folder elsewhere that looks like a box is not one of ours."""
        fake = tmp_path / "runs" / "25-11-22_1430__fake__eeee"
        fake.mkdir(parents=True)
        (fake / "state.json").write_text('{"status": "REVIEW"}')
        context.layout.latest.symlink_to(fake)
        assert context.store.resolve("latest") == runs[-1]

    def test_a_real_folder_in_the_place_of_a_pointer_is_refused_and_kept(self, context, runs):
        """N15: nothing of the operator's is replaced."""
        context.layout.latest.mkdir()
        with pytest.raises(HostError, match="not a link"):
            context.store.point("latest", runs[0])
        assert context.layout.latest.is_dir()
        assert context.store.resolve("latest") == runs[-1]

    def test_a_pointer_that_is_being_made_is_not_shown(self, context, runs):
        """N14: what a killed mover leaves is no pointer."""
        context.store.point("last-fail", runs[0])
        (context.layout.pointers / ".last-fail.1234.tmp").symlink_to(f"../runs/{runs[1]}")
        assert context.store.pointers() == {"last-fail": runs[0]}

    def test_an_id_whose_box_was_removed_is_unknown(self, context, runs):
        shutil.rmtree(context.store.box(runs[2]).path)
        with pytest.raises(OperatorError):
            context.store.resolve("bbbb")


def test_markers_say_which_runs_may_be_active(context):
    made, _owner = claimed(context)
    assert context.store.active() == {"a1b2": made.meta.run_name}
    (context.layout.active / ".a1c3.ffff.tmp").write_bytes(b"half")
    (context.layout.active / "a1d4").mkdir()
    assert context.store.active() == {"a1b2": made.meta.run_name}
    context.store.deactivate("a1b2")
    context.store.deactivate("a1b2")
    assert context.store.active() == {}


def test_an_empty_repository_of_runs_has_none(tmp_path):
    context = make_context(tmp_path)[0]
    shutil.rmtree(context.layout.data)
    assert (context.store.names(), context.store.active(), context.store.pointers()) == ([], {}, {})


def test_strangers_in_the_runs_folder_are_no_runs(context):
    made, _owner = claimed(context)
    for stranger in (".new-0123", "notes", "25-13-45_9999__bad-date__abcd", "..hidden"):
        (context.layout.runs / stranger).mkdir()
    assert context.store.names() == [made.meta.run_name]


def test_a_data_folder_that_is_a_file_is_one_sentence(tmp_path):
    """C19: what cannot be written is said before anything is started."""
    context = make_context(tmp_path)[0]
    shutil.rmtree(context.layout.data)
    Path(context.layout.data).write_text("somebody else's")
    with pytest.raises(HostError, match=r"write to \.agents"):
        context.store.prepare()


def test_an_owner_is_waited_for_a_moment(context):
    """N09: a probe of another process holds the lock for an instant; that is no owner."""
    made, owner = claimed(context)
    owner.release()
    name = made.meta.run_name

    def probe():
        until(lambda: not locks.is_locked(context.store.box(name).owner_lock))

    def own():
        lock = context.store.own(name, timeout=10)
        assert lock is not None
        lock.release()

    together([probe, probe, own, own])
