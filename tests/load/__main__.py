"""The whole load table by one command: ``python -m tests.load [--only NAME] [--scale 1.0]``; exits 1 if a row is broken."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.load import table
from tests.load.histories import history, ledger
from tests.load.repositories import repository
from tests.load.streams import flood, many
from tests.load.worlds import Ground

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.load.table import Row

CASES: Final[Mapping[str, Callable[[Ground, float], Iterator[Row]]]] = {
    "flood": flood, "streams": many, "history": history, "repository": repository, "ledger": ledger,
}  # fmt: skip


def main() -> int:
    """Measure what was asked for and print the table; what was built for it is removed."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--only", action="append", choices=CASES, help="one case; may be given more than once")
    parser.add_argument("--scale", type=float, default=1.0, help="size as a part of the full one, from 0.02 on")
    parser.add_argument("--folder", type=Path, help="where to build: it needs 4 GB and 500,000 files")
    given = parser.parse_args()
    if not 0.02 <= given.scale <= 1:
        parser.error("--scale is between 0.02 and 1")
    rows: list[Row] = []
    for name in given.only or CASES:
        # What one case leaves on the disk must not be what the next one runs into.
        with tempfile.TemporaryDirectory(prefix="agent-box-load-", dir=given.folder) as folder:
            for row in CASES[name](Ground(Path(folder)), given.scale):
                # Told at once: what comes later may take long.
                print(f"{name}: {table.line(row)}", file=sys.stderr, flush=True)
                rows.append(row)
    print(table.drawn(rows))
    return 1 if any(row.faults for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
