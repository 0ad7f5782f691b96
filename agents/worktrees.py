"""Registered work trees of the airlocks: added under one lock, found again, and removed only where they are ours."""

from __future__ import annotations

import contextlib
import os
import stat
import time

from agents import files, git, locks, trash
from agents.errors import HostError
from agents.lockorder import Rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Final

LOCK: Final = "agent-box.lock"
"""In the common git directory: linked work trees have data folders of their own, but share the registrations."""

_WAIT: Final = 300.0
# The operator's own git may hold one of git's locks for a moment.
_PAUSES: Final = (0.1, 0.3, 0.9, 2.0)
_NOTE_CAP: Final = 64 * 1024


@contextlib.contextmanager
def locked(repo: git.Repository) -> Iterator[None]:
    """Hold the lock of *repo*'s registrations: `git worktree add` fails beside another one (N03, fact 5)."""
    lock = locks.Lock(repo.common_dir / LOCK, Rank.WORKTREES)
    if not lock.acquire(_WAIT):
        raise HostError(
            f"Another Agent Box works on the work trees for more than {_WAIT:.0f} s.", "Type: ./agent status"
        )
    try:
        yield
    finally:
        lock.release()


def add(repo: git.Repository, path: Path, name: str, base: str, staging: Path) -> None:
    """Register an empty detached work tree at *path* for the run *name* at the commit *base*; raises HostError.

    What a failure leaves goes by way of *staging*, as in :func:`remove`.

    No file is written but ``.git``, and no hook runs. The registration is locked with the run's name as the reason, so
    that `git worktree prune` lets it be and :func:`vouching` knows it again.
    """
    words = ("worktree", "add", "--no-checkout", "--detach", "--lock", "--reason", name, str(path), base)
    with locked(repo):
        if os.path.lexists(path):
            raise HostError(f"{path} is in the way.", f"Look at it, then move it away: mv {path} {path}.old")
        for pause in (*_PAUSES, None):
            if _registered(repo, path, name, base):
                return
            done = git.run(repo.root, *words, sealed=True)
            if done.returncode == 0:
                _keep(repo, path, name)
                return
            _forget(repo, path, name, staging)
            if pause is None:
                raise HostError(f"git makes no work tree: {git.last_words(done)}", "Type: git worktree list")
            time.sleep(pause)


def _registered(repo: git.Repository, path: Path, name: str, base: str) -> bool:
    """Write the registration in git's own format (gitrepository-layout), each file on the disk before the next.

    Returns False, with nothing done, where git knows better what belongs in it, or where something is in the way.
    """
    entry = repo.common_dir / "worktrees" / name
    if not _is_plain(repo, base) or not _taken(entry):
        return False
    with files.reported("register the airlock"):
        # First what makes even a half of it ours, and keeps `git worktree prune` away; what makes git see it goes last.
        _put(entry / "locked", os.fsencode(name))
        path.mkdir()
        _put(path / ".git", b"gitdir: " + os.fsencode(os.path.realpath(entry)))
        _put(entry / "HEAD", base.encode())
        _put(entry / "commondir", b"../..")
        _put(entry / "gitdir", _link(path))
        for folder in (entry, entry.parent, path):
            files.sync_folder(folder)
    return True


def _is_plain(repo: git.Repository, base: str) -> bool:
    """Whether four files are all of a registration: no settings, patterns, rights or refs of another kind."""
    own = git.own_dir(repo)
    more = (repo.common_dir / "reftable", own / "config.worktree", own / "info" / "sparse-checkout")
    return (
        len(base) in git.IDS
        and not base.strip("0123456789abcdef")
        and not any(os.path.lexists(each) for each in more)
        and not repo.common_dir.stat().st_mode & stat.S_ISGID
    )


def _taken(entry: Path) -> bool:
    try:
        entry.parent.mkdir(exist_ok=True)
        entry.mkdir()
    except OSError:
        return False
    return True


def _put(path: Path, line: bytes) -> None:
    with path.open("xb", buffering=0) as file:
        files.write_all(file.fileno(), line + b"\n")
        os.fsync(file.fileno())


def _link(path: Path) -> bytes:
    """What a registration says of the work tree at *path*."""
    return os.fsencode(os.path.realpath(path.parent) + f"/{path.name}/.git")


def _keep(repo: git.Repository, path: Path, name: str) -> None:
    """Make the registration survive a power cut, which git does not: an empty one would vouch for nothing."""
    entry = vouching(repo, path, name)
    # Without `gitdir` git takes no notice of a registration, so the others may be empty until that one is there.
    inside = sorted(entry.iterdir(), key=lambda each: each.name == "gitdir") if entry else []
    with files.reported("keep the registration of the airlock"):
        for each in (path / ".git", *inside):
            if each.is_file():
                files.sync_file(each)
        for folder in (*((entry, entry.parent) if entry else ()), path):
            files.sync_folder(folder)


def vouching(repo: git.Repository, path: Path, name: str) -> Path | None:
    """The registration that says *path* is the work tree of the run *name*, or None (G39).

    It is read as files: git would go by the ``.git`` file in the work tree, which the agent may have written. One with
    another reason is somebody else's; one that names another path was moved by the operator, and so is his.
    """
    folder = repo.common_dir / "worktrees"
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return next((entry for entry in entries if _vouches(entry, path, name)), None)


def _vouches(entry: Path, path: Path, name: str) -> bool:
    reason, link = _note(entry / "locked"), _note(entry / "gitdir")
    if not link:
        # Its making was cut short: the reason is the first thing in it. A power cut leaves even that empty, or nothing
        # yet; the folder has the name of the work tree's, which is the run's own.
        return reason == os.fsencode(name) or (entry.name == name and (reason == b"" or _is_empty(entry)))
    return link == _link(path) and reason in {None, os.fsencode(name)}


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())


def _note(path: Path) -> bytes | None:
    text = files.read_capped(path, _NOTE_CAP)
    return None if text is None else text.removesuffix(b"\n")


def remove(repo: git.Repository, path: Path, name: str, staging: Path) -> None:
    """Remove the work tree at *path* and its registration; links are not followed, what is gone is fine.

    The files go by way of *staging*, a folder for what is on its way out, so that nobody waits for many of them.
    Raises HostError where something is at *path* that no registration of the run *name* vouches for.
    """
    with locked(repo):
        if os.path.lexists(path) and vouching(repo, path, name) is None:
            raise HostError(
                f"{path} is not registered as the airlock of {name}.", f"Look at it, then remove it: rm -rf {path}"
            )
        _forget(repo, path, name, staging)


def _forget(repo: git.Repository, path: Path, name: str, staging: Path) -> None:
    # The registration goes last: until then it vouches for what is left of the tree, should this process be killed.
    while entry := vouching(repo, path, name):
        with files.reported(f"remove the airlock {path}"):
            trash.discard(path, staging)
            # At once as well: half a registration vouches for nothing, and would never be removed.
            trash.discard(entry, staging)
    # The folder of all registrations stays, though git removes an empty one: sandboxes that are being made hide it.
