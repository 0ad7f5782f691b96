"""Values that tests of the pure supervisor share: a scene, an ask, a plan, a state. Nothing here touches a disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.config import Config
from agents.engines import registry
from agents.layout import Layout
from agents.model import Phase, RunState, Status
from agents.plan import Ask, RunPlan, Scene, plan_run

if TYPE_CHECKING:
    from agents.engines.base import Engine

NOW = 1_772_356_500.0
"""2026-03-01T09:15:00Z."""
TOKEN = "0be1c0de" + "7" * 56
BOOT, HOST = "boot-1", "host-1"


def scene(**changes: Any) -> Scene:
    """A quiet machine with a clean repository in /w/shop."""
    usual: dict[str, Any] = {
        "layout": Layout(Path("/w/shop")), "head": "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "dirty": False, "now": NOW,
        "token": TOKEN, "mind": "reflex", "model": None, "engine_version": "0.1.0", "python": "/usr/bin/python3",
        "home": Path("/opt/agent-box"), "boot_id": BOOT, "host_id": HOST, "supervisor": (4242, 987), "clock_offset": NOW - 5000.0,
    }  # fmt: skip
    return Scene(**{**usual, **changes})


def planned(
    run_type: str = "scout",
    task: str = "why is the start slow?",
    *,
    argv: tuple[str, ...] = (),
    config: Config | None = None,
    engine: Engine | None = None,
    short_id: str = "0be1",
    **changes: Any,
) -> RunPlan:
    """The plan of a run in :func:`scene` with *changes*."""
    ask = Ask(run_type=run_type, task=task, argv=argv)
    return plan_run(ask, scene(**changes), config or Config(), engine or registry.engine("hollow"), short_id)


def running(**changes: Any) -> RunState:
    """The state of a run whose agent is at work, with *changes*."""
    usual: dict[str, Any] = {
        "status": Status.ACTIVE, "phase": Phase.RUNNING, "pid": 77, "pid_start": 5, "boot_id": BOOT, "host_id": HOST,
        "started_at": "2026-03-01T09:15:00.000Z",
    }  # fmt: skip
    return RunState(**{**usual, **changes})
