"""memory_set and memory_get: what an agent keeps under a key of its own."""

from __future__ import annotations

from hollow.hands.call import Failed, done
from hollow.memory.keys import Full
from hollow.substrate.model import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from hollow.hands.call import Call
    from hollow.substrate.model import Result

_MOST_NAMED: Final = 20


def memory_set(reach: Call, key: str, value: Any) -> Result:
    """Remember a value under a key; it stays from cycle to cycle. A key that is used again is replaced.

    key: 1 to 120 characters
    value: text, number, list or object; at most 16 KB
    """
    try:
        changed = reach.memory.keys.set(reach.agent, key, value)
    except Full as why:
        raise Failed(Trouble.USAGE, str(why)) from None
    return done({"key": key, "changed": changed}, left=(f"memory:{key}",))


def memory_get(reach: Call, key: str) -> Result:
    """Give back what you remember under a key.

    key: the key it was set under
    """
    try:
        return done(reach.memory.keys.get(reach.agent, key))
    except KeyError:
        raise Failed(Trouble.FAILED, f"You remember nothing under {key[:200]!r}. {_known(reach, key)}") from None


def _known(reach: Call, key: str) -> str:
    names = reach.memory.keys.names(reach.agent)
    if not names:
        return "There is no key yet; memory_set makes one."
    import difflib

    near = difflib.get_close_matches(key, names, n=_MOST_NAMED)
    listed = list(dict.fromkeys([*near, *reversed(names)]))[:_MOST_NAMED]
    return f"Your keys are {', '.join(listed)}" + (" …" if len(names) > len(listed) else ".")
