"""How the agents stand: suffering, goals, lessons and tools as plain values, for tables and for ``--json``."""

from __future__ import annotations

from hollow.substrate import suffering as pain
from hollow.substrate.model import AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from hollow.memory.memory import Memory
    from hollow.substrate.ghosts import Broken
    from hollow.substrate.model import Goal, Lesson, Stressor

_GOALS: Final = 10
"""Goals of an agent that are listed, the active one among them."""


def suffering(memory: Memory, now: float) -> list[dict[str, Any]]:
    """Return what each agent suffers from at *now* (seconds since the epoch)."""
    rows = []
    for agent in AGENTS:
        state, damaged = memory.sufferings.look(agent)
        weight = pain.load(state)
        rows.append({
            "agent": agent, "load": round(weight, 3), "band": str(pain.band(weight)), "damaged": damaged,
            "crisis_cycles": state.crisis_cycles, "resolved": len(state.history),
            "stressors": [_stressor(each, now) for each in state.active],
        })  # fmt: skip
    return rows


def _stressor(each: Stressor, now: float) -> dict[str, Any]:
    return {
        "type": each.type, "severity": round(each.severity, 3), "peak": round(each.peak, 3),
        "description": each.description, "condition": each.condition, "per_day": each.rate, "origin": each.origin,
        "claim": each.claim, "age_seconds": round(max(0.0, now - each.onset)) if each.onset else None,
    }  # fmt: skip


def goals(memory: Memory, now: float) -> list[dict[str, Any]]:
    """Return the newest goals of each agent, the active one first."""
    rows = []
    for agent in AGENTS:
        active = memory.goals.active(agent)
        recent = [
            each for each in memory.goals.recent(agent, _GOALS) if active is None or each.goal_id != active.goal_id
        ]
        recent.sort(key=lambda each: -each.created_at)
        rows += [_goal(each, now) for each in ([active] if active else []) + recent]
    return rows


def _goal(each: Goal, now: float) -> dict[str, Any]:
    return {
        "agent": each.agent, "goal_id": each.goal_id, "status": str(each.status), "objective": each.objective,
        "progress": each.progress / 1000, "steps": each.steps, "cycles": each.cycles, "failures": each.failures,
        "reason": each.reason, "source": each.source, "artifacts": [one.path for one in each.artifacts],
        "age_seconds": round(max(0.0, now - each.created_at)) if each.created_at else None,
    }  # fmt: skip


def lessons(memory: Memory) -> list[dict[str, Any]]:
    """Return what was learned, then what may become a lesson."""
    learned = [_lesson(each, "lesson") for each in memory.lessons.lessons()]
    return learned + [_lesson(each, "candidate") for each in memory.lessons.candidates()]


def _lesson(each: Lesson, state: str) -> dict[str, Any]:
    return {
        "state": state, "category": str(each.category), "text": each.text, "confidence": each.confidence,
        "count": each.count, "agents": sorted({one.agent for one in each.evidence if one.agent}),
    }  # fmt: skip


def tools(memory: Memory, now: float) -> list[dict[str, Any]]:
    """Return the tools that the agents have made, then those that are out of use."""
    broken = memory.broken.records()
    loaded = memory.shelf.loaded()
    rows = []
    for name, tool in sorted(loaded.items()):
        held = broken.get(name)
        state = "stub" if tool.stub else "untested" if tool.untested else "ready"
        rows.append({
            "name": name, "state": "broken" if held and held.is_broken else state, "by": tool.by,
            "description": tool.description, "failures": held.failures if held else 0,
            "reason": held.reason if held else "", "age_seconds": round(max(0.0, now - tool.activated_at)),
        })  # fmt: skip
    gone = sorted((set(memory.shelf.quarantined()) | set(broken)) - set(loaded))
    return rows + [_gone(name, broken.get(name)) for name in gone]


def _gone(name: str, held: Broken | None) -> dict[str, Any]:
    return {
        "name": name, "state": "broken" if held and held.is_broken else "quarantined", "by": "", "description": "",
        "failures": held.failures if held else 0, "reason": held.reason if held else "", "age_seconds": None,
    }  # fmt: skip
