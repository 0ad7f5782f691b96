"""A change as a review without a model: what it touches, what stands out, what else uses it."""

from __future__ import annotations

from essentials.records import dataclass
from hollow.kinds import Kind, kind
from hollow.markdown import code, prose
from hollow.report import MODEL_HINT, lately

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from hollow.change import Change, Touched
    from hollow.findings import Finding
    from hollow.history import Commit
    from hollow.usage import Use

_MOST_FILES: Final = 40
_MOST_FINDINGS: Final = 40
_MOST_USES: Final = 6
_MOST_TESTED: Final = 10
"""Rows of each section: a review longer than a few screens is not read, and the diff itself is at hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Everything a review says."""

    change: Change
    findings: Sequence[Finding]
    symbols: Mapping[str, Sequence[str]]
    """Path to the definitions that the change touches."""
    uses: Mapping[str, Sequence[Use]]
    """Bare name of a touched definition to its uses outside the change."""
    tests: Mapping[str, Sequence[str]]
    """Source path to the tests that are likely to cover it."""
    commits: Sequence[Commit] = ()


def review(seen: Review) -> str:
    """Return the review as Markdown."""
    if not seen.change.files:
        return f"**There is nothing to review: {prose(seen.change.title)} is empty.**\n\n{MODEL_HINT}\n"
    sections = [_summary(seen), _files(seen), _stands_out(seen.findings), _tests(seen), *_elsewhere(seen.uses)]
    return "\n\n".join([*sections, *lately(seen.commits), f"## How this was made\n\n{MODEL_HINT}"]) + "\n"


def _summary(seen: Review) -> str:
    files = seen.change.files
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    # Program text before all else: a lock file may have the most lines and the least to say.
    first = max(files, key=_weight)
    count = len(seen.findings)
    looks = f"{count} place{'s' if count != 1 else ''} deserve{'' if count != 1 else 's'} a second look"
    cut = " The diff is too large to be read whole." if seen.change.cut else ""
    return (
        f"**Reviewed {prose(seen.change.title)}: "
        f"{len(files)} file{'s' if len(files) != 1 else ''}, +{added} −{removed}; "
        f"{looks}.** Begin with {code(_start(first))}.{cut}"
    )


def _weight(file: Touched) -> tuple[bool, int]:
    return kind(file.path) is Kind.SOURCE, file.added + file.removed


def _start(file: Touched) -> str:
    return f"{file.path}:{file.hunks[0]}" if file.hunks else file.path


def _files(seen: Review) -> str:
    ordered = sorted(seen.change.files, key=_weight, reverse=True)
    rows = [_file(file, seen.symbols.get(file.path, ())) for file in ordered[:_MOST_FILES]]
    more = [f"- … and {len(ordered) - _MOST_FILES} more"] if len(ordered) > _MOST_FILES else []
    return "## Files touched\n\n" + "\n".join([*rows, *more])


def _file(file: Touched, names: Sequence[str]) -> str:
    size = "binary" if file.binary else f"+{file.added} −{file.removed}"
    moved = f" from {code(file.old_path)}" if file.old_path != file.path else ""
    listed = f": {', '.join(code(name) for name in names[:8])}" if names else ""
    return f"- {code(_start(file))} {file.status}{moved}, {size}{listed}"


def _stands_out(found: Sequence[Finding]) -> str:
    if not found:
        rules = "no conflict marker, secret, debug print, note to do later, large or binary file"
        return f"## What stands out\n\nNothing by the rules: {rules}."
    rows = [_finding(one) for one in found[:_MOST_FINDINGS]]
    more = [f"- … and {len(found) - _MOST_FINDINGS} more"] if len(found) > _MOST_FINDINGS else []
    return "## What stands out\n\n" + "\n".join([*rows, *more])


def _finding(one: Finding) -> str:
    where = f"{one.path}:{one.line}" if one.line else one.path
    return f"- {code(where)} {one.what}{': ' + code(one.text[:120]) if one.text else ''}"


def _tests(seen: Review) -> str:
    touched = [file.path for file in seen.change.files if kind(file.path) is Kind.TEST]
    sources = [file.path for file in seen.change.files if kind(file.path) is Kind.SOURCE and file.status != "deleted"]
    untested = ["- **The change touches program text but no test.**"] if sources and not touched else []
    rows = [
        *(f"- {code(path)} is part of the change" for path in touched[:_MOST_TESTED]),
        *untested,
        *(row for path in sources[:_MOST_TESTED] for row in _covering(path, seen.tests.get(path, ()), touched)),
    ]
    return "## Tests\n\n" + ("\n".join(rows) or "- The change touches no program text.")


def _covering(path: str, tests: Sequence[str], touched: Sequence[str]) -> list[str]:
    """The row on the *tests* of *path*; none where the change touches all of them, which has been said."""
    if not tests:
        return [f"- no test was found for {code(path)} by name or use"]
    others = ", ".join(code(test) for test in tests if test not in touched)
    return [f"- {code(path)} is likely covered by {others}: run it"] if others else []


def _elsewhere(uses: Mapping[str, Sequence[Use]]) -> list[str]:
    rows = []
    for name, places in uses.items():
        listed = ", ".join(code(f"{use.path}:{use.line}") for use in places[:_MOST_USES])
        more = f" and {len(places) - _MOST_USES} more" if len(places) > _MOST_USES else ""
        rows.append(f"- {code(name)}: {listed}{more}")
    return ["## Where else the touched symbols are used\n\n" + "\n".join(rows)] if rows else []
