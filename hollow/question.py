"""A question in plain words as what can be searched for: weighted terms, exact names, paths, lines."""

from __future__ import annotations

import re
from types import MappingProxyType

from essentials.patterns import late
from essentials.records import dataclass, field
from hollow.words import identifiers, is_compound, is_task_word, tokens_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

_NOISE: Final = late(
    r"https?://\S+|<[^<>@\s]+@[^<>\s]+>"  # addresses: their words are somebody else's
    r"|(?<=\n)(?:[A-Z][\w-]+-by|Cc|Change-Id|Closes|Fixes|Refs?|Resolves):[^\n]*$"
    r"|\(?#\d+\)?|\bGH-\d+|\b[0-9a-f]{40}\b",
    re.MULTILINE,
)
_CODE: Final = late(r"`+([^`\n]{2,200})`+|(?<![\w])['\"]([\w.$:/-]{3,80})['\"]")
_DOTTED: Final = late(r"(?<![\w./-])[A-Za-z_]\w*(?:(?:\.|::|->|#)[A-Za-z_]\w*)+(?:\(\))?")
_CALL: Final = late(r"\b[A-Za-z_]\w+(?=\()")
_PATH: Final = late(
    r"(?<![\w/])(?:[\w.@+-]{1,80}/){0,20}[\w.@+-]{0,80}[\w@+-]\.[A-Za-z][A-Za-z0-9]{0,9}\b"
    r"|(?<![\w/])(?:[\w.@+-]{1,80}/){1,20}[\w@+-]{1,80}"
)
_FRAME: Final = late(
    r"File \"(?P<python>[^\"\n]+)\", line (?P<python_line>\d+)(?:, in (?P<function>\w+))?"
    r"|(?P<file>[\w./@+-]{1,200}\.[A-Za-z]\w{0,5}):(?P<line>\d+)"
)
_SCOPE: Final = late(
    r"\A\s*(?:\w+\((?P<inner>[\w ./,-]+)\)!?|(?P<prefix>[\w./-]+)|\[(?P<tag>[\w ./-]+)\]):?(?<=[:\]])\s"
)
_CONVENTIONAL: Final = frozenset(
    """fix feat chore docs refactor test tests perf style build ci revert bug bugfix""".split()  # noqa: SIM905 - words read better than quotes
)

SUBJECT_WEIGHT: Final = 1.0
BODY_WEIGHT: Final = 0.5
"""A commit body or a long description wanders; its words count for less than the first line's (docs/ranking.md)."""
# These three were tuned together with hollow.ranking.Weights on the same repositories (docs/ranking.md).
_TASK_WEIGHT: Final = 0.25
_CODE_WEIGHT: Final = 1.4
_SCOPE_WEIGHT: Final = 2.0
# A longer list adds common words only, and each one costs a search.
_MOST_TERMS: Final = 60
_ENDINGS: Final = frozenset(
    """py js ts tsx jsx go rs java kt c h cc cpp hpp rb php cs swift sh sql md rst txt toml yaml yml json cfg ini html
    css""".split()  # noqa: SIM905 - words read better than quotes
)
_MOST_TEXT: Final = 16_000
"""Characters of a question that are read: a pasted log's first pages say what it is about."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for."""

    text: str
    terms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Token (see :mod:`hollow.words`) to weight, heaviest first, at most sixty."""
    names: tuple[str, ...] = ()
    """Identifiers as written: dotted parts, quoted code, camelCase and snake_case words."""
    paths: tuple[str, ...] = ()
    """File names and paths as written, "/"-separated."""
    lines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Path as written to a line number (1-based) of a stack trace or ``path:line``."""

    def asks_for(self, *words: str) -> bool:
        """Whether any of *words* stands in the question."""
        return any(re.search(rf"\b{word}\b", self.text, re.IGNORECASE) for word in words)


def parse(text: str) -> Question:
    """Return *text* as a :class:`Question`; any text will do, the empty one too."""
    read = text[:_MOST_TEXT]
    # Before the noise is taken out: a trace's paths and numbers look much like it.
    frames = _frames(read)
    clean = _NOISE.sub(" ", read).strip()
    # Places of a trace come first; they are the surest of all.
    paths = tuple(dict.fromkeys([*frames, *(hit[0].strip("./") for hit in _PATH.finditer(clean) if _is_path(hit[0]))]))
    names = tuple(dict.fromkeys(_names(clean)))
    terms = sorted(_weights(clean, names).items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_TERMS]
    return Question(text, MappingProxyType(dict(terms)), names, paths, MappingProxyType(frames))


def _frames(text: str) -> dict[str, int]:
    """Paths with line numbers of stack traces and compiler messages, the innermost (last) line of each path."""
    hits = ((hit["python"] or hit["file"], hit["python_line"] or hit["line"]) for hit in _FRAME.finditer(text))
    return {path.replace("\\", "/").lstrip("./"): int(line[:9]) for path, line in hits}


def _is_path(word: str) -> bool:
    """Whether *word* names a file or a folder rather than an attribute or a fraction like "and/or"."""
    last = word.rsplit("/", 1)[-1]
    return word.count("/") > 1 or ("." in last and last.rsplit(".", 1)[-1].lower() in _ENDINGS)


def _names(text: str) -> list[str]:
    """Identifiers in *text* that are written as code is."""
    quoted = _words(hit[1] or hit[2] or "" for hit in _CODE.finditer(text))
    dotted = _words(hit[0] for hit in _DOTTED.finditer(text))
    called = [hit[0] for hit in _CALL.finditer(text)]
    shaped = [word for word in identifiers(text) if is_compound(word) and not word[0].isdigit()]
    return [name for name in (*quoted, *dotted, *called, *shaped) if len(name) > 2]  # noqa: PLR2004 - "os", "is", "x"


def _words(pieces: Iterable[str]) -> list[str]:
    return [word for piece in pieces for word in identifiers(piece)]


def _weights(text: str, names: tuple[str, ...]) -> dict[str, float]:
    """Token to weight: the place where it stands, what kind of word it is, and whether it is code."""
    subject, _, body = text.partition("\n")
    scope = _scope(subject)
    weights: dict[str, float] = {}
    for words, base in ((identifiers(subject), SUBJECT_WEIGHT), (identifiers(body), BODY_WEIGHT)):
        for word in words:
            weight = base * _factor(word, names, scope)
            for token in tokens_of(word):
                # The best place counts, not the sum: repeating a word does not make it mean more.
                weights[token] = max(weights.get(token, 0.0), weight)
    return weights


def _factor(word: str, names: tuple[str, ...], scope: frozenset[str]) -> float:
    if word in scope:
        return _SCOPE_WEIGHT
    if word in names:
        return _CODE_WEIGHT
    return _TASK_WEIGHT if is_task_word(word) else 1.0


def _scope(subject: str) -> frozenset[str]:
    """The words of a leading "module:" or "fix(module):", which name the place."""
    hit = _SCOPE.match(subject + " ")
    words = identifiers(hit["inner"] or hit["prefix"] or hit["tag"] or "") if hit else []
    return frozenset(word for word in words if word.lower() not in _CONVENTIONAL)
