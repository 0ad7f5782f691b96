"""`./agent fix` from the command line: an airlock, an agent that really edits, a patch, a human who merges it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.fakes import INIT, command, do, history, program, result
from tests.support.world import (
    FILES,
    IDENTITY,
    boxes,
    eventually,
    git,
    ledger_of,
    meta_of,
    published,
    runs_now,
    state_of,
    status_is,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LATEST = ".agents/latest"
EDIT = 'open("shop/cart.py", "a").write("# edited\\n")'

# An agent that makes every kind of change that git knows.
EVERYTHING = """
import os, shutil
open("new file.txt", "w").write("new\\n")
os.remove("README.md")
os.makedirs("moved", exist_ok=True)
os.rename("shop/db.py", "moved/db.py")
open("binary.bin", "wb").write(bytes(range(256)) * 20)
os.chmod("shop/cart.py", 0o755)
os.symlink("shop/cart.py", "link")
open("no newline", "w").write("end")
open("crlf.txt", "wb").write(b"a\\r\\nb\\r\\n")
open("empty", "w").close()
open(b"odd \\xff\\n\\"name", "w").write("odd\\n")
os.makedirs(".claude/commands", exist_ok=True)
open(".claude/commands/evil.md", "w").write("evil\\n")
os.makedirs(".agents/x", exist_ok=True)
open(".agents/x/y", "w").write("evil\\n")
print("Done with everything.")
"""


def said(repo: Path, words: bytes) -> Callable[[], bool]:
    """A condition: the agent of the latest run is at work and has said *words*."""

    def condition() -> bool:
        stream = repo / LATEST / "raw" / "stream.jsonl"
        return runs_now(repo)() and stream.exists() and words in stream.read_bytes()

    return condition


def airlock(repo: Path) -> Path:
    """The airlock of the latest run."""
    return repo / state_of(repo)["worktree_path"]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tree_of(root: Path) -> str:
    """Tree id of everything in *root*, ignored files aside."""
    index = {**os.environ, **IDENTITY, "GIT_INDEX_FILE": str(root.parent / "scratch-index")}
    subprocess.run(["git", "add", "-A", "."], cwd=root, env=index, check=True, capture_output=True)
    return (
        subprocess.run(["git", "write-tree"], cwd=root, env=index, check=True, capture_output=True)
        .stdout.decode()
        .strip()
    )


@pytest.fixture(params=["unwalled", "walled"])
def wall(request: pytest.FixtureRequest) -> str:
    """Without a sandbox, and behind the full one."""
    if request.param == "walled":
        request.getfixturevalue("walled")
    return str(request.param)


class TestAnAgentThatEdits:
    def test_ends_in_review_with_a_patch_and_leaves_the_checkout_alone(self, agent, repo, tmp_path, wall):
        """T126: its airlock is changed and nothing else; T120: all the files of the box are there."""
        head, before = git(repo, "rev-parse", "HEAD"), {name: (repo / name).read_bytes() for name in FILES}
        done = agent("fix", "tidy the cart", *command(tmp_path / "a.py", EDIT + '\nprint("Tidied.")'))
        assert (done.returncode, state_of(repo)["status"]) == (0, "REVIEW"), done.stderr
        assert git(repo, "rev-parse", "HEAD") == head
        assert {name: (repo / name).read_bytes() for name in FILES} == before
        for name in ("meta.yaml", "state.json", "report.md", "changes.patch", "raw/stream.jsonl"):
            assert (repo / LATEST / name).is_file()
        assert "Tidied." in (repo / LATEST / "report.md").read_text()
        assert state_of(repo)["isolation"] == {"walled": "full", "unwalled": "none"}[wall]

    def test_leaves_git_status_clean(self, agent, repo, tmp_path, wall):
        """T121: whatever the run made is out of git's sight."""
        agent("fix", "tidy", *command(tmp_path / "a.py", EDIT))
        assert git(repo, "status", "--porcelain") == ""
        assert published(repo) == []

    def test_works_in_a_worktree_at_the_start_commit(self, agent, repo, tmp_path, wall):
        """T125: a fix has a tree at repo_sha_start, a scout has none."""
        agent("fix", "look", *command(tmp_path / "a.py", 'print("nothing to do")'))
        assert state_of(repo)["status"] == "DONE"
        assert git(airlock(repo), "rev-parse", "HEAD").strip() == meta_of(repo)["repo_sha_start"]
        agent("scout", "look", *command(tmp_path / "a.py", 'print("nothing to do")'))
        assert state_of(repo)["worktree_path"] is None
        assert len(list((repo / "agent_box" / "trees").iterdir())) == 1

    def test_every_kind_of_change_merges_to_the_identical_tree(self, agent, repo, tmp_path, wall):
        """T127: new, deleted, renamed, binary, mode, links, odd names; nothing of .claude or .agents comes along."""
        done = agent("fix", "everything", *command(tmp_path / "a.py", EVERYTHING))
        state = state_of(repo)
        assert state["status"] == "REVIEW", done.stderr
        patch = repo / LATEST / "changes.patch"
        assert b".claude" not in patch.read_bytes()
        assert b".agents" not in patch.read_bytes()
        other = tmp_path / "plain"
        git(tmp_path, "clone", "-q", str(repo), str(other))
        git(other, "apply", "--index", str(patch))
        assert git(other, "write-tree").strip() == state["patch"]["tree"]
        merged = agent("merge", "latest", "--approve", sha256(patch)[:8], env=TRUST)
        assert merged.returncode == 0, merged.stderr
        assert git(repo, "rev-parse", "HEAD^{tree}").strip() == state["patch"]["tree"]
        assert (state_of(repo)["status"], git(repo, "status", "--porcelain")) == ("MERGED", "")
        assert tree_of(repo) == state["patch"]["tree"]

    def test_its_own_commits_are_part_of_the_patch(self, agent, repo, tmp_path):
        agent("fix", "commit it", *command(tmp_path / "a.py", f"""
            {EDIT}
            ident = dict(os.environ, GIT_AUTHOR_NAME="x", GIT_AUTHOR_EMAIL="x@x", GIT_COMMITTER_NAME="x", GIT_COMMITTER_EMAIL="x@x")
            subprocess.run(["git", "commit", "-qam", "mine"], env=ident)
            open("second.txt", "w").write("2\\n")
        """))  # fmt: skip
        patch = (repo / LATEST / "changes.patch").read_text()
        assert "+# edited" in patch
        assert "second.txt" in patch


TRUST = {"AGENT_BOX_TRUST_UNSANDBOXED": "yes"}


class TestTheEnd:
    def test_without_a_change_is_done(self, agent, repo, tmp_path):
        """T136: a fix with an empty patch is DONE, with one it is REVIEW; state, ledger and dashboard agree."""
        agent("fix", "nothing", *command(tmp_path / "a.py", "print('nothing')"))
        assert state_of(repo)["status"] == "DONE"
        agent("fix", "something", *command(tmp_path / "b.py", EDIT))
        assert state_of(repo)["status"] == "REVIEW"
        last = [entry for entry in ledger_of(repo) if entry["event"] == "run.finished"]
        assert [entry["facts"]["status"] for entry in last] == ["DONE", "REVIEW"]
        rows = [
            line
            for line in (repo / ".agents/INDEX.md").read_text().splitlines()
            if line.startswith(("| REVIEW", "| DONE"))
        ]
        assert [row.split()[1] for row in rows] == ["REVIEW", "DONE"]
        assert "+1 −0" in rows[0]

    def test_a_failing_agent_keeps_its_partial_patch(self, agent, repo, tmp_path):
        """T137: the failure's last safe artifact is the patch."""
        done = agent("fix", "half", *command(tmp_path / "a.py", EDIT + "\nsys.exit(9)"))
        state = state_of(repo)
        assert (done.returncode, state["status"], state["failure"]["kind"]) == (3, "CRASHED", "tool_error")
        assert state["failure"]["last_safe_artifact"] == "changes.patch"
        assert airlock(repo).is_dir()

    def test_a_failing_check_is_tests_failed(self, agent, repo, tmp_path, wall):
        """T137: what `check:` says counts, not what the agent says; the patch is kept and the run can go on."""
        (repo / "agent.yaml").write_text('check: ["! grep -q edited shop/cart.py"]\n')
        git(repo, "add", "agent.yaml"), git(repo, "commit", "-qm", "settings")
        done = agent("fix", "break it", *command(tmp_path / "a.py", EDIT))
        state = state_of(repo)
        assert (done.returncode, state["failure"]["kind"]) == (3, "tests_failed"), done.stderr
        assert "edited" in (repo / LATEST / "changes.patch").read_text()
        again = agent("resume", "latest")
        assert state_of(repo)["attempt"] == 2, again.stderr

    def test_killed_supervisor_leaves_the_truth_and_no_process(self, agent, repo, background, tmp_path, mark, wall):
        """T139: a dead supervisor's run is CRASHED at the next command, its partial patch is in the box."""
        words = command(tmp_path / "a.py", EDIT + '\nprint("edited", flush=True)\ntime.sleep(300)', mark)
        process = background("fix", "hang", *words)
        eventually(said(repo, b"edited"))
        process.send_signal(signal.SIGKILL)
        process.wait()
        agent("status")
        state = state_of(repo)
        assert (state["status"], state["failure"]["kind"]) == ("CRASHED", "supervisor_died")
        assert "+# edited" in (repo / LATEST / "changes.patch").read_text()
        assert agent("verify").returncode == 0


class TestResume:
    def test_goes_on_in_the_same_airlock_with_the_same_program(self, agent, repo, tmp_path, wall):
        """T143: same worktree, same argv, same envelope; the work so far is still there."""
        source = """
            first = not os.path.exists("half.txt")
            open("half.txt" if first else "whole.txt", "w").write(os.environ["AGENT_BOX_TASK"])
            sys.exit(9 if first else 0)
        """
        agent("fix", "go on", *command(tmp_path / "a.py", source))
        meta, before = sha256(repo / LATEST / "meta.yaml"), state_of(repo)
        done = agent("resume", "latest", "do the rest")
        after = state_of(repo)
        assert (after["status"], after["attempt"]) == ("REVIEW", 2), done.stderr
        assert after["worktree_path"] == before["worktree_path"]
        assert after["patch"]["files"] == 2
        assert "do the rest" in (airlock(repo) / "whole.txt").read_text()
        assert sha256(repo / LATEST / "meta.yaml") == meta

    def test_an_airlock_that_is_gone_is_made_again_from_the_patch(self, agent, repo, tmp_path):
        source = 'open("a.txt", "a").write("x"); sys.exit(0 if os.path.getsize("a.txt") > 1 else 9)'
        agent("fix", "twice", *command(tmp_path / "a.py", source))
        git(repo, "worktree", "remove", "-f", "-f", str(airlock(repo)))
        done = agent("resume", "latest")
        assert state_of(repo)["status"] == "REVIEW", done.stderr
        assert (airlock(repo) / "a.txt").read_text() == "xx"

    def test_a_run_in_review_can_go_on(self, agent, repo, tmp_path):
        agent("fix", "more", *command(tmp_path / "a.py", 'open("n.txt", "a").write("x\\n")'))
        assert state_of(repo)["status"] == "REVIEW"
        first = state_of(repo)["patch"]["tree"]
        done = agent("resume", "latest", "once more")
        assert (state_of(repo)["status"], state_of(repo)["attempt"]) == ("REVIEW", 2), done.stderr
        assert state_of(repo)["patch"]["tree"] != first


class TestSettings:
    def test_copied_linked_and_set_up_things_are_there_and_not_in_the_patch(self, agent, repo, tmp_path, wall):
        (repo / ".gitignore").write_text("*.local\ndeps/\n")
        git(repo, "add", ".gitignore"), git(repo, "commit", "-qm", "ignore")
        (repo / "deps").mkdir()
        (repo / "deps" / "lib.txt").write_text("lib\n")
        (repo / "key.local").write_text("k\n")
        (repo / "list.local").write_text("l\n")
        (repo / ".worktreeinclude").write_text("list.local\n")
        git(repo, "add", ".worktreeinclude"), git(repo, "commit", "-qm", "include")
        (repo / "agent.yaml").write_text("copy: key.local\nlink: deps\nsetup: echo made > made.txt\n")
        source = 'print([open(n).read() for n in ("key.local", "list.local", "deps/lib.txt", "made.txt")]); open("r.txt", "w").write("r")'
        done = agent("fix", "use them", *command(tmp_path / "a.py", source))
        assert state_of(repo)["status"] == "REVIEW", done.stderr
        assert "['k\\n', 'l\\n', 'lib\\n', 'made\\n']" in (repo / LATEST / "report.md").read_text()
        assert state_of(repo)["patch"]["files"] == 1

    def test_a_failing_setup_fails_the_run_loudly(self, agent, repo, tmp_path, wall):
        (repo / "agent.yaml").write_text("setup: echo no such thing >&2; exit 7\n")
        done = agent("fix", "x", *command(tmp_path / "a.py", EDIT))
        state = state_of(repo)
        assert (done.returncode, state["status"], state["failure"]["kind"]) == (4, "CRASHED", "setup")
        assert "exit code 7" in state["failure"]["message"]
        assert "no such thing" in (repo / LATEST / "raw" / "setup.log").read_text()

    def test_secrets_do_not_reach_the_agent(self, agent, repo, tmp_path, walled):
        """T151: .env is unreadable, .env.test is loaded, the operator's variables stay his."""
        (repo / ".env").write_text("X=real-secret\n")
        (repo / ".env.test").write_text("Y=for-tests\n")
        source = f"""
            for path in (".env", {str(repo / ".env")!r}, os.path.expanduser("~/secret")):
                try:
                    print(path, open(path).read())
                except OSError as why:
                    print(path, why.strerror)
            print(sorted(os.environ.items()))
        """
        Path(os.environ["HOME"], "secret").write_text("home-secret")
        for verb in ("scout", "fix"):
            agent(verb, "spy", *command(tmp_path / "a.py", source), env={"AWS_SECRET": "aws-secret"})
            said = (repo / LATEST / "raw" / "stream.jsonl").read_text()
            assert not [word for word in ("real-secret", "home-secret", "aws-secret") if word in said]
            assert "for-tests" in said


class TestAReadOnlyRun:
    def test_cannot_change_the_checkout_behind_the_wall(self, agent, repo, tmp_path, walled):
        """T147: impossible under full isolation."""
        source = """
            for path in ("README.md", "new.txt", ".git/config", ".git/hooks/post-checkout", ".agents/x"):
                try:
                    open(path, "a").write("evil")
                    print("WROTE", path)
                except OSError as why:
                    print(path, why.strerror)
        """
        agent("scout", "edit", *command(tmp_path / "a.py", source))
        assert state_of(repo)["status"] == "DONE"
        assert "WROTE" not in (repo / LATEST / "report.md").read_text()
        assert git(repo, "status", "--porcelain") == ""

    def test_is_caught_without_a_wall(self, agent, repo, tmp_path):
        """T147: under less isolation the run ends CRASHED with airlock_breach and the change is reported."""
        agent("scout", "edit", *command(tmp_path / "a.py", 'open("README.md", "a").write("evil")'))
        state = state_of(repo)
        assert (state["status"], state["failure"]["kind"]) == ("CRASHED", "airlock_breach")
        assert "README.md" in state["failure"]["message"]


class TestSideBySide:
    def test_twenty_fixes_at_once_have_airlocks_of_their_own(self, repo, background, tmp_path):
        """T119: distinct folders, ids and airlocks; N03: no race of `git worktree add`."""
        words = command(tmp_path / "a.py", EDIT)
        started = [background("fix", "same task", *words) for _ in range(8)]
        for each in started:
            each.wait(120)
        states = [state_of(repo, box) for box in boxes(repo)]
        assert [state["status"] for state in states] == ["REVIEW"] * 8
        assert len({state["worktree_path"] for state in states}) == 8

    def test_several_agents_try_one_task_and_one_is_picked(self, agent, repo, tmp_path, walled):
        """T156: patches/agent_1.patch and agent_2.patch apply independently; the other is not needed any more."""
        words = command(tmp_path / "a.py", 'open("who.txt", "w").write(str(os.getpid()) + os.environ["AGENT_BOX_RUN"])')
        done = agent("fix", "try it", "-n", "2", *words)
        box = repo / LATEST
        assert (done.returncode, state_of(repo)["status"]) == (0, "REVIEW"), done.stderr
        patches = sorted(path.name for path in (box / "patches").iterdir())
        assert patches == ["agent_1.patch", "agent_2.patch"]
        for name in patches:
            git(repo, "apply", "--check", str(box / "patches" / name))
        assert "| agent | engine | run |" in (box / "report.md").read_text()
        digest = sha256(box / "patches" / "agent_2.patch")
        merged = agent("merge", "latest", "--pick", "2", "--approve", digest[:8])
        assert merged.returncode == 0, merged.stderr
        statuses = {meta_of(repo, each).get("team") and state_of(repo, each)["status"] for each in boxes(repo)}
        assert statuses == {None, "MERGED", "REJECTED"}
        assert state_of(repo)["status"] == "MERGED"
        assert agent("verify").returncode == 0


def test_a_history_can_edit_its_airlock(agent, repo, tmp_path):
    """The engine ``scripted`` plays edits: a demo and a user's CI need no model."""
    steps = [INIT, do("write", path="shop/cart.py", text="played\n"), result()]
    done = agent("fix", "play", *history(tmp_path / "h", *steps))
    assert state_of(repo)["status"] == "REVIEW", done.stderr
    assert "+played" in (repo / LATEST / "changes.patch").read_text()


def test_a_fix_without_a_model_ends_with_a_plan_and_says_what_to_install(agent, repo, tmp_path, wall):
    """Issue 3, part 6: the reflex mind does not pretend."""
    done = agent("fix", "make total faster")
    state = state_of(repo)
    assert (done.returncode, state["status"], state["patch"]["files"]) == (0, "DONE", 0), done.stderr
    report = (repo / LATEST / "report.md").read_text()
    assert "ollama" in report.lower()
    assert "--engine command" in report
    assert "shop/cart.py" in report


def test_one_of_two_agents_with_other_engines(agent, repo, tmp_path):
    refused = agent("fix", "x", "-n", "1", "--engines", "hollow,nonsense")
    assert refused.returncode == 2
    assert "nonsense" in refused.stderr
    assert boxes(repo) == []


def test_the_operator_stops_a_fix_and_goes_on(agent, repo, background, tmp_path, wall):
    source = """
        if os.path.exists("half.txt"):
            sys.exit(0)
        open("half.txt", "w").write("half"); print("waiting", flush=True); time.sleep(300)
    """
    process = background("fix", "stop me", *command(tmp_path / "a.py", source))
    eventually(said(repo, b"waiting"))
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 2
    assert status_is(repo, "STOPPED")()
    assert "half" in (repo / LATEST / "changes.patch").read_text()
    done = agent("resume", "latest")
    assert state_of(repo)["status"] == "REVIEW", done.stderr


def test_the_json_outcome_says_where_the_patch_is(agent, repo, tmp_path):
    done = agent("fix", "tidy", "--json", *command(tmp_path / "a.py", EDIT))
    facts = json.loads(done.stdout)
    assert (facts["status"], facts["patch"]["added"]) == ("REVIEW", 1)
    assert facts["patch"]["sha256"] == sha256(Path(facts["box"]) / "changes.patch")


def test_the_argv_of_a_program_outside_is_run_as_it_was_given(agent, repo, tmp_path, walled):
    """Issue 3, contract: the program of --engine command may lie outside of the repository."""
    words = program(tmp_path / "elsewhere.py", 'open("made.txt", "w").write(" ".join(sys.argv[1:]))', "one", "t w o")
    done = agent("fix", "x", "--engine", "command", "--", *words)
    assert state_of(repo)["status"] == "REVIEW", done.stderr
    assert (airlock(repo) / "made.txt").read_text() == "one t w o"
    assert words[0] == sys.executable


def test_a_secret_in_the_task_is_not_in_the_name_of_the_run(agent, repo, tmp_path):
    """S05: the name stands in folders, on terminals and in commits."""
    agent("scout", "rotate ghp_abcdefghijklmnopqrstuvwxyz0123456789 now", *command(tmp_path / "a.py", "print(1)"))
    assert "abcdefghijkl" not in boxes(repo)[0].name


def test_a_repository_does_not_choose_where_the_boxes_lie(agent, repo, tmp_path):
    (repo / ".agents").symlink_to(tmp_path / "elsewhere")
    git(repo, "add", ".agents"), git(repo, "commit", "-qm", "link")
    done = agent("scout", "x", *command(tmp_path / "a.py", "print(1)"))
    assert (done.returncode, "a link that the repository brings" in done.stderr) == (4, True)
    assert not (tmp_path / "elsewhere").exists()


def test_a_spoiled_ledger_is_a_breach(agent, repo, tmp_path):
    """T147: without a wall an agent reaches it, and that is told."""
    source = f'open({str(repo / ".agents" / "INDEX.jsonl")!r}, "a").write("junk\\n")'
    agent("scout", "x", *command(tmp_path / "a.py", source))
    state = state_of(repo)
    assert (state["status"], state["failure"]["kind"]) == ("CRASHED", "airlock_breach")
    assert "the ledger" in state["failure"]["message"]
