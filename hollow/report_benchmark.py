"""A survey as a benchmark report: what exists, how to run it, where time is likely spent."""

from __future__ import annotations

from hollow.markdown import code, prose
from hollow.report import closing, entries, lately, nothing, summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from hollow.benches import Bench
    from hollow.survey import Survey

# A screenful; a repository with more has a command that runs them all.
_MOST: Final = 25


def benchmark(found: Survey, existing: Sequence[Bench]) -> str:
    """Return the report: places that the question is about first, then the *existing* benchmarks."""
    if not found.hits:
        return f"{nothing(found)}\n{_existing(existing)}\n"
    sections = [
        f"{summary(found)} {_count(existing)}",
        "## What to measure",
        *entries(found, shown=5),
        _existing(existing),
        *lately(found.commits),
        closing(found),
    ]
    return "\n\n".join(sections) + "\n"


def _count(existing: Sequence[Bench]) -> str:
    return f"{len(existing)} existing benchmark{'s' if len(existing) != 1 else ''} found; nothing was run."


def _existing(existing: Sequence[Bench]) -> str:
    if not existing:
        return (
            "## Existing benchmarks\n\nNone was found (looked for Go `Benchmark` functions, pytest-benchmark, "
            "Cargo benches, asv, npm scripts, make targets, and folders and files named after benchmarks)."
        )
    rows = [f"- {code(f'{bench.path}:{bench.line}')} {prose(bench.name)}{_how(bench)}" for bench in existing[:_MOST]]
    more = [f"- … and {len(existing) - _MOST} more"] if len(existing) > _MOST else []
    return "## Existing benchmarks\n\n" + "\n".join([*rows, *more])


def _how(bench: Bench) -> str:
    return f": {code(bench.command)}" if bench.command else ""
