"""What the reflex mind stands on: places of the repository, each with a line that is really there."""

from __future__ import annotations

import os
import sqlite3

from essentials.patterns import late
from essentials.records import dataclass
from hollow.confine import Refusal
from hollow.documents import decoded, is_text
from hollow.gitread import GitReadError
from hollow.kinds import language
from hollow.survey import survey
from hollow.symbols import symbols
from hollow.toolbox.workspace import workspace
from hollow.usage import uses
from hollow.words import identifiers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Final

    from hollow.symbols import Symbol
    from hollow.usage import Use

_LARGEST: Final = 512 * 1024
"""Bytes of one file that are read."""
_MADE_HERE: Final = ("workspace/", "design/")
"""What agents wrote is no evidence of how the repository is."""
_PLAIN: Final = late(r"[\w@+][\w.@+-]*(?:/[\w.@+-]+)*")
"""A path that can be cited in prose: of one with a blank in it only a part would be read."""
_MOST_HITS: Final = 12
_SYMBOLS_OF_A_FILE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of a file of the repository."""

    path: str
    line: int
    """1-based."""
    name: str = ""
    """What is defined there; empty where the file as a whole is meant."""
    kind: str = ""
    """The word that defines it."""
    said: str = ""
    """What its documentation or the line itself says."""


class Ground:
    """Reads the airlock *repo* as an agent may; *index* is the folder of the search index (None: a temporary one)."""

    def __init__(self, repo: Path, index: Path | None) -> None:
        self._repo = repo
        self._index = index
        self._border = workspace(repo).border

    def text(self, path: str) -> str | None:
        """Return the text of the file *path*, or None where it is none, is closed or is too large."""
        try:
            with self._border.file(path) as handle:
                data = os.pread(handle, _LARGEST + 1, 0)
        except (Refusal, OSError):
            return None
        return decoded(data) if len(data) <= _LARGEST and is_text(data) else None

    def places(self, question: str, named: Sequence[str], files: Sequence[str]) -> tuple[Place, ...]:
        """Return places for *question*: those of the files it *named* first, else of *files* where nothing fits."""
        first = [place for path in named for place in self._of_file(path)]
        found = [*first, *self._surveyed(question)] or [place for path in files for place in self._of_file(path)]
        return tuple({(place.path, place.line): place for place in found if _PLAIN.fullmatch(place.path)}.values())

    def users(self, places: Sequence[Place]) -> tuple[Place, ...]:
        """Return lines of other files that use what is defined at *places*, at most three a file."""
        defined = [place.name for place in places if place.name]
        # A private name is used at home; elsewhere the same word means something else.
        names = [name for name in defined if not name.startswith("_")] or defined
        own = {place.path for place in places}
        found = [
            use
            for use in (uses(self._repo, names, most_each=3) if names else [])
            if use.path not in own and not use.path.startswith(_MADE_HERE) and _PLAIN.fullmatch(use.path)
        ]
        return tuple(Place(path=use.path, line=use.line, said=use.text) for use in _rarest_first(found, names))

    def _surveyed(self, question: str) -> list[Place]:
        try:
            hits = survey(self._repo, self._index, question, most=_MOST_HITS).hits
        # What a repository or a disk can cause: then the files that are known by name have to do.
        except (GitReadError, OSError, sqlite3.Error, ValueError, RecursionError):
            return []
        return [
            _of_symbol(hit.path, hit.symbol) if hit.symbol else Place(path=hit.path, line=hit.line)
            for hit in hits
            if not hit.path.startswith(_MADE_HERE) and (hit.symbol or any(hit.excerpt))
        ]

    def _of_file(self, path: str) -> list[Place]:
        text = self.text(path)
        if text is None or not text.strip():
            return []
        # What is explained and meant for others tells most of a file; the order of the file breaks ties.
        worth = sorted(symbols(text, language(path)), key=lambda one: (not one.doc, one.name.startswith("_"), one.line))
        defined = worth[:_SYMBOLS_OF_A_FILE]
        return [_of_symbol(path, symbol) for symbol in defined] or [Place(path=path, line=1, said=_first_line(text))]


def _rarest_first(found: Sequence[Use], names: Sequence[str]) -> list[Use]:
    """*found* with the uses of those of *names* first that few files hold: a common word proves no acquaintance."""
    held = {use: [name for name in names if name in identifiers(use.text)] for use in found}
    files = {name: len({use.path for use, hers in held.items() if name in hers}) for name in names}
    return sorted(
        found, key=lambda use: (min((files[name] for name in held[use]), default=len(found)), use.path, use.line)
    )


def _of_symbol(path: str, symbol: Symbol) -> Place:
    # The bare name, because that is what stands in the file.
    return Place(
        path=path, line=symbol.line, name=symbol.name.rsplit(".", 1)[-1], kind=symbol.kind, said=symbol.doc.strip()
    )


def _first_line(text: str) -> str:
    # Only the first line is line 1; an empty one says nothing, and the citation still holds.
    return text.split("\n", 1)[0].strip()
