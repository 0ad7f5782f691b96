"""The door to isolation: how a process is started in its cell, and how good a cell this machine can hold."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

from agents import bubblewrap, files, guard, landlock, redact, roots, seccomp
from agents.cell import Cell, Limits
from agents.errors import HostError
from essentials.records import asdict, dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

__all__ = ["Cell", "Limits", "Offer", "Wrapped", "describe", "in_memory", "offered", "wrap"]


@dataclass(frozen=True, slots=True)
class Offer:
    """The isolation that this machine offers."""

    level: str
    why: str
    """Why it is not full; empty where it is."""
    hint: str
    """What to type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapped:
    """A command that builds its cell before it becomes the program."""

    argv: tuple[str, ...]
    spec: Mapping[str, Any]
    """What the guard does before it starts *argv* (see :mod:`agents.guard`)."""


def wrap(argv: Sequence[str], cell: Cell, env: Mapping[str, str]) -> Wrapped:
    """How *argv* is started in *cell* with the environment *env*, of which nothing stands on a command line (S08).

    Raises HostError where the level cannot be had, AgentError where an agent has tampered with a path of the cell.
    A program that is not there is left to the guard to report, whatever the level (P26).
    """
    refused = _refusal(argv[0], cell, env)
    limits = {
        "core": (0, 0), "fsize": (cell.limits.file_size,) * 2, "nofile": (cell.limits.open_files,) * 2,
    }  # fmt: skip
    spec: dict[str, Any] = {"limits": limits, "refused": refused}
    if cell.level == "none" or refused:
        return Wrapped(argv=tuple(argv), spec=spec)
    make = {"full": _full, "partial": _partial}[cell.level]
    words, files = make(argv, cell, env)
    given = {str(number): content.hex() for number, content in files.items()}
    return Wrapped(argv=tuple(words), spec={**spec, "files": given, "wrapped": cell.level == "full"})


def _refusal(program: str, cell: Cell, env: Mapping[str, str]) -> tuple[int, str] | None:
    """The error that starting *program* would end in, as far as it shows from outside."""
    if "/" in program:
        path = cell.cwd / program
        with contextlib.suppress(OSError):
            seen = path.stat().st_mode
            fit = stat.S_ISREG(seen) and os.access(path, os.X_OK)
            return None if fit else (13, f"{os.strerror(13)}: {program}")
    elif _which(program, env):
        return None
    return 2, f"{os.strerror(2)}: {program}"


def _which(program: str, env: Mapping[str, str]) -> str | None:
    """Where *program* is found by its name in *env*, as a shell would find it."""
    folders = env.get("PATH", os.defpath).split(os.pathsep) if env.get("PATH", os.defpath) else []
    places = (os.path.join(folder, program) for folder in folders)  # noqa: PTH118 - an empty folder means this one
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), None)  # noqa: PTH113


def _full(argv: Sequence[str], cell: Cell, env: Mapping[str, str]) -> tuple[list[str], dict[int, bytes]]:
    program = bubblewrap.find(env.get("PATH", ""), (cell.cwd, *cell.write))
    if program is None:
        raise HostError("bubblewrap is not installed, and this run needs it.", "Type: apt install bubblewrap")
    code = seccomp.program(os.uname().machine, nested=cell.nested)
    capable = bubblewrap.version(program) >= (0, 8)
    words, files = bubblewrap.arguments(_with_program(argv[0], cell, env), code, disable_userns=capable)
    files[bubblewrap.ARGUMENTS] = b"".join(os.fsencode(word) + b"\0" for word in words)
    command = [str(program), "--args", str(bubblewrap.ARGUMENTS), "--", *_limited(cell), *argv]
    # A network of its own has abstract sockets of its own; on the machine's a Landlock that knows of them shuts them.
    if cell.network and landlock.abi() >= landlock.SCOPE_SINCE and not bubblewrap.is_setuid(program):
        files[landlock.ORDERS] = landlock.packed({"scope": landlock.SCOPE_ABSTRACT})
        command = [*landlock.command(landlock.ORDERS), *command]
    return command, files


def _with_program(program: str, cell: Cell, env: Mapping[str, str]) -> Cell:
    """*cell* with the *program* itself readable, unless it lies where an agent could put a link to something else."""
    found = str(cell.cwd / program) if "/" in program else _which(program, env)
    if found is None or any(Path(found).is_relative_to(folder) for folder in cell.write):
        return cell
    return replace(cell, read=(*cell.read, Path(found)))


def _limited(cell: Cell) -> tuple[str, ...]:
    """Words that limit processes from inside, where the kernel counts those of the sandbox alone (fact 18)."""
    prlimit = "/usr/bin/prlimit"
    # For root the kernel does not count at all.
    if os.geteuid() == 0 or not os.access(prlimit, os.X_OK):
        return ()
    return (prlimit, f"--nproc={cell.limits.processes}:{cell.limits.processes}", "--")


_DEVICES: Final = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"))


def _partial(argv: Sequence[str], cell: Cell, env: Mapping[str, str]) -> tuple[list[str], dict[int, bytes]]:
    if landlock.abi() == 0:
        raise HostError("The kernel has no Landlock, and this run needs it.", "Type: ./agent doctor")
    rules = _rules(_with_program(argv[0], cell, env))
    code = seccomp.program(os.uname().machine, nested=cell.nested, sockets=cell.network)
    orders = {
        **rules, "files": True, "tcp": not cell.network, "scope": landlock.SCOPE_ABSTRACT | landlock.SCOPE_SIGNAL,
        "filter": code or b"", "processes": None if os.geteuid() == 0 else cell.limits.processes,
    }  # fmt: skip
    return [*landlock.command(landlock.ORDERS), *argv], {landlock.ORDERS: landlock.packed(orders)}


def _rules(cell: Cell) -> dict[str, list[str]]:
    """Paths by what Landlock lets *cell* do with them."""
    lent = [source for place, source in cell.instead.items() if place.is_symlink()]
    kept = [place for place in cell.instead if not place.is_symlink() and _tells(place)]
    hidden = {Path(os.path.realpath(path)) for path in (*roots.PRIVATE, *cell.hide, *kept)}
    rules: dict[str, list[str]] = {"read": ["/proc"], "list": [], "write": [*_DEVICES, *map(str, cell.write)]}
    for path in (*roots.SYSTEM, *cell.read, *lent):
        for kind, place in landlock.spread(Path(os.path.realpath(path)), hidden) if path.exists() else ():
            rules[kind].append(str(place))
    return rules


def _tells(place: Path) -> bool:
    """Whether the file *place* holds what looks like a secret; one that cannot be read does for sure."""
    try:
        text = place.read_text("utf-8", "replace")
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return redact.redact(text) != text


def in_memory(content: bytes) -> int:
    """A descriptor to read *content* from; the caller closes it."""
    handle = os.memfd_create("given", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(handle), "wb") as file:
        file.write(content)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


# --- what this machine can hold ---------------------------------------------------------------------------------------

_PROBE: Final = """
fault() { echo "$1"; }
echo new > new || fault 'cannot write where it may'
cat ../seen/file > /dev/null || fault 'cannot read what it may'
{ cat ../secret; } > /dev/null 2>&1 && fault 'reads what it may not'
{ cat ../seen/hidden/file; } > /dev/null 2>&1 && fault 'reads what is hidden'
{ echo x >> ../seen/file; } 2> /dev/null && fault 'writes what it may only read'
{ echo x > ../outside; } 2> /dev/null
if [ "$1" = full ]; then
    { echo x > .git; } 2> /dev/null && fault 'writes .git'
    mv .git moved 2> /dev/null && fault 'moves .git'
    kill -0 "$2" 2> /dev/null && fault 'sees processes outside'
    [ -e ../seen/hidden/file ] && fault 'sees what is hidden'
fi
echo done
"""
"""Acts that must work and acts that must fail, in a real cell: versions promise what machines do not hold."""
_PATIENCE: Final = 20.0
_FORMAT: Final = 1
_NO_LANDLOCK: Final = "the kernel has no Landlock"


def offered(
    environ: Mapping[str, str], cache: Path | None, wanted_max: str = "full", avoid: tuple[Path, ...] = ()
) -> Offer:
    """The best isolation that this machine holds, at most *wanted_max* (full, partial, none; auto is full).

    Found by trying: a cell is made, what is forbidden must fail in it and what is allowed must work. The answer is
    kept in the folder *cache* (None for nowhere) for this boot, kernel, user and bubblewrap. A cache that others could
    have written is not believed. A bubblewrap in the folders *avoid* (the repository) is passed over (P27).
    """
    if wanted_max == "none":
        return Offer("none", "you asked for none", "")
    most = "partial" if wanted_max == "partial" else "full"
    program = bubblewrap.find(environ.get("PATH", ""), avoid)
    key = _key(program, most)
    known = _recall(cache, key)
    if known is None:
        known = _tried(environ, most, program)
        # Less than was asked for is tried again: what is missing may have been installed or allowed by then.
        if known.level == most:
            _remember(cache, key, known)
    return known


def _tried(environ: Mapping[str, str], most: str, program: Path | None) -> Offer:
    why, hint = ("you asked for partial", "") if most == "partial" else _try_full(environ, program)
    if not why:
        return Offer("full", "", "")
    if landlock.abi() == 0:
        return Offer("none", f"{why}; {_NO_LANDLOCK}", hint)
    faults = _attempt("partial", environ)
    return Offer("none", f"{why}; Landlock: {faults}", hint) if faults else Offer("partial", why, hint)


def _try_full(environ: Mapping[str, str], program: Path | None) -> tuple[str, str]:
    """Why the full sandbox does not hold here (empty where it does), and what to type."""
    if seccomp.program(os.uname().machine) is None:
        return f"there is no system call filter for {os.uname().machine} yet", ""
    if program is None:
        return "bubblewrap is not installed", "apt install bubblewrap"
    faults = _attempt("full", environ)
    return bubblewrap.why_not(faults, container=_in_container()) if faults else ("", "")


def _in_container() -> bool:
    return any(Path(name).exists() for name in ("/.dockerenv", "/run/.containerenv"))


def _attempt(level: str, environ: Mapping[str, str]) -> str:
    """What is wrong with the *level* here; empty where nothing is."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="agent-box-probe-") as name:
        top = Path(os.path.realpath(name))
        for folder in ("work", "seen/hidden"):
            (top / folder).mkdir(parents=True)
        for file in ("work/.git", "seen/file", "seen/hidden/file", "secret"):
            (top / file).write_text("x\n", "ascii")
        cell = Cell(
            level=level, cwd=top / "work", read=(top / "seen",), write=(top / "work",), hide=(top / "seen" / "hidden",),
            freeze=(top / "work" / ".git",), network=False,
        )  # fmt: skip
        env = {"PATH": environ.get("PATH", os.defpath), "LC_ALL": "C"}
        made = wrap(["/bin/sh", "-c", _PROBE, "sh", level, str(os.getpid())], cell, env)
        said = _run(made, env, cell.cwd)
        # A sandbox may have a folder of its own there: what counts is what is here.
        return said or ("writes outside" if (top / "outside").exists() else "")


def _run(made: Wrapped, env: Mapping[str, str], cwd: Path) -> str:
    """Run *made* in *cwd* to its end; returns what it said unless that is “done” alone."""
    spec = in_memory(guard.packed(made.spec))
    command = guard.command("-", 0, spec, made.argv)
    try:
        done = subprocess.run(
            command, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            pass_fds=[spec], timeout=_PATIENCE, check=False, cwd=cwd,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it did not end within {_PATIENCE:.0f} s"
    except OSError as why:
        return str(why.strerror)
    finally:
        os.close(spec)
    said = done.stdout.splitlines()
    return "" if said == ["done"] else "; ".join(said[:-1]) or done.stderr.strip() or f"exit code {done.returncode}"


def _key(program: Path | None, most: str) -> dict[str, Any]:
    """All that the answer depends on."""
    seen = program.stat() if program else None
    boot = Path("/proc/sys/kernel/random/boot_id")
    return {
        "format": _FORMAT, "most": most, "release": os.uname().release, "user": os.geteuid(), "python": sys.executable,
        "boot": boot.read_text("ascii").strip() if boot.exists() else "", "program": str(program),
        "identity": [seen.st_size, seen.st_mtime_ns, seen.st_ino, seen.st_mode] if seen else [],
    }  # fmt: skip


def _file(cache: Path, key: Mapping[str, Any]) -> Path:
    return cache / f"isolation-{key['most']}.json"


def _recall(cache: Path | None, key: Mapping[str, Any]) -> Offer | None:
    if cache is None:
        return None
    path = _file(cache, key)
    try:
        mine = all(_is_mine(each) for each in (path, cache))
        kept = json.loads(files.read_capped(path, 65536) or b"null") if mine else None
        return Offer(**kept["offer"]) if kept and kept["key"] == key else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _is_mine(path: Path) -> bool:
    seen = path.lstat()
    return seen.st_uid == os.geteuid() and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not path.is_symlink()


def _remember(cache: Path | None, key: Mapping[str, Any], offer: Offer) -> None:
    # Without a cache the next start tries again.
    with contextlib.suppress(OSError):
        if cache:
            files.make_folder(cache)
            files.write(_file(cache, key), json.dumps({"key": key, "offer": asdict(offer)}).encode(), durable=False)


def describe(offer: Offer) -> list[str]:
    """The *offer* for people, one sentence a line: what is missing, what that means, and what to type."""
    lines = {
        "full": ["isolation: full (bubblewrap, system call filter, limits)"],
        "partial": [
            "isolation: partial (Landlock, system call filter, limits)",
            "Missing: an agent sees names of files and processes, and can change the `.git` of its airlock.",
        ],
        "none": ["isolation: none", "An agent can do whatever you can: nothing it did can be trusted afterwards."],
    }[offer.level]
    lines += [f"Why: {offer.why}."] if offer.why else []
    lines += [f"Type: {offer.hint}"] if offer.hint else []
    # The kernel does not hold root to a number of processes.
    return [*lines, "As root there is no limit of processes."] if os.geteuid() == 0 else lines
