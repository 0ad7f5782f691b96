"""Grep: a regular expression over the files that belong to the repository."""

from __future__ import annotations

import re

from essentials.patterns import late
from essentials.records import dataclass, replace
from hollow.confine import Refusal, closed, shown
from hollow.toolbox import git
from hollow.toolbox.workspace import cut, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

    from hollow.toolbox.workspace import Workspace

MAX_RESULTS: Final = 500
"""Matches one call can ask for."""

MAX_PATTERN: Final = 1000
"""Characters of a pattern; longer ones are pasted text, not a search."""

_WIDTH: Final = 300
"""Characters shown of a matching line, around the match."""

_MAX_GLOBS: Final = 64
"""Alternatives a glob in braces may unfold to."""

_HIT: Final = late(rb"([^\0]*)\0(\d+)[\0:](\d+)[\0:](.*)", re.DOTALL)
_BRACES: Final = late(r"\{([^{}]*,[^{}]*)\}")


@dataclass(frozen=True, slots=True)
class _Query:
    pattern: str
    where: tuple[str, ...]
    """Pathspecs."""
    ignore_case: bool
    untracked: bool = True


def grep(
    place: Workspace,
    pattern: str,
    path: str = ".",
    glob: str | None = None,
    ignore_case: bool = False,
    max_results: int = 50,
) -> str:
    """Search the text files of the repository (tracked, or untracked and not ignored) for a regular expression.

    pattern: Perl-compatible regular expression, matched line by line
    path: file or folder to search in, relative to the top of the repository
    glob: only files whose name matches, such as *.py or src/**/*.{js,ts}
    ignore_case: whether upper and lower case are the same
    max_results: how many matching lines at most
    """
    if not pattern or len(pattern) > MAX_PATTERN or "\0" in pattern:
        raise Refusal(f"A pattern has 1 to {MAX_PATTERN} characters.")
    query = _Query(pattern, tuple(_pathspecs(place, path, glob)), ignore_case)
    found, note = _search(place, query)
    wanted = min(max(1, max_results), MAX_RESULTS)
    hits: list[str] = []
    for hit in _hits(place, found.data + _forced(place, query)):
        if len(hits) == wanted:
            note += f"[Only the first {wanted} matches are shown; narrow pattern, path or glob, or raise max_results.]"
            break
        hits.append(hit)
    if found.cut:
        note += f"[More than {git.MAX_BYTES} bytes matched and were not looked through; narrow pattern, path or glob.]"
    # What was found before the time was up is an answer, and is marked as a part.
    if found.late:
        note += f"[The search was stopped after {git.TIMEOUT:.0f} s; use a simpler pattern or a narrower path.]"
    return cut("\n".join([*hits, note] if note else hits), "Narrow pattern, path or glob.") or "No matches."


def _search(place: Workspace, query: _Query) -> tuple[git.Output, str]:
    """Run the search; a pattern that is no regular expression is searched for literally, and the note says so."""
    found = _git_grep(place, query, "-P")
    note = ""
    if "Perl-compatible" in found.error:
        found = _git_grep(place, query, "-E")  # this git was built without PCRE
    if found.broken and "-e option" in found.error:
        # Models often ask for `def name(`: the literal text is what they mean.
        note = f"[{query.pattern} is no valid regular expression; it was searched for literally.]"
        found = _git_grep(place, query, "-F")
    return _completed(found), note


def _completed(found: git.Output) -> git.Output:
    """Return *found* if it is an answer; raises :class:`Refusal` if the search was given up."""
    if "pcre" in found.error.lower() and "limit" in found.error:
        raise Refusal("The pattern needs too much backtracking; use a simpler one.")
    if found.late:
        if not found.data:
            raise Refusal(f"The search took longer than {git.TIMEOUT:.0f} s; use a simpler pattern or a narrower path.")
        return found
    # 1 is git's way of saying that nothing was found.
    if found.broken and found.code != 1:
        raise Refusal(f"The search failed: {found.error or f'git ended with {found.code}'}.")
    return found


def _forced(place: Workspace, query: _Query) -> bytes:
    """Return the hits in files that are tracked although an ignore rule matches them: ``--untracked`` skips those."""
    listed = git.run(place.root, ["ls-files", "--cached", "--ignored", "--exclude-standard", "-z", "--", *query.where])
    names = set(listed.data.split(b"\0")) - {b""}
    if not names:
        return b""
    # A second search over what is tracked: a list of names as pathspecs could be too long for a command line.
    found, _ = _search(place, replace(query, untracked=False))
    return b"".join(line + b"\n" for line in found.data.split(b"\n") if line.partition(b"\0")[0] in names)


def _git_grep(place: Workspace, query: _Query, kind: str) -> git.Output:
    options = ["-n", "-z", "-I", "--column", "--no-color", "--no-textconv", "--no-recurse-submodules"]
    # Untracked files are searched too: what an agent or a person has just written is often what matters.
    wider = [*(["--untracked"] if query.untracked else []), *(["-i"] if query.ignore_case else [])]
    return git.run(place.root, ["grep", *options, *wider, kind, "-e", query.pattern, "--", *query.where])


def _pathspecs(place: Workspace, path: str, glob: str | None) -> list[str]:
    parts = place.border.resolve(path)
    # Airlocks under agent_box/ are whole copies of the repository: leave them out before they are read.
    excluded = [":(exclude,literal).agents", ":(exclude,literal)agent_box"]
    if not glob or place.root.joinpath(*parts).is_file():
        return [git.literal("/".join(parts)) if parts else ".", *excluded]
    folder = "".join(re.sub(r"([*?\[\]\\])", r"\\\1", part) + "/" for part in parts)
    names = [name.removeprefix("./") for name in _unfold(glob)]
    return [f":(glob){folder}{name if '/' in name else f'**/{name}'}" for name in names] + excluded


def _unfold(glob: str) -> list[str]:
    """Return *glob* without braces as several globs; git knows no ``{a,b}``."""
    done: list[str] = []
    waiting = [glob]
    while waiting and len(done) + len(waiting) <= _MAX_GLOBS:
        one = waiting.pop(0)
        braces = _BRACES.search(one)
        if braces is None:
            done.append(one)
        else:
            waiting += [one[: braces.start()] + choice + one[braces.end() :] for choice in braces[1].split(",")]
    if waiting:
        raise Refusal(f"The glob {glob} unfolds to more than {_MAX_GLOBS} alternatives.")
    return done


def _hits(place: Workspace, data: bytes) -> Iterator[str]:
    # git follows a folder that was replaced by a link; every file is judged again before a line of it is shown.
    allowed: dict[str, bool] = {}
    for line in data.split(b"\n"):
        hit = _HIT.fullmatch(line)
        if hit is None:
            continue
        name = hit[1].decode("utf-8", "surrogateescape")
        if name not in allowed:
            parts = tuple(name.split("/"))
            allowed[name] = not closed(parts) and place.border.allows(name)
        if allowed[name]:
            yield f"{shown((name,))}:{int(hit[2])}:{_excerpt(hit[4], int(hit[3]))}"


def _excerpt(line: bytes, column: int) -> str:
    """Return *line*, or the part of it around byte *column* (from 1) where it is long."""
    line = line.rstrip(b"\r")
    if len(line) <= _WIDTH:
        return text(line)
    start = max(0, min(column - 1 - _WIDTH // 3, len(line) - _WIDTH))
    return f"{'…' if start else ''}{text(line[start : start + _WIDTH])}{'…' if start + _WIDTH < len(line) else ''}"
