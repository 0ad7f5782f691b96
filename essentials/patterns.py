"""Regular expressions that are compiled when they are first used: compiling all of them is felt at every start."""

from __future__ import annotations

import re

TYPE_CHECKING = False  # As `typing` has it; this module is loaded by every verb.
if TYPE_CHECKING:
    from typing import Any, AnyStr


class _Late:
    """A regular expression that nobody has asked anything yet; each of its methods is fetched once."""

    def __init__(self, text: Any, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found


def late(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What ``re.compile(text, flags)`` returns, compiled at the first use of it.

    For expressions of a module, which may never be used by the command that imports it. A fault in *text* shows at its
    first use. It is to be asked by its methods: the functions of :mod:`re` want a compiled one.
    """
    made: Any = _Late(text, flags)
    pattern: re.Pattern[AnyStr] = made
    return pattern
