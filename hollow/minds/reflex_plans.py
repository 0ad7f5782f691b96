"""How the reflex mind goes about a goal: two to six steps that read, write down, remember and speak to peers."""

from __future__ import annotations

from hollow.minds import reflex_notes as notes
from hollow.minds.reflex_facts import BEGUN, READ, slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Final

    from hollow.minds.reflex_facts import Situation
    from hollow.minds.reflex_ground import Ground, Place

_A_PART: Final = 5
"""Places of one part: a cycle reads a little and comes back."""

_TEXTS: Final = (".md", ".txt", ".rst")

_HEADINGS: Final = ("where it stands", "who uses it")


def plan(now: Situation, ground: Ground) -> dict[str, Any]:
    """Return the answer to the plan question in the situation *now* (facts 3.3): steps that advance the goal.

    Every cycle adds a part to one document ``workspace/<agent>/<slug>.md``, or, where writing is locked, to the memory;
    how many there are is read from the document itself, so nothing is done twice.
    """
    path = _target(now)
    before = ground.text(path)
    number = notes.parts(before)
    places = _material(now, ground, number)
    objective = notes.title(now.goal, lambda name: ground.text(name) is not None)
    steps = [
        *_reading(now, places, number),
        *_peers(now, number),
        *_writing(now, path, notes.document(before, objective, _heading(number), places, f"{now.agent}’s reflex mind")),
        *_remembering(now, path, number, notes.summary(objective, places)),
        *_speaking(now, path, number, objective),
    ]
    return {"steps": steps}


def _target(now: Situation) -> str:
    """The document to write: the one that the goal names in a folder of the agent's own, else one named after it."""
    own = f"workspace/{now.agent}/"
    for path in notes.paths_in(now.goal):
        inside = path.removeprefix("/agentOS/").removeprefix("agentOS/")
        if inside.startswith((own, "design/")) and inside.endswith(_TEXTS) and ".." not in inside:
            return inside
    return f"{own}{slug(now.goal)}.md"


def _heading(number: int) -> str:
    return _HEADINGS[number] if number < len(_HEADINGS) else "further places"


def _material(now: Situation, ground: Ground, number: int) -> tuple[Place, ...]:
    """The places of part *number* (from 0): definitions, then their uses, then what else the survey found."""
    found = ground.places(now.goal, notes.paths_in(now.goal), now.files)
    if number == 1:
        used = ground.users(found[:_A_PART])
        return used[: 2 * _A_PART] or found[_A_PART : 2 * _A_PART] or found[:1]
    start = 0 if number == 0 else (number - 1) * _A_PART
    return found[start : start + _A_PART] or found[:1]


def _step(capability: str, rationale: str, **params: Any) -> dict[str, Any]:
    return {"capability_id": capability, "params": params, "rationale": rationale}


def _reading(now: Situation, places: Sequence[Place], number: int) -> list[dict[str, Any]]:
    """Two files of this part; in a later part the other end of the list, since what was read counts once."""
    paths = list(dict.fromkeys(place.path for place in places)) if now.can("fs_read") else []
    chosen = paths[:2] if number % 2 == 0 else paths[::-1][:2]
    return [_step("fs_read", "what is claimed of it has to stand there", path=path) for path in chosen]


def _writing(now: Situation, path: str, text: str) -> list[dict[str, Any]]:
    if not now.can("fs_write"):
        return []
    return [_step("fs_write", "a finding counts once it is written down", path=path, content=text)]


def _remembering(now: Situation, path: str, number: int, summary: str) -> list[dict[str, Any]]:
    if not now.can("memory_set"):
        return []
    key = f"{path.rpartition('/')[2].rpartition('.')[0]}-{number + 1}"
    # Where nothing can be written the document does not grow, so the cycle's seed keeps the keys apart.
    key = key if now.can("fs_write") else f"{key}-{now.pick(1_000_000, 'key'):06d}"
    return [_step("memory_set", "the next cycle begins where this one ends", key=key, value=summary)]


def _peers(now: Situation, number: int) -> list[dict[str, Any]]:
    """One look at a peer's work: who is never read stays invisible (S4)."""
    # Whoever has made something comes first, part by part in turn.
    names = sorted(now.peers, key=lambda name: (not now.peers[name], name))
    if not names or not now.can("read_peer"):
        return []
    peer = names[number % len(names)]
    made = now.peers[peer]
    path = made[now.pick(len(made), "made")] if made else ""
    return [_step("read_peer", "a peer may know already", agent=peer, path=path)]


def _speaking(now: Situation, path: str, number: int, objective: str) -> list[dict[str, Any]]:
    """A word to a peer: an answer to one who wrote, an announcement at the beginning, a call for help when locked."""
    to = _addressee(now, number)
    if not to or not now.can("agent_message"):
        return []
    return [
        _step("agent_message", "work that no peer knows of helps nobody", to=to, message=_words(now, path, objective))
    ]


def _addressee(now: Situation, number: int) -> str:
    # An answer is not answered: two minds without a model would otherwise write to each other for ever.
    senders = [sender for sender, words in now.messages if sender in now.peers and not words.startswith(READ)]
    if senders:
        return senders[0]
    names = sorted(now.peers)
    announce = number == 0 or not now.can("fs_write")
    return names[now.pick(len(names), "to")] if names and announce else ""


def _words(now: Situation, path: str, objective: str) -> str:
    choices: tuple[tuple[bool, Callable[[], str]], ...] = (
        (not now.can("fs_write"), lambda: f"I cannot write now. I am at: {objective}. What do you know of it?"),
        (bool(now.messages), lambda: f"{READ}. I am at: {objective}. What I find is in {path}."),
    )
    told = next((words() for applies, words in choices if applies), "")
    return told or f"{BEGUN}: {objective}. What I find is in {path}; tell me what is missing."
