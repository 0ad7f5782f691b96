"""The short way for `status`, `list`, `--version` and `--help`: a few modules of the standard library.

Start-up is felt at every command. What these load is listed in a test.
"""

from __future__ import annotations

import os
import sys

from agents import __version__

# The name alone tells type checkers; importing `typing` would cost 4 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int | None:
    """Exit code if *arguments* could be served, or None where the full command line has to do it."""
    text: str | None = None
    match list(arguments):
        case ["--version"]:
            text = f"agent-box {__version__}\n"
        case [] | ["--help"] | ["-h"]:
            text = _help()
        case ["status" | "list" as verb]:
            from agents import glance

            shown = glance.table(verb)
            text = None if shown is None else shown + "\n"
    return None if text is None else _print(text)


def _help() -> str | None:
    try:
        with open(os.path.join(os.path.dirname(__file__), "help.txt"), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def _print(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as why:
        # Nothing more must be written to it, at exit either. A reader that has had enough is no fault.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(why, BrokenPipeError):
            sys.stderr.write(f"agent: Cannot print: {why.strerror}.\n")
            return 4
    return 0
