"""A run's slash commands as a plugin folder that Claude Code loads for one session; nothing is written here."""

from __future__ import annotations

import json
import re

from agents import __version__, commands
from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from agents.commands import CommandFile

FOLDER: Final = "plugin"
"""Name of the folder below the run's private one."""

_ALLOWED: Final = late(r"^allowed-tools:.*\n", re.MULTILINE)


def namespace(short_id: str) -> str:
    """The plugin's name, which stands before the colon of each of its commands: ``run-a1b2``."""
    return f"run-{short_id}"


def skills(short_id: str, files: Iterable[CommandFile]) -> tuple[str, ...]:
    """Full names of the commands in *files* that a model may invoke, such as ``run-a1b2:scout_a1b2`` (T128)."""
    return tuple(f"{namespace(short_id)}:{file.name}" for file in files if file.invokable)


def plugin_files(short_id: str, files: Iterable[CommandFile]) -> dict[str, bytes]:
    """The plugin of run *short_id* with the commands *files*: relative name, from the private folder, to content.

    Raises Tampered when a human-only command is not kept from models (T129).
    """
    texts = commands.render(files)
    manifest = {"name": namespace(short_id), "version": __version__, "description": f"Commands of run {short_id[:16]}"}
    return {
        f"{FOLDER}/.claude-plugin/plugin.json": json.dumps(manifest).encode("ascii"),
        **{f"{FOLDER}/commands/{name}": _within_the_envelope(text).encode() for name, text in texts.items()},
    }


def _within_the_envelope(text: str) -> str:
    """The command *text* without the tools that its frontmatter allows.

    A command that was invoked lifts the rules for the tools it names: ``Read`` there opens the whole disk to the model
    for the rest of the turn (seen with 2.1.330). What the run may do is already allowed, and nothing beyond.
    """
    # Only up to the second fence: the body may well hold such a line.
    head, fence, body = text.partition("\n---\n")
    return _ALLOWED.sub("", f"{head}\n").removesuffix("\n") + fence + body
