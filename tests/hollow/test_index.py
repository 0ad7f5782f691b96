from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hollow.documents import decoded, fields, is_text
from hollow.history import recent, touching
from hollow.index import SCHEMA, Index
from hollow.tracked import snapshot
from tests.support.surveys import commit, empty, run_git, shop, write

ROOT = Path(__file__).resolve().parents[2]


def paths_matching(index, snap, *terms):
    found = index.search(terms, 50)
    return [file.path for file in snap.files if index.id_of(file) in found]


def test_only_what_changed_is_read_again(tmp_path):
    repo, folder = shop(tmp_path / "r"), tmp_path / "i"
    with Index(folder) as index:
        assert index.refresh(snapshot(repo)) == 6
        assert index.refresh(snapshot(repo)) == 0
    write(repo, {"src/shop/stock.py": "def shelve(crate):\n    pass\n"})
    with Index(folder) as index:
        snap = snapshot(repo)
        assert index.refresh(snap) == 1
        assert paths_matching(index, snap, "shelv") == ["src/shop/stock.py"]
        assert paths_matching(index, snap, "warehous") == []
        assert index.totals().documents == 6


def test_the_parts_of_a_name_and_the_whole_are_found(tmp_path):
    repo = shop(tmp_path / "r")
    with Index(tmp_path / "i") as index:
        snap = snapshot(repo)
        index.refresh(snap)
        assert "src/shop/cart.py" in paths_matching(index, snap, "discount")
        assert "src/shop/cart.py" in paths_matching(index, snap, "applydiscount")
        cart = next(file for file in snap.files if file.path.endswith("cart.py") and file.path.startswith("src"))
        number = index.id_of(cart)
        document = index.documents([number])[number]
        assert document.counts[0]["discount"] == 1
        assert document.counts[1]["voucher"] >= 1
        assert index.frequencies(["discount", "absent"]) == {"discount": 3, "absent": 0}


def test_no_terms_and_unknown_numbers_find_nothing(tmp_path):
    with Index(tmp_path / "i") as index:
        assert index.search([], 5) == {}
        assert index.documents([7]) == {}
        assert index.totals().documents == 0
        assert index.refresh(snapshot(empty(tmp_path / "r"))) == 0


@pytest.mark.parametrize("damage", ["garbage", "truncated", "other schema", "foreign tables"])
def test_a_damaged_or_foreign_index_is_rebuilt(tmp_path, damage):
    repo, folder = shop(tmp_path / "r"), tmp_path / "i"
    with Index(folder) as index:
        index.refresh(snapshot(repo))
    file = folder / "survey.sqlite3"
    if damage == "garbage":
        file.write_bytes(b"not a database at all" * 500)
    elif damage == "truncated":
        file.write_bytes(file.read_bytes()[:5000])
    else:
        if damage == "foreign tables":
            file.unlink()
        db = sqlite3.connect(file)
        db.execute("CREATE TABLE other (x)")
        db.execute(f"PRAGMA user_version = {SCHEMA + 1 if damage == 'other schema' else 0}")
        db.commit()
        db.close()
    with Index(folder) as index:
        assert index.refresh(snapshot(repo)) == 6
    with Index(folder) as index:
        assert index.refresh(snapshot(repo)) == 0


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with Index(tmp_path / "file" / "i") as index:
        snap = snapshot(shop(tmp_path / "r"))
        assert index.refresh(snap) == 6
        assert paths_matching(index, snap, "warehous") == ["src/shop/stock.py"]
    assert (tmp_path / "file").read_text() == "in the way"


def test_processes_share_one_index(tmp_path):
    repo, folder = shop(tmp_path / "r"), tmp_path / "i"
    write(repo, {f"many/f{n}.py": f"def gadget_{n}():\n    return {n}\n" for n in range(300)})
    run_git(repo, "add", "-A")
    program = (
        "import sys; from pathlib import Path; from hollow.index import Index; from hollow.tracked import snapshot\n"
        "with Index(Path(sys.argv[2])) as index:\n"
        "    index.refresh(snapshot(Path(sys.argv[1]))); print(index.totals().documents, len(index.search(['gadget'], 999)))"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program, repo, folder], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [child.communicate(timeout=60)[0] for child in started] == ["306 300\n"] * 4


def test_progress_is_told_by_slice(tmp_path):
    repo = empty(tmp_path / "r")
    commit(repo, "many", {f"f{n}.py": f"x{n} = 1\n" for n in range(450)})
    told = []
    with Index(tmp_path / "i") as index:
        index.refresh(snapshot(repo), lambda done, total: told.append((done, total)))
    assert told == [(400, 450), (450, 450)]


def test_the_same_content_in_two_places_and_languages(tmp_path):
    repo = empty(tmp_path / "r")
    commit(repo, "twins", {"a.py": "def twin(): pass\n", "b.py": "def twin(): pass\n", "c.md": "def twin(): pass\n"})
    with Index(tmp_path / "i") as index:
        snap = snapshot(repo)
        assert index.refresh(snap) == 2
        assert paths_matching(index, snap, "twin") == ["a.py", "b.py", "c.md"]


def test_fields_of_binary_strange_and_huge_contents():
    assert fields("a.py", None) == fields("a.py", b"\0\1\2") == fields("a.bin", b"")
    assert "na" in fields("a.py", b"\xff na\xefve = 1\r\n").body.split()
    assert fields("a.js", b"x" * 500_000).lengths == (0, 0, 0)
    assert fields("a.txt", b"word\n" * 90_000).lengths[2] == 30
    assert decoded("\ufeffa\r\nb\rc".encode()) == "a\nb\nc"
    assert is_text(b"text")


def test_history_is_read_once_and_remembered(tmp_path):
    repo = shop(tmp_path / "r")
    with Index(tmp_path / "i") as index:
        first = recent(repo, index)
        assert [commit.subject for commit in first] == [
            "Send receipts again when the mail server hangs up",
            "Open the shop",
        ]
        assert (first[0].paths, first[0].date) == (("src/shop/mail.py",), "2024-05-01")
        assert set(index.commits([one.oid for one in first])) == {one.oid for one in first}
        assert recent(repo, index) == first
        assert recent(repo, index, "HEAD~1") == first[1:]
        assert recent(repo, index, depth=1) == first[:1]
        assert [one.oid for one in touching(first, ["README.md"], 5)] == [first[1].oid]


def test_history_of_odd_commits(tmp_path):
    repo = empty(tmp_path / "r")
    with Index(None) as index:
        assert recent(repo, index) == ()
    (repo / os.fsdecode(b"\xff.py")).write_text("x")
    write(repo, {"a\nb.py": "x"})
    run_git(repo, "add", "-A")
    run_git(repo, "commit", "-qm", "odd names", "--allow-empty")
    run_git(repo, "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    run_git(
        repo,
        "-c",
        "i18n.commitEncoding=utf-8",
        "commit",
        "-q",
        "--allow-empty",
        "-F",
        "-",
        feed=b"mark \x01 and \xff\n",
    )
    commit(repo, "wide", {f"w{n}.py": "x" for n in range(60)})
    with Index(None) as index:
        found = {one.subject: one.paths for one in recent(repo, index)}
    assert set(found["odd names"]) == {os.fsdecode(b"\xff.py"), "a\nb.py"}
    assert found[""] == ()
    assert found["wide"] == ()
