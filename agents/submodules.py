"""Submodules of an airlock: their files from what is cloned already, without network and without their settings."""

from __future__ import annotations

import os

from agents import git
from agents.cleanroom import CleanRoom
from agents.errors import HostError
from agents.inspection import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEEPEST = 8
"""Levels of submodules in submodules that are filled."""


def fill(room: CleanRoom, commit: str, gitlinks: Mapping[bytes, str], tree: Path, *, depth: int = 0) -> tuple[str, ...]:
    """Write the files of the submodules of *commit* into *tree*, and return a sentence for each that stays empty.

    *gitlinks* maps their paths to their commits. Each gets a clean room of its own (in that of its parent), so neither
    `git submodule` nor a filter runs; there is no ``.git`` in them, for an agent's changes there are not exported.
    """
    if not gitlinks or depth >= DEEPEST:
        return tuple(_empty(path) for path in gitlinks)
    names = _names(room, commit)
    notes: list[str] = []
    for number, (path, oid) in enumerate(sorted(gitlinks.items())):
        store = _store(room.repo, path, names.get(path))
        where = tree / os.fsdecode(path)
        inner = _room(room.path / "modules" / str(number), store, where, oid) if store else None
        notes += [_empty(path)] if inner is None else _checkout(inner, oid, where, depth)
    return tuple(notes)


def _checkout(room: CleanRoom, oid: str, tree: Path, depth: int) -> tuple[str, ...]:
    room.seed(oid)
    room.checkout(tree)
    return fill(room, oid, gitlinks_of(room, oid), tree, depth=depth + 1)


def gitlinks_of(room: CleanRoom, commit: str) -> dict[bytes, str]:
    """Paths of the submodules in *commit* and the commits they are at."""
    rows = (line.partition(b"\t")[::2] for line in room.output("ls-tree", "-r", "-z", commit).split(b"\0") if line)
    return {path: head.split()[2].decode() for head, path in rows if head.startswith(b"160000 ")}


def _names(room: CleanRoom, commit: str) -> dict[bytes, str]:
    """Names of submodules by their path, as the ``.gitmodules`` of *commit* says: the name is where the clone lies."""
    listed = room.run(
        "config", "--blob", f"{commit}:.gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$"
    ).stdout
    pairs = (entry.partition(b"\n")[::2] for entry in listed.split(b"\0") if entry)
    return {path: os.fsdecode(key)[len("submodule.") : -len(".path")] for key, path in pairs}


def _store(repo: git.Repository, path: bytes, name: str | None) -> Path | None:
    """Where the submodule at *path*, called *name*, is cloned in *repo*, or None; a name that climbs leads nowhere."""
    if not name or os.path.isabs(name) or ".." in name.split("/"):  # noqa: PTH117 - a name, not a path of ours
        return None
    # One that was cloned by hand before it became a submodule keeps its repository within itself.
    places = (repo.common_dir / "modules" / name, repo.root / os.fsdecode(path) / ".git")
    return next((each for each in places if (each / "objects").is_dir() and not each.is_symlink()), None)


def _room(path: Path, store: Path, root: Path, oid: str) -> CleanRoom | None:
    """A clean room for the submodule cloned at *store*, or None where that has not the commit *oid*."""
    try:
        room = CleanRoom.make(path, git.Repository(root=root, common_dir=store, head=oid))
    except HostError:
        return None
    return room if room.run("cat-file", "-e", f"{oid}^{{tree}}").returncode == 0 else None


def _empty(path: bytes) -> str:
    return (
        f"The submodule {shown(path)} is empty in the airlock: its commit is not here. "
        "Type: git submodule update --init --recursive"
    )
