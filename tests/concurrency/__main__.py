"""The whole crowd by one command: ``python -m tests.concurrency [--runs 200] [--seed 1]``; prints what it measured."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.concurrency import crowd, truth


def main() -> None:
    """Let the crowd go once, assert what must be true, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.concurrency", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="runs at once; a tenth of it of all else")
    parser.add_argument("--seed", type=int, default=1, help="decides the order of the starts")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agent-box-crowd-") as folder:
        crowd.sealed(Path(folder) / "home")
        place = crowd.prepared(Path(folder), crowd.Size(given.runs))
        storm = crowd.let_go(place, given.seed)
        for name, value in crowd.figures(storm).items():
            print(f"{name:20} {value}")
        truth.hold(place)
    print("All of it holds.")


if __name__ == "__main__":
    main()
