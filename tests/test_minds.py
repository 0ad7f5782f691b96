"""Which mind a hollow run gets: a real server on loopback, the real command line, the choice printed and recorded."""

from __future__ import annotations

import json

import pytest

from tests.support.cli import agent, make_repository
from tests.support.ollama_server import OllamaServer, Turn

MODEL = "qwen3.5:9b"


@pytest.fixture
def repo(tmp_path):
    (tmp_path / "home").mkdir(exist_ok=True)
    return make_repository(tmp_path / "repo")


def shown(repo):
    return json.loads(agent(repo, "show", "--json").stdout)


def test_a_server_with_the_model_is_the_mind_and_its_tools_read_the_repository(repo):
    turns = [Turn(calls=[("Grep", {"pattern": "def total"})]), "The sum is made in `shop.py:4`."]
    with OllamaServer(turns=turns, models=[MODEL]) as server:
        done = agent(repo, "scout", "where is the sum?", OLLAMA_HOST=server.url)
        asked = json.dumps(server.chats)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().strip() == "The sum is made in `shop.py:4`."
    assert f"mind ollama: {MODEL} at {server.url}" in done.stderr.decode()
    assert "shop.py:4" in asked
    assert "READ-ONLY" in asked
    run = shown(repo)
    assert (run["meta"]["mind"], run["meta"]["model"], run["state"]["usage"]["input_tokens"]) == ("ollama", MODEL, 200)
    assert "tok" in done.stderr.decode()


def test_a_server_without_the_model_is_not_the_mind_and_the_command_to_type_is_said(repo):
    with OllamaServer(turns=[], models=["other:1b"]) as server:
        done = agent(repo, "scout", "where is the sum of all prices?", OLLAMA_HOST=server.url)
    assert done.returncode == 0
    assert f"mind reflex: Ollama has no {MODEL} (ollama pull {MODEL})" in done.stderr.decode()
    assert shown(repo)["meta"]["mind"] == "reflex"


def test_a_model_by_flag(repo):
    with OllamaServer(turns=["Here."], models=["tiny:latest"]) as server:
        done = agent(repo, "scout", "where?", "--model", "tiny:latest", OLLAMA_HOST=server.url)
    assert done.stdout.decode().strip() == "Here."
    assert shown(repo)["meta"]["model"] == "tiny:latest"


def test_a_mind_that_was_asked_for_by_name_is_not_replaced(repo):
    done = agent(repo, "scout", "where?", "--mind", "ollama")
    assert done.returncode == 3
    assert "No Ollama server answers at http://127.0.0.1:9" in done.stderr.decode()
    assert "ollama serve" in done.stdout.decode() + done.stderr.decode()
    assert shown(repo)["state"]["failure"]["kind"] == "tool_error"


def test_reflex_by_name_asks_no_server(repo):
    with OllamaServer(turns=[], models=[MODEL]) as server:
        done = agent(repo, "scout", "where is the sum?", "--mind", "reflex", OLLAMA_HOST=server.url)
        assert server.requests == []
    assert done.returncode == 0


def test_a_model_that_never_answers_is_ended_in_time(repo):
    with OllamaServer(turns=[Turn(drip=0.2)], models=[MODEL]) as server:
        done = agent(repo, "scout", "where?", "--timeout", "4s", OLLAMA_HOST=server.url)
    assert done.returncode == 3
    assert "(timeout): It ran longer than 4 s." in done.stderr.decode()
