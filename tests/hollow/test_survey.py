from __future__ import annotations

import sqlite3

import pytest

from hollow.index import is_damage
from hollow.survey import survey
from hollow.usage import covering_tests, uses
from tests.support.surveys import SHOP, commit, empty, run_git, shop, write


def paths(found):
    return [hit.path for hit in found.hits]


@pytest.mark.parametrize(
    ("question", "path", "symbol"),
    [
        ("where is a voucher's discount applied?", "src/shop/cart.py", "Cart.applyDiscount"),
        ("how are receipts sent again when the connection breaks?", "src/shop/mail.py", "send_receipt"),
        ("who takes items out of the warehouse", "src/shop/stock.py", "reserve"),
        ("Cart.add_item loses the quantity", "src/shop/cart.py", "Cart.add_item"),
        ("render basket", "web/basket.js", "renderBasket"),
        ('File "/srv/src/shop/stock.py", line 5, in reserve', "src/shop/stock.py", "reserve"),
        ("what is in mail.py?", "src/shop/mail.py", None),
        ("which test covers the discount of a voucher?", "tests/test_cart.py", "test_apply_discount_of_a_voucher"),
    ],
)
def test_questions_lead_to_their_place(tmp_path, question, path, symbol):
    found = survey(shop(tmp_path / "r"), tmp_path / "i", question)
    assert path in paths(found)[: 2 if "test" in question else 1]
    hit = next(hit for hit in found.hits if hit.path == path)
    lines = (tmp_path / "r" / path).read_text().split("\n")
    assert 1 <= hit.line <= len(lines)
    assert list(hit.excerpt) == lines[hit.start - 1 : hit.start - 1 + len(hit.excerpt)]
    if symbol is not None:
        assert hit.symbol.name == symbol


def test_the_line_of_a_stack_trace_is_shown(tmp_path):
    found = survey(shop(tmp_path / "r"), tmp_path / "i", 'File "src/shop/mail.py", line 7, in send_receipt')
    assert (found.hits[0].path, found.hits[0].line, found.hits[0].named) == ("src/shop/mail.py", 7, True)


def test_the_same_state_and_question_give_the_same_answer(tmp_path):
    repo = shop(tmp_path / "r")
    first = survey(repo, tmp_path / "i", "discount voucher")
    write(repo, {"src/shop/cart.py": "x = 1\n"})
    assert survey(repo, tmp_path / "i", "discount voucher").hits != first.hits
    write(repo, {"src/shop/cart.py": SHOP["src/shop/cart.py"]})
    again = survey(repo, tmp_path / "i", "discount voucher")
    fresh = survey(repo, None, "discount voucher")
    assert again.hits == first.hits == fresh.hits
    assert (again.commits, again.similar) == (first.commits, first.similar)


def test_the_state_before_a_commit_knows_nothing_of_it(tmp_path):
    repo = shop(tmp_path / "r")
    later = commit(repo, "Gift wrapping of parcels", {"src/shop/gift.py": "def wrap(parcel):\n    pass\n"})
    assert paths(survey(repo, tmp_path / "i", "gift wrapping"))[0] == "src/shop/gift.py"
    before = survey(repo, tmp_path / "i", "gift wrapping", treeish=f"{later}^")
    assert "src/shop/gift.py" not in paths(before)
    assert "Gift wrapping" not in "".join(one.subject for one in before.similar)


def test_history_finds_what_the_words_of_the_code_do_not(tmp_path):
    repo = shop(tmp_path / "r")
    commit(repo, "Cure the flakiness of nightly jobs", {"src/shop/stock.py": SHOP["src/shop/stock.py"] + "\n# slow\n"})
    found = survey(repo, tmp_path / "i", "flakiness in the night")
    assert paths(found)[0] == "src/shop/stock.py"
    assert found.similar[0].subject == "Cure the flakiness of nightly jobs"


def test_nothing_matches_and_nothing_is_there(tmp_path):
    found = survey(shop(tmp_path / "r"), tmp_path / "i", "zyxwv qqq")
    assert (found.hits, len(found.paths)) == ((), 6)
    assert survey(shop(tmp_path / "s"), tmp_path / "j", "").hits == ()
    assert survey(empty(tmp_path / "e"), tmp_path / "k", "cart").paths == ()


@pytest.mark.parametrize("start", range(3, 12))
def test_an_index_with_a_broken_page_is_made_anew(tmp_path, start):
    repo, folder = shop(tmp_path / "r"), tmp_path / "i"
    expected = survey(repo, folder, "voucher discount").hits
    file = folder / "survey.sqlite3"
    whole = file.read_bytes()
    page = 4096
    file.write_bytes(whole[: start * page] + b"\xa5" * page + whole[(start + 1) * page :])
    assert survey(repo, folder, "voucher discount").hits == expected
    assert survey(repo, folder, "voucher discount").read == 0


def test_an_index_that_lost_a_table_is_made_anew(tmp_path):
    repo, folder = shop(tmp_path / "r"), tmp_path / "i"
    survey(repo, folder, "cart")
    db = sqlite3.connect(folder / "survey.sqlite3")
    db.execute("DROP TABLE words_data")
    db.commit()
    db.close()
    assert paths(survey(repo, folder, "voucher discount"))[0] == "src/shop/cart.py"
    assert survey(repo, folder, "voucher discount").read == 0


def test_an_index_that_is_held_by_another_is_not_removed():
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
    assert not is_damage(busy)
    assert is_damage(sqlite3.DatabaseError("The index has schema 7, not 1."))


def test_code_ranks_before_prose_and_generated_files(tmp_path):
    repo = shop(tmp_path / "r")
    again = "voucher discount " * 30
    commit(repo, "more", {"CHANGELOG.md": again, "docs/a.md": again, "yarn.lock": again, "dist/a.min.js": again})
    assert paths(survey(repo, tmp_path / "i", "voucher discount"))[0] == "src/shop/cart.py"


def test_strange_files_do_not_disturb(tmp_path):
    repo = shop(tmp_path / "r")
    strange = {
        "new\nline voucher.py": "voucher = 1\r\n", "min.js": "var voucher=" + "1+" * 300_000, "bin.py": b"voucher\0\1", "empty.py": "",
        "latin.py": "# Gutschein voucher \xe9".encode("latin-1"), "cr.py": "a = 1\rvoucher = 2\r",
    }  # fmt: skip
    commit(repo, "strange", strange)
    found = survey(repo, tmp_path / "i", "voucher in cr.py")
    assert paths(found)[0] == "cr.py"
    assert found.hits[0].line == 2
    assert "new\nline voucher.py" in paths(found)


def test_uses_are_whole_words_in_tracked_text(tmp_path):
    repo = shop(tmp_path / "r")
    write(repo, {"untracked.py": "applyDiscount\n"})
    found = uses(repo, ["applyDiscount", "x", "no such; name"])
    assert [(use.path, use.line) for use in found] == [("src/shop/cart.py", 11), ("tests/test_cart.py", 5)]
    assert uses(repo, ["applyDisc"]) == uses(repo, []) == []
    assert uses(tmp_path, ["applyDiscount"]) == []
    run_git(repo, "mv", "web/basket.js", "web/a b\tc.js")
    assert uses(repo, ["renderBasket"])[0].path == "web/a b\tc.js"


def test_tests_are_matched_by_name_then_by_use(tmp_path):
    repo = shop(tmp_path / "r")
    present = ["tests/test_cart.py", "pkg/stock_test.go", "web/basket.spec.ts", "src/shop/cart.py", "tests/test_url.py"]
    assert covering_tests("src/shop/cart.py", present, []) == ["tests/test_cart.py"]
    assert covering_tests("pkg/stock.go", present, []) == ["pkg/stock_test.go"]
    assert covering_tests("web/basket.ts", present, []) == ["web/basket.spec.ts"]
    mentions = uses(repo, ["applyDiscount"])
    assert covering_tests("src/other.py", present, mentions) == ["tests/test_cart.py"]
    assert covering_tests("src/other.py", present, []) == []


@pytest.mark.parametrize(
    ("kinds", "count"),
    [
        ("", 0),
        ("s" * 5, 5),
        ("s" * 30, 20),
        ("t" * 10 + "s" * 30, 22),
        ("t" * 30 + "s" * 30, 40),
        ("t" * 60, 40),
        ("t" * 25, 25),
    ],
)
def test_tests_and_documents_do_not_crowd_out_program_text(kinds, count):
    from hollow.kinds import Kind
    from hollow.survey import _enough

    assert _enough([Kind.SOURCE if each == "s" else Kind.TEST for each in kinds], 20) == count
