"""One file's bytes as the fields that the index holds: symbols, documentation, body."""

from __future__ import annotations

from essentials.records import dataclass
from hollow.kinds import language
from hollow.symbols import clipped, docs, outline
from hollow.words import counts, identifiers, tokens_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from typing import Final

FIELDS: Final = ("symbols", "docs", "body")
_SNIFFED: Final = 8192
"""Bytes looked at to tell text from binary, as git and grep do."""
_MOST_REPEATS: Final = 30
"""A term's count is capped here: beyond it, BM25's saturation leaves no difference that matters."""
_PROSE_BODY: Final = 200_000
"""Characters of a file that are indexed."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The indexed fields of a file: tokens, repeated as often as they occur, in alphabetical order."""

    symbols: str
    docs: str
    body: str

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Number of tokens of each field."""
        return len(self.symbols.split()), len(self.docs.split()), len(self.body.split())


EMPTY: Final = Fields("", "", "")


def is_text(content: bytes) -> bool:
    """Whether *content* looks like text: no NUL byte in its first 8 KiB."""
    return b"\0" not in content[:_SNIFFED]


def decoded(content: bytes) -> str:
    """Return *content* as text with LF line ends; what is not UTF-8 becomes replacement characters."""
    # -sig, because a byte order mark would stick to the first word; replace, because one bad byte must not hide a file.
    text = content.decode("utf-8-sig", "replace")
    # The order matters: a lone CR is a line end as well, half of a CRLF is not.
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def fields(path: str, content: bytes | None) -> Fields:
    """Return the fields of the file at *path*; empty ones where *content* is None or binary."""
    if content is None or not is_text(content):
        return EMPTY
    text, spoken = clipped(decoded(content)[:_PROSE_BODY]), language(path)
    # By patterns also for Python: parsing takes many times as long, and bare names are all that the index needs.
    names = [
        token for symbol in outline(text, spoken) for word in identifiers(symbol.name) for token in tokens_of(word)
    ]
    return Fields(" ".join(names), _spread(counts(identifiers(docs(text, spoken)))), _spread(counts(identifiers(text))))


def _spread(counted: Counter[str]) -> str:
    """The tokens of *counted*, each as often as counted (at most 30 times)."""
    return " ".join(" ".join([token] * min(times, _MOST_REPEATS)) for token, times in counted.items())
