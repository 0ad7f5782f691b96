"""The case `scout`: a question about a large repository, answered without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.bench import Row
from benchmarks.running import QUESTION

if TYPE_CHECKING:
    from benchmarks.bench import Bench, Case
    from benchmarks.measure import Cost


def scout(bench: Bench) -> Case:
    """The first look, which builds the index, and one of those after it."""
    here = bench.material.repository(bench.sizes.files)
    ask = bench.launch(here, "scout", QUESTION, "--mind", "reflex")
    listed = bench.cost(here, "git", "ls-files", "-s")
    searched = bench.cost(here, "git", "grep", "-c", "x")
    index = here / ".agents" / "hollow" / "index"

    def first() -> Cost:
        for file in index.glob("*"):
            file.unlink()
        return ask()

    def second() -> Cost:
        if not any(index.glob("*")):
            ask()
        return ask()

    candidates = {
        "floor": lambda: listed() + searched(), "again": lambda: listed() + searched(), "first": first,
        "second": second,
    }  # fmt: skip
    files, git = f"{bench.sizes.files:,} files", "`git ls-files -s` + `git grep -c x`"
    rows = [
        Row(name="scout.noise", what="the floor again", floor=git, over="again", under="floor"),
        Row(name="scout.first", what=f"`agent scout`, {files}, first time", floor=git, over="first", under="floor"),
        Row(name="scout.second", what=f"`agent scout`, {files}, second time", floor=git, over="second",
            under="floor"),
    ]  # fmt: skip
    return bench.case(candidates, rows, 2, 3)
