"""What people read: the dashboard, tables and status lines, from plain mappings. Imports next to nothing."""

from __future__ import annotations

import sys

from agents.times import epoch

# The name alone tells type checkers; importing `typing` would cost `status` 4 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Final

COLUMNS: Final = ("status", "id", "type", "engine", "agent", "age", "took", "patch", "task")
SHOWN: Final = frozenset({*COLUMNS, "started_at", "ended_at"})
"""Facts that :func:`table` is made of."""
_TITLE: Final = 60
_NEWEST: Final = 10
_OPEN: Final = ("ACTIVE", "STALLED", "REVIEW")

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def span(seconds: float | None) -> str:
    """A length of time in two units at most, as people say it; empty for None and for what is no length."""
    if seconds is None or not abs(seconds) < _DAY * 1_000_000:
        return ""
    if seconds < _MINUTE:
        return f"{max(seconds, 0):.1f} s" if seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004 - one digit reads better
    # Whole seconds from here on: rounding the rest alone would say "1 m 60 s".
    whole = int(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} m {whole % _MINUTE} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} m"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def plain(text: object, limit: int = _TITLE) -> str:
    """*text* on one line, at most *limit* characters, with nothing in it that could drive a terminal."""
    line = "".join(char if char.isprintable() else "·" for char in str(text or ""))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def fold(entries: Iterable[Mapping[str, Any]], wanted: Callable[[str], bool] = lambda _: True) -> list[dict[str, Any]]:
    """One row a run from ledger *entries* in order, newest run first: later facts replace earlier ones (T152).

    Only what is said of the run itself counts: an agent's goal has a status too. Kept are the facts *wanted* by their
    names; rows of a long history are many.
    """
    rows: dict[str, dict[str, Any]] = {}
    for entry in entries:
        run, facts = entry.get("run"), entry.get("facts")
        if isinstance(run, str) and isinstance(facts, dict) and str(entry.get("event")).startswith("run."):
            row = rows.setdefault(run, {"run": run})
            # A parser makes the names anew for every line.
            row.update((sys.intern(name), value) for name, value in facts.items() if wanted(name))
            if row.get("status") == "COLLECTED":
                del rows[run]
    # Of two that started in the same instant the later one in the ledger is the newer.
    return sorted(rows.values(), key=lambda row: str(row.get("started_at") or ""))[::-1]


def newest(
    lines: Sequence[bytes], count: int, read: Callable[[bytes], Mapping[str, Any] | None]
) -> tuple[list[Mapping[str, Any]], bool]:
    """The entries of the last *count* runs that ledger *lines* speak of, in order, and whether there are more runs.

    Read from the end, so that the cost is that of the rows that are shown.
    """
    seen: set[object] = set()
    kept: list[Mapping[str, Any]] = []
    for line in reversed(lines):
        entry = read(line)
        if entry is None:
            continue
        if len(seen) == count and entry.get("run") not in seen:
            return kept[::-1], True
        seen.add(entry.get("run"))
        kept.append(entry)
    return kept[::-1], False


def took(row: Mapping[str, Any], now: float | None = None) -> float | None:
    """Seconds from a run's start to its end, or to *now* while it lasts."""
    start, end = epoch(row.get("started_at")), epoch(row.get("ended_at"))
    end = now if end is None else end
    return None if start is None or end is None else max(0.0, end - start)


def patch_size(row: Mapping[str, Any]) -> str:
    """Lines added and removed, or nothing where there is no patch."""
    patch = row.get("patch")
    # A patch of no file is none; older entries do not count files.
    if not isinstance(patch, dict) or patch.get("files") == 0:
        return ""
    return plain(f"+{patch.get('added', 0)} −{patch.get('removed', 0)}")


def index_md(rows: Sequence[Mapping[str, Any]], *, older: bool, lives: Sequence[str] = ()) -> str:
    """The dashboard: newest run first; *older* says that the ledger knows more than the rows given.

    *lives* are lines on the hollow agents (:mod:`agents.portraits`), which stand above all runs.
    """
    above = ["# Agents", "", "```text", *lives, "```", ""] if lives else []
    head = "| status | id | type | engine | agent | started (UTC) | took | spent | patch | task |"
    lines = [*above, "# Runs", "", head, "|---|---|---|---|---|---|---|---|---|---|", *map(_md_row, rows)]
    if not rows:
        lines.append('| | | | | | | | | | no run yet: `./agent scout "how does this work?"` |')
    tail = "Older runs: `./agent list --all`." if older else ""
    return "\n".join([*lines, "", "Drawn from INDEX.jsonl, which `./agent verify` checks.", *filter(None, [tail]), ""])


def _md_row(row: Mapping[str, Any]) -> str:
    started = plain(row.get("started_at"))[:16].replace("T", " ")
    isolation = row.get("isolation")
    engine = plain(row.get("engine")) + ("" if isolation in (None, "full") else f" ({plain(isolation)})")
    before = (
        plain(row.get("status")), plain(row.get("id")), plain(row.get("type")), engine, plain(row.get("agent")),
        started, span(took(row)),
    )  # fmt: skip
    after = patch_size(row), plain(row.get("task"))
    # What was spent is made of nothing but numbers: neutralised, its dollars would be unreadable in the raw file.
    return "| " + " | ".join([*map(cell, before), spent(row.get("usage")), *map(cell, after)]) + " |"


# What Markdown or HTML would take for its own is neutralised; the task is a stranger's text (K08). All at once: one
# after the other would neutralise what the ones before have written.
_MARKS: Final = str.maketrans({**{char: f"&#{ord(char)};" for char in "<>|&`\\@$"}, **{c: f"\\{c}" for c in "*_[]#~!"}})


def cell(text: str) -> str:
    """*text* as a cell of a Markdown table, where nothing of it is markup."""
    # Only a colon before slashes and the dot after "www" make a bare address a link; all others stay readable.
    shown = text.translate(_MARKS).replace("://", "&#58;//")
    return shown.replace("www.", "www&#46;").replace("WWW.", "WWW&#46;")


def table(rows: Sequence[Mapping[str, Any]], now: float) -> str:
    """Rows as aligned columns for a terminal, at the instant *now* (seconds since the epoch)."""
    cells = [list(COLUMNS), *([*_line(row, now)] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(COLUMNS))]
    used = [column for column in range(len(COLUMNS)) if any(line[column] for line in cells[1:])]
    return "\n".join("  ".join(line[column].ljust(widths[column]) for column in used).rstrip() for line in cells)


def _line(row: Mapping[str, Any], now: float) -> Iterable[str]:
    start = epoch(row.get("started_at"))
    age = "" if start is None else span(now - start).partition(" ")
    yield plain(row.get("status"))
    yield from (plain(row.get(name)) for name in ("id", "type", "engine", "agent"))
    yield f"{age[0].partition('.')[0]} {age[2].split(' ')[0]}" if age else ""
    yield span(took(row, now))
    yield patch_size(row)
    yield plain(row.get("task"))


def at_hand(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What of *rows*, newest first, belongs to a status: the newest few, and whatever lives or waits for a human.

    Agents that live side by side make a run every few seconds: what waits must not be pushed out by them.
    """
    return [dict(row) for number, row in enumerate(rows) if number < _NEWEST or row.get("status") in _OPEN]


def status(rows: Sequence[Mapping[str, Any]], now: float) -> str:
    """What `agent status` says: the runs that live, those that wait for a human, and the last few that ended."""
    if not rows:
        return 'No run yet. Try: ./agent scout "how does this work?"'
    rows = at_hand(rows)
    live = sum(row.get("status") in ("ACTIVE", "STALLED") for row in rows)
    waiting = [row for row in rows if row.get("status") == "REVIEW"]
    lines = [f"{live} running, {len(waiting)} waiting for review"]
    lines += [f"  {plain(row.get('id'))}  ./agent merge {plain(row.get('id'))}" for row in waiting]
    return "\n".join([*lines, "", table(rows, now)])


def listing(rows: Sequence[Mapping[str, Any]], now: float) -> str:
    """What `agent list` says: one row a run, newest first."""
    return table(rows, now) if rows else 'No run yet. Try: ./agent scout "how does this work?"'


def spent(usage: object) -> str:
    """What a run has used, as people say it: ``12.3k tok · $0.04``; empty where nothing is known."""
    used = usage if isinstance(usage, dict) else {}
    # Older versions wrote the cost under the name that the agent had given it.
    cost = next((used[name] for name in ("cost_usd", "total_cost_usd") if _is_number(used.get(name))), 0)
    tokens = sum(used[name] for name in _TOKENS if _is_number(used.get(name)))
    words = [f"{_thousands(tokens)} tok"] if tokens else []
    return " · ".join([*words, *([f"${cost:.2f}" if cost >= _CENT else "under $0.01"] if cost else [])])


# As agents.budget.TOKENS, whose import is not cheap; a test compares them.
_TOKENS: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_CENT: Final = 0.01
_LARGEST: Final = 2**53


def _is_number(value: object) -> bool:
    # The bound keeps out what no agent uses and no format writes: infinity, and what is no number at all.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST


def _thousands(count: float) -> str:
    """A count in the unit that leaves it at most four digits long."""
    for unit in ("", "k", "M"):
        if count < 999.95:  # noqa: PLR2004 - from here on it would be written as 1000.0
            return f"{count:.1f}{unit}" if unit else f"{count:.0f}"
        count /= 1000
    return f"{count:.1f}G"


def outcome(facts: Mapping[str, Any], box: str) -> str:
    """What a run ends with: how, how long, how much, where to look, and what to type where a human has to go on."""
    failure = facts.get("failure")
    why = f" ({plain(failure.get('kind'))}): {plain(failure.get('message'), 300)}" if isinstance(failure, dict) else ""
    said = [each for each in (spent(facts.get("usage")), patch_size(facts)) if each]
    lasted = span(took(facts))
    after = f" in {lasted}" if lasted else ""
    head = " · ".join([f"{plain(facts.get('status'))} {plain(facts.get('id'))}{after}", *said])
    return "\n".join([f"{head}{why}", f"  box {plain(box, 300)}", *_next(facts)])


def _next(facts: Mapping[str, Any]) -> list[str]:
    """The commands that come next: a patch waits for a human, a spent budget for a larger one (design, section 5)."""
    short_id, failure = plain(facts.get("id")), facts.get("failure")
    if facts.get("status") == "REVIEW":
        pick = " --pick N" if facts.get("workers") else ""
        return [f"  look  ./agent diff {short_id}{pick}", f"  merge ./agent merge {short_id}{pick}"]
    if facts.get("status") == "CRASHED" and isinstance(failure, dict) and failure.get("kind") == "budget":
        return [f"  more  ./agent resume {short_id} {_more(str(failure.get('message')))}"]
    return []


def _more(message: str) -> str:
    """The option that raises the budget of which *message* says that it is spent."""
    if "tokens" in message:
        return "--max-tokens N"
    return "--max-usd N" if "$" in message or "usd" in message else "--max-turns N"
