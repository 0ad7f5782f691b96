"""A merge into the operator's repository, whole or not at all: lock, stage, journal, swap of the ref, files, index.

The swap of the ref is the point of no return: before it nothing of the operator's has changed, after it everything that
is missing is in the journal's folder. The index stays locked from before the look at the checkout until the last file
is in its place, so that no git of the operator's can commit a state in between (facts 4 and 7 of the protocol).
"""

from __future__ import annotations

import json
import os

from agents import files, git, staging
from agents.cleanroom import Change, CleanRoom
from agents.errors import BoxError, HostError, OperatorError, Tampered
from agents.indexlock import PATIENCE, IndexLock
from agents.staging import Stage
from essentials import records
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any, Final

    from agents.git import Repository

_JOURNAL_LIMIT: Final = 256 * 1024 * 1024
_PIECES: Final = ("merge.json", "lock", "stage", "index", "index.lock", "scratch", "scratch.lock", "room.git")


def unwatched(_name: str) -> None:
    """The step watcher of production: nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A ref to be moved, and the checkout with it."""

    run: str
    target: str
    """Full name of the ref."""
    before: str | None
    """The commit that the ref must be at, or None where it must not exist."""
    after: str | None
    """The commit that it is to be at, or None where it is to be deleted."""
    reason: str
    """What the reflog says."""
    changes: tuple[Change, ...] = ()
    """From the tree of *before* to that of *after*."""
    checkout: bool = False
    """Whether HEAD is on the ref, so that index and files go along."""


@dataclass(frozen=True, slots=True)
class Landed:
    """How a landing, or its recovery, ended."""

    moved: bool
    """Whether the ref is where the move wanted it."""
    kept: tuple[str, ...] = ()
    """Files that were left alone because the operator edited them after the merge was cut off."""


def land(
    repo: Repository,
    room: CleanRoom,
    move: Move,
    folder: Path,
    step: Callable[[str], None] = unwatched,
    patience: float = PATIENCE,
) -> Landed:
    """Make *move*, whose objects are in the repository already; *folder* keeps journal and staged files.

    Raises OperatorError where files are in the way, git is at work or the ref moved, HostError where disk or git fail;
    nothing has changed then. Once the ref has moved an error leaves the journal: :func:`recover` finishes. *step* is
    told the name of every effect before it happens, *patience* is in seconds.
    """
    try:
        with files.reported("prepare the merge"):
            files.make_folder(folder)
            stamps: Mapping[bytes, staging.Stamp | None] = {}
            if move.checkout:
                # A ref that no checkout stands on has nothing beside it to prepare.
                move, stamps = _prepared(repo, room, move, folder, step, patience)
            step("write the journal")
            files.write(folder / "merge.json", _written(move, stamps))
        step("move the ref")
        _swap(repo, move)
    except BoxError:
        # A ref that moved all the same (git answered too late) is past the point of no return.
        if _at(repo, move.target) != move.after or move.after == move.before:
            withdraw(repo, folder)
        raise
    return _forward(repo, move, stamps, folder, step)


def _prepared(
    repo: Repository, room: CleanRoom, move: Move, folder: Path, step: Callable[[str], None], patience: float
) -> tuple[Move, Mapping[bytes, staging.Stamp | None]]:
    """Lock the index, look at the checkout, stage files and index; returns the move that is left, and the stamps."""
    index = staging.index_path(repo)
    lock = IndexLock(index, folder)
    step("lock the index")
    lock.take(patience)
    if (room.path / "info" / "sparse-checkout").exists():
        skipped = staging.outside(repo, index)
        move = records.replace(move, changes=tuple(each for each in move.changes if each.path not in skipped))
    # Stamps before the look: what is edited in between has another one afterwards.
    stamps = staging.stamps(repo.root, move.changes)
    staging.check_clean(repo, move.changes)
    step("stage the files")
    staging.merged_index(repo, room, index, folder / "index", str(move.before), str(move.after))
    stage = Stage(folder / "stage", repo.root)
    stage.fill(repo, room, folder / "index", move.changes, folder / "scratch")
    return move, stamps


def _swap(repo: Repository, move: Move) -> None:
    """Compare and swap the ref; raises OperatorError where it is no longer where it was (M10, N04)."""
    reason = ("-m", f"agent-box: {move.reason}")
    if move.after is None:
        words = ["-d", move.target, str(move.before)]
    else:
        words = ["--create-reflog", move.target, move.after, move.before or ""]
    done = git.run(repo.root, "update-ref", *reason, *words, lasting=True)
    if done.returncode == 0:
        return
    # git's words for a lost race differ between versions; where the ref stands now does not.
    if _at(repo, move.target) != move.before:
        name = move.target.removeprefix("refs/heads/")
        raise OperatorError(f"{name} has moved meanwhile.", "Look at the result as it would be now, and merge again.")
    raise HostError(
        "git could not move the branch.", f"Is another git at work? Type: git update-ref {move.target} HEAD"
    )


def _at(repo: Repository, ref: str) -> str | None:
    done = git.run(repo.root, "rev-parse", "--verify", "--quiet", ref)
    return done.stdout.decode("ascii", "replace").strip() or None


def _forward(
    repo: Repository,
    move: Move,
    stamps: Mapping[bytes, staging.Stamp | None],
    folder: Path,
    step: Callable[[str], None],
) -> Landed:
    """Finish a move whose ref has been swapped."""
    if not move.checkout:
        return Landed(moved=True)
    lock = IndexLock(staging.index_path(repo), folder)
    # What a recovery finds done is not done again: the operator may have gone on working since.
    if lock.is_published():
        return Landed(moved=True)
    if not lock.is_publishing():
        with files.reported("bring the files into the checkout"):
            kept = Stage(folder / "stage", repo.root).put(stamps, move.changes, step)
        _refresh(repo, move, folder)
    else:
        kept = []
    step("publish the index")
    lock.publish(step)
    return Landed(moved=True, kept=tuple(os.fsdecode(path) for path in kept))


def _refresh(repo: Repository, move: Move, folder: Path) -> None:
    """Tell the index how the new files look on disk, so that the operator's next `git status` need not read them.

    Not where attributes have changed: git would run what they name to compare (G32).
    """
    if not staging.changes_attributes(move.changes):
        # Of a git that died here before: whoever comes here holds the run, so nobody else is at it.
        (folder / "index.lock").unlink(missing_ok=True)
        staging.with_index(repo, folder / "index", "update-index", "-q", "--refresh", lasting=True)


def recover(repo: Repository, folder: Path, step: Callable[[str], None] = unwatched) -> Landed | None:
    """Finish or undo what a landing with the journal in *folder* had begun; None where it had not come to a journal.

    Forward where the ref has moved, and where it has not but nothing was edited since; else back. Only files that the
    journal names are touched, and only an index lock of our own is removed (C11; section 4.3, step 8).
    """
    read = _read(folder)
    if read is None:
        withdraw(repo, folder)
        return None
    move, stamps = read
    # Whoever comes here holds the run: the git that was to move the ref is dead.
    git.unlock(repo, move.target, move.after)
    now = _at(repo, move.target)
    if now == move.before and move.before != move.after and _is_ready(repo, move, stamps, folder):
        step("move the ref")
        _swap(repo, move)
        now = move.after
    # Somebody else has moved the branch since; what he did is not ours to judge.
    if now != move.after:
        withdraw(repo, folder)
        return Landed(moved=_contains(repo, now, move.after))
    if move.checkout and not _is_on(repo, move.target):
        # The operator has gone elsewhere with the lock removed by hand: the branch is merged, his files are his.
        withdraw(repo, folder)
        return Landed(moved=True)
    if move.checkout:
        _relock(repo, move, folder)
    return _forward(repo, move, stamps, folder, step)


def _is_ready(repo: Repository, move: Move, stamps: Mapping[bytes, staging.Stamp | None], folder: Path) -> bool:
    """Whether a landing that was cut off just before the swap may go on: its lock held, its files as they were."""
    if not move.checkout:
        return True
    # Without our lock git was free to stage and commit, so the look at the checkout counts no more.
    held = IndexLock(staging.index_path(repo), folder).is_held()
    return held and _is_on(repo, move.target) and staging.stamps(repo.root, move.changes) == stamps


def _relock(repo: Repository, move: Move, folder: Path) -> None:
    """Take the index again where somebody has removed our lock, as git itself advises."""
    index = staging.index_path(repo)
    lock = IndexLock(index, folder)
    if lock.is_held() or lock.is_publishing() or lock.is_published():
        return
    # The index may be another one by now: what was prepared from the old one is void.
    lock.take(PATIENCE)
    files.remove_tree(folder / "room.git")
    room = CleanRoom.make(folder / "room.git", repo)
    staging.merged_index(repo, room, index, folder / "index", str(move.before), str(move.after))


def _contains(repo: Repository, tip: str | None, commit: str | None) -> bool:
    """Whether the operator has built on *commit*; a branch that was deleted contains nothing."""
    if tip is None or commit is None:
        return tip == commit
    # An ancestor is merged, whatever came after it.
    return git.run(repo.root, "merge-base", "--is-ancestor", commit, tip).returncode == 0


def _is_on(repo: Repository, ref: str) -> bool:
    return head_ref(repo) == ref


def head(repo: Repository) -> tuple[str, str | None]:
    """The commit at HEAD, and the full name of the branch that HEAD is on (None where it is detached).

    Raises HostError where there is no commit.
    """
    told = git.output(repo.root, "rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD")
    commit, _, name = told.decode("utf-8", "surrogateescape").rstrip("\n").partition("\n")
    # Beside a branch named HEAD the one that is meant has to be asked for by itself.
    return commit, (name if name.startswith("refs/") else head_ref(repo))


def head_ref(repo: Repository) -> str | None:
    """Full name of the branch that HEAD is on, or None where it is detached."""
    done = git.run(repo.root, "symbolic-ref", "--quiet", "HEAD")
    return done.stdout.decode("utf-8", "surrogateescape").strip() or None


def where(repo: Repository, ref: str) -> tuple[str | None, str, str]:
    """Commit that *ref* stands at (None without it), its name, and the work tree it is checked out in, or nothing."""
    form = "--format=%(objectname)%00%(refname)%00%(worktreepath)"
    for line in git.output(repo.root, "for-each-ref", form, ref).decode("utf-8", "surrogateescape").splitlines():
        commit, name, place = line.split("\0")
        # A pattern also matches what lies below it.
        if name == ref:
            return commit, name, place
    return None, ref, ""


def pending(folder: Path) -> Move | None:
    """The move whose journal lies in *folder*; raises Tampered where it is not what was written."""
    read = _read(folder)
    return read[0] if read else None


def withdraw(repo: Repository, folder: Path) -> None:
    """Take back what a landing has prepared; nothing of the operator's is touched but our own lock on his index."""
    IndexLock(staging.index_path(repo), folder).release()
    clear(folder)


def clear(folder: Path) -> None:
    """Remove journal and staged files: the landing is over and recorded. The journal goes first."""
    # The journal goes first: without it the rest is scrap that the next one clears away.
    for name in _PIECES:
        path = folder / name
        if path.is_dir():
            files.remove_tree(path)
        else:
            path.unlink(missing_ok=True)


def is_unfinished(folder: Path) -> bool:
    """Whether a landing with its journal in *folder* was cut off."""
    return any((folder / name).exists() for name in _PIECES)


def committed(room: CleanRoom, tree: str, parent: str, message: str, env: Mapping[str, str], *others: str) -> str:
    """Commit *tree* on *parent* and hand the objects to the repository, checked; returns the commit (G36).

    *others* are its further parents.
    """
    # Made where nothing of an agent's is obeyed, and looked through by git on its way out of there.
    commit = room.commit(tree, (parent, *others), message, identity=env)
    room.send(commit, (parent, *others))
    return commit


def identity(repo: Repository, environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that name author and committer: the operator's own where he has told git one (design, section 7)."""
    told = git.run(repo.root, "config", "-z", "--get-regexp", r"^(user|author|committer)\.(name|email)$").stdout
    pairs = dict(line.split("\n", 1) for line in told.decode("utf-8", "replace").split("\0") if "\n" in line)
    found: dict[str, str] = {}
    for role in ("author", "committer"):
        who = {
            f"GIT_{role}_{part}".upper(): environ.get(f"GIT_{role}_{part}".upper())
            or pairs.get(f"{role}.{part}")
            or pairs.get(f"user.{part}", "")
            for part in ("name", "email")
        }
        # Half an identity is none: the room's own stands in for both.
        found |= who if all(who.values()) else {}
    return found


# --- The journal ------------------------------------------------------------------------------------------------------


def _written(move: Move, stamps: Mapping[bytes, staging.Stamp | None]) -> bytes:
    # Names that are no text come back as the same bytes: surrogates survive JSON's escapes.
    changes = [
        [os.fsdecode(each.path), each.old_mode, each.new_mode, each.old_id, each.new_id, stamps.get(each.path)]
        for each in move.changes
    ]
    fields = {field.name: getattr(move, field.name) for field in records.fields(move)}
    return json.dumps({**fields, "changes": changes}).encode()


def _read(folder: Path) -> tuple[Move, dict[bytes, staging.Stamp | None]] | None:
    """The journal in *folder*, or None where there is none; raises Tampered where it is not what was written."""
    data = files.read_capped(folder / "merge.json", _JOURNAL_LIMIT)
    if data is None:
        return None
    try:
        raw: dict[str, Any] = json.loads(data)
        # Whatever does not fit the shape is a journal that nobody wrote.
        rows = [(os.fsencode(path), *rest) for path, *rest in raw.pop("changes")]
        changes = tuple(Change(path, *rest[:4]) for path, *rest in rows)
        stamps = {path: tuple(rest[4]) if rest[4] else None for path, *rest in rows}
        return Move(**raw, changes=changes), stamps
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as why:
        raise Tampered("The journal of a merge is not what was written.", "Type: ./agent verify") from why
