"""The watchdog's round: dead runs get a truthful end, live and foreign ones are left alone, whoever else is at work."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import signal
import subprocess
import sys
import time

import pytest

from agents import files, git, ledger, locks, plan, procs, publish, settle
from agents.errors import Tampered
from agents.lockorder import Rank
from agents.model import Actor, FailureKind, Phase, RunState, Status
from agents.pump import Ending
from agents.sweep import STALE, sweep
from agents.times import iso
from essentials import records
from tests.support.boxes import (
    Hands,
    abandoned,
    child,
    claimed,
    events,
    every_step,
    make_context,
    planned,
    together,
    until,
)

RESULT = b'{"type":"result","subtype":"success","is_error":false,"result":"# What I found\\n"}\n'


@pytest.fixture
def hands():
    """The clock of these tests stands at the real time: markers and folders are aged by the file system's."""
    return Hands(wall=time.time())


@pytest.fixture
def context(tmp_path, hands):
    made, said = make_context(tmp_path, hands)
    # What the sweep says is looked at by one test only.
    return records.replace(made, say=said.append)


@pytest.fixture
def stranger():
    """A living process that is nobody's agent."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def failure(context, name):
    state = context.store.load(name)
    return state.status, state.failure.kind if state.failure else None


def check_settled(context, name):
    """What every end leaves: no marker, no commands, one sealed entry, a chain that holds."""
    assert name not in context.store.active().values()
    assert context.store.load(name).phase is Phase.SETTLED
    assert not context.layout.commands(name.rpartition("__")[2]).exists()
    assert ledger.check(context.journal.lines())[0] is None
    assert context.journal.entries()[-1]["facts"]["evidence"]


def test_a_dead_pid_is_crashed_at_the_next_command(context):
    """T139: its supervisor died with it; report, ledger, pointer and dashboard say so."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    name = abandoned(context, pid=gone.pid, pid_start=1, phase=Phase.RUNNING)
    assert sweep(context) == [name]
    assert failure(context, name) == (Status.CRASHED, FailureKind.SUPERVISOR_DIED)
    assert context.store.box(name).report.exists()
    assert context.store.resolve("last-fail") == name
    assert events(context, name) == ["run.started", "run.crashed"]
    assert "CRASHED" in context.layout.dashboard.read_text("utf-8")
    check_settled(context, name)


def test_a_reused_pid_is_crashed_and_its_new_owner_lives(context, stranger):
    """T140: P01: the pid lives but was started at another time; that process is nobody's business."""
    start = procs.start_of(stranger.pid)
    name = abandoned(
        context,
        pid=stranger.pid,
        pid_start=start - 1,
        guard_pid=stranger.pid,
        guard_start=start + 1,
        phase=Phase.RUNNING,
    )
    assert sweep(context) == [name]
    assert failure(context, name)[0] is Status.CRASHED
    assert stranger.poll() is None


def test_a_pid_without_a_start_time_proves_nothing(context, stranger):
    """T140: an old record without it must not cost a stranger's life."""
    name = abandoned(context, pid=stranger.pid, pid_start=None, phase=Phase.RUNNING)
    sweep(context)
    assert failure(context, name)[0] is Status.CRASHED
    assert stranger.poll() is None


def tree(tmp_path, name):
    """A silent agent with a child and a grandchild that left its session; their pids."""
    pids = tmp_path / "pids"
    program = (
        "import os, subprocess, sys, time\n"
        f"note = lambda: open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "note()\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); note()\n"
        "    if os.fork() == 0: note()\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, procs.RUN_MARK: name})
    until(lambda: pids.exists() and len(pids.read_text().split()) == 3, "the tree")
    return process, [int(pid) for pid in pids.read_text().split()]


@pytest.mark.parametrize("owner", ["dead", "hung"])
@pytest.mark.parametrize(("silence", "status"), [(299, Status.ACTIVE), (301, Status.STALLED)])
def test_silence_of_a_living_process(context, hands, tmp_path, owner, silence, status):
    """T141: 299 s are patience, 301 s are STALLED and the whole tree is reaped; a dead owner is never fine."""
    # Other tests run at the same time: the mark in the environment must be this one's alone.
    name = abandoned(
        context,
        secrets.token_hex(16),
        last_heartbeat=iso(hands.wall),
        clock_offset=hands.wall - hands.mono,
        phase=Phase.RUNNING,
    )
    process, pids = tree(tmp_path, procs.mark(context.store.box(name).path))
    lock = context.store.own(name) if owner == "hung" else None
    try:
        start = procs.start_of(process.pid)
        context.store.update(name, lambda state: records.replace(state, pid=process.pid, pid_start=start))
        context.store.box(name).stream.write_bytes(b"half of the work\n")
        hands.forward(silence)
        changed = sweep(context)
        if owner == "dead" and status is Status.ACTIVE:
            # Nobody will ever hear it: an orphan is ended and has crashed.
            status = Status.CRASHED
        assert context.store.load(name).status is status
        assert changed == ([] if status is Status.ACTIVE else [name])
        alive = status is Status.ACTIVE
        process.poll() if alive else process.wait(timeout=30)
        until(lambda: all(procs.start_of(pid) is None for pid in pids) != alive, "the end of the tree")
        if status is Status.STALLED:
            assert context.store.load(name).failure.kind is FailureKind.STALLED
            assert context.store.load(name).failure.last_safe_artifact in {"raw/stream.jsonl", "report.md"}
            assert "run.stalled" in events(context, name)
    finally:
        for pid in pids:
            with_start = procs.start_of(pid)
            if with_start is not None:
                os.kill(pid, signal.SIGKILL)
        process.wait()
        if lock:
            lock.release()


def test_a_silent_process_that_is_only_to_be_marked_is_left_alone(tmp_path, hands, stranger):
    """T141: with `on_stall: mark` a hung supervisor's agent lives on."""
    context, _ = make_context(tmp_path, hands, on_stall="mark")
    name = abandoned(
        context,
        pid=stranger.pid,
        pid_start=procs.start_of(stranger.pid),
        phase=Phase.RUNNING,
        last_heartbeat=iso(hands.wall),
    )
    owner = context.store.own(name)
    hands.forward(400)
    assert sweep(context) == []
    assert stranger.poll() is None
    owner.release()


def test_a_clock_that_jumps_is_not_silence(context, hands):
    """C30: an hour by the calendar, a second by the clock that never jumps."""
    made, owner = claimed(context)
    name = made.meta.run_name
    change = {"last_heartbeat": iso(hands.wall), "clock_offset": hands.wall - hands.mono, "phase": Phase.RUNNING}
    context.store.update(name, lambda state: records.replace(state, **change))
    hands.wall += 3600
    hands.mono += 1
    assert sweep(context) == []
    owner.release()


def test_a_run_of_another_machine_is_not_touched(context, stranger):
    """P02: N18: its pid means nothing here."""
    name = abandoned(
        context, host_id="another", pid=stranger.pid, pid_start=procs.start_of(stranger.pid), phase=Phase.RUNNING
    )
    before = context.store.box(name).state.read_bytes()
    assert sweep(context) == []
    assert context.store.box(name).state.read_bytes() == before
    assert name in context.store.active().values()
    assert stranger.poll() is None


def test_a_run_of_before_the_restart_has_crashed_and_no_pid_is_looked_at(context, stranger):
    """C31: the boot differs, so the pid is somebody else's for certain."""
    name = abandoned(
        context, boot_id="before", pid=stranger.pid, pid_start=procs.start_of(stranger.pid), phase=Phase.RUNNING
    )
    assert sweep(context) == [name]
    assert failure(context, name) == (Status.CRASHED, FailureKind.REBOOT)
    assert stranger.poll() is None
    check_settled(context, name)


@pytest.mark.parametrize(("run_type", "expected"), [("scout", Status.DONE), ("fix", Status.CRASHED)])
def test_after_a_restart_only_a_run_whose_work_is_in_its_stream_has_ended_well(context, run_type, expected):
    """C31: nobody has flushed what an agent wrote to its airlock, so nothing says that all of it is there."""
    made, owner = claimed(context, run_type=run_type, engine="scripted")
    name = made.meta.run_name
    context.journal.append("run.started", name, plan.facts(made.meta, made.state))
    context.store.box(name).stream.write_bytes(RESULT)
    change = {"boot_id": "before", "phase": Phase.FINALIZING, "exit_code": 0}
    context.store.update(name, lambda state: records.replace(state, **change))
    owner.release()
    assert sweep(context) == [name]
    assert context.store.load(name).status is expected
    check_settled(context, name)


@pytest.mark.parametrize("ref", [git.LEDGER_REF, git.COMMONS_REF])
def test_locks_that_a_power_cut_has_left_on_our_refs_are_removed(context, ref):
    context.journal.append("run.started", "one", {}, anchor=True)
    context.layout.dashboard.unlink()
    lock = context.repo.common_dir / f"{ref}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text(f"{'ab' * 20}\n")
    sweep(context)
    assert not lock.exists()


@pytest.mark.parametrize(
    ("phase", "exit_code", "stream", "expected"),
    [
        (Phase.FINALIZING, 0, RESULT, Status.DONE), (Phase.FINALIZING, 1, RESULT, Status.CRASHED),
        (Phase.FINALIZING, 0, b"", Status.CRASHED), (Phase.RUNNING, None, RESULT, Status.CRASHED),
        (Phase.CREATED, None, b"", Status.CRASHED), (Phase.PREPARING, None, b"", Status.CRASHED),
        (Phase.FINALIZING, 0, RESULT.replace(b"false", b"true"), Status.CRASHED),
        (Phase.FINALIZING, 0, RESULT + b'{"type":"resu', Status.DONE),
    ],
)  # fmt: skip
def test_what_a_dead_supervisor_left_is_finished(context, phase, exit_code, stream, expected):
    """C08: only an agent that had ended well and said so is DONE; the report comes from the recorded stream."""
    name = abandoned(context, engine="scripted", stream=stream, phase=phase, exit_code=exit_code)
    assert sweep(context) == [name]
    assert context.store.load(name).status is expected
    if stream.startswith(b'{"type":"result"'):
        assert "What I found" in context.store.box(name).report.read_text()
    check_settled(context, name)


def test_the_output_of_a_plain_program_becomes_the_report_of_a_dead_run(context):
    name = abandoned(context, stream=b"line one\nline two", phase=Phase.FINALIZING, exit_code=0)
    sweep(context)
    assert context.store.load(name).status is Status.DONE
    assert context.store.box(name).report.read_text() == "line one\nline two\n"


@pytest.mark.parametrize("status", [Status.DONE, Status.CRASHED, Status.STALLED, Status.STOPPED])
@pytest.mark.parametrize("younger", [0, 40], ids=["newest", "older than the dashboard"])
def test_a_settled_state_that_the_ledger_does_not_know_is_caught_up_once(context, status, younger):
    """C03, C10: the supervisor died between state and ledger; there is one sealed entry in the end."""
    name = abandoned(context, status=status, phase=Phase.SETTLED)
    for number in range(younger):
        context.journal.append("run.finished", f"other {number}", {"started_at": "2099", "status": "DONE"})
    for _ in range(3):
        assert sweep(context) == []
        assert len(events(context, name)) == 2
        assert name not in context.store.active().values()
    entry = context.journal.entries()[-1]
    assert (entry["run"], entry["facts"]["recovered"], entry["facts"]["status"]) == (name, True, str(status))


SAID = b"".join(
    b'{"type":"system","subtype":"hollow","kind":"goal.set","text":"%d","session_id":"s"}\n' % number
    for number in range(4)
)


@pytest.mark.parametrize("copied", range(5))
def test_what_the_agent_said_is_told_once_wherever_its_supervisor_died(context, copied):
    """C10: state first, then facts, then the end: the sweep goes on behind the last fact that was copied."""
    name = abandoned(context, stream=SAID, engine="hollow", status=Status.CRASHED, phase=Phase.SETTLED)
    for number in range(copied):
        context.journal.append("goal.set", name, {"said": {"text": str(number)}})
    for _ in range(2):
        assert sweep(context) == []
        assert events(context, name) == ["run.started", *["goal.set"] * 4, "run.crashed"]
    assert [entry["facts"]["said"]["text"] for entry in context.journal.entries()[1:-1]] == ["0", "1", "2", "3"]


def test_what_earlier_attempts_said_is_not_told_again(context):
    """A sweep hears the stream of all attempts, of which the ledger knows the first."""
    name = abandoned(context, stream=SAID, engine="hollow", phase=Phase.RUNNING, boot_id="before")
    for number in range(2):
        context.journal.append("goal.set", name, {"said": {"text": str(number)}})
    assert sweep(context) == [name]
    assert [event for event in events(context, name) if event == "goal.set"] == ["goal.set"] * 4


@pytest.mark.parametrize("younger", [0, 40])
def test_a_run_whose_end_the_ledger_knows_only_loses_its_marker(context, younger):
    """C10: the supervisor died after its entry: nothing is said twice."""
    name = abandoned(context)
    context.store.update(name, lambda state: records.replace(state, status=Status.DONE, phase=Phase.SETTLED))
    settle.record(context.store, context.journal, context.store.meta(name), context.store.load(name))
    files.create(context.layout.active / "a1b2", name.encode())
    for number in range(younger):
        context.journal.append("run.finished", f"other {number}", {"started_at": "2099", "status": "DONE"})
    before = context.layout.ledger.read_bytes()
    assert sweep(context) == []
    assert context.layout.ledger.read_bytes() == before
    assert context.store.active() == {}


def test_an_entry_of_the_same_tick_as_the_dashboard_is_drawn(context):
    """C10: two entries within a tick of the kernel's clock, and the writer of the second was killed before it drew."""
    name = abandoned(context)
    old = context.layout.dashboard.read_bytes()
    context.journal.append("run.finished", name, {"started_at": "2026", "status": "DONE", "task": "the later one"})
    drawn = context.layout.dashboard.read_bytes()
    context.layout.dashboard.write_bytes(old)
    tick = context.layout.ledger.stat().st_mtime_ns
    os.utime(context.layout.dashboard, ns=(tick, tick))
    context.store.deactivate("a1b2")
    sweep(context)
    assert context.layout.dashboard.read_bytes() == drawn != old


def test_a_run_that_was_only_marked_gets_its_seal(context):
    """A watchdog marked it STALLED, its supervisor died while it wrote the end: the mark is not the sealed entry."""
    name = abandoned(context, status=Status.STALLED, phase=Phase.RUNNING)
    meta = context.store.meta(name)
    context.journal.append("run.stalled", name, plan.facts(meta, context.store.load(name)))
    context.store.update(name, lambda state: records.replace(state, phase=Phase.SETTLED))
    sweep(context)
    assert [bool(entry["facts"].get("evidence")) for entry in context.journal.entries()] == [False, False, True]


def test_a_sweep_that_dies_is_swept_itself(context):
    """C12: wherever it is killed, the next one brings the run to the same end, said once."""
    name = abandoned(context, stream=b"said\n", phase=Phase.RUNNING, boot_id="before")
    state = context.store.box(name).state.read_bytes()
    for _ in every_step(lambda: sweep(context), stride=7):
        sweep(context)
        assert context.store.load(name).status is Status.CRASHED
        check_settled(context, name)
        entries = [entry for entry in context.journal.entries() if entry["run"] == name]
        assert [entry["event"] for entry in entries[1:]] == ["run.crashed"]
        # Once more from the start, without the history.
        context.store.box(name).state.write_bytes(state)
        lines = context.layout.ledger.read_bytes().splitlines(keepends=True)
        context.layout.ledger.write_bytes(lines[0])
        files.create(context.layout.active / "a1b2", name.encode())


def test_sweeps_at_once_say_everything_once(context):
    """N08: six sweeps, five dead runs: one entry each."""
    names = [abandoned(context, f"a1b{number}", phase=Phase.RUNNING) for number in range(5)]
    together([lambda: sweep(context)] * 6)
    sweep(context)
    for name in names:
        assert events(context, name) == ["run.started", "run.crashed"]
        assert context.store.load(name).status is Status.CRASHED
    assert ledger.check(context.journal.lines())[0] is None


def test_sweeps_at_once_say_of_a_silent_run_once_that_it_is_silent(context, hands, tmp_path):
    """N08: T141: its supervisor is stopped, six commands find out at the same moment: one entry, one dead tree."""
    name = abandoned(context, secrets.token_hex(16), last_heartbeat=iso(hands.wall), phase=Phase.RUNNING,
                     clock_offset=hands.wall - hands.mono)  # fmt: skip
    process, pids = tree(tmp_path, procs.mark(context.store.box(name).path))
    lock = context.store.own(name)
    try:
        start = procs.start_of(process.pid)
        context.store.update(name, lambda state: records.replace(state, pid=process.pid, pid_start=start))
        hands.forward(301)
        together([lambda: sweep(context)] * 6)
        process.wait(timeout=30)
        until(lambda: all(procs.start_of(pid) is None for pid in pids), "the end of the tree")
        assert context.store.load(name).status is Status.STALLED
        assert events(context, name) == ["run.started", "run.stalled"]
        # A stopped supervisor that goes on, or one that hangs for good, is not said to be silent again.
        assert sweep(context) == []
        assert events(context, name) == ["run.started", "run.stalled"]
    finally:
        process.kill()
        process.wait()
        lock.release()


def test_a_sweep_races_a_supervisor_that_ends_its_run(context, hands):
    """N09: the run ends well in the moment in which a sweep would call it silent: what its supervisor says stands."""
    made, owner = claimed(context)
    name = made.meta.run_name
    change = {"last_heartbeat": iso(hands.wall), "clock_offset": hands.wall - hands.mono, "phase": Phase.RUNNING}
    context.store.update(name, lambda state: records.replace(state, **change))
    hands.forward(301)
    gate = context.layout.data / "gate"

    def supervise():
        until(gate.exists, "the gate")
        ending = Ending(exit_code=0)
        outcome = (Status.DONE, None, "")
        settle.conclude(context.store, context.journal, context.clock, made.meta, Actor.OWNER, outcome, ending)

    def look():
        gate.touch()
        sweep(context)

    together([supervise, look, look])
    owner.release()
    sweep(context)
    # The watchdog may have been first; then its mark stands in the ledger before the end, never after it.
    assert events(context, name)[-1] == "run.finished"
    assert events(context, name).count("run.stalled") <= 1
    assert context.store.load(name).status is Status.DONE
    check_settled(context, name)


@pytest.mark.parametrize("asleep", [600.0, 10 * 3600.0])
def test_a_machine_that_slept_is_no_silence(context, hands, asleep):
    """C26: the wall has gone on, the clock of the run has not: lid closed, lid opened, the agent goes on."""
    made, owner = claimed(context)
    name = made.meta.run_name
    change = {"last_heartbeat": iso(hands.wall), "clock_offset": hands.wall - hands.mono, "phase": Phase.RUNNING}
    context.store.update(name, lambda state: records.replace(state, **change))
    hands.wall += asleep
    assert sweep(context) == []
    # Awake, and silent from then on: that counts.
    hands.forward(301)
    assert sweep(context) == [name]
    assert failure(context, name) == (Status.STALLED, FailureKind.STALLED)
    owner.release()


def test_a_sweep_beside_a_live_supervisor_changes_nothing(context):
    """N09: also in the first moments, when there is no pid yet, and with its commands in place."""
    made = planned(context)
    name = made.meta.run_name
    ready = context.layout.data / "ready"

    def supervise():
        context.store.reserve(made.meta.short_id, name)
        owner = context.store.claim(made.meta, made.state, {})
        with publish.published(context.layout, made.meta.short_id, made.commands):
            ready.touch()
            signal.pause()
        owner.release()

    with child(supervise):
        until(ready.exists, "the supervisor")
        before = context.store.box(name).state.read_bytes()
        commands = sorted(context.layout.commands("a1b2").iterdir())
        together([lambda: sweep(context)] * 4)
        assert context.store.box(name).state.read_bytes() == before
        assert sorted(context.layout.commands("a1b2").iterdir()) == commands
        assert context.journal.lines() == []
    assert sweep(context) == [name]
    assert not context.layout.commands("a1b2").exists()


def test_an_idle_sweep_touches_nothing(context):
    name = abandoned(context, phase=Phase.RUNNING)
    sweep(context)
    before = {path: path.stat().st_mtime_ns for path in context.layout.data.rglob("*") if path.is_file()}
    assert sweep(context) == []
    assert {path: path.stat().st_mtime_ns for path in context.layout.data.rglob("*") if path.is_file()} == before
    assert name


BAD_STATES = [b"", b"{", b"\0" * 100, b"[]", b'{"status": "NEW"}', b'{"status": "ACTIVE", "notes": 5}', b'{"status": "ACTIVE", "pid": "x", "pid_start": {}}',
              b'{"status": "ACTIVE", "phase": "running", "clock_offset": "x", "last_heartbeat": "2020-01-01"}']  # fmt: skip


@pytest.mark.parametrize("data", BAD_STATES)
def test_a_state_that_cannot_be_read_is_reported_and_left_alone(tmp_path, data):
    """C29: one bad box does not stop the operator's work, and nothing of it is overwritten."""
    context, said = make_context(tmp_path)
    bad, good = abandoned(context, "bad0"), abandoned(context, "c0de")
    context.store.box(bad).state.write_bytes(data)
    assert sweep(context) == [good]
    assert context.store.box(bad).state.read_bytes() == data
    assert [line for line in said if bad in line]


def test_an_envelope_that_cannot_be_read_is_reported_and_left_alone(tmp_path):
    """C29: the same for meta.yaml."""
    context, said = make_context(tmp_path)
    name = abandoned(context, phase=Phase.RUNNING)
    context.store.box(name).meta.write_text("- nothing")
    assert sweep(context) == []
    assert context.store.load(name).status is Status.ACTIVE
    assert said


def readable(data):
    """The state that *data* holds, None where it is none."""
    try:
        return RunState.from_json(data)
    except Tampered:
        return None


def test_states_with_any_byte_changed_never_stop_a_sweep(tmp_path, hands, stranger):
    """C29: every byte of a state in turn becomes another one: what can be read is brought to an end or left alone for a
    reason, what cannot is reported and kept, and no process dies of it."""
    context, said = make_context(tmp_path, hands)
    # No one byte makes this start time the stranger's: whatever a damaged state says, it names nobody who lives.
    start = procs.start_of(stranger.pid) + 55_555
    name = abandoned(context, phase=Phase.RUNNING, pid=stranger.pid, pid_start=start, last_heartbeat=iso(hands.wall))
    box = context.store.box(name).state
    data = box.read_bytes()
    seen = set()
    for place, byte in itertools.product(range(0, len(data), 11), b'\0"9['):
        changed = data[:place] + bytes([byte]) + data[place + 1 :]
        box.write_bytes(changed)
        files.write(context.layout.active / "a1b2", name.encode())
        said.clear()
        swept = sweep(context)
        state, after = readable(changed), readable(box.read_bytes())
        if state is None:
            seen.add("unreadable")
            assert (swept, box.read_bytes()) == ([], changed)
            assert [line for line in said if name in line]
        elif state.host_id and state.host_id != procs.host_id():
            seen.add("foreign")
            assert (swept, box.read_bytes()) == ([], changed)
        elif state.status is Status.ACTIVE:
            seen.add("ended")
            assert after is not None
            assert (swept, after.phase, name in context.store.active().values()) == ([name], Phase.SETTLED, False)
            assert after.status in {Status.CRASHED, Status.STALLED, Status.DONE}
    assert seen == {"unreadable", "foreign", "ended"}
    assert stranger.poll() is None
    assert ledger.check(context.journal.lines())[0] is None


def old(path):
    os.utime(path, (time.time() - STALE - 60,) * 2, follow_symlinks=False)


def test_what_dead_starts_left_goes_when_it_is_old(context):
    """C01: K04: staging folders and markers without a box; young ones may still be on their way."""
    places = [
        context.layout.staging / "dead",
        context.layout.staging / "gone-box",
        context.layout.staging / "young",
    ]
    for place in places:
        (place / "private").mkdir(parents=True)
        (place / "private" / "owner.lock").touch()
    for short_id, text in (("dead", b"25-01-01_0000__x__dead"), ("f00d", b""), ("ffff", b"25-01-01_0000__x__ffff")):
        files.write(context.layout.active / short_id, text)
    for path in (*places[:2], context.layout.active / "dead", context.layout.active / "f00d"):
        old(path)
    assert sweep(context) == []
    assert [place.exists() for place in places] == [False, False, True]
    assert list(context.store.active()) == ["ffff"]


def test_an_old_staging_folder_that_is_owned_stays(context):
    """C01: a start that takes long is still a start."""
    place = context.layout.staging / "slow"
    (place / "private").mkdir(parents=True)
    with locks.Lock(place / "private" / "owner.lock", Rank.OWNER):
        old(place)
        sweep(context)
        assert place.exists()
    sweep(context)
    assert not place.exists()


def test_the_engine_of_a_run_may_be_gone(context):
    """Its stream is still text, and its end is still told."""
    name = abandoned(context, stream=b"its words\n", phase=Phase.RUNNING)
    meta = context.store.box(name).meta
    meta.write_text(meta.read_text().replace("engine: command", "engine: uninstalled"))
    assert sweep(context) == [name]
    assert context.store.box(name).report.read_text() == "its words\n"
    assert json.loads(context.journal.lines()[-1])["event"] == "run.crashed"
