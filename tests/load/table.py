"""The load table: what was promised of an operation, what it cost, and whether the promise held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.load.meter import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.load.meter import Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    operation: str
    size: str
    spent: Spent | None = None
    """None where the cost was counted, not measured."""
    beside: str
    """The cost beside that of the small case."""
    promise: str
    faults: tuple[str, ...] = ()
    """What did not hold of it."""


HEAD = ("operation", "size", "s", "CPU s", "peak MiB", "beside the small case", "promise", "verdict")


def drawn(rows: Sequence[Row]) -> str:
    """*rows* as a Markdown table."""
    cells = [HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def line(row: Row) -> str:
    """*row* by itself."""
    return " | ".join(filter(None, _cells(row)))


def _cells(row: Row) -> tuple[str, ...]:
    cost = row.spent
    figures = ("", "", "") if cost is None else (f"{cost.wall:.1f}", f"{cost.cpu:.2f}", f"{cost.peak / MIB:.0f}")
    verdict = "holds" if not row.faults else "BROKEN: " + "; ".join(row.faults)
    return (row.operation, row.size, *figures, row.beside, row.promise, verdict)


def unless(holds: object, fault: str) -> tuple[str, ...]:
    """*fault* as what did not hold, or nothing."""
    return () if holds else (fault,)


def ended(spent: Spent, code: int = 0) -> tuple[str, ...]:
    """A fault unless the command ended with *code*."""
    return unless(spent.code == code, f"it ended with {spent.code}: {spent.said[-300:]}")


def small(spent: Spent, limit: int) -> tuple[str, ...]:
    """A fault if the largest process of the command had more memory than *limit* bytes."""
    return unless(spent.peak <= limit, f"{spent.peak / MIB:.0f} MiB of memory, more than {limit // MIB}")
