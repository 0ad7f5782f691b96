"""The files of a goal against git: what a step wrote, what is no longer there, and how all of it is undone."""

from __future__ import annotations

import contextlib
import os
import stat

from essentials.digests import sha256
from essentials.patterns import late
from hollow.confine import Refusal
from hollow.gitread import GitReadError, git
from hollow.hands.paths import WORKSPACE, own_folders
from hollow.placing import Spot
from hollow.substrate.model import Artifact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final

    from hollow.substrate.model import Goal
    from hollow.toolbox.workspace import Workspace

Parts = tuple[str, ...]
_CHUNK: Final = 1 << 20
_LARGEST: Final = 8 << 20
"""Bytes of a file that tell it from others; a document is never so large."""
_COMMIT: Final = late(r"[0-9a-f]{7,64}")


def written(goal: Goal, place: Workspace, paths: Iterable[str], step: int) -> tuple[Artifact, ...]:
    """Return what step number *step* of *goal* wrote at *paths* of the airlock *place*, for ``goals.advance``.

    Whether a file is new is asked of git, once a goal: it is if the commit where the goal began does not hold it.
    """
    known = {each.path: each.created for each in goal.artifacts}
    found = ((path, _digests(place, path)) for path in dict.fromkeys(paths))
    return tuple(
        Artifact(
            path=path,
            sha256=digests[0],
            created=known[path] if path in known else _is_new(goal, place, path),
            step=step,
        )
        for path, digests in found
        if digests
    )


def lost(goal: Goal, place: Workspace) -> dict[str, str | None]:
    """Return the files of *goal* that are not as it left them: path to the SHA-256 of what is there, None for nothing.

    So it is when the cycle that wrote them was never accepted; ``goals.withdraw`` takes it.
    """
    now = {each.path: _digests(place, each.path) for each in goal.artifacts}
    return {each.path: next(iter(now[each.path]), None) for each in goal.artifacts if each.sha256 not in now[each.path]}


def undo(goal: Goal, place: Workspace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Undo what *goal* wrote in the airlock *place*; return the paths restored and the paths removed (T91, S34).

    A file goes back to how others left it: to the last commit since ``goal.base`` that is not this goal's and touches
    it, else to ``goal.base``. Where neither holds it, it is removed, with the folders that this leaves empty. Only
    files below the agent's own folders are touched; one in the shared ``design/`` whose bytes are not the goal's last
    is somebody else's by now and stays, and so does one whose earlier bytes git cannot give.
    """
    restored: list[str] = []
    removed: list[str] = []
    for each in goal.artifacts:
        parts = _own(place, each.path, goal.agent)
        if parts is None or not _is_the_goals(each, place, parts):
            continue
        try:
            before = _before(goal, place, "/".join(parts))
        except GitReadError:
            continue
        _put_back(place, parts, before, each.path, restored if before is not None else removed)
    return tuple(restored), tuple(removed)


def _own(place: Workspace, path: str, agent: str) -> Parts | None:
    """The parts of *path* if it lies below a folder of *agent*; judged by name, and no link is followed later on."""
    try:
        parts = place.border.name(path)
    except Refusal:
        return None
    inside = any("/".join(parts).startswith(f"{folder}/") for folder in own_folders(agent))
    return parts if inside else None


def _is_the_goals(artifact: Artifact, place: Workspace, parts: Parts) -> bool:
    # Nobody else writes below workspace/<agent>/; design/ is shared.
    now = _digests(place, artifact.path)
    return parts[0] == WORKSPACE or not now or artifact.sha256 in now


def _before(goal: Goal, place: Workspace, path: str) -> bytes | None:
    """The bytes of *path* before the goal, None where it was not there. Raises :class:`GitReadError`."""
    since = f"{_commit(goal.base)}..HEAD"
    not_its_own = ("--fixed-strings", "--invert-grep", f"--grep=Agent-Goal: {goal.goal_id}")
    others = git(place.root, "log", "-1", "--format=%H", *not_its_own, since, "--", path).decode("ascii").strip()
    oid = _oid(place, others or goal.base, path)
    # By its id, so that no filter and no conversion of line ends has a say in the bytes.
    return None if oid is None else git(place.root, "cat-file", "blob", oid)


def _oid(place: Workspace, commit: str, path: str) -> str | None:
    """Id of the regular file *path* in *commit*, or None. Raises :class:`GitReadError` if there is no such commit."""
    shown = git(place.root, "ls-tree", "-z", "--full-tree", f"{_commit(commit)}^{{commit}}", "--", path)
    head = shown.partition(b"\t")[0].split()
    return head[2].decode("ascii") if len(head) == 3 and head[0].startswith(b"100") else None  # noqa: PLR2004 - mode, type, id


def _commit(name: str) -> str:
    # A goal may have been placed by hand; git would take a name that begins with a hyphen for an option.
    if not _COMMIT.fullmatch(name):
        raise GitReadError(f"{name[:80]!r} is no commit.")
    return name


def _is_new(goal: Goal, place: Workspace, path: str) -> bool:
    try:
        return _oid(place, goal.base, path) is None
    except GitReadError:
        return False  # not known to be new is not new


def _put_back(place: Workspace, parts: Parts, before: bytes | None, path: str, done: list[str]) -> None:
    try:
        with _folder(place, parts[:-1], make=before is not None) as folder:
            changed = _unlink(folder, parts[-1]) if before is None else _restore(folder, parts[-1], path, before)
    except (Refusal, OSError):
        return  # a folder that became a link or a file: what lies behind it is not ours to touch
    if changed:
        done.append(path)
    if before is None:
        _prune(place, parts)


@contextlib.contextmanager
def _folder(place: Workspace, parts: Parts, *, make: bool = False) -> Iterator[int]:
    folder = place.border.walk(parts, "/".join(parts), make=make)
    try:
        yield folder
    finally:
        os.close(folder)


def _mode(folder: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _unlink(folder: int, name: str) -> bool:
    mode = _mode(folder, name)
    if mode is None or stat.S_ISDIR(mode):
        return False
    os.unlink(name, dir_fd=folder)
    return True


def _restore(folder: int, name: str, path: str, before: bytes) -> bool:
    mode = _mode(folder, name)
    # A link, or a pipe, is replaced itself: writing through it would change another file.
    regular = mode is not None and stat.S_ISREG(mode)
    file = Spot(folder, name, path, stat.S_IMODE(mode) & 0o777 if mode is not None and regular else None)
    same_size = regular and os.stat(name, dir_fd=folder).st_size == len(before)
    if same_size and file.read() == before:
        return False
    file.replace(before)
    return True


def _prune(place: Workspace, parts: Parts) -> None:
    """Remove the folders above *parts* that are empty now, never an own folder itself."""
    top = 2 if parts[0] == WORKSPACE else 1
    for end in range(len(parts) - 1, top, -1):
        try:
            with _folder(place, parts[: end - 1]) as folder:
                os.rmdir(parts[end - 1], dir_fd=folder)
        except (Refusal, OSError):
            return  # not empty, or gone already


def _digests(place: Workspace, path: str) -> tuple[str, ...]:
    """SHA-256 of the regular file *path*, then of it with other line ends; empty where there is none to be read.

    A repository may have git change line ends on the way in or out, and then it is still the same document.
    """
    data = b""
    try:
        with place.border.file(path) as descriptor:
            while (more := os.read(descriptor, _CHUNK)) and len(data) <= _LARGEST:
                data += more
    except (Refusal, OSError):
        return ()
    plain = data.replace(b"\r\n", b"\n")
    return tuple(sha256(each).hexdigest() for each in (data, plain, plain.replace(b"\n", b"\r\n")))
