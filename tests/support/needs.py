"""What a test needs of the machine: there, or the test is skipped with the reason; in CI it fails instead."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from typing import Any

import pytest


@cache
def why_no_bwrap() -> str:
    """Why bubblewrap cannot be used here, or nothing."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed"
    words = [program, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--", "true"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"bubblewrap does not work here: {done.stderr.strip()[:200]}"


def lacking(why: str) -> None:
    """End the test that lacks something because of *why*: skipped, or failed where all is required (CI)."""
    (pytest.fail if os.environ.get("AGENT_BOX_REQUIRE_ALL") else pytest.skip)(why)


def bwrap_works() -> bool:
    """Whether bubblewrap makes a sandbox here."""
    return not why_no_bwrap()


def needs_bwrap(test: Any) -> Any:
    """A test (or class of tests) that needs a working bubblewrap."""
    return pytest.mark.usefixtures("bwrap")(test)
