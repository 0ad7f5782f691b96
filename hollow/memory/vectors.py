"""The embeddings of capabilities, each kept with the hash of the very text that it was made of."""

from __future__ import annotations

from essentials.digests import sha256
from hollow.substrate.routing import usable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from hollow.memory.files import Files

FILE: Final = "tools/vectors.json"
MOST: Final = 512
"""Vectors that are kept; the rest is asked for again, which costs a request and nothing else."""
_DIGITS: Final = 6
"""Decimal places that are kept: cosines differ by less than one in a hundred thousand."""


class Vectors:
    """A cache below *files*: losing it costs time alone, so what is damaged in it is treated as missing (W23)."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def get(self, name: str, text: str) -> list[float] | None:
        """Return the vector kept for *name*, or None where there is none of exactly this *text*."""
        kept = self._all().get(name)
        fits = isinstance(kept, dict) and kept.get("hash") == _hash(text) and usable(kept.get("vector"))
        return [float(each) for each in kept["vector"]] if fits and kept is not None else None

    def put(self, vectors: Mapping[str, tuple[str, list[float]]]) -> None:
        """Keep the text and vector of each name; a vector that compares with nothing is left out."""
        fresh = {
            name: {"hash": _hash(text), "vector": [round(each, _DIGITS) for each in vector]}
            for name, (text, vector) in vectors.items()
            if usable(vector)
        }
        with self._files.hold():
            # The newest last, so that the oldest go first.
            others = {name: kept for name, kept in self._all().items() if name not in fresh}
            self._files.write(FILE, dict(list({**others, **fresh}.items())[-MOST:]))

    def forget(self, name: str) -> None:
        """Forget the vector of *name*: what was retired leaves no trace (C25)."""
        if name not in self._all():
            return
        with self._files.hold():
            self._files.write(FILE, {each: kept for each, kept in self._all().items() if each != name})

    def _all(self) -> dict[str, Any]:
        value = self._files.read(FILE).value
        return value if isinstance(value, dict) else {}


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
