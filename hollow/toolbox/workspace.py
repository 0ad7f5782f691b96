"""What every tool works with: the confined repository, and the shape of an answer that had to be cut."""

from __future__ import annotations

from essentials.records import dataclass
from hollow.confine import Confinement
from hollow.toolbox import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Final

    from hollow.sandbox import Cell

MAX_CHARS: Final = 24_000
"""Characters of one tool result, about 7,000 tokens: four results fit a context of 32,768 tokens."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The repository as the tools see it."""

    border: Confinement
    """Judges and opens paths."""
    cell: Cell | None = None
    """How commands are run, or None where there is no safe way to."""
    beat: Callable[[float], None] = lambda _passed: None
    """Told now and then how many seconds a command has taken so far."""

    @property
    def root(self) -> Path:
        """The repository's top folder, links resolved."""
        return self.border.root


def workspace(root: Path, cell: Cell | None = None, beat: Callable[[float], None] | None = None) -> Workspace:
    """Return the workspace of the repository at *root*, where commands are run in *cell* and *beat* is told of them."""
    border = Confinement(root, lambda path: git.tracks(root, path))
    return Workspace(border, cell, beat) if beat else Workspace(border, cell)


def text(data: bytes) -> str:
    """Return *data* as text that any model server accepts: invalid UTF-8 is replaced, never carried along."""
    return data.decode("utf-8", "replace")


def cut(content: str, how_to_get_more: str, limit: int = MAX_CHARS) -> str:
    """Return *content*, or its first whole lines up to *limit* characters with a mark that says how to get the rest."""
    if len(content) <= limit:
        return content
    head = content[:limit].rpartition("\n")[0] or content[:limit]
    return f"{head}\n[Cut after {len(head)} of {len(content)} characters. {how_to_get_more}]"
