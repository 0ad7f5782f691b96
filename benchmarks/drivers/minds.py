"""Runs parts of hollow in a process of its own and says what they have cost it and its children, as JSON.

    python benchmarks/drivers/minds.py steps COUNT REPO OUT    # a script of COUNT shell commands; all is kept in OUT
    python benchmarks/drivers/minds.py walled COUNT REPO OUT   # each command in a sandbox of its own
    python benchmarks/drivers/minds.py shell COUNT REPO OUT    # the same commands by `subprocess.run(shell=True)`
    python benchmarks/drivers/minds.py cycle REPO STATE        # a cycle of an agent's own life, without a model
    python benchmarks/drivers/minds.py age COUNT STATE         # give the memory in STATE that many ended goals

All work on copies or in repositories of the benchmark's own.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if __name__ == "__main__":
    # This folder is first otherwise, and its files would stand in for modules of the same names.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from essentials import records
from hollow.living.entry import live
from hollow.memory.goalrecords import encoded
from hollow.memory.memory import Memory
from hollow.mind import Assignment
from hollow.minds import thinking
from hollow.minds.scripted import Scripted
from hollow.sandbox import offered
from hollow.stream import Talk
from hollow.substrate.model import Goal, GoalStatus, Happening, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hollow.sandbox import Cell

COMMAND: Final = "head -c 4096 /dev/zero | tr '\\0' x"
"""What every step does: the size of a usual observation, and little work of its own."""
_AGENT: Final = "cedar"
_START: Final = 1_750_000_000.0
_BATCH: Final = 100
_PART: Final = 10
"""Steps of which the cost of the early and of the late ones is the median."""


def spent() -> float:
    """Seconds of processor time of this process and of the children that it has waited for."""
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


class _Meter:
    """A file that notes, whenever a step is over, what has been spent so far."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self.spent: list[tuple[float, float]] = []

    def write(self, data: bytes) -> int:
        written = self._file.write(data)
        if data.startswith(b'{"type": "user"'):
            self._file.flush()
            self.spent.append((time.perf_counter(), spent()))
        return written

    def flush(self) -> None:
        self._file.flush()


def parts(marks: Sequence[tuple[float, float]]) -> dict[str, dict[str, float]]:
    """Cost of one step: the median of the early and of the late ones, the mean of all but the first, and of halves.

    The halves are every other step: equal work at the same time, whose difference is noise.
    """
    steps = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(marks)]
    part = min(_PART, max(1, len(steps) // 2))
    told = {"early": steps[:part], "late": steps[-part:]}
    found = {name: _cost(some, statistics.median) for name, some in told.items()}
    means = {"all": steps, "even": steps[::2], "odd": steps[1::2] or steps}
    return {**found, **{name: _cost(some, statistics.fmean) for name, some in means.items()}}


def _cost(steps: Sequence[tuple[float, float]], over: Callable[[list[float]], float]) -> dict[str, float]:
    return {"wall": over([wall for wall, _ in steps]), "cpu": over([cpu for _, cpu in steps])}


def steps(count: int, repo: Path, out: Path, *, walled: bool) -> dict[str, dict[str, float]]:
    """Cost of one of *count* steps of a scripted mind: a shell command, whose outcome is on disk before the next."""
    cell = offered(repo, repo / ".agents" / "hollow" / "index", "full", os.environ)
    if cell is None:
        raise SystemExit("there is no way to run commands here")
    script = out.with_suffix(".script.json")
    call = {"call": {"name": "Shell", "arguments": {"command": COMMAND}}, "usage": {"input_tokens": 9}}
    script.write_text(json.dumps([*[call] * (count + 1), {"answer": "done"}]), "utf-8")
    meter = _Meter(out)
    talk = Talk(meter, session_id="00000000-0000-4000-8000-000000000000", model="scripted")  # type: ignore[arg-type]
    asked = _assignment(repo, cell if walled else records.replace(cell, bwrap=None))
    answer = Scripted(script).answer(asked, talk)
    if answer.is_error or len(meter.spent) != count + 1:
        raise SystemExit(f"the script was not played: {answer.text}")
    return parts(meter.spent)


def _assignment(repo: Path, cell: Cell) -> Assignment:
    return Assignment(
        task="benchmark", run_type="fix", agent=_AGENT, repo=repo, index=repo / ".agents" / "hollow" / "index",
        system_prompt="", max_turns=24, cell=cell,
    )  # fmt: skip


def shell(count: int, repo: Path) -> dict[str, dict[str, float]]:
    """Cost of one of *count* of the same commands without anything around them."""
    marks = []
    for _ in range(count + 1):
        subprocess.run(COMMAND, shell=True, cwd=repo, check=True, capture_output=True)
        marks.append((time.perf_counter(), spent()))
    return parts(marks)


def age(count: int, state: Path) -> dict[str, float]:
    """Give the memory in *state* *count* goals that have ended, and what was done for each; returns their number."""
    memory = Memory(state)
    *older, last = (_goal(number) for number in range(count))
    # Written at once: the book itself syncs every line, and what it makes of the log follows from the log alone.
    log = state / "goals" / _AGENT / "registry.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="ascii") as file:
        file.writelines(json.dumps({**encoded(goal), "event": "completed"}) + "\n" for goal in older)
    memory.goals.put(last, "completed")
    for start in range(0, count, _BATCH):
        memory.chronicles.add(_AGENT, _happenings(range(start, min(count, start + _BATCH))))
    return {"count": count}


def _goal(number: int) -> Goal:
    at = _START + 900.0 * number
    return Goal(
        goal_id=f"goal-{number:012x}", agent=_AGENT, objective=f"Describe part {number} of src/app.py",
        status=GoalStatus.COMPLETED, progress=1000, steps=4, cycles=1, created_at=at, updated_at=at, ended_at=at + 9,
    )  # fmt: skip


def _happenings(numbers: range) -> Iterator[Happening]:
    for goal in map(_goal, numbers):
        known = {"goal": goal.goal_id, "family": f"describe part {goal.goal_id}"}
        for kind in (Kind.GOAL_CREATED, Kind.GOAL_COMPLETED, Kind.CYCLE):
            facts = {"usable": True, "progressed": 1000} if kind is Kind.CYCLE else known
            yield Happening(kind=kind, at=goal.updated_at, cycle=f"cycle-{goal.goal_id}", facts=facts)


def cycle(repo: Path, state: Path) -> dict[str, float]:
    """Cost of one cycle, from the memory that is opened to the last word."""
    thinker = thinking.make("reflex", agent=_AGENT, repo=repo, index=state / "index")
    before, began = spent(), time.perf_counter()
    with (state / "stream.jsonl").open("wb") as out:
        answer = live(
            agent=_AGENT, repo=repo, state=state, run="benchmark", substrate="", surroundings="none", thinker=thinker,
            talk=Talk(out, session_id="00000000-0000-4000-8000-000000000000", model="reflex"),
        )  # fmt: skip
    if answer.is_error:
        raise SystemExit(answer.text)
    return {"wall": time.perf_counter() - began, "cpu": spent() - before}


def main(words: Sequence[str]) -> None:
    """Do what *words* say and print the account."""
    name, first, *rest = words
    account: dict[str, Any]
    if name == "cycle":
        account = cycle(Path(first), Path(rest[0]))
    elif name == "age":
        account = age(int(first), Path(rest[0]))
    elif name == "shell":
        account = shell(int(first), Path(rest[0]))
    else:
        account = steps(int(first), Path(rest[0]), Path(rest[1]), walled=name == "walled")
    print(json.dumps(account))


if __name__ == "__main__":
    main(sys.argv[1:])
