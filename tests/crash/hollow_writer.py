"""Writes to the agents' memory, as a process of its own that can be struck: one book after the other, or one verb of the desk.

``python hollow_writer.py remember STATE`` writes to every book; ``… publish STATE`` replaces a tool, ``… desk WORDS`` is
the desk itself. Whatever is written says which round it is of, so that old and new can be told apart.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hollow.memory.files import MemoryFault
from hollow.memory.memory import Memory
from hollow.substrate.model import (
    Category,
    Evidence,
    Goal,
    GoalStatus,
    Happening,
    Kind,
    Profile,
    Suffering,
)  # fmt: skip
from hollow.substrate.sections import Given
from hollow.substrate.synthesis import Tool

if TYPE_CHECKING:
    from collections.abc import Callable

NOW: Final = 1_800_000_000.0
WHO: Final = "cedar"
TOOL: Final = "count_lines"
ROUNDS: Final = 2
"""What the first round has written is there before the second one is struck."""


@dataclass(frozen=True, slots=True)
class Book:
    """A book, how a round writes to it, and which round it shows."""

    name: str
    write: Callable[[Memory, int], Any]
    shows: Callable[[Memory], int]


def goal(number: int, status: GoalStatus = GoalStatus.COMPLETED) -> Goal:
    """The goal of a round."""
    return Goal(goal_id=f"goal-{number:012x}", agent=WHO, objective=f"Round {number}", status=status)


def tool(number: int) -> Tool:
    """The tool as a round publishes it; a minute and a half must lie between two of one name."""
    code = f"def {TOOL}():\n    return {number}\n"
    return Tool(name=TOOL, description="Counts", code=code, by=WHO, activated_at=NOW + number * 3600)


def _learn(memory: Memory, number: int) -> None:
    seen = Evidence(goal_id=f"goal-{number}", agent=WHO, at=NOW + number)
    memory.lessons.observe("Verify that a path exists before reading it.", Category.ENVIRONMENT, "medium", seen, NOW)


def _evidence(memory: Memory) -> int:
    listed = [*memory.lessons.lessons(), *memory.lessons.candidates()]
    return max((len(each.evidence) for each in listed), default=0)


def _ask(memory: Memory, number: int) -> None:
    memory.requests.submit(
        WHO, f"Write shop/part{number}.py", f"It does the {number}th thing.", token=str(number), now=NOW + number,
        look=lambda _path: None,
    )  # fmt: skip


BOOKS: Final = (
    Book("sufferings", lambda m, n: m.sufferings.save(Suffering(agent=WHO, last_escalated=NOW + n)),
         lambda m: max(0, int(m.sufferings.look(WHO)[0].last_escalated - NOW))),
    Book("chronicles", lambda m, n: m.chronicles.add(WHO, [Happening(kind=Kind.CYCLE, at=NOW + n, cycle=str(n))]),
         lambda m: len(m.chronicles.read(WHO).happenings)),
    Book("goals", lambda m, n: m.goals.put(goal(n), "completed"), lambda m: len(m.goals.recent(WHO, 9))),
    Book("lessons", _learn, _evidence),
    Book("profiles", lambda m, n: m.profiles.save(Profile(agent=WHO, narrative="x" * n), NOW),
         lambda m: len(m.profiles.load(WHO).narrative)),
    Book("requests", _ask, lambda m: len(m.requests.all())),
    Book("mail", lambda m, n: m.mail.send("vault", WHO, f"Round {n}", NOW + n), lambda m: len(m.mail.unread(WHO))),
    Book("host", lambda m, n: m.host.say(f"Round {n}", NOW + n), lambda m: len(m.host.unread(WHO))),
    Book("broken", lambda m, n: m.broken.failed("ghost", cycle=str(n), reason="none", sha="", now=NOW + n),
         lambda m: max((each.failures for each in m.broken.records().values()), default=0)),
    Book("vectors", lambda m, n: m.vectors.put({"tool": (str(n), [float(n), 1.0])}),
         lambda m: max((n for n in range(1, ROUNDS + 1) if m.vectors.get("tool", str(n))), default=0)),
    Book("keys", lambda m, n: m.keys.set(WHO, "round", n), lambda m: m.keys.get(WHO, "round") if "round" in m.keys.names(WHO) else 0),
    Book("results", lambda m, n: m.results.keep(WHO, "goal", [Given(step="fs_read", text="x")] * n),
         lambda m: len(m.results.of(WHO, "goal"))),
)  # fmt: skip
"""Every book but the shelf of tools, in the order in which a round writes to them."""


def shelf(memory: Memory) -> int:
    """Which round the tool is of; 0 where there is none."""
    found = memory.shelf.loaded().get(TOOL)
    return next((number for number in range(1, ROUNDS + 1) if found == tool(number)), 0)


def remember(memory: Memory, number: int) -> None:
    """Write round *number* to every book that does not show it yet."""
    for book in BOOKS:
        if book.shows(memory) < number:
            book.write(memory, number)


def main(words: list[str]) -> None:
    """Do what *words* say."""
    what, *rest = words
    if what == "desk":
        from hollow.cli import app

        app(words)
    memory = Memory(Path(rest[0]))
    try:
        if what == "remember":
            remember(memory, ROUNDS)
        else:
            memory.shelf.publish(tool(ROUNDS))
    except (OSError, MemoryFault) as why:
        # As the cycle and the desk do it: the machine's fault, in a sentence.
        print(f"The memory cannot be written: {why}.", file=sys.stderr)
        sys.exit(4)


if __name__ == "__main__":
    main(sys.argv[1:])
