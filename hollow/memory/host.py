"""The operator's words to the agents: shown until an answered prompt has held them (W12)."""

from __future__ import annotations

from essentials.records import dataclass
from hollow.memory.moments import iso, seconds
from hollow.memory.numbered import NumberedLog
from hollow.substrate.model import AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from hollow.memory.files import Files

LONGEST: Final = 4000
"""Characters of what is said at once."""
_SHOWN: Final = 20
"""Unread words that an agent is given at once, the oldest first; the others follow when these are acknowledged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """Something that the operator said."""

    number: int
    """Its place in the log: what :meth:`HostWords.ack` is given."""
    text: str
    to: str | None
    """The agent that it is for; None for all."""
    at: float
    """Seconds since the epoch; 0 where it is not known."""


class HostWords:
    """The log ``host_words.jsonl``, with a cursor for each agent."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._log = NumberedLog(files, "host_words.jsonl", "host_cursors.json")

    def say(self, text: str, now: float, to: str | None = None) -> int:
        """Tell the agent *to*, or all, *text* at *now* (seconds since the epoch); returns the number of the word.

        Raises :class:`ValueError`, with one sentence, for an unknown agent, no text, or more than 4,000 characters.
        """
        if to is not None and to not in AGENTS:
            raise ValueError(f"There is no agent {to[:40]!r}; there are {', '.join(AGENTS)}.")
        if not text.strip() or len(text) > LONGEST:
            raise ValueError(f"Say between 1 and {LONGEST} characters; these are {len(text.strip())}.")
        with self._files.hold():
            return self._log.append({"to": to, "message": text, "timestamp": iso(now)})

    def unread(self, agent: str) -> tuple[Word, ...]:
        """Return what was said to *agent* or to all and is not acknowledged, oldest first; reading changes nothing."""
        words = (_word(number, line) for number, line in self._log.unread(agent))
        return tuple(each for each in words if each is not None and each.to in {None, agent})[:_SHOWN]

    def ack(self, agent: str, upto: int) -> None:
        """Note that *agent* has used every word up to the number *upto*: call it after the prompt was answered."""
        with self._files.hold():
            self._log.acknowledge(agent, upto)


def _word(number: int, line: dict[str, Any]) -> Word | None:
    text, to = line.get("message"), line.get("to")
    if not isinstance(text, str) or not text.strip():
        return None
    at = seconds(line.get("timestamp")) or 0.0
    return Word(number=number, text=text[:LONGEST], to=to if isinstance(to, str) else None, at=at)
