"""What git is told before it reads: an environment built from nothing, and settings that start no program."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

SETTINGS: Final[Mapping[str, str]] = {
    # What would start a program: a monitor, a hook, gpg, or a second git in a submodule, which loses these settings.
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "log.showSignature": "false",
    "submodule.recurse": "false",
    "diff.submodule": "short",
    # The repository may belong to somebody else (a sandbox, a mounted folder). Git refuses it because of the programs
    # that its owner could have named in there, and none of those is started here.
    "safe.directory": "*",
    # What would change the shape of an output that is parsed.
    "color.ui": "never",
    "core.quotePath": "false",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "diff.orderFile": os.devnull,
    "diff.relative": "false",
    "diff.renames": "true",
    "format.pretty": "medium",
    "grep.column": "false",
    "grep.fullName": "false",
    "log.showRoot": "true",
}
"""Set above whatever the repository's own configuration says (T147)."""

FILTERS: Final = ("config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process|required|smudge)$")
"""Arguments of the git command that names the filters of a repository; it ends with 1 where there is none."""


def filters_off(named: bytes) -> dict[str, str]:
    """Return settings that switch off every filter in *named*, what the command :data:`FILTERS` printed.

    Comparing the working tree runs a file's clean filter, and no single setting forbids that. A file that is stored
    filtered then counts as changed where git has to look at its content; that is the price.
    """
    names = named.decode("utf-8", "surrogateescape").split("\0")
    # A required filter that is switched off would be an error, hence its "false".
    return {name: "false" if name.endswith(".required") else "" for name in names if name}


def environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the whole environment of a git process that only reads; *settings* are set above :data:`SETTINGS` (T151).

    Only PATH is inherited: GIT_DIR, GIT_EXTERNAL_DIFF or GIT_CONFIG_* of whoever started us would redirect git.
    """
    told = {**SETTINGS, **(settings or {})}
    fixed = {
        # In a UTF-8 locale `git grep -P` skips every line that is not valid UTF-8 (git 2.39); errors are matched, too.
        "LC_ALL": "C",
        # "~" in the repository's settings must expand to something, or git refuses to start; nothing is found there.
        "HOME": os.devnull,
        # An operator's own settings are made for a person at a terminal: aliases, pagers, external diffs.
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        # A missing object of a partial clone stays missing. An older git does not know the first of these; the
        # second, a list of no protocols, beats even a protocol.ext.allow that the repository sets.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_CONFIG_COUNT": str(len(told)),
    }
    # Not as `-c name=value`: the name of a filter may hold an equals sign and would be split there.
    for number, (name, value) in enumerate(told.items()):
        fixed |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {"PATH": os.environ.get("PATH", os.defpath), **fixed}
