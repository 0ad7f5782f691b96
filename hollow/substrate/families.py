"""Families of rules: wordings that share few words and are one lesson all the same (seed 001; S25)."""

from __future__ import annotations

import re
from functools import lru_cache

from essentials.patterns import late
from essentials.records import dataclass
from hollow.substrate.similarity import KEPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A lesson in all its wordings: a text belongs to it where every one of *signs* is found."""

    name: str
    signs: tuple[re.Pattern[str], ...]
    implied: frozenset[str] = frozenset()
    """Names that the lesson speaks of anyway: with or without them it is the same."""


def _signs(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(late(rf"\b(?:{pattern})", re.IGNORECASE) for pattern in patterns)


_LOOK: Final = r"verif|check|confirm|ensur|make sure|validat|assum|guess|test (?:that|whether|if)"
_FILE: Final = r"(?:file ?)?(?:path|file|folder|director|document|name)"

# The first that fits counts, so the more particular ones stand first. Direction and names are judged elsewhere: "do not
# check …" is of the same family as "check …", and still its opposite.
FAMILIES: Final = (
    Family(
        name="path exists",
        signs=_signs(_LOOK, _FILE, r"exist|presen|there\b|missing"),
        implied=frozenset({"fs_read", "fs_edit", "read_peer", "ReadFile", "EditFile"}),
    ),
    Family(
        name="read before edit",
        signs=_signs(
            r"read|open|look at|view|inspect", r"edit|modif|chang|overwrit|replac", r"before|first|without|prior"
        ),
        implied=frozenset({"fs_read", "fs_edit", "fs_write", "ReadFile", "EditFile", "WriteFile"}),
    ),
    Family(
        name="edit exactly",
        signs=_signs(
            r"exact|verbatim|unique|once\b", r"old\b|old_text|passage|snippet|text to", r"edit|replac|quot|match"
        ),
        implied=frozenset({"fs_edit", "EditFile", "old_text", "old"}),
    ),
    Family(
        name="read-only",
        signs=_signs(
            r"read[ -]?only|writ(?:e|es|ing|ten|able)\b|modif|chang|immutable",
            r"(?:system |core )?(?:path|file|folder|director|area|tree)s?\b|outside|below|under\b",
            r"read[ -]?only|can ?not|can't|never|not\b|must not|only\b|immutable|forbidden",
        ),
        implied=frozenset({"fs_write", "fs_edit", "WriteFile", "EditFile"}),
    ),
    Family(
        name="no placeholder",
        signs=_signs(
            r"placeholder|to-?do\b|stub|lorem|scaffold|template text|unfinished|boilerplate",
            r"write|leav|deliver|document|file|content|artifact|output|text",
        ),
        implied=frozenset({"todo".upper(), "fs_write"}),
    ),
    Family(
        name="no repeated request",
        signs=_signs(
            r"request|submit|submission|invoke_claude|ask", r"again|repeat|twice|duplicat|already|resubmit|once\b|same"
        ),
        implied=frozenset({"invoke_claude", "check_claude_status"}),
    ),
    Family(
        name="cite what was read",
        signs=_signs(
            r"cit(?:e|es|ing|ation)|mention|claim|refer(?:ence)?|nam(?:e|ing)\b",
            r"read|seen|saw|verified|exist|actual",
            r"file|symbol|function|code|path|line",
        ),
        implied=frozenset({"fs_read"}),
    ),
    Family(
        name="test before done",
        signs=_signs(
            r"tests?\b|testing|execut",
            r"before|first|prior|until",
            r"deploy|publish|finish|complet|done\b|submit|propos|report",
        ),
        implied=frozenset({"test_exec", "shell_exec"}),
    ),
)


@lru_cache(maxsize=KEPT)
def of(text: str) -> Family | None:
    """Return the family that *text* belongs to, or None."""
    return next((each for each in FAMILIES if all(sign.search(text) for sign in each.signs)), None)
