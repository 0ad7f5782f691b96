"""Decide a whole run before anything is touched: `plan_run` is pure, so `--dry-run` is free and cannot lie."""

from __future__ import annotations

import json
import posixpath

from agents import commands, naming, policy, prompts, redact
from agents.engines.base import Brief, Budget, Command
from agents.errors import AgentError, HostError, OperatorError, Tampered
from agents.model import RunMeta, RunState
from agents.timers import Limits
from agents.times import iso
from essentials import digests, records
from essentials.patterns import late
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, Final

    from agents.commands import CommandFile
    from agents.config import Config
    from agents.engines.base import Engine, Program
    from agents.layout import Layout

TASK_LIMIT: Final = 1024 * 1024
"""Bytes of a task."""
LEVELS: Final = ("none", "partial", "full")
"""From the least isolation to the most."""
_SESSION: Final = late(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_LONGEST_MESSAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What the operator asked for."""

    run_type: str
    task: str
    argv: tuple[str, ...] = ()
    """What followed ``--``."""
    team: str | None = None
    """Name of the run that this one is to be a part of."""
    agent: str | None = None
    """The hollow agent that is to do it; None for the one whose role fits the run type."""
    start: str | None = None
    """Commit that the airlock of a cycle begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the world looks like at the start; everything that planning may not look up itself."""

    layout: Layout
    head: str
    dirty: bool
    now: float
    """Seconds since the epoch."""
    token: str
    """At least 32 random hex digits: ids and the session are made of them."""
    mind: str | None
    """The mind that was chosen for hollow, None for other engines."""
    model: str | None
    engine_version: str | None
    python: str
    home: Path
    boot_id: str
    host_id: str
    supervisor: tuple[int, int | None]
    """Pid and start time of this process."""
    isolation: str = "none"
    program: Program | None = None
    """The engine's program on this machine."""
    rules: tuple[str, ...] = ()
    """What earlier runs have learned of this environment, for the system prompt."""
    clock_offset: float | None = None
    """Wall minus monotonic time in seconds: tells silence before the first sign of life from a clock that jumped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """Everything a run will be."""

    meta: RunMeta
    state: RunState
    commands: tuple[CommandFile, ...]
    prompt: str
    command: Command
    limits: Limits
    root: Path
    """Where the agent works: its airlock, or the operator's checkout."""
    mutates: bool
    """Whether it works in an airlock."""
    program: Program | None = None
    """The engine's program on this machine."""
    worktree: str | None = None
    """Its airlock, as the state names it."""
    resumes: bool = False
    """Whether it goes on with a session of its agent."""
    rules: tuple[str, ...] = ()
    """The learned rules in its prompt."""


def plan_run(ask: Ask, scene: Scene, config: Config, engine: Engine, short_id: str) -> RunPlan:
    """The run that *ask* becomes under *short_id*; raises OperatorError or HostError where it cannot be."""
    task = checked_task(ask.task)
    tier = policy.tier(ask.run_type)
    check_isolation(config, scene.isolation)
    check_lives(ask.run_type, engine)
    # The name of a run is everywhere, in commits too: a secret in the task must not be in it.
    slug = naming.slugify(redact.redact(task))
    name = naming.run_name(scene.now, slug, short_id)
    box = scene.layout.box(name)
    files = commands.command_set(short_id, name, str(box.outbox))
    safe, human = commands.safe_names(short_id), commands.human_only_names(short_id)
    meta = RunMeta(
        run_name=name, short_id=short_id, run_type=ask.run_type, task=task, slug=slug, repo_sha_start=scene.head,
        dirty=scene.dirty, engine=engine.name, model=scene.model, engine_version=scene.engine_version,
        agent=ask.agent or (tier.agent if scene.mind else None), mind=scene.mind, tools_allowlist=tier.tools,
        safe_commands=safe, human_only_commands=human, config_hash=policy.config_hash(tier.tools, safe, human),
        commands_digest=commands.digest(files), isolation=scene.isolation, argv=ask.argv, team=ask.team,
        created_at=iso(scene.now), start=ask.start,
    )  # fmt: skip
    root = _root(scene.layout, meta)
    state = RunState(
        boot_id=scene.boot_id, host_id=scene.host_id, supervisor_pid=scene.supervisor[0],
        supervisor_start=scene.supervisor[1], isolation=scene.isolation, model=scene.model,
        session_cwd=str(root), worktree_path=_worktree(scene.layout, root) if tier.mutates else None,
        stall_after=config.stall_after, on_stall=config.on_stall, started_at=iso(scene.now),
        clock_offset=scene.clock_offset,
        config_hash=meta.config_hash,
    )  # fmt: skip
    return _complete(meta, state, files, scene, config, engine, session=_session(scene.token, short_id))


def _worktree(layout: Layout, root: Path) -> str:
    """How the state names the airlock: from the root of the repository, as in the seed's example."""
    return posixpath.relpath(root, layout.root)


def _root(layout: Layout, meta: RunMeta) -> Path:
    """Where the agent of *meta* works (T125)."""
    return layout.tree(meta.run_name) if policy.tier(meta.run_type).mutates else layout.root


def plan_resume(
    meta: RunMeta, state: RunState, message: str, scene: Scene, config: Config, engine: Engine, *, fresh: bool = False
) -> RunPlan:
    """The run that *meta* and *state* become when they go on with the same envelope (seed 003, phase 4; T143).

    *message* is what the operator adds to the task, or empty; *fresh* begins a new session. Raises Tampered where the
    envelope that follows from meta.yaml is not the one that was sealed (T144), HostError where this machine now
    isolates less than it did or than the settings ask for, AgentError where the agent's session cannot be named on a
    command line.
    """
    _check_envelope(meta, state)
    check_isolation(config, scene.isolation)
    if LEVELS.index(scene.isolation) < _level(meta.isolation):
        raise HostError(
            f"The run had isolation “{meta.isolation}”, this machine now offers “{scene.isolation}”.",
            "See ./agent doctor, or start a new run.",
        )
    files = commands.command_set(meta.short_id, meta.run_name, str(scene.layout.box(meta.run_name).outbox))
    again = records.replace(meta, task=f"{meta.task}\n\n{checked_task(message)}" if message else meta.task)
    known = None if fresh else _announced(state)
    made = _complete(
        again, state, files, scene, config, engine,
        session=known or _session(scene.token, meta.short_id), resume=known is not None, message=message,
    )  # fmt: skip
    return records.replace(made, meta=meta)


def _check_envelope(meta: RunMeta, state: RunState) -> None:
    """Raise Tampered unless the sealed envelope is the one that the run's type and id lead to (T144)."""
    named = naming.parse(meta.run_name)
    if named is None or named.short_id != meta.short_id or meta.run_type not in policy.TIERS:
        raise Tampered("The run's name, id and type in meta.yaml do not belong together.", "Start a new run.")
    sealed = policy.config_hash(meta.tools_allowlist, meta.safe_commands, meta.human_only_commands)
    regenerated = policy.config_hash(
        policy.tier(meta.run_type).tools, commands.safe_names(meta.short_id), commands.human_only_names(meta.short_id)
    )
    if not sealed == regenerated == meta.config_hash == state.config_hash:
        raise Tampered("The envelope of this run is not the one it started with.", "Start a new run.")


def _level(isolation: str) -> int:
    if isolation not in LEVELS:
        raise Tampered("meta.yaml names an isolation that does not exist.", "Start a new run.")
    return LEVELS.index(isolation)


def _announced(state: RunState) -> str | None:
    """The session to go on with, None where the agent never got to name one; raises AgentError for a name that is none.

    It becomes a word of a command line, and it is the agent that chose it (P22).
    """
    if state.session_id and not _SESSION.fullmatch(state.session_id):
        raise AgentError("The agent named its session in a form that cannot be handed on.", "Start a new run.")
    return state.session_id


def _complete(
    meta: RunMeta,
    state: RunState,
    files: tuple[CommandFile, ...],
    scene: Scene,
    config: Config,
    engine: Engine,
    *,
    session: str,
    resume: bool = False,
    message: str = "",
) -> RunPlan:
    box, mutates = scene.layout.box(meta.run_name), policy.tier(meta.run_type).mutates
    root = _root(scene.layout, meta)
    prompt = prompts.system_prompt(
        run_type=meta.run_type, run_name=meta.run_name, run_dir=str(box.outbox), tools=meta.tools_allowlist,
        safe_commands=meta.safe_commands, human_only_commands=meta.human_only_commands,
        mutates=mutates, rules=scene.rules,
    )  # fmt: skip
    brief = Brief(
        meta=meta, root=root, checkout=scene.layout.root, private=box.private, home_dir=box.home, mutates=mutates,
        run_dir=box.outbox, index=scene.layout.search_index, prompt=prompt, session_id=session, resume=resume,
        message=message, commands=files, isolation=scene.isolation, network=config.network != "off",
        budget=Budget(max_turns=config.max_turns, max_usd=config.max_usd, max_tokens=config.max_tokens),
        program=scene.program, python=scene.python, home=scene.home, options=_options(config),
    )  # fmt: skip
    return RunPlan(
        meta=meta, state=state, commands=files, prompt=prompt, command=engine.command(brief), limits=limits(config),
        root=root, mutates=mutates, program=scene.program,
        worktree=_worktree(scene.layout, root) if mutates else None, resumes=resume, rules=scene.rules,
    )  # fmt: skip


def checked_task(task: str) -> str:
    """*task* as text that every file can hold; raises OperatorError for an empty or an endless one."""
    # Bytes of the command line that are no UTF-8 arrive as lone surrogates, which neither YAML nor JSON readers take.
    try:
        data = task.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Other surrogates come from JSON, and never were bytes.
        data = task.encode("utf-8", "replace")
    clean = data.decode("utf-8", "replace").replace("\0", "")
    if not clean.strip():
        raise OperatorError("The task is empty.", 'Say what to look for: ./agent scout "why is the start slow?"')
    if len(clean.encode()) > TASK_LIMIT:
        raise OperatorError("The task is longer than 1 MiB.", "Put the material into a file of the repository.")
    return clean


def check_lives(run_type: str, engine: Engine) -> None:
    """Raise OperatorError where *run_type* is that of a life of its own and *engine* has none to give."""
    if run_type == policy.CYCLE and not getattr(engine, "lives", False):
        raise OperatorError(f"The engine “{engine.name}” has no life of its own.", "Type: ./agent cycle cedar")


def check_isolation(config: Config, isolation: str) -> None:
    """Raise HostError where *isolation* is less than the settings ask for."""
    floor = config.sandbox
    if floor in LEVELS and LEVELS.index(isolation) < LEVELS.index(floor):
        raise HostError(
            f"The settings ask for isolation “{floor}”, this machine offers “{isolation}”.",
            "Lower `sandbox:` in agent.yaml, or see ./agent doctor.",
        )


def _session(token: str, short_id: str) -> str:
    # A UUID of version 4 by hand: importing `uuid` costs more than all else that is done here.
    bits = bytearray(digests.sha256(f"{token} {short_id}".encode()).digest()[:16])
    bits[6], bits[8] = bits[6] & 0x0F | 0x40, bits[8] & 0x3F | 0x80
    digits = bits.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _options(config: Config) -> dict[str, str]:
    return {
        "num_ctx": str(config.num_ctx),
        "keep_alive": config.keep_alive,
        "call_timeout": f"{config.call_timeout:g}",
        **({} if config.max_turns is None else {"max_turns": str(config.max_turns)}),
        **({"substrate": json.dumps(told)} if (told := config.substrate()) else {}),
    }


def limits(config: Config) -> Limits:
    """The limits of a run under *config*."""
    return Limits(
        stall_after=config.stall_after, linger=config.linger, grace=config.grace, timeout=config.timeout,
        max_output=config.max_output, on_stall=config.on_stall, max_turns=config.max_turns, max_usd=config.max_usd,
        max_tokens=config.max_tokens, min_free=config.min_free, loop_after=config.loop_after,
    )  # fmt: skip


def title(task: str) -> str:
    """The task as one line for people: secrets out, nothing that drives a terminal, at most 200 characters."""
    line = " ".join(redact.visible(redact.beginning(task, 4000), newlines=True).split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1] + "…"


def heading(meta: RunMeta, state: RunState) -> str:
    """What the run was about, as one line for people: its task, and of a cycle the goal that its agent chose."""
    chosen = state.cycle.get("objective") if state.cycle else None
    return title(f"{meta.agent}: {chosen}" if isinstance(chosen, str) and chosen.strip() else meta.task)


_TITLE: Final = 200


def facts(meta: RunMeta, state: RunState) -> dict[str, Any]:
    """What the ledger says of a run: enough to draw its row from any one entry."""
    failed = state.failure
    failure = {"kind": str(failed.kind), "message": failed.message[:_LONGEST_MESSAGE]} if failed else None
    return {
        "id": meta.short_id, "type": meta.run_type, "engine": meta.engine, "agent": meta.agent, "model": state.model,
        "isolation": state.isolation, "task": heading(meta, state), "status": str(state.status),
        "phase": str(state.phase),
        "started_at": state.started_at, "ended_at": state.ended_at, "attempt": state.attempt,
        "patch": dict(state.patch) if state.patch else None, "usage": dict(state.usage), "exit_code": state.exit_code,
        "config_hash": meta.config_hash, "repo_sha_start": meta.repo_sha_start, "failure": failure,
        **({"workers": list(state.workers)} if state.workers else {}), **({"team": meta.team} if meta.team else {}),
        **({"cycle": dict(state.cycle)} if state.cycle else {}),
    }  # fmt: skip


def describe(plan: RunPlan, env_names: list[str]) -> dict[str, Any]:
    """The plan as a mapping, for ``--dry-run`` and for the launch record: no value of a variable is in it (T154)."""
    return {
        "meta": plan.meta.to_dict(),
        "works_in": str(plan.root),
        "argv": [redact.redact(word) for word in plan.command.argv],
        "environment": sorted(env_names),
        "stdin_bytes": len(plan.command.stdin),
        "system_prompt": plan.prompt,
        "commands": [file.name for file in plan.commands],
        "limits": records.asdict(plan.limits),
    }
