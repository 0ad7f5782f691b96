"""What an airlock gets besides the files of its commit: copies, links, and a record of them all."""

from __future__ import annotations

import json
import os
from pathlib import Path

from agents import files, git
from agents.chamber import DAMAGED
from agents.errors import HostError, OperatorError
from agents.inspection import inspect, named, shown, stamp
from essentials.records import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Final

    from agents.chamber import Airlock

RECORD: Final = "furnished.json"
"""File of the clean room that holds the record."""

# Settings of a developer's machine hold secrets; only what is made for tests or as an example is handed out (T151).
_OPEN_ENV: Final = frozenset({".env.test", ".env.example", ".env.sample", ".env.template", ".env.dist"})
_OURS: Final = frozenset({".git", ".agents", "agent_box"})
_GLOB: Final = frozenset("*?[")
_RECORD_CAP: Final = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Furnished:
    """What was put into an airlock before its agent came."""

    paths: tuple[bytes, ...] = ()
    """Files and links that were put there."""
    notes: tuple[str, ...] = ()
    """Sentences for the operator."""
    tree: str | None = None
    """Tree of the airlock as the agent found it, setup included; what still agrees with it is not the agent's work."""
    stamps: Mapping[bytes, str] = field(default_factory=dict)
    """Submodules and the stamps of their files at that moment."""

    def record(self, airlock: Airlock) -> Furnished:
        """Note the tree of *airlock* as it is now, after setup; kept in its clean room, so that recovery finds it."""
        found = inspect(airlock.path)
        tree = airlock.room.snapshot(airlock.path, leave=(*airlock.left, *found.nested, *found.huge), refused=[])
        stamps = {path: stamp(airlock.path / os.fsdecode(path)) for path in airlock.submodules}
        told = {
            "paths": [os.fsdecode(path) for path in self.paths],
            "notes": list(self.notes),
            "tree": tree,
            "stamps": {os.fsdecode(path): seen for path, seen in stamps.items()},
        }
        files.write(airlock.room.path / RECORD, json.dumps(told).encode())
        return replace(self, tree=tree, stamps=stamps)


def recall(room: Path) -> Furnished | None:
    """What :meth:`Furnished.record` noted in the clean room at *room*, or None; raises HostError if that is damaged."""
    text = files.read_capped(room / RECORD, _RECORD_CAP)
    if text is None:
        return None
    try:
        told = json.loads(text)
        stamps = {os.fsencode(path): seen for path, seen in told["stamps"].items()}
        return Furnished(tuple(map(os.fsencode, told["paths"])), tuple(told["notes"]), told["tree"], stamps)
    except DAMAGED as why:
        raise HostError(
            "What was noted of the airlock's furniture is damaged.", f"Look at it: {room / RECORD}"
        ) from why


def furnish(
    root: Path, tree: Path, *, copy: Sequence[str] = (), link: Sequence[str] = (), include_text: str | None = None
) -> Furnished:
    """Put files of the checkout *root* into the airlock *tree*, before its agent runs.

    *copy* names files, folders or globs, *link* folders, all relative to *root*; *include_text* is the content of
    ``.worktreeinclude``: patterns as in ``.gitignore`` for files that git does not track. Raises OperatorError for what
    may not be handed out: anything outside of the checkout, a link, ``.env``.
    """
    room = _Furnisher(root, tree)
    for entry in copy:
        room.copy(entry)
    if include_text:
        room.include(include_text)
    for entry in link:
        room.link(entry)
    return Furnished(tuple(sorted(room.paths)), tuple(room.notes))


class _Furnisher:
    """The two trees, and what was put from the one into the other so far."""

    __slots__ = ("notes", "paths", "root", "tree")

    def __init__(self, root: Path, tree: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.tree = Path(os.path.realpath(tree))
        self.paths: set[bytes] = set()
        self.notes: list[str] = []

    def copy(self, entry: str) -> None:
        """Copy what the setting *entry* names."""
        _check(entry, "copy")
        if is_secret(Path(entry).name):
            raise OperatorError(
                f"copy: {entry} holds secrets, and agents get none.", "Put what tests need into .env.test"
            )
        found = sorted(self._named(entry))
        if not found:
            self.notes.append(f"Nothing to copy: {shown(os.fsencode(entry))} names no file.")
        secret = [path for path in found if is_secret(path.name)]
        self._say_secret(os.fsencode(path.relative_to(self.root)) for path in secret)
        for path in found:
            if path not in secret:
                self._copy(path)

    def _say_secret(self, paths: Iterable[bytes]) -> None:
        if listed := list(paths):
            self.notes.append(f"Not copied, because agents get no secrets: {named(listed)}.")

    def _named(self, entry: str) -> Iterator[Path]:
        """Regular files that *entry* names, those in folders included."""
        several = bool(_GLOB & set(entry))
        for path in self.root.glob(entry) if several else [self.root / entry]:
            if path.is_dir() and not path.is_symlink():
                yield from (inner for inner in path.rglob("*") if inner.is_file() and not inner.is_symlink())
            elif path.is_symlink():
                self._refuse_link(entry, path, several=several)
            elif path.is_file():
                yield path

    def _refuse_link(self, entry: str, path: Path, *, several: bool) -> None:
        if not several:
            raise OperatorError(f"copy: {entry} is a link.", "Name the file it leads to.")
        self.notes.append(f"Not copied, because it is a link: {shown(os.fsencode(path.relative_to(self.root)))}.")

    def include(self, text: str) -> None:
        """Copy the untracked files that the patterns *text* name."""
        listed = self._untracked(text)
        secret = [path for path in listed if is_secret(os.fsdecode(path.rpartition(b"/")[2]))]
        self._say_secret(secret)
        for path in sorted(set(listed) - set(secret)):
            source = self.root / os.fsdecode(path)
            # A repository within the checkout is listed as a folder.
            if source.is_file() and not source.is_symlink() and not _is_ours(Path(os.fsdecode(path))):
                self._copy(source)

    def _untracked(self, text: str) -> list[bytes]:
        """Files that git does not track and that the patterns *text* name."""
        # As arguments, because git reads no pattern file from a pipe; comments it then takes for patterns.
        lines = (line.strip() for line in text.splitlines())
        patterns = [f"--exclude={line}" for line in lines if line and not line.startswith("#")]
        if not patterns:
            return []
        listed = git.output(self.root, "ls-files", "-z", "--others", "--ignored", *patterns, sealed=True)
        return [path for path in listed.split(b"\0") if path]

    def _copy(self, source: Path) -> None:
        import shutil

        relative = source.relative_to(self.root)
        # Behind a link it would be another file than it is called: one of a box, for example.
        if _is_ours(relative) or os.path.realpath(source) != str(source):
            raise OperatorError(f"{relative} is not a file to copy from this checkout.", "Name files of the project.")
        target = self._target(relative)
        with files.reported(f"copy {relative} into the airlock"):
            target.parent.mkdir(parents=True, exist_ok=True)
            handle = files.open_regular(source)
            with os.fdopen(handle, "rb") as given, target.open("wb") as taken:
                shutil.copyfileobj(given, taken)
                os.fchmod(taken.fileno(), os.fstat(given.fileno()).st_mode & 0o777)

    def _target(self, relative: Path) -> Path:
        """Where *relative* goes in the airlock; a tracked link on the way there may lead out of it."""
        target = self.tree / relative
        if target.is_symlink() or not _is_within(self.tree, target.parent):
            raise OperatorError(f"{relative} would be written through a link.", "Leave it out of copy and link.")
        self.paths.add(os.fsencode(relative))
        return target

    def link(self, entry: str) -> None:
        """Link the folder that the setting *entry* names."""
        _check(entry, "link")
        source = self.root / entry
        if not source.exists():
            self.notes.append(f"Nothing to link: there is no folder {shown(os.fsencode(entry))}.")
            return
        if _is_ours(Path(entry)) or not source.is_dir() or os.path.realpath(source) != os.path.normpath(source):
            raise OperatorError(f"link: {entry} is no folder of this checkout.", "Name a folder such as node_modules.")
        target = self._target(source.relative_to(self.root))
        if os.path.lexists(target):
            raise OperatorError(f"link: {entry} is part of the repository.", "Link only folders that git ignores.")
        with files.reported(f"link {entry} into the airlock"):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source)
        self.notes.append(f"{entry} is the folder of the main checkout itself; in the sandbox it is read-only.")


def is_secret(name: str) -> bool:
    """Whether a file called *name* is one of those that hold a developer's secrets (design, section 8)."""
    folded = name.casefold()
    return (folded == ".env" or folded.startswith(".env.")) and folded not in _OPEN_ENV


def _check(entry: str, setting: str) -> None:
    path = Path(entry)
    if not entry or path.is_absolute() or ".." in path.parts or path == Path():
        raise OperatorError(
            f"{setting}: {entry!r} is not a path inside the repository.", "Write it from the top of it."
        )
    if _is_ours(path):
        raise OperatorError(f"{setting}: {entry} belongs to git or to Agent Box.", "Leave it out.")


def _is_ours(path: Path) -> bool:
    return path.parts[0] in _OURS or ".git" in path.parts


def _is_within(root: Path, path: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(root)
