"""The real programs, from the npm registry into a cache: ``python -m tests.engines.install`` as tests/run calls it.

The cache is ``$AGENT_BOX_TEST_CACHE`` or ``.cache/engines`` in the project. Tests only look there: none of them installs.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support import needs
from tests.support.world import PROJECT

# Read when this is loaded: tests run in an environment from which it is gone.
CACHE = Path(os.environ.get("AGENT_BOX_TEST_CACHE") or PROJECT / ".cache" / "engines")
PATIENCE = 600
"""Seconds that one package may take: half a gigabyte over a slow line."""


@dataclass(frozen=True)
class Package:
    """A program as the registry has it; the version is the one whose behaviour the tests know."""

    name: str
    version: str
    program: str

    @property
    def prefix(self) -> Path:
        """Where it is installed; another version gets another folder."""
        return CACHE / f"{self.program}-{self.version}"

    @property
    def path(self) -> Path:
        """The program."""
        return self.prefix / "node_modules" / ".bin" / self.program


CLAUDE = Package("@anthropic-ai/claude-code", "2.1.330", "claude")
CODEX = Package("@openai/codex", "0.169.0", "codex")


def require(package: Package) -> Path:
    """The program of *package*; skips the test where it is not installed, and fails it where all is required (CI)."""
    if not package.path.exists():
        needs.lacking(f"{package.name}@{package.version} is not in {CACHE}; tests/run installs it where npm is there")
    return package.path


def install(package: Package) -> str:
    """Install *package* into the cache unless it is there; returns what went wrong, or nothing."""
    if package.path.exists():
        return ""
    if shutil.which("npm") is None:
        return "npm is not installed"
    CACHE.mkdir(parents=True, exist_ok=True)
    # Whatever project the cache lies in, it is not a part of it.
    (CACHE / ".gitignore").write_text("*\n")
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _installed(package)


def _installed(package: Package) -> str:
    words = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]
    # Built elsewhere and renamed: an installation that was cut off is never taken for one.
    building = package.prefix.with_suffix(".new")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir()
    try:
        done = subprocess.run(
            [*words, str(building), f"{package.name}@{package.version}"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=PATIENCE,
        )  # fmt: skip
        why = "" if done.returncode == 0 else (done.stderr.strip() or "npm failed without a word")
    except (OSError, subprocess.TimeoutExpired) as failure:
        why = str(failure)
    if not why and not package.path.exists():
        building.rename(package.prefix)
    shutil.rmtree(building, ignore_errors=True)
    return why


def main() -> int:
    """Install both; says what is missing, and never fails: the tests decide whether that is an error."""
    for package in (CLAUDE, CODEX):
        if why := install(package):
            print(f"== MISSING: {package.name}@{package.version}: {why}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
