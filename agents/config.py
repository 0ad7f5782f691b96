"""Settings: one value each, from flag, environment, agent.yaml or default, and a sentence for what does not fit."""

from __future__ import annotations

import re
import reprlib
from collections import ChainMap

from agents import accepts, policy, yamlfile
from agents.errors import OperatorError
from agents.settings import SETTINGS
from essentials.patterns import late
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Final, Literal

    OnStall = Literal["reap", "mark"]
    MindName = Literal["auto", "ollama", "reflex"]
    Sandbox = Literal["full", "partial", "none", "auto"]
    Network = Literal["auto", "on", "off"]
    CustomStressors = Literal["escalate", "decay"]
    Isolation = Literal["auto", "full", "partial", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every setting of Agent Box, valid and in its own unit (issue 2, part 9)."""

    stall_after: float = 300.0
    """Seconds of silence before the result after which a run counts as STALLED (seed 003, phase 3; T141)."""
    linger: float = 60.0
    """Seconds an agent may live on after its result."""
    grace: float = 10.0
    """Seconds between asking a process tree to end and killing it."""
    timeout: float | None = None
    """Seconds a run may take altogether; None for no limit."""
    on_stall: OnStall = "reap"
    """What happens to the processes of a stalled run (D16, T141)."""
    max_output: int = 2 * 1024**3
    """Bytes an agent may print before the run is ended."""
    engine: str = "hollow"
    """What drives the agent process."""
    model: str | None = None
    """The model, in the engine's own spelling; None is the engine's own choice."""
    mind: MindName = "auto"
    """What thinks inside a hollow agent; auto is ollama where it answers, else reflex."""
    num_ctx: int = 32_768
    """Context window asked of Ollama, in tokens."""
    keep_alive: str = "10m"
    """How long Ollama keeps the model loaded, spelled as Ollama reads it."""
    call_timeout: float = 600.0
    """Seconds one call of a model may take."""
    max_turns: int | None = None
    """Model turns a run may take; None is the engine's own limit."""
    max_usd: float | None = None
    """Dollars a run may cost, as its engine counts them."""
    max_tokens: int | None = None
    """Tokens a run may use, read and written together."""
    min_free: int = 64 * 1024**2
    """Bytes of free disk space below which a run is ended (C17)."""
    loop_after: int = 12
    """Repetitions of one action with one result, nothing changing, after which a run is ended; 0 never ends it."""
    sandbox: Sandbox = "auto"
    """The floor of isolation: no run below it. auto and none set no floor; the best there is gets used anyway."""
    keep_for: float | None = None
    """Seconds for which `gc` keeps finished boxes; None for ever."""
    keep_runs: int | None = None
    """Finished boxes that `gc` keeps; None for all."""
    ops: tuple[str, ...] = ()
    """Names of the ops that may run at all (design, section 8)."""
    env: tuple[str, ...] = ()
    """Names of further environment variables that the agent gets."""
    isolation: Isolation = "auto"
    """The wall that is put around an agent; auto is the best there is. The operator's own word."""
    read: tuple[str, ...] = ()
    """Further paths of this machine that a sandboxed agent may read; the operator's own word, never a project's."""
    network: Network = "auto"
    """Whether an agent reaches the network: auto is what its engine needs."""
    copy: tuple[str, ...] = ()
    """Files that git does not track and an airlock gets a copy of, as patterns from the root."""
    link: tuple[str, ...] = ()
    """Folders of the checkout that an airlock gets a link to, as paths from the root."""
    setup: tuple[str, ...] = ()
    """Commands that prepare an airlock."""
    setup_timeout: float = 600.0
    """Seconds that all of `setup` may take."""
    check: tuple[str, ...] = ()
    """Commands that have to pass in the airlock when the agent is done."""
    verify: tuple[str, ...] = ()
    """Commands that have to pass on the merged result."""
    verify_timeout: float = 900.0
    """Seconds that each command of `check` and `verify` may take."""
    trust_unsandboxed: bool = False
    """Whether a run without a sandbox may be merged by typed approval; the operator's own word (design, section 7)."""
    locks: Mapping[str, float] = field(default_factory=lambda: policy.LOCKS)
    """Load from which on a hollow agent may not use a capability, by its name: the whole table (T55-T59)."""
    custom_stressors: CustomStressors = "escalate"
    """What stressors of an agent's own naming do with time: escalate or decay."""
    strict_tools: bool = False
    """Whether a synthesized tool without code is refused instead of becoming a flagged stub."""
    research: tuple[str, ...] = ()
    """Folders of the repository, or addresses, that research_topic may look into; none turns it off (T62)."""
    step_seconds: float = 120.0
    """Seconds that one step of a hollow agent's plan may take (T158)."""
    burden_files: int = 200
    """Documents of one hollow agent from which on they are a burden to it (T52)."""
    burden_bytes: int = 8 * 1024**2
    """Bytes of them from which on they are one."""
    stagnation_cycles: int = 10
    """Cycles without a goal that passes the completion gate after which a hollow agent stagnates (T54)."""
    idle_cycles: int = 5
    """Cycles of a goal without progress after which it is abandoned."""
    goal_cycles: int = 24
    """Cycles that a goal may take at all."""
    max_steps: int = 6
    """Steps of one plan of a hollow agent."""
    prompt_tokens: int = 12_000
    """Tokens that a prompt of a hollow agent may take."""

    def substrate(self) -> dict[str, Any]:
        """The settings of the hollow agents' environment that are not the default, as their engine hands them on."""
        told = {name: getattr(self, name) for name in SUBSTRATE if getattr(self, name) != getattr(_USUAL, name)}
        return {name: dict(value) if name == "locks" else value for name, value in told.items()}


SUBSTRATE: Final = (
    "locks", "custom_stressors", "strict_tools", "research", "step_seconds", "burden_files", "burden_bytes",
    "stagnation_cycles", "idle_cycles", "goal_cycles", "max_steps", "prompt_tokens",
)  # fmt: skip
"""Settings that hollow takes as one JSON object, under the same names."""
_USUAL: Final = Config()


OWN_FILE: Final = "agent-box/agent.yaml"
"""The operator's own settings, below ``$XDG_CONFIG_HOME`` (``~/.config``): where no agent and no project can write."""

PREFIX: Final = "AGENT_BOX_"
"""An environment variable ``AGENT_BOX_STALL_AFTER`` sets ``stall_after``."""

_SECRET: Final = late(
    r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|DSN|(^|_)PAT($|_)|WEBHOOK|_UR[IL]$|CONN|SIGN|BEARER",
    re.IGNORECASE,
)

RESERVED: Final = frozenset({"RUN", "MARK", "RUN_DIR", "TASK", "VENV", "REPORT_FD", "MENDED", "TEAM", "LIVE"})
"""Names after the prefix that the box itself uses: never a setting, even if a setting of that name came one day."""

_STRICTNESS: Final = ("none", "auto", "partial", "full")
# What opens a door in the wall around an agent is never a project's to say: the project may be a stranger's.
OWN: Final = frozenset({"isolation", "read", "trust_unsandboxed"})
"""Settings of the operator alone: from flag, environment or the operator's own file."""


TEMPLATE: Final = (
    "# Settings of Agent Box. Every line is optional; flag and environment (AGENT_BOX_GRACE=5s) go first.\n"
    + "".join(
        f"\n# {setting.why}\n# {name}: {setting.written}\n" for name, setting in SETTINGS.items() if name not in OWN
    )
)
"""What `agent init` writes to agent.yaml: every setting with its default, commented out."""


# --- Where a setting comes from ---------------------------------------------------------------------------------------


def resolve(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    text: str | None,
    *,
    path: str = "agent.yaml",
    own: str | None = None,
) -> Config:
    """Return the settings of this invocation: flag before environment before project before the operator's own file.

    *flags* maps field names to what was typed; None and empty lists are flags not given. *environ* is searched for
    ``AGENT_BOX_<FIELD>``; other variables with that prefix are none of its business, empty ones count as absent.
    *text* is the content of the project's file called *path*, *own* that of the operator's file outside every
    repository; None without one. Raises OperatorError naming the flag, the variable, or key and line of the file, also
    for a value that another one overrides. Some fields know no plain precedence: the project's file may raise the
    ``sandbox`` that the operator asks for, never lower it (design, section 8), and what opens a door in the wall around
    an agent it may not say at all.
    """
    # Every source is read in full before they are ranked: a slip in the file must not wait for the day it counts.
    file = dict(_from_file(text, path)) if text else {}
    mine = dict(_from_file(own, OWN_FILE, trusted=True)) if own else {}
    given = ChainMap(dict(_from_flags(flags)), dict(_from_environ(environ)), file, mine)
    said = ChainMap(given.maps[0], given.maps[1], mine).get("sandbox", Config().sandbox)
    asked = (file.get("sandbox", "none"), said)
    return Config(**{**given, "sandbox": max(asked, key=_STRICTNESS.index)})


def _read(name: str, value: Any, where: str) -> Any:
    """Return the value of the setting *name* written as *value*; an error begins with *where*."""
    try:
        return SETTINGS[name].read(value)
    except OperatorError as error:
        raise OperatorError(f"{where}: {error.message}", error.hint) from None


def _from_flags(flags: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    # An option that may be repeated arrives as an empty list when it was not given at all.
    for name, value in flags.items():
        if value is not None and value not in ([], ()):
            plain = list(value) if isinstance(value, tuple) else value
            yield name, _read(name, plain, "--" + name.replace("_", "-"))


def _from_environ(environ: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    # Settings are looked up, not variables sorted out: other programs may use the prefix as they like.
    for name in SETTINGS:
        variable = PREFIX + name.upper()
        if name.upper() not in RESERVED and (value := environ.get(variable, "").strip()):
            yield name, _read(name, value, variable)


# --- agent.yaml -------------------------------------------------------------------------------------------------------


def _from_file(text: str, path: str, *, trusted: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the settings that *text* gives, with key and line in every complaint; *trusted* is the operator's own."""
    seen: dict[str, int] = {}
    for key, node in yamlfile.entries(text, path):
        line = yamlfile.line_of(key.start_mark)
        where = f"{path} line {line}"
        name = yamlfile.scalar(key, where)
        if name not in SETTINGS:
            raise OperatorError(
                f"{where}: {reprlib.repr(name)} is not a setting.", accepts.nearest(name, tuple(SETTINGS))
            )
        if name in seen:
            raise OperatorError(f"{where}: `{name}` is already set in line {seen[name]}.", "Remove one of them.")
        seen[name] = line
        setting = SETTINGS[name]
        if (value := yamlfile.plain(node, f"{where}: `{name}`", many=setting.many, pairs=setting.pairs)) is not None:
            read = _read(name, value, f"{where}: `{name}`")
            if not trusted:
                _refuse_doors(name, read, f"{where}: `{name}`")
            yield name, read


def _refuse_doors(name: str, value: Any, where: str) -> None:
    """Refuse to let a project's file open the wall around an agent, or hand it the operator's secrets."""
    if name in OWN:
        hint = f"If you mean it, say it yourself: {PREFIX}{name.upper()}=… ./agent …, or in ~/.config/{OWN_FILE}."
        raise OperatorError(f"{where} is not for a project's file.", hint)
    if name == "network" and value == "on":
        hint = f"If you mean it, say it yourself: {PREFIX}NETWORK=on ./agent …, or in ~/.config/{OWN_FILE}."
        raise OperatorError(f"{where}: a project's file may only turn the network off.", hint)
    if name == "research" and any("://" in source for source in value):
        hint = f"If you mean it, say it yourself: {PREFIX}RESEARCH=… ./agent …, or in ~/.config/{OWN_FILE}."
        raise OperatorError(f"{where}: a project's file may only name folders of its own.", hint)
    for variable in filter(_SECRET.search, value if name == "env" else ()):
        hint = f"If you mean it, say it yourself: {PREFIX}ENV={variable} ./agent …"
        raise OperatorError(f"{where}: {variable} looks like a secret, which a project's file may not pass on.", hint)
