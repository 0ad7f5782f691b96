"""The table of settings: how each is read, its default as one would write it, and a line that says what it is for."""

from __future__ import annotations

from agents import accepts
from agents.units import parse_duration
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the table below."""

    read: Callable[[Any], Any]
    """Turns what was written into the field's value; raises OperatorError."""
    written: str
    """The default as it would be written in agent.yaml."""
    why: str
    """One line of explanation for the template."""
    many: bool = False
    """Whether agent.yaml may give a list."""
    pairs: bool = False
    """Whether it may also give a mapping."""


SETTINGS: Final[dict[str, Setting]] = {
    "stall_after": Setting(accepts.positive, "5m", "Silence after which a run counts as stalled."),
    "linger": Setting(parse_duration, "60s", "How long an agent may live on after its result."),
    "grace": Setting(parse_duration, "10s", "Time between asking a process to end and killing it."),
    "timeout": Setting(accepts.or_none(accepts.positive), "none", "Longest time for a whole run."),
    "on_stall": Setting(accepts.one_of("reap", "mark"), "reap", "A stalled run is ended (reap) or only marked (mark)."),
    "max_output": Setting(accepts.size, "2GiB", "What an agent may print before its run is ended."),
    "engine": Setting(accepts.matching(accepts.ENGINE, "the name of an engine"), "hollow", "What drives the agent."),
    "model": Setting(
        accepts.or_none(accepts.matching(accepts.MODEL, "the name of a model")),
        "none",
        "The model, as the engine spells it; hollow's own choice is qwen3.5:9b.",
    ),
    "mind": Setting(
        accepts.one_of("auto", "ollama", "reflex"), "auto", "What thinks in a hollow agent; reflex needs no model."
    ),
    "num_ctx": Setting(accepts.whole(512, 4_194_304), "32768", "Context window asked of Ollama, in tokens."),
    "keep_alive": Setting(accepts.keep_alive, "10m", "How long Ollama keeps the model loaded; -1 is for ever."),
    "call_timeout": Setting(accepts.positive, "10m", "Longest time for one call of a model."),
    "max_turns": Setting(
        accepts.or_none(accepts.whole(1, 10_000)), "none", "Model turns that a run may take; hollow's own limit is 24."
    ),
    "max_usd": Setting(accepts.or_none(accepts.amount), "none", "Dollars that a run may cost."),
    "max_tokens": Setting(accepts.or_none(accepts.whole(1, 10**12 - 1)), "none", "Tokens that a run may use."),
    "min_free": Setting(accepts.size, "64MiB", "Free disk space below which a run is ended."),
    "loop_after": Setting(
        accepts.whole(0, 10_000), "12", "Repetitions of one action without effect that end a run; 0 for never."
    ),
    "sandbox": Setting(
        accepts.one_of("full", "partial", "none", "auto"),
        "auto",
        "Least isolation a run needs: full, partial, none. This file can only ask for more than flag or environment.",
    ),
    "keep_for": Setting(
        accepts.or_none(parse_duration), "none", "How long `agent gc` keeps finished boxes, such as 30d."
    ),
    "keep_runs": Setting(
        accepts.or_none(accepts.whole(0, 10_000_000)), "none", "How many finished boxes `agent gc` keeps."
    ),
    "ops": Setting(
        accepts.names(accepts.OP, "the name of an op"), "[]", "Ops that may run, by name; none otherwise.", many=True
    ),
    "env": Setting(
        accepts.names(accepts.VARIABLE, "the name of an environment variable"),
        "[]",
        "Further environment variables that the agent gets, by name.",
        many=True,
    ),
    "isolation": Setting(
        accepts.one_of("auto", "full", "partial", "none"),
        "auto",
        "The isolation to use; auto is the best there is. Not in a project's agent.yaml.",
    ),
    "read": Setting(
        accepts.folders,
        "[]",
        "Further paths that a sandboxed agent may read; not in a project's agent.yaml.",
        many=True,
    ),
    "network": Setting(
        accepts.one_of("auto", "on", "off"), "auto", "Whether an agent reaches the network; auto is what it needs."
    ),
    "copy": Setting(accepts.paths, "[]", "Untracked files to copy into an airlock (see .worktreeinclude).", many=True),
    "link": Setting(accepts.paths, "[]", "Folders to link into an airlock, such as node_modules.", many=True),
    "setup": Setting(accepts.commands, "[]", "Commands that prepare an airlock.", many=True),
    "setup_timeout": Setting(accepts.positive, "10m", "Longest time for all of `setup`."),
    "check": Setting(accepts.commands, "[]", "Commands that must pass in the airlock when a fix is done.", many=True),
    "verify": Setting(accepts.commands, "[]", "Commands that must pass on the merged result.", many=True),
    "verify_timeout": Setting(accepts.positive, "15m", "Longest time for one command of `check` or `verify`."),
    "trust_unsandboxed": Setting(
        accepts.yes_or_no,
        "no",
        "Whether runs without a sandbox may be merged by typing an approval; not in a project's agent.yaml.",
    ),
    "locks": Setting(
        accepts.locks,
        "[fs_edit=0.75, fs_write=0.75, synthesize_capability=0.55]",
        "Load from which on a hollow agent may not use a capability; what leads out of suffering cannot be locked.",
        many=True,
        pairs=True,
    ),
    "custom_stressors": Setting(
        accepts.one_of("escalate", "decay"), "escalate", "What stressors that an agent names itself do with time."
    ),
    "strict_tools": Setting(accepts.yes_or_no, "no", "Whether a synthesized tool without code is refused."),
    "research": Setting(
        accepts.sources, "[]", "Folders or addresses that a hollow agent may research in; none turns it off.", many=True
    ),
    "step_seconds": Setting(accepts.positive, "2m", "Longest time for one step of a hollow agent."),
    "burden_files": Setting(accepts.whole(1, 1_000_000), "200", "Documents from which on they burden their agent."),
    "burden_bytes": Setting(accepts.size, "8MiB", "Size of its documents from which on they burden an agent."),
    "stagnation_cycles": Setting(
        accepts.whole(1, 10_000), "10", "Cycles without a completed goal after which an agent stagnates."
    ),
    "idle_cycles": Setting(accepts.whole(1, 10_000), "5", "Cycles without progress after which a goal is given up."),
    "goal_cycles": Setting(accepts.whole(1, 10_000), "24", "Cycles that a goal may take at all."),
    "max_steps": Setting(accepts.whole(1, 50), "6", "Steps of one plan of a hollow agent."),
    "prompt_tokens": Setting(
        accepts.whole(1_000, 4_194_304), "12000", "Tokens that a prompt of a hollow agent may take."
    ),
}
"""By the names of the fields of :class:`agents.config.Config`, in the order in which a template lists them."""
