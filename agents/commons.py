"""The commons: a branch of what the hollow agents have made so far; cycles begin at its tip and are committed to it.

The operator's branch, index and files are never touched. Everything is computed in clean rooms, and the branch moves by
compare and swap under the lock that all work trees of the repository share.
"""

from __future__ import annotations

import contextlib
import os

from agents import cycles, exporting, files, git, landing, policy, worktrees
from agents.cleanroom import ABSENT, CleanRoom
from agents.errors import HostError, OperatorError
from agents.inspection import named
from essentials import records
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Final

    from agents.chamber import Airlock
    from agents.cleanroom import Change
    from agents.context import Context
    from agents.exporting import Export
    from agents.furnish import Furnished
    from agents.model import RunMeta

BRANCH: Final = git.COMMONS_REF.removeprefix("refs/heads/")
OWN: Final = ("workspace", "design")
"""The folders that agents may write in; everything else on the branch is as in the operator's own commit."""
_LOOK_BACK: Final = 1000
"""Commits of the branch among which those of a goal are looked for: a goal takes a few dozen cycles at most."""
_Entry = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Tip:
    """Where the branch stands."""

    commit: str
    head: str | None
    """The operator's commit that it was brought up to date with last; None where nobody says so."""


# --- Where a cycle begins ---------------------------------------------------------------------------------------------


def begin(context: Context) -> str:
    """The commit that a cycle begins with: the tip of the commons, brought up to date with HEAD and made if missing.

    Raises OperatorError before the first commit, where the branch is checked out, and where git ignores what agents
    write; HostError where git fails.
    """
    head = context.head()
    _require_seen(context.repo)
    with worktrees.locked(context.repo):
        now = _tip(context.repo)
        if now is None:
            _move(context.repo, head, None, "begin")
            return head
        if head in {now.commit, now.head}:
            return now.commit
        with _room(context) as room:
            return _caught_up(context, room, now, head)


def _require_seen(repo: git.Repository) -> None:
    """Refuse a repository whose exclusions hide the agents' folders: all of their work would be lost without a word."""
    samples = (f"{folder}/{_SAMPLE}" for folder in (*(f"workspace/{agent}" for agent in policy.AGENTS), "design"))
    # The operator's own list of exclusions counts in an airlock too.
    hidden = git.run(repo.root, "check-ignore", "--no-index", *samples).stdout.decode("utf-8", "replace").split()
    if hidden:
        folder = hidden[0].rpartition("/")[0]
        why = f"git check-ignore -v --no-index {hidden[0]}"
        raise OperatorError(f"git is told to ignore {folder}/, where the agents write.", f"See where: {why}")


_SAMPLE: Final = "notes.md"


def _tip(repo: git.Repository) -> _Tip | None:
    """The branch as it stands, None without it; raises OperatorError where somebody has it checked out."""
    form = f"--format=%(refname)%00%(objectname)%00%(worktreepath)%00%(trailers:key={cycles.HEAD},valueonly)%00"
    words = git.output(repo.root, "for-each-ref", form, git.COMMONS_REF, sealed=True).decode("utf-8", "replace")
    name, *told = words.split("\0")
    if name != git.COMMONS_REF:
        return None
    commit, place, head = told[:3]
    if place:
        # Files and index there would silently fall behind the branch.
        raise OperatorError(f"The branch {BRANCH} is checked out.", "Switch to another branch there: git switch -")
    return _Tip(commit, head.strip() or None)


def _caught_up(context: Context, room: CleanRoom, now: _Tip, head: str) -> str:
    """Bring the branch from *now* up to date with *head*, and return the commit.

    Outside of the agents' folders the operator's tree is taken as it is; in them what either side has changed since,
    and the operator's version of what both have.
    """
    since = now.head or _ancestor(context.repo, now.commit, head)
    old = _listed(room, since) if since else {}
    ours, theirs = _listed(room, now.commit), _listed(room, head)
    kept = {path: entry for path, entry in ours.items() if theirs.get(path) == old.get(path)}
    gone = [path for path in theirs if path not in ours and theirs[path] == old.get(path)]
    left = {path: entry for path, entry in theirs.items() if path not in gone}
    taken = _Names(left)
    entries = [(ABSENT, "0" * len(head), path) for path in gone]
    entries += [(*entry, path) for path, entry in kept.items() if left.get(path) != entry and taken.clash(path) is None]
    tree = room.with_entries(head, entries)
    words = f"Bring the commons up to date with {head[:12]}\n\n{cycles.HEAD}: {head}\n"
    commit = landing.committed(room, tree, now.commit, words, landing.identity(context.repo, context.environ), head)
    _move(context.repo, commit, now.commit, "catch up")
    return commit


def _listed(room: CleanRoom, commit: str) -> dict[bytes, _Entry]:
    """Mode and object id of every file of *commit* in the agents' folders."""
    lines = room.output("ls-tree", "-r", "-z", "--full-tree", commit, "--", *OWN).split(b"\0")
    rows = [(head.decode().split(), path) for head, _, path in (line.partition(b"\t") for line in lines if line)]
    return {path: (mode, oid) for (mode, _, oid), path in rows}


def _ancestor(repo: git.Repository, one: str, other: str) -> str | None:
    """The commit that *one* and *other* both come from, or None."""
    done = git.run(repo.root, "merge-base", one, other, sealed=True)
    return None if done.returncode else done.stdout.decode("ascii", "replace").split()[0]


class _Names:
    """Names of files, which neither may lie in one another nor be folders of one another."""

    __slots__ = ("_files", "_folders")

    def __init__(self, paths: Iterable[bytes]) -> None:
        self._files = frozenset(paths)
        self._folders = frozenset(folder for path in self._files for folder in _folders(path))

    def clash(self, path: bytes) -> int | None:
        """Number of the part of *path* by which it cannot be a file beside these, or None where it can."""
        if path in self._folders:
            return -1
        return next((number for number, folder in enumerate(_folders(path)) if folder in self._files), None)


def _folders(path: bytes) -> list[bytes]:
    """The folders that *path* lies in, the outermost first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(1, len(parts))]


@contextlib.contextmanager
def _room(context: Context) -> Iterator[CleanRoom]:
    """A clean room for one change of the branch; a sweep removes what a killed process left of it."""
    path = context.layout.staging / f"commons-{os.urandom(8).hex()}"
    try:
        yield CleanRoom.make(path, context.repo, passing=True)
    finally:
        files.remove_tree(path)


# --- What a cycle carries out -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a cycle made, as a patch of its whole goal on the operator's commit."""

    export: Export
    """Its tree and patch are the operator's base and all that the goal has changed so far, as it is now."""
    airlock: str
    """Id of the tree that the airlock holds."""
    strays: tuple[bytes, ...]
    """Paths that the cycle changed and should not have."""


def carry(
    repo: git.Repository, opened: Airlock, meta: RunMeta, goal: str | None, given: Furnished | None = None
) -> Carried:
    """Export the airlock *opened* of the cycle *meta*, whose agent is dead, for its *goal*; can be repeated.

    The patch holds what this cycle and the earlier ones of the goal have changed, on the operator's own commit: it
    applies there without the commons. Raises what :func:`agents.exporting.export` raises.
    """
    room, base = opened.room, meta.repo_sha_start
    taken = exporting.export(opened, given=given)
    made = room.changes(opened.base, taken.tree)
    paths = {change.path for change in made} | _paths_of(repo, goal, opened.base)
    changed = [change for change in room.changes(base, taken.tree) if change.path in paths]
    tree = room.with_changes(base, changed) if changed else room.tree_of(base)[0]
    counts = room.numstat(base, tree)
    whole = records.replace(
        taken, findings=(*taken.findings, *_unseen(opened)), tree=tree,
        patch=room.difference(base, tree) if counts.files else b"", files=counts.files, added=counts.added,
        removed=counts.removed, binary=counts.binary,
    )  # fmt: skip
    return Carried(export=whole, airlock=taken.tree, strays=cycles.strays(meta, made))


def _unseen(opened: Airlock) -> tuple[str, ...]:
    """The sentence that names what git ignores in the agents' folders: it is lost, and that must not be silent."""
    listing = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *OWN)
    listed = opened.room.output(*listing, tree=opened.path).split(b"\0")
    lost = [path for path in listed if path and b"__pycache__" not in path.split(b"/")]
    return (f"Ignored by git, so the commons cannot hold it: {named(lost)}.",) if lost else ()


def _paths_of(repo: git.Repository, goal: str | None, commit: str) -> set[bytes]:
    """Paths that earlier cycles of *goal* have changed, as the history of *commit* says."""
    if goal is None:
        return set()
    found = [each for each, told in _history(repo, cycles.GOAL, commit, f"-n{_LOOK_BACK}") if told == goal]
    if not found:
        return set()
    # Merges are none of a goal's; of them diff-tree says nothing.
    words = ("diff-tree", "--stdin", "--no-commit-id", "-r", "--no-renames", "--name-only", "-z")
    listed = git.output(repo.root, *words, stdin="".join(f"{each}\n" for each in found).encode(), sealed=True)
    return set(filter(None, listed.split(b"\0")))


def _history(repo: git.Repository, trailer: str, *words: str) -> list[tuple[str, str]]:
    """Commits along the branch, newest first, each with the value of its *trailer* (empty without it)."""
    form = f"--format=%H %(trailers:key={trailer},valueonly,separator=%x2C)"
    listed = git.output(repo.root, "log", "--first-parent", form, *words, "--", sealed=True).decode("utf-8", "replace")
    return [(commit, told) for commit, _, told in (line.partition(" ") for line in listed.splitlines())]


# --- What the commons take in -----------------------------------------------------------------------------------------


def accept(context: Context, room: CleanRoom, meta: RunMeta, tree: str, goal: str | None) -> str | None:
    """Commit what the cycle *meta* made, *tree* in its clean *room*, to the commons; returns the commit.

    None where it changed nothing. Done once a run, however often it is asked for. What somebody else has changed since
    the cycle began stays, and the cycle's version is kept beside it (:func:`agents.cycles.aside`). Raises OperatorError
    or HostError, with the branch where it was.
    """
    made = room.changes(meta.airlock_base, tree)
    if not made:
        return None
    with worktrees.locked(context.repo):
        now = _tip(context.repo)
        # An operator who has deleted the branch meanwhile gets it back with what this cycle began with.
        tip = now.commit if now else meta.airlock_base
        if held := _held(context.repo, meta, tip):
            return held
        merged = room.with_changes(tip, _beside(room, meta, made, tip))
        if merged == room.tree_of(tip)[0]:
            return None
        head = (now.head if now else None) or _ancestor(context.repo, tip, meta.repo_sha_start)
        who = landing.identity(context.repo, context.environ)
        commit = landing.committed(room, merged, tip, cycles.message(meta, goal, head), who)
        _keep(context.layout.tree(meta.run_name), made)
        _move(context.repo, commit, now.commit if now else None, meta.run_name)
        return commit


def holds(repo: git.Repository, meta: RunMeta) -> bool:
    """Whether the commons have taken in what the cycle *meta* made."""
    now = _tip(repo)
    return now is not None and _held(repo, meta, now.commit) is not None


def _held(repo: git.Repository, meta: RunMeta, tip: str) -> str | None:
    """The commit of the cycle *meta* in the history of *tip*, or None."""
    found = _history(repo, cycles.RUN, f"{meta.airlock_base}..{tip}")
    return next((commit for commit, run in found if run == meta.run_name), None)


def _keep(airlock: Path, made: Iterable[Change]) -> None:
    """Make what *made* has left in the *airlock* survive a power cut.

    Else the branch could say that the cycle is over, and its own airlock that it has not done all of that.
    """
    paths = [airlock / os.fsdecode(change.path) for change in made if change.new_mode in _FILES]
    # One that is gone or shut by now is missed when the cycle is carried over, and said then.
    with contextlib.suppress(OSError):
        for path in paths:
            files.sync_file(path)
        for folder in {path.parent for path in paths}:
            files.sync_folder(folder)


_FILES: Final = frozenset({"100644", "100755"})


def _beside(room: CleanRoom, meta: RunMeta, made: Iterable[Change], tip: str) -> Iterator[Change]:
    """What *made* comes to on *tip*: as it is where nobody else has been, under a name beside where somebody has."""
    moved: Mapping[bytes, Change] = {change.path: change for change in room.changes(meta.airlock_base, tip)}
    there = _Names(path for path, change in moved.items() if change.new_mode != ABSENT)
    for change in made:
        other, part = moved.get(change.path), there.clash(change.path)
        if other is None and part is None:
            yield change
        elif change.new_mode != ABSENT and not _same(change, other):
            beside = cycles.aside(change.path, meta.agent or "agent", -1 if part is None else part)
            yield records.replace(change, path=beside)


def _same(one: Change, other: Change | None) -> bool:
    return other is not None and (one.new_mode, one.new_id) == (other.new_mode, other.new_id)


def unlock(repo: git.Repository) -> None:
    """Remove the lock that a git which the power cut has ended left on the branch; raises HostError.

    One that is at work is waited for: it runs under the lock of the work trees.
    """
    with worktrees.locked(repo):
        git.unlock(repo, git.COMMONS_REF)


def _move(repo: git.Repository, commit: str, before: str | None, reason: str) -> None:
    """Move the branch from *before* to *commit*; raises HostError where it is not there any more."""
    # Held under the lock of the work trees, and nobody else moves it.
    git.unlock(repo, git.COMMONS_REF)
    words = ("update-ref", "-m", f"agent-box: {reason}", git.COMMONS_REF, commit, before or "")
    done = git.run(repo.root, *words, sealed=True, lasting=True)
    if done.returncode:
        raise HostError(f"The branch {BRANCH} cannot be moved: {git.last_words(done)}", "Type: git branch --list")
