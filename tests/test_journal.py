"""The ledger only grows, whole line by whole line, whoever dies or whatever is full, at a cost that history does not change."""

from __future__ import annotations

import errno
import json
import random
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from agents import git, glance, journal, ledger, locks, plan
from agents.dashboard import Dashboard
from agents.errors import HostError, Tampered
from agents.journal import Journal, state_home
from agents.ledger import Head
from agents.lockorder import Rank
from agents.model import Status
from tests.support.boxes import (
    Hands,
    claimed,
    ended,
    events,
    every_step,
    fork,
    killed_at_random,
    make_context,
    planned,
    together,
)


@pytest.fixture
def context(tmp_path):
    return make_context(tmp_path)[0]


def fill(context, count, padding=0):
    """Append *count* valid lines quickly, without a picture of each."""
    head, lines = Head(), []
    for number in range(count):
        facts = {"started_at": f"2025-01-01T{number:06d}", "task": "x" * padding, "status": "DONE"}
        line, head = ledger.link(head, time="t", event="run.finished", run=f"run-{number}", facts=facts)
        lines.append(line)
    context.layout.ledger.write_bytes(b"".join(lines))
    return head


def check(context):
    """The whole ledger as it must be: lines that parse, numbers without a gap, links that hold."""
    lines = context.journal.lines()
    flaw, head, _ = ledger.check(lines)
    assert flaw is None
    assert head.seq == len(lines)
    return lines


def test_the_ledger_grows_and_what_was_written_stays(context):
    """T152: earlier bytes are the same after two more runs; INDEX.md has the newest first."""
    made = planned(context)
    before = b""
    for number, started in enumerate(("2025-11-22T14:30:00Z", "2025-11-22T14:31:00Z"), 1):
        facts = plan.facts(made.meta, made.state) | {"started_at": started, "id": f"run{number}"}
        for event in ("run.started", "run.finished"):
            context.journal.append(event, f"run {number}", facts)
            now = context.layout.ledger.read_bytes()
            assert now.startswith(before)
            assert now.count(b"\n") == before.count(b"\n") + 1
            before = now
    page = context.layout.dashboard.read_text("utf-8")
    assert 0 < page.index("run2") < page.index("run1")
    check(context)


def test_twenty_processes_append_twenty_whole_lines(context):
    """T153: numbers follow each other, the chain holds, nothing that stood there has changed."""
    context.journal.append("run.started", "first", {"status": "ACTIVE"})
    before = context.layout.ledger.read_bytes()
    together(
        [
            lambda number=number: context.journal.append("run.finished", f"run {number}", {"n": number})
            for number in range(20)
        ]
    )
    lines = check(context)
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, 22))
    assert {json.loads(line)["run"] for line in lines} == {"first", *(f"run {number}" for number in range(20))}
    assert context.layout.ledger.read_bytes().startswith(before)


def test_an_entry_is_whole_or_absent_at_each_step_of_an_append(context):
    """T157: C07: wherever an append dies, the next one finds or makes a whole ledger and no entry before it is lost."""
    context.journal.append("run.started", "first", {})
    for step in every_step(lambda: context.journal.append("run.finished", "second", {})):
        before = context.journal.lines()
        context.journal.append("run.stopped", f"after {step}", {})
        assert check(context)[: len(before)] == before
    assert not [
        flaw
        for where, head in context.journal.anchors().items()
        if (flaw := ledger.compare(head, context.journal.lines(), where))
    ]


def test_of_many_that_anchor_at_once_each_finds_his_entry_anchored(context):
    """One may keep the head for all who wait: whoever comes back knows that the ref vouches for what he has written."""
    context.journal.append("run.started", "first", {})

    def write(number):
        context.journal.append("run.finished", f"run {number}", {"id": f"run {number}"}, anchor=True)
        mine = next(json.loads(line)["seq"] for line in context.journal.lines() if f"run {number}".encode() in line)
        kept = Head.from_json(git.read_anchor(context.repo))
        assert kept is not None
        assert kept.seq >= mine
        assert ledger.compare(kept, context.journal.lines(), "the ref") is None
        page = context.layout.dashboard.read_text("utf-8")
        assert f"run {number}" in page

    together([lambda number=number: write(number) for number in range(10, 22)])
    check(context)
    assert Head.from_json(git.read_anchor(context.repo)).seq == 13


def test_what_is_anchored_already_is_not_anchored_again(context):
    """The id of the ref is compared with those of the entry's head and of all that follow: that takes no git."""
    context.journal.append("run.finished", "x", {}, anchor=True)
    head = Head.from_json(git.read_anchor(context.repo))
    ref = git.anchored(context.repo)
    assert ref in git.blob_ids(head.to_json())
    context.journal.append("run.progressed", "y", {})
    before = sorted((context.repo.common_dir / "objects").rglob("*"))
    context.journal._anchor(head)
    assert (git.anchored(context.repo), sorted((context.repo.common_dir / "objects").rglob("*"))) == (ref, before)
    # The newest is taken where the ref is behind, or lies where only git finds it.
    subprocess.run(["git", "pack-refs", "--all"], cwd=context.repo.root, check=True)
    assert git.anchored(context.repo) is None
    context.journal._anchor(head)
    assert Head.from_json(git.read_anchor(context.repo)).seq == 2


def test_an_entry_that_was_cut_off_meanwhile_is_anchored_all_the_same(context):
    """Somebody rewrites the ledger between entry and anchor: the ref remembers what had been written."""
    context.journal.append("run.started", "x", {})
    context.journal.append("run.finished", "x", {})
    line = context.journal.lines()[-1]
    head = Head(2, ledger.digest(line))
    context.layout.ledger.write_bytes(b"".join(each + b"\n" for each in context.journal.lines()[:1]))
    context.journal._anchor(head)
    assert Head.from_json(git.read_anchor(context.repo)) == head


def test_a_picture_is_as_old_as_what_it_shows(context):
    """An entry that comes while it is drawn is younger, and known to be missing, though the file is written after it."""
    context.journal.append("run.started", "first", {})
    rows, layout = context.journal.rows, context.layout

    def slow_rows():
        found = rows()
        # Another writer, that is killed before it draws.
        line, _ = ledger.link(
            context.journal._head(), time="t", event="run.finished", run="second", facts={"id": "second"}
        )
        context.journal._write(line)
        return found

    Dashboard(layout, slow_rows).draw()
    assert "second" not in layout.dashboard.read_text("utf-8")
    assert glance.is_behind(str(layout.ledger), str(layout.dashboard))
    time.sleep(0.02)
    context.journal.catch_up()
    assert "second" in layout.dashboard.read_text("utf-8")
    assert not glance.is_behind(str(layout.ledger), str(layout.dashboard))
    # And what it shows is not drawn again.
    before = layout.dashboard.stat().st_ino
    Dashboard(layout, rows).draw(layout.ledger.stat().st_mtime_ns)
    assert layout.dashboard.stat().st_ino == before


def test_a_ledger_that_is_whole_is_looked_at_without_its_lock(context):
    context.journal.append("run.started", "x", {})
    with locks.Lock(context.layout.ledger_lock, Rank.LEDGER):
        context.journal.check_head()


def test_no_entry_is_lost_when_writers_are_killed_at_random(context):
    """T157: K09: thirty writers die in the middle of their work; what was acknowledged stays and the chain holds."""
    chance, acknowledged = random.Random(3), context.layout.data / "acknowledged"

    def write():
        context.journal.append("run.finished", "x", {"padding": "y" * 1500})
        with acknowledged.open("ab") as file:
            file.write(b".")

    for _ in range(30):
        killed_at_random(write, chance, 0.03)
    context.journal.append("run.finished", "last", {})
    assert len(check(context)) >= len(acknowledged.read_bytes()) + 1


@pytest.mark.parametrize(
    "tail",
    [b'{"seq":3,"ti', b"\0" * 4096, b"{", b"x" * 400_000, b"\0" * 700_000],
    ids=["half", "zeros", "byte", "long", "many zeros"],
)
def test_a_torn_tail_is_set_aside_and_the_next_entry_is_fine(context, tail):
    """C07, C15: a half line or a power cut's zeros go to the quarantine, not into the chain and not away."""
    for number in range(2):
        context.journal.append("run.finished", f"run {number}", {})
    before = context.layout.ledger.read_bytes()
    context.layout.ledger.write_bytes(before + tail)
    assert len(context.journal.lines()) == 2
    context.journal.append("run.finished", "after", {})
    assert context.layout.ledger.read_bytes().startswith(before)
    assert len(check(context)) == 3
    (kept,) = context.layout.quarantine.iterdir()
    assert kept.read_bytes() == tail
    assert context.journal.torn() == 0


def test_two_torn_tails_of_one_moment_are_both_kept(context):
    for number in range(2):
        context.journal.append("run.finished", f"run {number}", {})
        with context.layout.ledger.open("ab") as file:
            file.write(f"torn {number}".encode())
    context.journal.append("run.finished", "last", {})
    assert {path.read_bytes() for path in context.layout.quarantine.iterdir()} == {b"torn 0", b"torn 1"}


def test_a_disk_that_fills_in_an_append_leaves_a_whole_ledger(context):
    """C16: the part of the line that fitted is taken back, the caller is told."""
    context.journal.append("run.started", "first", {})
    before = context.layout.ledger.read_bytes()

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, resource.RLIM_INFINITY))
        with pytest.raises(HostError, match="write the ledger"):
            context.journal.append("run.finished", "second", {})

    assert ended(fork(limited)) == 0
    assert context.layout.ledger.read_bytes() == before
    context.journal.append("run.finished", "second", {})
    assert len(check(context)) == 2


def test_a_full_file_system_leaves_a_whole_ledger(context):
    """C16: the same on a file system that is full."""
    data = context.layout.data
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(data)], capture_output=True)
    if done.returncode:
        pytest.skip("mounting needs root")
    try:
        context.store.prepare()
        written = 0

        def flood():
            nonlocal written
            while written < 1000:
                context.journal.append("run.finished", f"run {written}", {"task": "x" * 1500})
                written += 1

        with pytest.raises(HostError) as caught:
            flood()
        assert isinstance(caught.value.__cause__, OSError)
        assert caught.value.__cause__.errno == errno.ENOSPC
        # The line can be there although its picture could not be drawn; it is never there in part.
        assert len(check(context)) in {written, written + 1}
    finally:
        subprocess.run(["umount", "-l", str(data)], check=True)


def test_the_head_is_kept_in_git_and_in_the_users_folder(context, tmp_path):
    context.journal.append("run.finished", "one", {}, anchor=True)
    expected = Head(1, ledger.digest(context.journal.lines()[0]))
    assert list(context.journal.anchors().values()) == [expected, expected]
    assert Head.from_json(git.read_anchor(context.repo)) == expected
    assert context.journal.head_file.is_relative_to(tmp_path / "home" / ".local" / "state")
    context.journal.append("run.started", "two", {})
    assert sorted(head.seq for head in context.journal.anchors().values()) == [1, 2]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s"), ({"HOME": "/h"}, "/h/.local/state"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state"), ({"HOME": ""}, None), ({}, None),
        ({"HOME": "here"}, None),
    ],
)  # fmt: skip
def test_the_users_state_folder_follows_the_rules(environ, expected):
    assert state_home(environ) == (Path(expected) if expected else None)


@pytest.mark.parametrize("home", ["file", "absent"])
def test_a_home_that_cannot_be_written_costs_only_that_witness(context, tmp_path, home):
    (tmp_path / "no-folder").write_text("no folder")
    place = tmp_path / "no-folder" if home == "file" else None
    journal = Journal(context.layout, context.repo, context.clock, place)
    journal.append("run.finished", "one", {}, anchor=True)
    journal.append("run.finished", "two", {}, anchor=True)
    assert {where: head.seq for where, head in journal.anchors().items()} == {"the git ref refs/agent-box/ledger": 2}
    check(context)


@pytest.mark.parametrize("place", ["the git ref", "the state folder"])
@pytest.mark.parametrize("change", ["cut", "rewritten", "emptied"])
def test_an_append_does_not_vouch_for_a_ledger_that_was_changed(context, place, change):
    """M08: a witness stays where it is when the ledger no longer holds what it remembers."""
    for number in range(4):
        context.journal.append("run.finished", f"run {number}", {}, anchor=True)
    before = context.journal.anchors()
    if place == "the git ref":
        context.journal.head_file.unlink()
    lines = context.layout.ledger.read_bytes().splitlines(keepends=True)
    if change == "emptied":
        context.layout.ledger.unlink()
    elif change == "cut":
        context.layout.ledger.write_bytes(b"".join(lines[:3]))
    else:
        fill(context, 4)
    for number in range(3):
        context.journal.append("run.finished", f"later {number}", {}, anchor=True)
    assert check(context)
    kept = [(where, head) for where, head in context.journal.anchors().items() if place.split()[-1] in where]
    assert kept
    assert all(before[where] == head for where, head in kept)
    assert all(ledger.compare(head, context.journal.lines(), where) for where, head in kept)


def test_a_new_repository_at_an_old_ones_place_starts_with_witnesses_of_its_own(context):
    context.journal.append("run.finished", "of the repository before", {}, anchor=True)
    context.layout.ledger.unlink()
    git.output(context.repo.root, "update-ref", "-d", git.LEDGER_REF)
    context.journal.append("run.finished", "of the new one", {}, anchor=True)
    assert {head.seq for head in context.journal.anchors().values()} == {1}
    for where, head in context.journal.anchors().items():
        assert ledger.compare(head, context.journal.lines(), where) is None


def test_a_witness_that_lags_behind_is_moved_on(context):
    """A run that died between its entry and its witness is no reason to distrust the ledger."""
    context.journal.append("run.finished", "one", {})
    old = context.journal.head_file.read_bytes()
    for number in range(3):
        context.journal.append("run.finished", f"run {number}", {})
    context.journal.head_file.write_bytes(old)
    context.journal.append("run.finished", "last", {})
    assert [head.seq for head in context.journal.anchors().values()] == [5]


def test_todays_ledger_can_be_accepted(context):
    """The operator's word moves every witness to the ledger as it is, a torn tail set aside."""
    for number in range(4):
        context.journal.append("run.finished", f"run {number}", {}, anchor=True)
    lines = context.layout.ledger.read_bytes().splitlines(keepends=True)
    context.layout.ledger.write_bytes(b"".join(lines[:2]) + b"torn")
    head = context.journal.accept()
    assert head.seq == 2
    assert list(context.journal.anchors().values()) == [head, head]
    context.journal.append("run.finished", "next", {}, anchor=True)
    assert {head.seq for head in context.journal.anchors().values()} == {3}


def test_a_last_line_that_is_no_entry_stops_the_next(context):
    context.layout.ledger.write_bytes(b"not an entry\n")
    with pytest.raises(Tampered, match="last line"):
        context.journal.append("run.finished", "x", {})
    assert context.layout.ledger.read_bytes() == b"not an entry\n"


def test_an_append_costs_the_same_whatever_the_history(context):
    """T152: bytes read and system calls are equal after 100 lines and after 5,000."""

    def cost():
        def reading():
            return [int(line.split()[1]) for line in Path("/proc/self/io").read_text().splitlines()][:4]

        before = reading()
        context.journal.append("run.finished", "x", {"status": "DONE"})
        return [after - start for start, after in zip(before, reading(), strict=True)]

    costs = []
    for count in (100, 5000):
        head = fill(context, count, padding=3000)
        context.journal.head_file.parent.mkdir(parents=True, exist_ok=True)
        context.journal.head_file.write_bytes(head.to_json())
        context.journal.append("run.finished", "warm", {"status": "DONE"})
        costs.append(cost())
        assert context.journal.rows()[1] is True
    (read, written, reads, writes), (more_read, more_written, more_reads, more_writes) = costs
    assert (more_reads, more_writes) == (reads, writes)
    # The numbers of the lines have more digits; nothing else may differ.
    assert abs(more_read - read) < 500
    assert abs(more_written - written) < 500


def test_the_picture_shows_the_newest_and_says_that_there_are_more(context):
    fill(context, 100)
    context.journal.redraw()
    rows, older = context.journal.rows()
    assert [row["run"] for row in rows] == [f"run-{number}" for number in range(99, 69, -1)]
    assert older
    assert "Older runs" in context.layout.dashboard.read_text("utf-8")


def test_what_the_ledger_says_of_a_run_is_found_at_any_age(context):
    fill(context, 400, padding=3000)
    context.journal.append("run.collected", "run-399", {"status": "COLLECTED"})
    assert context.journal.last("run-3")["status"] == "DONE"
    assert context.journal.last("run-398")["task"].startswith("xxx")
    assert context.journal.last("nobody") == {}


def read_by(context, action):
    """Bytes that *action* reads."""

    def counter():
        return int(Path("/proc/self/io").read_text().split()[1])

    before = counter()
    action()
    return counter() - before


def test_the_story_of_a_run_costs_its_age_and_not_the_ledgers_length(context):
    """T152: what a resume and a gate ask of the ledger is read from its end back to the run's start."""
    fill(context, 2000, padding=1500)
    for name in ("old", "new"):
        context.journal.append("run.started", name, {"status": "ACTIVE", "attempt": 1})
        context.journal.append("goal.set", name, {"why": "run.started"})
        context.journal.append("run.finished", "other", {"parent": name, "status": "DONE"})
        context.journal.append("run.finished", name, {"status": "DONE"})
    context.journal.append("run.resumed", "old", {"attempt": 2})
    story = [(entry["event"], entry["run"]) for entry in context.journal.story("old")]
    assert story == [("run.started", "old"), ("goal.set", "old"), ("run.finished", "old"), ("run.resumed", "old")]
    assert context.journal.last("old") == {"run": "old", "status": "DONE", "attempt": 2}
    assert context.journal.story("nobody") == []
    assert context.layout.ledger.stat().st_size > 3 * 10**6
    assert read_by(context, lambda: context.journal.story("new")) < 600_000
    assert read_by(context, lambda: context.journal.story("nobody")) > 3 * 10**6


@pytest.mark.parametrize("change", ["cut", "rewritten", "nothing"])
def test_what_a_witness_remembers_is_looked_for_from_the_end(context, change):
    """M08: an append sees that the ledger is not what it was without reading it as a whole."""
    head = fill(context, 3000, padding=1500)
    context.journal.head_file.parent.mkdir(parents=True)
    context.journal.head_file.write_bytes(head.to_json())
    if change == "cut":
        fill(context, 2000, padding=1500)
    elif change == "rewritten":
        fill(context, 3000, padding=1501)
    # Both lie behind what is read of the ledger anyway.
    fill_later = [
        lambda n=n: context.journal.append("run.finished", f"later {n}", {"task": "y" * 1900}) for n in range(200)
    ]
    for each in fill_later[:-1]:
        each()
    assert read_by(context, fill_later[-1]) < 3 * 10**6
    kept = Head.from_json(context.journal.head_file.read_bytes())
    assert kept == (head if change != "nothing" else Head(3200, ledger.digest(context.journal.lines()[-1])))


def test_a_broken_chain_is_set_aside_byte_for_byte_and_its_beginning_goes_on(context):
    fill(context, 900, padding=1500)
    lines = context.layout.ledger.read_bytes().splitlines(keepends=True)
    lines[700] = lines[700].replace(b"DONE", b"GONE")
    damaged = b"".join(lines)
    context.layout.ledger.write_bytes(damaged)
    assert context.journal.mend() == 200
    assert context.layout.ledger.read_bytes() == b"".join(lines[:700])
    (kept,) = context.layout.quarantine.iterdir()
    assert kept.read_bytes() == damaged
    assert context.journal.mend() == 0
    assert len(check(context)) == 700


def test_rows_for_programs_are_the_same_text_however_many_there_are():
    for count in (0, 1, 499, 500, 501, 1500):
        rows = [{"run": f"r{number}", "evidence": {"x": "y"}, "n": {"m": [number]}} for number in range(count)]
        plain = [{"run": row["run"], "n": row["n"]} for row in rows]
        assert journal.as_json(rows) == json.dumps(plain, indent=1)


def test_an_entry_of_endless_facts_is_bounded(context):
    """What an agent says of itself may not make the ledger unreadable."""
    endless = {"k" * 10**6: "v" * 10**6, "usage": {f"n{n}": 10**5000 for n in range(1000)}, "list": ["x" * 9999] * 999}
    context.journal.append("run.finished", "x", endless)
    context.journal.append("run.finished", "y", {"status": "DONE"})
    assert len(check(context)) == 2
    assert context.layout.ledger.stat().st_size < 256 * 1024


def test_a_ledger_that_does_not_exist_yet_is_empty(context):
    assert (context.journal.lines(), context.journal.entries(), context.journal.rows(), context.journal.torn()) == (
        [],
        [],
        ([], False),
        0,
    )
    assert context.journal.anchors() == {}


def test_a_dashboard_cell_holds_a_hostile_task(tmp_path):
    """K08: Markdown and HTML in a task stay text."""
    context = make_context(tmp_path, Hands())[0]
    made, _owner = claimed(context, task="| <script>alert(1)</script> [x](http://e) `rm` \n# head")
    context.journal.append("run.started", made.meta.run_name, plan.facts(made.meta, made.state))
    row = next(line for line in context.layout.dashboard.read_text("utf-8").splitlines() if Status.ACTIVE in line)
    assert "<script" not in row
    assert "[x](" not in row
    assert events(context) == ["run.started"]


def test_the_ledger_is_private(context):
    context.journal.append("run.started", "x", {})
    assert context.layout.ledger.stat().st_mode & 0o777 == 0o600
