"""What an agent with its operator's rights may do to its box, its ledger and its neighbours, and what then still holds.

Without a sandbox it can write all of them. What must hold: no stranger is killed, nothing of the repository is run,
nothing hangs, no traceback, and `status` and `verify` tell the truth afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents import guard
from tests.support.cli import MAIN, agent, environment, git, make_repository
from tests.support.needs import needs_bwrap
from tests.support.world import eventually


@pytest.fixture
def repo(tmp_path):
    (tmp_path / "home").mkdir(exist_ok=True)
    return make_repository(tmp_path / "repo")


@pytest.fixture
def stranger():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    yield process
    process.kill()
    process.wait()


def scout(repo, script, *options):
    return agent(repo, "scout", "x", *options, "--engine", "command", "--", "sh", "-c", script)


def latest(repo):
    return (repo / ".agents" / "latest").resolve()


def state(repo):
    return json.loads((latest(repo) / "state.json").read_text())


def detached(repo, script, *options):
    """The name of a run that goes on by itself, once its program has begun."""
    done = agent(repo, "scout", "x", "-d", *options, "--engine", "command", "--", "sh", "-c", f"echo begun; {script}")
    assert done.returncode == 0, done.stderr.decode()
    eventually(lambda: b"begun" in agent(repo, "logs", "--raw").stdout)
    return done.stdout.decode().strip()


def forge(repo, **changes):
    path = latest(repo) / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


# --- Strangers -----------------------------------------------------------------------------------------------------------


def test_a_forged_pid_gets_no_stranger_killed(repo, stranger):
    """T140: what a state file says of a pid is believed only of processes that carry the run's mark."""
    detached(repo, "sleep 300")
    supervisor = state(repo)["supervisor_pid"]
    forge(repo, pid=stranger.pid, pid_start=guard.start_ticks(stranger.pid))
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: guard.start_ticks(supervisor) is None)
    assert "CRASHED" in agent(repo, "status").stdout.decode()
    assert stranger.poll() is None


def test_stop_signals_who_holds_the_lock_not_who_a_file_names(repo, stranger):
    """T147: and who the supervisor is was nobody's to change while the run was at work."""
    detached(repo, "sleep 300")
    supervisor = state(repo)["supervisor_pid"]
    forge(repo, supervisor_pid=stranger.pid, supervisor_start=guard.start_ticks(stranger.pid))
    done = agent(repo, "stop")
    assert done.returncode == 0, done.stderr.decode()
    ended = state(repo)
    assert (ended["status"], ended["failure"]["kind"]) == ("CRASHED", "airlock_breach")
    assert ended["supervisor_pid"] == supervisor
    assert stranger.poll() is None
    assert agent(repo, "verify").returncode == 0


def test_a_marker_that_leads_elsewhere_is_not_followed(repo, stranger, tmp_path):
    scout(repo, "true")
    evil = tmp_path / "evil"
    shutil.copytree(latest(repo), evil)
    words = json.loads((evil / "state.json").read_text())
    words |= {"status": "ACTIVE", "pid": stranger.pid, "pid_start": guard.start_ticks(stranger.pid)}
    (evil / "state.json").write_text(json.dumps(words))
    (repo / ".agents" / "active" / "beef").write_text("../../../evil")
    assert agent(repo, "status").returncode == 0
    assert stranger.poll() is None
    assert json.loads((evil / "state.json").read_text()) == words


# --- The repository's own text ---------------------------------------------------------------------------------------------


def test_a_strangers_env_test_does_not_choose_what_is_loaded(repo):
    """T151: the built-in agent gets nothing of it, other programs nothing that libraries and tools listen to."""
    names = ["OPENSSL_CONF", "OPENSSL_MODULES", "XDG_CONFIG_HOME", "GLIBC_TUNABLES", "NODE_PATH", "npm_config_x", "PAGER", "EDITOR",
             "LD_PRELOAD", "PYTHONPATH", "SSL_CERT_FILE", "GIT_DIR"]  # fmt: skip
    (repo / ".env.test").write_text("".join(f"{name}=evil\n" for name in names) + "Y=fine\n")
    done = scout(repo, "env")
    assert "Y=fine" in done.stdout.decode()
    assert "=evil" not in done.stdout.decode()
    assert agent(repo, "scout", "where is the total?").returncode == 0
    assert "Y" not in json.loads((latest(repo) / "raw" / "launch.json").read_text())["environment"]


def canary(tmp_path):
    path = tmp_path / "canary.sh"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/sang\nexec cat\n")
    path.chmod(0o755)
    return path


def test_a_filter_that_an_earlier_agent_planted_does_not_run(repo, tmp_path):
    """G21: neither when the next run looks for uncommitted work nor when it takes its fingerprints."""
    plant = f'git config filter.e.clean "{canary(tmp_path)}"; git config filter.e.required true; echo "* filter=e" > .gitattributes; touch shop.py'
    done = scout(repo, plant)
    assert (done.returncode, "airlock_breach" in done.stderr.decode()) == (3, True)
    assert scout(repo, "true").returncode == 0
    assert agent(repo, "scout", "where is the total?").returncode == 0
    assert not (tmp_path / "sang").exists()


def test_a_git_in_the_repository_is_not_ours(repo, tmp_path):
    """P27: a relative entry of PATH would find it."""
    (repo / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/sang\n")
    (repo / "git").chmod(0o755)
    done = agent(repo, "scout", "x", "--engine", "command", "--", "true", PATH=f".:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr.decode()
    assert not (tmp_path / "sang").exists()


# --- The box ---------------------------------------------------------------------------------------------------------------


def test_an_envelope_that_its_agent_rewrote_is_noticed_and_never_run(repo, tmp_path):
    """T144: meta.yaml is sealed before the agent lives; resume starts nothing that was put in its place."""
    spoil = f"sed -i 's/^- sh$/- {canary(tmp_path).name}/; s/scout/plan/' .agents/latest/meta.yaml; exit 1"
    done = scout(repo, spoil)
    assert (done.returncode, "meta.yaml of its box" in done.stderr.decode()) == (3, True)
    assert agent(repo, "verify").returncode == 5
    assert agent(repo, "resume").returncode == 5


SPOILERS = [
    "rm .agents/latest/state.json", "rm -rf .agents/runs/*", "echo '[]' > .agents/latest/state.json",
    "rm .agents/latest/state.json; mkfifo .agents/latest/state.json", "rm .agents/latest/state.json; mkdir .agents/latest/state.json",
]  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_box_that_is_spoiled_while_its_run_lives_ends_with_the_truth(repo, spoil):
    done = scout(repo, f"{spoil}; sleep 2")
    assert done.returncode in {3, 4}, done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    shown = agent(repo, "status")
    assert shown.returncode == 0
    assert "ACTIVE" not in shown.stdout.decode()


BEHIND = [*SPOILERS, "echo junk >> .agents/INDEX.jsonl", "rm -f .agents/INDEX.md", "sed -i s/scout/plan/ .agents/latest/meta.yaml",
          "git config filter.e.clean true", "echo evil > README.md", "echo evil > .agents/latest/report.md"]  # fmt: skip


@needs_bwrap
@pytest.mark.parametrize("spoil", BEHIND)
def test_behind_the_wall_the_same_spoils_nothing(repo, spoil):
    """T147: the box, the ledger and the repository are not the agent's to change."""
    script = f"({spoil}) 2>/dev/null; echo tried"
    done = agent(repo, "scout", "x", "--engine", "command", "--", "sh", "-c", script, AGENT_BOX_ISOLATION="full")
    assert done.returncode == 0, done.stderr.decode()
    assert (state(repo)["status"], state(repo)["isolation"]) == ("DONE", "full")
    assert (latest(repo) / "report.md").read_text() == "tried\n"
    assert "scout" in (latest(repo) / "meta.yaml").read_text()
    assert (agent(repo, "verify").returncode, git(repo, "status", "--porcelain")) == (0, "")
    assert "filter" not in (repo / ".git" / "config").read_text()


def test_one_bad_box_does_not_keep_the_others_from_being_shown(repo):
    scout(repo, "true")
    (repo / ".agents" / "runs" / latest(repo).name / "state.json").write_text("[]")
    (repo / ".agents" / "active" / latest(repo).name[-4:]).write_text(latest(repo).name)
    for words in (["status"], ["list", "--json"]):
        assert "UNREADABLE" in agent(repo, *words).stdout.decode()
    assert scout(repo, "true").returncode == 0
    assert "not readable" in agent(repo, "verify").stdout.decode()


FIFOS = ["INDEX.jsonl", "INDEX.md", "latest/state.json", "latest/raw/stream.jsonl", "latest/report.md", "active/beef"]


@pytest.mark.parametrize("name", FIFOS)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(repo, name):
    scout(repo, "true")
    path = repo / ".agents" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for words in (["status"], ["status", "--json"], ["verify"], ["show"], ["logs"]):
        done = agent(repo, *words)
        assert done.returncode in {0, 2, 4, 5}, words
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["agent.yaml", ".env.test"])
def test_a_pipe_in_the_repository_is_not_waited_for(repo, name):
    os.mkfifo(repo / name)
    done = scout(repo, "true")
    assert done.returncode in {0, 2}, done.stderr.decode()


def test_a_picture_that_cannot_be_hung_costs_no_run(repo):
    assert scout(repo, "rm -f .agents/INDEX.md; mkdir .agents/INDEX.md").returncode == 0
    assert agent(repo, "verify").returncode == 0


def test_a_data_folder_elsewhere_is_as_invisible_as_one_here(repo, tmp_path):
    """T121: also where .agents is a link to another disk."""
    (tmp_path / "elsewhere").mkdir()
    (repo / ".agents").symlink_to(tmp_path / "elsewhere")
    assert scout(repo, "true").returncode == 0
    assert git(repo, "status", "--porcelain") == ""


# --- The ledger --------------------------------------------------------------------------------------------------------------


def test_junk_at_the_end_of_the_ledger_is_accepted_or_refused_but_no_dead_end(repo):
    assert scout(repo, "echo junk >> .agents/INDEX.jsonl").returncode == 5
    before = len(list((repo / ".agents" / "runs").iterdir()))
    refused = scout(repo, "true")
    assert (refused.returncode, len(list((repo / ".agents" / "runs").iterdir()))) == (5, before)
    assert agent(repo, "verify").returncode == 5
    assert agent(repo, "verify", "--accept").returncode == 0
    assert agent(repo, "verify").returncode == 0
    assert scout(repo, "true").returncode == 0
    assert list((repo / ".agents" / "quarantine").iterdir())


@pytest.mark.parametrize("spoil", ["report.md", "meta.yaml", "state.json", None])
def test_what_the_operator_accepts_holds_from_then_on(repo, spoil):
    scout(repo, "true")
    if spoil is None:
        shutil.rmtree(latest(repo))
    elif spoil == "state.json":
        forge(repo, exit_code=7)
    else:
        with (latest(repo) / spoil).open("a") as file:
            file.write("\n")
    assert agent(repo, "verify").returncode == 5
    assert agent(repo, "verify", "--accept").returncode == 0
    assert agent(repo, "verify").returncode == 0
    assert scout(repo, "true").returncode == 0
    assert agent(repo, "verify").returncode == 0


def test_linked_work_trees_have_ledgers_of_their_own(repo):
    git(repo, "worktree", "add", "-q", "../other")
    other = repo.parent / "other"
    for place in (repo, other, other):
        assert (
            agent(place, "scout", "x", "--engine", "command", "--", "true", home=repo.parent / "home").returncode == 0
        )
    for place in (repo, other):
        assert agent(place, "verify", home=repo.parent / "home").returncode == 0
        assert git(place, "status", "--porcelain") == ""


# --- Neighbours ----------------------------------------------------------------------------------------------------------------


def test_a_run_is_judged_by_its_own_limits_not_by_the_next_commands(repo):
    """T141: a sweep goes by what the silent run was started with."""
    detached(repo, "sleep 300", "--stall-after", "1h")
    time.sleep(1.5)
    assert agent(repo, "scout", "other", "--stall-after", "1s", "--mind", "reflex").returncode == 0
    assert "1 running" in agent(repo, "status", AGENT_BOX_STALL_AFTER="1s").stdout.decode()
    runs = json.loads(agent(repo, "list", "--json").stdout)
    assert sorted(row["status"] for row in runs) == ["ACTIVE", "DONE"]
    quiet = next(row["id"] for row in runs if row["status"] == "ACTIVE")
    assert agent(repo, "stop", quiet).returncode == 0


def test_gc_leaves_a_run_that_is_still_being_written_about(repo):
    scout(repo, "true")
    name = latest(repo).name
    marker = repo / ".agents" / "active" / name.rpartition("__")[2]
    marker.write_text(name)
    with subprocess.Popen(
        [sys.executable, "-c", "import fcntl, sys, time; f = open(sys.argv[1], 'r+'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); time.sleep(60)",
         str(latest(repo) / "private" / "owner.lock")], stdout=subprocess.PIPE,
    ) as owner:  # fmt: skip
        owner.stdout.readline()
        assert json.loads(agent(repo, "gc", "--keep-runs", "0", "--json").stdout)["removed"] == []
        owner.kill()
    assert json.loads(agent(repo, "gc", "--keep-runs", "0", "--json").stdout)["removed"] == [name]
    assert agent(repo, "verify").returncode == 0


# --- The command line ----------------------------------------------------------------------------------------------------------


def test_detaching_a_dry_run_is_a_dry_run(repo):
    done = agent(repo, "scout", "x", "-d", "--dry-run", "--json", "--engine", "command", "--", "touch", "made")
    assert json.loads(done.stdout)["argv"] == ["touch", "made"]
    assert not (repo / ".agents").exists()


def test_detaching_says_json_and_takes_a_task_that_no_command_line_holds(repo):
    task = b"long " * 60_000
    done = agent(repo, "scout", "-", "-d", "--json", "--engine", "command", "--", "wc", "-c", stdin=task)
    name = json.loads(done.stdout)["run"]
    eventually(lambda: state(repo)["status"] == "DONE")
    assert (repo / ".agents" / "runs" / name / "report.md").read_text().strip() == str(len(task))


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["status"], ["list", "--all"], ["show"], ["verify"]])
def test_a_closed_or_broken_output_is_no_traceback_and_never_exit_code_1(repo, words):
    scout(repo, "true")
    line = " ".join([*MAIN, *words])
    for script, codes in (
        (f"{line} >&-", {0}),
        (f"{line} | true; exit ${{PIPESTATUS[0]}}", {0}),
        (f"{line} >/dev/full", {4}),
    ):
        done = subprocess.run(
            ["bash", "-c", script], cwd=repo, env=environment(repo.parent / "home"), capture_output=True, check=False
        )
        assert done.returncode in codes, (script, done.stderr)
        assert b"Traceback" not in done.stderr
        assert b"Exception ignored" not in done.stderr


def test_a_reader_that_leaves_does_not_change_how_a_run_ended(repo):
    line = " ".join(MAIN)
    for program, code in (("true", 0), ("false", 3)):
        script = f"{line} scout x --engine command -- {program} 2>/dev/null | true; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", script], cwd=repo, env=environment(repo.parent / "home"), check=False)
        assert done.returncode == code


def test_a_line_that_breaks_parsers_is_no_traceback(repo):
    scout(repo, "true")
    with Path(repo / ".agents" / "INDEX.jsonl").open("a") as ledger:
        ledger.write("[" * 100_000 + "\n")
    for words in (["status"], ["list"], ["verify"]):
        assert b"Traceback" not in agent(repo, *words).stderr
