"""The table of docs/reliability.md: drawn from a run of the matrix, read back to be checked and to keep what was not run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
BEGIN: Final = "<!-- drawn by python -m tests.crash --write-docs -->"
END: Final = "<!-- end -->"
PASSES: Final = ("kill", "child", "power", "full")
HEAD: Final = ("scenario", "what is struck", "points", "different", "SIGKILL", "of a child", "power cut", "full disk")
_FIXED: Final = len(HEAD) - len(PASSES)
BY_COLUMN: Final = dict(zip(HEAD[_FIXED:], PASSES, strict=True))
"""The pass of a column."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is told of one scenario."""

    name: str
    about: str
    points: int
    """Effects that were found."""
    different: int
    """Different ones among them: all of these are struck."""
    cells: Mapping[str, str]
    """By pass: how many strikes passed of how many."""

    def line(self) -> str:
        """The row as Markdown."""
        cells = [self.cells.get(name, "–") for name in PASSES]
        return f"| {' | '.join([self.name, self.about, str(self.points), str(self.different), *cells])} |"


def parsed(text: str) -> list[Row]:
    """The rows of the table in *text*; raises ValueError where there is no table."""
    _, begin, rest = text.partition(BEGIN)
    body, end, _ = rest.partition(END)
    if not begin or not end:
        raise ValueError("docs/reliability.md has lost the marks around its table.")
    head, _, *split = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines() if line[:1] == "|"
    ]
    # By the column's name: a table that was drawn before a pass was added is read as well.
    passes = [BY_COLUMN[column] for column in head[_FIXED:]]
    return [
        Row(
            name,
            about,
            int(count),
            int(different),
            {by: cell for by, cell in zip(passes, cells, strict=True) if cell != "–"},
        )
        for name, about, count, different, *cells in split
    ]


def drawn(rows: Iterable[Row]) -> str:
    """The whole table with its marks."""
    head = [f"| {' | '.join(HEAD)} |", "|---|---|" + "---:|" * (len(HEAD) - 2)]
    return "\n".join([BEGIN, "", *head, *(row.line() for row in rows), "", END])


def merged(old: Sequence[Row], new: Sequence[Row], order: Sequence[str]) -> list[Row]:
    """*new* in the order of the scenarios *order*, with what *old* knows of the passes and scenarios that were not run."""
    known = {row.name: row for row in old}
    fresh = {row.name: row for row in new}
    rows = []
    for name in order:
        was, now = known.get(name), fresh.get(name)
        row = now or was
        if row is not None:
            cells = {**(was.cells if was else {}), **row.cells}
            rows.append(Row(name, row.about, row.points, row.different, cells))
    return rows


def write(rows: Sequence[Row]) -> None:
    """Draw the table in the page anew from *rows*."""
    from tests.crash import scenarios

    text = PAGE.read_text("utf-8")
    table = drawn(merged(parsed(text), rows, [each.name for each in scenarios.ALL]))
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + table + rest.partition(END)[2], "utf-8")
