"""The command line as its users meet it: bad input, output for people and for programs, the same words on both ways."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from agents import sandbox
from tests.support.cli import LEAN, MAIN, ROOT, agent, environment, git, make_repository


@pytest.fixture
def repo(tmp_path):
    (tmp_path / "home").mkdir(exist_ok=True)
    return make_repository(tmp_path / "repo")


def boxes(repo):
    runs = repo / ".agents" / "runs"
    return sorted(path.name for path in runs.iterdir()) if runs.is_dir() else []


def said(done):
    return done.stderr.decode()


# --- Bad input: one sentence, a hint, the right exit code, no box left behind -------------------------------------------

REFUSED = [
    (["scout", ""], 2, "The task is empty."),
    (["scout", " \n\t"], 2, "The task is empty."),
    (["scout"], 2, "Missing argument 'task'."),
    (["scout", "why", "is", "it"], 2, "more than one word without quotes"),
    (["scout", "x", "--engine", "nope"], 2, "no engine 'nope'"),
    (["scout", "x", "--engine", "command"], 2, "needs a program after --"),
    (["scout", "x", "--engine", "scripted"], 2, "needs one history after --"),
    (["scout", "x", "--", "ls", "-l"], 2, "The engine “hollow” takes no program after --."),
    (["scout", "x", "--timeout", "abc"], 2, "--timeout: 'abc' is not a duration."),
    (["scout", "x", "--max-output", "-3"], 2, "--max-output"),
    (["scout", "x", "--frobnicate"], 2, "No such option"),
    (["show", "nope"], 2, "There is no run 'nope'."),
    (["show", "../../etc"], 2, "cannot be the name of a run"),
    (["show", "latest"], 2, "There is no run"),
    (["logs", "\x1b[2J"], 2, "cannot be the name of a run"),
    (["stop", "a1b2"], 2, "There is no run 'a1b2'."),
    (["resume", "a1b2"], 2, "There is no run 'a1b2'."),
    (["gc"], 2, "Nothing says how long boxes are kept."),
    (["gc", "--keep-for", "soon"], 2, "'soon' is not a duration."),
    (["verify", "nope"], 2, "There is no run 'nope'."),
]


@pytest.mark.parametrize(
    ("words", "code", "sentence"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_request_that_cannot_be_is_one_sentence_a_hint_and_an_exit_code(repo, words, code, sentence):
    done = agent(repo, *words)
    assert done.returncode == code
    first, hint = said(done).splitlines()[-2:]
    assert first.startswith("agent: ")
    assert sentence in first
    assert hint.startswith("  ")
    assert len(hint.strip()) > 3
    assert "Traceback" not in said(done)
    assert "\x1b" not in said(done)
    assert done.stdout == b""
    assert boxes(repo) == []


def test_an_unknown_type_is_a_usage_error(repo):
    """T148: an unknown run type is refused and makes no folder."""
    done = agent(repo, "foo", "x")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "No such command 'foo'." in said(done)
    assert not (repo / ".agents").exists()


def test_outside_a_repository(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    for words in (["scout", "x"], ["status"], ["list"], ["verify"], ["init"]):
        done = agent(outside, *words)
        assert done.returncode == 2, words
        assert "This is not a git repository." in said(done)
    assert list(outside.iterdir()) == []


def test_in_a_bare_repository_and_in_a_git_directory(repo, tmp_path):
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    for folder in (tmp_path / "bare.git", repo / ".git"):
        before = sorted(folder.iterdir())
        for words in (["scout", "x"], ["status"]):
            done = agent(folder, *words, home=tmp_path / "home")
            assert (done.returncode, "bare repository or a git directory" in said(done)) == (2, True)
        assert sorted(folder.iterdir()) == before


def test_in_a_repository_without_a_commit(tmp_path):
    git(tmp_path, "init", "-q", "empty")
    done = agent(tmp_path / "empty", "scout", "x", home=tmp_path)
    assert done.returncode == 2
    assert "This repository has no commit yet." in said(done)
    assert sorted(path.name for path in (tmp_path / "empty").iterdir()) == [".git"]
    assert agent(tmp_path / "empty", "status", home=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"stall_after: 5m\nstal_after: 3s\n", "agent.yaml line 2: 'stal_after' is not a setting."),
        (b"stall_after: soon\n", "agent.yaml line 1: `stall_after`"),
        (b"stall_after: [\n", "agent.yaml"),
        (b"\xff\xfe", "agent.yaml is not UTF-8 text."),
        (None, "agent.yaml cannot be read"),
    ],
)
def test_settings_that_cannot_be_read_name_key_and_line(repo, text, sentence):
    if text is None:
        (repo / "agent.yaml").mkdir()
    else:
        (repo / "agent.yaml").write_bytes(text)
    done = agent(repo, "scout", "x")
    assert done.returncode == 2
    assert sentence in said(done)
    assert boxes(repo) == []


def test_without_git(repo, tmp_path):
    done = agent(repo, "scout", "x", PATH=str(tmp_path / "nothing"))
    assert done.returncode == 4
    assert "git is not installed." in said(done)
    assert "apt install git" in said(done)


def test_in_a_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'cd "$1" && rmdir "$1" && shift && exec "$@"', "sh", str(gone), *MAIN, "scout", "x"],
        env=environment(tmp_path), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 4
    assert b"The current folder is gone." in done.stderr


def _can_mount():
    return (
        os.geteuid() == 0
        and shutil.which("mount")
        and subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0
    )


needs_mount = pytest.mark.skipif(
    not _can_mount(), reason="needs root and mount namespaces to make a full or read-only disk"
)


def in_mount(script, *words, home, cwd):
    """Run the command line in a mount namespace of its own that *script* has prepared."""
    return subprocess.run(
        ["unshare", "-m", "sh", "-ec", f'{script}; cd "$1"; shift; exec "$@"', "sh", str(cwd), *MAIN, *words],
        env=environment(home), capture_output=True, check=False, timeout=90,
    )  # fmt: skip


@needs_mount
def test_on_a_read_only_disk(repo, tmp_path):
    script = f'mount --bind "{repo}" "{repo}"; mount -o remount,ro,bind "{repo}"'
    done = in_mount(script, "scout", "x", home=tmp_path / "home", cwd=repo)
    assert done.returncode == 4
    assert "Read-only file system" in said(done)
    assert "Traceback" not in said(done)
    assert not (repo / ".agents").exists()


@needs_mount
def test_on_a_full_disk_nothing_is_started(repo, tmp_path):
    """C16: a disk that is nearly full refuses the run before there is a box."""
    script = f'mkdir -p "{repo}/.agents"; mount -t tmpfs -o size=1m tmpfs "{repo}/.agents"'
    done = in_mount(script, "scout", "x", home=tmp_path / "home", cwd=repo)
    assert done.returncode == 4
    assert "The disk is nearly full." in said(done)


@needs_mount
def test_a_disk_that_an_agent_fills_ends_its_run_with_the_truth(repo, tmp_path):
    """C17: the agent is ended, the state says why, the ledger verifies."""
    script = f'mkdir -p "{repo}/.agents"; mount -t tmpfs -o size=24m tmpfs "{repo}/.agents"'
    scout = [
        *MAIN,
        "scout",
        "x",
        "--engine",
        "command",
        "--",
        "sh",
        "-c",
        "head -c 90000000 /dev/zero | tr '\\0' 'a'; sleep 60",
    ]
    check = " ".join([*MAIN, "status", "--json"])
    verify = " ".join([*MAIN, "verify"])
    done = subprocess.run(
        ["unshare", "-m", "sh", "-ec", f'{script}; cd "$1"; shift; "$@" >/dev/null || echo "code $?"; {check}; {verify}', "sh",
         str(repo), *scout],
        # With a reserve the run would be ended before the disk is full.
        env=environment(tmp_path / "home", AGENT_BOX_MIN_FREE="1KiB"), capture_output=True, check=False, timeout=90,
    )  # fmt: skip
    out = done.stdout.decode()
    assert out.startswith("code 4\n")
    assert '"kind": "enospc"' in out
    assert "are what was written" in out


# --- The verbs ----------------------------------------------------------------------------------------------------------


def test_a_program_as_an_agent_from_request_to_dashboard(repo):
    """T120: as far as a read-only run goes, every file of the box is there and `latest` leads to it."""
    done = agent(repo, "scout", "say hello | <b>", "--engine", "command", "--", "sh", "-c", "echo hello; cat")
    assert done.returncode == 0, said(done)
    assert done.stdout.decode() == "hello\nsay hello | <b>\n\n"
    (name,) = boxes(repo)
    box = repo / ".agents" / "runs" / name
    assert {"meta.yaml", "state.json", "report.md", "raw/stream.jsonl", "raw/stderr.log", "raw/launch.json"} <= {
        str(path.relative_to(box)) for path in box.rglob("*")
    }
    assert (repo / ".agents" / "latest").resolve() == box
    assert "| DONE |" in (repo / ".agents" / "INDEX.md").read_text()
    assert re.search(r"DONE [0-9a-f]{4,} in ", said(done))


def test_nothing_of_a_run_is_seen_by_git(repo):
    """T121: `git status` is empty after any run."""
    assert agent(repo, "scout", "where is the total?").returncode == 0
    assert agent(repo, "scout", "x", "--engine", "command", "--", "false").returncode == 3
    assert git(repo, "status", "--porcelain") == ""


def test_a_scout_without_a_model_answers_and_says_that_no_model_was_used(repo):
    done = agent(repo, "scout", "how is the total of all prices summed?")
    assert done.returncode == 0, said(done)
    assert "`shop.py:" in done.stdout.decode()
    assert "No model was used" in done.stdout.decode()
    assert "mind reflex: no Ollama answers" in said(done)
    meta = json.loads(agent(repo, "show", "--json").stdout)["meta"]
    assert (meta["engine"], meta["agent"], meta["mind"], meta["model"]) == ("hollow", "cedar", "reflex", None)


def test_a_plan_writes_plan_md(repo):
    done = agent(repo, "plan", "add a discount to the total")
    assert done.returncode == 0, said(done)
    box = (repo / ".agents" / "latest").resolve()
    assert (box / "plan.md").read_bytes() == (box / "report.md").read_bytes()
    assert "shop.py" in (box / "plan.md").read_text()


@pytest.mark.parametrize("verb", ["review", "benchmark"])
def test_the_other_read_only_runs(repo, verb):
    done = agent(repo, verb, "the last commit")
    assert done.returncode == 0, said(done)
    assert agent(repo, "show", "latest").stdout.decode().startswith("DONE")


def test_json_is_the_only_thing_on_standard_output(repo):
    done = agent(repo, "scout", "x", "--json", "--engine", "command", "--", "sh", "-c", "echo noise; exit 7")
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["status"], facts["failure"]["kind"], facts["exit_code"]) == (
        3,
        "CRASHED",
        "tool_error",
        7,
    )
    for verb in ("status", "list"):
        (row,) = json.loads(agent(repo, verb, "--json").stdout)
        assert (row["run"], row["status"]) == (facts["run"], "CRASHED")


def test_a_dry_run_touches_nothing_and_tells_all(repo):
    done = agent(repo, "scout", "x", "--dry-run", "--json", "--engine", "command", "--", "touch", "made")
    shown = json.loads(done.stdout)
    assert shown["argv"] == ["touch", "made"]
    assert shown["meta"]["tools_allowlist"] == ["Grep", "Ls", "ReadFile", "cat"]
    assert "HOME" in shown["environment"]
    assert sorted(path.name for path in repo.iterdir()) == [".git", "README.md", "shop.py"]


def test_a_task_from_standard_input_and_one_that_looks_like_an_option(repo):
    done = agent(repo, "scout", "-", "--engine", "command", "--", "cat", stdin=b"from a pipe \xff\n")
    assert done.stdout.decode() == "from a pipe �\n\n"
    done = agent(repo, "scout", "--engine", "command", "--", "--help", "cat")
    assert done.stdout.decode() == "--help\n\n"


@pytest.mark.parametrize(
    "task",
    [
        "$(touch x)",
        "`touch x`",
        "a: b\n- c: [",
        "---\nkey: *x",
        "'; touch x; '",
        "a\x1b[2Jb\u202e",
        "é" * 400,
        "| a | b |",
    ],
)
def test_a_task_reaches_no_shell_no_structure_no_file_name_and_no_terminal(repo, task):
    done = agent(repo, "scout", "--engine", "command", "--", task, "cat")
    assert done.returncode == 0
    (name,) = boxes(repo)
    assert re.fullmatch(r"[a-z0-9_-]+", name)
    assert json.loads(agent(repo, "show", "--json").stdout)["meta"]["task"] == task
    for shown in (done.stdout, done.stderr, agent(repo, "list").stdout, agent(repo, "show").stdout):
        assert not set(shown.decode()) & {"\x1b", "\u202e"}
    table = (repo / ".agents" / "INDEX.md").read_text().splitlines()
    assert sum(line.startswith("|") for line in table) == 3
    assert sorted(path.name for path in repo.iterdir()) == [".agents", ".claude", ".git", "README.md", "shop.py"]


def test_secrets_are_redacted_in_what_people_read_and_kept_in_the_evidence(repo):
    secret = "ghp_" + "a1B2" * 9
    done = agent(repo, "scout", f"use {secret}", "--engine", "command", "--", "echo", f"token {secret}")
    box = (repo / ".agents" / "latest").resolve()
    for text in (done.stdout.decode(), (box / "report.md").read_text(), (repo / ".agents" / "INDEX.md").read_text(),
                 agent(repo, "logs").stdout.decode(), agent(repo, "show").stdout.decode()):  # fmt: skip
        assert secret not in text
        assert "redacted" in text
    assert secret.encode() in (box / "raw" / "stream.jsonl").read_bytes()
    assert agent(repo, "logs", "--raw").stdout == (box / "raw" / "stream.jsonl").read_bytes()


def test_the_lean_way_and_the_full_one_say_the_same(repo):
    agent(repo, "scout", "one", "--engine", "command", "--", "true")
    agent(repo, "scout", "two", "--engine", "command", "--", "false")
    code = "import sys; sys.path.insert(0, {!r}); from agents.cli import run; sys.exit(run([{!r}]))"
    for verb in ("status", "list"):
        lean = subprocess.run(
            [*LEAN, verb], cwd=repo, env=environment(repo.parent / "home"), capture_output=True, text=True, check=True
        )
        full = subprocess.run([sys.executable, "-c", code.format(str(ROOT), verb)], cwd=repo, env=environment(repo.parent / "home"),
                              capture_output=True, text=True, check=True)  # fmt: skip
        ages = re.compile(r"\d+ [smh]\b")
        assert ages.sub("", lean.stdout) == ages.sub("", full.stdout), verb


def test_a_detached_run_is_seen_followed_and_stopped_from_elsewhere(repo):
    done = agent(repo, "scout", "x", "-d", "--engine", "command", "--", "sh", "-c", "echo started; sleep 300")
    assert done.returncode == 0, said(done)
    name = done.stdout.decode().strip()
    assert boxes(repo) == [name]
    deadline = time.monotonic() + 30
    while b"started" not in agent(repo, "logs", name).stdout and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "1 running" in agent(repo, "status").stdout.decode()
    assert agent(repo, "resume", name).returncode == 2
    stopped = agent(repo, "stop", name[-4:] if "__" in name[:-4] else "latest", "--json")
    assert json.loads(stopped.stdout)["status"] == "STOPPED"
    assert "0 running" in agent(repo, "status").stdout.decode()
    assert agent(repo, "stop").returncode == 2


def test_a_refused_detached_run_passes_on_words_and_code(repo):
    done = agent(repo, "scout", "x", "-d", "--engine", "nope")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "no engine 'nope'" in said(done)


def test_gc_removes_what_is_finished_and_leaves_a_ledger_that_holds(repo):
    for task in ("one", "two", "three"):
        agent(repo, "scout", task, "--engine", "command", "--", "true" if task != "two" else "false")
    crashed = [name for name in boxes(repo) if "two" in name]
    gone = json.loads(agent(repo, "gc", "--keep-runs", "0", "--json").stdout)["removed"]
    assert (len(gone), boxes(repo)) == (2, crashed)
    assert agent(repo, "verify").returncode == 0
    assert "two" in agent(repo, "list").stdout.decode()
    assert "one" not in agent(repo, "list").stdout.decode()


@pytest.mark.parametrize("change", ["true", "echo x > made"])
def test_gc_removes_the_airlocks_of_finished_runs_and_no_work(repo, change):
    """G39: the box stays without a limit, and what waits for a human keeps all it has."""
    agent(repo, "fix", "one", "--engine", "command", "--", "sh", "-c", change)
    waits = change != "true"
    name = boxes(repo)[0]
    tree = repo / "agent_box" / "trees" / name
    dry = json.loads(agent(repo, "gc", "--dry-run", "--keep-runs", "9", "--json").stdout)
    assert (dry, tree.exists()) == ({"removed": [], "airlocks": [] if waits else [name], "dry_run": True}, True)
    done = agent(repo, "gc", "--keep-runs", "9")
    assert done.stdout.decode() == f"0 boxes and {0 if waits else 1} airlocks removed.\n"
    assert (tree.exists(), boxes(repo)) == (waits, [name])
    assert (agent(repo, "verify").returncode, git(repo, "worktree", "list").count("\n")) == (0, 2 if waits else 1)


def test_verify_names_the_line_and_exits_with_5_until_it_is_accepted(repo):
    agent(repo, "scout", "x", "--engine", "command", "--", "true")
    ledger = repo / ".agents" / "INDEX.jsonl"
    written = ledger.read_bytes()
    ledger.write_bytes(written.replace(b'"type":"scout"', b'"type":"scoot"', 1))
    done = agent(repo, "verify")
    assert done.returncode == 5
    assert done.stdout.decode() == "tampered: Line 1 is not what was written.\n"
    ledger.write_bytes(written)
    assert agent(repo, "verify").returncode == 0
    ledger.write_bytes(written.splitlines(keepends=True)[0])
    assert "truncated: 1 entries are gone from the end" in agent(repo, "verify").stdout.decode()
    ledger.write_bytes(written)
    (repo / ".agents" / "latest" / "report.md").write_text("nicer\n")
    assert "report.md is not what was sealed" in agent(repo, "verify").stdout.decode()


def test_init_writes_settings_once_and_keeps_what_is_there(repo):
    assert agent(repo, "init").returncode == 0
    text = (repo / "agent.yaml").read_text()
    assert "# stall_after: 5m" in text
    (repo / "agent.yaml").write_text("timeout: 5m\n")
    assert "agent.yaml is there." in agent(repo, "init").stdout.decode()
    assert (repo / "agent.yaml").read_text() == "timeout: 5m\n"
    assert json.loads(agent(repo, "scout", "x", "--dry-run", "--json").stdout)["limits"]["timeout"] == 300


def test_doctor_says_what_to_type_for_each_miss(repo, tmp_path):
    done = agent(repo, "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert {"Python", "git", "Ollama", "Claude Code", "sandbox", "disk", "clock"} <= set(checks)
    assert "ollama serve" in checks["Ollama"]["remedy"]
    assert all(check["remedy"] for check in checks.values() if check["state"] != "ok" and check["name"] != "sandbox")
    # One line of what the sandbox itself says, tried anew on this machine.
    offer = sandbox.offered({"PATH": os.environ["PATH"]}, None)
    told = checks["sandbox"]
    assert told["found"].startswith(f"isolation: {offer.level}")
    assert (told["state"] == "ok") == (offer.level == "full")
    assert told["remedy"] == offer.hint
    elsewhere = agent(tmp_path, "doctor", home=tmp_path / "home")
    assert "This is not a git repository." in said(elsewhere)
    assert "git " in elsewhere.stdout.decode()


def test_the_demo_needs_nothing_shows_every_artefact_and_leaves_nothing(tmp_path):
    started = time.monotonic()
    done = agent(tmp_path, "demo", home=tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == 0, said(done)
    assert time.monotonic() - started < 30
    for artefact in ("meta.yaml", "raw/stream.jsonl", "report.md", "INDEX.md", "INDEX.jsonl", "DONE"):
        assert artefact in done.stdout.decode()
    assert [path for path in tmp_path.iterdir() if path.name.startswith("agent-box")] == []


def test_a_reader_that_stops_reading_is_no_error(repo):
    agent(repo, "scout", "x", "--engine", "command", "--", "true")
    words = " ".join(MAIN)
    done = subprocess.run(["sh", "-c", f"{words} list --json | head -c 1; {words} show | true"], cwd=repo,
                          env=environment(repo.parent / "home"), capture_output=True, check=True)  # fmt: skip
    assert done.stderr == b""


@pytest.mark.parametrize("verb", ["scout", "plan", "review", "benchmark", "resume", "status", "list", "show", "logs", "stop",
                                  "gc", "verify", "doctor", "init", "demo", "fix", "diff", "merge", "reject", "undo", "replay"])  # fmt: skip
def test_every_verb_has_help_with_an_example(verb, tmp_path):
    done = agent(tmp_path, verb, "--help", home=tmp_path)
    assert done.returncode == 0
    assert "Example: ./agent" in done.stdout.decode()
