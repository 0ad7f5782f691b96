"""Several agents on one task: what a human's word does to all of them, and what a death leaves behind."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agents import aftermath, collect, core, gate, locks, team
from agents.context import prepare
from agents.lockorder import Rank
from agents.plan import Ask
from tests.support.fakes import command
from tests.support.world import boxes, eventually, git, ledger_of, meta_of, published, state_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable

TRUST = {"AGENT_BOX_TRUST_UNSANDBOXED": "1"}
WORK = 'open("who.txt", "w").write(os.environ["AGENT_BOX_RUN"])'
"""Every agent makes something else of it."""
HANG = 'open("half.txt", "w").write("half"); print("waiting", flush=True); time.sleep(300)'


def whole_of(repo: Path) -> Path:
    """The box of the run of several agents."""
    return next(box for box in boxes(repo) if meta_of(repo, box)["team"] is None)


def workers_of(repo: Path) -> list[Path]:
    """The boxes of its agents, in the order in which they were started."""
    return [whole_of(repo).parent / name for name in state_of(repo, whole_of(repo))["workers"]]


def statuses(repo: Path) -> list[str]:
    """Status of the whole, then of each agent."""
    return [state_of(repo, box)["status"] for box in (whole_of(repo), *workers_of(repo))]


def prefix(repo: Path, number: int) -> str:
    """What approves the patch of the agent *number*."""
    patch = whole_of(repo) / "patches" / f"agent_{number}.patch"
    return hashlib.sha256(patch.read_bytes()).hexdigest()[:8]


def waiting(repo: Path, count: int) -> Callable[[], bool]:
    """A condition: *count* agents say that they wait, and the whole knows them all."""

    def condition() -> bool:
        try:
            streams = [box / "raw" / "stream.jsonl" for box in workers_of(repo)]
            return len(streams) == count and all(b"waiting" in stream.read_bytes() for stream in streams)
        except (OSError, ValueError, KeyError, StopIteration):
            return False

    return condition


def opened(pid: int) -> list[Path]:
    """Files that the process *pid* has opened."""
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(each.readlink())
    return found


def airlocks(repo: Path) -> list[str]:
    return [line for line in git(repo, "worktree", "list").splitlines() if "agent_box/trees" in line]


@pytest.fixture
def pair(agent, repo, tmp_path):
    """Two agents that both came to a patch."""
    done = agent("fix", "try it", "-n", "2", *command(tmp_path / "a.py", WORK))
    assert (done.returncode, statuses(repo)) == (0, ["REVIEW"] * 3), done.stderr
    return repo


class TestAHumansWord:
    def test_patches_apply_independently_and_show_compares_them(self, agent, pair):
        """T156: patches/agent_1.patch and agent_2.patch are the agents' own patches."""
        for number, worker in enumerate(workers_of(pair), 1):
            patch = whole_of(pair) / "patches" / f"agent_{number}.patch"
            assert patch.read_bytes() == (worker / "changes.patch").read_bytes()
            git(pair, "apply", "--check", str(patch))
        shown = agent("show", "latest").stdout
        assert all(meta_of(pair, worker)["short_id"] in shown for worker in workers_of(pair))
        assert state_of(pair, whole_of(pair))["worktree_path"] is None
        assert agent("verify").returncode == 0

    @pytest.mark.parametrize(
        ("words", "sentence", "hint"),
        [
            (["merge", "latest"], "2 agents worked on this.", "agent merge"),
            (["diff", "latest"], "2 agents worked on this.", "agent diff"),
            (["merge", "latest", "--pick", "9"], "Only 2 worked", "agent show"),
            (["resume", "latest"], "Each agent goes on by itself", "agent resume"),
            (["undo", "latest"], "not merged", "agent show"),
        ],
    )
    def test_what_needs_one_agent_says_so(self, agent, pair, words, sentence, hint):
        done = agent(*words)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert hint in done.stderr
        assert statuses(pair) == ["REVIEW"] * 3

    def test_diff_shows_the_picked_one(self, agent, pair):
        done = agent("diff", "latest", "--pick", "2")
        assert workers_of(pair)[1].name in done.stdout, done.stderr

    @pytest.mark.parametrize("by", ["pick", "own id"])
    def test_merging_one_settles_all_and_undo_goes_back(self, agent, pair, by):
        """T149: the whole follows its agent, whichever way it was named; M20: undo takes both back."""
        own = meta_of(pair, workers_of(pair)[1])["short_id"]
        words = ["latest", "--pick", "2"] if by == "pick" else [own]
        head = git(pair, "rev-parse", "HEAD")
        merged = agent("merge", *words, "--approve", prefix(pair, 2), env=TRUST)
        assert (merged.returncode, statuses(pair)) == (0, ["MERGED", "REJECTED", "MERGED"]), merged.stderr
        assert (pair / "who.txt").read_text() == workers_of(pair)[1].name
        again = agent("merge", "latest", "--pick", "2", "--approve", prefix(pair, 2), env=TRUST)
        assert (again.returncode, "already merged" in again.stderr) == (2, True)
        undone = agent("undo", "latest" if by == "pick" else own)
        assert (undone.returncode, statuses(pair)) == (0, ["REVIEW", "REJECTED", "REVIEW"]), undone.stderr
        assert git(pair, "rev-parse", "HEAD") == head
        assert agent("verify").returncode == 0

    def test_a_merge_that_died_before_the_whole_was_settled_is_caught_up(self, agent, pair, context):
        """M14: only the agent's run knows that it is merged; the next command with the whole settles it."""
        name = workers_of(pair)[0].name
        gate.merge(context, name, approve=prefix(pair, 1), branch="side", within=lambda _: None)
        assert statuses(pair) == ["REVIEW", "MERGED", "REVIEW"]
        done = agent("merge", "latest", "--pick", "1", "--approve", prefix(pair, 1), env=TRUST)
        assert "already merged" in done.stderr
        assert statuses(pair) == ["MERGED", "MERGED", "REJECTED"]

    def test_an_agents_run_that_cannot_be_read_does_not_keep_the_whole_looked_at(self, agent, pair, context):
        """T139: it is said once; the whole stands where it stood, and its marker goes."""
        aftermath.mark(context, context.store.meta(whole_of(pair).name))
        (workers_of(pair)[0] / "state.json").write_text("{")
        told = [agent("status").stderr for _ in range(2)]
        assert ["state.json" in each for each in told] == [True, False], told
        assert context.store.active() == {}
        assert state_of(pair, whole_of(pair))["status"] == "REVIEW"

    def test_rejecting_the_whole_rejects_what_each_made(self, agent, pair):
        done = agent("reject", "latest", "none is good")
        assert (done.returncode, statuses(pair)) == (0, ["REJECTED"] * 3), done.stderr
        assert airlocks(pair) == []
        assert agent("verify").returncode == 0

    def test_rejecting_each_agent_rejects_the_whole(self, agent, pair):
        for worker in workers_of(pair):
            assert agent("reject", worker.name).returncode == 0
        assert statuses(pair) == ["REJECTED"] * 3

    def test_gc_of_the_whole_leaves_its_agents_usable(self, agent, pair, context):
        """Part 11: the parts are runs of their own; one whose whole is gone is undone all the same."""
        agent("merge", "latest", "--pick", "2", "--approve", prefix(pair, 2), env=TRUST)
        second = workers_of(pair)[1].name
        collect.remove(context, whole_of(pair).name)
        assert len(boxes(pair)) == 2
        assert agent("verify").returncode == 0
        undone = agent("undo", second)
        assert (undone.returncode, state_of(pair, pair / ".agents" / "runs" / second)["status"]) == (0, "REVIEW")


class TestHowItIsStarted:
    def test_a_dry_run_touches_nothing_and_describes_each(self, agent, repo, tmp_path):
        done = agent("fix", "x", "-n", "3", "--dry-run", "--json", *command(tmp_path / "a.py", WORK))
        assert done.returncode == 0, done.stderr
        assert [each["meta"]["engine"] for each in json.loads(done.stdout)["agents"]] == ["command"] * 3
        assert not (repo / ".agents").exists()

    def test_detached_it_goes_on_alone(self, agent, repo, tmp_path):
        done = agent("fix", "x", "-n", "2", "--detach", "--json", *command(tmp_path / "a.py", WORK))
        assert done.returncode == 0, done.stderr
        name = json.loads(done.stdout)["run"]
        box = repo / ".agents" / "runs" / name
        eventually(lambda: state_of(repo, box)["status"] == "REVIEW", 60)
        assert sorted(path.name for path in (box / "patches").iterdir()) == ["agent_1.patch", "agent_2.patch"]

    def test_detached_it_is_stopped_as_a_whole(self, agent, repo, tmp_path, mark):
        """T138: `stop` from another terminal ends every agent, deaf ones too."""
        (repo / "agent.yaml").write_text("grace: 1s\n")
        deaf = f"signal.signal(signal.SIGTERM, signal.SIG_IGN); {HANG}"
        done = agent("fix", "x", "-n", "2", "--detach", *command(tmp_path / "a.py", deaf, mark))
        assert done.returncode == 0, done.stderr
        eventually(waiting(repo, 2))
        assert not [each for each in statuses(repo) if each != "ACTIVE"]
        stopped = agent("stop", done.stdout.strip())
        assert (stopped.returncode, statuses(repo)) == (0, ["STOPPED"] * 3), stopped.stderr
        # The agents' words stand on their supervisors' command lines too, and those may still be leaving.
        eventually(lambda: not tree_of(mark), 10)

    def test_json_is_all_it_prints(self, agent, repo, tmp_path):
        done = agent("fix", "x", "-n", "2", "--json", *command(tmp_path / "a.py", WORK))
        facts = json.loads(done.stdout)
        assert (facts["status"], facts["workers"], done.stderr) == (
            "REVIEW",
            [each.name for each in workers_of(repo)],
            "",
        )

    def test_a_part_without_its_whole_does_not_start(self, agent, repo, tmp_path):
        """P03: an agent's supervisor that starts after the whole died finds another parent."""
        done = agent("fix", "x", *command(tmp_path / "a.py", WORK), env={"AGENT_BOX_TEAM": "gone 1"})
        assert (done.returncode, boxes(repo)) == (2, []), done.stderr

    def test_one_agent_needs_no_number(self, agent, repo, tmp_path):
        done = agent("fix", "x", "--engines", "command", "--", *command(tmp_path / "a.py", WORK)[3:])
        assert (done.returncode, statuses(repo)) == (0, ["REVIEW"] * 2), done.stderr
        merged = agent("merge", "latest", "--approve", prefix(repo, 1), env=TRUST)
        assert (merged.returncode, statuses(repo)) == (0, ["MERGED"] * 2), merged.stderr


class TestDeath:
    def test_before_the_first_agent_leaves_nothing_to_resume(self, agent, repo, context):
        """T145: said in a sentence of its own; the whole is CRASHED, and nobody's engine is asked for."""
        ask = Ask(run_type="fix", task="x")
        first, engine = core.decide(context, ask, engine=team.Team())
        prepare(context)
        made, owner = core.claim(context, ask, engine, first)
        core.announce(context, made, None)
        owner.release()
        done = agent("resume", "latest")
        assert (done.returncode, "before the first of its agents" in done.stderr) == (2, True), done.stderr
        assert state_of(repo)["status"] == "CRASHED"
        assert agent("verify").returncode == 0

    def test_of_the_conductor_stops_its_agents(self, agent, repo, background, tmp_path, mark):
        """T138: SIGKILL of the one that started them; P03: no process is left, and every state is true."""
        process = background("fix", "x", "-n", "2", *command(tmp_path / "a.py", HANG, mark))
        eventually(waiting(repo, 2))
        process.kill()
        process.wait()
        eventually(lambda: not tree_of(mark))
        eventually(lambda: agent("status").returncode == 0 and "ACTIVE" not in statuses(repo))
        assert statuses(repo) == ["CRASHED", "STOPPED", "STOPPED"]
        assert all("half" in (worker / "changes.patch").read_text() for worker in workers_of(repo))
        assert published(repo) == []
        assert agent("verify").returncode == 0
        done = agent("reject", "latest")
        assert (done.returncode, statuses(repo)[0]) == (0, "REJECTED"), done.stderr

    def test_ctrl_c_stops_them_all(self, agent, repo, background, tmp_path, mark):
        """T138: an orderly end of the whole and of every agent."""
        process = background("fix", "x", "-n", "2", *command(tmp_path / "a.py", HANG, mark))
        eventually(waiting(repo, 2))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 2
        assert (statuses(repo), tree_of(mark)) == (["STOPPED"] * 3, [])
        assert agent("verify").returncode == 0

    def test_of_one_agents_supervisor_leaves_the_others_work(self, agent, repo, background, tmp_path, mark):
        """T139: the whole waits for the other one, and says what became of the first."""
        source = """
            open("who.txt", "w").write(os.environ["AGENT_BOX_RUN"]); print("waiting", flush=True)
            while not os.path.exists(sys.argv[2]):
                time.sleep(0.05)
        """
        process = background("fix", "x", "-n", "2", *command(tmp_path / "a.py", source, mark, str(tmp_path / "go")))
        eventually(waiting(repo, 2))
        os.kill(state_of(repo, workers_of(repo)[0])["supervisor_pid"], signal.SIGKILL)
        (tmp_path / "go").touch()
        assert process.wait(60) == 0
        assert statuses(repo) == ["REVIEW", "CRASHED", "REVIEW"]
        assert tree_of(mark) == []
        assert agent("verify").returncode == 0

    def test_of_the_conductor_before_it_heeds_an_early_word(self, agent, repo, context, background, walled):
        """T149: one agent was merged while the other worked, and the conductor died between its end and saying so."""
        script = 'echo "$AGENT_BOX_RUN" > who.txt; echo waiting; until [ -e go ]; do sleep 0.05; done'
        process = background("fix", "x", "-n", "2", "--engine", "command", "--", "sh", "-c", script)
        eventually(waiting(repo, 2))
        first, second = workers_of(repo)
        (repo / state_of(repo, first)["worktree_path"] / "go").touch()
        eventually(
            lambda: statuses(repo)[1] == "REVIEW" and first.name.rpartition("__")[2] not in context.store.active()
        )
        patch = hashlib.sha256((first / "changes.patch").read_bytes()).hexdigest()[:8]
        merged = agent("merge", first.name, "--approve", patch, env=TRUST)
        assert (merged.returncode, statuses(repo)) == (0, ["ACTIVE", "MERGED", "ACTIVE"]), merged.stderr
        # As long as somebody has the gate in hand it cannot refuse the other one.
        with locks.Lock(context.layout.merge_lock, Rank.MERGE):
            (repo / state_of(repo, second)["worktree_path"] / "go").touch()
            eventually(lambda: statuses(repo)[0] == "REVIEW" and context.layout.merge_lock in opened(process.pid))
            process.kill()
            process.wait(60)
        agent("status")
        assert statuses(repo) == ["MERGED", "MERGED", "REJECTED"]
        assert context.store.active() == {}
        assert agent("verify").returncode == 0

    def test_of_all_agents_is_a_failure_of_the_whole(self, agent, repo, tmp_path):
        done = agent("fix", "x", "-n", "2", *command(tmp_path / "a.py", f"{WORK}; sys.exit(9)"))
        assert (done.returncode, statuses(repo)) == (3, ["CRASHED"] * 3), done.stderr
        assert "None of them can be merged" in done.stdout
        assert agent("verify").returncode == 0

    def test_a_long_one_is_not_taken_for_silent(self, agent, repo, background, tmp_path, mark):
        """T141: the whole says nothing itself while its agents talk, and gives signs of life all the same."""
        source = """
            print("waiting", flush=True)
            while not os.path.exists(sys.argv[2]):
                print("still", flush=True)
                time.sleep(0.2)
        """
        words = command(tmp_path / "a.py", source, mark, str(tmp_path / "go"))
        process = background("fix", "x", "-n", "2", "--stall-after", "3s", *words)
        eventually(waiting(repo, 2))
        beats = {state_of(repo, whole_of(repo))["last_heartbeat"]}
        eventually(lambda: beats.add(state_of(repo, whole_of(repo))["last_heartbeat"]) or len(beats) > 3)
        agent("status")
        assert statuses(repo)[0] == "ACTIVE"
        (tmp_path / "go").touch()
        assert process.wait(60) == 0
        assert "run.stalled" not in [entry["event"] for entry in ledger_of(repo)]
