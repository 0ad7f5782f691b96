"""An agent's life in a repository of its own: a clock that a test sets, a mind that a test speaks for."""

from __future__ import annotations

import functools
import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hollow.forge import Forge
from hollow.hands.registry import BUILT_IN
from hollow.living.cycle import turn
from hollow.living.entry import own_folders
from hollow.living.life import Life
from hollow.memory.memory import Memory
from hollow.stream import Talk
from hollow.substrate.settings import Settings
from hollow.toolbox.workspace import workspace
from tests.support.repos import git, make_repo
from tests.support.thinkers import ThinkerOf, by_purpose

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hollow.answer import Answer
    from hollow.sandbox import Cell
    from hollow.substrate.model import Goal

START = 1_800_000_000.0
TEXT = (
    "The lamp keeps a flame, as README.md:3 says; its code in src/app.py returns the number one when it is lit.\n" * 4
)
FILES = {"README.md": "# Lamp\n\nA lamp keeps a flame.\n", "src/app.py": "def light():\n    return 1\n"}
GOAL = "Describe how the lamp in src/app.py keeps its flame, in workspace/cedar/lamp.md"
YES = {"accomplished": True, "reason": "It does what the goal says.", "lesson": ""}
SOUND = {"accurate": True, "reason": "It is so."}


def wants(content: str | None = GOAL, **more: Any) -> dict[str, Any]:
    """An existence answer."""
    nothing = {"new_stressors": [], "resolved": []}
    return {
        "action": "goal", "content": content, "reasoning": "because", "worldview_update": None,
        "new_open_questions": [], "new_opinions": [], "suffering_assessment": nothing, **more,
    }  # fmt: skip


def steps(*given: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A plan."""
    return {"steps": [{"capability_id": name, "params": params, "rationale": "why"} for name, params in given]}


def write(text: str = TEXT, path: str = "workspace/cedar/lamp.md") -> tuple[str, dict[str, Any]]:
    return "fs_write", {"path": path, "content": text}


def reads(count: int, start: int = 1) -> list[tuple[str, dict[str, Any]]]:
    """Reading steps, each another one."""
    return [("fs_read", {"path": "README.md", "offset": number}) for number in range(start, start + count)]


@dataclass
class World:
    """A repository with its memory, in which agents live."""

    repo: Path
    root: Path
    at: float = START
    cycles: int = 0
    cell: Callable[[bool], Cell | None] = lambda _writing: None
    settings: Settings = field(default_factory=Settings)
    streams: list[bytes] = field(default_factory=list)

    @classmethod
    def make(cls, folder: Path, files: dict[str, str | bytes] | None = None) -> World:
        repo = make_repo(folder / "airlock", {**FILES, **(files or {})})
        return cls(repo=repo, root=folder / "hollow")

    @functools.cached_property
    def memory(self) -> Memory:
        return Memory(self.root)

    def life(self, agent: str, mind: Any) -> Life:
        """A cycle of *agent* to come."""
        self.cycles += 1
        out = io.BytesIO()
        talk = Talk(out, session_id="s", model="test")
        self.stream = out
        memory = Memory(self.root, warn=talk.fact)
        own_folders(self.repo, agent)
        builtins = {name: each.description for name, each in BUILT_IN.items()}
        return Life(
            agent=agent, cycle=f"cycle-{self.cycles}", memory=memory, thinker=mind, settings=self.settings, talk=talk,
            now=lambda: self.at, cell=self.cell, place=workspace(self.repo),
            forge=Forge(memory.shelf, memory.broken, self.cell, lambda: self.at, builtins=builtins, fact=talk.fact),
            base=git(self.repo, "rev-parse", "HEAD"),
        )  # fmt: skip

    def live(self, agent: str = "cedar", *, seconds: float = 6.0, mind: Any = None, **answers: Any) -> Answer:
        """One cycle, *seconds* after the last; *answers* by purpose, where *mind* is not given."""
        self.at += seconds
        self.mind = mind or ThinkerOf(by_purpose(**{"semantic": YES, "fact": SOUND, **answers}))
        return turn(self.life(agent, self.mind))

    # --- What came of it ----------------------------------------------------------------------------------------------

    @property
    def facts(self) -> list[dict[str, Any]]:
        """The facts of the last cycle."""
        events = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [each for each in events if each.get("subtype") == "hollow"]

    def said(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.facts if each["kind"] == kind]

    @property
    def results(self) -> list[str]:
        """What the steps of the last cycle gave."""
        events = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [each["message"]["content"][0]["content"] for each in events if each.get("type") == "user"]

    def prompt(self, purpose: str = "existence") -> str:
        """The last prompt of *purpose*."""
        return next(each.prompt for each in reversed(self.mind.asked) if each.purpose == purpose)

    def goal(self, agent: str = "cedar") -> Goal | None:
        return self.memory.goals.active(agent)

    def last(self, agent: str = "cedar") -> Goal:
        """The goal that ended last."""
        return self.memory.goals.recent(agent, 1)[0]

    def commit(self) -> None:
        """What the supervisor does with an accepted cycle."""
        git(self.repo, "add", "--all")
        git(self.repo, "commit", "--quiet", "--allow-empty", "-m", "a cycle")

    def place(self, agent: str, **severities: float) -> None:
        """Put stressors on disk by hand, as the seeds show them."""
        active = [
            {"type": name, "description": f"{name} hurts", "severity": value, "onset": self.at,
             "observable_condition": "it is over", "escalation_per_day": 0.0, "peak_severity": value}
            for name, value in severities.items()
        ]  # fmt: skip
        path = self.root / "identity" / agent / "suffering.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"active_stressors": active, "resolved_history": [], "last_escalated": self.at}))
