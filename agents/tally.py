"""Counts of tokens and turns, added up from what an agent's messages tell while they grow."""

from __future__ import annotations

import math

from essentials import records
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

TOKENS: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
"""The kinds of tokens that are counted. They do not overlap: what came from a cache is not in ``input_tokens``."""
_OPEN: Final = 32
"""Messages that may still grow; a main thread and its subagents interleave a few at most."""
_NAME: Final = 128
"""Characters of an id; real ones have 30."""
LARGEST: Final = 2**53
"""A count that JSON readers everywhere can hold; real ones have ten digits at most."""


def counts(told: object) -> dict[str, int]:
    """The numbers of tokens in *told*, which is foreign input, under the names of :data:`TOKENS`; never raises."""
    if not told or not isinstance(told, dict):
        return {}
    return {name: told[name] for name in TOKENS if is_count(told.get(name))}


def is_count(value: object) -> bool:
    """Whether *value* is a number that counts something."""
    # True is an int to Python.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


@dataclass(frozen=True, slots=True)
class Spend:
    """What one message of a model has used so far; it is said again with every part of the message."""

    message: str | None = None
    """The message's id, None where the engine gives none: then this is all of it."""
    counts: Mapping[str, int] = field(default_factory=dict)
    turn: bool = True
    """Whether it counts as a turn: what a subagent or the harness says does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Everything that messages have told; bounded, whatever they tell."""

    turns: int = 0
    """Messages of the main thread, told apart by their ids."""
    closed: Mapping[str, int] = field(default_factory=dict)
    """Tokens of messages that will not grow any more."""
    open: tuple[tuple[str, Mapping[str, int]], ...] = ()
    """Ids and tokens of the newest messages, oldest first."""

    def plus(self, spend: Spend) -> Tally:
        """The tally after *spend*: of one message the largest numbers count, each part repeats what it extends."""
        if spend.message is None:
            turns = self.turns + (spend.turn and bool(spend.counts))
            return records.replace(self, turns=turns, closed=summed(self.closed, counts(spend.counts)))
        known, name = dict(self.open), spend.message[:_NAME]
        turns = self.turns + (spend.turn and name not in known)
        known[name] = largest(known.get(name, {}), counts(spend.counts))
        closed = self.closed
        while len(known) > _OPEN:
            closed = summed(closed, known.pop(next(iter(known))))
        return Tally(turns=turns, closed=closed, open=tuple(known.items()))

    def tokens(self) -> dict[str, int]:
        """Tokens of all messages, under the names of :data:`TOKENS` that were told."""
        total = dict(self.closed)
        for _, told in self.open:
            total = summed(total, told)
        return total


def summed(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Both counts together, by name."""
    return {name: min(one.get(name, 0) + other.get(name, 0), LARGEST - 1) for name in {**one, **other}}


def largest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The larger of both counts, by name."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def share(value: object) -> float | None:
    """*value* as a share between 0 and 1, None where it is no number."""
    # Bounded before it is converted: JSON knows integers that no float can hold.
    if not isinstance(value, int | float) or isinstance(value, bool) or not -math.inf < value < math.inf:
        return None
    return float(min(1.0, max(0.0, value)))
