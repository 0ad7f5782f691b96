"""References from one step of a plan to what an earlier one gave: ``{"$ref": 1}``, never words within a text (W29)."""

from __future__ import annotations

from hollow.hands.call import Failed
from hollow.substrate.model import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from hollow.substrate.model import Result

_KEY: Final = "$ref"
_DEPTH: Final = 12
"""Levels of params that are looked into; deeper ones are left out by the manifest."""


def resolved(value: Any, results: Sequence[Result], depth: int = _DEPTH) -> Any:
    """Return *value* with every ``{"$ref": n}`` in it replaced by the output of the *n*-th of *results*, from 1.

    ``"last"`` stands for the newest, and ``"2.path"`` for what stands under a key (or number) of an output. Whatever
    else looks like a placeholder is text. Raises :class:`Failed` (usage) where there is no such output.
    """
    if depth == 0:
        return value
    if isinstance(value, dict):
        if value.keys() == {_KEY}:
            return _looked_up(str(value[_KEY]), results)
        return {key: resolved(inner, results, depth - 1) for key, inner in value.items()}
    return [resolved(inner, results, depth - 1) for inner in value] if isinstance(value, list) else value


def _looked_up(said: str, results: Sequence[Result]) -> Any:
    which, *keys = said.strip().split(".")
    number = len(results) if which == "last" else int(which) if which.isdecimal() else 0
    if not 1 <= number <= len(results):
        raise Failed(
            Trouble.USAGE, f"$ref {said[:80]} names no earlier step of this plan; it has {len(results)} so far."
        )
    if not results[number - 1].ok:
        raise Failed(Trouble.USAGE, f"$ref {said[:80]} names a step that failed; it gave nothing to go on with.")
    value = results[number - 1].output
    for key in keys:
        value = _below(value, key, said)
    return value


def _below(value: Any, key: str, said: str) -> Any:
    if isinstance(value, dict) and key in value:
        return value[key]
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        return value[int(key)]
    raise Failed(Trouble.USAGE, f"$ref {said[:80]} finds no {key[:40]!r} in what that step gave.")
