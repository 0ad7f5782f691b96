"""The documents of the reflex mind: part by part, every statement with the line it was read from."""

from __future__ import annotations

import re

from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Final

    from hollow.minds.reflex_ground import Place

_HEADING: Final = late(r"^## Part (\d+)", re.MULTILINE)
_PATH: Final = late(r"[\w.-]*/[\w./-]+|\b[\w-]+\.(?:py|js|ts|go|rs|md|json|toml|yaml|yml|txt|sh|c|h|java)\b")
_UNFINISHED: Final = late(
    r"\.\.\.|…|\b(?:todo|fixme|xxx|tbd|placeholder|lorem|notimplemented\w*)\b|<insert", re.IGNORECASE
)
"""What a gate takes for unfinished work: a quoted line that holds it would be held against the document."""

_LINE: Final = 160
_LARGEST: Final = 24_000
"""Characters of one document; beyond it a new one is begun with what is new."""


def parts(text: str | None) -> int:
    """Return how many parts the document *text* has."""
    return max((int(found[1]) for found in _HEADING.finditer(text or "")), default=0)


def document(before: str | None, objective: str, heading: str, places: Sequence[Place], author: str) -> str:
    """Return the document *before* (None: a new one) with one part more: *heading* and the lines of *places*."""
    number = parts(before) + 1
    kept = before.rstrip() if before and len(before) < _LARGEST else _opening(objective, author)
    lines = [statement(place) for place in places if quotable(statement(place))]
    body = lines or ["Nothing in the repository answers this by its words, names or history."]
    return "\n".join([kept, "", f"## Part {number}: {heading}", "", *body, ""])


def _opening(objective: str, author: str) -> str:
    return (
        f"# {objective}\n\n"
        f"Compiled by {author} without a model: what stands here was read from the files named, nothing is inferred.\n"
        "Each line cites the place where it was found, so that a reader can check it."
    )


def statement(place: Place) -> str:
    """Return what is said of *place*: one line that begins with its citation."""
    said = _one_line(place.said)
    # A path inside of a quoted line would be read as a claim of ours, true or not.
    said = said if said and quotable(said) and not _PATH.search(said) else ""
    if place.name:
        kind = f"{place.kind} " if place.kind else ""
        return f"- {place.path}:{place.line} defines {kind}`{place.name}`{f': {said}' if said else ''}"
    return f"- {place.path}:{place.line}{f' reads “{said}”' if said else ' is where its words meet'}"


def quotable(text: str) -> bool:
    """Whether *text* holds nothing that looks unfinished."""
    return not _UNFINISHED.search(text)


def title(objective: str, exists: Callable[[str], bool]) -> str:
    """Return *objective* as a heading: paths that are not there are told by their bare names, for they are no claim."""

    def shown(found: re.Match[str]) -> str:
        """A path as it may stand there."""
        path = found[0].rstrip(".")
        bare = path.rstrip("/").rpartition("/")[2].partition(".")[0]
        return found[0] if exists(path) else bare or "it"

    cleaned = _PATH.sub(shown, _one_line(objective))
    return _UNFINISHED.sub("", cleaned).strip(" .") or "Notes"


def paths_in(text: str) -> list[str]:
    """Return what looks like a path in *text*, in order."""
    return [found[0].rstrip(".") for found in _PATH.finditer(text)]


def summary(objective: str, places: Iterable[Place]) -> str:
    """Return what to remember of *places*: one sentence with citations."""
    cited = [f"{place.path}:{place.line}{f' ({place.name})' if place.name else ''}" for place in places]
    kept = [each for each in cited if quotable(each)][:6]
    found = ", ".join(kept) if kept else "no place of the repository"
    return f"{objective}: read so far, without a model's judgement: {found}."


def _one_line(text: str) -> str:
    # Backquotes and brackets would be taken for code and links in a Markdown document.
    return " ".join(text.replace("`", "'").split())[:_LINE]
