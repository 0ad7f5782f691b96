"""What thinks inside a cycle: ollama over a real socket, a script over several processes, and rules without a model."""

from __future__ import annotations

import contextlib
import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.mind import Away, Question
from hollow.minds import reflex_notes as notes
from hollow.minds.ollama import Settings
from hollow.minds.ollama_think import EMBEDDING_MODEL, OllamaThinker, options
from hollow.minds.reflex_facts import situation, slug
from hollow.minds.reflex_goals import existence
from hollow.minds.reflex_ground import Ground, Place
from hollow.minds.reflex_think import ReflexThinker
from hollow.minds.scripted_think import ScriptedThinker
from hollow.minds.thinking import BadScript, make
from hollow.substrate import factcheck, mechanical
from tests.support.ollama_server import MODEL, OllamaServer, Turn, embedding
from tests.support.repos import make_repo, write
from tests.support.thinkers import Clever, ThinkerOf, by_purpose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SCHEMA = {"type": "object", "properties": {"steps": {"type": "array"}}, "required": ["steps"]}
PROMPT = "You are cedar, the scout.\nRULES OF YOUR ENVIRONMENT\n- Verify that a path exists before reading it."


def asked(purpose: str = "plan", prompt: str = PROMPT, seconds: float | None = None, **facts: Any) -> Question:
    return Question(purpose=purpose, prompt=prompt, schema=SCHEMA, facts=facts, seconds=seconds)


class Facts(list[tuple[str, dict[str, Any]]]):
    """What was said on the stream."""

    def __call__(self, kind: str, **facts: Any) -> None:
        self.append((kind, facts))

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self]


@pytest.fixture
def thinker() -> Iterator[Callable[..., OllamaThinker]]:
    """Makes thinkers that ask a server; they are closed at the end."""
    with contextlib.ExitStack() as undo:

        def made(server: OllamaServer | str, facts: Facts | None = None, **more: Any) -> OllamaThinker:
            host = server if isinstance(server, str) else server.url
            given = {"host": host, "pauses": (0.01, 0.01, 0.01), "call_timeout": 5.0, **more}
            mind = OllamaThinker(Settings(**given), facts if facts is not None else Facts())
            undo.callback(mind.close)
            return mind

        yield made


# --- ollama: what is sent ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("purpose", ["existence", "plan", "semantic", "fact", "evaluate", "chat"])
def test_every_question_is_one_message_with_its_schema_and_the_window(thinker, purpose):
    """T82: one question is one generation, asked with the schema as format and num_ctx; nothing else is sent (T62)."""
    with OllamaServer(turns=['{"steps": []}']) as server:
        mind = thinker(server, num_ctx=16384, keep_alive="5m")
        thought = mind.think(asked(purpose, seed="cedar/run-1"))
        mind.close()
    assert [(each.method, each.path) for each in server.requests] == [("POST", "/api/chat")]
    (body,) = server.chats
    assert body["messages"] == [{"role": "user", "content": PROMPT}]
    assert (body["format"], body["think"], body["keep_alive"], body["model"]) == (SCHEMA, False, "5m", MODEL)
    assert not body.get("tools")
    assert body["options"]["num_ctx"] == 16384
    assert body["options"]["num_predict"] == 4096
    assert (thought.text, thought.usage.input_tokens, thought.usage.output_tokens) == ('{"steps": []}', 100, 10)


def test_a_new_goal_is_asked_warmly_by_a_seed_that_can_be_repeated():
    warm, again, other = (options(asked("existence", seed=seed)) for seed in ("a/1", "a/1", "a/2"))
    assert warm == again
    assert warm["seed"] != other["seed"]
    assert 0 < warm["temperature"] <= 1
    assert all(0 <= each["seed"] < 2**31 for each in (warm, other))
    assert {options(asked(purpose, seed="a/1"))["temperature"] for purpose in ("plan", "semantic", "fact")} == {0}


def test_an_answer_that_is_no_json_is_not_asked_for_again(thinker):
    """T82: a garbled answer is the one generation there is; only the transport is tried again."""
    with OllamaServer(turns=["I would rather talk.", "never sent"]) as server:
        assert thinker(server).think(asked("existence")).text == "I would rather talk."
    assert len(server.chats) == 1


def test_a_model_that_puts_its_answer_into_its_thinking_is_heard(thinker):
    """T159: some models do, schema or not."""
    with OllamaServer(turns=[Turn(thinking='{"steps": []}')]) as server:
        assert thinker(server).think(asked()).text == '{"steps": []}'


# --- ollama: what goes wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mishap",
    [Turn(status=503, error="loading"), Turn(text='{"st', drop=True), Turn(text='{"st', unfinished=True)],
    ids=["busy", "hung up", "unfinished"],
)
def test_a_transport_error_is_tried_again(thinker, mishap):
    facts = Facts()
    with OllamaServer(answers={"plan": {"steps": []}}) as server:
        server.fail(mishap, times=2)
        assert json.loads(thinker(server, facts).think(asked()).text) == {"steps": []}
    assert facts.kinds == ["mind.retry", "mind.retry"]
    assert len(server.chats) == 3


@pytest.mark.parametrize(
    ("turn", "more", "words"),
    [
        (Turn(status=503, error="busy"), {}, "status 503: busy"),
        (Turn(status=500, error="out of memory"), {}, "refused: out of memory"),
        (Turn(raw=b"<html>hello"), {}, "does not speak as Ollama does"),
        (Turn(drip=0.01), {"call_timeout": 0.3}, "did not answer within 0.3 s"),
        (Turn(text="x", prompt_tokens=32768), {}, "cut the prompt's beginning away"),
    ],
    ids=["busy for ever", "refused", "garbage", "dripping", "window overrun"],
)
def test_a_mind_that_gives_nothing_is_away(thinker, turn, more, words):
    """T88: away is an exception with one sentence, so it can never be read as a yes."""
    with OllamaServer() as server:
        server.fail(turn, times=9)
        with pytest.raises(Away) as why:
            thinker(server, **more).think(asked("semantic"))
    assert words in str(why.value)
    assert "\n" not in str(why.value)


def test_a_missing_server_a_missing_model_and_a_bad_address_are_away(thinker):
    """T88: whatever it is that is missing."""
    with OllamaServer(models=["other"]) as server, pytest.raises(Away, match=f"ollama pull {MODEL}"):
        thinker(server).think(asked())
    with pytest.raises(Away, match="No Ollama server answers"):
        thinker("127.0.0.1:9", pauses=()).think(asked())
    with pytest.raises(Away, match="is no address"):
        thinker("http://[::1").think(asked())


def test_a_question_may_take_less_time_than_the_mind_has_and_says_that_it_lives(thinker):
    facts = Facts()
    with OllamaServer(turns=[Turn(drip=0.01)]) as server:
        began = time.monotonic()
        with pytest.raises(Away, match=r"within 0\.3 s"):
            thinker(server, facts, call_timeout=60.0, beat=0.1).think(asked(seconds=0.3))
        assert time.monotonic() - began < 5
    assert "mind.waiting" in facts.kinds


def test_a_prompt_that_the_window_cannot_hold_is_never_sent(thinker):
    """W24: a server would cut its beginning, which is where the rules stand."""
    with OllamaServer(turns=["{}"]) as server:
        with pytest.raises(Away, match="window has room for 1536"):
            thinker(server, num_ctx=2048).think(asked(prompt="word " * 2000))
        assert server.requests == []


def test_an_answer_cut_at_the_output_limit_is_told(thinker):
    facts = Facts()
    with OllamaServer(turns=[Turn(text='{"steps": [', done_reason="length")]) as server:
        assert thinker(server, facts).think(asked()).text == '{"steps": ['
    assert facts == [("mind.cut", {"purpose": "plan", "output_tokens": 10})]


# --- ollama: vectors and memory ---------------------------------------------------------------------------------------


def test_texts_become_vectors_in_order(thinker):
    with OllamaServer(models=[MODEL, EMBEDDING_MODEL]) as server:
        texts = [f"text number {number}" for number in range(70)]
        assert thinker(server).embed(texts) == [embedding(text) for text in texts]
        assert thinker(server).embed([]) == []
    bodies = [each.body for each in server.requests]
    assert [len(body["input"]) for body in bodies] == [64, 6]
    assert all(body["model"] == EMBEDDING_MODEL and body["options"]["num_ctx"] for body in bodies)


def test_without_the_embedding_model_there_are_no_vectors_and_nobody_asks_again(thinker):
    """W23: no zero vectors in their place; the rest of the cycle goes by words."""
    facts = Facts()
    with OllamaServer() as server:
        mind = thinker(server, facts)
        assert [mind.embed(["a"]), mind.embed(["b"]), mind.embed([])] == [None, None, None]
    assert facts.kinds == ["mind.no_embeddings"]
    assert len(server.requests) == 1


@pytest.mark.parametrize("vectors", [[[0.0, 0.0]], [[1.0], [1.0]], [], [["x"]], [[1e999]]])
def test_vectors_that_mean_nothing_are_none(thinker, vectors):
    """W23."""

    class Odd(OllamaServer):
        def embeddings(self, texts):
            return vectors

    with Odd(models=[MODEL, EMBEDDING_MODEL]) as server:
        assert thinker(server).embed(["a"]) is None


def test_the_model_is_let_go(thinker):
    with OllamaServer(answers={"": "{}"}) as server:
        mind = thinker(server)
        mind.think(asked())
        assert server.loaded == {MODEL}
        assert mind.unload()
        assert server.loaded == set()
    assert server.requests[-1].body["keep_alive"] == 0
    assert not thinker("127.0.0.1:9").unload()


# --- scripted ---------------------------------------------------------------------------------------------------------

SCRIPT = [
    {"for": "existence", "answer": {"content": "one"}},
    {"for": "existence", "answer": {"content": "cipher's own"}, "agent": "cipher"},
    {"for": "existence", "answer": {"content": "two"}},
    {"for": "plan", "answer": "no json"},
    {"for": "semantic", "away": "Gone fishing."},
]


def scripted(path: Path, script: Any = SCRIPT, **more: Any) -> ScriptedThinker:
    path.write_text(json.dumps(script))
    return ScriptedThinker(path, agent=more.pop("agent", "cedar"), **more)


def contents(mind: ScriptedThinker, times: int) -> list[str]:
    return [json.loads(mind.think(asked("existence")).text)["content"] for _ in range(times)]


def test_a_script_is_played_in_order_for_each_purpose_and_agent(tmp_path):
    assert contents(scripted(tmp_path / "s"), 3) == ["one", "two", "two"]
    assert contents(scripted(tmp_path / "s", agent="cipher"), 4) == ["one", "cipher's own", "two", "two"]
    mind = scripted(tmp_path / "s")
    assert mind.think(asked("plan")).text == "no json"
    assert mind.embed(["a"]) is None
    for purpose, words in (("semantic", "Gone fishing."), ("fact", "no answer for fact")):
        with pytest.raises(Away, match=words):
            mind.think(asked(purpose))


@pytest.mark.parametrize("torn", [None, b"", b'{"cedar ex', b"[1]"])
def test_a_cursor_carries_a_script_over_processes(tmp_path, torn):
    cursor = tmp_path / "cursor"
    if torn is not None:
        cursor.write_bytes(torn)
    played = [contents(scripted(tmp_path / "s", cursor=cursor), 1)[0] for _ in range(3)]
    assert played == ["one", "two", "two"]
    # An agent beside it has a place of its own in the same file.
    assert contents(scripted(tmp_path / "s", agent="cipher", cursor=cursor), 2) == ["one", "cipher's own"]


def test_a_script_can_keep_one_waiting(tmp_path):
    slept: list[float] = []
    entries = [{"for": "plan", "wait": 1.5, "answer": ""}]
    assert scripted(tmp_path / "s", entries, sleep=slept.append).think(asked()).text == ""
    assert slept == [1.5]


@pytest.mark.parametrize(
    "script",
    [{}, [1], [{"for": "plan"}], [{"for": "dream", "answer": ""}], [{"for": "plan", "answer": "", "away": ""}],
     [{"for": "plan", "answer": "", "wait": "x"}]],
)  # fmt: skip
def test_a_script_that_is_none_is_refused_before_anything_starts(tmp_path, script):
    with pytest.raises(BadScript, match="script"):
        scripted(tmp_path / "s", script)


def test_a_script_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "s").write_bytes(b"[")
    for path, words in ((tmp_path / "s", "is no JSON"), (tmp_path / "absent", "No such file")):
        with pytest.raises(BadScript, match=words):
            make("scripted", agent="cedar", repo=tmp_path, script=path)


# --- reflex -----------------------------------------------------------------------------------------------------------

FILES = {
    "src/retry.py": '"""Tries things again."""\n\n\ndef backoff(attempt):\n    """Seconds before a further try."""\n    return 2**attempt\n\n\n'
    'class Policy:\n    """How often."""\n\n    def allows(self, attempt):\n        return attempt < 5  # TODO: a setting\n',
    "src/client.py": "from src.retry import Policy, backoff\n\n\ndef call(policy):\n    return [backoff(n) for n in range(3)]\n",
    "README.md": "# Shop\n\nCalls are retried.\n",
    "src/odd name.py": "from src.retry import backoff\n",
    "src/paths.py": "LOG = 'policy/absent.py'  # backoff\nEMPTY = ''  # policy ... later\n",
    "src/empty.py": "",
    "workspace/cipher/limits.md": "# Limits of retry\n\nbackoff is unbounded\n",
}  # fmt: skip
STATE = {
    "agent": "cedar", "seed": "cedar/run-1", "load": 0.2, "band": "none", "locked": [],
    "stressors": [{"type": "stagnation", "condition": "a goal passes the gate"}],
    "open_questions": ["Who decides about retries?"], "peers": {"cipher": ["workspace/cipher/limits.md"], "vault": []},
    "files": ["src/retry.py", "src/client.py", "README.md"], "workspace": [], "outcome": "", "messages": [],
    "capabilities": ["fs_read", "fs_write", "memory_set", "read_peer", "agent_message"],
}  # fmt: skip
GOAL = "Explain how retry and backoff work and who uses the policy"


@pytest.fixture
def airlock(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "airlock", FILES)


def reflex(airlock: Path, purpose: str, **facts: Any) -> dict[str, Any]:
    mind = ReflexThinker(agent="cedar", repo=airlock, index=airlock.parent / "index")
    found = mind.think(asked(purpose, **{**STATE, **facts}))
    answer: dict[str, Any] = json.loads(found.text)
    return answer


def test_without_a_model_the_goal_comes_from_the_real_state():
    """Whatever the seed, what is wanted names a stressor, a question, a file or a peer that is there."""
    names = ("stagnation", "Who decides about retries", "src/retry.py", "src/client.py", "README.md", "limits.md")
    wanted = set()
    for number in range(40):
        answer = existence(situation(asked("existence", **{**STATE, "seed": f"cedar/{number}"}), "cedar"))
        assert any(name in answer["content"] for name in names), answer["content"]
        wanted.add(answer["content"])
    assert len(wanted) >= 5


def test_what_was_written_is_not_wanted_again_and_an_active_goal_stays():
    now = situation(asked("existence", **STATE), "cedar")
    first = existence(now)["content"]
    done = {**STATE, "workspace": [f"workspace/cedar/{slug(first)}.md"]}
    assert existence(situation(asked("existence", **done), "cedar"))["content"] != first
    assert existence(situation(asked("existence", **{**STATE, "goal": GOAL}), "cedar"))["content"] == GOAL


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({"outcome": "abandoned: it cited what is not there"}, "Follow up on the last outcome: abandoned: it cited"),
        ({"outcome": "completed: Explain the shop"}, "Survey what cedar has written"),
        ({"outcome": "abandoned: Follow up on the last outcome: x"}, "Survey what cedar has written"),
        ({"messages": [{"from": "vault", "message": "What of the policy?"}]}, "Look into what vault writes: What of"),
        ({"messages": [{"from": "vault", "message": "I have begun: Explain x."}]}, "Survey what cedar has written"),
        ({}, "Survey what cedar has written"),
    ],
)
def test_goals_do_not_feed_on_each_other(facts, wanted):
    """W33: a sequel has no sequel, and an announcement is no wish."""
    assert existence(situation(asked("existence", **facts), "cedar"))["content"].startswith(wanted)


def test_in_a_crisis_it_looks_at_itself_and_asks_for_help():
    answer = existence(situation(asked("existence", **{**STATE, "band": "crisis"}), "cedar"))
    assert re.fullmatch(r"Examine what weighs on me \(stagnation\) and ask (cipher|vault) for help", answer["content"])


def test_the_same_state_gives_the_same_plan(airlock):
    assert reflex(airlock, "plan", goal=GOAL) == reflex(airlock, "plan", goal=GOAL)


def live(airlock: Path, goal: str, cycles: int, **facts: Any) -> list[list[dict[str, Any]]]:
    """The plans of so many cycles; what they write is written, as the hands would."""
    plans = []
    for number in range(cycles):
        steps = reflex(airlock, "plan", goal=goal, seed=f"cedar/{number}", **facts)["steps"]
        plans.append(steps)
        for step in steps:
            if step["capability_id"] == "fs_write":
                write(airlock, {step["params"]["path"]: step["params"]["content"]})
    return plans


WORTH = {"fs_write": 200}


def progress(plans: list[list[dict[str, Any]]]) -> int:
    """Thousandths by the table of the environment of the calls that differ: a mind that repeats itself gets nowhere."""
    calls = {(step["capability_id"], json.dumps(step["params"])) for plan in plans for step in plan}
    return sum(WORTH.get(name, 100) for name, _ in calls)


@pytest.mark.parametrize(
    ("goal", "cycles"),
    [(GOAL, 2), ("Read workspace/cipher/limits.md of cipher and find what supports it", 3), ("Zebra quagga okapi", 4)],
    ids=["about the code", "about a peer's file", "about nothing that is there"],
)
def test_a_goal_is_reached_in_a_few_cycles_with_citations_that_hold(airlock, goal, cycles):
    """Real reading, a document of substance, each citation true."""
    plans = live(airlock, goal, cycles)
    assert progress(plans) >= 1000
    assert all(2 <= len(plan) <= 6 for plan in plans)
    path = f"workspace/cedar/{slug(goal)}.md"
    text = (airlock / path).read_text()
    assert len(text.split()) > 40
    assert notes.parts(text) == cycles
    assert notes.quotable(text)
    cited = re.findall(r"^- ([\w./]+):(\d+)(?: defines \w* ?`(\w+)`)?", text, re.MULTILINE)
    assert cited
    for name, line, symbol in cited:
        assert symbol in (airlock / name).read_text().split("\n")[int(line) - 1]
    # The gate's own checks, on the very document.
    read = Ground(airlock, None).text
    assert mechanical.file_fault(path, text, goal) is None
    assert factcheck.check(factcheck.references(text, [path]), read) is None
    assert reflex(airlock, "semantic", goal=goal, evidence=text)["accomplished"]


def test_the_plan_reads_real_files_and_meets_the_peers(airlock):
    """A peer's work is read, so it does not stay invisible."""
    (first, second) = live(airlock, GOAL, 2)
    read = [step["params"]["path"] for step in first + second if step["capability_id"] == "fs_read"]
    assert read
    assert all((airlock / path).is_file() for path in read)
    peers = {
        (step["params"]["agent"], step["params"]["path"])
        for step in first + second
        if step["capability_id"] == "read_peer"
    }
    assert peers == {("cipher", "limits.md"), ("vault", "")}
    told = [step["params"] for step in first if step["capability_id"] == "agent_message"]
    assert [each["to"] in {"cipher", "vault"} for each in told] == [True]
    answers = [{"from": "vault", "message": "What of the policy?"}]
    replies = reflex(airlock, "plan", goal=GOAL, messages=answers)["steps"][-1]["params"]
    assert replies["to"] == "vault"
    # Nobody answers an answer.
    later = reflex(airlock, "plan", goal=GOAL, messages=[{"from": "vault", "message": replies["message"]}])
    assert [one for one in later["steps"] if one["capability_id"] == "agent_message"] == []


@pytest.mark.parametrize("locked", [["fs_write"], ["fs_write, fs_edit: locked from a load of 0.75 on."]])
def test_a_locked_agent_reads_remembers_and_asks_for_help(airlock, locked):
    """Its plan holds no writing."""
    plans = live(airlock, GOAL, 2, locked=locked)
    names = [step["capability_id"] for plan in plans for step in plan]
    assert set(names) == {"fs_read", "read_peer", "memory_set", "agent_message"}
    kept = [step["params"] for plan in plans for step in plan if step["capability_id"] == "memory_set"]
    assert len({each["key"] for each in kept}) == 2
    assert all(len(each["value"]) >= 80 for each in kept)


def test_a_goal_that_names_its_document_gets_it_there(airlock):
    for goal, path in (
        ("Write /agentOS/workspace/cedar/retries.md about backoff", "workspace/cedar/retries.md"),
        ("Write design/retries.md about backoff", "design/retries.md"),
        ("Write workspace/vault/mine.md about backoff", "workspace/cedar/write-workspace-vault-mine-backoff.md"),
        ("Write design/../src/x.md about backoff", "workspace/cedar/write-design-src-backoff.md"),
    ):
        steps = reflex(airlock, "plan", goal=goal)["steps"]
        assert [step["params"]["path"] for step in steps if step["capability_id"] == "fs_write"] == [path]


@pytest.mark.parametrize(
    ("purpose", "facts", "verdict"),
    [
        ("semantic", {}, False),
        ("semantic", {"evidence": "retry backoff policy"}, False),
        ("semantic", {"evidence": "retry and backoff and the policy that uses them. " * 9}, True),
        ("semantic", {"evidence": "a long text on something else altogether, which goes on. " * 9}, False),
        ("evaluate", {"evidence": "retry and backoff and the policy that uses them. " * 9}, True),
        ("fact", {}, False),
        ("fact", {"checked": True}, True),
        ("fact", {"checked": False, "evidence": "src/retry.py:4"}, False),
        ("fact", {"evidence": "It is in src/retry.py:4 and http://example.org/a.py:99 too."}, True),
        ("fact", {"evidence": "It is in src/retry.py:999."}, False),
        ("fact", {"evidence": "It is in src/absent.py:1."}, False),
        ("fact", {"evidence": "Function `nothing` in src/retry.py does it."}, False),
    ],
)
def test_verdicts_without_a_model_rest_on_what_can_be_counted_and_say_so(airlock, purpose, facts, verdict):
    """T88: no evidence is no yes."""
    answer = reflex(airlock, purpose, goal=GOAL, **facts)
    assert answer["accurate" if purpose == "fact" else "accomplished"] is verdict
    assert answer["reason"].startswith("No model judged this: ")


def test_talk_is_answered_with_the_truth_and_an_unknown_purpose_with_nothing(airlock):
    assert "No model is configured" in reflex(airlock, "chat")["reply"]
    with pytest.raises(Away, match="no rule for dream"):
        reflex(airlock, "dream")
    assert ReflexThinker(agent="cedar", repo=airlock).embed(["a"]) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(facts=st.dictionaries(st.sampled_from(sorted(STATE)), JSON))
@settings(max_examples=50, deadline=None)
def test_facts_of_any_shape_give_a_goal(facts):
    """T159: of values too."""
    answer = existence(situation(asked("existence", **{"agent": "cedar", **facts}), "cedar"))
    assert isinstance(answer["content"], str)
    assert answer["content"].strip()
    assert "\n" not in answer["content"]


@given(text=st.text(max_size=80))
@settings(max_examples=50, deadline=None)
def test_a_quoted_line_is_one_line_and_a_slug_is_a_file_name(text):
    said = notes.statement(Place(path="a.py", line=1, said=text))
    assert "\n" not in said
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,47}", slug(text))


def test_a_document_that_grew_too_long_begins_anew():
    long = notes.document("# Old\n\n## Part 7: x\n" + "word " * 6000, "New", "y", (), "cedar")
    assert long.startswith("# New")
    assert notes.parts(long) == 8


# --- which mind -------------------------------------------------------------------------------------------------------


def test_a_mind_is_made_by_its_name(tmp_path):
    (tmp_path / "s").write_text("[]")
    made = {
        name: make(name, agent="cedar", repo=tmp_path, script=tmp_path / "s")
        for name in ("ollama", "reflex", "scripted")
    }
    assert {name: (mind.name, mind.model) for name, mind in made.items()} == {
        "ollama": ("ollama", "qwen3.5:9b"), "reflex": ("reflex", None), "scripted": ("scripted", None),
    }  # fmt: skip
    for mind in made.values():
        mind.close()
    with pytest.raises(BadScript):
        make("scripted", agent="cedar", repo=tmp_path)
    with pytest.raises(ValueError, match="no mind called oracle"):
        make("oracle", agent="cedar", repo=tmp_path)


# --- the stand-ins themselves -----------------------------------------------------------------------------------------


def contract(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {} for name in names}}


def test_the_stand_in_answers_by_schema_and_its_agents_reach_their_goals(thinker):
    wits = Clever(cycles=2)
    goals: dict[str, list[str]] = {}
    with OllamaServer(answers=wits.answers) as server:
        mind = thinker(server)
        for agent in ("cedar", "vault"):
            for _ in range(4):
                first = Question(
                    purpose="existence",
                    prompt=f"You are {agent}, …",
                    schema=contract("content", "suffering_assessment"),
                    facts={},
                )
                goal = json.loads(mind.think(first).text)["content"]
                prompt = f"You are {agent}, …\nLAST OUTCOME\nDone: {goals.get(agent, ['nothing'])[0]}\nCURRENT GOAL\n{goal}\n"
                steps = json.loads(
                    mind.think(Question(purpose="plan", prompt=prompt, schema=contract("steps"), facts={})).text
                )["steps"]
                assert all(
                    step["params"]["path"].startswith(f"workspace/{agent}/")
                    for step in steps
                    if step["capability_id"] == "fs_write"
                )
                goals.setdefault(agent, []).append(goal)
        verdict = mind.think(
            Question(purpose="semantic", prompt="", schema=contract("accomplished", "reason", "lesson"), facts={})
        )
    assert json.loads(verdict.text)["accomplished"] is True
    assert server.purposes() == ["existence", "plan"] * 8 + ["semantic"]
    for chosen in goals.values():
        assert chosen[0] == chosen[1] != chosen[2] == chosen[3]
    assert not set(goals["cedar"]) & set(goals["vault"])


def test_a_thinker_of_a_function_answers_raises_and_remembers():
    mind = ThinkerOf(by_purpose(plan=["first", {"steps": []}], fact=Away("gone")), vectors=embedding)
    assert [mind.think(asked()).text for _ in range(3)] == ["first", '{"steps": []}', '{"steps": []}']
    for purpose in ("fact", "semantic"):
        with pytest.raises(Away):
            mind.think(asked(purpose))
    assert mind.purposes == ["plan", "plan", "plan", "fact", "semantic"]
    assert mind.embed(["a"]) == [embedding("a")]
    mind.close()
    assert mind.closed
