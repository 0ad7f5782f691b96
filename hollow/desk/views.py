"""What the desk shows to people: tables no wider than the terminal, with nothing in them that could drive it."""

from __future__ import annotations

import textwrap

from hollow.desk.requests import POLICY
from hollow.memory.moments import seconds
from hollow.substrate.pain_text import bar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Final

_STEPS: Final = ((86_400.0, "d"), (3600.0, "h"), (60.0, "m"))
_NARROWEST: Final = 40


def visible(text: str, *, newlines: bool = False) -> str:
    """Return *text* with what a terminal would obey, or nobody would see, as escapes; *newlines* stay on request."""
    return "".join(
        char if char.isprintable() or (newlines and char == "\n") else ascii(char)[1:-1] for char in text.expandtabs(4)
    )


def age(passed: float | None) -> str:
    """Return *passed* seconds as people say it: 40s, 3m, 2h, 5d; a dash where it is not known."""
    if passed is None:
        return "-"
    unit = next(((length, name) for length, name in _STEPS if passed >= length), (1.0, "s"))
    return f"{int(max(0.0, passed) // unit[0])}{unit[1]}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> list[str]:
    """Return *rows* under *heads* in columns, the last one cut to what *width* characters leave."""
    cells = [list(heads), *([visible(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads) - 1)]
    room = max(_NARROWEST, width) - sum(widths) - 2 * len(widths)
    return [_line(row, widths, max(room, 12)) for row in cells]


def _line(row: list[str], widths: list[int], room: int) -> str:
    last = row[-1] if len(row[-1]) <= room else row[-1][: room - 1] + "…"
    return "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), last]).rstrip()


def requests(rows: Sequence[dict[str, Any]], now: float, width: int) -> str:
    """Return the list of requests *rows* at *now* (seconds since the epoch), flags below each."""
    if not rows:
        return "No request is open."
    heads = ("ID", "AGENT", "AGE", "STATUS", "DESCRIPTION")
    head, *lines = table(heads, (_request(row, now) for row in rows), width)
    shown = [head]
    for row, line in zip(rows, lines, strict=True):
        shown += [line, *(_cut(f"    ! {visible(flag)}", width) for flag in row["flags"])]
    return "\n".join(shown)


def _request(row: dict[str, Any], now: float) -> tuple[str, ...]:
    status = f"{row['status']} (run)" if row["runs"] and row["status"] == "pending" else row["status"]
    return (
        row["request_id"],
        row["agent"] or "-",
        _since(row["timestamp"], now),
        status,
        row["description"] or "(none)",
    )


def _since(stamp: str, now: float) -> str:
    at = seconds(stamp)
    return age(None if at is None else now - at)


def request(row: dict[str, Any], now: float, width: int) -> str:
    """Return all of one request *row* at *now* (seconds since the epoch)."""
    parts = [
        "\n".join(visible(fact) for fact in _facts(row, now) if fact),
        _passage("Description", row["description"], width),
        _passage("Specification", "" if row["truncated"] and row["document"] else row["spec"], width),
        _passage("Document", row["document"], width),
        "\n".join(textwrap.wrap(POLICY, max(_NARROWEST, width))) if row["status"] == "pending" else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _facts(row: dict[str, Any], now: float) -> list[str]:
    """What stands above the text of the request *row*, a line each."""
    whose = f"by {row['agent'] or 'unknown'}, {_since(row['timestamp'], now)} ago, type {row['request_type']}"
    return [
        f"{row['request_id']}  {row['status']}  {whose}",
        *(f"! {flag}" for flag in row["flags"]),
        *(f"run: {run}" for run in row["runs"]),
        f"design: {row['design_path']}" if row["design_path"] else "",
        f"answer ({row['implemented_at']}): {row['result']}" if row["result"] is not None else "",
    ]


def _passage(title: str, text: str, width: int) -> str:
    if not text.strip():
        return ""
    lines = (piece for line in visible(text.strip(), newlines=True).split("\n") for piece in _wrapped(line, width - 2))
    return "\n".join([f"{title}:", *(f"  {line}".rstrip() for line in lines)])


def _wrapped(line: str, width: int) -> list[str]:
    # Blanks stay as they are: a specification is often code.
    room = max(_NARROWEST, width)
    return textwrap.wrap(line, room, drop_whitespace=False, replace_whitespace=False, expand_tabs=False) or [""]


def suffering(rows: Sequence[dict[str, Any]], width: int) -> str:
    """Return the load of each agent as a bar, and its stressors with what would end them."""
    lines: list[str] = []
    for row in rows:
        lines.append(f"{row['agent']:7} load {row['load']:.2f} {bar(row['load'])} {row['band']}")
        for each in row["stressors"]:
            lines.append(f"  {each['severity']:.2f}  {visible(each['type'])}  {visible(each['description'])}")
            lines.append(f"        ends when: {visible(each['condition'])}")
            lines += [f"        it says that this is over: {visible(each['claim'])}"] if each["claim"] else []
        lines += ["  ! its file was damaged; the last good copy counts"] if row["damaged"] else []
    return "\n".join(_cut(line, width) for line in lines)


def goals(rows: Sequence[dict[str, Any]], width: int) -> str:
    """Return the goals of the agents, the active ones first."""
    heads = ("AGENT", "STATUS", "PROGRESS", "AGE", "OBJECTIVE")
    cells = [(row["agent"], row["status"], f"{row['progress']:.2f}", age(row["age_seconds"]), row["objective"])
             for row in rows]  # fmt: skip
    return "\n".join(table(heads, cells, width)) if rows else "No agent has had a goal yet."


def lessons(rows: Sequence[dict[str, Any]], width: int) -> str:
    """Return the lessons whole, by category; candidates are only counted."""
    learned = [row for row in rows if row["state"] == "lesson"]
    lines: list[str] = []
    for category in dict.fromkeys(row["category"] for row in learned):
        lines.append(f"{category}:")
        for row in learned:
            if row["category"] == category:
                words = f"{visible(row['text'])} ({row['confidence']}, {row['count']}×)"
                lines += textwrap.wrap(words, max(_NARROWEST, width), initial_indent="  - ", subsequent_indent="    ")
    waiting = len(rows) - len(learned)
    lines.append(f"{len(learned)} lessons, {waiting} candidates.")
    return "\n".join(lines)


def tools(rows: Sequence[dict[str, Any]], width: int) -> str:
    """Return the tools that the agents have made."""
    heads = ("NAME", "STATE", "BY", "AGE", "DESCRIPTION")
    cells = [(row["name"], row["state"], row["by"] or "-", age(row["age_seconds"]), row["reason"] or row["description"])
             for row in rows]  # fmt: skip
    return "\n".join(table(heads, cells, width)) if rows else "The agents have made no tool yet."


def _cut(line: str, width: int) -> str:
    room = max(_NARROWEST, width)
    return line if len(line) <= room else line[: room - 1] + "…"
