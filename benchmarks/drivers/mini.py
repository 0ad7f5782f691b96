"""Drives mini-swe-agent with its own scripted model; run by the interpreter of its environment, needs nothing else.

    python benchmarks/drivers/mini.py steps COUNT OUT COMMAND    # a step's cost, early, late, on average

The account is JSON, of the processor time of this process and of the commands.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

_PART: Final = 10


def _spent() -> float:
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


def play(count: int, out: Path, command: str) -> list[tuple[float, float]]:
    """Let its agent run *command* *count* times, its trajectory saved into *out* after each; when each was over."""
    from minisweagent.agents.default import DefaultAgent  # type: ignore[import-not-found]
    from minisweagent.environments.local import LocalEnvironment  # type: ignore[import-not-found]
    from minisweagent.models.test_models import DeterministicModel, make_output  # type: ignore[import-not-found]

    marks: list[tuple[float, float]] = []

    class Metered(DefaultAgent):  # type: ignore[misc]
        """The agent, which notes what was spent when a step is saved."""

        def save(self, path: Path | None, *extra: dict[str, Any]) -> dict[str, Any]:
            saved: dict[str, Any] = super().save(path, *extra)
            marks.append((time.perf_counter(), _spent()))
            return saved

    outputs = [make_output("next", [{"command": command}]) for _ in range(count)]
    last = make_output("done", [{"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}])
    agent = Metered(
        DeterministicModel(outputs=[*outputs, last]), LocalEnvironment(), system_template="s",
        instance_template="{{task}}", cost_limit=0, output_path=out,
    )  # fmt: skip
    agent.run("benchmark")
    # The step that says that all is done is another one.
    return marks[:count]


def parts(marks: list[tuple[float, float]]) -> dict[str, dict[str, float]]:
    """Cost of one step: the median of the early ones, of the late ones, and the mean of all but the first."""
    steps = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(marks)]
    part = min(_PART, max(1, len(steps) // 2))
    found = {}
    for name, some, over in (
        ("early", steps[:part], statistics.median), ("late", steps[-part:], statistics.median),
        ("all", steps, statistics.fmean),
    ):  # fmt: skip
        found[name] = {"wall": over([wall for wall, _ in some]), "cpu": over([cpu for _, cpu in some])}
    return found


def main(words: list[str]) -> None:
    """Do what *words* say."""
    _, count, out, command = words
    print(json.dumps(parts(play(int(count), Path(out), command))))


if __name__ == "__main__":
    main(sys.argv[1:])
