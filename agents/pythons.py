"""Pythons of this machine: which one is new enough and can make virtual environments.

Runs before anything is installed: the syntax is that of Python 3.6, and only its standard library is imported.
"""

import os
import re
import shutil
import subprocess
import sys

NEEDED = (3, 11)
NAMES = ("python3", "python3.14", "python3.13", "python3.12", "python3.11")


class SetupError(Exception):
    """The environment cannot be made: a sentence, what to type next, and the exit code (4 machine, 2 request)."""

    def __init__(self, message: str, hint: str = "", code: int = 4) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


def find_python(path: str) -> str:
    """Return the first Python on *path* (or the running one) that is new enough and can make venvs. SetupError."""
    own = getattr(sys, "_base_executable", "") or sys.executable
    seen = []
    for name in (own, *NAMES):
        found = shutil.which(name, path=path)
        version = version_of(found) if found else None
        if found and version and _numbers(version) >= NEEDED:
            # The real file, not a link: when an upgrade takes it away the venv is seen to be broken at once.
            if _has_venv(found):
                return os.path.realpath(found)
            seen.append(version)
    if not seen:
        here = ".".join(map(str, sys.version_info[:3]))
        hint = "on Debian 12, Ubuntu 24.04 or later: apt install python3 python3-venv"
        raise SetupError(f"Agent Box needs Python 3.11 or newer; {sys.executable} is {here}.", hint)
    raise SetupError(
        f"Python {seen[0]} is here, but without its venv module.",
        f"apt install python3-venv (or python{seen[0]}-venv for this very version)",
    )


def version_of(python: str) -> "str | None":
    """Return ``major.minor`` of the interpreter *python*, or None where it does not run."""
    done = _try(python, "import sys; print('%d.%d' % sys.version_info[:2])")
    return done.stdout.decode("ascii", "replace").strip() if done and done.returncode == 0 else None


def _has_venv(python: str) -> bool:
    # Debian ships venv without ensurepip unless python3-venv is installed: both have to be there.
    done = _try(python, "import venv, ensurepip")
    return done is not None and done.returncode == 0


def _try(python: str, code: str) -> "subprocess.CompletedProcess[bytes] | None":
    argv = [python, "-IS", "-c", code]
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
    except OSError:
        return None


def _numbers(version: str) -> "tuple[int, ...]":
    return tuple(map(int, re.findall(r"\d+", version)))
