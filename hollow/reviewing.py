"""Everything a review needs to know of a change: symbols touched, their uses, tests, history."""

from __future__ import annotations

from hollow.change import under_review
from hollow.documents import decoded, is_text
from hollow.findings import findings
from hollow.history import recent, touching
from hollow.index import Index
from hollow.kinds import Kind, is_code, kind, language
from hollow.report_review import Review
from hollow.symbols import enclosing, symbols
from hollow.tracked import contents, snapshot
from hollow.usage import covering_tests, uses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Final

    from hollow.change import Change
    from hollow.history import Commit
    from hollow.tracked import Snapshot
    from hollow.usage import Use

_FILES: Final = 60
"""Touched files whose symbols are looked up."""
_NAMES: Final = 12
"""Touched symbols whose uses are looked up."""
# Names that every second file defines: their uses would fill the list with strangers.
_EVERYWHERE: Final = frozenset(
    """__init__ main run get set add init new close open read write test setup next name value""".split()  # noqa: SIM905 - words read better than quotes
)


def reviewed(repo: Path, task: str) -> Review:
    """Return the review of the change in *repo* that *task* names (see :func:`hollow.change.under_review`).

    Raises :class:`hollow.gitread.GitReadError` where git cannot show it.
    """
    change = under_review(repo, task)
    # The state that the change leaves behind: its line numbers are those of the diff.
    snap = snapshot(repo, change.revision)
    touched = touched_symbols(change, snap)
    names = list(dict.fromkeys(bare for listed in touched.values() for name in listed if (bare := _bare(name))))
    found = uses(repo, [name for name in names if name not in _EVERYWHERE][:_NAMES])
    own = {file.path for file in change.files}
    present = [file.path for file in snap.files]
    tests = {
        path: covering_tests(path, present, [use for use in found if _mentions(use, touched.get(path, ()))])
        for path in own
        if kind(path) is Kind.SOURCE
    }
    return Review(
        change=change,
        findings=findings(change.files),
        symbols=touched,
        uses=_elsewhere(names, [use for use in found if use.path not in own]),
        tests=tests,
        commits=_history(repo, change),
    )


def touched_symbols(change: Change, snap: Snapshot) -> dict[str, list[str]]:
    """Return path to the qualified names of the definitions around the changed lines, in the order of the file."""
    hunks = {file.path: file.hunks for file in change.files if file.hunks and is_code(file.path)}
    wanted = [file for file in snap.files if file.path in hunks][:_FILES]
    found = {}
    for file, content in contents(snap, wanted):
        if content is not None and is_text(content):
            defined = symbols(decoded(content), language(file.path))
            around = [enclosing(defined, line) for line in hunks[file.path]]
            found[file.path] = list(dict.fromkeys(symbol.name for symbol in around if symbol))
    return found


def _bare(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _mentions(use: Use, names: Sequence[str]) -> bool:
    return any(_bare(name) in use.text for name in names)


def _elsewhere(names: Sequence[str], found: Sequence[Use]) -> dict[str, list[Use]]:
    """Touched name to its uses in other files; names without any are left out."""
    by_name = {name: [use for use in found if name in use.text] for name in names}
    return {name: places for name, places in by_name.items() if places}


def _history(repo: Path, change: Change) -> tuple[Commit, ...]:
    # A private index: five hundred commits are read in a moment, and a review then needs no folder of its own.
    with Index(None) as scratch:
        commits = recent(repo, scratch, change.revision or "HEAD", depth=500)
    earlier = [commit for commit in commits if commit.oid != change.revision]
    return tuple(touching(earlier, [file.path for file in change.files], 8))
