from __future__ import annotations

import io
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.markdown import code, fence, prose, shortened, visible
from hollow.mind import Assignment
from hollow.minds.reflex import Reflex
from hollow.stream import Talk
from tests.support.surveys import commit, empty, shop, write

RUN_TYPES = ("scout", "plan", "fix", "review", "benchmark")
CITED = re.compile(r"`([^`\n]+):(\d+)`")


def answer(repo, index, run_type="scout", task="where is a voucher's discount applied?"):
    out = io.BytesIO()
    talk = Talk(out, session_id="s", model="reflex")
    assignment = Assignment(task=task, run_type=run_type, agent="cedar", repo=repo, index=index)
    given_answer = Reflex().answer(assignment, talk)
    return given_answer, [json.loads(line) for line in out.getvalue().splitlines()]


def blocks(events):
    return [block for event in events for block in event["message"]["content"]]


def test_a_scout_answers_with_places_in_order_and_says_that_no_model_was_used(tmp_path):
    found, events = answer(shop(tmp_path / "r"), tmp_path / "i")
    assert (found.subtype, found.is_error) == ("success", False)
    assert found.text.startswith("**Most likely `src/shop/cart.py:11`**, in `Cart.applyDiscount`: matches ")
    assert "### 1. `src/shop/cart.py:11` · `Cart.applyDiscount`" in found.text
    assert "   11      def applyDiscount(self, voucher):" in found.text
    assert "```python" in found.text
    assert "Take the voucher's discount off the total." in found.text
    for said in ("## What changed there lately", "2024-05-01 Open the shop", "No model was used", "`ollama serve`",
                 "`ollama pull qwen3.5:9b`", "`--engine command -- PROGRAM`"):  # fmt: skip
        assert said in found.text
    said = blocks(events)
    assert [block["name"] for block in said if block["type"] == "tool_use"] == ["Survey", "GitLog"]
    assert [block["tool_use_id"] for block in said if block["type"] == "tool_result"] == ["call_1", "call_2"]
    assert said[-1] == {"type": "text", "text": found.text}


def test_the_mind_has_a_name_and_no_model():
    assert (Reflex().name, Reflex().model) == ("reflex", None)


def test_every_place_cited_exists(tmp_path):
    repo = shop(tmp_path / "r")
    for run_type in RUN_TYPES:
        found, _ = answer(repo, tmp_path / "i", run_type)
        cited = CITED.findall(found.text)
        assert cited
        for path, line in cited:
            assert 1 <= int(line) <= len((repo / path).read_text().split("\n"))


def test_a_plan_is_a_checklist_with_tests_risks_and_questions(tmp_path):
    found, events = answer(shop(tmp_path / "r"), tmp_path / "i", "plan", "let a voucher expire gracefully")
    assert "- [ ] Read `src/shop/cart.py:11`: `Cart.applyDiscount`" in found.text
    assert "- [ ] Extend `tests/test_cart.py` with a case that fails today." in found.text
    for part in ("## Steps", "## Risks", "## Open questions", "## What changed there lately", "`expire`"):
        assert part in found.text
    assert [block["name"] for block in blocks(events) if block["type"] == "tool_use"] == ["Survey", "GitLog", "Grep"]


def test_a_fix_says_that_it_needs_somebody(tmp_path):
    found, _ = answer(shop(tmp_path / "r"), tmp_path / "i", "fix")
    assert found.text.startswith("**A fix needs somebody to write it.**")
    assert "--engine command" in found.text
    assert "- [ ] Read `src/shop/cart.py:11`" in found.text


def test_a_benchmark_run_lists_what_exists(tmp_path):
    repo = shop(tmp_path / "r")
    assert "None was found" in answer(repo, tmp_path / "i", "benchmark")[0].text
    commit(repo, "bench", {"benchmarks/speed.py": "print(1)\n"})
    text = answer(repo, tmp_path / "i", "benchmark")[0].text
    assert "1 existing benchmark found; nothing was run." in text
    assert "- `benchmarks/speed.py:1` speed.py: `python benchmarks/speed.py`" in text


@pytest.mark.parametrize("run_type", ["scout", "plan", "fix", "benchmark"])
def test_no_match_is_said_plainly(tmp_path, run_type):
    found, _ = answer(shop(tmp_path / "r"), tmp_path / "i", run_type, "zyxwv")
    assert not found.is_error
    assert "**Nothing in this repository matches.**" in found.text
    assert "6 tracked files were searched for `zyxwv`." in found.text


def test_hints_fit_what_is_missing(tmp_path):
    assert "tracks no file yet" in answer(empty(tmp_path / "e"), tmp_path / "i")[0].text
    assert "holds no word to search for" in answer(shop(tmp_path / "r"), tmp_path / "i", task="is it?")[0].text


@pytest.mark.parametrize("run_type", RUN_TYPES)
def test_a_failure_is_an_answer_in_one_sentence(tmp_path, run_type):
    found, events = answer(tmp_path, tmp_path / "i", run_type)
    assert found.subtype == "error_during_execution"
    assert re.fullmatch(r"The survey of this repository failed: git [\w-]+ failed: [^\n]+\.", found.text)
    assert [block["is_error"] for block in blocks(events) if block["type"] == "tool_result"] == [True]


def test_the_same_state_and_question_give_the_same_report(tmp_path):
    repo = shop(tmp_path / "r")
    for run_type in RUN_TYPES:
        first = answer(repo, tmp_path / "i", run_type)[0]
        assert answer(repo, tmp_path / "other", run_type)[0] == answer(repo, tmp_path / "i", run_type)[0] == first


def test_only_the_index_folder_is_written(tmp_path):
    repo = shop(tmp_path / "r")
    before = {path: path.stat().st_mtime_ns for path in repo.rglob("*")}
    for run_type in RUN_TYPES:
        answer(repo, tmp_path / "i", run_type)
    assert {path: path.stat().st_mtime_ns for path in repo.rglob("*")} == before
    # "home" and "state" are the sealed world that every test lives in; they stay empty.
    made = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {"r", "i"}


def test_what_a_repository_holds_cannot_break_the_report(tmp_path):
    repo = shop(tmp_path / "r")
    nasty = {
        "evil `x`.py": "def voucher():\n    ```\n    '''</details>\x1b[31m\u202e````\n",
        "new\nline.py": "voucher = 1\n",
    }
    commit(repo, "# Voucher [x](http://e) <b> `` \x1b[2J", nasty)
    text = answer(repo, tmp_path / "i", task="voucher `````\n# heading")[0].text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", text)
    assert "`````python" in text
    assert "\n# " not in text
    assert "\\<b\\>" in text
    assert "new\\x0aline.py:1" in text


def test_an_unknown_run_type_is_a_scout(tmp_path):
    repo = shop(tmp_path / "r")
    assert answer(repo, tmp_path / "i", "ops")[0] == answer(repo, tmp_path / "i", "scout")[0]


def test_a_long_reading_says_how_far_it_is(tmp_path):
    repo = empty(tmp_path / "r")
    write(repo, {f"d{n % 50}/f{n}.py": f"x{n} = 1\n" for n in range(4100)})
    commit(repo, "many", {})
    _, events = answer(repo, tmp_path / "i", task="x17")
    assert {"type": "text", "text": "Read 4000 of 4100 files for the index."} in blocks(events)
    _, again = answer(repo, tmp_path / "i", task="x17")
    assert not [block for block in blocks(again) if "for the index" in block.get("text", "")]


def test_text_is_made_harmless():
    assert visible("a\tb\x1b\u200b\ud800é") == "a   b\\x1b\\u200b\\ud800é"
    assert code("a`b``") == "``` a`b`` ```"
    assert code("") == "(empty)"
    assert prose("# a\n* [b](c)") == "\\# a \\* \\[b\\](c)"
    assert shortened("x" * 200, 10) == "x" * 9 + "…"
    assert fence(["````"], "js") == "`````js\n````\n`````"


@settings(max_examples=80)
@given(st.lists(st.text(max_size=60), max_size=5))
def test_no_text_ends_its_fence(lines):
    rows = fence(lines).split("\n")
    assert rows[0] == rows[-1]
    assert all(rows[0] not in row for row in rows[1:-1])
    assert len(rows) == len(lines) + 2


@settings(max_examples=80)
@given(st.text(min_size=1, max_size=60))
def test_a_code_span_is_one_line_and_closes_itself(text):
    span = code(text)
    ticks = re.match("`+", span)[0]
    assert "\n" not in span
    assert span.endswith(ticks)
    assert ticks not in re.sub(f"^{ticks}|{ticks}$", "", span)


# Run type, task, what the report must hold, and the tools that were said to be used. "None": no place matches.
REPORTS = [
    ("plan", "voucher discount", ["- [ ] Read `src/shop/cart.py:11`", "- [ ] Extend `tests/test_cart.py`", "## Risks", "- [ ] Run the whole test suite"],
     ["Survey", "GitLog", "Grep"]),
    ("plan", "reserve a quantity in the warehouse", ["- [ ] Read `src/shop/stock.py:5`: `reserve`", "Add a test for `src/shop/stock.py`", "No test was found for `src/shop/stock.py`"],
     ["Survey", "GitLog", "Grep"]),
    ("plan", "renderBasket gracefully", ["`web/basket.js:1`", "These words occur at none of the places above: `gracefully`"], ["Survey", "GitLog", "Grep"]),
    ("plan", "README.md", ["the question names this file", "- [ ] Read `README.md:"], ["Survey", "GitLog", "Grep"]),
    ("plan", "zyxwv", ["**Nothing in this repository matches.**"], ["Survey", "Grep"]),
    ("fix", "send_receipt retries", ["**A fix needs somebody to write it.**", "- [ ] Read `src/shop/mail.py:4`", "`--engine command -- PROGRAM"], ["Survey", "GitLog", "Grep"]),
    ("fix", "zyxwv", ["**A fix needs somebody to write it.**", "**Nothing in this repository matches.**"], ["Survey", "Grep"]),
    ("benchmark", "reserve", ["0 existing benchmarks found; nothing was run.", "## What to measure", "`src/shop/stock.py:4`"], ["Survey", "GitLog", "Ls"]),
    ("benchmark", "zyxwv", ["**Nothing in this repository matches.**", "## Existing benchmarks"], ["Survey", "Ls"]),
    ("review", "is this safe?", ["**Reviewed commit ", "Send receipts again", "- `src/shop/mail.py:6` modified, +1 −1: `send_receipt`"], ["GitDiff"]),
    ("review", "HEAD~1", ["“Open the shop”: 6 files, +", "- `tests/test_cart.py` is part of the change", "- `README.md:1` added"], ["GitDiff"]),
    ("review", "HEAD..HEAD", ["**There is nothing to review: the range HEAD..HEAD is empty.**"], ["GitDiff"]),
    ("scout", "zyxwv", ["**Nothing in this repository matches.**", "`git ls-files`"], ["Survey"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("run_type", "task", "words", "tools"), REPORTS, ids=[f"{run}-{task}" for run, task, _, _ in REPORTS]
)
def test_each_kind_of_run_has_its_report_and_says_its_steps(tmp_path, run_type, task, words, tools):
    found, events = answer(shop(tmp_path / "r"), tmp_path / "i", run_type, task)
    assert (found.subtype, found.is_error) == ("success", False)
    for word in words:
        assert word in found.text
    said = blocks(events)
    assert [block["name"] for block in said if block["type"] == "tool_use"] == tools
    asked = [block["id"] for block in said if block["type"] == "tool_use"]
    assert [block["tool_use_id"] for block in said if block["type"] == "tool_result"] == asked
    assert not any(block["is_error"] for block in said if block["type"] == "tool_result")
    assert said[-1] == {"type": "text", "text": found.text}


@pytest.mark.parametrize("run_type", ["scout", "plan", "fix", "benchmark"])
def test_an_index_that_is_no_database_is_made_anew(tmp_path, run_type):
    repo = shop(tmp_path / "r")
    whole = answer(repo, tmp_path / "i", run_type)[0]
    for wreck in (b"no database", b"SQLite format 3\0" + b"\xff" * 5000, b""):
        for file in (tmp_path / "i").iterdir():
            file.write_bytes(wreck)
        assert answer(repo, tmp_path / "i", run_type)[0] == whole


def test_a_damaged_page_is_found_out_and_the_index_made_anew(tmp_path):
    repo = shop(tmp_path / "r")
    whole = answer(repo, tmp_path / "i")[0]
    (file,) = (each for each in (tmp_path / "i").iterdir() if each.suffix != ".lock" and each.stat().st_size > 8192)
    data = bytearray(file.read_bytes())
    data[4096:] = b"\x5a" * (len(data) - 4096)  # the schema on the first page stays whole
    file.write_bytes(data)
    assert answer(repo, tmp_path / "i")[0] == whole
    assert answer(repo, tmp_path / "i")[0] == whole


@pytest.mark.parametrize("change", ["delete", "replace by a folder", "empty", "binary"])
@pytest.mark.parametrize("run_type", RUN_TYPES)
def test_a_working_tree_in_any_state_has_an_answer(tmp_path, run_type, change):
    repo = shop(tmp_path / "r")
    cart = repo / "src/shop/cart.py"
    cart.unlink()
    if change == "replace by a folder":
        cart.mkdir()
    elif change != "delete":
        cart.write_bytes(b"" if change == "empty" else b"\0voucher")
    found, _ = answer(repo, tmp_path / "i", run_type)
    assert not found.is_error
    if run_type == "review":
        assert "src/shop/cart.py" in found.text
    else:
        assert "`src/shop/cart.py:11`" not in found.text


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(RUN_TYPES), st.text(max_size=60))
def test_no_task_makes_an_answer_fail(one_shop, run_type, task):
    found, events = answer(*one_shop, run_type, task)
    assert (found.subtype, found.text[:2]) == ("success", "**")
    assert blocks(events)[-1]["text"] == found.text


@pytest.fixture(scope="module")
def one_shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    return shop(folder / "r"), folder / "i"
