"""A small airlock with its memory, and the hands of one agent in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hollow.forge import Forge
from hollow.hands.hands import Hands
from hollow.hands.reach import Reach
from hollow.hands.registry import BUILT_IN
from hollow.memory.memory import Memory
from hollow.sandbox import narrowed, offered
from hollow.substrate.model import Goal, Happening, Kind, Step
from hollow.substrate.settings import Settings
from hollow.toolbox.workspace import workspace
from tests.support.repos import make_repo
from tests.support.thinkers import ThinkerOf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hollow.sandbox import Cell
    from hollow.substrate.model import Result

NOW = 1_800_000_000.0
FILES = {
    "README.md": "# Lamp\n\nA lamp keeps a flame.\n",
    "src/app.py": "def light():\n    return 1\n",
    "agents/core.py": "CORE = 1\n",
    "design/plan.md": "The plan: light the lamp.\n",
    "workspace/cedar/note.md": "one\ntwo\nthree\n",
    "workspace/vault/made.py": "X = 1\n",
    "docs/wick.md": "# Wicks\n\nA wick draws oil by capillary action.\nTrim it.\n",
}
CONTACT = Happening(kind=Kind.PEER, at=NOW, cycle="c0", facts={"peer": "vault", "how": "read"})


@dataclass
class Scene:
    """An airlock at *repo*, the memory beside it, and what was said."""

    repo: Path
    memory: Memory
    answers: Callable[[Any], Any] = lambda _question: {"reply": "yes"}
    said: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    cells: dict[tuple[bool, str], Cell | None] = field(default_factory=dict)

    def cell(self, write: bool, agent: str = "cedar") -> Cell | None:
        """The sandbox of a child, as a cycle makes it: once, because its probe takes a moment."""
        if (write, agent) not in self.cells:
            whole = offered(self.repo, self.repo.parent / ".agents/hollow/index", "none", os.environ)
            folders = (self.repo / "workspace" / agent, self.repo / "design") if write else ()
            self.cells[write, agent] = narrowed(whole, folders) if whole else None
        return self.cells[write, agent]

    def hands(self, load: float | None = 0.0, *, agent: str = "cedar", cell: Any = None, **more: Any) -> Hands:
        """The hands of *agent* at *load*; settings may be given one by one."""
        names = {each: more.pop(each) for each in list(more) if hasattr(Settings(), each)}
        settings = Settings(**names)
        cell = cell or (lambda write: self.cell(write, agent))
        self.thinker = ThinkerOf(self.answers)

        def fact(kind: str, **facts: Any) -> None:
            self.said.append((kind, facts))

        reach = Reach(
            agent=agent, goal=Goal(goal_id="goal-000000000001", agent=agent, objective="light the lamp"), cycle="c1",
            number=1, place=workspace(self.repo), memory=self.memory, thinker=self.thinker, now=lambda: NOW, load=load,
            cell=cell, fact=fact,
        )  # fmt: skip
        forge = Forge(
            self.memory.shelf, self.memory.broken, cell, lambda: NOW,
            builtins={each.name: each.description for each in BUILT_IN.values()}, fact=fact,
        )  # fmt: skip
        return Hands(reach, forge, settings, **more)

    def files(self) -> dict[str, bytes]:
        """Every file of the airlock but git's own, with its bytes."""
        return {
            str(path.relative_to(self.repo)): path.read_bytes()
            for path in sorted(self.repo.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.repo).parts
        }


def scene(top: Path, **more: Any) -> Scene:
    """A new scene in the folder *top*."""
    repo = make_repo(top / "repo", dict(FILES))
    state = top / ".agents/hollow"
    state.mkdir(parents=True)
    return Scene(repo.resolve(), Memory(state), **more)


def do(hands: Hands, name: str, /, **params: Any) -> Result:
    """Call *name* with *params* as a step of a plan."""
    return hands.call(Step(capability=name, params=params), 1)


def no_cell(_write: bool) -> None:
    """The sandbox of a machine that has none."""
