"""What people read: golden pictures of dashboard, tables and outcome, and strangers' text that cannot break them."""

from __future__ import annotations

import html
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import views
from agents.times import epoch

GOLDEN = Path(__file__).parent / "golden"
NOW = epoch("2026-03-03T12:00:00Z") or 0.0


def entry(run: str, event: str = "run.started", **facts: Any) -> dict[str, Any]:
    return {"seq": 1, "time": "2026-03-01T00:00:00Z", "event": event, "run": run, "facts": facts}


def row(**changes: Any) -> dict[str, Any]:
    """One row of the ledger's fold, with *changes*."""
    usual = {
        "run": "26-03-01_0915__x__0be1", "id": "0be1", "type": "scout", "engine": "hollow", "agent": "cedar", "isolation": "full",
        "status": "DONE", "started_at": "2026-03-01T09:15:00.000Z", "ended_at": "2026-03-01T09:15:04.200Z",
        "task": "why is the start slow?", "patch": None, "usage": {}, "failure": None,
    }  # fmt: skip
    return {**usual, **changes}


ROWS = [
    row(id="c0de", type="fix", engine="claude", agent=None, status="ACTIVE", started_at="2026-03-03T11:58:30Z", ended_at=None, task="optimize auth middleware"),
    row(id="feed", type="fix", engine="codex", agent=None, status="MERGED", started_at="2026-03-03T10:00:00Z", ended_at="2026-03-03T10:01:00Z", patch={"added": 2, "removed": 2}, usage={"input_tokens": 12_000, "output_tokens": 345, "turns": 3, "cost_usd": 0.0412}, task="rename the cart"),
    row(id="cafe", type="fix", engine="claude", agent=None, status="REJECTED", started_at="2026-03-03T09:00:00Z", ended_at="2026-03-03T09:03:00Z", patch={"added": 900, "removed": 1}, usage={"input_tokens": 2_400_000, "cost_usd": 7.5}, task="rewrite everything"),
    row(id="beef", type="fix", engine="claude", agent=None, status="REVIEW", started_at="2026-03-03T08:00:00Z", ended_at="2026-03-03T08:12:09Z", patch={"added": 12, "removed": 3}, usage={"input_tokens": 812, "output_tokens": 96}, task="tidy | imports"),
    row(id="dead", type="plan", agent="cipher", isolation="none", status="CRASHED", started_at="2026-03-02T23:00:00Z", ended_at="2026-03-03T01:05:00Z", task="split the *big* module"),
    row(),
]  # fmt: skip


def golden(name: str, text: str) -> None:
    """Compare *text* with the golden file *name*; ``GOLDEN=write`` in the environment draws it anew."""
    path = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


OUTCOMES = [
    row(usage={"input_tokens": 812, "output_tokens": 96}),
    row(status="CRASHED", id="dead", failure={"kind": "oom", "message": "The agent was killed (SIGKILL)."}),
    row(status="STOPPED", id="feed", ended_at=None),
    row(status="REVIEW", id="beef", type="fix", patch={"added": 12, "removed": 3}, usage={"input_tokens": 12_000, "output_tokens": 300, "cost_usd": 0.04}),
    row(status="CRASHED", id="face", usage={"turns": 12}, failure={"kind": "budget", "message": "Its budget of 12 turns is spent."}),
    row(status="CRASHED", id="f00d", usage={"input_tokens": 1}, failure={"kind": "budget", "message": "Its budget of 100 tokens is spent: it used 101."}),
    row(status="CRASHED", id="fade", usage={"cost_usd": 0.001}, failure={"kind": "budget", "message": "Its budget was spent (error_max_budget_usd)."}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("index.md", lambda: views.index_md(ROWS, older=False)),
        ("index_older.md", lambda: views.index_md(ROWS[-1:], older=True)),
        ("index_empty.md", lambda: views.index_md([], older=False)),
        ("status.txt", lambda: views.status(ROWS, NOW) + "\n"),
        ("status_empty.txt", lambda: views.status([], NOW) + "\n"),
        ("list.txt", lambda: views.listing(ROWS, NOW) + "\n"),
        ("list_empty.txt", lambda: views.listing([], NOW) + "\n"),
        ("outcome.txt", lambda: "\n".join(views.outcome(each, ".agents/runs/x") for each in OUTCOMES) + "\n"),
    ],
)
def test_what_people_read_is_as_it_was_agreed(name: str, text: Any) -> None:
    golden(name, text())


# --- rows from the ledger ---------------------------------------------------------------------------------------------


def test_the_newest_run_comes_first_and_later_facts_win() -> None:
    """T152: INDEX.md shows the newest run first, whatever happened last."""
    rows = views.fold(
        [
            entry("old", id="1", status="ACTIVE", started_at="2026-03-01T09:00:00Z"),
            entry("new", id="2", status="ACTIVE", started_at="2026-03-02T09:00:00Z"),
            entry("old", "run.finished", status="DONE", ended_at="2026-03-02T10:00:00Z"),
        ]
    )
    assert [(each["run"], each["status"]) for each in rows] == [("new", "ACTIVE"), ("old", "DONE")]
    text = views.index_md(rows, older=False)
    assert text.index("| 2 |") < text.index("| 1 |")


def test_of_two_starts_in_the_same_instant_the_later_entry_is_newer() -> None:
    """T152: also under a clock that stands still."""
    same = "2026-03-01T09:00:00.000Z"
    rows = views.fold([entry(name, started_at=same) for name in ("a", "b", "c")])
    assert [each["run"] for each in rows] == ["c", "b", "a"]


def test_a_run_without_a_start_comes_last() -> None:
    rows = views.fold([entry("lost", status="DONE"), entry("known", started_at="2026-03-01T09:00:00Z")])
    assert [each["run"] for each in rows] == ["known", "lost"]


def test_a_collected_run_is_shown_no_more() -> None:
    assert views.fold([entry("a", status="DONE"), entry("a", "run.collected", status="COLLECTED")]) == []


@pytest.mark.parametrize(
    "odd",
    [
        {}, {"run": None, "facts": {}}, {"run": "a", "facts": None}, {"run": 3, "facts": {}}, {"run": "a", "facts": []},
        entry("a", "goal.completed", status="completed", type="goal"), entry("a", "suffering.added", status="x"), {**entry("a", status="x"), "event": None},
    ],
)  # fmt: skip
def test_what_is_not_said_of_a_run_is_no_row(odd: dict[str, Any]) -> None:
    base = entry("a", status="DONE", started_at="2026-03-01T09:00:00Z")
    assert views.fold([odd]) == []
    assert views.fold([base, odd]) == views.fold([base])


# --- strangers' text --------------------------------------------------------------------------------------------------

HOSTILE = {
    "pipes": "a | b || c |",
    "a closing backslash": "path\\",
    "backslash and pipe": "a\\|b",
    "html": "<img src=x onerror=alert(1)><!-- ",
    "entities": "&lt;script&gt; &#60;b&#62; &amp;",
    "a link": "[click](http://evil.example) ![i](x) https://evil.example www.evil.example <http://e>",
    "code": "`rm -rf` ``` ~~gone~~ **bold** __b__ # head",
    "math and mentions": "$x$ @admin #12",
    "new lines": "one\ntwo\r\nthree\n\n| x | y |\n|---|---|",
    "separators": "a\u2028b\u2029c\x0bd\x0ce\x85f\x1cg",
    "escapes": "\x1b[2J\x1b]0;owned\x07\x1b[31mred\x9b1m",
    "bidi": "abc\u202e\u2066txt.exe\u2069\u200f",
    "invisible": "a\u200bb\u200dc\ufeffd\u2060e",
    "NUL and delete": "a\0b\x7fc\x08\x08",
    "half a pair": "\ud83d x \udcff",
    "too long": "x" * 10_000,
    "blank": " \t\u3000 ",
}  # fmt: skip
FIELDS = ("task", "id", "type", "engine", "agent", "status", "isolation")
DRIVES = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("field", FIELDS)
def test_no_text_breaks_the_dashboard(field: str, text: str) -> None:
    """T152: K08: every row of the table has its ten cells, and nothing in them is Markdown, HTML or a command."""
    shown = views.index_md([row(**{field: text}), row()], older=False)
    lines = shown.split("\n")
    assert len(lines) == len(views.index_md([row(), row()], older=False).split("\n"))
    assert not DRIVES.search(shown)
    for line in lines[4:6]:
        assert line.count("|") == 11
        cells = line[2:-2].split(" | ")
        assert len(cells) == 10
        for cell in cells:
            assert not re.search(r"[<>`$@]|(?<!\\)[*_\[\]~#!](?!\d+;)|://|www\.", cell.replace("&#", "")), cell
            assert not re.search(r"\\$", cell)


@pytest.mark.parametrize("text", [text for text in HOSTILE.values() if text.isprintable() and len(text) < 60])
def test_a_reader_of_the_dashboard_sees_the_text_as_it_was(text: str) -> None:
    """K08: escaped once, not twice."""
    line = views.index_md([row(task=text)], older=False).split("\n")[4]
    cell = line[2:-2].split(" | ")[9]
    rendered = html.unescape(re.sub(r"\\([*_\[\]#~!])", r"\1", cell))
    assert rendered == text


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("field", FIELDS)
def test_no_text_drives_a_terminal_or_adds_a_line(field: str, text: str) -> None:
    """T152: nor a second row."""
    rows = [row(**{field: text}), row()]
    for shown in (views.listing(rows, NOW), views.table(rows, NOW)):
        assert len(shown.split("\n")) == 3
        assert not DRIVES.search(shown)
    assert not DRIVES.search(views.status(rows, NOW))
    for failure in ({"kind": text, "message": text}, {"kind": "budget", "message": text}):
        facts = {**row(failure=failure), field: text}
        shown = views.outcome(facts, text)
        assert not DRIVES.search(shown)
        assert len(shown.split("\n")) == 2
    facts = {**row(status="CRASHED", failure={"kind": "budget", "message": text}), "id": text}
    assert len(views.outcome(facts, text).split("\n")) == 3


@settings(max_examples=120, deadline=None)
@given(st.text(max_size=80), st.integers(1, 80))
def test_a_plain_line_is_short_printable_and_the_text_where_that_was_so(text: str, limit: int) -> None:
    line = views.plain(text, limit)
    assert len(line) <= limit
    assert line.isprintable()
    if text.isprintable() and len(text) <= limit:
        assert line == text
    elif len(text) > limit:
        assert line.endswith("…")


anything = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10) | st.lists(st.integers(), max_size=2)
)
facts = st.dictionaries(
    st.sampled_from([*FIELDS, "started_at", "ended_at", "patch", "usage", "failure"]),
    anything
    | st.dictionaries(st.sampled_from(["added", "removed", "kind", "message", "input_tokens"]), anything, max_size=3),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), facts), max_size=4))
def test_a_ledger_with_any_facts_can_be_shown(entries: list[tuple[str, dict[str, Any]]]) -> None:
    """C29: a hand-edited ledger is for `verify` to judge, not for `status` to fall over."""
    rows = views.fold([entry(run, **each) for run, each in entries])
    for shown in (views.index_md(rows, older=False), views.status(rows, NOW), views.listing(rows, NOW)):
        assert not DRIVES.search(shown)
    for each in rows:
        assert 2 <= len(views.outcome(each, "box").split("\n")) <= 4


# --- usage and what comes next ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (None, ""), ({}, ""), ("x", ""), ({"turns": 3}, ""), ({"input_tokens": 0, "output_tokens": 0}, ""),
        ({"input_tokens": 900, "output_tokens": 8}, "908 tok"), ({"input_tokens": 999}, "999 tok"), ({"input_tokens": 1000}, "1.0k tok"),
        ({"input_tokens": 12_000, "cache_read_input_tokens": 345, "cost_usd": 0.0412}, "12.3k tok · $0.04"),
        ({"input_tokens": 999_949}, "999.9k tok"), ({"input_tokens": 999_950}, "1.0M tok"), ({"input_tokens": 5 * 10**12}, "5000.0G tok"),
        ({"cost_usd": 0.001}, "under $0.01"), ({"cost_usd": 12}, "$12.00"), ({"cost_usd": 0}, ""), ({"total_cost_usd": 0.5}, "$0.50"),
        ({"input_tokens": True, "output_tokens": -3, "cost_usd": math.nan}, ""), ({"input_tokens": 10**400, "cost_usd": math.inf}, ""),
        ({"input_tokens": "\x1b[1m", "cost_usd": "\x1b[1m"}, ""),
    ],
)  # fmt: skip
def test_what_was_spent_is_said_in_few_words(usage: Any, text: str) -> None:
    """P21: also of what an older version or a hand has written into the ledger."""
    assert views.spent(usage) == text
    assert f"| {text} |" in views.index_md([row(usage=usage)], older=False)


@pytest.mark.parametrize("status", ["ACTIVE", "DONE", "STALLED", "STOPPED", "MERGING", "MERGED", "REJECTED"])
def test_only_where_a_human_has_to_go_on_a_command_is_named(status: str) -> None:
    assert "./agent" not in views.outcome(row(status=status, patch={"added": 1}), "box")


def test_a_patch_names_how_to_look_at_it_and_how_to_merge_it() -> None:
    """The operator's next step is on the screen, diff before merge."""
    shown = views.outcome(row(status="REVIEW", id="beef"), "box")
    assert shown.index("./agent diff beef") < shown.index("./agent merge beef")


@pytest.mark.parametrize(
    ("message", "option"),
    [
        ("Its budget of 12 turns is spent.", "--max-turns N"), ("Its budget was spent (error_max_turns).", "--max-turns N"),
        ("Its budget of $2 is spent: it used $2.10.", "--max-usd N"), ("Its budget was spent (error_max_budget_usd).", "--max-usd N"),
        ("Its budget of 5 tokens is spent: it used 7.", "--max-tokens N"), ("", "--max-turns N"),
    ],
)  # fmt: skip
def test_a_spent_budget_names_the_option_that_raises_it(message: str, option: str) -> None:
    """P12: a budget that is spent is no end: the run goes on with more."""
    facts = row(status="CRASHED", id="face", failure={"kind": "budget", "message": message})
    assert views.outcome(facts, "box").endswith(f"./agent resume face {option}")
    assert "resume" not in views.outcome({**facts, "failure": {"kind": "oom", "message": message}}, "box")


@pytest.mark.parametrize("status", ["MERGING", "MERGED", "REJECTED"])
def test_what_became_of_a_patch_is_shown_and_waits_no_more(status: str) -> None:
    """T149, T152: after the gate a run is neither running nor waiting."""
    start = entry("a", id="beef", status="ACTIVE", started_at="2026-03-01T09:00:00Z", task="x")
    rows = views.fold([start, entry("a", "run.finished", status="REVIEW"), entry("a", "run.merged", status=status)])
    for shown in (views.status(rows, NOW), views.listing(rows, NOW), views.index_md(rows, older=False)):
        assert status in shown
        assert "REVIEW" not in shown
    assert views.status(rows, NOW).startswith("0 running, 0 waiting for review\n\n")


# --- spans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""), (-5, "0.0 s"), (0, "0.0 s"), (4.26, "4.3 s"), (9.94, "9.9 s"), (10, "10 s"), (59, "59 s"), (59.4, "59 s"), (60, "1 m 0 s"),
        (119.9, "1 m 59 s"), (3599.99, "59 m 59 s"), (3600, "1 h 0 m"), (7325, "2 h 2 m"), (86399.9, "23 h 59 m"), (86400, "1 d 0 h"),
        (1_000_000, "11 d 13 h"), (math.inf, ""), (math.nan, ""),
    ],
)  # fmt: skip
def test_a_span_is_said_in_two_units(seconds: float | None, text: str) -> None:
    assert views.span(seconds) == text


@pytest.mark.parametrize(
    ("changes", "now", "seconds"),
    [
        ({}, None, 4.2),
        ({"ended_at": None}, NOW, NOW - (epoch("2026-03-01T09:15:00Z") or 0)),
        ({"ended_at": None}, None, None),
        ({"started_at": None}, NOW, None),
        ({"started_at": "2026-03-05T00:00:00Z", "ended_at": None}, NOW, 0),
        ({"started_at": "soon"}, NOW, None),
    ],
)
def test_how_long_a_run_took(changes: dict[str, Any], now: float | None, seconds: float | None) -> None:
    taken = views.took(row(**changes), now)
    assert taken == (None if seconds is None else pytest.approx(seconds))


def test_columns_that_nobody_fills_are_left_out() -> None:
    shown = views.table([row(agent=None, patch=None)], NOW)
    assert "agent" not in shown
    assert "patch" not in shown
    assert shown.startswith("status  id    type   engine  age")


@pytest.mark.parametrize(
    ("patch", "text"),
    [(None, ""), ({"added": 12, "removed": 3}, "+12 −3"), ({}, "+0 −0"), ("x", ""), ({"added": "\x1b[1m"}, "+·[1m −0")],
)
def test_the_size_of_a_patch(patch: Any, text: str) -> None:
    assert views.patch_size({"patch": patch}) == text


def test_the_newest_runs_are_read_from_the_end_and_no_further() -> None:
    """T152: as many runs as are shown, in order, each with all that the lines read say of it."""
    read: list[bytes] = []

    def parse(line: bytes) -> dict[str, object] | None:
        read.append(line)
        return json.loads(line) if line else None

    lines = [json.dumps({"run": f"run{n // 2}", "n": n}).encode() for n in range(100)]
    entries, more = views.newest([*lines, b""], 3, parse)
    assert ([entry["n"] for entry in entries], more) == ([94, 95, 96, 97, 98, 99], True)
    assert len(read) == 8
    assert views.newest(lines, 50, json.loads) == ([json.loads(line) for line in lines], False)
    assert views.newest([], 3, json.loads) == ([], False)
