"""The environment of an agent: an allow-list, never the operator's own (seed 003, section 5; T151)."""

from __future__ import annotations

import re

from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

_LINE: Final = late(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
# A tracked .env.test is a stranger's text in a stranger's repository: it may give values, not choose what is run.
_NOT_FROM_FILE: Final = late(
    r"(LD_|DYLD_|PYTHON|GIT_|AGENT_BOX_|BASH_|NODE_|NPM_|PIP_|UV_|PERL|RUBY|GEM_|JAVA_|_JAVA|JDK_|PROMPT_COMMAND)"
    r"|(OPENSSL_|XDG_|GLIBC_|MALLOC_|CARGO|RUST|GO(PATH|ROOT|FLAGS|ENV)|CURL_|WGET|SSH_|LESS|DOCKER_|KUBE|MAKE|CMAKE_)"
    r"|(PAGER|EDITOR|VISUAL|BROWSER|NLSPATH|HOSTALIASES|RESOLV_HOST_CONF|.*_(CONF|CONFIG|OPTIONS|PRELOAD|EDITOR|PAGER))$"
    r"|(PATH|HOME|ENV|IFS|SHELL|RUN_DIR|ZDOTDIR|GCONV_PATH|LOCPATH)$"
    # Nor whom an agent talks to: its model's key would follow.
    r"|(OLLAMA_|ANTHROPIC_|CLAUDE_|OPENAI_|CODEX_|REQUESTS_|SSL_CERT_|[A-Z_]*_PROXY$)",
    re.IGNORECASE,
)


_QUOTED: Final = late(r"""(["'])(.*)\1(?:[ \t]+#.*)?""")


def allowed(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The variables of *environ* that *names* lets through; a trailing ``*`` stands for any rest."""
    wanted = tuple(names)
    prefixes = tuple(name[:-1] for name in wanted if name.endswith("*"))
    return {name: value for name, value in environ.items() if name in wanted or name.startswith(prefixes)}


def parse(text: str) -> dict[str, str]:
    """Variables of a ``.env.test`` file: ``NAME=value`` lines, ``export`` and quotes understood, the rest ignored."""
    found = {}
    # Lines end as they do for a shell; a mark of the byte order is some editor's.
    for line in text.removeprefix("\ufeff").split("\n"):
        match = _LINE.fullmatch(line.strip())
        if match and not _NOT_FROM_FILE.match(match[1]) and "\0" not in match[2]:
            found[match[1]] = _unquoted(match[2].strip())
    return found


def _unquoted(value: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    return quoted[2] if quoted else value.partition(" #")[0].rstrip()


def compose(
    environ: Mapping[str, str], names: Iterable[str], env_test: str, fixed: Mapping[str, str]
) -> dict[str, str]:
    """What an agent gets: allowed variables, then *env_test*'s for names not yet taken, then the *fixed* ones."""
    return {**parse(env_test), **allowed(environ, names), **fixed}
