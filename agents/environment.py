"""The environment of an agent: an allow-list, never the operator's own (seed 003, section 5; T151)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LINE: Final = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
# A tracked .env.test is a stranger's text in a stranger's repository: it may give values, not choose what is run.
_NOT_FROM_FILE: Final = re.compile(
    r"(LD_|DYLD_|PYTHON|GIT_|AGENT_BOX_|BASH_|NODE_OPTIONS|PERL|RUBY|JAVA_TOOL)|(PATH|HOME|ENV|IFS|SHELL|RUN_DIR|OLLAMA_HOST)$"
)


def allowed(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The variables of *environ* that *names* lets through; a trailing ``*`` stands for any rest."""
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    return {name: value for name, value in environ.items() if name in exact or (prefixes and name.startswith(prefixes))}


def parse(text: str) -> dict[str, str]:
    """Variables of a ``.env.test`` file: ``NAME=value`` lines, ``export`` and quotes understood, the rest ignored."""
    found = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match and not _NOT_FROM_FILE.match(match[1]) and "\0" not in match[2]:
            found[match[1]] = _unquoted(match[2].strip())
    return found


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value.partition(" #")[0].rstrip()


def compose(
    environ: Mapping[str, str], names: Iterable[str], env_test: str, fixed: Mapping[str, str]
) -> dict[str, str]:
    """What an agent gets: allowed variables, then *env_test*'s for names not yet taken, then the *fixed* ones."""
    return {**parse(env_test), **allowed(environ, list(names)), **fixed}
