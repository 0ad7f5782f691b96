"""The agents' mailboxes: one a reader, and a message is gone only when its reader says that it was used (T160, W13)."""

from __future__ import annotations

from essentials.records import dataclass
from hollow.memory.moments import iso, seconds
from hollow.memory.numbered import KEPT, NumberedLog
from hollow.substrate.model import AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from hollow.memory.files import Files

LONGEST: Final = 4000
"""Characters of one message; a longer one is refused, not cut (W17)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What one agent, or the operator, told another."""

    number: int
    """Its place in the mailbox: what :meth:`Mail.ack` is given."""
    sender: str
    to: str
    text: str
    at: float
    """Seconds since the epoch; 0 where it is not known."""


class Mail:
    """The mailboxes ``messages/<agent>/inbox.jsonl`` of *agents*, each with room for *room* messages."""

    def __init__(self, files: Files, agents: tuple[str, ...] = AGENTS, *, room: int = KEPT) -> None:
        self._files = files
        self._agents = agents
        self._room = room

    def send(self, sender: str, to: str, text: str, now: float) -> str:
        """Put *text* into the mailbox of *to*; returns an empty string, or one sentence that says why it was refused.

        *now* is in seconds since the epoch. A mailbox that nobody reads fills up and then refuses: nothing that was
        accepted is ever dropped unread.
        """
        to = to.strip().casefold()
        why = self._refusal(sender, to, text)
        if why:
            return why
        with self._files.hold():
            box = self._box(to)
            # One place less than the log keeps: appending must never push out what nobody has read.
            if len(box.unread(to)) >= self._room - 1:
                return f"The mailbox of {to} is full: {self._room - 1} messages wait to be read. Write later."
            box.append({"from": sender, "to": to, "message": text, "timestamp": iso(now)})
        return ""

    def _refusal(self, sender: str, to: str, text: str) -> str:
        if to not in self._agents:
            peers = ", ".join(name for name in self._agents if name != sender)
            return f"There is no agent {to[:40]!r}; your peers are {peers}."
        if to == sender:
            return "That is you: a message goes to a peer. Keep notes with memory_set."
        if not text.strip():
            return "The message is empty."
        if len(text) > LONGEST:
            return f"The message has {len(text)} characters; {LONGEST} are the most. Write it to a file and name that."
        return ""

    def unread(self, agent: str) -> tuple[Message, ...]:
        """Return what *agent* has not acknowledged yet, oldest first; reading changes nothing."""
        if agent not in self._agents:
            return ()
        read = (_message(number, agent, line) for number, line in self._box(agent).unread(agent))
        return tuple(each for each in read if each is not None)

    def ack(self, agent: str, upto: int) -> None:
        """Note that *agent* has used every message up to the number *upto*: call it after the prompt was answered."""
        if agent not in self._agents:
            return
        with self._files.hold():
            self._box(agent).acknowledge(agent, upto)

    def _box(self, agent: str) -> NumberedLog:
        return NumberedLog(self._files, f"messages/{agent}/inbox.jsonl", f"messages/{agent}/cursor.json", self._room)


def _message(number: int, to: str, line: dict[str, Any]) -> Message | None:
    text = line.get("message")
    if not isinstance(text, str) or not text.strip():
        return None
    # A line placed by hand may lack all but its text.
    sender = line.get("from")
    at = seconds(line.get("timestamp")) or 0.0
    return Message(number=number, sender=sender if isinstance(sender, str) else "", to=to, text=text[:LONGEST], at=at)
