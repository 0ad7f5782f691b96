"""What the reflex mind wants next: a goal out of the real state, in rotation by the cycle's seed."""

from __future__ import annotations

from hollow.minds.reflex_facts import BEGUN, READ, slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Final

    from hollow.minds.reflex_facts import Situation

_CRISIS: Final = "crisis"
_SEQUEL: Final = "Follow up on the last outcome"
_WORDS: Final = 160
"""Characters of somebody's words that go into a goal."""


def existence(now: Situation) -> dict[str, Any]:
    """Return the answer to the existence question in the situation *now* (seed 001; facts 3.2).

    An active goal stays. Otherwise one is taken from what is really there: a stressor, an open question, a message, a
    peer's file, a file of the repository, the last outcome. It claims no relief and no opinion: it has no judgement.
    """
    content, why = (now.goal, "The goal is not reached yet.") if now.goal else _chosen(now)
    return {
        "action": "goal",
        "content": content,
        "reasoning": f"Chosen by rule, not by a model: {why}",
        "worldview_update": None,
        "new_open_questions": _wondered(now),
        "new_opinions": [],
        "suffering_assessment": {"new_stressors": [], "resolved": []},
    }


def _chosen(now: Situation) -> tuple[str, str]:
    if now.band == _CRISIS and now.stressors:
        return _in_crisis(now), "in a crisis nothing else is allowed."
    sources = [(source, found) for source in _SOURCES if (found := source(now))]
    done = {path.rpartition("/")[2].rpartition(".")[0] for path in now.workspace}
    first = now.pick(len(sources), "source")
    for source, found in [*sources[first:], *sources[:first]]:
        begin = now.pick(len(found), source.__name__)
        for content in [*found[begin:], *found[:begin]]:
            # A document of that name is there already: wanting it again would be the rut that goals fall into (W33).
            if slug(content) not in done:
                return content, (source.__doc__ or "").lower()
    return f"Survey what {now.agent} has written so far and find what it leaves open", "everything else is done."


def _in_crisis(now: Situation) -> str:
    names = ", ".join(name for name, _ in now.stressors)
    peer = sorted(now.peers)[now.pick(len(now.peers), "peer")] if now.peers else ""
    ask = f" and ask {peer} for help" if peer else ""
    return f"Examine what weighs on me ({names}){ask}"


def _stressors(now: Situation) -> Sequence[str]:
    """Something hurts."""
    return [
        f"Examine what feeds {name.replace('_', ' ')} and write down what would ease it: {condition or 'not known'}"
        for name, condition in now.stressors
        if name
    ]


def _questions(now: Situation) -> Sequence[str]:
    """A question is open."""
    return [f"Answer the open question: {question[:_WORDS]}" for question in now.questions]


def _messages(now: Situation) -> Sequence[str]:
    """A peer has written."""
    return [
        f"Look into what {sender or 'a peer'} writes: {words[:_WORDS]}"
        for sender, words in now.messages
        if words and not words.startswith((BEGUN, READ))
    ]


def _peer_files(now: Situation) -> Sequence[str]:
    """A peer has made something."""
    return [
        f"Read {path} of {peer} and find in the repository what supports it"
        for peer, paths in sorted(now.peers.items())
        for path in paths
    ]


def _files(now: Situation) -> Sequence[str]:
    """The repository has a file that nobody here has explained."""
    return [f"Explain what {path} does and who uses it" for path in now.files]


def _outcome(now: Situation) -> Sequence[str]:
    """The last goal has ended."""
    # What was reached needs no sequel, and a sequel of a sequel says nothing any more.
    told = now.outcome.lower()
    over = not told or told.startswith("completed") or _SEQUEL.lower() in told
    return [] if over else [f"{_SEQUEL}: {now.outcome[:_WORDS]}"]


_SOURCES: Final[tuple[Callable[[Situation], Sequence[str]], ...]] = (
    _files, _stressors, _questions, _peer_files, _messages, _outcome,
)  # fmt: skip


def _wondered(now: Situation) -> list[str]:
    """A question about a real file, where none is open: curiosity that a later goal can answer."""
    if now.questions or not now.files:
        return []
    return [f"What depends on {now.files[now.pick(len(now.files), 'question')]}?"]
