"""A forge on a disk of its own, with a clock that a test sets."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hollow.forge import Forge
from hollow.memory.broken import BrokenTools
from hollow.memory.files import Files
from hollow.memory.shelf import Shelf
from hollow.sandbox import Cell

if TYPE_CHECKING:
    from pathlib import Path

BUILTINS = {
    "fs_read": "Return the text of a file of the airlock, whole or some of its lines.",
    "fs_write": "Write content to a path below the agent's own folders; replaces the file that is there.",
}
WORKS = "def {name}(**kwargs):\n    return {{'value': 1, 'given': kwargs}}\n"


def plain_cell(folder: Path) -> Cell:
    """A cell that confines nothing: what is tested with it is not the sandbox."""
    repo = folder / "airlock"
    repo.mkdir(exist_ok=True)
    env = MappingProxyType({"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"})
    return Cell(repo=repo, hidden=folder / "memory", bwrap=None, surroundings="partial", env=env)


@dataclass
class Bench:
    """A forge, and everything around it that a test looks at."""

    folder: Path
    cell: Cell | None
    at: float = 1_800_000_000.0
    said: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: list[bool] = field(default_factory=list)

    @property
    def dynamic(self) -> Path:
        """Where the tools lie."""
        return self.folder / "memory" / "tools" / "dynamic"

    @property
    def files(self) -> list[str]:
        """Names of all files of tools."""
        return sorted(path.name for path in self.dynamic.iterdir()) if self.dynamic.exists() else []

    def kinds(self) -> list[str]:
        """Kinds of what was said."""
        return [kind for kind, _ in self.said]

    def shelf(self) -> Shelf:
        """The shelf as a new process sees it."""
        return Shelf(Files(self.folder / "memory"))

    def broken(self) -> BrokenTools:
        """The records as a new process sees them."""
        return BrokenTools(Files(self.folder / "memory"))

    def forge(self, **more: Any) -> Forge:
        """The forge as a new process sees it."""

        def cell(writable: bool) -> Cell | None:
            self.asked.append(writable)
            return self.cell

        def fact(kind: str, **facts: Any) -> None:
            self.said.append((kind, facts))

        return Forge(self.shelf(), self.broken(), cell, lambda: self.at, builtins=BUILTINS, fact=fact, **more)


def bench(folder: Path) -> Bench:
    """A bench in *folder* whose children run without a sandbox."""
    return Bench(folder, plain_cell(folder))
