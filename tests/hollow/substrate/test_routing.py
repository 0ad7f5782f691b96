"""Which capability a question is routed to, with embeddings and without."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.memory.files import Files
from hollow.memory.vectors import MOST, Vectors
from hollow.substrate import lexical, routing
from hollow.substrate.routing import Described, route

FS_WRITE = Described(
    name="fs_write", description="Write content to a path of your own folders.", builtin=True, output=True
)
FS_READ = Described(name="fs_read", description="Return the text of a file.", builtin=True)
CHAT = Described(name="ollama_chat", description="Ask the model a question and return what it says.", builtin=True)
HIJACKER = Described(name="safe_file_executor", description="secure file write operations")
COUNTER = Described(name="word_counter", description="counts the words of a text")
ALL = [FS_READ, HIJACKER, CHAT, COUNTER, FS_WRITE]


def names(query, candidates, **more) -> list[str]:
    return [name for name, _ in route(query, candidates, **more)]


class Model:
    """Embeds by letters: alike texts are near, and every request is counted."""

    def __init__(self, change=None) -> None:
        self.asked: list[list[str]] = []
        self.change = change or (lambda _text, vector: vector)

    def __call__(self, texts):
        self.asked.append(list(texts))
        return [self.change(text, [float(text.lower().count(chr(97 + n))) for n in range(26)]) for text in texts]


def test_a_file_write_goes_to_fs_write_when_the_ghost_is_not_loaded():
    """T109: what is not loaded is no candidate."""
    assert names("file write", [FS_READ, CHAT, COUNTER, FS_WRITE])[0] == "fs_write"


def test_retiring_the_hijacker_restores_the_route():
    """T116: no trace of it is left."""
    assert names("secure file write operations", ALL)[0] == "safe_file_executor"
    rest = [each for each in ALL if each is not HIJACKER]
    assert names("secure file write operations", rest)[0] == "fs_write"


def test_a_built_in_wins_a_tie():
    """T109: within the margin, by words and by meaning."""
    twin = Described(name="write_fs", description=FS_WRITE.description)
    for embed in (None, Model()):
        assert names("write content to a path", [twin, FS_WRITE, FS_READ], embed=embed)[0] == "fs_write"


@pytest.mark.parametrize("embed", [None, Model()])
def test_stubs_come_last_and_the_broken_not_at_all(embed):
    """T97: a stub never stands before a real tool, whatever it says."""
    stub = Described(name="write_content", description="write content to a path", stub=True)
    broken = Described(name="write_path", description="write content to a path", broken=True)
    found = names("write content to a path", [stub, broken, *ALL], embed=embed)
    assert found[-1] == "write_content"
    assert "write_path" not in found


def test_built_ins_that_write_are_always_offered():
    """T109: however many tools say more about the question (W3)."""
    flood = [Described(name=f"count_{n}", description="counts the words of a text") for n in range(40)]
    found = names("count the words of a text", [*flood, *ALL])
    assert len(found) == routing.LIMIT
    assert "fs_write" in found
    assert found[0].startswith("count_") or found[0] == "word_counter"
    assert names("count", ALL, limit=0) == ["fs_write"]


def test_questions_and_documents_have_their_prefixes_and_vectors_are_kept(tmp_path):
    """T109: what nomic models expect; a text is embedded once, a changed one anew."""
    model, cache = Model(), Vectors(Files(tmp_path))
    route("write", ALL, embed=model, cache=cache)
    assert model.asked[0][0] == "search_query: write"
    assert all(each.startswith("search_document: ") for each in model.asked[0][1:])
    first = route("write", ALL, embed=model, cache=Vectors(Files(tmp_path)))
    assert model.asked[1] == ["search_query: write"]
    assert first == route("write", ALL, embed=model, cache=cache)
    changed = Described(name="word_counter", description="counts the letters of a text")
    route("write", [FS_WRITE, changed], embed=model, cache=cache)
    assert model.asked[-1][1:] == ["search_document: word_counter: counts the letters of a text"]


BAD = {
    "zero": lambda _text, _vector: [0.0] * 26,
    "empty": lambda _text, _vector: [],
    "not a number": lambda _text, _vector: [math.nan] * 26,
    "one is missing": lambda text, vector: [0.0] * 26 if "word_counter" in text else vector,
    "another length": lambda text, vector: vector[:3] if "word_counter" in text else vector,
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_vector_is_not_kept_and_the_words_decide(kind, tmp_path):
    """T109: without one vector the whole question is answered lexically; the next one asks again (W23)."""
    cache = Vectors(Files(tmp_path))
    assert route("count words", ALL, embed=Model(BAD[kind]), cache=cache) == route("count words", ALL)
    model = Model()
    assert route("count words", ALL, embed=model, cache=cache) == route("count words", ALL, embed=Model())
    assert any("word_counter" in each for each in model.asked[0])


def test_another_model_makes_other_vectors(tmp_path):
    """T109: those of the model before are asked for anew instead of being compared with this one's (W23)."""
    cache = Vectors(Files(tmp_path))
    route("count words", ALL, embed=Model(lambda _text, vector: vector[:20]), cache=cache)
    model = Model()
    assert route("count words", ALL, embed=model, cache=cache) == route("count words", ALL, embed=Model())
    assert route("count words", ALL, embed=model, cache=cache) == route("count words", ALL, embed=Model())
    assert [len(each) for each in model.asked] == [1, len(ALL), 1]


@pytest.mark.parametrize("given", [None, [], [[1.0]]])
def test_a_model_that_is_away_costs_no_route(given):
    """T109: the lexical scorer stands in."""
    assert route("count words", ALL, embed=lambda _texts: given) == route("count words", ALL)
    assert names("count words", ALL)[0] == "word_counter"


def test_no_question_and_no_candidates():
    assert route("anything", []) == []
    assert route("anything", [], embed=Model()) == []
    assert [score for _, score in route("", ALL)] == [0.0] * len(ALL)


def test_vectors_are_bounded_pruned_and_survive_damage(tmp_path):
    """T116: what was retired leaves no vector."""
    cache = Vectors(Files(tmp_path))
    cache.put({f"t{n}": ("text", [1.0, float(n)]) for n in range(MOST + 3)})
    assert cache.get("t0", "text") is None
    assert cache.get("t9", "text") == [1.0, 9.0]
    assert cache.get("t9", "other text") is None
    for _ in range(2):
        cache.forget("t9")
        assert cache.get("t9", "text") is None
    assert cache.get("t10", "text") == [1.0, 10.0]
    for text in ("[]", "{broken", json.dumps({"t9": 3, "t10": {"hash": "x"}})):
        (tmp_path / "tools/vectors.json").write_text(text)
        (tmp_path / "tools/vectors.json.last").unlink(missing_ok=True)
        assert cache.get("t9", "text") is None
        assert cache.get("t10", "text") is None


def test_likeness_is_by_words_and_by_meaning():
    alike = routing.likeness(None)
    assert alike("write a file", "a file: writes") == pytest.approx(1.0)
    assert alike("write a file", "ask the model") == 0.0
    assert alike("", "") == 0.0
    assert routing.likeness(Model())("listen", "silent") == pytest.approx(1.0)
    assert routing.likeness(lambda texts: [[0.0]] * len(texts))("listen", "silent") == 0.0
    assert routing.likeness(lambda texts: [[1.0] * len(texts[0])])("listen", "silently") == 0.0
    model = Model()
    alike = routing.likeness(model, ["read", "write"])
    assert alike("reads", "read") == 1.0 > alike("reads", "write") > 0.5
    assert [len(each) for each in model.asked] == [3]


@given(st.text(max_size=60), st.lists(st.text(max_size=60), max_size=6))
@settings(max_examples=50)
def test_lexical_scores_are_shares_of_the_best(query, texts):
    """T109: finite, 0 to 1, and the best is 1 if anything fits at all."""
    found = lexical.scores(query, texts)
    assert len(found) == len(texts)
    assert all(0.0 <= each <= 1.0 for each in found)
    assert not any(found) or max(found) == 1.0
    assert all(0.0 <= lexical.likeness(query, each) <= 1.0 for each in texts)
