"""Which folders a command needs to find its tools, and nothing that holds more than tools."""

from __future__ import annotations

import os
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Where the system's own programs and libraries lie; links to /usr on most systems."""

_PROGRAM_FOLDERS: Final = frozenset({"bin", "sbin", "shims", "scripts"})
"""Names under which a tool chain keeps its programs, beside its libraries."""

_SHARED_HOMES: Final = frozenset({".local", ".cargo", ".config", ".cache"})
"""Folders of a home whose bin lies beside what is nobody's business: tokens, keyrings, other programs' data."""

_PROJECT_MARKS: Final = (".agents", ".env")
"""What a folder holds that is somebody's project and no tool chain, though its bin is on the PATH."""


def trusted_path(search: str, repo: Path) -> tuple[str, ...]:
    """Return the folders of the PATH *search* in which a program may be trusted: absolute, outside *repo* (P27)."""
    return tuple(entry for entry in search.split(os.pathsep) if entry.startswith("/") and not _within(entry, repo))


def program(name: str, search: str, repo: Path) -> str | None:
    """Return the absolute path of the program *name* on the PATH *search*, or None; never one from *repo*."""
    found = (os.path.join(entry, name) for entry in trusted_path(search, repo))  # noqa: PTH118 - a text for argv
    return next((path for path in found if os.access(path, os.X_OK) and not _within(path, repo)), None)


def tool_roots(search: str, repo: Path, home: Path) -> tuple[Path, ...]:
    """Return the folders outside the system's own that the programs on the PATH *search* need to be readable.

    ``X/bin`` stands for X, except where X is, or holds, *home* or *repo*, or is a project: then for itself alone. The
    Python that a virtual environment was made of comes with it.
    """
    found: dict[Path, None] = {}
    for entry in map(Path, trusted_path(search, repo)):
        if entry.is_dir() and not _system(entry):
            root = _root(entry, repo, home)
            wanted = (root, *_base(root, repo, home), *_rust(entry))
            found |= dict.fromkeys(each for each in wanted if not _holds(each, (repo, home)))
    return _outermost(found)


def _root(entry: Path, repo: Path, home: Path) -> Path:
    above = entry.parent
    project = any((above / name).exists() for name in _PROJECT_MARKS)
    shared = above.name in _SHARED_HOMES or project or _holds(above, (repo, home))
    return above if entry.name in _PROGRAM_FOLDERS and not shared else entry


def _rust(entry: Path) -> tuple[Path, ...]:
    """What cargo's programs need beside themselves: the tool chains and the sources already fetched, not its tokens."""
    if entry.parent.name != ".cargo":
        return ()
    return tuple(path for path in (entry.parent.with_name(".rustup"), entry.parent / "registry") if path.is_dir())


def _base(environment: Path, repo: Path, home: Path) -> Iterator[Path]:
    """The installation behind the virtual environment *environment*, if it is one and that lies apart."""
    try:
        lines = (environment / "pyvenv.cfg").read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for key, _, value in (line.partition("=") for line in lines):
        if key.strip() == "home" and (entry := Path(value.strip())).is_absolute() and not _system(entry):
            yield _root(entry, repo, home)


def _outermost(folders: Iterable[Path]) -> tuple[Path, ...]:
    """*folders* without those that lie in another one."""
    kept: list[Path] = []
    for folder in sorted(folders):
        if not any(folder.is_relative_to(other) for other in kept):
            kept.append(folder)
    return tuple(kept)


def _holds(folder: Path, others: Iterable[Path]) -> bool:
    real = Path(os.path.realpath(folder))
    return any(Path(os.path.realpath(other)).is_relative_to(real) for other in others)


def _within(path: str, repo: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(repo))


def _system(folder: Path) -> bool:
    return any(Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(system)) for system in SYSTEM)
