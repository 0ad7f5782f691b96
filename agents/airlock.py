"""The airlock: a work tree of its own for an agent, opened byte for byte, found again, and never removed with work."""

from __future__ import annotations

import os
from functools import partial

from agents import chamber, copies, files, git, submodules, worktrees
from agents.chamber import PRIVATE, Airlock
from agents.cleanroom import ABSENT, CleanRoom
from agents.errors import HostError
from agents.exporting import Export, export, result_tree
from agents.inspection import stamp
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Final

    from agents.layout import Box, Layout

__all__ = ["RESERVE", "Airlock", "Export", "close", "existing", "export", "open_airlock", "refill", "stamp"]

RESERVE: Final = 256 * 1024**2
"""Bytes that must stay free beside the airlock's own files."""

_ATTRIBUTES: Final = b".gitattributes"
_ATTRIBUTES_CAP: Final = 16 * 1024**2
_GITLINK: Final = b"160000 "
_MODE: Final = len(_GITLINK)
_NOTHING: Final = frozenset({
    b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    b"473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
})  # fmt: skip
"""Ids of an empty file, by either of git's hashes."""
_BLOCK: Final = 4096


def open_airlock(repo: git.Repository, layout: Layout, box: Box, base: str, *, reserve: int = RESERVE) -> Airlock:
    """Make the airlock of *box* with the files of the commit *base*, byte for byte (fact 8; G01, G08, T125).

    No hook, filter or conversion runs. *reserve* is the number of bytes that must stay free. Raises HostError, with
    nothing left behind, where the disk is too small, something is in the way, or git fails.
    """
    path = _place(layout, box.name)
    if existing(repo, layout, box, base) is not None:
        raise HostError(f"The run {box.name} has an airlock already.", f"Type: ./agent resume {box.name}")
    if os.path.lexists(path):
        raise HostError(f"{path} is in the way.", f"Look at it, then move it away: mv {path} {path}.old")
    files.remove_tree(box.room)
    room = CleanRoom.make(box.room, repo)
    try:
        room.seed(base)
        content = _Content.of(room)
        _require_space(content.needed(room, _skipped(room)), path.parent, reserve)
        worktrees.add(repo, path, box.name, base, layout.staging)
        return _fill(repo, Airlock(path=path, room=room, base=base, files=content.files), content, box.name)
    except BaseException:
        _discard(repo, layout, box)
        raise


def _fill(repo: git.Repository, airlock: Airlock, content: _Content, name: str) -> Airlock:
    airlock.room.checkout(airlock.path)
    entry = worktrees.vouching(repo, airlock.path, name)
    if entry is not None:
        # Without an index of its own git would tell the agent that every file is deleted.
        copies.copy(airlock.room.index, entry / "index")
        files.sync_file(entry / "index")
    empty = submodules.fill(airlock.room, airlock.base, content.gitlinks, airlock.path)
    opened = Airlock(
        path=airlock.path, room=airlock.room, base=airlock.base, files=airlock.files,
        submodules={path: stamp(airlock.path / os.fsdecode(path)) for path in content.gitlinks},
        tracked_private=tuple(each for each in PRIVATE if any(p.startswith(each + b"/") for p in content.blobs)),
        notes=(*empty, *_lfs_note(airlock.path, content)),
    )  # fmt: skip
    # The last thing written: without it the airlock was never handed to an agent.
    chamber.save(opened)
    return opened


def _place(layout: Layout, name: str) -> Path:
    """Where the airlock of the run *name* goes; raises HostError where a link leads out of the repository."""
    with files.reported("make the folder of the airlocks"):
        for folder in (layout.trees.parent, layout.trees):
            if folder.is_symlink():
                raise HostError(f"{folder} is a link.", f"Remove it: rm {folder}")
            files.make_folder(folder)
    return layout.tree(name)


# --- What is to be checked out ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Content:
    """What a commit holds."""

    blobs: Mapping[bytes, bytes]
    """Paths of files and the ids of what is in them."""
    gitlinks: Mapping[bytes, str]
    """Paths of submodules and their commits."""

    @classmethod
    def of(cls, room: CleanRoom) -> _Content:
        """What the commit holds that *room* was seeded with, by its index: nothing of it is read."""
        listed = room.output("ls-files", "--stage", "-z").split(b"\0")
        # A mode, an id, a stage that is nothing but 0 here; the path is behind a tab.
        rows = [(head, path) for head, _, path in (line.partition(b" 0\t") for line in listed if line)]
        return cls(
            {path: head[_MODE:] for head, path in rows if not head.startswith(_GITLINK)},
            {path: head[_MODE:].decode() for head, path in rows if head.startswith(_GITLINK)},
        )

    @property
    def files(self) -> int:
        """Number of files."""
        return len(self.blobs)

    def needed(self, room: CleanRoom, skipped: frozenset[bytes]) -> int:
        """Bytes that a checkout without *skipped* takes on a disk with blocks of 4 KiB.

        An object that a partial clone does not have counts as an empty one.
        """
        asked = [oid for path, oid in self.blobs.items() if path not in skipped]
        # Asked for sizes alone git need not follow a delta to what it is a delta of, as it must to say what it is.
        told = room.output(
            "cat-file", "--buffer", "--batch-check=%(objectsize)", stdin=b"".join(oid + b"\n" for oid in asked)
        )
        sizes = [int(line) for line in told.split(b"\n") if line.isdigit()]
        return _BLOCK * (len(asked) + sum((size + _BLOCK - 1) // _BLOCK for size in sizes))


def _skipped(room: CleanRoom) -> frozenset[bytes]:
    """Files that a sparse checkout of the operator leaves out, by his own index."""
    if not (room.path / "info" / "sparse-checkout").exists():
        return frozenset()
    listed = git.run(room.repo.root, "ls-files", "-t", "-z", sealed=True).stdout.split(b"\0")
    return frozenset(line[2:] for line in listed if line.startswith(b"S "))


def _require_space(needed: int, folder: Path, reserve: int) -> None:
    free = files.free(folder)
    if free < needed + reserve:
        raise HostError(
            f"The airlock needs {needed // 1024**2} MiB and {reserve // 1024**2} MiB to spare, "
            f"but only {free // 1024**2} MiB are free.",
            "Free some disk space; `./agent gc` removes old runs.",
        )


def _lfs_note(tree: Path, content: _Content) -> Iterator[str]:
    """A sentence where files are kept by Git LFS: its filter is not run, so they stay pointers (G07)."""
    paths = (path for path in content.blobs if path.endswith(_ATTRIBUTES) and path.rpartition(b"/")[2] == _ATTRIBUTES)
    texts = (files.read_capped(tree / os.fsdecode(path), _ATTRIBUTES_CAP) for path in paths)
    if any(b"filter=lfs" in (text or b"") for text in texts):
        yield "Files that Git LFS keeps are pointers in the airlock, not their content."


# --- Found again, and removed -----------------------------------------------------------------------------------------


def existing(repo: git.Repository, layout: Layout, box: Box, base: str) -> Airlock | None:
    """The airlock that *box* has, or None; one whose opening was cut short is removed, for no agent ever saw it.

    A folder counts only if a registration in the repository vouches for it, and if it was made from *base*.
    """
    airlock = chamber.load(layout.tree(box.name), CleanRoom(box.room, repo))
    if airlock is None:
        # The room is made first: where there is none, a tree is not a half-made one.
        if box.room.exists():
            _discard(repo, layout, box)
        return None
    folder = airlock.path.is_dir() and not airlock.path.is_symlink()
    if not folder or airlock.base != base or worktrees.vouching(repo, airlock.path, box.name) is None:
        return None
    for left in (*box.room.glob("*.lock"), *box.room.glob("scratch-*")):
        # Only this run's supervisor works in the room: what a dead one left is in nobody's use.
        left.unlink(missing_ok=True)
    return airlock


def refill(airlock: Airlock) -> None:
    """Write the files of the base anew that are empty, or hold nothing but zeros, and should not; raises HostError.

    That is what a power cut leaves of a file that had a name on the disk and no content yet.
    """
    room = airlock.room
    changed = [path for path in room.output("ls-files", "-z", "--modified", tree=airlock.path).split(b"\0") if path]
    hollow = frozenset(path for path in changed if _is_hollow(airlock.path / os.fsdecode(path)))
    if hollow:
        full = {path for path, oid in _Content.of(room).blobs.items() if oid not in _NOTHING}
        paths = b"".join(path + b"\0" for path in sorted(hollow & full))
        room.output("checkout-index", "--force", "--index", "-z", "--stdin", stdin=paths, tree=airlock.path)


def _is_hollow(path: Path) -> bool:
    try:
        handle = files.open_regular(path)
    except OSError:
        return False
    with os.fdopen(handle, "rb") as file:
        return not any(piece.strip(b"\0") for piece in iter(partial(file.read, 1 << 20), b""))


def close(repo: git.Repository, layout: Layout, name: str, *, exported_tree: str | None, force: bool = False) -> None:
    """Remove the airlock of the run *name* and its registration; what is gone already is fine (G39).

    Raises HostError, with everything left as it is, where the tree holds work that is not in *exported_tree* (None:
    any work), unless *force*; and where no registration vouches for what is there.
    """
    path, box = layout.tree(name), layout.box(name)
    if path.is_dir() and not path.is_symlink() and not force:
        _require_exported(repo, layout, box, exported_tree)
    worktrees.remove(repo, path, name, layout.staging)


def _require_exported(repo: git.Repository, layout: Layout, box: Box, exported: str | None) -> None:
    airlock = chamber.load(layout.tree(box.name), CleanRoom(box.room, repo))
    if airlock is None:
        if box.room.exists():
            return
        raise HostError(f"Nothing says what is in the airlock of {box.name}.", f"Look at it: {layout.tree(box.name)}")
    tree = result_tree(airlock)
    if tree == exported or (tree,) == airlock.room.tree_of(airlock.base):
        return
    if exported is None or not _is_less(airlock, tree, exported):
        raise HostError(
            f"The airlock of {box.name} holds work that is in no patch.", f"Look at it: {layout.tree(box.name)}"
        )


def _is_less(airlock: Airlock, tree: str, exported: str) -> bool:
    """Whether *tree*, in the *airlock*, is *exported* but for files that are gone or empty: there is no work in those.

    A power cut leaves it so, soon after it was carried over: nobody brings an airlock's files to the disk.
    """
    changes = airlock.room.changes(exported, tree)
    return all(each.new_mode == ABSENT or _is_hollow(airlock.path / os.fsdecode(each.path)) for each in changes)


def _discard(repo: git.Repository, layout: Layout, box: Box) -> None:
    """Remove what an opening that was cut short has left: no agent worked in it."""
    if worktrees.vouching(repo, layout.tree(box.name), box.name):
        worktrees.remove(repo, layout.tree(box.name), box.name, layout.staging)
    files.remove_tree(box.room)
