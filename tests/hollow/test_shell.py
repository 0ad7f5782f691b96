from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hollow import children
from hollow.sandbox import Cell, offered
from hollow.tools import Toolbox
from tests.support.cycles import environment
from tests.support.needs import needs_bwrap
from tests.support.repos import git, make_repo

FILES = {"src/app.py": "X = 1\n", "config/a.txt": "a\n"}
DEADLINE = 30.0


@pytest.fixture
def repo(tmp_path):
    made = make_repo(tmp_path / "repo", FILES)
    for name in (".env", "config/.env.local"):
        (made / name).write_text("TOKEN=sesame\n")
    (made / ".env.test").write_text("MODE=test\n")
    (tmp_path / ".agents/hollow/index").mkdir(parents=True)
    (tmp_path / ".agents/ledger").write_text("sesame")
    (tmp_path / "home/.netrc").parent.mkdir(exist_ok=True)
    (tmp_path / "home/.netrc").write_text("sesame")
    return made


def cell_of(repo, surroundings="none", **more) -> Cell | None:
    return offered(repo, repo.parent / ".agents/hollow/index", surroundings, {**os.environ, **more})


@pytest.fixture(params=["none", "full"])
def box(repo, bwrap, request):
    """A toolbox whose commands run in bubblewrap, within nothing or within what the supervisor has put up."""
    cell = cell_of(repo, request.param)
    assert cell is not None
    assert cell.bwrap is not None
    return Toolbox(repo, "fix", cell)


def sh(box, command, **more):
    return box.call("Shell", {"command": command, **more})


def alone(repo, tmp_path) -> Toolbox:
    """A toolbox without bubblewrap, as on a machine where the surroundings are all there is."""
    remove_secrets(repo)
    cell = cell_of(repo, "partial", PATH="/nonexistent:" + str(no_bwrap(tmp_path)))
    assert cell is not None
    assert cell.bwrap is None
    return Toolbox(repo, "fix", cell)


def remove_secrets(repo):
    for name in (".env", "config/.env.local"):
        (repo / name).unlink(missing_ok=True)


def no_bwrap(tmp_path) -> Path:
    """A folder for PATH with the usual programs and no bubblewrap."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    for name in ("sh", "cat", "sleep", "env", "sort", "setsid", "yes", "head"):
        if not (folder / name).exists():
            (folder / name).symlink_to(f"/usr/bin/{name}")
    return folder


def gone(mark: str) -> bool:
    """Whether no process with *mark* in its command line is left."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if mark.encode() in (folder / "cmdline").read_bytes():
                    return False
            except OSError:
                continue
    return True


# --- what a command gives back ----------------------------------------------------------------------------------------


@needs_bwrap
def test_a_command_gives_its_exit_code_and_both_outputs(box):
    outcome = sh(box, "echo out; echo err >&2; exit 7")
    assert (outcome.content, outcome.is_error, outcome.changed) == ("Exit code 7\nout\nerr", False, True)
    assert sh(box, "true").content == "Exit code 0\n(no output)"


@needs_bwrap
def test_a_command_that_a_signal_ended_says_so_as_a_shell_does(box, repo, tmp_path):
    for each in (box, alone(repo, tmp_path)):
        assert sh(each, "kill -9 $$").content.startswith("Exit code 137\n")


@needs_bwrap
def test_a_command_works_in_the_repository_and_what_it_writes_stays(box, repo):
    outcome = sh(box, "pwd; cat src/app.py; echo X = 2 > src/app.py; mkdir new && echo a > new/a")
    assert outcome.content == f"Exit code 0\n{repo}\nX = 1"
    assert (repo / "src/app.py").read_text() == "X = 2\n"
    assert (repo / "new/a").read_text() == "a\n"


@needs_bwrap
def test_a_test_suite_can_be_run(box):
    outcome = sh(box, f"{sys.executable} -c 'import unittest, json, ssl; print(\"fine\")'")
    if not sys.executable.startswith("/usr") and "not found" in outcome.content:
        outcome = sh(box, "/usr/bin/env sh -c 'echo fine'")
    assert outcome.content == "Exit code 0\nfine"


@needs_bwrap
def test_long_output_keeps_its_beginning_and_its_end(box):
    outcome = sh(box, "seq 1 100000")
    assert outcome.content.startswith("Exit code 0\n1\n2\n3\n")
    assert outcome.content.endswith("\n99999\n100000")
    assert "bytes are left out here" in outcome.content
    assert len(outcome.content) < 21_000


@needs_bwrap
def test_what_is_told_is_text_whatever_is_printed(box):
    outcome = sh(box, r"printf '\033[31mred\033[0m\r50%%\r\n\033]0;title\007\000\377done\n'")
    assert outcome.content == "Exit code 0\nred\n50%\n\ufffddone"


@pytest.mark.parametrize("command", ["", "  \n", "a\0b", "x" * 100_001])
def test_what_is_no_command_is_refused(repo, tmp_path, command):
    outcome = sh(alone(repo, tmp_path), command)
    assert outcome.is_error
    assert "A command has 1 to" in outcome.content


# --- what a command cannot do -----------------------------------------------------------------------------------------


@needs_bwrap
@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/config", "echo x > .git/hooks/pre-commit", "mv .git aside", "rm -rf .git/refs", "git config a.b c",
        "cat .env", "cat config/.env.local", "cp .env leak && cat leak", "ln .env leak && cat leak", "mv .env leak", "rm .env",
        "test -w /usr", "test -w /etc", "test -w /", "test -w /bin", "test -w /proc/sys/kernel/core_pattern",
        "find /proc/sys -writable | grep .", "test -w /proc/sysrq-trigger", "mkdir /x", "echo x > ../out.txt && cat ../repo/nothing", "test -s ../.agents/ledger",
        "test -s $HOME/.netrc", "ls /proc/{pid}", "kill -0 {pid}", "unshare -Ur true", "unshare -Urm true", "mount -t tmpfs x /mnt",
        "umount .git", "mount -o remount,rw,bind .git", "chroot / true",
    ],
)  # fmt: skip
def test_what_is_not_its_own_is_out_of_reach(box, repo, command, tmp_path):
    """T147: each of these fails, and nothing in the world has changed.

    What belongs to the whole machine is only asked about, never tried: were the sandbox broken, a test must not be worse.
    """
    before = {p: p.read_bytes() for p in (repo / ".git").rglob("*") if p.is_file()}
    outcome = sh(box, command.replace("{pid}", str(os.getpid())))
    assert not outcome.content.startswith("Exit code 0"), outcome.content
    assert "sesame" not in outcome.content
    assert {p: p.read_bytes() for p in (repo / ".git").rglob("*") if p.is_file()} == before
    assert (repo / ".env").read_text() == (repo / "config/.env.local").read_text() == "TOKEN=sesame\n"
    assert not (tmp_path / "out.txt").exists()


@needs_bwrap
def test_a_secret_stays_closed_when_its_folder_is_renamed(box, repo):
    """T151: what is covered is looked up anew for every command."""
    assert "sesame" not in sh(box, "mv config other; cat other/.env.local").content
    assert (repo / "other/.env.local").read_text() == "TOKEN=sesame\n"
    assert "sesame" not in sh(box, "cat other/.env.local config/.env.local").content
    assert sh(box, "cat .env.test").content == "Exit code 0\nMODE=test"


@needs_bwrap
def test_git_can_be_asked_but_not_told(box):
    """What is read-only is readable."""
    assert "first" in sh(box, "git log --oneline").content
    assert "src/app.py" in sh(box, "echo y >> src/app.py; git diff --stat").content
    assert not sh(box, "git commit --allow-empty -m x").content.startswith("Exit code 0")


@needs_bwrap
def test_a_repository_made_deeper_down_can_be_removed_again(box, repo):
    assert sh(box, "git init -q sub").content.startswith("Exit code 0")
    assert sh(box, "rm -rf sub").content == "Exit code 0\n(no output)"
    assert not (repo / "sub").exists()


@needs_bwrap
def test_a_command_knows_nothing_of_the_environment(repo, bwrap):
    """T151: PATH, HOME and LANG are all there is; HOME is empty, private, and forgotten."""
    cell = cell_of(repo, AWS_SECRET="sesame", OLLAMA_HOST="http://127.0.0.1:9", TMPDIR="/x")
    box = Toolbox(repo, "fix", cell)
    names = {line.partition("=")[0] for line in sh(box, "env").content.splitlines()[1:]}
    assert names <= {"PATH", "HOME", "LANG", "PWD", "SHLVL", "_", "OLDPWD"}
    assert sh(box, "ls -A $HOME /tmp | grep -v : ; echo x > $HOME/a && echo y > /tmp/b").content.startswith(
        "Exit code 0"
    )
    assert "No such file" in sh(box, "cat $HOME/a").content
    assert not (Path(os.environ["HOME"]) / "a").exists()


@needs_bwrap
def test_a_command_has_no_network(box):
    """T147: a server on this machine's loopback is out of reach, and so is the abstract socket name space."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as hidden:
        hidden.bind(b"\0agent-box-test-" + str(os.getpid()).encode())
        hidden.listen()
        port = server.getsockname()[1]
        tried = sh(box, f"exec 2>&1; bash -c ': < /dev/tcp/127.0.0.1/{port}'; grep -c agent-box-test /proc/net/unix")
        assert "Connection refused" in tried.content or "not found" in tried.content
        assert tried.content.splitlines()[-1] == "0"


@needs_bwrap
def test_what_a_command_may_use_up_is_limited(box):
    shown = sh(box, "ulimit -c; ulimit -f; ulimit -d; ulimit -n").content.split()[3:]
    assert shown == ["0", "2097152", "4194304", "4096"]
    raised = sh(box, "ulimit -n 4097 && echo raised").content
    # Root keeps nothing in there that could raise a hard limit.
    assert "raised" not in raised.split()


# --- the time ---------------------------------------------------------------------------------------------------------

HIDING = [
    "sleep 30 # {mark}",
    "sh -c 'sleep 30; : {mark}' & sh -c 'sleep 31; : {mark}' & wait",
    "setsid sh -c 'sleep 30; : {mark}'",
    "(setsid sh -c '(sleep 30; : {mark}) & sleep 30; : {mark}' &) ; sleep 30",
    "trap '' TERM INT HUP; sh -c 'trap \"\" TERM; sleep 30; : {mark}'",
    "exec >/dev/null 2>&1 </dev/null; sh -c 'sleep 30; : {mark}'",
]


@needs_bwrap
@pytest.mark.parametrize("command", HIDING)
def test_a_command_over_its_time_is_ended_with_all_it_started(box, command, mark):
    """T158: timeout 0.5 s, and the children are gone, in whatever session or group they hid."""
    assert_ended(box, command, mark)


@pytest.mark.parametrize("command", HIDING)
def test_it_is_the_same_without_a_process_namespace(repo, tmp_path, command, mark):
    """T158: orphans come to the agent, which ends them."""
    assert_ended(alone(repo, tmp_path), command, mark)


def assert_ended(box, command, mark):
    started = time.monotonic()
    outcome = sh(box, command.replace("{mark}", mark), timeout=0.5)
    passed = time.monotonic() - started
    assert outcome.is_error
    assert outcome.content.startswith("The command timed out after 0.5 s.")
    # 1.5 s on a quiet machine; far from the 30 s of the command on any.
    assert passed < 10
    assert gone(mark)


@pytest.mark.parametrize(
    "hidden",
    ["sh -c 'sleep 30; : {mark}' &", "setsid sh -c 'sleep 30; : {mark}' &", "(setsid sh -c 'sleep 30; : {mark}' &) &"],
)
def test_what_runs_on_in_the_background_ends_with_its_command(repo, tmp_path, hidden, mark):
    """T158: it holds the output open, and nobody waits for it."""
    started = time.monotonic()
    outcome = sh(alone(repo, tmp_path), f"{hidden.replace('{mark}', mark)} echo done", timeout=25)
    assert outcome.content == "Exit code 0\ndone"
    assert time.monotonic() - started < 20
    assert gone(mark)


def test_a_program_run_wild_is_ended(repo, tmp_path):
    outcome = sh(alone(repo, tmp_path), "yes", timeout=DEADLINE)
    assert outcome.is_error
    assert "printed more than" in outcome.content or "timed out" in outcome.content
    assert len(outcome.content) < 21_000


@pytest.mark.parametrize(("asked", "meant"), [(0, "0 s"), (-1, "-1 s"), ("nan", "nan"), (1e9, "1e+09")])
def test_a_time_that_makes_no_sense_is_put_right_or_refused(repo, tmp_path, asked, meant):
    outcome = sh(alone(repo, tmp_path), "echo fine", timeout=asked)
    assert meant not in outcome.content
    assert "fine" in outcome.content or "must be a number" in outcome.content


def test_a_long_command_gives_signs_of_life(tmp_path):
    beats = []
    ended = children.run(["/bin/sh", "-c", "sleep 0.6"], cwd=tmp_path, env={}, timeout=20, keep=10, beat=beats.append, every=0.1)  # fmt: skip
    assert ended.code == 0
    assert beats
    assert beats == sorted(beats)


def test_a_program_that_cannot_be_started_is_an_outcome(repo):
    missing = Cell(
        repo=repo, hidden=repo.parent / ".agents", bwrap="/nonexistent/bwrap", surroundings="none", env={"HOME": "/tmp"}
    )
    outcome = sh(Toolbox(repo, "fix", missing), "true")
    assert (outcome.is_error, outcome.content) == (True, "Shell failed: No such file or directory.")


def test_other_children_of_the_agent_are_left_alone(tmp_path):
    with subprocess.Popen(["sleep", "30"]) as other:
        assert children.run(["/bin/sh", "-c", "true"], cwd=tmp_path, env={}, timeout=20, keep=10).code == 0
        assert other.poll() is None
        other.kill()


# --- when it is offered -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("surroundings", "there"), [("full", True), ("partial", True), ("none", False)])
def test_without_bubblewrap_the_surroundings_decide(repo, tmp_path, surroundings, there):
    """T147: where nothing confines a command there is no tool to run one."""
    remove_secrets(repo)
    cell = cell_of(repo, surroundings, PATH=str(no_bwrap(tmp_path)))
    assert (cell is not None) == there
    assert ("Shell" in Toolbox(repo, "fix", cell).names) == there
    if not there:
        assert "There is no tool 'Shell'" in sh(Toolbox(repo, "fix", cell), "true").content


@pytest.mark.parametrize("surroundings", ["full", "partial"])
def test_surroundings_that_leave_a_secret_open_are_not_enough(repo, tmp_path, surroundings):
    """T151: without bubblewrap there is nothing to cover it with, so there is no Shell."""
    path = str(no_bwrap(tmp_path))
    assert cell_of(repo, surroundings, PATH=path) is None
    (repo / ".env").unlink()
    assert cell_of(repo, surroundings, PATH=path) is None
    (repo / "config/.env.local").unlink()
    assert cell_of(repo, surroundings, PATH=path) is not None


@pytest.mark.parametrize("body", ["exit 0", "exit 1", 'shift $(($# - 5)); exec "$@"', "sleep 0.1; kill -9 $$"])
def test_a_bubblewrap_that_does_not_confine_is_not_believed(repo, tmp_path, body):
    """T147: judged by its behaviour, not by its name; a liar that runs the command unconfined is found out."""
    folder = no_bwrap(tmp_path)
    (folder / "bwrap").write_text(f"#!/bin/sh\n{body}\n")
    (folder / "bwrap").chmod(0o755)
    (tmp_path / "home").mkdir(exist_ok=True)
    assert (cell_of(repo, PATH=str(folder)) is None) == (body != "exit 0")


def test_a_program_from_the_repository_is_never_the_sandbox(repo, tmp_path):
    """T147: neither by an absolute entry of PATH, nor by a relative one, nor through a link (P27)."""
    (repo / "bin").mkdir()
    (repo / "bin/bwrap").write_text("#!/bin/sh\nexit 0\n")
    (repo / "bin/bwrap").chmod(0o755)
    (tmp_path / "link").symlink_to(repo / "bin")
    folder = no_bwrap(tmp_path)
    (folder / "bwrap").symlink_to(repo / "bin/bwrap")
    path = f"{repo}/bin:bin:.:{tmp_path}/link:{folder}"
    assert cell_of(repo, PATH=path) is None


NESTED = """
import json, os, sys
from pathlib import Path
from hollow.sandbox import offered
from hollow.tools import Toolbox
repo = Path(sys.argv[1])
cell = offered(repo, repo.parent / ".agents/hollow/index", "full", os.environ)
box = Toolbox(repo, "fix", cell)
tell = [cell.bwrap, *(box.call("Shell", {"command": c, "timeout": 20}).content for c in sys.argv[2:])]
print(json.dumps(tell))
"""


@needs_bwrap
@pytest.mark.parametrize("covered", [False, True])
def test_it_works_within_the_supervisors_own_sandbox(repo, tmp_path, covered):
    """T147: nested, also where part of /proc is covered so that no new one can be mounted, as it is for root."""
    outer = ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
             "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *(["--ro-bind", "/proc/sys", "/proc/sys"] if covered else []),
             "--bind", str(tmp_path), str(tmp_path), "--uid", "65534", "--gid", "65534"]  # fmt: skip
    asked = [
        "echo fine > made.txt; cat made.txt", "cat .env; ls -A ../.agents; test -e ../.agents/ledger", "cat /proc/*/environ | grep -a OUTER",
        "cat /proc/[12]/roo[t]/etc/passwd", "find /proc/sys -writable | grep .", "echo x > .git/config",
        "readlink /proc/self >/dev/null && echo a | cat /dev/stdin",
    ]  # fmt: skip
    done = subprocess.run(
        [*outer, "--", sys.executable, "-c", NESTED, str(repo), *asked],
        env={**environment(), "OUTER": "sesame"}, capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    bwrap, made, hidden, environ, roots, settings, config, proc = json.loads(done.stdout)
    assert bwrap
    assert (made, proc) == ("Exit code 0\nfine", "Exit code 0\na")
    for refused in (hidden, environ, settings, config):
        assert not refused.startswith("Exit code 0"), refused
    # Its own first processes may be looked into, those of the agent not.
    assert "sesame" not in done.stdout
    assert not covered or not roots.startswith("Exit code 0")
    assert (repo / "made.txt").read_text() == "fine\n"


def test_git_is_there_as_it_was(repo):
    """The fixture is a whole repository: what the attacks above left alone was worth attacking."""
    assert git(repo, "rev-parse", "HEAD")
    assert (repo / ".git/config").stat().st_size
