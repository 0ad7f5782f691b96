"""`agent doctor`: what this machine has for the box, and what to type for each thing it lacks."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time

from agents import git, probe, procs, sandbox, sweep, units
from agents.layout import Layout
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Final

    from agents.config import Config

_MIN_GIT: Final = (2, 38)
_ENOUGH: Final = 1024**3


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: str
    """ok, warn (the box works with less) or fail (it does not)."""
    found: str
    remedy: str = ""
    """What to type."""


def examine(root: Path, config: Config, environ: Mapping[str, str]) -> Iterator[Check]:
    """Every check, in the order in which they matter."""
    yield _python()
    yield _git(root)
    yield _processes()
    yield _machine()
    yield from _ollama(config, environ)
    yield _program("Claude Code", "claude", "npm install -g @anthropic-ai/claude-code", environ)
    yield _program("Codex", "codex", "npm install -g @openai/codex", environ)
    yield _sandbox(environ)
    yield from _memory(root)
    yield _disk(root)
    yield _clock()


def _python() -> Check:
    return Check("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def _git(root: Path) -> Check:
    said = git.run(root, "--version").stdout.decode("utf-8", "replace").split()
    version = said[2] if len(said) > 2 else "?"  # noqa: PLR2004 - "git version 2.39.5"
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < _MIN_GIT:
        return Check("git", "warn", version, "merging needs git 2.38 or newer: apt install git")
    return Check("git", "ok", version)


def _processes() -> Check:
    if procs.start_of(os.getpid()) is None:
        return Check("processes", "fail", "no /proc", "run on Linux, or mount /proc")
    return Check("processes", "ok", "identity by pid, start time and boot")


def _machine() -> Check:
    return Check("machine", "ok", f"{platform.system()} {platform.release()}, {os.cpu_count()} cores")


def _ollama(config: Config, environ: Mapping[str, str]) -> Iterator[Check]:
    server = probe.ask(probe.url_of(environ))
    if not server.reachable:
        remedy = "install it from ollama.com, then: ollama serve"
        yield Check("Ollama", "warn", f"no answer at {server.url}: scouts use the reflex mind", remedy)
        return
    yield Check("Ollama", "ok", f"{server.url}, {len(server.models)} models")
    model = config.model or probe.MODEL
    if server.has(model):
        yield Check("model", "ok", model)
    else:
        yield Check("model", "warn", f"{model} is not there", f"ollama pull {model}")


def _program(title: str, name: str, remedy: str, environ: Mapping[str, str]) -> Check:
    found = shutil.which(name, path=environ.get("PATH"))
    return Check(title, "ok", found) if found else Check(title, "warn", "not installed", remedy)


def _sandbox(environ: Mapping[str, str]) -> Check:
    # Asked anew: what a cache remembers is what a doctor should not rely on.
    offer = sandbox.offered(environ, None)
    note = " ".join(line for line in sandbox.describe(offer) if not line.startswith("Type: "))
    return Check("sandbox", "ok" if offer.level == "full" else "warn", note, offer.hint)


def _memory(root: Path) -> Iterator[Check]:
    told = sweep.unfinished(Layout(root))
    if told:
        yield Check("memory", "warn", told, "./agent hollow restore FILE")


def _disk(root: Path) -> Check:
    free = shutil.disk_usage(root).free
    state = "ok" if free > _ENOUGH else "warn"
    return Check("disk", state, f"{units.format_size(free)} free", "" if state == "ok" else "free some, or: ./agent gc")


def _clock() -> Check:
    year = time.gmtime().tm_year
    # A machine whose clock stands at its factory date gives runs names that sort before all others.
    if year < _RELEASED:
        return Check("clock", "fail", f"it says {year}", "set it: timedatectl set-ntp true")
    return Check("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()))


_RELEASED: Final = 2025
