"""A goal where the mind gave none that can be used: from real state, by rotation, the same for the same seed (S28)."""

from __future__ import annotations

import re

from essentials.digests import sha256
from essentials.patterns import late
from essentials.records import dataclass, field, replace
from hollow.substrate.goals import family

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Final

    from hollow.substrate.model import Stressor

ROTATION: Final = ("stressor", "question", "peer", "outcome", "journal")
"""The five sources in their order (T83, seed 001)."""
SURVEY: Final = "survey"
"""The source when all five are empty or used up."""
PREFIX: Final = "fallback:"
"""What :attr:`Goal.source` of such a goal begins with."""

_SHOWN: Final = 100
"""Characters of a text from outside that stand in an objective, which is then shorter than 300."""
_SLUG: Final = 48
_MOST: Final = 40
"""Entries of one source that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The state that a goal can be grounded in."""

    agent: str
    stressors: Sequence[Stressor] = ()
    """The active ones."""
    open_questions: Sequence[str] = ()
    peer_files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Peer to its documents, as paths from the top of the airlock."""
    last_outcome: str = ""
    """How the last goal ended, in words."""
    journal: Sequence[str] = ()
    """The agent's own documents and notes, as paths from the top of the airlock or keys of its memory; newest last."""
    files: Sequence[str] = ()
    """Files of the repository."""
    writable: bool = True
    """Whether documents can be written now; while they are locked the result goes into the agent's memory."""


def turn(last_source: str) -> int:
    """Return where the rotation goes on after *last_source*, the source of the agent's last fallback goal, or "".

    It is read from the registry of goals, so a restart does not begin anew.
    """
    name = last_source.removeprefix(PREFIX)
    return ROTATION.index(name) + 1 if name in ROTATION else 0


def choose(sources: Sources, *, seed: str, recent: Sequence[str], turn: int) -> tuple[str, str]:
    """Return an objective and its source, ``fallback:`` and one of :data:`ROTATION` or :data:`SURVEY` (T83).

    The rotation begins at *turn* and skips a source that is empty or whose goals are all of a family in *recent*, the
    latest objectives. *seed* (agent and cycle, say) decides between several of one source; nothing else does.
    """
    used = {family(each) for each in recent}
    for name in (ROTATION[(turn + at) % len(ROTATION)] for at in range(len(ROTATION))):
        fresh = [each for each in _GROUNDED[name](sources) if family(each) not in used]
        if fresh:
            return fresh[_draw(f"{seed}:{name}", len(fresh))], PREFIX + name
    return _survey(sources, seed, recent), PREFIX + SURVEY


def _draw(seed: str, count: int) -> int:
    return int.from_bytes(sha256(seed.encode()).digest()[:8], "big") % count


def _task(sources: Sources, kind: str, about: str, what: str) -> str:
    """The objective to do *what*, with its result first: whoever cuts a long text must not lose what is wanted."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"{kind} {about}".casefold()).strip("-")[:_SLUG].strip("-")
    if sources.writable:
        return f"Write workspace/{sources.agent}/{slug}.md: {what}. Each statement with its path:line."
    return f"Keep {slug} with memory_set, in at least 100 characters: {what}."


def _stressors(sources: Sources) -> list[str]:
    worst = sorted(sources.stressors, key=lambda each: (-each.severity, each.type))[:_MOST]
    return [
        _task(sources, "easing", each.type, f"find what causes {_line(each.type)} and take the first step{_end(each)}")
        for each in worst
    ]


def _end(stressor: Stressor) -> str:
    condition = _line(stressor.condition)
    return f"; it will ease when {condition}" if condition else ""


def _questions(sources: Sources) -> list[str]:
    return [
        _task(sources, "answer", text, f"answer from what the repository shows: {text}")
        for text in map(_line, sources.open_questions[:_MOST])
        if text
    ]


def _peers(sources: Sources) -> list[str]:
    return [
        _task(
            sources, f"review-{peer}", _stem(path), f"check what {path} claims against its sources and message {peer}"
        )
        for peer in sorted(sources.peer_files)
        if peer != sources.agent
        for path in map(_line, list(sources.peer_files[peer])[-_MOST:])
        if path
    ]


def _outcome(sources: Sources) -> list[str]:
    text = _line(_FRAME.sub("", sources.last_outcome))
    # By its words alone: with paths the name would hold the names of other documents.
    words = " ".join(word for word in text.split() if "/" not in word)
    return [_task(sources, "follow-up", words, f"{_FOLLOW}{text}")] if text else []


_FOLLOW: Final = "do the next step that follows from the last outcome: "
_FRAME: Final = late(
    rf"(?:Completed: |Abandoned: |Write \S+: |Keep \S+ with memory_set, in at least 100 characters: |{_FOLLOW})"
)
"""What goals and outcomes begin with; what follows from what follows must not grow with every round."""


def _journal(sources: Sources) -> list[str]:
    return [_carried_on(sources, name) for name in map(_line, sources.journal[-_MOST:]) if name]


def _carried_on(sources: Sources, name: str) -> str:
    what = "check it against the repository as it is today, and add what is new"
    if "/" in name and sources.writable:
        # The note itself grows: a note about a note about a note helps nobody.
        return f"Extend {name}: {what}. Each statement with its path:line."
    return _task(replace(sources, writable=False), "continued", _stem(name), f"read {name}, {what}")


_GROUNDED: Final[Mapping[str, Callable[[Sources], list[str]]]] = {
    "stressor": _stressors,
    "question": _questions,
    "peer": _peers,
    "outcome": _outcome,
    "journal": _journal,
}
"""Source to the objectives that it gives, none where it is empty."""


def _survey(sources: Sources, seed: str, recent: Sequence[str]) -> str:
    """A look at one real file, if possible one that no recent objective names: this source is never used up."""
    files = [each for each in sources.files if each and each == _line(each)]
    fresh = [each for each in files if not any(each in objective for objective in recent)]
    if not files:
        return _task(sources, "survey", "repository", "survey the repository, what it holds and how it is put together")
    path = (fresh or files)[_draw(f"{seed}:{SURVEY}", len(fresh or files))]
    return _task(sources, "survey", path, f"survey {path}, what it does, what it uses and who uses it")


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].split(".", 1)[0]


def _line(text: str) -> str:
    """*text* from outside, as part of a sentence: one line, bounded, without its last full stop."""
    return " ".join(text.split())[:_SHOWN].rstrip(" .?!")
