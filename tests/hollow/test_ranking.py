from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from essentials.records import replace
from hollow.gather import factors_for, path_tokens
from hollow.history import Commit
from hollow.kinds import Kind
from hollow.passages import best
from hollow.question import parse
from hollow.ranking import Candidate, Corpus, Weights, churn_score, history_score, rank, rarity, text_score
from hollow.related import ages, evidence, similar, todays_paths

CORPUS = Corpus(100, (10.0, 20.0, 200.0), {"cart": 5, "item": 60})
PLAIN = Candidate(path="a.py", kind=Kind.SOURCE, lengths=(10, 20, 200), counts={"cart": (0, 0, 2)})
WEIGHTS = Weights()
TERMS = {"cart": 1.0, "item": 1.0}


def score(**more):
    return text_score(replace(PLAIN, **more), TERMS, CORPUS, WEIGHTS)


def test_a_rare_term_says_more_than_a_common_one():
    assert rarity(1, 100) > rarity(50, 100) > rarity(100, 100) >= 0
    assert rarity(500, 100) >= 0


def test_symbols_docs_names_and_folders_add_to_the_text_score():
    assert score(counts={"cart": (1, 0, 2)}) > score()
    assert score(counts={"cart": (0, 1, 2)}) > score()
    assert score(name=frozenset({"cart"})) > score(folders=frozenset({"cart"})) > score()
    assert score(counts={}) == 0


def test_counts_saturate_and_long_files_count_less():
    one, two, many = (score(counts={"cart": (0, 0, times)}) for times in (1, 2, 30))
    assert two - one > (many - score(counts={"cart": (0, 0, 29)})) > 0
    assert score(lengths=(10, 20, 2000)) < score()


def test_an_empty_corpus_scores_nothing():
    assert text_score(PLAIN, TERMS, Corpus(1, (0.0, 0.0, 0.0), {}), WEIGHTS) == 0


def test_close_past_commits_and_recent_changes_count():
    assert history_score(replace(PLAIN, past=[(0.9, 1)]), WEIGHTS) > history_score(
        replace(PLAIN, past=[(0.3, 1)] * 3), WEIGHTS
    )
    assert churn_score(replace(PLAIN, ages=[1]), WEIGHTS) > churn_score(replace(PLAIN, ages=[500]), WEIGHTS)
    assert churn_score(PLAIN, WEIGHTS) == history_score(PLAIN, WEIGHTS) == 0


def test_tests_rank_below_sources_unless_asked_for():
    test = replace(PLAIN, path="tests/test_a.py", kind=Kind.TEST, counts={"cart": (0, 0, 4)})
    assert [one.candidate.path for one in rank([test, PLAIN], TERMS, CORPUS, WEIGHTS)] == ["a.py", "tests/test_a.py"]
    asked = rank([test, PLAIN], TERMS, CORPUS, replace(WEIGHTS, body=5.0), factors_for(parse("a test of the cart")))
    assert asked[0].score < 2 * asked[1].score
    assert factors_for(parse("the cart"))[Kind.TEST] < factors_for(parse("which tests cover the cart"))[Kind.TEST]


def test_a_named_path_wins_and_ties_are_broken_by_path():
    other = replace(PLAIN, path="b.md", kind=Kind.DOC, counts={}, named=True)
    assert rank([PLAIN, other], TERMS, CORPUS, WEIGHTS)[0].candidate.path == "b.md"
    twins = [replace(PLAIN, path=name) for name in ("c.py", "b.py", "a.py")]
    assert [one.candidate.path for one in rank(twins, TERMS, CORPUS, WEIGHTS)] == ["a.py", "b.py", "c.py"]
    assert rank([], TERMS, CORPUS, WEIGHTS) == []


@settings(max_examples=40)
@given(st.permutations(range(6)), st.lists(st.integers(0, 30), min_size=6, max_size=6))
def test_the_order_does_not_depend_on_the_order_given(order, counted):
    files = [replace(PLAIN, path=f"{n}.py", counts={"cart": (0, 0, counted[n])}) for n in range(6)]
    paths = [one.candidate.path for one in rank([files[n] for n in order], TERMS, CORPUS, WEIGHTS)]
    assert paths == [one.candidate.path for one in rank(files, TERMS, CORPUS, WEIGHTS)]


@settings(max_examples=40)
@given(st.integers(0, 20), st.integers(1, 20))
def test_more_occurrences_never_lower_a_score(times, more):
    assert score(counts={"cart": (0, 0, times + more)}) >= score(counts={"cart": (0, 0, times)})


def test_the_best_passage_is_where_the_distinct_terms_meet():
    lines = ["cart"] * 3 + [""] * 40 + ["def item_of(cart):", "    return item"] + [""] * 40 + ["item"]
    found = best(lines, {"cart": 1.0, "item": 1.0})
    assert (found.line, set(found.matched)) == (44, {"cart", "item"})
    assert best(["nothing"], {"cart": 1.0}) is None
    assert best([], {"cart": 1.0}) is None


def test_a_definition_beats_a_mention():
    assert best(["x = cart", "", "class Cart:"], {"cart": 1.0}).line == 3


def told(oid, message, *paths):
    return Commit(oid, 0, message, paths)


def test_similar_commits_lead_to_the_files_they_touched():
    commits = [
        told("a", "Fix the cart", "cart.py", "x.py"),
        told("b", "Paint the door", "door.py"),
        told("c", "Merge cart"),
    ]
    nearest = similar(commits, {"cart": 1.0})
    assert [(commit.oid, 0 < value <= 1) for commit, value in nearest] == [("a", True)]
    assert evidence(nearest, {"cart.py": "cart.py"}) == {"cart.py": [(nearest[0][1], 2)]}
    assert ages(commits, {"door.py": "door.py"}) == {"door.py": [1]}
    assert similar([], {"cart": 1.0}) == similar(commits, {}) == []


def test_a_moved_file_keeps_its_history_if_there_is_only_one_such():
    commits = [told("a", "", "flask/app.py", "lib/util.py", "gone.py", "here.py")]
    present = ["src/flask/app.py", "a/lib/util.py", "b/lib/util.py", "here.py"]
    assert todays_paths(commits, present) == {"here.py": "here.py", "flask/app.py": "src/flask/app.py"}
    assert todays_paths([told("b", "", "src/x/y.py")], ["x/y.py"]) == {"src/x/y.py": "x/y.py"}


def test_a_file_named_after_its_folder():
    assert path_tokens("shop/cart/__init__.py") == (frozenset({"cart", "init"}), frozenset({"shop"}))
    assert path_tokens("src/url_map.py")[0] == {"url", "map", "urlmap"}
    assert path_tokens(".env") == (frozenset({"env"}), frozenset())


@pytest.mark.parametrize(
    ("text", "names", "paths"),
    [
        ("why does asyncio.Queue.put wait?", {"asyncio", "Queue", "put"}, ()),
        ("crash in `parse_url` of src/net/url.py", {"parse_url"}, ("src/net/url.py",)),
        ("what is wrong/right with and/or?", set(), ()),
        ("see https://example.org/a/b.py for #12", set(), ()),
        ("readLine() hangs", {"readLine"}, ()),
    ],
)
def test_names_and_paths_are_seen_in_a_question(text, names, paths):
    found = parse(text)
    assert names <= set(found.names)
    assert found.paths == paths


def test_lines_of_stack_traces_are_seen():
    text = 'Traceback:\n  File "/app/shop/cart.py", line 12, in add\n  File "/app/shop/cart.py", line 7, in put\nor web/a.js:33:7'
    assert dict(parse(text).lines) == {"app/shop/cart.py": 7, "web/a.js": 33}


def test_places_and_code_weigh_more_than_the_verbs_of_a_request():
    terms = parse("cart: fix applyDiscount when the voucher expires\n\nthe warehouse is slow").terms
    assert terms["cart"] > terms["applydiscount"] > terms["voucher"] > terms["warehous"]
    assert terms["voucher"] > terms["fix"]
    assert parse("fix(router): loop").terms["router"] > parse("fix the router loop").terms["router"]


def test_trailers_and_addresses_are_not_searched():
    terms = parse("Fix the loop\n\nReported-by: Carla Cart <cart@example.org>\nFixes: #77\n").terms
    assert set(terms) == {"fix", "loop"}
    assert "door" in parse("Fixes: the door").terms


@settings(max_examples=60)
@given(st.text(max_size=300))
def test_any_question_is_parsed(text):
    found = parse(text)
    assert len(found.terms) <= 60
    assert all(weight > 0 for weight in found.terms.values())


def test_a_very_long_question_is_parsed_quickly():
    for piece in ("a", "a.", "/", "a/", "'", "`", ".", "#", "<a"):
        assert len(parse(piece * 200_000).terms) <= 60
