"""The spine in this process: whatever fails between claim and end, the run ends with the truth."""

from __future__ import annotations

import io
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agents import control, core
from agents.errors import HostError, OperatorError, Tampered
from agents.interrupts import interrupts
from agents.live import Line
from agents.model import FailureKind, Status
from agents.plan import Ask
from tests.support import fakes, world
from tests.support.fakes import INIT, do, result, say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agents.core import Outcome


@pytest.fixture
def start(repo: Path, tmp_path: Path) -> Callable[..., Outcome]:
    """Runs a history (or, as text, a program) in this process."""

    def run(*steps: Any, run_type: str = "scout", claimed: Any = None, **flags: Any) -> Outcome:
        if isinstance(steps[0], str):
            flags["engine"] = "command"
            argv = fakes.program(tmp_path / "a.py", steps[0])
        else:
            flags["engine"] = "scripted"
            fakes.history(tmp_path / "h", *steps)
            argv = [str(tmp_path / "h")]
        context = world.context_of(repo, **flags)
        return core.start(context, Ask(run_type=run_type, task="why?", argv=tuple(argv)), claimed=claimed)

    return run


@pytest.mark.parametrize(
    ("steps", "flags", "status", "kind"),
    [
        ([INIT, say("…"), result()], {}, Status.DONE, None),
        (["print('plain words')"], {}, Status.DONE, None),
        ([INIT, do("exit", code=1)], {}, Status.CRASHED, FailureKind.TOOL_ERROR),
        ([INIT, do("wait", seconds=300)], {"timeout": "500ms"}, Status.CRASHED, FailureKind.TIMEOUT),
        ([INIT, do("wait", seconds=300)], {"stall_after": "500ms"}, Status.STALLED, FailureKind.STALLED),
        ([INIT, result(), do("wait", seconds=300)], {"linger": "300ms"}, Status.DONE, None),
        ([say("much"), do("wait", seconds=300)], {"max_output": "20B"}, Status.CRASHED, FailureKind.OUTPUT_LIMIT),
        ([INIT, do("wait", seconds=0.7), result()], {"stall_after": "300ms", "on_stall": "mark"}, Status.DONE, None),
        (["os.kill(os.getppid(), 9); time.sleep(300)"], {}, Status.CRASHED, FailureKind.AGENT_ABORT),
    ],
)
def test_a_run_ends_as_it_was(steps, flags, status, kind, start, repo) -> None:
    """T137: every end by its name."""
    outcome = start(*steps, **flags)
    assert (outcome.state.status, outcome.state.failure and outcome.state.failure.kind) == (status, kind)
    assert world.state_of(repo)["status"] == status
    assert world.published(repo) == []


def failing(why: Exception) -> Callable[[str], None]:
    def claimed(_: str) -> None:
        raise why

    return claimed


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        (RuntimeError("a fault of ours"), FailureKind.INTERNAL),
        (HostError("The machine cannot."), FailureKind.SETUP),
        (OSError(28, "No space left on device"), FailureKind.ENOSPC),
        (OSError(5, "Input/output error"), FailureKind.SETUP),
        (Tampered("The ledger is not what it was."), FailureKind.SETUP),
    ],
)
def test_a_failure_between_claim_and_start_is_the_runs_end(why, kind, start, repo) -> None:
    """C27: nothing is left ACTIVE; the marker and the commands are gone, the next run is not in anybody's way."""
    outcome = start(INIT, result(), claimed=failing(why))
    assert outcome.state.status is Status.CRASHED
    assert outcome.state.failure is not None
    assert outcome.state.failure.kind is kind
    box = world.boxes(repo)[0]
    assert world.state_of(repo, box)["status"] == "CRASHED"
    assert (box / "private/traceback.txt").exists() == (kind is FailureKind.INTERNAL)
    assert list((repo / ".agents/active").iterdir()) == []
    assert start(INIT, result()).state.status is Status.DONE


def test_a_request_to_stop_that_came_before_the_agent_is_obeyed(start, repo, tmp_path) -> None:
    """C23: the agent never runs, and the run says STOPPED."""
    ran = tmp_path / "ran"
    outcome = start(f"open({str(ran)!r}, 'w')", claimed=lambda _: os.kill(os.getpid(), signal.SIGTERM))
    assert (outcome.state.status, ran.exists()) == (Status.STOPPED, False)


def test_nothing_is_touched_by_deciding(context, repo) -> None:
    """The dry run is the same decision."""
    with pytest.raises(OperatorError, match="empty"):
        core.decide(context, Ask(run_type="scout", task=" "))
    made, engine = core.decide(context, Ask(run_type="scout", task="why?"))
    assert (made.meta.engine, engine.name, made.meta.mind) == ("hollow", "hollow", "reflex")
    assert not (repo / ".agents").exists()
    assert not (repo / ".claude").exists()


class TestControl:
    def test_a_run_that_is_over_cannot_be_stopped(self, start, context) -> None:
        start(INIT, result())
        with pytest.raises(OperatorError, match="not running: it is DONE"):
            control.stop(context, "latest")

    def test_nobody_waits_for_the_name_of_this_run(self, monkeypatch) -> None:
        control.report_claim("run")
        monkeypatch.setenv(control.REPORT, "not a number")
        control.report_claim("run")
        assert control.REPORT not in os.environ

    def test_whoever_wanted_the_name_may_be_gone(self, monkeypatch) -> None:
        read, write = os.pipe()
        os.close(read)
        monkeypatch.setenv(control.REPORT, str(write))
        control.report_claim("run")


class TestInterrupts:
    def test_are_counted_and_wake(self) -> None:
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        with interrupts() as pending:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                os.kill(os.getpid(), number)
            assert pending.count == 3
            assert os.read(pending.wakeup, 10) == b"!!!"
            pending.clear()
            for _ in range(70_000):
                pending.notice()
            pending.clear()
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before

    def test_outside_the_main_thread_nothing_is_counted(self) -> None:
        counts: list[int] = []

        def work() -> None:
            with interrupts() as pending:
                counts.append(pending.count)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert counts == [0]


class Broken(io.StringIO):
    """A terminal that was closed."""

    def isatty(self) -> bool:
        return True

    def write(self, _: str) -> int:
        raise OSError(5, "Input/output error")


class Screen(io.StringIO):
    """A terminal that does not know its size."""

    def isatty(self) -> bool:
        return True


class TestLine:
    def test_in_a_pipe_a_line_now_and_then(self) -> None:
        out = io.StringIO()
        line = Line(out)
        for now in range(1000, 1100):
            line.show(f"at {now}", now)
        line.clear()
        assert out.getvalue() == "at 1030\nat 1060\nat 1090\n"

    def test_on_a_terminal_one_line_that_is_taken_back(self) -> None:
        out = Screen()
        line = Line(out)
        line.clear()
        assert out.getvalue() == ""
        line.show("evil \x1b[2J\r\n" + "wide " * 40, 1.0)
        line.clear()
        shown = out.getvalue()
        assert shown.startswith("\r\x1b[K\x1b[?7l")
        assert shown.endswith("\x1b[?7h\r\x1b[K")
        assert "\x1b[2J" not in shown
        assert "\n" not in shown

    def test_on_a_closed_terminal_nothing(self) -> None:
        line = Line(Broken())
        line.show("x", 1.0)
        line.clear()
