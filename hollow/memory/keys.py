"""What an agent chose to remember under a key: ``memory_set`` and ``memory_get``."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from hollow.memory.files import Files

MAX_KEY: Final = 120
"""Characters of a key."""
MAX_VALUE: Final = 16 * 1024
"""Bytes of a value as JSON; more is a document, and belongs into a file."""
MAX_KEYS: Final = 200
"""Keys of one agent; the file is read whole at every use."""


class Full(Exception):  # noqa: N818 - an answer to the agent
    """A key or value does not fit; the message is one sentence that says what would."""


class Keys:
    """The keys of each agent, in ``memory/<agent>.json`` below *files*."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def set(self, agent: str, key: str, value: Any) -> bool:
        """Remember the JSON *value* of *agent* under *key*; returns whether that changed anything.

        Raises :class:`Full` where key, value or their number is beyond the bounds; nothing is changed then.
        """
        _check(key, value)
        with self._files.hold():
            kept = self._all(agent)
            if key not in kept and len(kept) >= MAX_KEYS:
                raise Full(
                    f"You remember {MAX_KEYS} keys already; use one of them again, such as {next(iter(kept))!r}."
                )
            # What changes nothing is no step ahead, and is not written either.
            if key in kept and kept[key] == value:
                return False
            self._files.write(_name(agent), {**kept, key: value})
        return True

    def get(self, agent: str, key: str) -> Any:
        """Return what *agent* remembers under *key*; raises :class:`KeyError` where that is nothing."""
        return self._all(agent)[key]

    def names(self, agent: str) -> tuple[str, ...]:
        """Return the keys of *agent*, oldest first."""
        return tuple(self._all(agent))

    def _all(self, agent: str) -> dict[str, Any]:
        value = self._files.read(_name(agent)).value
        return value if isinstance(value, dict) else {}


def _name(agent: str) -> str:
    return f"memory/{agent}.json"


def _check(key: str, value: Any) -> None:
    if not key.strip() or len(key) > MAX_KEY or not key.isprintable():
        raise Full(f"A key has 1 to {MAX_KEY} printable characters.")
    size = len(json.dumps(value, ensure_ascii=True).encode())
    if size > MAX_VALUE:
        raise Full(
            f"The value takes {size} bytes as JSON and {MAX_VALUE} fit; write it to a file and remember its path."
        )
