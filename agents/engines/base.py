"""What an engine is: how an agent's program is called, what it may see, and how its output is handed over and read."""

from __future__ import annotations

from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Literal, Protocol

    from agents.commands import CommandFile
    from agents.events import Dialect
    from agents.model import RunMeta
else:
    Protocol = object  # its meaning is a type checker's

# What any program needs to run at all; nothing in it is a secret (T151, seed 003, section 5).
BASE_ENV = ("PATH", "HOME", "LANG", "LC_*", "TZ", "TMPDIR", "USER", "LOGNAME", "SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may use up; None is no limit."""

    max_turns: int | None = None
    max_usd: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The engine's program as it was found on this machine."""

    path: str
    """Absolute."""
    version: str = ""
    """What it prints when it is asked for its version; its first line."""
    help_text: str = ""
    """What it prints when it is asked for help: which options this version has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """Everything an engine may know when it says how to call its program."""

    meta: RunMeta
    root: Path
    """Where the agent works: the airlock of a run that may edit, else the operator's checkout."""
    checkout: Path
    """The operator's checkout."""
    private: Path
    """Folder of the run's own, outside of the agent's sight."""
    home_dir: Path
    """The HOME that the agent gets; kept for resume."""
    mutates: bool
    """Whether the tier may edit."""
    resume: bool = False
    """Whether the session exists already and is to be gone on with."""
    message: str = ""
    """What the operator adds when the run goes on."""
    commands: tuple[CommandFile, ...] = ()
    """The run's slash commands."""
    isolation: str = "none"
    """full, partial or none."""
    network: bool = True
    """Whether the run may reach the network."""
    budget: Budget = field(default_factory=Budget)
    program: Program | None = None
    """The engine's program; None where the engine names none."""
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

    @property
    def memory(self) -> Path:
        """Folder of what the hollow agents' environment remembers: the index is a part of it."""
        return self.index.parent


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
    read: tuple[Path, ...] = ()
    """What else of this machine it must be able to read."""
    modules: tuple[Path, ...] = ()
    """Folders of modules that it imports with the Python of the box: they are compiled before it starts."""
    write: tuple[Path, ...] = ()
    """What else it must be able to write."""
    lend: tuple[tuple[str, Path], ...] = ()
    """(name in the private HOME, operator's file that is seen there, if it exists), read-only."""
    network: bool = True
    """Whether it needs the network."""
    nested: bool = False
    """Whether it makes sandboxes for children of its own."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files to write below the run's private folder before the start, by relative name."""


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
    program: str
    """The program to look for on the operator's PATH; empty where the engine brings or is given its own."""
    version_argv: tuple[str, ...]
    """What prints the program's version, after its path; empty where there is nothing to ask."""
    help_argv: tuple[str, ...]
    """What prints its options, after its path; empty where there is nothing to ask."""
    session_files: str
    """Pattern of the files in the private HOME that hold the session ``{session}``; empty where none is kept."""

    def command(self, brief: Brief) -> Command:
        """How to start it for *brief*; raises OperatorError where the request does not fit this engine."""
