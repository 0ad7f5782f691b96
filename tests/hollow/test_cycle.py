from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from hollow.mind import Answer
from tests.support.cycles import PROJECT, SESSION, Cycle, argv, cycle, environment
from tests.support.repos import make_repo

ANSWER = [
    {"say": "Looking."},
    {"call": {"name": "Grep", "arguments": {"pattern": "handle"}}},
    {"answer": "# Report\n\nsrc/app.py:1"},
]


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "repo", {"src/app.py": "def handle(): ...\n"})


@pytest.fixture
def script(tmp_path):
    def write(turns) -> str:
        path = tmp_path / "script.json"
        path.write_text(turns if isinstance(turns, str) else json.dumps(turns))
        return str(path)

    return write


def test_a_cycle_says_who_it_is_what_it_does_and_how_it_ends(repo, script):
    """T133: the first event is system/init and carries the session id, as every event does."""
    done = cycle(repo, "--script", script(ANSWER))
    assert (done.code, done.stderr) == (0, "")
    init, chosen, said, called, outcome, result = done.events
    assert {event["session_id"] for event in done.events} == {SESSION}
    assert (init["type"], init["subtype"], init["cwd"], init["mind"]) == ("system", "init", str(repo), "scripted")
    assert init["tools"] == ["Grep", "Ls", "ReadFile", "GitLog"]
    assert init["hollow_version"]
    assert (chosen["kind"], chosen["mind"]) == ("mind.chosen", "scripted")
    assert said["message"]["content"] == [{"type": "text", "text": "Looking."}]
    assert called["message"]["content"][0]["input"] == {"pattern": "handle"}
    assert outcome["message"]["content"][0]["content"] == "src/app.py:1:def handle(): ..."
    assert (result["result"], result["subtype"], result["is_error"]) == ("# Report\n\nsrc/app.py:1", "success", False)


def test_a_review_has_the_diff_too(repo, script):
    done = cycle(repo, "--script", script(ANSWER), "--run-type", "review", "--agent", "cipher")
    assert done.events[0]["tools"][-1] == "GitDiff"


def test_the_task_may_be_large_and_hold_any_byte(repo, script):
    done = cycle(repo, "--script", script(ANSWER), task=b"\xff\x00\xc3" * 400_000)
    assert done.code == 0


@pytest.mark.parametrize("task", [b"", b" \n\t"])
def test_without_a_task_the_request_is_bad(repo, script, task):
    done = cycle(repo, "--script", script(ANSWER), task=task)
    assert done.code == 2
    assert done.result["is_error"]
    assert done.stderr == "There is no task on standard input.\n"


def test_a_task_beyond_all_measure_is_refused(repo, script):
    done = cycle(repo, "--script", script(ANSWER), task=b"x" * (8 * 1024 * 1024 + 1))
    assert done.code == 2
    assert "larger than" in done.result["result"]


def test_a_repository_that_is_not_there_is_a_bad_request(repo, script):
    done = cycle(repo, "--script", script(ANSWER), "--repo", str(repo / "nowhere"))
    assert done.code == 2
    assert "is no folder" in done.result["result"]


@pytest.mark.parametrize(
    "options",
    [("--mind", "oracle"), ("--run-type", "ops"), ("--agent", "eve"), ("--session-id", "7"), ("--max-turns", "0"), ("--num-ctx", "x"), ("--nonsense",),
     ("--system-prompt-file", "/nonexistent/prompt")],
)  # fmt: skip
def test_bad_arguments_end_with_two_and_a_sentence(repo, options):
    done = cycle(repo, *options)
    assert (done.code, done.stdout) == (2, b"")
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ("[", "it is no JSON"),
        ("{}", "no list of turns"),
        ([], "it has no answer"),
        ([7], "turn 1 is no object"),
        ([{"say": "x"}, {"dance": 1}], "turn 2 is not understood"),
        ([{"call": {"name": "Ls", "arguments": 7}}, {"answer": "x"}], "turn 1 is not understood"),
        ([{"answer": ""}], "empty answer"),
        ([{"answer": "no", "subtype": "error_max_turns"}], "no"),
    ],
)
def test_a_mind_that_fails_ends_with_three_and_a_result(repo, script, turns, words):
    done = cycle(repo, "--script", script(turns))
    assert done.code == 3
    assert done.result["is_error"]
    assert words in done.result["result"]
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_script_that_is_missing_is_named(repo):
    assert cycle(repo).code == 2
    done = cycle(repo, "--script", "/nonexistent/script.json")
    assert done.code == 3
    assert "No such file" in done.result["result"]


def stopped(repo, script, number: int) -> Cycle:
    """Send the signal once the cycle waits."""
    command = argv(repo, "--script", script([{"say": "waiting"}, {"wait": 60}, {"answer": "never"}]))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=repo, env=environment()) as process:
        process.stdin.write(b"task")
        process.stdin.close()
        head = b"".join(process.stdout.readline() for _ in range(3))
        process.send_signal(number)
        rest = process.stdout.read()
        return Cycle(process.wait(20), head + rest, process.stderr.read().decode())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_cycle_with_a_result(repo, script, number):
    """T138: a stopped agent says so and leaves with 128 plus the signal."""
    done = stopped(repo, script, number)
    assert done.code == 128 + number
    assert done.result["subtype"] == "error_during_execution"
    assert number.name in done.result["result"]
    assert "Traceback" not in done.stderr


def test_a_signal_while_the_task_is_awaited_ends_the_cycle_too(repo, script):
    """T138: also before there was anything to do."""
    command = argv(repo, "--script", script(ANSWER))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=repo, env=environment()) as process:
        head = process.stdout.readline() + process.stdout.readline()
        process.terminate()
        done = Cycle(process.wait(20), head + process.stdout.read(), process.stderr.read().decode())
    assert done.code == 143
    assert done.result["is_error"]


def test_nobody_listening_is_no_traceback(repo, script):
    command = argv(repo, "--script", script([{"wait": 0.3}, *[{"say": "x" * 100_000}] * 5, {"answer": "x"}]))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=repo, env=environment()) as process:
        process.stdin.write(b"task")
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert process.wait(20) == 4
    assert errors == "Nobody reads the stream any more.\n"


NOISY = """
import os, subprocess, sys, uuid
from pathlib import Path
from hollow import cycle
from hollow.mind import Answer, Assignment

class Noisy:
    name, model = "scripted", None
    def answer(self, assignment, talk):
        print("a library prints")
        os.write(1, b"and writes")
        subprocess.run(["echo", "and its children too"])
        talk.say("clean")
        {ending}

assignment = Assignment(task="", run_type="scout", agent="cedar", repo=Path("."), index=Path("."))
sys.exit(cycle.run(cycle.Order(assignment=assignment, session_id="s", mind=Noisy), sys.stdin.buffer))
"""


def noisy(repo, ending: str) -> Cycle:
    command = [sys.executable, "-c", NOISY.replace("{ending}", ending)]
    done = subprocess.run(command, input=b"task", capture_output=True, cwd=repo, env=environment(), timeout=30)
    return Cycle(done.returncode, done.stdout, done.stderr.decode())


def test_what_a_library_prints_does_not_break_the_stream(repo):
    """T135: stdout holds events only; stray prints go to stderr."""
    done = noisy(repo, "return Answer(text='ok')")
    assert done.code == 0
    assert [e["type"] for e in done.events] == ["system", "system", "assistant", "result"]
    for words in ("a library prints", "and writes", "and its children too"):
        assert words in done.stderr


@pytest.mark.parametrize(
    ("ending", "words"),
    [("1 / 0", "ZeroDivisionError"), ("raise OSError(28, 'No space left on device')", "No space left"), ("raise MemoryError", "MemoryError"),
     ("def f(): f()\n        f()", "RecursionError")],
)  # fmt: skip
def test_a_fault_of_ours_is_a_result_and_exit_code_four(repo, ending, words):
    done = noisy(repo, ending)
    assert done.code == 4
    assert words in done.result["result"]
    assert "Traceback" not in done.stderr


def test_a_signal_never_cuts_a_line_in_two(repo):
    """T135: lines larger than a pipe holds, interrupted in the middle, are written whole all the same."""
    code = NOISY.replace("{ending}", "[talk.say('x' * 3_000_000) for _ in range(50)]; return Answer(text='ok')")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe, cwd=repo, env=environment()
    ) as process:
        process.stdin.write(b"task")
        process.stdin.close()
        head = b"".join(process.stdout.readline() for _ in range(3)) + process.stdout.read1(
            10
        )  # it is inside a line now
        process.terminate()
        time.sleep(0.1)
        done = Cycle(0, head + process.stdout.read(), "")
        assert process.wait(20) == 143
    assert done.result["is_error"]
    assert len(done.events) < 50


def test_starting_loads_no_http_library(repo):
    """A scripted or reflex cycle must not pay 300 ms for a client that it never uses."""
    code = "import sys; from hollow import cli, cycle; from hollow.minds import scripted; print([m for m in ('ollama', 'httpx', 'pydantic', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=PROJECT, env=environment(), check=True)
    assert done.stdout == b"[]\n"


def test_importing_is_silent(tmp_path):
    code = "import hollow.cycle, hollow.cli, hollow.minds.ollama, hollow.minds.loop, hollow.tools"
    here = tmp_path / "here"
    here.mkdir()
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, cwd=here, env=environment())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not list(here.iterdir())


def test_help_and_version_are_for_humans(repo):
    for options, words in ((["--help"], "cycle"), (["cycle", "--help"], "Exit codes"), (["version"], "0.")):
        done = subprocess.run(
            [sys.executable, "-m", "hollow", *options], capture_output=True, cwd=repo, env=environment()
        )
        assert done.returncode == 0
        assert words in done.stdout.decode()


def test_an_answer_is_an_error_unless_it_is_a_success():
    assert not Answer(text="x").is_error
    assert Answer(text="x", subtype="error_max_turns").is_error
