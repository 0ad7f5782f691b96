"""What a mind is: values in, one answer out, everything it does said on the stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from hollow.stream import Talk


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What one cycle is asked to do."""

    task: str
    """The operator's words, verbatim."""
    run_type: str
    """scout, plan, review or benchmark."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of a cycle as the model server counted them."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a cycle ends with; becomes the stream's ``result`` event."""

    text: str
    """Markdown. The supervisor makes report.md (or plan.md) of it."""
    subtype: str = "success"
    """success, error_max_turns or error_during_execution."""
    turns: int = 1
    usage: Usage = field(default_factory=Usage)

    @property
    def is_error(self) -> bool:
        """Whether the cycle failed."""
        return self.subtype != "success"


class Mind(Protocol):
    """What thinks."""

    name: str
    """ollama, reflex or scripted."""
    model: str | None
    """The model's name, or None where there is none."""

    def answer(self, assignment: Assignment, talk: Talk) -> Answer:
        """Do the assignment, saying every step on *talk*; failures are answers too, never exceptions."""
        ...
