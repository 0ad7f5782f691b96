from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hollow import prompts
from hollow.mind import Assignment
from hollow.resuming import earlier
from hollow.sandbox import Cell
from tests.support.cycles import argv, cycle, environment
from tests.support.needs import needs_bwrap
from tests.support.ollama_server import OllamaServer, Turn
from tests.support.repos import git, make_repo, write

APP = "def total(prices):\n    return sum(prices) - 1\n"
CHECK = "from app import total\nassert total([1, 2]) == 3, total([1, 2])\nprint('all good')\n"
FIX = ("--run-type", "fix", "--agent", "vault")
RUN_CHECK = {"command": "python3 -B -c \"exec(open('check.py').read())\"", "timeout": 60}
GOLDEN = Path(__file__).parent / "golden"

READ = Turn(calls=[("ReadFile", {"path": "app.py"})], text="I look.", prompt_tokens=100, output_tokens=11)
TEST = Turn(calls=[("Shell", RUN_CHECK)], prompt_tokens=200, output_tokens=12)
EDIT = Turn(
    calls=[("EditFile", {"path": "app.py", "old_text": "sum(prices) - 1", "new_text": "sum(prices)"})],
    prompt_tokens=300,
    output_tokens=13,
)
REPORT = "The sum was one too small (app.py:2).\n\n## Change\n\n- app.py:2"


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "repo", {"app.py": APP, "check.py": CHECK})


def fix(repo, *turns, options=(), task=b"total is wrong", knows_tools=True):
    """Let the model of *turns* fix *repo*, in a process of its own; returns how it went and what the server was asked."""
    with OllamaServer(turns=turns, knows_tools=knows_tools) as server:
        # A system Python only: the stand-in project needs no more, and every machine has it in the same place.
        done = cycle(repo, *FIX, *options, mind="ollama", task=task, OLLAMA_HOST=server.url, PATH="/usr/bin:/bin")
    return done, server.chats


def spoken(done):
    """Messages of the assistant, as the supervisor's live budget reads them."""
    return [event["message"] for event in done.events if event["type"] == "assistant"]


# --- the loop that ends in a change -----------------------------------------------------------------------------------


@needs_bwrap
def test_the_model_reads_tests_edits_tests_again_and_reports(repo):
    """T127: what it leaves in the folder is the change and nothing else."""
    done, chats = fix(repo, READ, TEST, EDIT, TEST, REPORT)
    assert (done.code, done.stderr, done.result["result"]) == (0, "", REPORT)
    failed, passed = [r["content"] for r in done.tool_results if r["content"].startswith("Exit code")]
    assert failed.startswith("Exit code 1\n")
    assert failed.endswith("AssertionError: 2")
    assert passed == "Exit code 0\nall good"
    assert [r["is_error"] for r in done.tool_results] == [False] * 4
    assert git(repo, "status", "--porcelain") == "M app.py"
    assert (repo / "app.py").read_text() == APP.replace(" - 1", "")
    assert done.events[0]["tools"] == ["Grep", "Ls", "ReadFile", "GitLog", "GitDiff", "EditFile", "WriteFile", "Shell"]
    assert [t["function"]["name"] for t in chats[0]["tools"]] == done.events[0]["tools"]
    assert chats[-1]["messages"][-1] == {"role": "tool", "tool_name": "Shell", "content": "Exit code 0\nall good"}


def test_every_message_carries_its_id_and_usage_and_the_result_their_sum(repo):
    """T133: a live budget counts each message once; turns are generations."""
    done, _ = fix(repo, READ, EDIT, REPORT)
    said = spoken(done)
    usage = {message["id"]: message["usage"] for message in said}
    # The remark and the call of the first generation are one message.
    assert [m["id"] for m in said].index(said[2]["id"]) == 2
    assert said[0]["id"] == said[1]["id"]
    assert [u["input_tokens"] for u in usage.values()] == [100, 300, 100]
    assert done.result["num_turns"] == len(usage) == 3
    assert done.result["usage"] == {"input_tokens": 500, "output_tokens": 34}


def test_an_edit_that_failed_is_mended_by_its_own_words(repo):
    wrong = Turn(calls=[("EditFile", {"path": "app.py", "old_text": "return sum(price) - 1", "new_text": "x"})])
    right = Turn(
        calls=[
            (
                "EditFile",
                {"path": "app.py", "old_text": "    return sum(prices) - 1", "new_text": "    return sum(prices)"},
            )
        ]
    )
    done, chats = fix(repo, wrong, right, REPORT)
    assert [r["is_error"] for r in done.tool_results] == [True, False]
    assert "     2      return sum(prices) - 1" in chats[1]["messages"][-1]["content"]
    assert (repo / "app.py").read_text() == APP.replace(" - 1", "")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("EditFile", {"path": "app.py"}, "EditFile needs old_text"),
        ("EditFile", "no json", "no JSON object"),
        ("EditFile", {"path": ["a", "b"], "old_text": "a", "new_text": "b"}, "must be text"),
        ("WriteFile", {"path": ".git/hooks/post-commit", "content": "#!/bin/sh"}, "is closed to agents"),
        ("WriteFile", {"path": "../out.txt", "content": "x"}, "leads out"),
        ("WriteFile", {"path": "package.json", "content": {"a": 1}}, "must be text"),
        ("apply_patch", {"patch": "x"}, "There is no tool"),
        ("Bash", {"command": "id"}, "There is no tool"),
    ],
)
def test_what_the_model_gets_wrong_is_told_to_it_and_changes_nothing(repo, name, arguments, said):
    """T159: unknown tools, malformed arguments, closed paths; the loop goes on."""
    bad = {"tool": name, "arguments": arguments}
    turn = Turn(text=json.dumps(bad)) if isinstance(arguments, str) else Turn(calls=[(name, arguments)])
    done, _ = fix(repo, turn, REPORT)
    assert (done.code, done.result["result"]) == (0, REPORT)
    assert [said in r["content"] for r in done.tool_results] == [True]
    assert done.tool_results[0]["is_error"]
    assert git(repo, "status", "--porcelain", "--ignored") == ""


def test_a_model_without_tool_calls_edits_through_text(repo):
    """T159: the protocol in text serves edits as well."""
    call = {"tool": "EditFile", "arguments": {"path": "app.py", "old_text": " - 1", "new_text": ""}}
    done, chats = fix(repo, f"I fix it.\n```json\n{json.dumps(call)}\n```", REPORT, knows_tools=False)
    assert done.code == 0
    assert (repo / "app.py").read_text() == APP.replace(" - 1", "")
    assert (
        "- EditFile(path, old_text, new_text, replace_all=False): Replace a passage"
        in chats[-1]["messages"][0]["content"]
    )


def test_a_call_may_be_made_again_once_something_has_changed(repo):
    """Reading the edited file again is no going in circles; reading it twice in a row is."""
    done, _ = fix(repo, READ, READ, EDIT, READ, EDIT, REPORT)
    said = [("already made" in r["content"], r["is_error"]) for r in done.tool_results]
    assert said == [(False, False), (True, True), (False, False), (False, False), (True, True)]


@pytest.mark.parametrize("last", [Turn(calls=[("Ls", {"path": "."})]), "Half of it is done."])
def test_a_model_that_never_stops_ends_for_its_turns(repo, last):
    """T136: a change that was cut short is no success, with a report or without; the run says `budget` of it."""
    turns = [Turn(calls=[("WriteFile", {"path": f"f{n}.txt", "content": "x"})]) for n in range(3)]
    done, chats = fix(repo, *turns, last, options=("--max-turns", "4"))
    assert (done.code, done.result["subtype"], done.result["is_error"]) == (3, "error_max_turns", True)
    assert (done.result["num_turns"], len(chats)) == (4, 4)
    assert prompts.LAST_TURN in chats[-1]["messages"][-1]["content"]
    assert done.result["result"] == (last if isinstance(last, str) else "The model gave no report within 4 turns.")
    assert (repo / "f2.txt").read_text() == "x"


def test_large_edits_do_not_crowd_the_window(repo):
    """T159: what was written long ago is shortened in the conversation, and stays in the file."""
    turns = [Turn(calls=[("WriteFile", {"path": f"f{n}.txt", "content": "word " * 4000})]) for n in range(4)]
    done, chats = fix(repo, *turns, REPORT, options=("--num-ctx", "16384"))
    assert (done.code, done.result["result"]) == (0, REPORT)
    assert done.facts("context.trimmed")
    assert "[shortened]" in json.dumps(chats[-1])
    assert all((repo / f"f{n}.txt").stat().st_size == 20_000 for n in range(4))


def test_a_server_that_dies_in_the_middle_leaves_what_was_done(repo):
    """T137: the failure is told, the edit stays for whoever resumes."""
    done, _ = fix(repo, EDIT, Turn(status=500, error="out of memory"))
    assert (done.code, done.result["is_error"]) == (3, True)
    assert "out of memory" in done.result["result"]
    assert (repo / "app.py").read_text() == APP.replace(" - 1", "")


# --- commands ---------------------------------------------------------------------------------------------------------


def without_bwrap(tmp_path) -> str:
    """A PATH with git and a shell, and no bubblewrap."""
    (tmp_path / "bin").mkdir()
    for name in ("git", "sh", "echo"):
        (tmp_path / "bin" / name).symlink_to(f"/usr/bin/{name}")
    return str(tmp_path / "bin")


@pytest.mark.parametrize(("surroundings", "there"), [("full", True), ("partial", True), ("none", False), (None, False)])
def test_where_nothing_confines_a_command_there_is_no_shell(repo, tmp_path, surroundings, there):
    """T147: neither in what the stream says, nor for the model, nor by name."""
    options = ("--sandbox", surroundings) if surroundings else ()
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps([{"call": {"name": "Shell", "arguments": {"command": "echo made > made.txt"}}}, {"answer": "done"}])
    )
    done = cycle(repo, *FIX, *options, "--script", str(script), PATH=without_bwrap(tmp_path))
    assert ("Shell" in done.events[0]["tools"]) == there
    assert done.tool_results[0]["is_error"] != there
    assert (repo / "made.txt").exists() == there


@needs_bwrap
def test_a_stopped_cycle_leaves_no_command_behind(repo, tmp_path, mark):
    """T138: SIGTERM while a command runs ends the command too, and there is a result."""
    script = tmp_path / "script.json"
    command = f"(setsid sh -c 'sleep 30; : {mark}' &); sleep 30"
    script.write_text(json.dumps([{"call": {"name": "Shell", "arguments": {"command": command}}}, {"answer": "never"}]))
    words = argv(repo, *FIX, "--script", str(script))
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=repo, env=environment(), text=True
    ) as process:
        process.stdin.write("task")
        process.stdin.close()
        while mark not in (line := process.stdout.readline()):
            assert line
        until(lambda: running(mark) > 1)
        process.send_signal(signal.SIGTERM)
        result = json.loads(process.stdout.read().splitlines()[-1])
        assert process.wait(30) == 128 + signal.SIGTERM
        assert process.stderr.read().startswith("The cycle was stopped by SIGTERM")
    assert (result["type"], result["is_error"]) == ("result", True)
    assert running(mark) == 0


def running(mark) -> int:
    """How many processes carry *mark*."""
    found = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found += mark.encode() in (folder / "cmdline").read_bytes()
            except OSError:
                continue
    return found


def until(met) -> None:
    deadline = time.monotonic() + 30
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- the other minds --------------------------------------------------------------------------------------------------


def test_a_script_plays_edits_with_the_usage_it_tells(repo, tmp_path):
    """T133: demos and tests of the supervisor edit without a model."""
    script = tmp_path / "script.json"
    turns = [
        {"say": "I begin.", "usage": {"input_tokens": 7, "output_tokens": 2}},
        {
            "call": {"name": "EditFile", "arguments": {"path": "app.py", "old_text": " - 1", "new_text": ""}},
            "usage": {"input_tokens": 9, "output_tokens": 3},
        },
        {"call": {"name": "WriteFile", "arguments": {"path": "docs/new.md", "content": "# New\n"}}},
        {"answer": "Done.", "usage": {"input_tokens": 16, "output_tokens": 5}},
    ]
    script.write_text(json.dumps(turns))
    done = cycle(repo, *FIX, "--script", str(script))
    assert (done.code, done.result["result"]) == (0, "Done.")
    assert git(repo, "status", "--porcelain", "-uall").splitlines() == ["M app.py", "?? docs/new.md"]
    assert [message["usage"]["input_tokens"] for message in spoken(done)] == [7, 9, 9]
    assert len({message["id"] for message in spoken(done)}) == 2


@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_without_a_model_a_fix_is_a_plan_that_says_so_and_touches_nothing(repo, resume):
    """T136: done, with a plan that cites files, and no pretence; the patch will be empty."""
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in repo.rglob("*") if path.is_file()}
    done = cycle(repo, *FIX, "--sandbox", "full", *resume, mind="reflex", task=b"total of prices is one too small")
    assert (done.code, done.result["subtype"], done.result["is_error"]) == (0, "success", False)
    told = done.result["result"]
    first = told.split("\n\n")[0]
    for words in ("nothing was changed", "ollama serve", "ollama pull ", "--engine command -- "):
        assert words in first
    assert "## Steps" in told
    assert "`app.py:1`" in told
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in repo.rglob("*") if path.is_file()} == before
    # It runs nothing, so it is not said to be able to.
    assert "Shell" not in done.events[0]["tools"]


# --- resuming ---------------------------------------------------------------------------------------------------------


def test_a_resumed_run_is_told_what_it_left(repo):
    """T143: the same session id, the operator's words, and the state of the folder in the first message."""
    write(
        repo,
        {
            "app.py": APP.replace(" - 1", "") + "# more\n",
            "new.py": "x\n",
            "data.bin": b"\0\1",
            ".env": "TOKEN=sesame\n",
        },
    )
    (repo / "check.py").unlink()
    done, chats = fix(repo, REPORT, options=("--resume",), task=b"total is wrong\n\nOperator: mind the tests")
    first = chats[0]["messages"][1]["content"]
    assert done.events[0]["session_id"] == "00000000-0000-4000-8000-00000000000a"
    assert first.startswith("You worked on this task before")
    for row in ("- app.py (+2 -1)", "- check.py (+0 -3)", "- data.bin (new)", "- new.py (new)"):
        assert f"\n{row}\n" in first
    assert first.endswith("The task:\ntotal is wrong\n\nOperator: mind the tests")
    assert ".env" not in first


def test_a_first_start_is_told_nothing_of_the_kind(repo):
    write(repo, {"new.py": "x\n"})
    _, chats = fix(repo, REPORT)
    assert chats[0]["messages"][1]["content"] == "total is wrong"


def test_what_was_left_is_told_whatever_it_looks_like(repo, tmp_path):
    """T159: nothing, odd names, very many, no repository."""
    assert earlier(repo) == "Nothing has been changed yet."
    odd = os.fsdecode(b"a\nb\xff.txt")
    write(repo, {odd: "x", "tab\there": b"x"})
    assert earlier(repo).splitlines()[1:] == ["- a?b?.txt (new)", "- tab\there (new)"]
    write(repo, {f"many/{n:03}.txt": "x" for n in range(100)})
    assert earlier(repo).splitlines()[-1] == "… and 42 more files"
    assert len(earlier(repo).splitlines()) == 62
    (tmp_path / "bare").mkdir()
    assert "could not be listed" in earlier(tmp_path / "bare")


def test_nothing_of_the_agents_runs_while_it_is_told_what_it_left(repo, tmp_path):
    """T147: a filter that was planted before the resumption stays unused."""
    git(repo, "config", "filter.evil.clean", f"touch {tmp_path}/ran; cat")
    write(repo, {".gitattributes": "*.py filter=evil\n", "app.py": "x\n"})
    assert "- app.py (+1 -2)" in earlier(repo)
    assert not (tmp_path / "ran").exists()


# --- what it is told --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fix_prompt_with_shell", "fix_prompt_without_shell"])
def test_the_prompt_of_a_fix_reads_as_it_should(name):
    """T132: who it is, the rules, how to work, what the report looks like, and the supervisor's words at the end."""
    cell = (
        Cell(repo=Path("/r"), hidden=Path("/h"), bwrap=None, surroundings="full", env={})
        if name.endswith("with_shell")
        else None
    )
    asked = Assignment(
        task="t",
        run_type="fix",
        agent="vault",
        repo=Path("/r"),
        index=Path("/i"),
        system_prompt="RUN_DIR is /out.",
        cell=cell,
    )
    told = prompts.system_prompt(asked) + "\n"
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(told, "utf-8")
    assert told == golden.read_text("utf-8")
