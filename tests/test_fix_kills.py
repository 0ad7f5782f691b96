"""`kill -9` of a fix's supervisor in every phase: the truth, the work, no process, no litter, and a run that goes on."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agents import core, guard
from agents.model import FailureKind as K
from agents.model import Phase, Status
from essentials import records
from tests.support import world
from tests.support.fakes import command
from tests.support.world import boxes, eventually, git, published, state_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable

LATEST = ".agents/latest"
TRUST = {"AGENT_BOX_TRUST_UNSANDBOXED": "1"}
SEED = int(os.environ.get("AGENT_BOX_SEED", "20"))
"""Of the moments at which the random kills come."""
RANDOM_KILLS = 4
"""For each level of isolation."""

# Does the same however often it is begun; what it is told to wait for comes with the resume.
AGENT = """
    open("half.txt", "w").write("half\\n")
    print("waiting", flush=True)
    while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
        time.sleep(0.02)
    open("whole.txt", "w").write("whole\\n")
    open("shop/cart.py", "a").write("# edited\\n") if "edited" not in open("shop/cart.py").read() else None
"""
SET_UP = """
    assert os.path.exists("b.made")"""
EXPECTED = {"A  half.txt", "A  whole.txt", "M  shop/cart.py"}


@pytest.fixture(params=["unwalled", "walled"])
def wall(request: pytest.FixtureRequest) -> str:
    """Without a sandbox, and behind the full one."""
    if request.param == "walled":
        request.getfixturevalue("walled")
    return str(request.param)


def settings(repo: Path, text: str) -> None:
    """agent.yaml of the operator, which git does not see."""
    (repo / "agent.yaml").write_text(text)
    (repo / ".git" / "info" / "exclude").write_text("/agent.yaml\n/.agents/\n/agent_box/\n")


def contains(path: Callable[[], Path], words: bytes) -> Callable[[], bool]:
    """A condition: the file holds *words*."""

    def condition() -> bool:
        with contextlib.suppress(OSError, ValueError, KeyError):
            return words in path().read_bytes()
        return False

    return condition


def phase_is(repo: Path, phase: str) -> Callable[[], bool]:
    """A condition: the latest run is in *phase*."""
    return contains(lambda: repo / LATEST / "state.json", f'"phase": "{phase}"'.encode())


def check_truth(repo: Path, agent: Callable[..., object], mark: str) -> None:
    """What has to hold after the next command, whatever was killed (I1-I10)."""
    done = agent("status")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert tree_of(mark) == []
    states = {box.name: state_of(repo, box) for box in boxes(repo)}
    assert not [name for name, state in states.items() if state["status"] == "ACTIVE"]
    assert [
        path for path in (repo / ".agents" / "active").glob("*") if path.name.partition(".")[0] in str(states)
    ] == []
    assert published(repo) == []
    check_trees(repo, set(states))
    assert list((repo / ".git").rglob("*.lock")) in ([], [repo / ".git" / "agent-box.lock"])
    assert git(repo, "status", "--porcelain") == ""
    assert agent("verify").returncode == 0


def check_trees(repo: Path, runs: set[str]) -> None:
    """Every airlock is registered, every registration has its airlock, each belongs to a run."""
    folder = repo / "agent_box" / "trees"
    trees = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    listed = git(repo, "worktree", "list", "--porcelain")
    registered = {
        line.rpartition("/")[2] for line in listed.splitlines() if line.startswith("worktree") and "agent_box" in line
    }
    assert trees == registered <= runs
    assert "prunable" not in listed
    assert list((repo / "agent_box").glob("verify/*")) == []


def check_goes_on(repo: Path, agent: Callable[..., object]) -> None:
    """A run that did not come to its end comes to it now, and with nothing in the patch but the agent's work."""
    if not boxes(repo):
        return
    state = state_of(repo, boxes(repo)[-1])
    if state["status"] in {"CRASHED", "STALLED", "STOPPED"}:
        done = agent("resume", boxes(repo)[-1].name)
        assert done.returncode == 0, done.stderr
        state = state_of(repo, boxes(repo)[-1])
    assert state["status"] == "REVIEW", state
    git(repo, "apply", "--index", str(boxes(repo)[-1] / "changes.patch"))
    assert git(repo, "write-tree").strip() == state["patch"]["tree"]
    assert set(git(repo, "status", "--porcelain", "--no-renames").splitlines()) == EXPECTED
    git(repo, "reset", "-q", "--hard")
    assert agent("verify").returncode == 0


def killed(process: object) -> None:
    process.kill()
    process.wait(30)


class TestInEveryPhase:
    def test_while_its_airlock_is_opened(self, agent, repo, background, tmp_path, mark, wall):
        """T139: half an airlock is nobody's, and is made anew."""
        process = background("fix", "x", *command(tmp_path / "a.py", AGENT, mark))
        eventually(lambda: list((repo / ".git").glob("worktrees/*")))
        killed(process)
        check_truth(repo, agent, mark)
        check_goes_on(repo, agent)

    def test_while_a_setup_command_runs(self, agent, repo, background, tmp_path, mark, wall):
        """T139: what the setup has made is no agent's work, and a setup that was cut short runs again as a whole."""
        settings(repo, f"setup: 'echo a > a.made; echo begun {mark}; sleep 300; echo b > b.made'\n")
        process = background("fix", "x", *command(tmp_path / "a.py", SET_UP + AGENT, mark))
        eventually(contains(lambda: repo / LATEST / "raw" / "setup.log", b"\nbegun"))
        killed(process)
        eventually(lambda: not tree_of(mark))
        check_truth(repo, agent, mark)
        assert not (repo / LATEST / "changes.patch").exists()
        settings(repo, "setup: 'test ! -e a.made && echo a > a.made; echo b > b.made'\n")
        check_goes_on(repo, agent)

    def test_while_a_setup_command_runs_and_rejected(self, agent, repo, background, tmp_path, mark):
        """G39: an airlock that no agent has had goes with its run, although something is in it."""
        settings(repo, f"setup: 'echo a > a.made; echo begun {mark}; sleep 300'\n")
        process = background("fix", "x", *command(tmp_path / "a.py", AGENT, mark))
        eventually(contains(lambda: repo / LATEST / "raw" / "setup.log", b"\nbegun"))
        killed(process)
        done = agent("reject", "latest")
        assert (done.returncode, state_of(repo)["status"]) == (0, "REJECTED"), done.stderr
        assert list((repo / "agent_box" / "trees").iterdir()) == []

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_while_a_setup_command_runs_and_the_operator_stops_it(
        self, agent, repo, background, tmp_path, mark, wall, number
    ):
        """T138: an orderly stop need not wait for the setup, no agent is started, and a resume sets it up anew."""
        settings(repo, f"setup: ['echo a > a.made; echo begun {mark}; sleep 300', 'sleep 300']\n")
        process = background("fix", "x", *command(tmp_path / "a.py", SET_UP + AGENT, mark))
        eventually(contains(lambda: repo / LATEST / "raw" / "setup.log", b"\nbegun"))
        process.send_signal(number)
        assert process.wait(60) == 2
        assert (state_of(repo)["status"], state_of(repo)["exit_code"]) == ("STOPPED", None)
        check_truth(repo, agent, mark)
        settings(repo, "setup: 'test ! -e a.made && echo a > a.made; echo b > b.made'\n")
        check_goes_on(repo, agent)

    def test_while_its_agent_works(self, agent, repo, background, tmp_path, mark, wall):
        """T139: the work so far is in the box."""
        go = tmp_path / "go"
        process = background("fix", "x", *command(tmp_path / "a.py", AGENT, mark, str(go)))
        eventually(contains(lambda: repo / LATEST / "raw" / "stream.jsonl", b"waiting"))
        killed(process)
        eventually(lambda: not tree_of(mark))
        check_truth(repo, agent, mark)
        assert "+half" in (repo / LATEST / "changes.patch").read_text()
        assert state_of(repo)["failure"]["kind"] == "supervisor_died"

    def test_while_a_check_runs_and_the_operator_stops_it(self, agent, repo, background, tmp_path, mark, wall):
        """T138: neither passed nor failed: STOPPED, with the work, and it can go on."""
        settings(repo, f"check: 'echo begun {mark}; sleep 300'\n")
        process = background("fix", "x", *command(tmp_path / "a.py", AGENT, mark))
        eventually(contains(lambda: repo / LATEST / "raw" / "check.log", b"\nbegun"))
        done = agent("stop", "latest")
        assert (done.returncode, process.wait(60)) == (0, 2), done.stderr
        assert state_of(repo)["status"] == "STOPPED"
        check_truth(repo, agent, mark)
        assert "+whole" in (repo / LATEST / "changes.patch").read_text()
        settings(repo, "check: 'true'\n")
        check_goes_on(repo, agent)

    @pytest.mark.parametrize("phase", ["check", "export"])
    def test_after_its_agent_ended(self, agent, repo, background, tmp_path, mark, wall, phase):
        """T139: while a check runs, and while the work is carried over."""
        if phase == "check":
            settings(repo, f"check: 'echo begun {mark}; sleep 300'\n")
        process = background("fix", "x", *command(tmp_path / "a.py", AGENT, mark))
        begun = contains(lambda: repo / LATEST / "raw" / "check.log", b"\nbegun")
        eventually(begun if phase == "check" else lambda: phase_is(repo, "finalizing")() or process.poll() is not None)
        killed(process)
        check_truth(repo, agent, mark)
        assert "+whole" in (repo / LATEST / "changes.patch").read_text()
        if phase == "check":
            assert state_of(repo)["failure"]["kind"] == "supervisor_died"
            settings(repo, "check: 'true'\n")
        check_goes_on(repo, agent)


class TestAGateThatIsKilled:
    def test_while_a_verify_command_runs(self, agent, repo, background, tmp_path, mark):
        """M14: nothing is merged, and the throw-away tree goes at the next run's sweep."""
        agent("fix", "x", *command(tmp_path / "a.py", AGENT))
        settings(repo, f"verify: 'echo {mark}; touch {tmp_path}/begun; sleep 300'\n")
        digest = state_of(repo)["patch"]["sha256"]
        process = background("merge", "latest", "--approve", digest[:8])
        eventually((tmp_path / "begun").exists)
        killed(process)
        eventually(lambda: not tree_of(mark))
        settings(repo, "")
        assert agent("scout", "where", *command(tmp_path / "b.py", "pass")).returncode == 0
        check_truth(repo, agent, mark)
        assert [state_of(repo, box)["status"] for box in boxes(repo)] in (["REVIEW", "DONE"], ["DONE", "REVIEW"])


class TestTheRepositorysOwnCommands:
    """`setup:`, `check:` and `verify:` run what an agent wrote, and so count as part of its run."""

    @pytest.mark.parametrize("setting", ["setup", "check", "verify"])
    def test_cannot_pass_the_gate(self, agent, repo, tmp_path, setting):
        """T149: with another run's right approval, and in a session of its own, without a sandbox around it (M02)."""
        agent("fix", "first", *command(tmp_path / "a.py", AGENT))
        first, head = boxes(repo)[-1].name, git(repo, "rev-parse", "HEAD")
        approval = ["merge", first, "--branch", "stolen", "--approve", state_of(repo)["patch"]["sha256"][:8]]
        script = tmp_path / "steal.py"
        script.write_text(
            f"""import os, subprocess
env = {{name: value for name, value in os.environ.items() if not name.startswith("AGENT_BOX")}}
env["AGENT_BOX_TRUST_UNSANDBOXED"] = "1"
done = subprocess.run({[*world.AGENT, *approval]!r}, cwd={str(repo)!r}, env=env, capture_output=True,
                      stdin=subprocess.DEVNULL, start_new_session=True)
print(done.stderr.decode())
"""
        )
        settings(repo, f"{setting}: '{sys.executable} -IS {script}'\n")
        agent("fix", "second", *command(tmp_path / "b.py", 'open("other.txt", "w").write("other")'))
        second = repo / LATEST
        if setting == "verify":
            agent("merge", "latest", "--approve", "0" * 8, env=TRUST)
        said = (second / "raw" / f"{setting}.log").read_text()
        assert "inside of a run" in said
        assert git(repo, "branch", "--list", "stolen") == ""
        assert (state_of(repo, repo / ".agents/runs" / first)["status"], git(repo, "rev-parse", "HEAD")) == (
            "REVIEW",
            head,
        )

    def test_die_with_their_supervisor_and_its_guard(self, agent, repo, background, tmp_path, mark):
        """P03: nothing ends the command's tree but its mark, where everybody above it is killed at once."""
        settings(repo, f"check: 'echo begun {mark}; sleep 300'\n")
        process = background("fix", "x", *command(tmp_path / "a.py", AGENT, mark))
        eventually(contains(lambda: repo / LATEST / "raw" / "check.log", b"\nbegun"))
        above = [pid for pid in guard.descendants(process.pid) if b"guard.py" in cmdline(pid)]
        assert above
        for pid in (process.pid, *above):
            os.kill(pid, signal.SIGKILL)
        process.wait(30)
        check_truth(repo, agent, mark)


def cmdline(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


class TestABadEndThatIsCutOff:
    """A supervisor that dies between knowing how its run ended and writing it down."""

    @pytest.mark.parametrize(
        ("outcome", "failure", "after"),
        [
            ((Status.DONE, None, ""), None, ("REVIEW", None)),
            ((Status.CRASHED, K.TESTS_FAILED, "bad"), K.TESTS_FAILED, ("CRASHED", "tests_failed")),
            ((Status.CRASHED, K.AIRLOCK_BREACH, "bad"), K.AIRLOCK_BREACH, ("CRASHED", "airlock_breach")),
            ((Status.STALLED, K.STALLED, "bad"), K.STALLED, ("STALLED", "stalled")),
            ((Status.STOPPED, None, "You stopped it."), K.SUPERVISOR_DIED, ("CRASHED", "supervisor_died")),
        ],
    )
    def test_does_not_become_a_good_one(self, agent, repo, context, tmp_path, outcome, failure, after):
        """T137: an agent that exits with 0 has not passed its checks; the sweep says what its supervisor knew (I7)."""
        agent("fix", "x", *command(tmp_path / "a.py", AGENT))
        name = boxes(repo)[-1].name
        known = core._known(outcome)
        assert (known and known.kind) == failure

        def back(state):
            return records.replace(state, status=Status.ACTIVE, phase=Phase.FINALIZING, exit_code=0, failure=known)

        context.store.update(name, back)
        (context.layout.active / name.rpartition("__")[2]).write_text(name)
        assert agent("status").returncode == 0
        state = state_of(repo)
        assert (state["status"], (state["failure"] or {}).get("kind")) == after
        assert "+whole" in (repo / LATEST / "changes.patch").read_text()
        assert agent("verify").returncode == 0


def test_a_resume_that_is_killed_keeps_what_was_there(agent, repo, background, tmp_path, mark, wall):
    """T143: killed while the second attempt works, the third goes on with what both have made."""
    source = """
        os.makedirs("made", exist_ok=True)
        number = len(os.listdir("made"))
        open(f"made/{number}", "w").write("made\\n")
        print(f"waiting {number}", flush=True)
        time.sleep(300) if number < 2 else None
    """
    for number, verb in enumerate((["fix", "x", *command(tmp_path / "a.py", source, mark)], ["resume", "latest"])):
        process = background(*verb)
        eventually(contains(lambda: repo / LATEST / "raw" / "stream.jsonl", f"waiting {number}".encode()))
        killed(process)
        eventually(lambda: not tree_of(mark))
        check_truth(repo, agent, mark)
        assert state_of(repo)["patch"]["files"] == number + 1
    assert agent("resume", "latest").returncode == 0
    assert (state_of(repo)["status"], state_of(repo)["attempt"], state_of(repo)["patch"]["files"]) == ("REVIEW", 3, 3)


# Claude Code as far as its sessions go: it keeps them in its HOME, and fails until it has been resumed or begun anew.
CLAUDE = """#!{python} -IS
import json, os, sys
if "--version" in sys.argv or "--help" in sys.argv:
    sys.exit(print("2.0.0 (Claude Code)"))
words = sys.argv[1:]
again = "--resume" in words
session = words[words.index("--resume" if again else "--session-id") + 1]
begun = os.path.exists("begun.txt")
open("begun.txt", "a").write("begun\\n")
folder = os.path.expanduser("~/.claude/projects/here")
os.makedirs(folder, exist_ok=True)
open(f"{{folder}}/{{session}}.jsonl", "a").write("{{}}\\n")
print(json.dumps({{"type": "system", "subtype": "init", "session_id": session}}), flush=True)
print(json.dumps({{"type": "result", "subtype": "success", "is_error": not begun, "num_turns": 1, "session_id": session,
                  "result": ("resumed " if again else "new ") + session}}), flush=True)
"""


class TestASession:
    @pytest.fixture
    def claude(self, agent, repo, tmp_path, wall):
        """A run of a program called claude that crashed, and how to call the command line with it on PATH."""
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "claude").write_text(CLAUDE.format(python=sys.executable))
        (folder / "claude").chmod(0o755)
        env = {"PATH": f"{folder}:{os.environ['PATH']}", "ANTHROPIC_API_KEY": "sk-test"}
        done = agent("fix", "x", "--engine", "claude", env=env)
        assert state_of(repo)["status"] == "CRASHED", done.stderr
        return partial(agent, env=env)

    def test_is_gone_on_with(self, repo, claude):
        """T143: the very session, in the same airlock."""
        before = state_of(repo)
        done = claude("resume", "latest")
        assert state_of(repo)["status"] == "REVIEW", done.stderr
        assert f"resumed {before['session_id']}" in (repo / LATEST / "report.md").read_text()
        assert (state_of(repo)["session_id"], state_of(repo)["worktree_path"]) == (
            before["session_id"],
            before["worktree_path"],
        )

    def test_that_is_lost_is_said_and_a_fresh_one_goes_on_in_the_same_airlock(self, repo, claude):
        """T154: without the session's file the program is not even called; --fresh begins another one."""
        before = state_of(repo)
        shutil.rmtree(repo / LATEST / "private" / "home" / ".claude")
        done = claude("resume", "latest")
        assert (done.returncode, state_of(repo)["attempt"]) == (2, 1)
        assert "--fresh" in done.stderr
        done = claude("resume", "latest", "--fresh")
        assert state_of(repo)["status"] == "REVIEW", done.stderr
        assert "new " in (repo / LATEST / "report.md").read_text()
        assert state_of(repo)["session_id"] != before["session_id"]
        assert (repo / state_of(repo)["worktree_path"] / "begun.txt").read_text() == "begun\n" * 2


class TestTheGateAfterAResume:
    def test_takes_the_patch_of_the_last_end(self, agent, repo, tmp_path):
        """T149: the hash of the first end approves nothing any more; undo and another resume go on from it (M20)."""
        agent("fix", "x", *command(tmp_path / "a.py", 'open("n.txt", "a").write("line\\n")'))
        first = state_of(repo)["patch"]["sha256"]
        agent("resume", "latest", "once more")
        second = state_of(repo)["patch"]["sha256"]
        assert agent("merge", "latest", "--approve", first[:8], env=TRUST).returncode == 2
        done = agent("merge", "latest", "--approve", second[:8], env=TRUST)
        assert (done.returncode, (repo / "n.txt").read_text()) == (0, "line\n" * 2), done.stderr
        assert agent("undo", "latest").returncode == 0
        done = agent("resume", "latest", "a third time")
        assert state_of(repo)["status"] == "REVIEW", done.stderr
        done = agent("merge", "latest", "--approve", state_of(repo)["patch"]["sha256"][:8], env=TRUST)
        assert (done.returncode, (repo / "n.txt").read_text()) == (0, "line\n" * 3), done.stderr
        assert agent("verify").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", range(RANDOM_KILLS))
def test_at_random(agent, repo, background, tmp_path, mark, wall, number):
    """T157: wherever the kill comes, the next command tells the truth, and the run goes on to the same tree."""
    settings(repo, "setup: 'echo a > a.made'\ncheck: 'test -e whole.txt'\n")
    process = background("fix", "x", *command(tmp_path / "a.py", AGENT, mark))
    time.sleep(random.Random(SEED * 1000 + number).uniform(0.1, 1.6))
    killed(process)
    eventually(lambda: not tree_of(mark))
    check_truth(repo, agent, mark)
    check_goes_on(repo, agent)
