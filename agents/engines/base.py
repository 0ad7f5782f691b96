"""What an engine is: how an agent's program is called, what it may see, and how its output is handed over and read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agents.events import Dialect
    from agents.model import RunMeta

# What any program needs to run at all; nothing in it is a secret (T151, seed 003, section 5).
BASE_ENV = ("PATH", "HOME", "LANG", "LC_*", "TZ", "TMPDIR", "USER", "LOGNAME", "SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """Everything an engine may know when it says how to call its program."""

    meta: RunMeta
    root: Path
    """Where the agent works."""
    run_dir: Path
    """The outbox, the RUN_DIR of the prompt."""
    index: Path
    """Folder of hollow's search index."""
    prompt: str
    """The system prompt."""
    session_id: str
    """Chosen before the start, so that a run can be resumed even if it dies before its first word."""
    python: str
    """This interpreter."""
    home: Path
    """Folder that holds the packages of Agent Box."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Settings of the configuration that engines read, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How to start the agent's program."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables set to fixed values."""
    pass_env: tuple[str, ...] = ()
    """Names of the operator's variables that reach it; a trailing ``*`` stands for any rest."""
    env_test: bool = True
    """Whether it gets the variables of the repository's .env.test: a stranger's text, for programs that run tests."""
    stdin: bytes = b""
    """All it can read; then its input ends."""


class Engine(Protocol):
    """What drives an agent process. Third parties add one through the entry point group ``agent_box.engines``."""

    name: str
    output: Literal["pipe", "spool"]
    """pipe: drained first and parsed later; spool: it writes a file that is followed (programs that lose their last
    words in a pipe)."""
    confined: bool
    """Whether its tools cannot write by themselves, so that a change in the checkout is the operator's."""
    dialect: Dialect
    tools: Mapping[str, str]
    """Logical tool names to the engine's own (D15)."""
    version_argv: tuple[str, ...]
    """What prints the program's version; empty where there is nothing to ask."""

    def command(self, brief: Brief) -> Command:
        """How to start it for *brief*; raises OperatorError where the request does not fit this engine."""
        ...
