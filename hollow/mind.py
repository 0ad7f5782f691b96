"""What a mind is: values in, one answer out, everything it does said on the stream."""

from __future__ import annotations

from essentials.records import dataclass, field
from hollow.answer import Answer, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any, Protocol

    from hollow.sandbox import Cell
    from hollow.stream import Talk
else:
    Protocol = object  # its meaning is a type checker's

__all__ = ["Answer", "Assignment", "Away", "Mind", "Question", "Thinker", "Thought", "Usage"]


class Away(Exception):  # noqa: N818 - an answer of the world, not an error of ours
    """The mind cannot be reached or gave nothing in time; the message is one sentence. Never taken for a yes (T88)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One generation that a cycle asks for."""

    purpose: str
    """existence, plan, semantic, fact, evaluate or chat."""
    prompt: str
    """The whole prompt; it begins with who the agent is."""
    schema: Mapping[str, Any]
    """JSON schema of the answer."""
    facts: Mapping[str, Any]
    """The same situation as values, for a mind that does not read prose."""
    seconds: float | None = None
    """Time it may take; None for the mind's own limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """What one generation gave."""

    text: str
    """As the mind wrote it; whoever asked reads it tolerantly."""
    usage: Usage


class Thinker(Protocol):
    """What thinks inside a cycle: one question, one generation."""

    name: str
    model: str | None

    def think(self, question: Question) -> Thought:
        """Answer *question*; raises :class:`Away`."""

    def embed(self, texts: Sequence[str]) -> list[list[float]] | None:
        """Return one vector for each of *texts*, or None where there is no such model now."""

    def close(self) -> None:
        """Let go of what was opened."""


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
    rules: tuple[str, ...] = ()
    """What the agents have learned of their environment, a sentence each (S23)."""
    pain: str = ""
    """What the agent suffers and what is locked by it, as its prompt says it; empty in calm."""
    locked: Mapping[str, str] = field(default_factory=dict)
    """Tools that are locked now, each with the sentence that a call of it gets (T56)."""
    rejected: tuple[str, str] | None = None
    """The report that the completion gate has just given back, and why."""


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
