"""`agent verify` finds every change of ledger, anchors, evidence and boxes, and calls nothing else a change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agents import audit, git, ledger, plan, scroll, settle
from agents.ledger import Head
from agents.model import Actor, Status
from agents.pump import Ending
from agents.times import iso
from essentials import records
from tests.support.boxes import claimed, make_context, planned, together


@pytest.fixture
def context(tmp_path):
    return make_context(tmp_path)[0]


def finished(context, short_id="a1b2", run_type="plan"):
    """A run from its start to its sealed end; its name."""
    made, owner = claimed(context, short_id, run_type=run_type)
    name = made.meta.run_name
    context.journal.append("run.started", name, plan.facts(made.meta, made.state))
    context.store.box(name).stream.write_text("every byte\n")
    settle.write_report(context.store.box(name), made.meta, Ending(exit_code=0), "an answer")
    settle.conclude(
        context.store,
        context.journal,
        context.clock,
        made.meta,
        Actor.OWNER,
        (Status.DONE, None, ""),
        Ending(exit_code=0),
    )
    owner.release()
    return name


@pytest.fixture
def runs(context):
    return [finished(context, short_id) for short_id in ("aaaa", "bbbb", "cccc")]


def flaws(context, only=None):
    return [(flaw.kind, flaw.line) for flaw in audit.audit(context, only).flaws]


def lines_of(context):
    return context.layout.ledger.read_bytes().splitlines(keepends=True)


def test_what_nobody_touched_is_in_order(context, runs):
    found = audit.audit(context)
    assert (found.entries, found.runs, found.flaws, found.torn) == (6, 3, (), 0)
    assert audit.audit(context, runs[0]).runs == 1


def test_where_nothing_was_ever_written_there_is_nothing_to_check(tmp_path):
    context = make_context(tmp_path)[0]
    shutil.rmtree(context.layout.data)
    assert audit.audit(context).entries == 0
    assert not context.layout.data.exists()


@pytest.mark.parametrize("line", range(6))
def test_one_changed_byte_names_its_line(context, runs, line):
    """T152: every line in turn, in its middle."""
    lines = lines_of(context)
    changed = bytearray(lines[line])
    changed[len(changed) // 2] ^= 1
    lines[line] = bytes(changed)
    context.layout.ledger.write_bytes(b"".join(lines))
    assert flaws(context)[0] == ("tampered", line + 1)


@pytest.mark.parametrize(
    "change",
    [lambda lines: lines[:2] + lines[3:], lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
     lambda lines: lines[:3] + lines[2:], lambda lines: lines[1:], lambda lines: [lines[0].replace(b",", b", ", 1), *lines[1:]],
     lambda lines: [*lines[:3], b"\n", *lines[3:]]],
    ids=["removed", "swapped", "doubled", "first removed", "blank added", "empty line"],
)  # fmt: skip
def test_any_other_change_of_lines_is_tampering(context, runs, change):
    context.layout.ledger.write_bytes(b"".join(change(lines_of(context))))
    assert flaws(context)[0][0] == "tampered"


@pytest.mark.parametrize("witness", ["both", "the git ref alone", "the state folder alone"])
@pytest.mark.parametrize("gone", [1, 6])
def test_lines_missing_from_the_end_are_truncation(context, runs, witness, gone):
    """M08: any one witness is enough, also when the other was removed."""
    if witness == "the git ref alone":
        context.journal.head_file.unlink()
    elif witness == "the state folder alone":
        git.output(context.repo.root, "update-ref", "-d", git.LEDGER_REF)
    context.layout.ledger.write_bytes(b"".join(lines_of(context)[: 6 - gone]))
    kinds = flaws(context)
    assert kinds.count(("truncated", 0)) == (2 if witness == "both" else 1)
    # A run that goes on as if nothing had happened does not make it good.
    context.journal.append("run.started", "later", {}, anchor=True)
    assert flaws(context)


def test_a_removed_ledger_is_truncation(context, runs):
    context.layout.ledger.unlink()
    assert ("truncated", 0) in flaws(context)


def test_a_ledger_rewritten_from_its_first_line_is_tampering(context, runs):
    """M08: a chain that holds in itself is not the one that was written."""
    head, rewritten = Head(), []
    for line in lines_of(context):
        entry = json.loads(line)
        facts = entry["facts"] | {"task": "something harmless"}
        forged, head = ledger.link(head, time=entry["time"], event=entry["event"], run=entry["run"], facts=facts)
        rewritten.append(forged)
    context.layout.ledger.write_bytes(b"".join(rewritten))
    assert ledger.check(context.journal.lines())[0] is None
    assert flaws(context) == [("tampered", 6), ("tampered", 6)]


@pytest.mark.parametrize("name", ["report.md", "plan.md", "raw/stream.jsonl", "meta.yaml"])
@pytest.mark.parametrize("change", ["edited", "removed"])
def test_sealed_evidence_that_changed_is_named(context, runs, name, change):
    """M06: T152: by file, with the line that sealed it."""
    path = context.store.box(runs[1]).path / name
    path.unlink() if change == "removed" else path.write_bytes(path.read_bytes() + b" ")
    (flaw,) = audit.audit(context).flaws
    assert (flaw.kind, flaw.line) == ("evidence", 4)
    assert f"{runs[1]}/{name}" in flaw.message
    assert audit.audit(context, runs[0]).flaws == ()
    assert len(audit.audit(context, runs[1]).flaws) == 1


def test_a_box_that_was_removed_is_named(context, runs):
    shutil.rmtree(context.store.box(runs[0]).path)
    (flaw,) = audit.audit(context).flaws
    assert "gone" in flaw.message
    assert runs[0] in flaw.message


@pytest.fixture
def deep(context):
    """A run behind, and one before, more of the ledger than is looked at in any case; their names."""
    old = finished(context, "aaaa")
    for number in range(200):
        context.journal.append("goal.set", None, {"n": number, "why": "x" * 1900})
    new = finished(context, "bbbb")
    assert context.layout.ledger.stat().st_size > scroll.PAGE + 50_000
    return old, new


class TestOfRun:
    """The gate asks about one run: what it reads of the ledger is enough to be sure of that one."""

    def test_what_nobody_touched_is_in_order(self, context, deep):
        assert [audit.of_run(context, run) for run in deep] == [(), ()]

    def test_its_own_evidence_is_looked_at(self, context, deep):
        """M06: of that run, and of no other."""
        context.store.box(deep[1]).report.write_text("another")
        (flaw,) = audit.of_run(context, deep[1])
        assert (flaw.kind, flaw.line) == ("evidence", 204)
        assert audit.of_run(context, deep[0]) == ()

    @pytest.mark.parametrize("line", [202, 203])
    def test_a_change_since_its_start_is_found(self, context, deep, line):
        """M08: the whole look names the line."""
        lines = lines_of(context)
        lines[line] = lines[line].replace(b"plan", b"pl4n")
        context.layout.ledger.write_bytes(b"".join(lines))
        assert audit.of_run(context, deep[1])[0].kind == "tampered"

    def test_a_change_long_before_its_start_says_nothing_of_it(self, context, deep):
        """`agent verify` reads those lines too, and so does the gate for a run that is as old."""
        lines = lines_of(context)
        lines[0] = lines[0].replace(b"plan", b"pl4n")
        context.layout.ledger.write_bytes(b"".join(lines))
        assert audit.of_run(context, deep[1]) == ()
        assert audit.of_run(context, deep[0])[0].line == 1
        assert flaws(context)[0] == ("tampered", 1)

    @pytest.mark.parametrize("witness", ["the git ref alone", "the state folder alone"])
    def test_a_history_made_anew_is_found(self, context, deep, witness):
        """M08: a chain that holds in itself, and a witness that remembers another."""
        if witness == "the git ref alone":
            context.journal.head_file.unlink()
        else:
            git.output(context.repo.root, "update-ref", "-d", git.LEDGER_REF)
        head, rewritten = Head(), []
        for line in lines_of(context):
            entry = json.loads(line)
            facts = {name: value for name, value in entry["facts"].items() if name != "task"}
            forged, head = ledger.link(head, time=entry["time"], event=entry["event"], run=entry["run"], facts=facts)
            rewritten.append(forged)
        context.layout.ledger.write_bytes(b"".join(rewritten))
        assert audit.of_run(context, deep[1])[0].kind == "tampered"

    @pytest.mark.parametrize("gone", [1, 100])
    def test_a_cut_end_is_found(self, context, deep, gone):
        context.layout.ledger.write_bytes(b"".join(lines_of(context)[:-gone]))
        assert audit.of_run(context, deep[0])[0].kind == "truncated"

    def test_a_run_that_the_ledger_does_not_know_is_looked_for_everywhere(self, context, deep):
        assert audit.of_run(context, "25-11-22_1430__nobody__dddd") == ()

    def test_its_cost_is_its_age(self, context, deep):
        """T152: of what was written long before nothing is read."""

        def read_for(run):
            before = int(Path("/proc/self/io").read_text().split()[1])
            assert audit.of_run(context, run) == ()
            return int(Path("/proc/self/io").read_text().split()[1]) - before

        costs = [read_for(run) for run in deep]
        data = context.layout.ledger.read_bytes()
        assert costs[0] > len(data)
        for number in range(300):
            context.journal.append("goal.set", None, {"n": number, "why": "x" * 1900})
        newest = finished(context, "cccc")
        assert abs(read_for(newest) - costs[1]) < scroll.PAGE
        assert read_for(deep[0]) > costs[0] + 500_000


def test_many_flaws_are_counted_and_some_are_named(context, runs):
    for run in runs:
        shutil.rmtree(context.store.box(run).path)
    found = audit.audit(context, most=2)
    assert (len(found.flaws), found.more) == (2, 1)
    assert (len(audit.audit(context, most=None).flaws), audit.audit(context).more) == (3, 0)


def test_a_forged_box_is_named(context, runs):
    """M05: a folder that the ledger does not know was not made by the supervisor."""
    forged = "25-11-22_1430__why-is-it-slow__dddd"
    shutil.copytree(context.store.box(runs[0]).path, context.store.box(forged).path)
    (flaw,) = audit.audit(context).flaws
    assert forged in flaw.message
    assert flaw.kind == "evidence"


@pytest.mark.parametrize("status", ["REVIEW", "MERGED", "CRASHED", "ACTIVE"])
def test_a_forged_status_is_named(context, runs, status):
    """M07: the state says what the ledger does not."""
    box = context.store.box(runs[2])
    box.state.write_bytes(box.state.read_bytes().replace(b"DONE", status.encode()))
    (flaw,) = audit.audit(context).flaws
    assert f"says {status}" in flaw.message


@pytest.mark.parametrize("data", [b"", b"{", b'{"status": "NEW"}'])
def test_a_state_that_cannot_be_read_is_named(context, runs, data):
    """C29: a damaged state is a finding, not the end of the audit."""
    context.store.box(runs[2]).state.write_bytes(data)
    (flaw,) = audit.audit(context).flaws
    assert runs[2] in flaw.message


def test_a_torn_last_line_is_no_tampering(context, runs):
    with context.layout.ledger.open("ab") as file:
        file.write(b'{"seq":7,')
    found = audit.audit(context)
    assert (found.flaws, found.torn, found.entries) == ((), 9, 6)


def test_a_live_run_and_a_resumed_one_are_no_flaws(context, runs):
    """A run at work has no seal, and one that goes on breaks its old one."""
    made, owner = claimed(context, "dddd")
    context.journal.append("run.started", made.meta.run_name, plan.facts(made.meta, made.state))
    assert flaws(context) == []
    (context.layout.active / "aaaa").write_text(runs[0])
    resumer = context.store.own(runs[0])
    state = context.store.update(runs[0], lambda now: records.replace(now, status=Status.ACTIVE, attempt=2))
    context.store.box(runs[0]).stream.write_text("more\n")
    assert flaws(context) == []
    context.journal.append("run.resumed", runs[0], plan.facts(context.store.meta(runs[0]), state))
    assert flaws(context) == []
    resumer.release()
    owner.release()


def test_a_collected_box_is_not_missed(context, runs):
    context.journal.append("run.collected", runs[0], {"status": "COLLECTED"}, anchor=True)
    # Its remover died before the folder went: still no flaw.
    assert flaws(context) == []
    shutil.rmtree(context.store.box(runs[0]).path)
    assert flaws(context) == []


def test_five_runs_that_start_and_end_meanwhile_are_no_flaws(context, runs):
    """T153: an audit beside live runs sees order, whatever moment it takes."""

    def work(number):
        for turn in range(3):
            finished(context, f"{number}{turn:03x}e")

    def verify():
        for _ in range(12):
            assert audit.audit(context).flaws == ()

    together([verify, verify, *[lambda number=number: work(number) for number in range(5)]])
    assert audit.audit(context).runs == 18


def test_accepting_takes_todays_ledger_for_the_true_one(context, runs):
    context.layout.ledger.write_bytes(b"".join(lines_of(context)[:4]))
    shutil.rmtree(context.store.box(runs[2]).path)
    assert flaws(context)
    context.journal.accept()
    assert flaws(context) == []
    finished(context, "dddd")
    assert flaws(context) == []


def test_a_planned_run_is_not_in_the_ledger(context):
    """A dry run leaves no trace that an audit could miss."""
    made = planned(context)
    assert iso(context.clock.wall()) == made.state.started_at
    assert audit.audit(context).flaws == ()


def entry(seq, event, run="r", *, status=None, sealed=None):
    facts = {name: value for name, value in (("status", status), ("evidence", sealed)) if value is not None}
    return {"seq": seq, "event": event, "run": run, "facts": facts}


@pytest.mark.parametrize(
    ("entries", "last"),
    [
        ([], {}),
        ([entry(1, "run.started", status="ACTIVE"), entry(2, "run.finished", status="DONE")], {"r": "DONE"}),
        ([entry(1, "run.started", status="ACTIVE"), entry(2, "run.note")], {"r": "ACTIVE"}),
        ([entry(1, "run.started", status="ACTIVE"), entry(2, "goal.set", status="MERGED")], {"r": "ACTIVE"}),
        (
            [entry(1, "run.a", "x", status="DONE"), entry(2, "run.b", "y", status="CRASHED")],
            {"x": "DONE", "y": "CRASHED"},
        ),
        ([entry(1, "goal.set", None, status="DONE"), entry(2, "odd", 7, status="DONE")], {}),
        ([{"run": "r"}, {"run": "r", "facts": None}, {"run": "r", "facts": ["status"]}, {}], {}),
    ],
)
def test_the_last_status_of_each_run_is_the_ledgers_word(entries, last):
    assert {run: facts["status"] for run, facts in audit.last_facts(entries).items()} == last


def test_an_entry_of_no_run_seals_nothing():
    assert audit._seals([entry(1, "goal.set", None), entry(2, "odd", 7), {}]) == {}
