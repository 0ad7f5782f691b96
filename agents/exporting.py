"""The export of an airlock: the tree that its agent made of the base, as a patch, and what is to be said about it."""

from __future__ import annotations

import os
from pathlib import Path

from agents import unaltered
from agents.cleanroom import ABSENT
from agents.errors import HostError
from agents.furnish import recall
from agents.inspection import HUGE, inspect, named, stamp
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final

    from agents.chamber import Airlock
    from agents.cleanroom import Change, CleanRoom
    from agents.furnish import Furnished
    from agents.inspection import Inspection

MOST_BYTES: Final = 1024**3
"""Sum of the large changed files above which nothing is exported: a patch is read into memory as a whole."""
_GITLINK: Final = "160000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What an agent made of its base."""

    tree: str
    """Id of the tree: this is the result, the patch is a view of it."""
    patch: bytes
    """Turns the base into the tree, with plain ``git apply``."""
    files: int
    added: int
    removed: int
    binary: int
    findings: tuple[str, ...]
    """Sentences on what is not in the patch, or odd in it."""


def export(airlock: Airlock, *, given: Furnished | None = None, huge: int = HUGE) -> Export:
    """Export *airlock*, whose agent is dead; can be done again and then gives the same (S13; T127, G12-G25, G27).

    What was furnished (*given*, or what was recorded in the clean room) and left as it was is not the agent's work.
    *huge* is the number of bytes above which a file is left out. Raises Tampered where the airlock is no folder any
    more, HostError where it cannot be read or is too large.
    """
    taken = _Taken(airlock, given, huge)
    survey = taken.survey or airlock.room.survey(airlock.base, taken.tree)
    counts = survey.counts
    # With another cap it is another export.
    unaltered.remember(airlock.room.path, taken.seen.stamp if huge == HUGE else "", taken.tree)
    return Export(
        tree=taken.tree, patch=survey.patch,
        files=counts.files, added=counts.added, removed=counts.removed, binary=counts.binary,
        findings=tuple(_findings(airlock, taken)),
    )  # fmt: skip


def result_tree(airlock: Airlock, given: Furnished | None = None) -> str:
    """Id of the tree that an export of *airlock* would have now: that of the last one if nothing was touched since."""
    known = unaltered.recalled(airlock.room.path, airlock.path)
    return known or _Taken(airlock, given, HUGE, brief=True).tree


class _Taken:
    """The tree of an airlock as it is now, and what was noticed on the way; *brief* is without a survey of it."""

    __slots__ = ("changes", "given", "ignored", "refused", "seen", "survey", "tree")

    def __init__(self, airlock: Airlock, given: Furnished | None, huge: int, *, brief: bool = False) -> None:
        room = airlock.room
        self.given = given if given and given.tree else recall(room.path)
        self.seen = inspect(airlock.path, huge=huge)
        self.ignored = _ignored(room, airlock.path, [*self.seen.huge, *self.seen.nested])
        _require_bearable(room, airlock.path, self.seen)
        self.refused: list[bytes] = []
        leave = (*airlock.left, *self.seen.nested, *self.seen.huge)
        whole = room.snapshot(airlock.path, leave=leave, refused=self.refused)
        survey = None if brief else room.survey(airlock.base, whole)
        found = survey.changes if survey else room.changes(airlock.base, whole)
        undone = self._undone(airlock, found)
        self.changes = tuple(each for each in found if each not in set(undone))
        self.tree = room.with_entries(whole, _as_before(undone)) if undone else whole
        # Of what is not the agent's work nothing is to be told.
        self.survey = None if undone else survey

    def _undone(self, airlock: Airlock, found: Iterable[Change]) -> list[Change]:
        """Those of the changes *found* that are not the agent's work: what was furnished, and other repositories."""
        given = self.given.tree if self.given else None
        theirs = frozenset(airlock.room.changes(airlock.base, given) if given else ())
        return [each for each in found if each in theirs or _GITLINK in {each.old_mode, each.new_mode}]


def _as_before(changes: Iterable[Change]) -> list[tuple[str, str, bytes]]:
    # What goes out goes first: a file may return to where a folder was.
    entries = [(each.old_mode, each.old_id, each.path) for each in changes]
    return sorted(entries, key=lambda entry: entry[0] != ABSENT)


def _require_bearable(room: CleanRoom, tree: Path, seen: Inspection) -> None:
    """Refuse what is too much for a patch before it is read; git is asked only where there is so much at all."""
    large = {path: size for path, size in seen.large.items() if path not in seen.huge}
    if sum(large.values()) <= MOST_BYTES:
        return
    listing = ("ls-files", "-z", "--modified", "--others", "--exclude-standard")
    total = sum(large.get(path, 0) for path in set(room.output(*listing, tree=tree).split(b"\0")))
    if total > MOST_BYTES:
        raise HostError(
            f"The agent's large files come to {total // 1024**2} MiB, too much for a patch.",
            "Remove what is generated from the airlock, or have git ignore it.",
        )


# --- What is to be said -----------------------------------------------------------------------------------------------


def _findings(airlock: Airlock, taken: _Taken) -> list[str]:
    seen, changed = taken.seen, {each.path for each in taken.changes}
    deleted = [each.path for each in taken.changes if each.new_mode == ABSENT]
    lists = (
        ("Repositories of their own, whose files are not in the patch", _less(seen.nested, taken.ignored)),
        ("Too large for the patch, left out", _less(seen.huge, taken.ignored)),
        ("No regular files, left out", seen.special),
        ("Names that git refuses, left out", taken.refused),
        ("One name on systems that do not tell case apart", [b" ~ ".join(p) for p in seen.twins if {*p} & changed]),
        ("Changes in submodules are not in the patch", _touched(airlock, taken)),
        ("Changed, but never part of a patch", _private_changes(airlock, taken)),
        ("Not in the patch, because the agent has git ignore it", _newly_ignored(airlock, taken)),
    )
    said = [f"{head}: {named(paths)}." for head, paths in lists if paths]
    if deleted and len(deleted) >= airlock.files:
        said.append(f"Every file of the base is deleted ({len(deleted)}).")
    return said


def _less(paths: Sequence[bytes], ignored: frozenset[bytes]) -> list[bytes]:
    return [path for path in paths if path not in ignored]


def _ignored(room: CleanRoom, tree: Path, paths: Sequence[bytes]) -> frozenset[bytes]:
    """Those of *paths* that git ignores in *tree*; tracked ones never count as ignored."""
    if not paths:
        return frozenset()
    # Else a name that begins with a colon would be read as a pattern.
    asked = b"\0".join(b"./" + path for path in paths)
    done = room.run("check-ignore", "-z", "--stdin", stdin=asked, tree=tree)
    return frozenset(path.removeprefix(b"./") for path in done.stdout.split(b"\0"))


def _touched(airlock: Airlock, taken: _Taken) -> list[bytes]:
    before = {**airlock.submodules, **(taken.given.stamps if taken.given else {})}
    return [path for path, seen in before.items() if stamp(airlock.path / os.fsdecode(path)) != seen]


def _private_changes(airlock: Airlock, taken: _Taken) -> list[bytes]:
    """Files below the private folders that the agent changed, made or deleted."""
    present = [name for name in airlock.private if name in taken.seen.top or name in airlock.tracked_private]
    if not present:
        return []
    listing = ("ls-files", "-z", "--modified", "--deleted", "--others", "--deduplicate", "--")
    listed = airlock.room.output(*listing, *map(os.fsdecode, present), tree=airlock.path).split(b"\0")
    known = taken.given.paths if taken.given else ()
    return [path for path in listed if path and path not in known]


def _newly_ignored(airlock: Airlock, taken: _Taken) -> list[bytes]:
    """What is ignored by rules that the agent made: files and folders that the rules of the base would show (G23)."""
    if not any(each.path.rpartition(b"/")[2] == b".gitignore" for each in taken.changes):
        return []
    listing = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    hidden = [path for path in airlock.room.output(*listing, tree=airlock.path).split(b"\0") if path]
    given = set(taken.given.paths) if taken.given else set()
    known = _ignored_by_base(airlock.room, hidden)
    return [path for path in hidden if path not in known and path.rstrip(b"/") not in given]


def _ignored_by_base(room: CleanRoom, paths: Sequence[bytes]) -> frozenset[bytes]:
    """Those of *paths* that the ``.gitignore`` files of the base ignore, asked in a tree that holds nothing else."""
    import tempfile

    rules = room.output("ls-files", "-z", "--", ":(glob)**/.gitignore")
    with tempfile.TemporaryDirectory(dir=room.path) as folder:
        tree = Path(folder)
        for path in paths:
            if path.endswith(b"/"):
                # A rule for folders applies to what is one.
                (tree / os.fsdecode(path)).mkdir(parents=True, exist_ok=True)
        room.output("checkout-index", "-z", "--stdin", "--force", stdin=rules, tree=tree)
        return _ignored(room, tree, paths)
