"""GitLog and GitDiff: what changed, when, and how."""

from __future__ import annotations

from essentials.patterns import late
from hollow.confine import Refusal, closed
from hollow.gitenv import FILTERS, filters_off
from hollow.toolbox import git
from hollow.toolbox.workspace import cut, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from hollow.toolbox.workspace import Workspace

MAX_COMMITS: Final = 200
"""Commits one call can ask for."""

_MAX_UNTRACKED: Final = 50
"""Untracked files that are named beside a diff."""

_REVISION: Final = late(r"[A-Za-z0-9_@][A-Za-z0-9_./@{}^~+-]*")
"""What a single revision may look like: no leading dash (an option), no colon (``HEAD:.env`` would be a file)."""


def git_log(place: Workspace, path: str | None = None, limit: int = 20) -> str:
    """List the latest commits, newest first: short id, date, author, subject.

    path: only commits that touched this file or folder; leave out for all
    limit: how many commits at most
    """
    wanted = min(max(1, limit), MAX_COMMITS)
    options = ["-n", str(wanted), "--date=short", "--format=%h  %ad  %an  %s", "--no-show-signature", "--no-color"]
    found = git.run(place.root, ["log", *options, "--end-of-options", "HEAD", "--", *_only(place, path)])
    if found.broken and not _head(place):
        return "The repository has no commit yet."
    lines = text(_checked(found)).splitlines()
    if len(lines) == wanted:
        lines.append(f"[The latest {wanted} are shown; raise limit for more.]")
    return cut("\n".join(lines), "Lower limit or give a path.") or f"No commit touched {path or 'this repository'}."


def git_diff(place: Workspace, revision: str | None = None, path: str | None = None) -> str:
    """Show changes as a diff: those not committed yet, those of one commit, or those between two revisions.

    revision: HEAD~1 for what that commit changed, A..B or A...B to compare; leave out for what is not committed
    path: only this file or folder; leave out for all
    """
    command, compared = _compared(place, revision)
    only = _only(place, path)
    settings = _tame_filters(place)
    hidden = _hidden_names(place, [*command, *compared], settings)
    shape = ["--stat", "--patch", "--relative", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv"]
    scope = [*(only or ["."]), *(f":(exclude,literal){name}" for name in hidden)]
    arguments = [*command, *shape, "--ignore-submodules=dirty", *compared, "--", *scope]
    diff = text(_checked(git.run(place.root, arguments, settings=settings))).strip("\n")
    notes = [f"[Closed to agents, not shown: {len(hidden)} file(s).]"] if hidden else []
    notes += [] if (revision or "").strip() else _untracked(place, only)
    return "\n".join([cut(diff, "Give a path to see one file.") or "No changes.", *notes])


def _hidden_names(place: Workspace, words: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    """Return the closed files among those that a diff would show; renames apart, so that old names are seen too."""
    header = ["--format="] if words[0] == "show" else []
    found = git.run(
        place.root, [*words, *header, "--no-renames", "--name-only", "--relative", "-z", "--"], settings=settings
    )
    return [name for name in _checked(found).decode("utf-8", "surrogateescape").split("\0") if _hidden(name)]


def _hidden(name: str) -> bool:
    return bool(name) and closed(tuple(name.split("/")))


def _only(place: Workspace, path: str | None) -> list[str]:
    """Return the pathspec of *path*, which may be a file that exists no more."""
    parts = place.border.name(path) if path else ()
    return [git.literal("/".join(parts))] if parts else []


def _compared(place: Workspace, revision: str | None) -> tuple[list[str], list[str]]:
    """Return the git command and the commits, as full ids, that *revision* asks to compare."""
    asked = (revision or "").strip()
    if not asked:
        return ["diff"], [_head(place) or _empty_tree(place)]
    dots = next((dots for dots in ("...", "..") if dots in asked), "")
    if not dots:
        return ["show", "--no-show-signature"], [_commit(place, asked)]
    left, _, right = asked.partition(dots)
    return ["diff"], [f"{_commit(place, left or 'HEAD')}{dots}{_commit(place, right or 'HEAD')}"]


def _commit(place: Workspace, revision: str) -> str:
    """Return the full id of *revision*; only ids reach the commands, so no word of the model can be an option."""
    if _REVISION.fullmatch(revision) is None:
        raise Refusal(f"{revision!r} is no revision; give a branch, a tag, a commit id, HEAD~1, A..B or A...B.")
    found = git.run(place.root, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"])
    commit = found.data.decode("ascii", "replace").strip().removeprefix("--end-of-options").strip()
    if found.code != 0 or not commit:
        raise Refusal(f"There is no commit {revision!r} in this repository; GitLog lists the latest.")
    return commit


def _head(place: Workspace) -> str:
    return git.run(place.root, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).data.decode("ascii").strip()


def _empty_tree(place: Workspace) -> str:
    return git.run(place.root, ["hash-object", "-t", "tree", "/dev/null"]).data.decode("ascii").strip()


def _tame_filters(place: Workspace) -> dict[str, str]:
    """Return settings that switch off every clean filter: comparing the working tree would run its program."""
    found = git.run(place.root, FILTERS)
    # Git ends with 1 where there is no filter; any other failure must not pass for that.
    return filters_off(found.data if found.code == 1 else _checked(found))


def _untracked(place: Workspace, only: Sequence[str]) -> list[str]:
    found = git.run(place.root, ["ls-files", "--others", "--exclude-standard", "-z", "--", *only])
    names = [name for name in text(found.data).split("\0") if name and not _hidden(name)]
    more = f" and {len(names) - _MAX_UNTRACKED} more" if len(names) > _MAX_UNTRACKED else ""
    return [f"[Untracked files, not in the diff: {', '.join(names[:_MAX_UNTRACKED])}{more}.]"] if names else []


def _checked(found: git.Output) -> bytes:
    if found.late:
        raise Refusal(f"git took longer than {git.TIMEOUT:.0f} s; give a path or a smaller range.")
    if found.broken:
        raise Refusal(f"git refused: {found.error or f'it ended with {found.code}'}.")
    return found.data
