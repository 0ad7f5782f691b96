"""How a run ends: a report without secrets, evidence that is sealed, pointers that lead to it, a status that stands."""

from __future__ import annotations

import hashlib
import os

import pytest

from agents import plan, settle
from agents.errors import HostError, Tampered
from agents.events import Progress, Result
from agents.layout import EVIDENCE
from agents.model import Actor, Failure, FailureKind, Phase, Status
from agents.pump import Ending
from essentials import records
from tests.support.boxes import claimed, events, make_context

DONE = (Status.DONE, None, "")
CRASHED = (Status.CRASHED, FailureKind.TOOL_ERROR, "It failed.")
VANISHED = (Status.CRASHED, FailureKind.AGENT_ABORT, "The agent vanished together with its guard.")
KILLED = (Status.CRASHED, FailureKind.OOM, "The agent was killed.")
BREACH = (Status.CRASHED, FailureKind.AIRLOCK_BREACH, "It changed the repository.")
SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def context(tmp_path):
    return make_context(tmp_path)[0]


def said(text, *, is_error=False, **more):
    result = Result(text=text, subtype="error_during_execution" if is_error else "success", is_error=is_error, **more)
    return Ending(exit_code=0, progress=Progress(result=result))


def write(context, made, ending, answer=""):
    box = context.store.box(made.meta.run_name)
    settle.write_report(box, made.meta, ending, answer)
    return box


def conclude(context, made, outcome, ending=None):
    return settle.conclude(
        context.store, context.journal, context.clock, made.meta, Actor.OWNER, outcome, ending or Ending(exit_code=0)
    )


class TestReport:
    """What people read of the agent's last words."""

    @pytest.mark.parametrize("source", ["result", "answer", "outbox"])
    def test_a_report_holds_no_secret_and_nothing_that_drives_a_terminal(self, context, source):
        """Wherever the words come from; the evidence beside it stays exact."""
        made, _owner = claimed(context)
        text = f"token {SECRET}\n\x1b[2Jgone\u202e"
        box = context.store.box(made.meta.run_name)
        if source == "outbox":
            (box.outbox / "report.md").write_text(text)
        ending = said(text) if source == "result" else Ending(exit_code=0)
        write(context, made, ending, text if source == "answer" else "")
        shown = box.report.read_text()
        assert SECRET not in shown
        assert "[redacted]" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert shown.endswith("\n")

    def test_the_result_of_the_stream_comes_before_the_outbox(self, context):
        made, _owner = claimed(context)
        (context.store.box(made.meta.run_name).outbox / "report.md").write_text("from the outbox")
        assert write(context, made, said("from the stream")).report.read_text() == "from the stream\n"

    @pytest.mark.parametrize("words", ["", "  \n\t "])
    def test_without_words_the_outbox_is_read(self, context, words):
        made, _owner = claimed(context)
        (context.store.box(made.meta.run_name).outbox / "report.md").write_bytes(b"left \xff behind")
        assert write(context, made, said(words)).report.read_text() == "left \ufffd behind\n"

    @pytest.mark.parametrize("kind", ["link", "folder link", "pipe", "folder", "dangling", "nothing"])
    def test_what_is_no_file_in_the_outbox_is_passed_over(self, context, tmp_path, kind):
        """S: an agent that links its report to a secret gets no secret read, and nothing hangs."""
        made, _owner = claimed(context)
        outbox = context.store.box(made.meta.run_name).outbox
        (tmp_path / "secrets").mkdir()
        (tmp_path / "secrets" / "report.md").write_text("the operator's secret")
        place = outbox / "report.md"
        if kind == "link":
            place.symlink_to(tmp_path / "secrets" / "report.md")
        elif kind == "folder link":
            outbox.rmdir()
            outbox.symlink_to(tmp_path / "secrets")
        elif kind == "pipe":
            os.mkfifo(place)
        elif kind == "folder":
            place.mkdir()
        elif kind == "dangling":
            place.symlink_to("nowhere")
        assert write(context, made, Ending()).report.read_text() == "The agent gave no report.\n"

    @pytest.mark.parametrize(
        ("run_type", "is_error", "expected"),
        [("plan", False, True), ("plan", True, False), ("scout", False, False), ("review", False, False)],
    )
    def test_only_a_plan_that_succeeded_has_a_plan(self, context, run_type, is_error, expected):
        made, _owner = claimed(context, run_type=run_type)
        box = write(context, made, said("# Steps", is_error=is_error))
        assert box.report.read_text() == "# Steps\n"
        assert box.plan.exists() is expected


class TestEvidence:
    """What is sealed is what lies in the box."""

    def test_the_seal_is_the_hash_of_every_file_that_is_there(self, context):
        made, _owner = claimed(context)
        box = context.store.box(made.meta.run_name)
        for name in EVIDENCE[1:]:
            (box.path / name).write_text(name)
        (box.path / "plan.md").unlink()
        sealed = settle.seal(box)
        assert set(sealed) == set(EVIDENCE) - {"plan.md"}
        for name, digest in sealed.items():
            assert digest == hashlib.sha256((box.path / name).read_bytes()).hexdigest()
        assert settle.hash_file(box, "plan.md") is None
        assert settle.hash_file(box, "raw") is None

    def test_the_patches_of_several_agents_are_evidence_too(self, context):
        """T156: and nothing else that lies beside them."""
        made, _owner = claimed(context)
        box = context.store.box(made.meta.run_name)
        box.patches.mkdir()
        for name in ("agent_1.patch", "agent_2.patch", "notes.txt"):
            (box.patches / name).write_text(name)
        sealed = {name: digest for name, digest in settle.seal(box).items() if name.startswith("patches/")}
        assert sealed == {
            f"patches/{name}": hashlib.sha256(name.encode()).hexdigest() for name in ("agent_1.patch", "agent_2.patch")
        }

    @pytest.mark.parametrize(
        ("there", "expected"),
        [
            (EVIDENCE, "changes.patch"), (["report.md", "plan.md"], "plan.md"), (["report.md"], "report.md"),
            (["raw/stderr.log", "raw/stream.jsonl"], "raw/stream.jsonl"), (["raw/stderr.log"], "raw/stderr.log"), ([], None),
        ],
    )  # fmt: skip
    def test_the_last_safe_artifact_is_the_most_telling_file_that_exists(self, context, there, expected):
        """T137: an empty file tells nothing."""
        made, _owner = claimed(context)
        box = context.store.box(made.meta.run_name)
        for name in there:
            (box.path / name).write_text("x")
        if "changes.patch" not in there:
            (box.path / "changes.patch").write_text("")
        assert settle.last_safe_artifact(box) == expected


FORGED = {
    "isolation": "full", "config_hash": "00000000", "boot_id": "x", "host_id": "x", "supervisor_pid": 1, "supervisor_start": 1,
    "session_cwd": "/", "worktree_path": "x", "started_at": "2020-01-01T00:00:00.000Z", "attempt": 9, "merge": {"commit": "x"},
    "workers": ("x",),
}  # fmt: skip


class TestUntouched:
    """Who may write what into the state of a run at work."""

    @pytest.mark.parametrize("name", FORGED)
    def test_what_nobody_changes_while_a_run_is_at_work_is_found_changed(self, context, name):
        """T147: an agent without a wall could have called its run an isolated one."""
        before = claimed(context)[0].state
        with pytest.raises(Tampered, match="changed while the run was at work"):
            settle.untouched(before, records.replace(before, **{name: FORGED[name]}))

    @pytest.mark.parametrize("status", list(Status))
    def test_only_a_watchdog_may_have_given_another_status(self, context, status):
        """T141, T147: nobody else calls a run at work merged or done."""
        before = claimed(context)[0].state
        now = records.replace(before, status=status)
        if status in {Status.ACTIVE, Status.STALLED}:
            assert settle.untouched(before, now) is now
            return
        with pytest.raises(Tampered):
            settle.untouched(before, now)

    def test_what_its_supervisor_writes_is_no_surprise(self, context):
        before = claimed(context)[0].state
        now = records.replace(before, pid=7, session_id="s", events=3, phase=Phase.RUNNING, revision=9, notes=("x",))
        assert settle.untouched(before, now) is now


class TestConclude:
    """State first, then ledger, pointers and marker."""

    @pytest.mark.parametrize(
        ("outcome", "event", "pointer"),
        [
            (DONE, "run.finished", "last-done"), (CRASHED, "run.crashed", "last-fail"),
            ((Status.STALLED, FailureKind.STALLED, "silent"), "run.stalled", "last-fail"),
            ((Status.STOPPED, None, "You stopped it."), "run.stopped", None),
            ((Status.REVIEW, None, ""), "run.finished", "last-review"),
        ],
    )  # fmt: skip
    def test_every_end_is_in_state_ledger_pointers_and_dashboard(self, context, outcome, event, pointer):
        """T155: T136: a failing run is what last-fail leads to; the same status stands everywhere."""
        made, _owner = claimed(context)
        name = made.meta.run_name
        write(context, made, said("words"))
        state = conclude(context, made, outcome, said("words", usage={"input_tokens": 3}))
        assert state == context.store.load(name)
        assert (state.status, state.phase, state.pid) == (outcome[0], Phase.SETTLED, None)
        assert (state.exit_code, state.usage, state.ended_at is not None) == (0, {"input_tokens": 3}, True)
        entry = context.journal.entries()[-1]
        assert (entry["event"], entry["run"], entry["facts"]["status"]) == (event, name, str(outcome[0]))
        assert entry["facts"]["evidence"] == settle.seal(context.store.box(name))
        assert {link for link in context.store.pointers() if link != "latest"} == ({pointer} if pointer else set())
        assert all(context.store.resolve(link) == name for link in context.store.pointers())
        assert context.store.active() == {}
        assert str(outcome[0]) in context.layout.dashboard.read_text("utf-8")

    def test_a_failure_names_a_file_that_exists(self, context):
        """T137: the operator is told where to look."""
        made, _owner = claimed(context)
        box = write(context, made, said("words"))
        state = conclude(context, made, CRASHED)
        assert (state.failure.kind, state.failure.message) == (FailureKind.TOOL_ERROR, "It failed.")
        assert (box.path / state.failure.last_safe_artifact).stat().st_size > 0

    @pytest.mark.parametrize(
        ("outcome", "exit_code", "stands"),
        [(VANISHED, None, True), (KILLED, -9, True), (KILLED, 137, True), (CRASHED, 1, False), (DONE, 0, False),
         (BREACH, -9, False), (BREACH, None, False), ((Status.CRASHED, FailureKind.AGENT_ABORT, "ended"), -2, False)],
    )  # fmt: skip
    def test_a_watchdogs_stalled_stands_when_the_agent_was_killed(self, context, outcome, exit_code, stands):
        """T141: the watchdog killed it, guard and all; its supervisor, awake again, does not call that a crash."""
        made, _owner = claimed(context)
        name = made.meta.run_name
        told = Failure(kind=FailureKind.STALLED, message="It said nothing for 300 s.")
        context.store.update(name, lambda state: records.replace(state, status=Status.STALLED, failure=told))
        state = conclude(context, made, outcome, Ending(exit_code=exit_code))
        assert state.phase is Phase.SETTLED
        assert state.status is (Status.STALLED if stands else outcome[0])
        if stands:
            assert state.failure == told
            assert events(context, name) == ["run.stalled"]

    def test_an_illegal_end_is_refused_and_the_state_stays(self, context):
        made, _owner = claimed(context)
        conclude(context, made, DONE)
        with pytest.raises(HostError, match="cannot go"):
            conclude(context, made, CRASHED, Ending(exit_code=1))
        assert context.store.load(made.meta.run_name).status is Status.DONE

    def test_what_is_known_is_not_lost_by_an_ending_that_knows_less(self, context):
        made, _owner = claimed(context)
        known = {"session_id": "s", "model": "m", "usage": {"input_tokens": 1}, "notes": ("before",)}
        context.store.update(made.meta.run_name, lambda state: records.replace(state, **known))
        state = conclude(context, made, CRASHED, Ending(notes=["after"]))
        assert (state.session_id, state.model, state.usage, state.notes) == (
            "s",
            "m",
            {"input_tokens": 1},
            ("before", "after"),
        )

    @pytest.mark.parametrize(("actor", "counted"), [(Actor.OWNER, 10), (Actor.WATCHDOG, 3)])
    def test_a_supervisor_adds_to_what_was_used_before_and_a_sweep_has_reread_all(self, context, actor, counted):
        """T124: a resumed run's usage is that of all its attempts, and none is counted twice."""
        made, _owner = claimed(context)
        before = {"input_tokens": 7, "turns": 7, "cost_usd": 7.0}
        context.store.update(made.meta.run_name, lambda state: records.replace(state, usage=before))
        ending = said("words", turns=3, usage={"input_tokens": 3, "cost_usd": 3.0})
        state = settle.conclude(context.store, context.journal, context.clock, made.meta, actor, DONE, ending)
        assert state.usage == {"input_tokens": counted, "turns": counted, "cost_usd": float(counted)}
        assert context.journal.entries()[-1]["facts"]["usage"] == state.usage

    @pytest.mark.parametrize("given", [None, {"sha256": "b" * 64, "files": 2}])
    def test_a_patch_is_in_state_and_ledger_and_an_older_one_stays_where_there_is_no_new_one(self, context, given):
        """T127: what was carried into the box is never forgotten."""
        made, _owner = claimed(context)
        older = {"sha256": "a" * 64, "files": 1}
        context.store.update(made.meta.run_name, lambda state: records.replace(state, patch=older))
        state = settle.conclude(
            context.store, context.journal, context.clock, made.meta, Actor.OWNER, CRASHED, Ending(exit_code=1), given
        )
        assert state.patch == (given or older)
        assert context.journal.entries()[-1]["facts"]["patch"] == state.patch

    def test_what_follows_can_be_done_again(self, context):
        """C10: the same entry twice is no harm, a missing one would be."""
        made, _owner = claimed(context)
        state = conclude(context, made, CRASHED)
        settle.record(context.store, context.journal, made.meta, state, recovered=True)
        first, again = context.journal.entries()
        assert first["facts"].pop("by") == "owner"
        assert again["facts"] == first["facts"] | {"recovered": True}
        assert context.store.resolve("last-fail") == made.meta.run_name

    def test_a_second_failure_moves_the_pointer(self, context):
        """T155: last means last."""
        for short_id in ("aaaa", "bbbb"):
            made, _owner = claimed(context, short_id)
            conclude(context, made, CRASHED)
        assert context.store.resolve("last-fail") == made.meta.run_name

    def test_the_task_in_the_ledger_holds_no_secret(self, context):
        made, _owner = claimed(context, task=f"use {SECRET} \x1b[2J now")
        conclude(context, made, DONE)
        assert SECRET.encode() not in context.layout.ledger.read_bytes() + context.layout.dashboard.read_bytes()
        assert plan.title(made.meta.task) in context.journal.entries()[-1]["facts"]["task"]
