"""The first choice of a sandbox: the command line that has bubblewrap show a process its cell and nothing else."""

from __future__ import annotations

import os
import stat
import subprocess
from functools import cache
from pathlib import Path

from agents import roots
from agents.errors import AgentError
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Final

    from agents.cell import Cell

ARGUMENTS: Final = 300
"""Descriptor of the list of arguments: thousands of paths do not fit a command line, and need not stand in `ps`."""
FILTER: Final = 301
"""Descriptor of the seccomp filter."""
_FIRST_FILE: Final = 400
"""First descriptor of the empty files that are seen in the place of hidden ones."""
_DISABLES_USERNS: Final = (0, 8)
"""The version that can switch off user namespaces inside by itself; a filter does it everywhere."""

_NOBODY: Final = "65534"
_SCRATCH: Final = tuple(map(Path, ("/tmp", "/var/tmp", "/dev/shm")))  # noqa: S108 - the sandbox's own
_SETTINGS: Final = tuple(
    Path("/proc", name) for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "mtrr", "pressure")
)
"""The machine's own settings in /proc: the kernel lets root write them without any capability, and bubblewrap 0.8 does
not shut all of them. With ``core_pattern`` among them a program can be run outside of the sandbox."""
_SAFE_FOLDERS: Final = ("/usr/local/bin", "/usr/bin", "/bin")


def find(search: str, avoid: Iterable[Path]) -> Path | None:
    """The bubblewrap program on the search path *search*, else in the system's folders; None where there is none.

    Taken only from absolute entries outside of *avoid* (what an agent may write), and only if nobody but its owner,
    root or this user, can write it or put another in its place (P27).
    """
    entries = [each for each in search.split(os.pathsep) if each.startswith("/")]
    for folder in map(Path, dict.fromkeys((*entries, *_SAFE_FOLDERS))):
        found = Path(os.path.realpath(folder / "bwrap"))
        inside = any(each.is_relative_to(top) for each in (folder, found) for top in avoid)
        if not inside and os.access(found, os.X_OK) and _trusted(found) and _trusted(found.parent):
            return found
    return None


def _trusted(path: Path) -> bool:
    try:
        seen = path.stat()
    except OSError:
        return False
    shared = seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return not shared and seen.st_uid in {0, os.geteuid()}


@cache
def version(program: Path) -> tuple[int, ...]:
    """The version of the bubblewrap *program*; empty where it does not tell."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(int(part) for part in said.split()[-1].split(".") if part.isdigit()) if said.split() else ()


def is_setuid(program: Path) -> bool:
    """Whether *program* runs with root's rights, which it would lose if they were given up before."""
    return bool(program.stat().st_mode & stat.S_ISUID)


@dataclass(frozen=True, slots=True)
class Mount:
    """One thing that is seen in the sandbox."""

    kind: str
    """ro, rw, instead (of a file), hidden (a folder), empty (a file), scratch, proc, dev or link."""
    source: str = ""
    """What is seen there: a path of the host, or what a link says."""


# At one place the later kind wins: what is asked to be hidden is hidden, whoever else asks to see it.
_RANK: Final = ("link", "ro", "rw", "scratch", "proc", "dev", "frozen", "instead", "empty", "hidden")
_VISIBLE: Final = frozenset({"ro", "rw", "frozen"})
# Nothing new would be seen: what is asked for, and what is there already.
_SAME: Final = frozenset({
    ("ro", "ro"), ("ro", "rw"), ("ro", "frozen"), ("rw", "rw"), ("frozen", "ro"), ("frozen", "frozen"),
    ("link", "ro"), ("link", "rw"), ("link", "frozen"),
    *((kind, below) for kind in ("empty", "hidden") for below in ("", "hidden")), ("empty", "scratch"),
})  # fmt: skip


def mounts(cell: Cell) -> dict[Path, Mount]:
    """What is seen in *cell*, by its place, parents before their children; nothing that would change nothing.

    Paths that are links are seen as links, and what they lead to at its own place. Raises AgentError where an agent
    with a writable folder has put something else in the place of a path in it.
    """
    asked: dict[Path, Mount] = {}
    for path in (*roots.SYSTEM, *cell.read):
        _ask(asked, path, "ro")
    for path in cell.write:
        _refuse_swapped(path, cell)
        _ask(asked, path, "rw")
    for path in _SCRATCH:
        _put(asked, path, Mount("scratch"))
    _put(asked, Path("/proc"), Mount("proc"))
    _put(asked, Path("/dev"), Mount("dev"))
    # For others than root they are read-only by themselves, and a /proc with nothing on it can be made anew inside.
    for path in _SETTINGS if os.geteuid() == 0 or not cell.nested else ():
        if path.exists():
            _put(asked, path, Mount("frozen", str(path)))
    _special(asked, cell)
    for path in tuple(asked):
        for around in _closed(path):
            asked.setdefault(around, Mount("hidden"))
    return _pruned(asked)


def _closed(path: Path) -> Iterator[Path]:
    """The folder of a scratch folder that *path* lies in, if it lies deeper.

    It is closed around what is seen in it: else an agent could write files in memory beside a checkout in /tmp, and
    believe that it had changed something.
    """
    for scratch in _SCRATCH:
        if path.is_relative_to(scratch) and path.parent not in {scratch, *scratch.parents}:
            yield scratch / path.relative_to(scratch).parts[0]


def _special(asked: dict[Path, Mount], cell: Cell) -> None:
    for path in cell.freeze:
        if os.path.lexists(path):
            _refuse_swapped(path, cell)
            if not stat.S_ISREG(path.lstat().st_mode):
                raise AgentError(f"{path} is no longer the file it was.", "An agent has replaced it: ./agent reject")
            _ask(asked, path, "frozen")
    for path, source in cell.instead.items():
        _refuse_swapped(path, cell)
        _put(asked, Path(os.path.realpath(path)), Mount("instead", os.path.realpath(source)))
    for path in (*roots.PRIVATE, *cell.hide):
        real = Path(os.path.realpath(path))
        if real.exists():
            _put(asked, real, Mount("hidden" if real.is_dir() else "empty"))


def _put(asked: dict[Path, Mount], path: Path, mount: Mount) -> None:
    known = asked.get(path)
    if known is None or _RANK.index(mount.kind) >= _RANK.index(known.kind):
        asked[path] = mount


def _ask(asked: dict[Path, Mount], path: Path, kind: str) -> None:
    """Ask for *path* where it leads to, and for the links on the way there."""
    absolute = os.path.normpath(path)
    real = Path(os.path.realpath(absolute))
    if not real.exists() or any(real.is_relative_to(each) for each in roots.KERNEL):
        return
    _put(asked, real, Mount(kind, str(real)))
    for link, target in _links(Path(absolute)):
        _put(asked, link, Mount("link", target))


def _links(path: Path) -> Iterator[tuple[Path, str]]:
    """The links that are followed on the way to *path*, each with what it says."""
    todo, here = list(reversed(path.parts[1:])), Path("/")
    while todo:
        part = todo.pop()
        here = Path(os.path.normpath(here / part))
        if here.is_symlink():
            target = os.readlink(here)  # noqa: PTH115 - the text itself is wanted
            yield here, target
            todo += reversed(Path(target).parts)
            # An absolute target begins at the root by itself.
            here = here.parent


def _refuse_swapped(path: Path, cell: Cell) -> None:
    """Refuse a *path* in a writable folder that leads elsewhere: what is bound there would be the agent's choice."""
    for folder in cell.write:
        if path != folder and path.is_relative_to(folder):
            expected = Path(os.path.realpath(folder)) / path.relative_to(folder)
            if Path(os.path.realpath(path)) != expected:
                raise AgentError(f"{path} has become a link to elsewhere.", "An agent has replaced it: ./agent reject")


def _pruned(asked: dict[Path, Mount]) -> dict[Path, Mount]:
    kept: dict[Path, Mount] = {}
    for path in sorted(asked, key=lambda each: each.parts):
        mount, around = asked[path], next((kept[each].kind for each in path.parents if each in kept), "")
        absent = mount.kind == "instead" and around not in {"rw", "scratch", ""} and not path.exists()
        if (mount.kind, around) not in _SAME and not absent:
            kept[path] = mount
    return kept


def arguments(cell: Cell, code: bytes | None, *, disable_userns: bool) -> tuple[list[str], dict[int, bytes]]:
    """The arguments that make *cell*, and what is to be read from which descriptor.

    *code* is the seccomp filter. Raises AgentError like :func:`mounts`.
    """
    words = [*_namespaces(cell), *(["--disable-userns"] if disable_userns and not cell.nested else [])]
    files: dict[int, bytes] = {}
    placed = mounts(cell)
    for path, mount in placed.items():
        words += _words(path, mount, cell.limits.scratch, files)
    # What holds no file of the host is memory: closed, so that it cannot be filled. Last, for all places must be there.
    closed = [path for path, mount in placed.items() if mount.kind in {"hidden", "dev"}]
    for path in (*closed, Path("/")) if Path("/") not in placed else closed:
        words += ["--remount-ro", str(path)]
    words += ["--chdir", os.path.realpath(cell.cwd)]
    if code is not None:
        files[FILTER] = code
        words += ["--seccomp", str(FILTER)]
    return words, files


def _namespaces(cell: Cell) -> list[str]:
    """What the cell shares with nobody, and the rights that it loses."""
    words = [
        "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
        "--cap-drop", "ALL", "--new-session", "--die-with-parent",
    ]  # fmt: skip
    words += [] if cell.network else ["--unshare-net"]
    # A root without rights may not give root to a namespace of its own: under another number it may give that.
    return words + (["--uid", _NOBODY, "--gid", _NOBODY] if cell.nested and os.geteuid() == 0 else [])


def _words(path: Path, mount: Mount, scratch: int, files: dict[int, bytes]) -> Sequence[str]:
    place = str(path)
    if mount.kind == "empty":
        number = _FIRST_FILE + len(files)
        files[number] = b""
        return ("--perms", "0444", "--ro-bind-data", str(number), place)
    return {
        **dict.fromkeys(("ro", "frozen", "instead"), ("--ro-bind", mount.source, place)),
        "rw": ("--bind", mount.source, place),
        "hidden": ("--perms", "0555", "--tmpfs", place),
        "scratch": ("--size", str(scratch), "--perms", "01777", "--tmpfs", place),
        "proc": ("--proc", place),
        "dev": ("--dev", place),
        "link": ("--symlink", mount.source, place),
    }[mount.kind]


def why_not(said: str, *, container: bool) -> tuple[str, str]:
    """Why bubblewrap does not work here by what it *said*, and what to type; *container* is whether this is one."""
    last = said.strip().rpartition("\n")[2].removeprefix("bwrap: ")[:200]
    if "bwrap: " not in said:
        return said[:200], ""
    if container:
        return last, "start the container with: --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    if "uid map" in said or "ermission denied" in said or "loopback" in said:
        return last, _APPARMOR
    if "namespace" in said:
        return last, "sudo sysctl user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1"
    return last, "bwrap --unshare-user --unshare-pid --ro-bind / / --proc /proc true"


_APPARMOR: Final = (
    "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or give bwrap an AppArmor profile that allows userns"
)
