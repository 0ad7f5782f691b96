"""What a mind is: values in, one answer out, everything it does said on the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hollow.answer import Answer, Usage

if TYPE_CHECKING:
    from pathlib import Path

    from hollow.sandbox import Cell
    from hollow.stream import Talk

__all__ = ["Answer", "Assignment", "Mind", "Usage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What one cycle is asked to do."""

    task: str
    """The operator's words, verbatim."""
    run_type: str
    """scout, plan, review, benchmark or fix."""
    agent: str
    """cedar, cipher or vault."""
    repo: Path
    """Root of the repository; the tools never leave it."""
    index: Path
    """Folder for the reflex mind's search index; nothing else is written there."""
    system_prompt: str = ""
    """The supervisor's words: envelope, run folder, rules."""
    max_turns: int = 24
    """Upper bound of generations in this cycle."""
    cell: Cell | None = None
    """How commands are run; None where they are not, or where there is no safe way to."""
    earlier: str = ""
    """What an earlier session of this run left in the repository, in words; empty at a first start."""


class Mind(Protocol):
    """What thinks."""

    name: str
    """ollama, reflex or scripted."""
    model: str | None
    """The model's name, or None where there is none."""
    acts: bool
    """Whether it calls the tools that change something; one that does not needs no sandbox for commands."""

    def answer(self, assignment: Assignment, talk: Talk) -> Answer:
        """Do the assignment, saying every step on *talk*; failures are answers too, never exceptions."""
        ...
