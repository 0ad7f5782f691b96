"""The hollow agents at a glance, for the head of INDEX.md: a line each, from the small files that hollow keeps."""

from __future__ import annotations

import json
from types import MappingProxyType

from agents import files, policy, redact, tally, views, watchview

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, Final

    from agents.layout import Layout

_LARGEST: Final = 1024 * 1024
"""Bytes of a file that are read; hollow bounds its own far below."""
_OBJECTIVE: Final = 72
"""Characters of a goal's objective."""
_WORDS: Final = MappingProxyType({
    "crisis": "CRISIS", "dominant": "HIGH, inward", "high": "HIGH", "present": "present", "none": "",
})  # fmt: skip
"""The bands as the heads of seed 004's prompt call them (T35)."""
_MOST: Final = 64
"""Stressors that are added up; hollow keeps five."""


class Portraits:
    """Draws the agents of one repository; a file is read again only when it has changed."""

    def __init__(self, layout: Layout) -> None:
        self._memory = layout.memory
        self._known: dict[Path, tuple[tuple[int, int], Any]] = {}

    def lines(self) -> list[str]:
        """One line for each agent that has ever lived, or none at all; whatever the files hold, it never raises."""
        found = [self._line(agent) for agent in policy.AGENTS]
        return [line for line in found if line] if any(found) else []

    def _line(self, agent: str) -> str:
        suffering = self._read(self._memory / "identity" / agent / "suffering.json")
        goals = self._read(self._memory / "goals" / agent / "snapshot.json")
        return line(agent, suffering, goals) if suffering is not None or goals is not None else ""

    def _read(self, path: Path) -> Any:
        """What the JSON file *path* holds, or None where there is none that can be read."""
        try:
            seen = path.lstat()
            stamp = seen.st_mtime_ns, seen.st_size
            if self._known.get(path, (None,))[0] != stamp:
                self._known[path] = stamp, json.loads(files.read_capped(path, _LARGEST) or b"null")
            return self._known[path][1]
        except (OSError, ValueError, RecursionError):
            return None


def line(agent: str, suffering: Any, goals: Any) -> str:
    """The line of *agent*: load, its bar and band, and the active goal; from what its files hold, whatever that is.

    ``cedar   load 0.41 [#####-----] present · goal 0.40 "write a survey of the cart"``
    """
    weight = load(suffering)
    felt = f"{watchview.bar(weight)} {_WORDS[watchview.band(weight)]}".rstrip()
    return f"{agent:7} load {weight:.2f} {felt} · {_goal(goals)}"


def load(suffering: Any) -> float:
    """The load that a suffering.json speaks of, 0 to 1: the sum of its stressors' severities (S13, F9)."""
    active = suffering.get("active_stressors") if isinstance(suffering, dict) else None
    rows = [each for each in active[:_MOST] if isinstance(each, dict)] if isinstance(active, list) else []
    return _share(sum(_share(row.get("severity")) for row in rows if not row.get("resolved")))


def _share(value: Any) -> float:
    """*value* as a number from 0 to 1; what is none is 0."""
    return tally.share(value) or 0.0


def _goal(goals: Any) -> str:
    active = goals.get("active") if isinstance(goals, dict) else None
    if not isinstance(active, dict) or not isinstance(active.get("objective"), str):
        return "no goal"
    metrics = active.get("metrics")
    progress = _share(metrics.get("progress") if isinstance(metrics, dict) else None)
    # A stranger's words: one line, no secret, nothing that ends the block they stand in.
    words = " ".join(redact.beginning(active["objective"], 4 * _OBJECTIVE).split())
    return f'goal {progress:.2f} "{views.plain(words.replace("`", "´"), _OBJECTIVE)}"'
