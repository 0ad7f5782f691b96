"""Minds for tests of a cycle: one that answers by a function, and an agent's wits for the stand-in server."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Any

from hollow.mind import Away, Thought, Usage
from tests.support.ollama_server import agent_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hollow.mind import Question

PEERS = {"cedar": "cipher", "cipher": "vault", "vault": "cedar"}
TOPICS = {
    "cedar": ("entry points", "configuration keys", "error messages", "naming habits", "folder structure",
              "release notes", "logging style", "public interface"),
    "cipher": ("hidden assumptions", "missing checks", "shared state", "retry behaviour", "input validation",
               "resource limits", "time handling", "ordering rules"),
    "vault": ("small repairs", "test gaps", "clear names", "dead branches", "helper functions", "default values",
              "module borders", "message wording"),
}  # fmt: skip
"""What each agent writes about, one goal after the other; no two share their words."""


class ThinkerOf:
    """A thinker in this process: *answers* gives text, an object (sent as JSON), or an exception to raise."""

    name = "scripted"
    model: str | None = None

    def __init__(self, answers: Callable[[Question], Any], vectors: Callable[[str], list[float]] | None = None) -> None:
        self._answers = answers
        self._vectors = vectors
        self.asked: list[Question] = []
        self.closed = False

    def think(self, question: Question) -> Thought:
        self.asked.append(question)
        answer = self._answers(question)
        if isinstance(answer, Exception):
            raise answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return Thought(text=text, usage=Usage(input_tokens=len(question.prompt) // 4, output_tokens=len(text) // 4))

    def embed(self, texts: Sequence[str]) -> list[list[float]] | None:
        return [self._vectors(text) for text in texts] if self._vectors else None

    def close(self) -> None:
        self.closed = True

    @property
    def purposes(self) -> list[str]:
        """What was asked for, in order."""
        return [question.purpose for question in self.asked]


def by_purpose(**answers: Any) -> Callable[[Question], Any]:
    """Answers by purpose: one answer for ever, or a list of which each is given once and the last for ever."""
    given = {purpose: list(answer) if isinstance(answer, list) else [answer] for purpose, answer in answers.items()}

    def answer(question: Question) -> Any:
        left = given.get(question.purpose)
        if not left:
            return Away(f"Nobody answers {question.purpose}.")
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


class Clever:
    """Agents that bring every goal to its end in *cycles* cycles; for ``OllamaServer(answers=Clever().answers)``.

    Each writes one document a goal, improves it, remembers, and speaks to a peer; what comes next follows from the
    agent and how often it was asked, so the same order of questions gives the same answers.
    """

    def __init__(self, cycles: int = 2) -> None:
        self.cycles = cycles
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, str], int] = {}
        """(agent, topic) to how many plans were made for it."""

    @property
    def answers(self) -> dict[str, Any]:
        """For the field of the same name."""
        return {
            "existence": self.existence, "plan": self.plan,
            "semantic": {"accomplished": True, "reason": "The document says what the goal asks for.", "lesson": None},
            "fact": {"accurate": True, "reason": "What is cited is there."},
            "evaluate": {"accomplished": False, "reason": "A part is still missing."},
            "chat": {"reply": "Begin with what the tests say."},
        }  # fmt: skip

    def existence(self, body: dict[str, Any]) -> dict[str, Any]:
        """The next topic that was not planned to its end yet."""
        agent = _agent(body)
        with self._lock:
            topics = TOPICS[agent]
            fresh = [topic for topic in topics if self._asked.get((agent, topic), 0) < self.cycles]
        # All are written: from the first one on again, which the environment may refuse.
        topic = (fresh or list(topics))[0]
        return {
            "action": "goal", "content": objective(topic), "reasoning": "It is not written down anywhere.",
            "worldview_update": None, "new_open_questions": [f"Who relies on the {topic}?"], "new_opinions": [],
            "suffering_assessment": {"new_stressors": [], "resolved": []},
        }  # fmt: skip

    def plan(self, body: dict[str, Any]) -> dict[str, Any]:
        """The steps of the next cycle of the goal that the prompt names."""
        agent = _agent(body)
        with self._lock:
            topic = self._topic(agent, body["messages"][0]["content"])
            number = self._asked[agent, topic] = self._asked.get((agent, topic), 0) + 1
        slug = topic.replace(" ", "-")
        steps = [
            ("fs_write", {"path": f"workspace/{agent}/{slug}.md", "content": document(agent, topic, number)}),
            ("fs_write", {"path": f"workspace/{agent}/{slug}-{number}.md", "content": evidence(agent, topic, number)}),
            ("memory_set", {"key": f"{slug}-{number}", "value": f"Round {number} on {topic}: {objective(topic)}"}),
            ("agent_message", {"to": PEERS[agent], "message": f"Round {number} on {topic} is written."}),
            ("read_peer", {"agent": PEERS[agent], "path": ""}),
        ]
        return {"steps": [{"capability_id": name, "params": given, "rationale": f"{topic}"} for name, given in steps]}

    def _topic(self, agent: str, prompt: str) -> str:
        """What the prompt's goal is about; a prompt also tells of what is over, so the goal's own section comes first."""
        section = re.split(r"CURRENT GOAL", prompt, maxsplit=1)[-1]
        places = [(section.find(topic), topic) for topic in TOPICS[agent] if objective(topic) in section]
        if places:
            return min(places)[1]
        left = [topic for topic in TOPICS[agent] if self._asked.get((agent, topic), 0) < self.cycles]
        return (left or list(TOPICS[agent]))[0]


def objective(topic: str) -> str:
    """The goal that is about *topic*."""
    return f"Describe the {topic} of this repository for the other agents"


def document(agent: str, topic: str, number: int) -> str:
    """A document of some substance; another one each round."""
    lines = [
        f"# The {topic} of this repository",
        "",
        f"Written by {agent} in round {number}. {objective(topic)}: that is what this page is for.",
        "",
        *(
            f"- Observation {count}: the {topic} were looked at from side {count}, and what was found is kept here so"
            " that nobody has to look again."
            for count in range(1, number + 3)
        ),
    ]
    return "\n".join([*lines, ""])


def evidence(agent: str, topic: str, number: int) -> str:
    """What goes with the document of round *number*."""
    return (
        f"# How {agent} looked at the {topic}, round {number}\n\n"
        f"The {topic} were read in the order in which a newcomer meets them, and each was held against what the other"
        f" agents have said so far. In round {number} nothing was found that speaks against the page. A reader who"
        " doubts it can walk the same way again.\n"
    )


def _agent(body: dict[str, Any]) -> str:
    name = agent_of(body)
    return name if name in TOPICS else "cedar"
