"""What the last steps of an agent gave: the next plan is made of it, for a plan's steps do not see each other."""

from __future__ import annotations

from hollow.substrate.sections import Given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from hollow.memory.files import Files

MOST: Final = 8
"""Steps that are kept, the newest."""
LONGEST: Final = 3_000
"""Characters of what one step gave."""


class Results:
    """The last results of each agent, in ``goals/<agent>/last_results.json`` below *files*."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def keep(self, agent: str, goal_id: str, given: Sequence[Given]) -> None:
        """Keep *given*, the steps of a cycle for the goal *goal_id*, in place of those before."""
        rows = [{"step": each.step[:200], "text": each.text[:LONGEST], "ok": each.ok} for each in given[-MOST:]]
        with self._files.hold():
            self._files.write(_name(agent), {"goal_id": goal_id, "results": rows})

    def of(self, agent: str, goal_id: str) -> tuple[Given, ...]:
        """Return what the last steps of *agent* for *goal_id* gave, oldest first; nothing for another goal."""
        value = self._files.read(_name(agent)).value
        if not isinstance(value, dict) or value.get("goal_id") != goal_id:
            return ()
        rows = value.get("results")
        return tuple(
            Given(step=str(row.get("step", "")), text=str(row.get("text", "")), ok=row.get("ok") is True)
            for row in (rows if isinstance(rows, list) else [])
            if isinstance(row, dict)
        )


def _name(agent: str) -> str:
    return f"goals/{agent}/last_results.json"
