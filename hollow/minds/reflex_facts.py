"""The situation of a question as the reflex mind reads it: values of any shape in, plain words out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from essentials.digests import sha256
from essentials.records import dataclass, field
from hollow.words import STOP_WORDS, identifiers, is_task_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from hollow.mind import Question

_LONGEST: Final = 300
"""Characters of one text of the situation that are carried on."""

BEGUN: Final = "I have begun"
READ: Final = "I have read what you wrote"
"""How this mind's own messages begin: they tell something and ask for nothing."""

_SLUG_WORDS: Final = 6
_SLUG_LENGTH: Final = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What an agent knows of itself when it is asked something."""

    agent: str
    seed: str = ""
    goal: str = ""
    """The objective, empty where there is none."""
    band: str = ""
    locked: tuple[str, ...] = ()
    stressors: tuple[tuple[str, str], ...] = ()
    """Type, and what would ease it."""
    questions: tuple[str, ...] = ()
    peers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Peer to the files it has made, relative to its own folder."""
    files: tuple[str, ...] = ()
    """Some files of the repository."""
    workspace: tuple[str, ...] = ()
    """Files that the agent has made itself."""
    messages: tuple[tuple[str, str], ...] = ()
    """Sender and words of what has come in."""
    outcome: str = ""
    capabilities: frozenset[str] = frozenset()
    """Names; empty where nobody said which there are."""

    def can(self, capability: str) -> bool:
        """Whether *capability* exists and is not locked now."""
        known = not self.capabilities or capability in self.capabilities
        # What is locked may come as names or as sentences that name them.
        return known and not any(capability in identifiers(words) for words in self.locked)

    def pick(self, count: int, salt: str = "") -> int:
        """Return a number below *count* that follows from the seed: chance that can be repeated."""
        digest = sha256(f"{self.seed}\0{salt}".encode("utf-8", "replace")).digest()
        return int.from_bytes(digest[:8], "big") % max(1, count)


def situation(question: Question, agent: str) -> Situation:
    """Return the situation of *question* for *agent*; what is missing or of another shape is left empty."""
    facts = question.facts
    return Situation(
        agent=_text(facts.get("agent")) or agent,
        seed=_text(facts.get("seed")),
        goal=_text(_part(facts.get("goal"), "objective")),
        band=_text(facts.get("band")),
        locked=_texts(facts.get("locked")),
        stressors=tuple(
            (_text(_part(one, "type")), _text(_named(one, "condition") or _named(one, "observable_condition")))
            for one in _list(facts.get("stressors"))
        ),
        questions=_texts(facts.get("open_questions")),
        peers=_peers(facts.get("peers")),
        files=_texts(facts.get("files")),
        workspace=_texts(facts.get("workspace")),
        messages=tuple(
            (_text(_named(one, "from") or _named(one, "sender")), _text(_part(one, "message")))
            for one in _list(facts.get("messages"))
        ),
        outcome=_text(facts.get("outcome")),
        capabilities=frozenset(_texts(facts.get("capabilities"))),
    )


def telling(text: str) -> tuple[str, ...]:
    """Return the words of *text* that say what it is about, in order, lower case, each once."""
    words = (word.lower() for word in identifiers(text))
    kept = (word for word in words if len(word) > 2 and word not in STOP_WORDS and not is_task_word(word))  # noqa: PLR2004 - a letter count
    return tuple(dict.fromkeys(kept))


def slug(text: str) -> str:
    """Return a file name without its ending for a document about *text*."""
    ascii_only = (word.encode("ascii", "ignore").decode().replace("_", "-").strip("-") for word in telling(text))
    return "-".join([word for word in ascii_only if word][:_SLUG_WORDS])[:_SLUG_LENGTH].strip("-") or "notes"


def _peers(given: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, Mapping):
        return dict.fromkeys(_texts(given), ())
    return {
        str(name): tuple(path.removeprefix(f"workspace/{name}/") for path in _texts(paths))
        for name, paths in given.items()
    }


def _list(given: Any) -> Sequence[Any]:
    return given if isinstance(given, Sequence) and not isinstance(given, str) else ()


def _texts(given: Any) -> tuple[str, ...]:
    return tuple(filter(None, map(_text, _list(given))))


def _named(one: Any, name: str) -> Any:
    """The entry or attribute *name* of *one*, None where it has none."""
    return one.get(name) if isinstance(one, Mapping) else getattr(one, name, None)


def _part(one: Any, name: str) -> Any:
    """*one* itself where it is a text, else its *name*."""
    return one if isinstance(one, str) else _named(one, name)


def _text(given: Any) -> str:
    if given is None or isinstance(given, bool | Mapping):
        return ""
    # One line: what others wrote must not look like a heading of our own document.
    return " ".join(str(given).split())[:_LONGEST]
