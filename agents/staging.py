"""The files of a merge: prepared aside, then put into the operator's checkout one whole file at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from agents import copies, files, git
from agents.cleanroom import ABSENT
from agents.errors import HostError, OperatorError
from agents.redact import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Final

    from agents.cleanroom import Change, CleanRoom
    from agents.git import Repository

_SHOWN: Final = 10
_PATIENCE: Final = 1800.0
ATTRIBUTES: Final = b".gitattributes"
Stamp = tuple[int, int, int, int]
"""Mode, size, inode and change time of a file: another one says that somebody was at it."""


def index_path(repo: Repository) -> Path:
    """The index of the operator's checkout."""
    return Path(os.path.realpath(git.own_dir(repo))) / "index"


def with_index(repo: Repository, index: Path, *arguments: str, stdin: bytes = b"", lasting: bool = False) -> bytes:
    """What git printed in the operator's repository, with *index* in the place of its own; *lasting* as in `git.run`.

    His configuration counts, as the files become his; hooks and the file system monitor do not (G32). Raises HostError.
    """
    named = {"GIT_INDEX_FILE": str(index)}
    done = git.run(repo.root, *arguments, stdin=stdin, env=named, patience=_PATIENCE, lasting=lasting)
    if done.returncode:
        raise HostError(f"git {arguments[0]} failed: {visible(git.last_words(done))}", "Type: git status")
    return done.stdout


def merged_index(repo: Repository, room: CleanRoom, index: Path, new: Path, before: str, after: str) -> None:
    """Make *new* from the operator's *index*, with what differs between two commits replaced, other edits kept.

    In the clean room: whenever git writes an index it may read files again to compare them, through filters that the
    attributes of the new commit name (measured: it runs them). Raises HostError.
    """
    if not index.exists():
        new.unlink(missing_ok=True)
    elif any(index.parent.glob("sharedindex.*")):
        # A split index leads to a second file beside the operator's; as one file it can be carried into the room.
        copies.copy(index, new)
        with_index(repo, new, "-c", "core.splitIndex=false", "update-index", "--no-split-index")
    else:
        copies.copy(index, new)
    room.output("read-tree", "-i", "-m", before, after, index=new, tree=repo.root)
    if new.exists():
        # The journal comes next, and a recovery goes by both.
        with files.reported("keep the new index"):
            files.sync_file(new)


def stamp(path: Path) -> Stamp | None:
    """What tells the file at *path* from any other and any later state of it, or None where there is none."""
    try:
        seen = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return seen.st_mode, seen.st_size, seen.st_ino, seen.st_mtime_ns


def stamps(root: Path, changes: Iterable[Change]) -> dict[bytes, Stamp | None]:
    """The stamps of the files of *changes* as they are now; a folder in the place of a file is none."""
    return {change.path: None if _is_folder(root, change.path) else stamp(_at(root, change.path)) for change in changes}


def outside(repo: Repository, index: Path) -> frozenset[bytes]:
    """Files that a sparse checkout leaves out: a merge changes them in the index alone (G08)."""
    listed = with_index(repo, index, "ls-files", "-t", "-z").split(b"\0")
    return frozenset(entry[2:] for entry in listed if entry.startswith(b"S "))


def check_clean(repo: Repository, changes: Sequence[Change]) -> None:
    """Raise OperatorError naming every file of *changes* that has uncommitted edits or has something in its way (G31).

    The operator's other edits, staged or not, are none of its business.
    """
    edited = _edited(repo) & {change.path for change in changes}
    gone = {change.path for change in changes if change.new_mode == ABSENT}
    made = [change.path for change in changes if change.old_mode == ABSENT]
    obstacles = {found for path in made for found in _in_the_way(repo.root, path, gone)}
    if edited or obstacles:
        names = sorted(visible(path.decode("utf-8", "backslashreplace")) for path in edited | obstacles)
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise OperatorError(
            f"These files have changes of yours, or stand in the way: {', '.join(names[:_SHOWN])}{more}.",
            "Commit, stash or move them, or merge to a new branch: --branch NAME",
        )


def _edited(repo: Repository) -> set[bytes]:
    """Tracked files whose index or work tree differs from HEAD; conversions are the operator's own (eol, LFS)."""
    # `status` compares content where times differ, so a file that was only touched is not taken for edited.
    # The filters in force now run here, as in every `git status` of the operator's.
    listed = git.output(repo.root, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no",
                        "--ignore-submodules=dirty")  # fmt: skip
    return {entry[3:] for entry in listed.split(b"\0") if entry}


def _in_the_way(root: Path, path: bytes, gone: set[bytes]) -> Iterable[bytes]:
    """What lies on the disk where *path* is to be made, apart from the *gone* files that the merge itself removes."""
    for parent in _parents(path):
        # A link in the place of a folder would lead the write elsewhere; below one that goes there is nothing yet.
        if _exists(root, parent) and not _is_folder(root, parent):
            yield from () if parent in gone else (parent,)
            return
    # A folder may stand there as long as all that is in it goes with the merge.
    if _is_folder(root, path):
        yield from (found for found in _below(root, path) if found not in gone)
    elif _exists(root, path) and path not in gone:
        yield path


def _parents(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]


def _at(root: Path, path: bytes) -> Path:
    return root / os.fsdecode(path)


def _exists(root: Path, path: bytes) -> bool:
    return os.path.lexists(_at(root, path))


def _is_folder(root: Path, path: bytes) -> bool:
    seen = stamp(_at(root, path))
    return seen is not None and stat.S_ISDIR(seen[0])


def _below(root: Path, path: bytes) -> Iterable[bytes]:
    for folder, _, names in os.walk(_at(root, path)):
        inside = os.fsencode(os.path.relpath(folder, root))
        yield from (inside + b"/" + os.fsencode(name) for name in names)


def _is_attributes(change: Change) -> bool:
    return change.path.rpartition(b"/")[2] == ATTRIBUTES


def changes_attributes(changes: Iterable[Change]) -> bool:
    """Whether an attribute file is among *changes*."""
    return any(map(_is_attributes, changes))


class Stage:
    """Files of a merge in a *folder* of their own, by the paths that they will have below *root*."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self.root = root

    def fill(self, repo: Repository, room: CleanRoom, index: Path, changes: Sequence[Change], scratch: Path) -> None:
        """Write the new files of *changes* as they will be in the checkout, from the *index* that will be.

        The operator's conversions apply (line ends, LFS, encryption), by the attributes that are in force today: an
        attribute that the merge brings must not start a program (G32); for that *scratch* is another index, with the
        attributes of today. Raises HostError.
        """
        # What an earlier attempt left would pass for prepared.
        files.remove_tree(self.folder)
        files.make_folder(self.folder)
        wanted = [change for change in changes if change.new_mode != ABSENT]
        plain = [change for change in wanted if not _is_attributes(change)]
        if changes_attributes(changes):
            copies.copy(index, scratch)
            self._hide_attributes(room, changes, scratch)
            index = scratch
        listed = b"".join(change.path + b"\0" for change in plain)
        if listed:
            prefix = f"--prefix={self.folder}/"
            # An operator may have had git pass over a file that is part of the merge all the same.
            words = ("checkout-index", "--force", "--ignore-skip-worktree-bits", "--stdin", "-z", prefix)
            with_index(repo, index, *words, stdin=listed)
        # git would read these from where they are written to, so they are written by nobody's rules.
        for change in filter(_is_attributes, wanted):
            self._write_raw(room, change)
        self._keep(wanted)

    def _keep(self, wanted: Sequence[Change]) -> None:
        """Make the staged files survive a power cut: in their places they would be empty, and the run be merged."""
        with files.reported("keep the files of the merge"):
            for change in wanted:
                path = _at(self.folder, change.path)
                if path.is_file() and not path.is_symlink():
                    files.sync_file(path)

    @staticmethod
    def _hide_attributes(room: CleanRoom, changes: Sequence[Change], index: Path) -> None:
        """Put the attribute files of today into the scratch index: git reads them there where the disk has none."""
        touched = filter(_is_attributes, changes)
        lines = [f"{change.old_mode} {change.old_id}\t".encode() + change.path + b"\0" for change in touched]
        if lines:
            room.output("update-index", "-z", "--index-info", stdin=b"".join(lines), index=index)

    def _write_raw(self, room: CleanRoom, change: Change) -> None:
        target = _at(self.folder, change.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = room.blob(change.new_id)
        if change.new_mode == "120000":
            target.symlink_to(os.fsdecode(content))
        else:
            handle = os.open(
                target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777 if change.new_mode == "100755" else 0o666
            )
            with os.fdopen(handle, "wb") as file:
                file.write(content)

    def put(
        self, stamps: Mapping[bytes, Stamp | None], changes: Sequence[Change], step: Callable[[str], None]
    ) -> list[bytes]:
        """Bring *changes* into the checkout; can be repeated after a crash at any point. Returns what was left alone.

        A file that is neither as *stamps* recorded it nor gone was edited since by the operator, and stays. *step* is
        told before every effect.
        """
        kept = []
        # What goes makes room for what comes: a file may take the place of a folder, or the other way round.
        order = sorted(changes, key=lambda change: (change.new_mode != ABSENT, change.path))
        for change in order:
            place = _at(self.root, change.path)
            # The clean look before the journal makes this stamp the state that the merge was approved to replace.
            is_ours = self._is_untouched(place, stamps[change.path])
            step("remove a file" if change.new_mode == ABSENT else "place a file")
            done = (
                self._remove(change.path, ours=is_ours)
                if change.new_mode == ABSENT
                else self._place(change.path, ours=is_ours)
            )
            kept += [] if done else [change.path]
        return kept

    @staticmethod
    def _is_untouched(place: Path, before: Stamp | None) -> bool:
        now = stamp(place)
        return now is None or now == before or (before is None and stat.S_ISDIR(now[0]))

    def _remove(self, path: bytes, *, ours: bool) -> bool:
        """Remove the file *path*; False where the operator's own stands there."""
        # A folder that has become a file, or a link to elsewhere, no longer holds it; nor is it one that has become a
        # folder.
        if _is_folder(self.root, path) or not all(_is_folder(self.root, parent) for parent in _parents(path)):
            return True
        if not ours:
            return False
        _at(self.root, path).unlink(missing_ok=True)
        # Folders that the last file has left are gone as well, as git does it.
        for parent in reversed(_parents(path)):
            try:
                _at(self.root, parent).rmdir()
            except OSError:
                break
        return True

    def _place(self, path: bytes, *, ours: bool) -> bool:
        """Move the staged file *path* to its place; False where the operator's own stands there."""
        staged, place = _at(self.folder, path), _at(self.root, path)
        if not os.path.lexists(staged):
            # Placed before the crash that this is the repetition of.
            return True
        if not ours or not self._make_way(path):
            return False
        try:
            # One step: whoever reads the file sees the old one or the new one, and so does a recovery.
            staged.replace(place)
        except OSError as why:
            # A part of the checkout may be mounted from elsewhere.
            if why.errno != errno.EXDEV:
                raise
            _copy(staged, place)
        return True

    def _make_way(self, path: bytes) -> bool:
        """Have the folders of *path*; False where something that is no folder took the place of one."""
        for parent in _parents(path):
            # A link, or a file of the operator's since the crash, is told apart below.
            with contextlib.suppress(FileExistsError):
                _at(self.root, parent).mkdir()
            if not _is_folder(self.root, parent):
                return False
        if _is_folder(self.root, path):
            try:
                _at(self.root, path).rmdir()
            except OSError:
                return False
        return True


def _copy(staged: Path, place: Path) -> None:
    """Move a file to another file system, whole or not at all."""
    import shutil

    temporary = place.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        shutil.copy2(staged, temporary, follow_symlinks=False)
        temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)
    staged.unlink()
