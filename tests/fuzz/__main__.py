"""Looks for inputs that break a property, round after round, each with a fresh seed: ``python -m tests.fuzz --help``."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(words: list[str]) -> int:
    """Run rounds until time is over; returns 0, or 1 after the first that found something, with how to see it again."""
    asked = _parser().parse_args(words)
    end, number = time.monotonic() + 60 * asked.minutes, 0
    while number == 0 or time.monotonic() < end:
        number += 1
        seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(2**32)
        began = time.monotonic()
        done = _round(asked, seed)
        took = f"{time.monotonic() - began:.0f} s"
        if done.returncode:
            print(done.stdout.decode(errors="replace"))
            again = f" --only {asked.only!r}" if asked.only else ""
            print(f"round {number}: found something in {took}. Again: python -m tests.fuzz --seed {seed}{again}")
            return 1
        print(f"round {number}: seed {seed}, nothing found in {took}", flush=True)
        if asked.seed is not None:
            break
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="no round begins after so long (default: 10)")
    parser.add_argument("--only", default="", help="properties whose name holds this word, as pytest's -k")
    parser.add_argument("--all", action="store_true", help="every property of the test suite, not only those here")
    parser.add_argument("--seed", type=int, help="one round with the seed of an earlier one")
    return parser


def _round(asked: argparse.Namespace, seed: int) -> subprocess.CompletedProcess[bytes]:
    where = "tests" if asked.all else "tests/fuzz"
    words = [
        sys.executable, "-m", "pytest", where, "-x", "-m", "hypothesis", f"--hypothesis-seed={seed}", "--timeout=0",
        *(("-k", asked.only) if asked.only else ()),
    ]  # fmt: skip
    env = {**os.environ, "AGENT_BOX_FUZZ": "1"}
    return subprocess.run(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
