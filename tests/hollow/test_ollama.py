from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from hollow import prompts
from hollow.mind import Assignment
from hollow.minds.ollama import Ollama, Settings
from hollow.stream import Talk
from tests.support.cycles import PROJECT, argv, cycle, environment
from tests.support.ollama_server import MODEL, OllamaServer, Turn
from tests.support.repos import make_repo, write

GREP = Turn(calls=[("Grep", {"pattern": "retry"})], text="I search.", thinking="hm")
REPORT = "# Report\n\n- src/app.py:1 retries"


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "repo", {"src/app.py": "def retry(): ...\n", "README.md": "A project.\n"})


class Played:
    """An answer, the events told on the way, and what the server was asked."""

    def __init__(self, answer, events, server) -> None:
        self.answer, self.events, self.chats = answer, events, server.chats

    def facts(self, kind: str) -> list[dict]:
        return [e for e in self.events if e.get("kind") == kind]

    @property
    def results(self) -> list[dict]:
        return [e["message"]["content"][0] for e in self.events if e["type"] == "user"]


def play(
    repo: Path,
    server: OllamaServer,
    *,
    task: str = "Where do we retry?",
    run_type: str = "scout",
    max_turns: int = 24,
    words: str = "",
    **settings,
) -> Played:
    """Let the mind answer in this process, with the turns of *server*."""
    out = io.BytesIO()
    assignment = Assignment(
        task=task, run_type=run_type, agent="cedar", repo=repo, index=repo, max_turns=max_turns, system_prompt=words
    )
    with server:
        mind = Ollama(Settings(**{"host": server.url, "pauses": (0.01, 0.01, 0.01), **settings}))
        answer = mind.answer(assignment, Talk(out, session_id="s", model=MODEL))
    return Played(answer, [json.loads(line) for line in out.getvalue().splitlines()], server)


# --- the loop ---------------------------------------------------------------------------------------------------------


def test_the_model_calls_tools_and_then_reports(repo):
    played = play(repo, OllamaServer(turns=[GREP, REPORT]), words="RUN_DIR is out/")
    assert (played.answer.text, played.answer.subtype, played.answer.turns) == (REPORT, "success", 2)
    assert (played.answer.usage.input_tokens, played.answer.usage.output_tokens) == (200, 20)
    assert played.results == [
        {"type": "tool_result", "tool_use_id": "call_1", "content": "src/app.py:1:def retry(): ...", "is_error": False}
    ]
    first, second = played.chats
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    assert first["messages"][1]["content"] == "Where do we retry?"
    assert first["messages"][0]["content"].endswith("RUN_DIR is out/")
    assert [t["function"]["name"] for t in first["tools"]] == ["Grep", "Ls", "ReadFile", "GitLog"]
    assert second["messages"][2]["tool_calls"][0]["function"] == {"name": "Grep", "arguments": {"pattern": "retry"}}
    assert second["messages"][2]["thinking"] == "hm"
    assert second["messages"][3] == {"role": "tool", "tool_name": "Grep", "content": "src/app.py:1:def retry(): ..."}


def test_every_call_carries_window_limit_and_keep_alive(repo):
    """T131: the engine is asked as configured; the server's own window would cut silently."""
    played = play(repo, OllamaServer(turns=[GREP, REPORT]), num_ctx=16384, keep_alive="5m")
    for chat in played.chats:
        assert chat["options"] == {"num_ctx": 16384, "num_predict": 4096, "temperature": 0, "seed": 1}
        assert (chat["keep_alive"], chat["model"], chat["stream"]) == ("5m", MODEL, True)
    assert play(repo, OllamaServer(turns=[REPORT]), keep_alive="-1").chats[0]["keep_alive"] == -1


def test_one_connection_is_kept_for_all_calls(repo):
    seen = []
    server = OllamaServer(turns=[GREP, Turn(calls=[("Ls", {})]), REPORT])
    accepted = OllamaServer.__enter__

    class Counting(OllamaServer):
        def __enter__(self):
            accepted(self)
            inner = self._http.process_request
            self._http.process_request = lambda *a: (seen.append(a[1]), inner(*a))[1]
            return self

    played = play(repo, Counting(turns=server.turns))
    assert played.answer.turns == 3
    assert len(seen) == 1


def test_thinking_is_no_part_of_the_report(repo):
    """T159: think tags and the thinking field stay out of the report."""
    played = play(repo, OllamaServer(turns=[Turn(text=f"<think>secret</think>\n{REPORT}", thinking="secret")]))
    assert played.answer.text == REPORT
    assert "secret" not in json.dumps(played.events)


def test_several_calls_of_one_message_are_done_in_order(repo):
    calls = [("Ls", {}), ("ReadFile", {"path": "README.md"})]
    played = play(repo, OllamaServer(turns=[Turn(calls=calls), REPORT]))
    assert [m["tool_name"] for m in played.chats[1]["messages"][3:]] == ["Ls", "ReadFile"]
    assert "A project." in played.results[1]["content"]


def test_an_unknown_tool_and_bad_arguments_are_answered_not_raised(repo):
    """T159: the model is told what is right."""
    calls = [("shell", {"cmd": "rm -rf /"}), ("Grep", {"max_results": "x"}), ("ReadFile", {"path": "../x"})]
    played = play(repo, OllamaServer(turns=[Turn(calls=calls), REPORT]))
    assert played.answer.subtype == "success"
    assert all(r["is_error"] for r in played.results)
    assert "The tools are Grep, Ls, ReadFile, GitLog." in played.results[0]["content"]


def test_a_call_already_made_is_not_made_again(repo):
    played = play(repo, OllamaServer(turns=[GREP, GREP, REPORT]))
    assert played.answer.turns == 3
    assert "already made" in played.results[1]["content"]


def test_a_model_that_goes_in_circles_is_asked_for_its_report(repo):
    played = play(repo, OllamaServer(turns=[*[GREP] * 5, REPORT]))
    assert (played.answer.text, played.answer.turns) == (REPORT, 6)
    assert played.chats[-1]["messages"][-1]["content"] == prompts.LAST_TURN
    assert not played.chats[-1].get("tools")


def test_an_empty_answer_is_asked_about_once(repo):
    played = play(repo, OllamaServer(turns=["", REPORT]))
    assert played.answer.text == REPORT
    assert played.chats[1]["messages"][-1]["content"] == prompts.EMPTY
    again = play(repo, OllamaServer(turns=["", "<think>only thoughts</think>"]))
    assert (again.answer.subtype, again.answer.turns) == ("error_during_execution", 2)
    assert "empty" in again.answer.text


def test_the_last_turn_asks_for_the_report_without_tools(repo):
    turns = [Turn(calls=[("Grep", {"pattern": str(n)})]) for n in range(2)]
    played = play(repo, OllamaServer(turns=[*turns, REPORT]), max_turns=3)
    assert (played.answer.text, played.answer.subtype, played.answer.turns) == (REPORT, "success", 3)
    assert not played.chats[2].get("tools")


@pytest.mark.parametrize("last", [Turn(calls=[("Ls", {})]), "", '{"tool": "Ls", "arguments": {}}'])
def test_turns_used_up_without_a_report_is_an_error(repo, last):
    played = play(repo, OllamaServer(turns=[GREP, last]), max_turns=2)
    assert (played.answer.subtype, played.answer.turns) == ("error_max_turns", 2)
    assert "no report within 2 turns" in played.answer.text


def test_a_report_cut_at_the_output_limit_says_so(repo):
    played = play(repo, OllamaServer(turns=[Turn(text=REPORT, done_reason="length")]))
    assert played.answer.text.startswith(REPORT)
    assert "the report is incomplete" in played.answer.text


def test_a_tool_call_written_as_text_is_done_all_the_same(repo):
    """T159: models put calls into tags and fences."""
    text = '<tool_call>\n{"name": "Grep", "arguments": {"pattern": "retry"}}\n</tool_call>'
    played = play(repo, OllamaServer(turns=[text, REPORT]))
    assert played.results[0]["content"] == "src/app.py:1:def retry(): ..."
    assert played.answer.text == REPORT


def test_a_model_without_tools_is_told_the_protocol_in_text(repo):
    """T159: the same tools, asked for in JSON inside prose."""
    turns = [
        'I look: {"tool": "Grep", "arguments": null}',
        '```json\n{"tool": "Grep", "arguments": {"pattern": "retry"}}\n```',
        REPORT,
    ]
    played = play(repo, OllamaServer(turns=turns, knows_tools=False))
    assert (played.answer.text, played.answer.turns) == (REPORT, 3)
    assert played.facts("model.no_tools")
    refused, first, _, last = played.chats
    assert refused["tools"]
    assert not first.get("tools")
    assert '{"tool": "ReadFile"' in first["messages"][0]["content"]
    assert last["messages"][-1] == {"role": "user", "content": "Result of Grep:\nsrc/app.py:1:def retry(): ..."}


def test_a_call_that_cannot_be_read_is_asked_for_again(repo):
    broken = '{"tool": "Grep", "arguments": {"pattern": '
    played = play(repo, OllamaServer(turns=[broken, REPORT], knows_tools=False))
    assert played.answer.text == REPORT
    assert played.chats[-1]["messages"][-1]["content"] == prompts.UNREADABLE
    assert play(repo, OllamaServer(turns=[broken] * 4, knows_tools=False)).answer.is_error


def test_a_call_that_the_server_could_not_read_is_asked_for_again(repo):
    garbled = Turn(status=500, error="error parsing tool call: raw='{\"pat', err=unexpected end of JSON input")
    played = play(repo, OllamaServer(turns=[garbled, GREP, Turn(error="error parsing tool call: raw='x'"), REPORT]))
    assert (played.answer.text, played.answer.turns) == (REPORT, 4)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_missing_server_is_named_with_the_command_to_type(repo):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound but not listening: nobody else can take the port meanwhile
        host = f"127.0.0.1:{unused.getsockname()[1]}"
        done = cycle(repo, mind="ollama", OLLAMA_HOST=host)
    assert done.code == 3
    assert done.result["result"] == f"No Ollama server answers at http://{host}. Start one with: ollama serve"
    assert done.stderr.strip() == done.result["result"]
    assert len(done.facts("mind.retry")) == 3


def test_a_missing_model_is_named_with_the_command_to_type(repo):
    played = play(repo, OllamaServer(models=["other:1b"]))
    assert played.answer.is_error
    assert played.answer.text == f"The Ollama server has no model {MODEL}. Get it with: ollama pull {MODEL}"
    assert len(played.chats) == 1


@pytest.mark.parametrize("host", ["http://[::1", "127.0.0.1:port"])
def test_an_address_that_is_none_is_named(repo, host):
    done = cycle(repo, mind="ollama", OLLAMA_HOST=host)
    assert done.code == 3
    assert "is no address" in done.result["result"]


def test_a_password_in_the_address_is_not_shown(repo):
    done = cycle(repo, mind="ollama", OLLAMA_HOST="ftp://ada:hunter2@127.0.0.1:1")
    assert done.code == 3
    assert b"hunter2" not in done.stdout + done.stderr.encode()


@pytest.mark.parametrize(
    "mishap",
    [
        Turn(status=503, error="loading"),
        Turn(status=502, raw=b"<html>bad gateway"),
        Turn(text="half", drop=True),
        Turn(text="half", unfinished=True),
    ],
)
def test_transport_errors_are_tried_again(repo, mishap):
    played = play(repo, OllamaServer(turns=[mishap, mishap, REPORT]))
    assert played.answer.text == REPORT
    assert len(played.facts("mind.retry")) == 2
    assert played.answer.turns == 1


def test_tries_are_counted(repo):
    played = play(repo, OllamaServer(turns=[Turn(status=503, error="busy")] * 9))
    assert played.answer.is_error
    assert len(played.chats) == 4
    assert "status 503: busy" in played.answer.text


@pytest.mark.parametrize(
    ("mishap", "words"),
    [
        (Turn(status=400, error="invalid options"), "refused: invalid options"),
        (Turn(status=401, error=""), "refused"),
        (Turn(status=500, error="cuda error"), "refused: cuda error"),
        (Turn(text="half", error="model runner has stopped"), "refused: model runner has stopped"),
        (Turn(raw=b"<html>hello"), "does not speak as Ollama does"),
        (Turn(raw=b'{"half": '), "does not speak as Ollama does"),
        (Turn(raw=b"[1]\n"), "does not speak as Ollama does"),
        (Turn(calls=[("Grep", "a string")]), "does not speak as Ollama does"),
    ],
)  # fmt: skip
def test_other_errors_are_not_tried_again(repo, mishap, words):
    played = play(repo, OllamaServer(turns=[mishap, REPORT]))
    assert played.answer.is_error
    assert words in played.answer.text
    assert len(played.chats) == 1


@pytest.mark.parametrize("mishap", [Turn(drip=0.05), Turn(delay=60)], ids=["drips", "hangs"])
def test_a_call_is_bounded_by_the_wall_clock(repo, mishap):
    """T158: a server that sends a byte now and then never meets a read timeout; the bound holds all the same."""
    started = time.monotonic()
    played = play(repo, OllamaServer(turns=[mishap]), call_timeout=0.6, beat=0.2)
    assert time.monotonic() - started < 5
    assert played.answer.text == f"The model {MODEL} did not answer within 0.6 s."
    assert len(played.facts("mind.waiting")) >= 1
    assert len(played.chats) == 1


def test_a_slow_model_gives_signs_of_life(repo):
    """T134: silence while the model computes would look like a dead agent."""
    played = play(repo, OllamaServer(turns=[Turn(text=REPORT, delay=0.5)]), beat=0.1)
    assert played.answer.text == REPORT
    assert 2 <= len(played.facts("mind.waiting")) <= 5


def test_a_signal_ends_a_call_at_once_and_hangs_up(repo):
    """T138: stopped in the middle of a generation."""
    with OllamaServer(turns=[Turn(delay=60)]) as server:
        pipe = subprocess.PIPE
        command = argv(repo, mind="ollama")
        env = environment(OLLAMA_HOST=server.url)
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=repo, env=env) as process:
            process.stdin.write(b"task")
            process.stdin.close()
            deadline = time.monotonic() + 20
            while not server.chats and time.monotonic() < deadline:
                time.sleep(0.02)
            started = time.monotonic()
            process.terminate()
            last = process.stdout.read().splitlines()[-1]
            assert process.wait(20) == 143
            assert b"Traceback" not in process.stderr.read()
    assert time.monotonic() - started < 5
    assert json.loads(last)["subtype"] == "error_during_execution"


def test_a_flood_is_cut(repo):
    played = play(repo, OllamaServer(turns=[Turn(text="x" * 3_000_000, pieces=30)]))
    assert 2_000_000 <= len(played.answer.text) < 2_300_000
    assert "incomplete" in played.answer.text


# --- the context window -----------------------------------------------------------------------------------------------


def counted(body: dict) -> int:
    """What a server with this window counts: a third of the bytes."""
    return min(len(json.dumps(body["messages"])) // 3, body["options"]["num_ctx"])


def test_old_results_make_room_and_rules_and_task_never_do(repo):
    """T159, W24: a long session stays within the window, visibly."""
    write(repo, {f"f{n}.txt": f"number {n}\n" * 700 for n in range(9)})
    reads = [
        lambda body, n=n: Turn(calls=[("ReadFile", {"path": f"f{n}.txt"})], prompt_tokens=counted(body))
        for n in range(9)
    ]
    played = play(repo, OllamaServer(turns=[*reads, REPORT]), num_ctx=16384)
    assert played.answer.text == REPORT
    assert played.facts("context.trimmed")
    for chat in played.chats:
        assert chat["messages"][0]["content"].startswith(prompts.ROLES["cedar"])
        assert chat["messages"][1]["content"] == "Where do we retry?"
        assert len(json.dumps(chat["messages"])) / 3 < 16384
    last = played.chats[-1]["messages"]
    assert "was dropped to stay within the context window" in last[3]["content"]
    assert "number 8" in last[-1]["content"]


def test_what_was_dropped_may_be_read_again(repo):
    write(repo, {f"f{n}.txt": f"number {n}\n" * 900 for n in range(5)})
    order = [0, 1, 2, 3, 4, 0]
    turns = [Turn(calls=[("ReadFile", {"path": f"f{n}.txt"})]) for n in order]
    played = play(repo, OllamaServer(turns=[*turns, REPORT]), num_ctx=8192)
    assert not played.results[-1]["is_error"]
    assert "number 0" in played.results[-1]["content"]


def test_a_task_beyond_the_window_is_refused_before_it_is_sent(repo):
    played = play(repo, OllamaServer(turns=[REPORT]), task="x" * 1_000_000)
    assert played.answer.is_error
    assert "--num-ctx" in played.answer.text
    assert played.chats == []


def test_a_prompt_that_the_server_cut_is_asked_again_shorter(repo):
    """W24: prompt_eval_count at the window's edge is the only sign of a cut prompt."""
    write(repo, {"dense.txt": "0f9a" * 400 + "\n", "more.txt": "\n".join(["zq"] * 2000)})
    turns = [
        Turn(calls=[("ReadFile", {"path": "more.txt"})]),
        Turn(text="from a cut prompt", prompt_tokens=8192),
        REPORT,
    ]
    played = play(repo, OllamaServer(turns=turns), num_ctx=8192)
    assert played.facts("context.overrun")
    assert played.answer.text == REPORT
    assert len(json.dumps(played.chats[2])) < len(json.dumps(played.chats[1]))


# --- prompts and the stand-in itself ----------------------------------------------------------------------------------


@pytest.mark.parametrize("run_type", ["scout", "plan", "review", "benchmark", "fix"])
@pytest.mark.parametrize("agent", ["cedar", "cipher", "vault"])
def test_every_agent_has_a_prompt_for_every_run_type(run_type, agent):
    """T132: role, rules, format, and the supervisor's words verbatim at the end."""
    words = "Write artefacts to {RUN_DIR}.\n/merge_ab12 is for humans only."
    asked = Assignment(task="t", run_type=run_type, agent=agent, repo=Path(), index=Path(), system_prompt=words)
    prompt = prompts.system_prompt(asked)
    assert prompt.startswith(f"You are {agent}, ")
    assert (prompts.EDITING_RULES if run_type == "fix" else prompts.RULES) in prompt
    assert prompts.FORMATS[run_type] in prompt
    assert prompt.endswith(words)


def test_the_stand_in_answers_the_other_endpoints():
    with OllamaServer(knows_tools=False, models=["m"]) as server:

        def ask(path, body=None):
            data = None if body is None else json.dumps(body).encode()
            with urllib.request.urlopen(server.url + path, data, timeout=5) as answer:
                return json.loads(answer.read())

        assert ask("/api/version") == {"version": "0.99.0"}
        assert [m["name"] for m in ask("/api/tags")["models"]] == ["m"]
        assert ask("/api/show", {"model": "m"})["capabilities"] == ["completion"]
        first, again = ask("/api/embed", {"model": "m", "input": ["a", "a"]})["embeddings"]
        assert first == again
        assert [r.path for r in server.requests] == ["/api/version", "/api/tags", "/api/show", "/api/embed"]


def test_the_whole_mind_runs_as_a_process(repo):
    with OllamaServer(turns=[GREP, REPORT]) as server:
        done = cycle(
            repo,
            "--system-prompt",
            "Be brief.",
            "--model",
            MODEL,
            mind="ollama",
            task="Wö?".encode(),
            OLLAMA_HOST=server.url,
        )
    assert (done.code, done.stderr, done.result["result"]) == (0, "", REPORT)
    assert done.result["usage"] == {"input_tokens": 200, "output_tokens": 20}
    assert server.chats[0]["messages"][1]["content"] == "Wö?"
    assert server.chats[0]["messages"][0]["content"].endswith("Be brief.")


def test_a_proxy_in_the_environment_is_not_used_for_this_machine(repo):
    with OllamaServer(turns=[REPORT]) as server:
        done = cycle(
            repo,
            mind="ollama",
            OLLAMA_HOST=server.url,
            HTTP_PROXY="http://127.0.0.1:9",
            http_proxy="http://127.0.0.1:9",
        )
    assert done.code == 0


def test_only_one_module_imports_the_client():
    found = [
        p.name
        for p in (PROJECT / "hollow").rglob("*.py")
        if "import ollama" in p.read_text() or "from ollama" in p.read_text()
    ]
    assert found == ["ollama.py"]
    code = "import sys, hollow.minds.ollama; print('ollama' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=PROJECT, check=True).stdout == b"False\n"
    )
