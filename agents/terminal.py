"""The operator's own terminal: a question is asked there, whatever the standard streams are."""

from __future__ import annotations

import os
import sys

from agents.errors import OperatorError


def ask(shown: str, question: str) -> str:
    """Show *shown* and ask *question* on the controlling terminal; returns what was typed.

    Raises OperatorError without a terminal: an approval that comes out of a pipe was typed by nobody (M04).
    """
    hint = "Look with ./agent diff, then: ./agent merge … --approve HASH (sha256sum .agents/latest/changes.patch)."
    # A pipe on standard input says that nobody sits there, even if a terminal could be opened.
    if not sys.stdin.isatty():
        raise OperatorError("There is no terminal to ask for your approval.", hint)
    try:
        handle = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as why:
        raise OperatorError("There is no terminal to ask for your approval.", hint) from why
    with os.fdopen(handle, "r+b", buffering=0) as terminal:
        terminal.write(f"{shown.rstrip()}\n\n{question} ".encode("utf-8", "replace"))
        return terminal.readline().decode("utf-8", "replace").strip()
