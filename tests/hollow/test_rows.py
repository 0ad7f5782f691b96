"""Rows of the table of outcomes at the books and the pure rules: the ones that are a sentence each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hollow.desk import standing
from hollow.memory.files import Files
from hollow.memory.memory import Memory
from hollow.memory.requests import RequestBook
from hollow.substrate import goals, request_lint, request_text
from hollow.substrate.mechanical import SUBSTANCE, file_fault
from hollow.substrate.model import Request, Result
from hollow.substrate.requests import SPEC_LIMIT

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_777_711_208.0
PATCH = "--- a/shop/db.py\n+++ b/shop/db.py\n@@ -1 +1 @@\n-one\n+two\n"


@pytest.fixture
def book(tmp_path: Path) -> RequestBook:
    return RequestBook(Files(tmp_path / "hollow"))


def submit(book: RequestBook, description: str, spec: str = "A function.", token: str = "0" * 12) -> dict[str, Any]:
    return book.submit("cedar", description, spec, "", "implement", token=token, now=NOW, look=lambda _path: None)


def test_a_spec_of_just_the_limit_is_whole(book: RequestBook, tmp_path: Path) -> None:
    """T7: 4000-char spec -> truncated false, no overflow file."""
    given = submit(book, "Write the router", "s" * SPEC_LIMIT)
    assert (SPEC_LIMIT, given["truncated"], given["spec_length"]) == (4000, False, 4000)
    [line] = (tmp_path / "hollow" / "claude_requests.jsonl").read_text().splitlines()
    assert json.loads(line)["spec"] == "s" * 4000
    assert not (tmp_path / "hollow" / "design").exists()


def test_what_was_rejected_is_never_pending_again(book: RequestBook) -> None:
    """T12: operator rejects -> rejected, asked for by id, by list, and by submitting it again."""
    name = submit(book, "Inject the Void_Cathode definition")["request_id"]
    book.answer(name, "rejected", "There is no such component.", NOW + 60)
    found = book.status("cedar", name)
    assert (found["ok"], found["status"], found["result"]) == (True, "rejected", "There is no such component.")
    assert [each["status"] for each in book.status("cedar")["requests"]] == ["rejected"]
    again = submit(book, "Inject the Void_Cathode definition", token="1" * 12)
    assert (again["request_id"], again["status"], again["result"]) == (name, "rejected", "There is no such component.")
    assert book.pending("cedar") == ()


def test_a_patch_names_its_file_without_what_git_puts_before_it() -> None:
    """T25: a request's flags name paths of the repository, not the sides of a patch."""
    request = Request(
        request_id="req-000000000001", agent="vault", timestamp="2026-05-02 08:40:08", description="return two",
        spec=PATCH, design_path="", request_type="change", fingerprint="f", spec_length=len(PATCH), truncated=False,
    )  # fmt: skip
    assert request_lint.flags(request, {"shop/db.py"}.__contains__) == ()
    [flag] = request_lint.flags(request, lambda _path: False)
    assert flag == "missing-path: these are not there: shop/db.py."
    # Kept beside the queue as well, it is one patch all the same.
    assert request_text.task(request, PATCH).count("+two") == 1


@pytest.mark.parametrize("step", ["fs_write", "memory_set"])
def test_a_mind_that_repeats_itself_reaches_the_gate_and_no_further(step: str) -> None:
    """T84: each step is worth what the table says, five times in a row the same."""
    goal = goals.new("cedar", "Write it down", "existence", "b" * 40, "0123456789ab", NOW)[0]
    for _ in range(5):
        goal, _ = goals.advance(goal, step, Result(ok=True), NOW, call="the same")
    assert goal.progress == 5 * goals.delta(step, dynamic=False)
    for _ in range(7):
        goal, _ = goals.advance(goal, step, Result(ok=True), NOW, call="the same")
    assert goal.progress == goals.FULL


@pytest.mark.parametrize(("size", "enough"), [(SUBSTANCE - 1, False), (SUBSTANCE, True)])
def test_how_much_text_is_a_document(size: int, enough: bool) -> None:
    """T87: substance is counted in bytes of text, and padding is none."""
    text = ("word " * SUBSTANCE)[: size - 1] + "."
    assert (file_fault("workspace/cedar/a.md", f"\n{text}\n") is None) is enough
    assert file_fault("workspace/cedar/a.md", "two" + " " * SUBSTANCE + "words") is not None


def test_the_operator_sees_that_a_ghost_is_broken(tmp_path: Path) -> None:
    """T113: in three cycles it failed, so it is broken, in quarantine or not; before that it is only out of use."""
    memory = Memory(tmp_path / "hollow")
    for cycle in range(3):
        memory.broken.failed(
            "safe_file_executor", cycle=f"cycle-{cycle}", reason="ghost: no .py found", sha="", now=NOW + cycle
        )
        [row] = standing.tools(memory, NOW)
        assert (row["name"], row["failures"]) == ("safe_file_executor", cycle + 1)
        assert row["state"] == ("broken" if cycle == 2 else "quarantined")
