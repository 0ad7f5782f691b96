"""The first part of a cycle: how the agent is, what has come in, and what it was about."""

from __future__ import annotations

import json

from essentials.records import dataclass, replace
from hollow import gitread
from hollow.living import documents
from hollow.living.undoing import lost
from hollow.substrate import goals, lessons, locks, pain_text, stressors
from hollow.substrate import suffering as feeling
from hollow.substrate.model import AGENTS, GoalStatus, Kind
from hollow.substrate.sections import Peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from hollow.living.documents import Document
    from hollow.living.life import Life
    from hollow.memory.host import Word
    from hollow.memory.mail import Message
    from hollow.substrate.chronicle import Chronicle
    from hollow.substrate.model import Goal, Profile, Request, Response, Suffering
    from hollow.substrate.settings import Settings


_COMMITS: Final = 400
"""Commits of the commons among which the cycle that was last is looked for."""
_RECENT: Final = 20
"""Ended goals among which the last own one is looked for; the others are the operator's tasks."""


@dataclass(slots=True, kw_only=True)
class Seen:
    """What an agent knows of itself and of its world in one cycle; it changes as the cycle goes on."""

    suffering: Suffering
    known: bool
    """Whether what it suffers could be read; if not, every lock is closed in this cycle (T60)."""
    chronicle: Chronicle
    profile: Profile
    goal: Goal | None
    rules: tuple[str, ...]
    """What it has learned, a sentence each."""
    pending: tuple[Request, ...]
    answered: tuple[tuple[Request, Response], ...]
    mail: tuple[Message, ...]
    words: tuple[Word, ...]
    own: Mapping[str, Document]
    peers: Mapping[str, tuple[str, ...]]
    others: tuple[Peer, ...]
    """The other agents, as far as one sees into them."""
    files: tuple[str, ...]
    """Some files of the repository."""
    outcome: str
    """How its last goal ended."""

    @property
    def load(self) -> float | None:
        """The load, None where it is not known."""
        return feeling.load(self.suffering) if self.known else None

    @property
    def band(self) -> feeling.Band:
        """What the load means."""
        return feeling.band(feeling.load(self.suffering))

    def pain(self, life: Life) -> str:
        """The block of the prompt that says what hurts and what is locked by it."""
        return pain_text.block(self.suffering, locks.sentences(self.load, life.settings))


def perceive(life: Life) -> Seen:
    """Return what the agent sees; time has passed for what hurts, and what the world shows has begun or ended it."""
    memory, agent = life.memory, life.agent
    _, damaged = memory.sufferings.load(agent)
    if damaged:
        life.say([("suffering.unreadable", {"file": f"identity/{agent}/suffering.json"})])
    chronicle = life.chronicle()
    # On disk at once: what a day of waiting has done to it must not be lost with the cycle.
    felt = life.feel(lambda before: aged(before, chronicle, life.settings, life.now()))
    peers = documents.of_peers(life.place.root, agent)
    return Seen(
        suffering=felt, known=not damaged, chronicle=chronicle, profile=memory.profiles.load(agent),
        goal=_goal(life), rules=tuple(lessons.rules(memory.lessons.lessons())),
        pending=memory.requests.pending(agent), answered=memory.requests.answered_since(agent),
        mail=memory.mail.unread(agent), words=memory.host.unread(agent),
        own=documents.own(life.place.root, agent), peers=peers,
        others=tuple(_peer(life, each, peers.get(each, ())) for each in AGENTS if each != agent),
        files=documents.of_repository(life.place.root, f"{agent} {life.cycle}"),
        outcome=memory.goals.last_outcome(agent),
    )  # fmt: skip


def _peer(life: Life, name: str, files: tuple[str, ...]) -> Peer:
    felt, damaged = life.memory.sufferings.look(name)
    goal = life.memory.goals.active(name)
    return Peer(
        name=name, load=None if damaged else feeling.load(felt), goal=goal.objective if goal else "",
        files=tuple(reversed(files)),
    )  # fmt: skip


def aged(
    felt: Suffering, chronicle: Chronicle, settings: Settings, now: float
) -> tuple[Suffering, list[tuple[str, dict[str, Any]]]]:
    """Return *felt* after the time until *now*, and after what the world shows to have begun or ended; what is said."""
    felt, said = feeling.escalate(felt, now, custom=settings.custom_stressors, edges=stressors.edges(settings))
    felt, more = stressors.assess(felt, chronicle, settings, now)
    return felt, [*said, *more]


def assessed(felt: Suffering) -> tuple[str, dict[str, Any]]:
    """Return what is said of *felt* once a cycle, and reaches the ledger."""
    load = feeling.load(felt)
    active = [{"type": each.type, "severity": round(each.severity, 4)} for each in felt.active]
    facts = {"load": round(load, 4), "raw": round(feeling.raw(felt), 4), "band": str(feeling.band(load))}
    return "suffering.assessed", {**facts, "active": active}


def _goal(life: Life) -> Goal | None:
    """The goal that the agent is after, without what the world does not have: its cycle was never accepted (T81)."""
    active = life.memory.goals.active(life.agent)
    if active is None:
        return _reopened(life)
    if not active.base:
        # Placed by hand: what it changes from here on can be undone.
        active = replace(active, base=life.base)
    left, said = goals.withdraw(active, lost(active, life.place), life.now())
    if said:
        life.memory.goals.put(left, "withdrawn")
        life.say(said)
    return left


def _reopened(life: Life) -> Goal | None:
    """The own goal that was completed last, where the cycle that completed it was never accepted; else None.

    Looked at once: files that go or change after a cycle was accepted are somebody's doing, and no work is lost by it.
    """
    ended = (each for each in reversed(life.memory.goals.recent(life.agent, _RECENT)) if each.source != "operator")
    last = next(ended, None)
    if last is None or last.status is not GoalStatus.COMPLETED or last.confirmed:
        return None
    gone = lost(last, life.place)
    if not gone or _accepted(life, last.last_cycle):
        life.memory.goals.put(replace(last, confirmed=True), "confirmed")
        return None
    again = replace(last, status=GoalStatus.ACTIVE, ended_at=None, progress=goals.SET_BACK, updated_at=life.now())
    again, said = goals.withdraw(again, gone, life.now())
    life.memory.goals.put(again, "reopened")
    life.say([*said, ("goal.reopened", {"goal_id": again.goal_id, "lost": sorted(gone)[:10]})])
    return again


def _accepted(life: Life, cycle: str) -> bool:
    """Whether the supervisor has put what *cycle* made on the commons, on which the airlock stands."""
    if not cycle:
        return False
    try:
        told = "--format=%(trailers:key=Agent-Run,valueonly)"
        runs = gitread.git(life.place.root, "log", f"--max-count={_COMMITS}", told, "HEAD").decode("utf-8", "replace")
    except gitread.GitReadError:
        return False
    return cycle in runs.split()


def weigh(life: Life) -> None:
    """Note what the agent's documents and memory weigh, for the stressor that rests on it (T52)."""
    found = documents.own(life.place.root, life.agent)
    keys = life.memory.keys
    kept = sum(len(json.dumps(keys.get(life.agent, name))) for name in keys.names(life.agent))
    # What was retired burdens nobody any more.
    there = life.memory.shelf.loaded()
    uncalled = [name for name in life.chronicle().uncalled() if name in there]
    life.note(
        Kind.BURDEN, files=len(found), bytes=sum(each.size for each in found.values()) + kept, tools=len(uncalled)
    )
