"""What one turn of an agent's life works with, and the happenings that it gathers on its way."""

from __future__ import annotations

from essentials import records
from essentials.records import dataclass, field
from hollow.mind import Question, Usage
from hollow.substrate.chronicle import Chronicle
from hollow.substrate.model import NOTHING, Happening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from hollow.forge import Forge
    from hollow.memory.memory import Memory
    from hollow.mind import Thinker, Thought
    from hollow.sandbox import Cell
    from hollow.stream import Talk
    from hollow.substrate.model import Kind, Suffering
    from hollow.substrate.settings import Settings
    from hollow.toolbox.workspace import Workspace


@dataclass(slots=True, kw_only=True)
class Life:
    """One agent in one cycle: the doors it has, and what has happened so far."""

    agent: str
    cycle: str
    """Name of the run; stands in everything that is remembered."""
    place: Workspace
    """The airlock."""
    memory: Memory
    thinker: Thinker
    settings: Settings
    talk: Talk
    now: Callable[[], float]
    """Seconds since the epoch."""
    cell: Callable[[bool], Cell | None]
    """The sandbox for children; True asks for one that may write the agent's own folders."""
    forge: Forge
    base: str
    """Commit that the airlock stands on."""
    usage: Usage = field(default_factory=Usage)
    generations: int = 0
    _unsaved: list[Happening] = field(default_factory=list)
    _window: Chronicle | None = None

    def note(self, kind: Kind, /, **facts: Any) -> None:
        """Remember that *kind* happened now; on disk with the next :meth:`keep`."""
        self._unsaved.append(Happening(kind=kind, at=self.now(), cycle=self.cycle, facts=facts or NOTHING))

    def take(self, happenings: Iterable[Happening]) -> None:
        """Remember *happenings*."""
        self._unsaved += happenings

    def keep(self) -> None:
        """Put on disk what has happened since the last time."""
        happened, self._unsaved = self._unsaved, []
        # A reading of a peer's document happens to the peer.
        for whose in dict.fromkeys(str(each.facts.get("of") or self.agent) for each in happened):
            mine = [each for each in happened if str(each.facts.get("of") or self.agent) == whose]
            self.memory.chronicles.add(whose, mine)
            if whose == self.agent and self._window is not None:
                self._window = Chronicle((*self._window.happenings, *mine))

    def chronicle(self) -> Chronicle:
        """Return what had happened to the agent when it was first asked for, and what it has kept since.

        It is read from disk once a cycle: a window takes longer to read than all else that a cycle does. What a peer
        does to it meanwhile is seen in the next cycle.
        """
        if self._window is None:
            self._window = self.memory.chronicles.read(self.agent)
        return self._window

    def say(self, said: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Say events of the environment on the stream, from where the supervisor carries them to the ledger."""
        for kind, facts in said:
            self.talk.fact(kind, **{"agent": self.agent, **facts})

    def feel(self, act: Callable[[Suffering], tuple[Suffering, list[tuple[str, dict[str, Any]]]]]) -> Suffering:
        """Have *act* change what the agent suffers, on disk in one step; say what there is to say of it."""
        felt, said = self.memory.sufferings.feel(self.agent, act)
        self.say(said)
        return felt

    def counting(self) -> Thinker:
        """The mind for capabilities that ask it: what they take is counted too."""
        return _Counting(self)

    def ask(self, purpose: str, prompt: str, schema: Mapping[str, Any], facts: Mapping[str, Any] = NOTHING) -> Thought:
        """Have the mind answer one question; what it takes is counted. Raises :class:`hollow.mind.Away`."""
        return self.think(Question(purpose=purpose, prompt=prompt, schema=schema, facts=facts))

    def think(self, question: Question) -> Thought:
        """Have the mind answer *question*; what it takes is counted. Raises :class:`hollow.mind.Away`."""
        thought = self.thinker.think(question)
        self.generations += 1
        self.usage += thought.usage
        self.talk.generation(records.asdict(thought.usage))
        return thought


class _Counting:
    """The mind of *life*, every question of which is counted there."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self.name = life.thinker.name
        self.model = life.thinker.model

    def think(self, question: Question) -> Thought:
        """Answer *question*; raises :class:`hollow.mind.Away`."""
        return self._life.think(question)

    def embed(self, texts: Sequence[str]) -> list[list[float]] | None:
        """Return vectors for *texts*, or None."""
        return self._life.thinker.embed(texts)

    def close(self) -> None:
        """The mind is its owner's to close."""
