"""Finds an engine's program on this machine and asks it, once a version, what it is and which options it has."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path

from agents import environment, files
from agents.engines.base import BASE_ENV, Program
from agents.errors import HostError
from essentials import digests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from agents.engines.base import Engine

_PATIENCE: Final = 10.0
"""Seconds a program may take to print its version or its options."""
_LONGEST: Final = 200_000
"""Characters of a help text that are kept."""


def find(engine: Engine, environ: Mapping[str, str], avoid: Path, cache: Path | None) -> Program | None:
    """The program of *engine* on the operator's PATH; None where the engine brings its own.

    Entries of PATH that are relative or lie inside *avoid* (the repository) are passed over: what a repository brings
    is not the operator's program (P27). What it says of itself is kept in the folder *cache*, by the file's identity.
    Raises HostError where it is not installed.
    """
    # Engines of other packages may know nothing of programs.
    name = getattr(engine, "program", "")
    if not name:
        return None
    path = locate(name, environ.get("PATH", os.defpath), avoid)
    if path is None:
        raise HostError(
            f"The program “{name}” of engine {engine.name} is not on PATH.", f"Install {name}, then: {name} --version"
        )
    known = _recall(cache, path)
    if known is None:
        known = _asked(engine, path, environ)
        _remember(cache, path, known)
    return Program(path=str(path), **known)


def locate(name: str, search: str, avoid: Path) -> Path | None:
    """The program *name* on the search path *search*, outside of the folder *avoid*; None where there is none."""
    for folder in map(Path, filter(os.path.isabs, search.split(os.pathsep))):
        found = folder / name
        inside = found.resolve().is_relative_to(avoid) or found.is_relative_to(avoid)
        if not inside and found.is_file() and os.access(found, os.X_OK):
            return found
    return None


def _asked(engine: Engine, path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    version = _said(path, engine.version_argv, environ)
    return {
        "version": next(iter(version.strip().splitlines()), "")[:200],
        "help_text": _said(path, getattr(engine, "help_argv", ()), environ)[:_LONGEST],
    }


def _said(path: Path, words: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """What the program prints when it is called with *words*; nothing where it does not answer in time."""
    if not words:
        return ""
    import tempfile

    env = environment.allowed(environ, BASE_ENV)
    # Nothing it needs lies in the folder that the command was typed in, and that one may be a stranger's.
    with tempfile.TemporaryDirectory(prefix="agent-box-") as nowhere:
        try:
            done = subprocess.run(
                [path, *words], cwd=nowhere, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return ""
        except OSError as why:
            raise HostError(f"{path} cannot be run: {why.strerror}.", f"Try it yourself: {path} {words[0]}") from why
    return (done.stdout or done.stderr).decode("utf-8", "replace")


def _identity(path: Path) -> str:
    """What changes when another version stands behind *path*."""
    seen = path.stat()
    return f"{path.resolve()} {seen.st_size} {seen.st_mtime_ns} {seen.st_ino}"


def _file(cache: Path, path: Path) -> Path:
    return cache / f"program-{digests.sha256(os.fsencode(path)).hexdigest()[:16]}.json"


def _recall(cache: Path | None, path: Path) -> dict[str, str] | None:
    data = files.read_capped(_file(cache, path), 2 * _LONGEST) if cache else None
    try:
        kept: Any = json.loads(data or b"null")
    except ValueError:
        return None
    fits = isinstance(kept, dict) and kept.pop("identity", None) == _identity(path)
    return kept if fits and set(kept) == {"version", "help_text"} else None


def _remember(cache: Path | None, path: Path, known: Mapping[str, str]) -> None:
    # A cache that cannot be written costs a second at the next start.
    with contextlib.suppress(OSError):
        if cache:
            cache.mkdir(parents=True, exist_ok=True)
            files.write(_file(cache, path), json.dumps({**known, "identity": _identity(path)}).encode(), durable=False)
