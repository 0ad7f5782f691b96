"""What a document claims about files, and whether the files bear it out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.substrate import factcheck
from hollow.substrate.factcheck import check, references, shown

FILES = {
    "hollow/index.py": "import os\n\n\nclass Index:\n    def search(self, words):\n        return words\n",
    "hollow/mind.py": "class Mind:\n    pass\n",
    "y.py": "def load():\n    return 1\n",
    "hollow/__init__.py": "",
    "docs/states.md": "# States\n\nTwo lines.\n",
    "agents/gate.py": "def merge():\n    return None\n",
}
read = FILES.get


def claims(text, own=()):
    return [(each.path, each.line, each.symbol) for each in references(text, own)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The search is in hollow/index.py.", [("hollow/index.py", 0, "")]),
        ("See `hollow/index.py:5` for it.", [("hollow/index.py", 5, "")]),
        ("See hollow/index.py:4-6.", [("hollow/index.py", 6, "")]),
        ("It is /agentOS/docs/states.md that says so", [("docs/states.md", 0, "")]),
        ("It is ./docs/states.md that says so", [("docs/states.md", 0, "")]),
        ("function `x` in `y.py`", [("y.py", 0, "x")]),
        ("The method search is defined in hollow/index.py", [("hollow/index.py", 0, "search")]),
        ("`Index.search()` in hollow/index.py returns words", [("hollow/index.py", 0, "Index.search")]),
        ("- hollow/index.py:4 `Index` holds it", [("hollow/index.py", 4, "Index")]),
        ("- `hollow/index.py`: `Index` holds it", [("hollow/index.py", 0, "Index")]),
        ("| hollow/mind.py | hollow/index.py |", [("hollow/mind.py", 0, ""), ("hollow/index.py", 0, "")]),
        ("twice hollow/mind.py and hollow/mind.py", [("hollow/mind.py", 0, "")]),
        ("gate.py:3 says", [("gate.py", 3, "")]),
        ("```\nhollow/index.py:2: import\n```", [("hollow/index.py", 2, "")]),
        # A cited line is a claim, whatever else the sentence wants.
        ("One should look at hollow/index.py:5", [("hollow/index.py", 5, "")]),
    ],
)
def test_claims_are_found(text, expected):
    assert claims(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "See https://example.org/a/b.py and http://x.y/z.md#12",
        "See github.com/somebody/thing.py",
        "Read and/or write; input/output; 3/4; a/b",
        "gate.py is long",
        "Node.js and e.g. this, i.e. that, v1.2.3",
        "tests/*.py and hollow/<name>.py and hollow/{a,b}.py and $HOME/x.py and ~/notes.md",
        "/etc/hosts.conf and ../other/x.py and .agents/hollow/goals.json",
        "Create hollow/cache.py with the table.",
        "We propose hollow/cache.py as its place",
        "There is no hollow/cache.py here",
        "hollow/cache.py does not exist",
        '```\nopen("data/input.json")\n```',
        "localhost:8080 and 12:30 and example.com:80",
        "",
    ],
)
def test_what_is_no_claim_is_not_flagged(text):
    assert claims(text) == []
    assert check(references(text), read) is None


def test_own_files_are_no_claims():
    text = "workspace/cedar/report.md says, and report.md:900 says, and /agentOS/workspace/cedar/report.md:7"
    assert claims(text, ["workspace/cedar/report.md"]) == []
    assert len(claims(text)) == 3


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("function `frobnicate` in `y.py`", ["frobnicate", "y.py"]),
        ("function `frobnicate` is defined in hollow/index.py", ["frobnicate", "hollow/index.py"]),
        ("The class Phantom in hollow/mind.py", ["Phantom", "hollow/mind.py"]),
        ("`Index.vanish` in `hollow/index.py`", ["Index.vanish"]),
        ("- hollow/index.py:5 `vanish` does it", ["vanish"]),
        ("It is in hollow/nowhere.py as ever", ["hollow/nowhere.py"]),
        ("hollow/index.py:7", ["hollow/index.py:7", "6 lines"]),
        ("hollow/index.py:700", ["hollow/index.py:700", "6 lines"]),
        ("hollow/index.py:0 and hollow/index.py:4-99", ["99"]),
        ("`load` in `y.py`, and `save` in `y.py`", ["save"]),
        ("nowhere.py:3", ["nowhere.py:3"]),
        ("function `loader` in `y.py`", ["loader"]),
    ],
)
def test_a_false_claim_is_named(text, named):
    """T89: report claiming function absent from file -> rejected naming it"""
    wrong = check(references(text), read)
    assert wrong is not None
    assert all(each in wrong for each in named)


@pytest.mark.parametrize(
    "text",
    [
        "function `load` in `y.py`",
        "`Index.search` in hollow/index.py:5, by class Index in hollow/index.py",
        "hollow/index.py:6 is its last line",
        "The gate is agents/gate.py; gate.py:2 returns None, function `merge` in gate.py.",
        "hollow/mind.py has no `think` in hollow/mind.py",
        "hollow/__init__.py:1 is empty",
    ],
)
def test_a_true_claim_passes(text):
    assert check(references(text), read) is None


def test_the_mind_is_shown_three_references_the_most_precise_first():
    text = "In hollow/mind.py.\nIn docs/states.md.\n`Index.search` in hollow/index.py\nhollow/index.py:1 imports\n"
    text_shown = shown(references(text), read)
    heads = [line for line in text_shown.splitlines() if "The document says" in line]
    assert heads == [
        "1. The document says: hollow/index.py:1 imports",
        "2. The document says: `Index.search` in hollow/index.py",
        "3. The document says: In hollow/mind.py.",
    ]
    assert "  5:     def search(self, words):" in text_shown
    assert shown((), read) == ""


def test_a_listing_is_bounded():
    text = "".join(f"hollow/index.py:{number} x\n" for number in range(1, 1000))
    assert len(references(text)) == factcheck.LIMIT


@given(st.text(alphabet="ab/.:`~ 019-\n(*py", max_size=300))
@settings(max_examples=50, deadline=None)
def test_any_text_can_be_looked_at(text):
    refs = references(text)
    assert all(each.path and each.line >= 0 for each in refs)
    assert check(refs, read) is None or refs
    assert isinstance(shown(refs, read), str)


def test_long_texts_take_little_time():
    for wall in ("a" * 200_000, "a/" * 100_000, "`a" * 100_000, "x.py:1" * 40_000, ("in " * 600 + "\n") * 100):
        references(wall)
