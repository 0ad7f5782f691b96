"""A program given to ``--engine command`` may speak the events of an agent; whatever is no event is its answer in text."""

from __future__ import annotations

import json

import pytest

from agents.engines.stream_json import TEXT_OR_JSON
from agents.events import Init, Output, Result, Said, decode
from tests.support.cli import agent, make_repository


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (b"plain text", Output("plain text")),
        (b'  {"type": broken', Output('  {"type": broken')),
        (b'{"type":"coverage","lines":3}', Output("coverage")),
        (b"[1, 2]", Output("[1, 2]")),
        (b"", Output("")),
        (b'{"type":"init","session_id":"x"}', Init(session_id="x")),
        (b'{"type":"system","subtype":"init","session_id":"y","model":"m"}', Init(session_id="y", model="m")),
        (b'{"type":"assistant","message":{"content":[{"type":"text","text":"hi"}]}}', Said("hi")),
        (b'{"type":"result","is_error":true,"result":"no"}', Result(text="no", is_error=True)),
    ],
)
def test_events_are_heard_and_the_rest_is_text(line, event):
    assert decode(line, TEXT_OR_JSON) == event


def test_another_programs_results_are_no_verdict():
    assert isinstance(decode(b'{"type":"result","subtype":"warning","path":"a.py"}', TEXT_OR_JSON), Output)


@pytest.fixture
def repo(tmp_path):
    return make_repository(tmp_path / "repo")


def script(repo, *lines, code=0):
    path = repo.parent / "agent.sh"
    path.write_text("".join(f"printf '%s\\n' '{line}'\n" for line in lines) + f"exit {code}\n")
    return ["--engine", "command", "--", "sh", str(path)]


def test_a_session_id_is_captured_from_either_form_and_the_first_one_stays(repo):
    """T133: both shapes of the init event are understood; a later id is ignored and noted."""
    for first in ({"type": "init", "session_id": "x"}, {"type": "system", "subtype": "init", "session_id": "x"}):
        lines = [json.dumps(first), json.dumps({"type": "system", "subtype": "init", "session_id": "other"})]
        assert agent(repo, "scout", "x", *script(repo, *lines)).returncode == 0
        state = json.loads(agent(repo, "show", "--json").stdout)["state"]
        assert state["session_id"] == "x"
        assert any("second session id" in note for note in state["notes"])


def test_a_result_event_is_the_report_and_an_error_in_it_counts_even_with_exit_code_0(repo):
    """T137: is_error is a tool_error whatever the exit code says."""
    done = agent(
        repo,
        "scout",
        "x",
        *script(repo, "noise", json.dumps({"type": "result", "is_error": False, "result": "# Found"})),
    )
    assert (done.returncode, done.stdout.decode()) == (0, "# Found\n\n")
    done = agent(
        repo, "scout", "x", *script(repo, json.dumps({"type": "result", "is_error": True, "result": "API down"}))
    )
    assert done.returncode == 3
    failure = json.loads(agent(repo, "show", "--json").stdout)["state"]["failure"]
    assert (failure["kind"], failure["message"]) == ("tool_error", "API down")
