"""What the engines for other vendors' agents share: what such a program reads, gets, and knows."""

from __future__ import annotations

import re

from agents.engines.base import BASE_ENV, Brief, Program
from agents.errors import HostError, OperatorError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from agents.engines.base import Engine

REACHING_ENV: Final = (
    *BASE_ENV,
    # The way to the model's endpoint. Both spellings are in use, and programs differ in which one they read.
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
)  # fmt: skip
_GO_ON: Final = "Continue the task."


def stdin_of(brief: Brief) -> bytes:
    """What the program reads: the task, or when it goes on only what is new, since the session holds the rest."""
    # A prompt that begins with a slash would be a command, a human-only one included.
    words = [_GO_ON, brief.message] if brief.resume else [f"Task:\n{brief.meta.task}"]
    return "\n\n".join(filter(None, words)).encode("utf-8", "replace")


def program_of(engine: Engine, brief: Brief, package: str) -> Program:
    """The program that *engine* is, which npm installs as *package*.

    Raises OperatorError where another program follows ``--``, HostError where it was not found.
    """
    meta = brief.meta
    if meta.argv:
        hint = f'Type: ./agent {meta.run_type} "…" --engine command -- {" ".join(meta.argv)[:80]}'
        raise OperatorError(f"The engine “{engine.name}” takes no program after --.", hint)
    if brief.program is None:
        hint = f"Type: npm install -g {package}, or take another --engine."
        raise HostError(f"The program “{engine.program}” is not on PATH.", hint)
    return brief.program


def knows(program: Program, option: str) -> bool:
    """Whether this version of *program* has *option*: one that it does not know would end the run before it begins."""
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", program.help_text) is not None
