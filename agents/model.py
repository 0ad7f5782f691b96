"""What a run is: failure, envelope and state as values, with tolerant codecs; its law is agents.lifecycle."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType

from agents.errors import Tampered
from agents.lifecycle import (
    HOST_FAILURES,
    TRANSITIONS,
    Actor,
    FailureKind,
    IllegalStep,
    Phase,
    Status,
    is_terminal,
)
from essentials import records
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, Self, TypeVar

    _Word = TypeVar("_Word", bound=StrEnum)


# The words of the law are a run's words as well: whoever handles runs finds them here.
__all__ = [
    "HOST_FAILURES", "SCHEMA", "TRANSITIONS", "Actor", "Failure", "FailureKind", "IllegalStep", "Phase", "RunMeta",
    "RunState", "Status", "is_terminal", "step",
]  # fmt: skip

SCHEMA: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a run ended badly."""

    kind: FailureKind
    message: str
    """One sentence for the operator."""
    last_safe_artifact: str | None = None
    """Newest file of the box that is whole, relative to it (seed 003, phase 2; T137)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeta:
    """meta.yaml: the request and its safety envelope, written once (seed 003, phase 1, step 2; T122)."""

    run_name: str
    short_id: str
    run_type: str
    task: str
    slug: str
    repo_sha_start: str
    dirty: bool
    engine: str
    model: str | None
    engine_version: str | None
    agent: str | None
    mind: str | None
    tools_allowlist: tuple[str, ...]
    safe_commands: tuple[str, ...]
    human_only_commands: tuple[str, ...]
    config_hash: str
    commands_digest: str
    isolation: str
    argv: tuple[str, ...] = ()
    """The operator's program after ``--`` (engine ``command``)."""
    team: str | None = None
    """Name of the run that this one is a part of."""
    created_at: str = ""
    start: str | None = None
    """Commit that the airlock of a cycle begins with: the commons as it then was; None where it is the base."""
    schema: int = SCHEMA

    @property
    def airlock_base(self) -> str:
        """Commit that the airlock holds at first."""
        return self.start or self.repo_sha_start

    def to_dict(self) -> dict[str, Any]:
        """The mapping that meta.yaml holds; the type stands under both of the seed's keys (D12)."""
        fields = {name: _plain(value) for name, value in records.asdict(self).items()}
        if self.start is None:
            # Only cycles have one; in the record of any other run it would be a riddle.
            del fields["start"]
        return {"run_name": fields.pop("run_name"), "type": self.run_type, **fields}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """Read what any version wrote; raises Tampered where a field that the envelope needs is gone."""
        known = {f.name: f for f in records.fields(cls)}
        given = {**raw, "run_type": raw.get("run_type", raw.get("type"))}
        missing = [name for name in ("run_name", "run_type", "task", "config_hash") if not given.get(name)]
        if missing:
            raise Tampered(f"meta.yaml lacks {', '.join(missing)}.")
        # The seed's own example has no short id beside the name that ends with it.
        given["short_id"] = given.get("short_id") or str(given["run_name"]).rpartition("__")[2]
        values: dict[str, Any] = {
            name: _META_DEFAULTS.get(name) if given.get(name) is None else given[name] for name in known
        }
        values.update({name: _names(values[name]) for name in _META_TUPLES})
        wrong = sorted(name for name, value in values.items() if not _fits(value, str(known[name].type)))
        if wrong:
            raise Tampered(f"meta.yaml holds something else than it should under {', '.join(wrong)}.")
        return cls(**values)


_META_TUPLES: Final = ("tools_allowlist", "safe_commands", "human_only_commands", "argv")
_META_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType({
    "short_id": "", "slug": "", "repo_sha_start": "", "dirty": False, "engine": "", "commands_digest": "",
    "isolation": "none", "created_at": "", "schema": SCHEMA,
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """state.json: the supervisor's truth about a run (seed 003, phase 1, step 5; T124)."""

    status: Status = Status.ACTIVE
    phase: Phase = Phase.CREATED
    pid: int | None = None
    pid_start: int | None = None
    """Start time of *pid* in clock ticks since boot: a pid without it proves nothing (T140)."""
    guard_pid: int | None = None
    guard_start: int | None = None
    boot_id: str | None = None
    supervisor_pid: int | None = None
    supervisor_start: int | None = None
    host_id: str | None = None
    isolation: str = "none"
    model: str | None = None
    session_id: str | None = None
    session_cwd: str | None = None
    worktree_path: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    last_heartbeat: str | None = None
    clock_offset: float | None = None
    """Wall minus monotonic time at the heartbeat, in seconds: tells silence from a clock that jumped or slept."""
    config_hash: str = ""
    stall_after: float | None = None
    """Seconds of silence that this run may keep, and what then happens to it: a sweep judges by these, not by the
    settings of whoever happens to type the next command."""
    on_stall: str | None = None
    failure: Failure | None = None
    exit_code: int | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    patch: Mapping[str, Any] | None = None
    """Of changes.patch: sha256, tree, base, files, added, removed, binary, findings."""
    merge: Mapping[str, Any] | None = None
    """Of a merge, from its beginning on: target, before, commit, tree."""
    cycle: Mapping[str, Any] | None = None
    """Of a cycle: its goal and its outcome, as its agent said (``goal``, ``outcome``)."""
    workers: tuple[str, ...] = ()
    """Names of the runs of the agents that worked on this task side by side."""
    events: int = 0
    notes: tuple[str, ...] = ()
    """What the supervisor found odd: a second session id, output after the end, a repaired file."""
    attempt: int = 1
    revision: int = 0
    """Grows with every write; every write reads the state anew, under its lock."""
    schema: int = SCHEMA
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """Keys that this version does not know, written back as they were."""

    @property
    def carried_tree(self) -> str | None:
        """Tree of the airlock that was carried into the box; a cycle's patch is of more than its airlock."""
        tree: str | None = (self.patch or {}).get("airlock", (self.patch or {}).get("tree"))
        return tree

    def to_json(self) -> bytes:
        """The bytes of state.json."""
        fields = {f.name: getattr(self, f.name) for f in records.fields(self) if f.name != "unknown"}
        fields["failure"] = records.asdict(self.failure) if self.failure else None
        plain = {name: _plain(value) for name, value in fields.items()}
        return json.dumps({**plain, **self.unknown}, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read what any version wrote: unknown keys kept, missing ones defaulted; raises Tampered if it is no state."""
        try:
            raw = json.loads(data)
            status = Status(raw["status"])
        except (ValueError, KeyError, TypeError, RecursionError) as why:
            raise Tampered(f"state.json is not readable ({why}).") from why
        types = {f.name: str(f.type) for f in records.fields(cls) if f.name != "unknown"}
        values = {name: value for name, value in raw.items() if name in types and value is not None}
        values |= {"status": status, "failure": _failure(raw.get("failure"))}
        values |= {name: _names(values.get(name)) for name in ("notes", "workers")}
        values["phase"] = _member(Phase, values.get("phase"), Phase.CREATED)
        # Whoever reads a state adds to its numbers and joins its words: what is none is found here, not there.
        wrong = sorted(name for name, value in values.items() if not _fits(value, types[name]))
        if wrong:
            raise Tampered(f"state.json holds something else than it should under {', '.join(wrong)}.")
        return cls(**values, unknown={name: value for name, value in raw.items() if name not in types})


def _failure(raw: object) -> Failure | None:
    if not isinstance(raw, Mapping):
        return None
    artifact = raw.get("last_safe_artifact")
    return Failure(
        kind=_member(FailureKind, raw.get("kind"), FailureKind.INTERNAL),
        message=str(raw.get("message", "")),
        last_safe_artifact=artifact if isinstance(artifact, str) else None,
    )


def _member(words: type[_Word], raw: object, default: _Word) -> _Word:
    """The member of *words* that *raw* names, or *default* for a word of another version."""
    return words(raw) if isinstance(raw, str) and raw in set(words) else default


def _names(raw: object) -> object:
    """A list as the tuple that it was; anything else as it is, for `_fits` to judge."""
    return tuple(raw) if isinstance(raw, list | tuple) else raw or ()


def _fits(value: object, declared: str) -> bool:
    """Whether *value* is what a field *declared* with these words may hold."""
    options = [each.strip() for each in declared.split("|")]
    if value is None:
        return "None" in options
    return any(_HOLDS[each](value) for each in options if each in _HOLDS)


# No number of a run is longer than the kernel's own, and one that is would fail much later.
_HOLDS: Final[Mapping[str, Callable[[Any], bool]]] = MappingProxyType(
    {
        "str": lambda value: isinstance(value, str),
        "bool": lambda value: isinstance(value, bool),
        "int": lambda value: isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63,
        "float": lambda value: isinstance(value, int | float) and math.isfinite(value),
        "tuple[str, ...]": lambda value: isinstance(value, tuple) and all(isinstance(each, str) for each in value),
        "Mapping[str, Any]": lambda value: isinstance(value, Mapping),
        "Failure": lambda value: isinstance(value, Failure),
        "Status": lambda value: isinstance(value, Status),
        "Phase": lambda value: isinstance(value, Phase),
    }
)


def _plain(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def step(state: RunState, to: Status, actor: Actor, **changes: Any) -> RunState:
    """*state* moved to *to* by *actor*, with further field *changes*; raises IllegalStep where the table has none."""
    if actor not in TRANSITIONS[state.status].get(to, ()):
        raise IllegalStep(f"A run cannot go from {state.status} to {to} by the {actor}.")
    return records.replace(state, status=to, **changes)
