"""The sandbox of an agent's commands: bubblewrap within whatever surrounds the agent, or those surroundings alone."""

from __future__ import annotations

import os
import shlex
import subprocess
from itertools import product
from pathlib import Path
from types import MappingProxyType

from essentials.records import dataclass, replace
from hollow.confine import closed
from hollow.toolroots import SYSTEM, program, tool_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Final

SURROUNDINGS: Final = ("full", "partial", "none")
"""What may surround the agent process (design, section 8); with the first two a command is confined in any case."""

_ETC: Final = (
    "alternatives", "ca-certificates", "group", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "mime.types", "nsswitch.conf", "os-release", "passwd", "pki", "protocols", "services", "ssl/certs",
    "ssl/openssl.cnf", "timezone",
)  # fmt: skip
"""What programs read of /etc, none of it secret."""

_TMP_BYTES: Final = 1 << 30
"""Size of the private /tmp: it is memory."""

_SIZED: Final = ("--size", str(_TMP_BYTES))
_HARDENINGS: Final = (("--disable-userns", *_SIZED), _SIZED, ())
"""What stands before the mount of /tmp, best first. No sandbox within this one (a new user namespace is where most
faults of kernels begin) needs bubblewrap 0.8 and a writable setting, a bounded /tmp needs 0.7."""

# Sizes in the units of POSIX sh (-f in blocks of 512 bytes, -d in KiB). Data and not address space: run-times reserve
# more addresses than they ever use. What the caller's own limit forbids is left as it stands.
_LIMITS: Final = "ulimit -c 0; ulimit -f {blocks}; ulimit -d 4194304; ulimit -n 4096"
# Inside a user namespace of its own the processes of this command alone are counted; outside, all of the user's would
# be. dash says -p where other shells say -u.
_PROCESSES: Final = "; ulimit -u 512 || ulimit -p 512"

LARGEST_NARROW: Final = 16 << 20
"""Bytes of a file that a narrowed command writes: agents leave documents, and history keeps every version of them."""

_PROBE: Final = (
    "test -w . && test -w /tmp && test ! -w / && test ! -w /usr && test ! -w /proc/sys/kernel/core_pattern"
    ' && test -z "$(ls -A "$HOLLOW_HIDDEN" 2>/dev/null)" && set -- /proc/[0-9]* && test $# -lt 12'
)
"""What must hold in there: writable here, not elsewhere, nothing of the supervisor's, no process of the machine's."""
_PROBE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What a command of the agent may see and do."""

    repo: Path
    """Top folder of the repository, links resolved; writable unless :attr:`writable` says less, its ``.git`` never."""
    hidden: Path
    """A folder of the supervisor's that no command sees, whether it lies in the readable part or not."""
    bwrap: str | None
    """Absolute path of bubblewrap, or None where only the surroundings confine."""
    surroundings: str
    """One of :data:`SURROUNDINGS`."""
    env: Mapping[str, str]
    """The whole environment of a command: PATH, HOME, LANG and, without bubblewrap, TMPDIR (T151)."""
    roots: tuple[Path, ...] = ()
    """Readable beside the system, for tools."""
    hardening: tuple[str, ...] = _HARDENINGS[0]
    """The one of :data:`_HARDENINGS` that works here."""
    writable: tuple[Path, ...] | None = None
    """The folders of the repository that a command may write, all else in it being read-only; None for all of it. They
    are there, and are no links."""
    largest: int = 1 << 30
    """Bytes that one file may have which a command writes."""
    own_proc: bool = True
    """Whether a /proc of its own can be mounted. A kernel refuses that where part of the one around is covered, as it
    is for root; then the one around is seen, read-only. It lists the agent's processes, but what is theirs is not open
    to another user namespace."""

    def argv(self, command: str) -> list[str]:
        """Return the argument list that runs *command* with /bin/sh in the sandbox; made anew for every command.

        Anew, because an agent may have renamed a folder that holds a secret since.
        """
        bounds = _LIMITS.format(blocks=self.largest // 512)
        limits = f"{{ {bounds}{_PROCESSES if self.bwrap else ''}; }} 2>/dev/null"
        inner = ["/bin/sh", "-c", f'{limits}; exec /bin/sh -c "$1"', "sh", command]
        return [self.bwrap, *_options(self), "--", *inner] if self.bwrap else inner


def offered(repo: Path, index: Path, surroundings: str, environ: Mapping[str, str]) -> Cell | None:
    """Return how commands are run for the agent at *repo*, or None if there is no safe way.

    *index* is the agent's private folder in the supervisor's data, *surroundings* what already confines the agent, and
    *environ* its environment, of which a command gets the PATH alone. Bubblewrap is believed after it has passed a
    probe of its behaviour, in the very profile that commands get.
    """
    repo, search = Path(os.path.realpath(repo)), environ.get("PATH", os.defpath)
    bwrap = program("bwrap", search, repo)
    if bwrap is not None:
        home = _home(environ, _private(index))
        roots = tool_roots(search, repo, home)
        env = MappingProxyType({"PATH": search, "HOME": str(home), "LANG": "C.UTF-8"})
        # The processes around are few and the supervisor's own only where it has made them a namespace.
        for hardening, own_proc in product(_HARDENINGS, (True, False) if surroundings == "full" else (True,)):
            cell = Cell(
                repo=repo, hidden=_private(index), bwrap=bwrap, surroundings=surroundings,
                env=env, roots=roots, hardening=hardening, own_proc=own_proc,
            )  # fmt: skip
            if _works(cell):
                return cell
    confined = surroundings in {"full", "partial"} and not any(map(_in_reach, _closed_below(repo)))
    return _surrounded(repo, index, surroundings, environ) if confined else None


def narrowed(cell: Cell, writable: Sequence[Path]) -> Cell | None:
    """Return *cell* with a repository that is read-only but for the folders *writable*, or None where it cannot be.

    That takes bubblewrap: the surroundings cannot be made narrower for one child. It is believed after a probe too,
    because a lock of the environment rests on it (T57). A folder that is missing, or that a link leads to, is no
    folder to open: what it leads to may be anybody's.
    """
    folders = tuple(real for folder in writable if (real := _own(folder, cell.repo)) is not None)
    narrow = replace(cell, writable=folders, largest=min(cell.largest, LARGEST_NARROW))
    return narrow if cell.bwrap is not None and _works(narrow, _narrow_probe(narrow)) else None


def _own(folder: Path, repo: Path) -> Path | None:
    """*folder* as it lies below *repo*, where no link leads to it from there and it is a folder."""
    # From the outside in: only what leads to the repository may be spelled with a link, not what lies in it.
    top = next((each for each in reversed(folder.parents) if Path(os.path.realpath(each)) == repo), None)
    if top is None:
        return None
    real = repo / folder.relative_to(top)
    return real if Path(os.path.realpath(real)) == real != repo and real.is_dir() else None


def _narrow_probe(cell: Cell) -> str:
    """What must hold in a cell whose repository is read-only."""
    opened = (f"test -w {shlex.quote(str(folder))}" for folder in cell.writable or ())
    return " && ".join(["test ! -w . && test -w /tmp && test ! -w / && test ! -w /usr", *opened])


def _surrounded(repo: Path, index: Path, surroundings: str, environ: Mapping[str, str]) -> Cell:
    """The cell that consists of the surroundings alone."""
    inherited = {name: environ[name] for name in ("HOME", "TMPDIR") if name in environ}
    env = {"PATH": environ.get("PATH", os.defpath), "LANG": "C.UTF-8", **inherited}
    return Cell(
        repo=repo,
        hidden=_private(index),
        bwrap=None,
        surroundings=surroundings,
        env=MappingProxyType(env),
    )


def _home(environ: Mapping[str, str], hidden: Path) -> Path:
    """The home of commands: empty and private, but where the real one is, because tool chains look for theirs there.

    A home below *hidden*, as a box gives one to its agent, would be no home, or show the way to what is hidden.
    """
    home = Path(os.path.realpath(environ.get("HOME") or "/"))
    usable = home.is_dir() and home.parent != home and not home.is_relative_to(hidden)
    return home if usable else Path("/tmp")  # noqa: S108 - the sandbox's own


def _private(index: Path) -> Path:
    """The supervisor's folder above *index*, or *index* itself if there is none."""
    real = Path(os.path.realpath(index))
    return next((folder for folder in real.parents if folder.name == ".agents"), real)


def _in_reach(path: Path) -> bool:
    """Whether *path*, which is closed to agents, is open to this process, and so to a command with its surroundings."""
    if path.name.casefold() == ".git":
        return False
    try:
        # Opened, not asked about: what the surroundings forbid, the permissions may allow.
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _works(cell: Cell, probe: str = _PROBE) -> bool:
    env = {**cell.env, "HOLLOW_HIDDEN": str(cell.hidden)}
    try:
        done = subprocess.run(
            cell.argv(probe),
            env=env,
            cwd=cell.repo,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _options(cell: Cell) -> list[str]:
    """Bubblewrap's options; later mounts lie over earlier ones."""
    return [
        # Without --clearenv and --setenv: values on a command line are anybody's to read.
        "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        *_root_of(cell), *(_OWN_PROC if cell.own_proc else _SHARED_PROC), "--dev", "/dev",
        *cell.hardening, "--tmpfs", "/tmp",  # noqa: S108 - the sandbox's own
        "--tmpfs", cell.env["HOME"],
        *_words("--ro-bind", cell.roots),
        *(("--tmpfs", str(cell.hidden)) if cell.hidden.is_dir() and _visible(cell) else ()),
        *_repository(cell),
        *_covered(cell.repo),
        # Last, because everything above has its place made in it.
        "--remount-ro", "/",
        "--chdir", str(cell.repo),
    ]  # fmt: skip


def _repository(cell: Cell) -> Iterator[str]:
    yield from ("--bind" if cell.writable is None else "--ro-bind", str(cell.repo), str(cell.repo))
    yield from _words("--bind", cell.writable or ())


# The kernel's settings ask who owns them, not for capabilities: to root they are writable in any namespace.
_OWN_PROC: Final = ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
_SHARED_PROC: Final = ("--ro-bind", "/proc", "/proc")


def _visible(cell: Cell) -> bool:
    return cell.surroundings == "full" or any(cell.hidden.is_relative_to(root) for root in cell.roots)


def _root_of(cell: Cell) -> list[str]:
    if cell.surroundings == "full":
        # The supervisor has already left out all that the agent must not see; what it let in, tools may need.
        return ["--ro-bind", "/", "/"]
    words: list[str] = []
    for folder in map(Path, SYSTEM):
        if folder.is_symlink():
            words += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            words += ["--ro-bind", str(folder), str(folder)]
    for name in _ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return words


def _words(option: str, paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        yield from (option, str(path), str(path))


def _covered(repo: Path) -> Iterator[str]:
    """Options that make git's own files read-only and secrets invisible in *repo*.

    Only what is there can be covered: bubblewrap would make what is missing, in the agent's folder (section 7, T147).
    """
    for path in _closed_below(repo):
        if path.name.casefold() == ".git":
            # A repository that was made deeper down is nobody's history: what made it must be able to remove it.
            if path.parent == repo or path.is_file():
                yield from ("--ro-bind", str(path), str(path))
        elif path.is_dir():
            yield from ("--tmpfs", str(path))
        else:
            yield from ("--ro-bind", os.devnull, str(path))


def _closed_below(repo: Path) -> Iterator[Path]:
    """What lies in *repo* under a name that is closed to agents; links are left out, they are judged by their goal."""
    for folder, folders, files in os.walk(repo):
        # Some names are closed at the top only; deeper down any name may stand for the way there.
        way = () if folder == str(repo) else ("deeper",)
        shut = [name for name in (*folders, *files) if closed((*way, name))]
        yield from (path for name in shut if not (path := Path(folder, name)).is_symlink())
        folders[:] = [name for name in folders if name not in shut]
