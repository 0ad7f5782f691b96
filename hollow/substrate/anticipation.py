"""What an agent remembers of its pains when it is about to go where it has suffered before."""

from __future__ import annotations

from hollow.substrate.suffering import line
from hollow.words import STOP_WORDS, is_task_word, tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from hollow.substrate.model import Relief, Suffering

PEAK: Final = 0.5
"""Peak above which a pain is remembered (seed 004; T68)."""
_SHORTEST: Final = 3
_COMMON: Final = frozenset(
    tokens(
        """goal agent own recent cycle peer tool plan document time again begin begun kind result number last step
        write read create build capability fail failure row"""
    )
)
"""Words that descriptions of pains and goals of any domain have."""


def signal(s: Suffering, objective: str) -> str:
    """Return the anticipatory signal for the goal *objective*, or nothing (seed 004; F21, T68).

    A past pain is of a similar domain where its type or its description shares a significant word with the goal. Of
    several, the one that shares most is told of, then the one that was worst.
    """
    wanted = _significant(objective)
    near = [(len(wanted & _domain(each)), each.stressor.peak, each.at, each) for each in s.history if _marked(each)]
    # By the first three parts: reliefs themselves have no order.
    best = max((each for each in near if each[0]), default=None, key=lambda each: each[:3])
    if best is None:
        return ""
    relief = best[3]
    return (
        f"Anticipatory signal: a similar domain previously caused {relief.stressor.type} suffering "
        f"(peak {relief.stressor.peak:.2f}).\nIt resolved when: {line(relief.note).rstrip('.')}."
    )


def _marked(relief: Relief) -> bool:
    return relief.stressor.peak > PEAK


def _domain(relief: Relief) -> frozenset[str]:
    return _significant(f"{relief.stressor.type} {relief.stressor.description}")


def _significant(text: str) -> frozenset[str]:
    return frozenset(each for each in tokens(text) if _tells(each))


def _tells(word: str) -> bool:
    plain = len(word) >= _SHORTEST and not word.isdigit()
    return plain and word not in STOP_WORDS and word not in _COMMON and not is_task_word(word)
