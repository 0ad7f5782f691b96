"""The mind of a cycle without a model: deterministic, grounded in the repository, honest about what it is."""

from __future__ import annotations

import json

from hollow.mind import Away, Thought, Usage
from hollow.minds import reflex_judging as judging
from hollow.minds.reflex_facts import situation
from hollow.minds.reflex_goals import existence
from hollow.minds.reflex_ground import Ground
from hollow.minds.reflex_plans import plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from hollow.mind import Question


class ReflexThinker:
    """Answers for *agent* from the airlock *repo* and the values of a question; *index* is the search index's folder.

    It reads ``question.facts``, never the prompt: the same state gives the same answer (design, section 10).
    """

    name = "reflex"
    model: str | None = None

    def __init__(self, *, agent: str, repo: Path, index: Path | None = None) -> None:
        self._agent = agent
        self._ground = Ground(repo, index)

    def think(self, question: Question) -> Thought:
        """Return the answer to *question*; raises :class:`Away` for a purpose that has no rule."""
        return Thought(text=json.dumps(self._answer(question), ensure_ascii=False), usage=Usage())

    def embed(self, texts: Sequence[str]) -> list[list[float]] | None:  # noqa: ARG002 - the protocol's shape
        """Return None: without a model there are no vectors, and texts are compared by their words."""
        return None

    def close(self) -> None:
        """Nothing is open."""

    def _answer(self, question: Question) -> dict[str, Any]:
        now = situation(question, self._agent)
        match question.purpose:
            case "existence":
                return existence(now)
            case "plan":
                return plan(now, self._ground)
            case "semantic":
                return judging.semantic(now, question.facts)
            case "evaluate":
                return judging.evaluate(now, question.facts)
            case "fact":
                return judging.fact(question.facts, self._ground.text)
            case "chat":
                return judging.chat(now)
            case other:
                raise Away(f"The reflex mind has no rule for {other}.")
