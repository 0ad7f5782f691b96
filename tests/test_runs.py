"""Whole runs through the real command line: what they leave, how they end, how they go on, and who may stop them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from agents import core
from agents.plan import Ask
from tests.support import fakes, world
from tests.support.fakes import INIT, SESSION, call, do, history, result, say
from tests.support.world import (
    boxes,
    eventually,
    ledger_of,
    meta_of,
    published,
    runs_now,
    state_of,
    status_is,
    stream_of,
)

if TYPE_CHECKING:
    from pathlib import Path

TERMINAL = {"DONE", "CRASHED", "STALLED", "STOPPED"}
QUICK = (INIT, say("Looking."), call("Grep"), fakes.answered(), result())
LONG = "print('ready', flush=True)\ntime.sleep(300)"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def settled(repo: Path) -> None:
    """Every run of *repo* is over, readable and recorded; nothing of it is left in the checkout."""
    for box in boxes(repo):
        state = state_of(repo, box)
        assert state["status"] in TERMINAL
        assert (state["pid"], state["phase"]) == (None, "settled")
        assert meta_of(repo, box)["run_name"] == box.name
    assert published(repo) == []
    # A start that was killed before its box was there leaves a marker for a while: it might still be on its way.
    markers = [path.read_text() for path in (repo / ".agents" / "active").iterdir()]
    assert not set(markers) & {box.name for box in boxes(repo)}
    assert world.git(repo, "status", "--porcelain") == ""


class TestWhatARunLeaves:
    def test_a_box_with_everything_in_it(self, agent, repo, tmp_path) -> None:
        """T120: envelope, state, report, raw stream, and `latest` that leads to it; all for its owner alone."""
        agent("scout", "x", *history(tmp_path / "h", *QUICK))
        box = boxes(repo)[0]
        assert (repo / ".agents/latest").resolve() == box
        for name in ("meta.yaml", "state.json", "report.md", "raw/stream.jsonl", "raw/stderr.log", "raw/launch.json"):
            assert (box / name).stat().st_mode & 0o777 == 0o600, name
        for folder in (repo / ".agents", box, box / "raw", box / "private"):
            assert folder.stat().st_mode & 0o777 == 0o700, folder
        assert not list(box.rglob("*.tmp"))
        assert not (box / "private/reserve").exists()

    def test_before_its_agent_there_is_nothing_but_intent(self, repo, tmp_path) -> None:
        """T124: ACTIVE, and no pid, session, heartbeat or failure yet."""
        seen: list[dict[str, Any]] = []
        context = world.context_of(repo, engine="scripted")
        path = tmp_path / "h"
        history(path, *QUICK)
        ask = Ask(run_type="scout", task="why?", argv=(str(path),))
        core.start(context, ask, claimed=lambda name: seen.append(state_of(repo, boxes(repo)[0]) | {"run": name}))
        before = seen[0]
        assert before["run"] == boxes(repo)[0].name
        nothing = ("pid", "session_id", "last_heartbeat", "failure", "worktree_path", "exit_code", "ended_at")
        assert [before[name] for name in nothing] == [None] * len(nothing)
        assert (before["status"], before["config_hash"]) == ("ACTIVE", meta_of(repo)["config_hash"])

    @pytest.mark.parametrize("run_type", ["scout", "plan", "review", "benchmark"])
    def test_a_good_end_says_the_same_everywhere(self, run_type: str, agent, repo, tmp_path) -> None:
        """T136: exit 0 of a read-only run is DONE, in state, dashboard and ledger."""
        done = agent(run_type, "why is it slow?", *history(tmp_path / "h", *QUICK))
        assert done.returncode == 0
        last = ledger_of(repo)[-1]
        assert (state_of(repo)["status"], last["facts"]["status"], last["event"]) == ("DONE", "DONE", "run.finished")
        rows = [
            line for line in (repo / ".agents/INDEX.md").read_text().splitlines() if meta_of(repo)["short_id"] in line
        ]
        assert len(rows) == 1
        assert rows[0].startswith("| DONE |")
        assert (repo / ".agents/latest/plan.md").exists() == (run_type == "plan")
        assert agent("verify").returncode == 0
        settled(repo)

    def test_git_sees_nothing_of_it(self, agent, repo, tmp_path) -> None:
        """T121: also while it runs, and with nothing added to .gitignore."""
        words = history(tmp_path / "h", INIT, do("wait", seconds=300))
        with contextlib.ExitStack() as undo:
            run = subprocess.Popen([*world.AGENT, "scout", "x", *words], cwd=repo, stderr=subprocess.DEVNULL)
            undo.callback(run.wait)
            undo.callback(run.kill)
            eventually(runs_now(repo))
            assert published(repo)
            assert world.git(repo, "status", "--porcelain", "--untracked-files=all") == ""
        agent("status")
        settled(repo)

    def test_the_launch_can_be_explained_without_the_agents_own_memory(self, agent, repo, tmp_path) -> None:
        """T154: argv, prompt, limits and the names of variables are there; not one value."""
        agent("scout", "why?", *history(tmp_path / "h", *QUICK), env={"LC_SECRETIVE": "s3cr3t-v4lue"})
        text = (repo / ".agents/latest/raw/launch.json").read_text()
        launch = json.loads(text)
        assert {"argv", "environment", "system_prompt", "commands", "limits", "cwd", "attempt", "meta"} <= launch.keys()
        assert "LC_SECRETIVE" in launch["environment"]
        assert "s3cr3t-v4lue" not in text
        assert launch["argv"][-1] == state_of(repo)["session_id"] or SESSION in stream_of(repo).decode()
        assert (repo / ".agents/latest/raw/stderr.log").exists()

    def test_pointers_lead_to_the_last_of_each_kind(self, agent, repo, tmp_path) -> None:
        """T155: last-fail and last-done, each resolvable by every verb."""
        agent("scout", "good", *history(tmp_path / "good", *QUICK))
        agent("scout", "bad", *history(tmp_path / "bad", do("exit", code=9)))
        good, bad = ({meta_of(repo, box)["task"]: box.name for box in boxes(repo)}[task] for task in ("good", "bad"))
        targets = {name: (repo / ".agents/pointers" / name).resolve().name for name in ("last-fail", "last-done")}
        assert targets == {"last-fail": bad, "last-done": good}
        assert (repo / ".agents/latest").resolve().name == bad
        assert json.loads(agent("show", "last-fail", "--json").stdout)["meta"]["task"] == "bad"


class TestWhatTheAgentGets:
    def test_an_environment_without_the_operators_secrets(self, agent, repo, tmp_path) -> None:
        """T151: nothing but allowed names, .env.test and what the run itself sets; never .env."""
        (repo / ".env").write_text("X=from-env\n")
        (repo / ".env.test").write_text("Y=from-env-test\nPATH=/evil\nLD_PRELOAD=/evil.so\n")
        source = "import json; print(json.dumps(dict(os.environ)))"
        given = {"AWS_SECRET": "s", "MY_TOKEN": "t", "ALLOWED": "yes", "AGENT_BOX_ENV": "ALLOWED"}
        agent("scout", "the task", *fakes.command(tmp_path / "a.py", source), env=given)
        env = json.loads(stream_of(repo))
        assert not {"AWS_SECRET", "MY_TOKEN", "X", "LD_PRELOAD", "AGENT_BOX_ENV"} & env.keys()
        assert (env["Y"], env["ALLOWED"], env["AGENT_BOX_TASK"]) == ("from-env-test", "yes", "the task")
        assert env["PATH"] == os.environ["PATH"]
        assert env["RUN_DIR"] == str(boxes(repo)[0] / "outbox")
        assert env["AGENT_BOX_RUN"] == boxes(repo)[0].name

    def test_its_task_on_standard_input(self, agent, repo, tmp_path) -> None:
        """P10: and then its end, so that nothing waits for the operator to type."""
        done = agent("scout", "-", *fakes.command(tmp_path / "a.py", "print(sys.stdin.read()[::-1])"), input="olleh")
        assert done.stdout.strip() == "hello"

    @pytest.mark.parametrize("shape", [{"type": "init", "session_id": SESSION}, INIT])
    def test_its_session_is_the_first_one_it_names(self, shape, agent, repo, tmp_path) -> None:
        """T133: both shapes of the first event; a later id is ignored and noted (P21)."""
        other = {**INIT, "session_id": "00000000-aaaa-4000-8000-000000000000"}
        agent(
            "scout",
            "x",
            *history(tmp_path / "h", shape, other, {k: v for k, v in result().items() if k != "session_id"}),
        )
        assert state_of(repo)["session_id"] == SESSION
        assert any("second session id" in note for note in state_of(repo)["notes"])


class TestBadEnds:
    @pytest.mark.parametrize(
        ("steps", "kind", "code"),
        [
            ([INIT, do("exit", code=137)], "oom", 3),
            ([INIT, do("kill", signal=9)], "oom", 3),
            ([INIT, do("kill", signal=2)], "agent_abort", 3),
            ([INIT, do("exit", code=143)], "agent_abort", 3),
            ([INIT, do("exit", code=1)], "tool_error", 3),
            ([INIT, do("exit", code=0)], "agent_abort", 3),
            ([INIT, result("It went wrong", subtype="error_during_execution", is_error=True)], "tool_error", 3),
            ([INIT, result("", subtype="error_max_turns", is_error=True)], "budget", 3),
            ([INIT, result(), do("exit", code=1)], "tool_error", 3),
        ],
    )
    def test_are_called_by_their_name(self, steps, kind: str, code: int, agent, repo, tmp_path) -> None:
        """T137: the failure's kind, a sentence, and the last artifact that is whole; P24, P25."""
        done = agent("scout", "x", *history(tmp_path / "h", *steps))
        failure = state_of(repo)["failure"]
        assert (done.returncode, state_of(repo)["status"], failure["kind"]) == (code, "CRASHED", kind)
        assert failure["message"] in done.stderr
        assert (repo / ".agents/latest" / failure["last_safe_artifact"]).is_file()
        assert agent("verify").returncode == 0
        settled(repo)

    def test_a_program_that_is_not_there_is_the_machines_fault(self, agent, repo) -> None:
        """P26: exit 4, not 3."""
        done = agent("scout", "x", "--engine", "command", "--", "/no/such/program")
        assert (done.returncode, state_of(repo)["failure"]["kind"]) == (4, "spawn")

    @pytest.mark.parametrize(
        ("source", "named"),
        [
            ("open('shop/db.py', 'a').write('# mine\\n')", "shop/db.py"),
            ("open('new.txt', 'w').write('x')", "new.txt"),
            ("os.remove('README.md')", "README.md"),
            ("open('.git/hooks/pre-commit', 'w').write('#!/bin/sh')", "hooks/pre-commit"),
            ("open('.git/config', 'a').write('[alias]\\n\\tst = !evil\\n')", "config"),
            ("subprocess.run(['git', 'branch', 'planted'])", "refs"),
        ],
    )
    def test_a_scout_that_changes_the_repository_has_broken_out(self, source, named, agent, repo, tmp_path) -> None:
        """T147: exit 3, airlock_breach, and the change is named; T126."""
        done = agent("scout", "x", *fakes.command(tmp_path / "a.py", source))
        failure = state_of(repo)["failure"]
        assert (done.returncode, failure["kind"]) == (3, "airlock_breach")
        assert named in failure["message"]
        assert named in done.stderr

    def test_what_the_operator_had_changed_before_is_no_breach(self, agent, repo, tmp_path) -> None:
        """T126: a dirty checkout is recorded and left alone."""
        (repo / "README.md").write_text("mine\n")
        (repo / "untracked.txt").write_text("mine too\n")
        done = agent("scout", "x", *history(tmp_path / "h", *QUICK))
        assert (done.returncode, meta_of(repo)["dirty"]) == (0, True)
        assert (repo / "README.md").read_text() == "mine\n"

    def test_a_pointer_that_cannot_be_moved_ends_the_run_truthfully(self, agent, repo, tmp_path) -> None:
        """N15: something else stands where `latest` belongs; the claimed run is not left ACTIVE."""
        (repo / ".agents" / "latest").mkdir(parents=True)
        done = agent("scout", "x", *history(tmp_path / "h", *QUICK))
        assert done.returncode == 4
        assert "Traceback" not in done.stderr
        assert state_of(repo, boxes(repo)[0])["status"] == "CRASHED"
        assert published(repo) == []


class TestKilledSupervisor:
    def test_leaves_nothing_that_the_next_command_does_not_finish(
        self, agent, background, repo, tmp_path, mark
    ) -> None:
        """T138: after kill -9 no process; the next `status` says CRASHED, commands are gone, the ledger is whole; T139."""
        run = background("scout", "x", *fakes.command(tmp_path / "a.py", fakes.EVIL_TREE + LONG, mark))
        eventually(lambda: runs_now(repo)() and b"ready" in stream_of(repo))
        run.kill()
        run.wait()
        eventually(lambda: not world.tree_of(mark))
        shown = agent("status")
        assert "CRASHED" in shown.stdout
        assert state_of(repo)["failure"]["kind"] == "supervisor_died"
        assert agent("verify").returncode == 0
        settled(repo)

    @pytest.mark.slow
    def test_at_any_moment_leaves_what_can_be_read(self, agent, background, repo, tmp_path, mark) -> None:
        """T157: kill -9 at 30 random moments: every file parses, every run ends, the ledger is whole; C01, C02, C08."""
        steps = [step for number in range(15) for step in (say(str(number)), do("wait", seconds=0.01))]
        words = history(tmp_path / mark, INIT, *steps, result())
        chance = random.Random(20251122)
        for _ in range(30):
            run = background("scout", "x", *words)
            time.sleep(chance.uniform(0.05, 1.0))
            run.kill()
            run.wait()
        eventually(lambda: not world.tree_of(mark))
        assert agent("status").returncode == 0
        settled(repo)
        assert len({entry["run"] for entry in ledger_of(repo)}) == len(boxes(repo))
        verified = agent("verify")
        assert verified.returncode == 0, verified.stdout

    def test_that_was_only_stopped_keeps_the_watchdogs_word(self, agent, background, repo, tmp_path, mark) -> None:
        """C26: a watchdog called the run STALLED while its supervisor was stopped; it goes on and leaves it at that."""
        run = background("scout", "x", "--stall-after", "8s", *fakes.command(tmp_path / "a.py", LONG, mark))
        eventually(lambda: runs_now(repo)() and stream_of(repo))
        eventually(lambda: state_of(repo)["last_heartbeat"])
        run.send_signal(signal.SIGSTOP)
        try:
            eventually(lambda: "STALLED" in agent("status").stdout)
        finally:
            run.send_signal(signal.SIGCONT)
        run.wait(60)
        assert (state_of(repo)["status"], state_of(repo)["failure"]["kind"]) == ("STALLED", "stalled")
        assert world.tree_of(mark) == []
        assert agent("verify").returncode == 0
        settled(repo)


class TestResume:
    @pytest.fixture
    def crashed(self, agent, repo, tmp_path) -> Path:
        """A run whose program crashes, until the file ``ok`` is there."""
        source = f"""
print("attempt", flush=True)
open({str(tmp_path / "attempts")!r}, "a").write("x")
sys.exit(0 if os.path.exists({str(tmp_path / "ok")!r}) else 9)
"""
        assert agent("scout", "try", *fakes.command(tmp_path / "a.py", source)).returncode == 3
        return boxes(repo)[0]

    def attempts(self, tmp_path: Path) -> int:
        return len((tmp_path / "attempts").read_text())

    def test_goes_on_under_the_same_envelope(self, crashed, agent, repo, tmp_path) -> None:
        """T143: same commands, same allowlist, then its end; meta.yaml is never written again (T122)."""
        before, launched = digest(crashed / "meta.yaml"), json.loads((crashed / "raw/launch.json").read_text())
        (tmp_path / "ok").touch()
        assert agent("resume", "latest").returncode == 0
        state, again = state_of(repo), json.loads((crashed / "raw/launch.json").read_text())
        assert (state["status"], state["attempt"], state["failure"]) == ("DONE", 2, None)
        assert digest(crashed / "meta.yaml") == before
        assert (again["commands"], again["meta"], again["argv"]) == (launched["commands"], launched["meta"], launched["argv"])  # fmt: skip
        assert stream_of(repo) == b"attempt\nattempt\n"
        assert [entry["event"] for entry in ledger_of(repo)] == ["run.started", "run.crashed", "run.resumed", "run.finished"]  # fmt: skip
        assert agent("verify").returncode == 0
        settled(repo)

    @pytest.mark.parametrize(
        ("old", "new"),
        [('"ReadFile"', '"ReadFile", "EditFile"'), ("a.py", "b.py"), ('run_type: "scout"', 'run_type: "review"')],
    )
    def test_refuses_an_envelope_that_was_edited(self, old, new, crashed, agent, repo, tmp_path) -> None:
        """T144: allowlist, program or type: exit 5, and the program is not started."""
        (tmp_path / "ok").touch()
        (tmp_path / "b.py").write_text("open('/dev/null')")
        meta = crashed / "meta.yaml"
        assert old in meta.read_text()
        meta.write_text(meta.read_text().replace(old, new))
        assert agent("resume", "latest").returncode == 5
        assert (self.attempts(tmp_path), state_of(repo)["status"]) == (1, "CRASHED")

    def test_refuses_a_run_that_is_done(self, crashed, agent, repo, tmp_path) -> None:
        """T145: exit 2, with what to type instead."""
        (tmp_path / "ok").touch()
        agent("resume")
        again = agent("resume")
        assert again.returncode == 2
        assert "./agent scout" in again.stderr
        assert self.attempts(tmp_path) == 2

    def test_refuses_a_run_that_lives(self, agent, background, repo, tmp_path, mark) -> None:
        """T145: its supervisor holds it; N07."""
        background("scout", "x", *fakes.command(tmp_path / "a.py", LONG, mark))
        eventually(runs_now(repo))
        refused = agent("resume", "latest")
        assert refused.returncode == 2
        assert "ACTIVE" in refused.stderr
        assert state_of(repo)["status"] == "ACTIVE"

    def test_two_at_once_are_one(self, crashed, repo, tmp_path) -> None:
        """N07: one owner at a time; the other is refused, never a second agent beside the first."""
        (tmp_path / "ok").touch()
        runs = [subprocess.Popen([*world.AGENT, "resume"], cwd=repo, stdout=-3, stderr=-3) for _ in range(3)]
        assert sorted(run.wait(60) for run in runs) == [0, 2, 2]
        assert self.attempts(tmp_path) == 2


class TestFromAnotherTerminal:
    def test_stop_ends_it(self, agent, background, repo, tmp_path, mark) -> None:
        """T138: as Ctrl-C in its own terminal would."""
        run = background("scout", "x", *fakes.command(tmp_path / "a.py", fakes.EVIL_TREE + LONG, mark), env={"AGENT_BOX_GRACE": "200ms"})  # fmt: skip
        eventually(lambda: runs_now(repo)() and b"ready" in stream_of(repo))
        done = agent("stop", "latest")
        assert (done.returncode, done.stdout.split()[0]) == (0, "STOPPED")
        assert run.wait(30) == 2
        assert world.tree_of(mark) == []
        again = agent("stop", "latest")
        assert (again.returncode, "not running" in again.stderr) == (2, True)
        settled(repo)

    def test_stop_of_a_stalled_run_that_is_dead_is_refused(self, agent, repo, tmp_path) -> None:
        agent("scout", "x", "--stall-after", "1s", *history(tmp_path / "h", INIT, do("wait", seconds=300)))
        done = agent("stop", "latest")
        assert (done.returncode, "STALLED" in done.stderr) == (2, True)

    def test_a_detached_run_ends_by_itself(self, agent, repo, tmp_path) -> None:
        """It says its name at once; its end is recorded by itself."""
        steps = [INIT, say("one"), do("wait", seconds=2), result("# Later\n")]
        started = time.monotonic()
        done = agent("scout", "x", "--detach", *history(tmp_path / "h", *steps))
        assert done.returncode == 0
        assert state_of(repo)["status"] == "ACTIVE", f"it took {time.monotonic() - started} s to return"
        assert done.stdout.strip() == boxes(repo)[0].name
        eventually(status_is(repo, "DONE"))
        assert (repo / ".agents/latest/report.md").read_text() == "# Later\n"

    @pytest.mark.parametrize(("words", "code"), [(["--engine", "nonsense"], 2), (["--engine", "command"], 2), (["--timeout", "x"], 2)])  # fmt: skip
    def test_a_detached_run_that_is_refused_says_why(self, words, code, agent, repo) -> None:
        plain, detached = agent("scout", "x", *words), agent("scout", "x", "--detach", *words)
        assert (plain.returncode, detached.returncode) == (code, code)
        assert detached.stderr.strip() == plain.stderr.strip()
        assert boxes(repo) == []

    @pytest.mark.parametrize("raw", [True, False])
    def test_logs_are_followed_to_the_end(self, raw: bool, agent, repo, tmp_path) -> None:
        steps = [INIT, say("first"), do("wait", seconds=1), say("last words"), result()]
        agent("scout", "x", "--detach", *history(tmp_path / "h", *steps))
        done = agent("logs", "-f", "latest", *(["--raw"] if raw else []))
        assert done.returncode == 0
        assert done.stdout.index("first") < done.stdout.index("last words")
        if raw:
            assert done.stdout.encode() == stream_of(repo)

    def test_looking_does_not_disturb(self, agent, background, repo, tmp_path) -> None:
        """N09: `status` all the time, from the first moment to the last, changes nothing."""
        steps = [step for number in range(20) for step in (say(str(number)), do("wait", seconds=0.05))]
        run = background("scout", "x", *history(tmp_path / "h", INIT, *steps, result()))
        looks = []
        while run.poll() is None:
            looks.append(agent("status", "--json").returncode)
        assert set(looks) == {0}
        assert (run.returncode, state_of(repo)["status"], state_of(repo)["events"]) == (0, "DONE", 22)
        assert agent("verify").returncode == 0

    def test_an_engine_of_somebody_else_that_writes_a_file_loses_nothing(self, agent, repo, tmp_path) -> None:
        """T134: through a spool file, to the last byte before its death."""
        said = "".join(
            json.dumps(step) + "\n" for step in (INIT, *map(say, map(str, range(3000))), result("# Spooled\n"))
        )
        (tmp_path / "said").write_text(said)
        source = f"sys.stdout.write(open({str(tmp_path / 'said')!r}).read()); sys.stdout.flush(); os._exit(0)"
        path = fakes.engine(tmp_path, fakes.program(tmp_path / "a.py", source), "spool")
        done = agent("scout", "x", "--engine", "told", env={"PYTHONPATH": str(path)}, launch=world.OPEN_AGENT)
        assert (done.returncode, done.stdout) == (0, "# Spooled\n\n")
        assert stream_of(repo) == said.encode()


class Terminal:
    """The command line on a terminal of its own."""

    def __init__(self, repo: Path, *words: str, columns: int = 60) -> None:
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            os.chdir(repo)
            os.environ["TERM"] = "xterm"
            os.execv(sys.executable, [*world.AGENT, *words])
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.shown = b""

    def read(self, seconds: float = 0.1) -> bool:
        """Read what is shown; returns whether there is more to come."""
        if not select.select([self.screen], [], [], seconds)[0]:
            return True
        try:
            self.shown += (data := os.read(self.screen, 65536))
        except OSError:
            return False
        return bool(data)

    def until(self, condition) -> None:
        eventually(lambda: self.read() and condition(self.shown))

    def wait(self) -> int:
        while self.read(30):
            continue
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        os.close(self.screen)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


@pytest.fixture
def terminal(repo):
    opened: list[Terminal] = []

    def start(*words: str, **more: Any) -> Terminal:
        opened.append(Terminal(repo, *words, **more))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


LIVE = re.compile(rb"\r\x1b\[K\x1b\[\?7l([^\x1b]*)\x1b\[\?7h")


class TestTerminal:
    def test_the_live_line_is_shown_and_taken_back(self, terminal, repo, tmp_path) -> None:
        words = history(
            tmp_path / "h", INIT, say("Thinking about " + "everything " * 20), do("wait", seconds=3), result()
        )
        shell = terminal("scout", "x", *words, columns=60)
        assert shell.wait() == 0
        lines = [line.decode() for line in LIVE.findall(shell.shown)]
        assert lines
        assert any("2 events" in line and "Thinking about" in line for line in lines)
        assert all(len(line) <= 60 for line in lines), "a line that wraps could not be taken back"
        # After the last live line it is cleared, and wrapping is on again.
        after = shell.shown.rpartition(b"\x1b[?7h")[2]
        assert after.startswith(b"\r\x1b[K")
        assert b"# Found it" in after
        assert b"\x1b" not in after.removeprefix(b"\r\x1b[K")

    def test_ctrl_c_stops_the_run(self, terminal, repo, tmp_path, mark) -> None:
        """T138: STOPPED, exit code 2, nothing left running; the terminal is clean."""
        shell = terminal("scout", "x", *fakes.command(tmp_path / "a.py", LONG, mark))
        shell.until(lambda shown: b"\x1b[?7h" in shown)
        os.write(shell.screen, b"\x03")
        assert shell.wait() == 2
        assert state_of(repo)["status"] == "STOPPED"
        assert b"STOPPED" in shell.shown
        assert b"Traceback" not in shell.shown
        assert b"\x1b[?7l" not in shell.shown.rpartition(b"\x1b[?7h")[2]
        assert world.tree_of(mark) == []
        settled(repo)

    def test_a_terminal_that_is_closed_stops_the_run(self, terminal, repo, tmp_path, mark) -> None:
        """C25: the hang-up is a request to stop, and there is nobody to say it to."""
        shell = terminal("scout", "x", *fakes.command(tmp_path / "a.py", LONG, mark))
        shell.until(lambda shown: b"\x1b[?7h" in shown)
        os.close(shell.screen)
        eventually(status_is(repo, "STOPPED"))
        shell.screen = os.open(os.devnull, os.O_RDONLY)
        eventually(lambda: not world.tree_of(mark))

    def test_a_reader_who_has_had_enough_does_not_end_the_run(self, repo, tmp_path) -> None:
        """C24: `2>&1 | head -1`."""
        words = history(tmp_path / "h", INIT, do("wait", seconds=1.5), result())
        read, write = os.pipe()
        with os.fdopen(read, "rb") as reader:
            run = subprocess.Popen([*world.AGENT, "scout", "x", *words], cwd=repo, stdout=write, stderr=write)
            os.close(write)
            assert reader.readline()
        run.wait(60)
        assert state_of(repo)["status"] == "DONE"
