"""The registry of goals: an append-only log an agent, and a snapshot that makes reading it cost the same for ever."""

from __future__ import annotations

import json

from essentials.digests import sha256
from essentials.records import dataclass, field
from hollow.memory.goalrecords import decoded, encoded, status
from hollow.substrate.fallback import PREFIX
from hollow.substrate.model import GoalStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    from hollow.memory.files import Files
    from hollow.substrate.model import Goal

KEPT: Final = 40
"""Ended goals that the snapshot holds; older ones are found in the log."""
LARGEST: Final = 4 << 20
"""Bytes of the log beyond which it is reduced to the last line of each of its newest goals."""
_ON_THE_WAY: Final = frozenset({"stepped", "progressed"})
"""Events of which a cycle has many: whoever reads next folds them in from the log; its end makes a snapshot."""
GOALS_KEPT: Final = 200
OUTCOME: Final = 500
"""Characters of the last outcome."""

_SCHEMA: Final = 1
_EVERYTHING: Final = 1 << 30


class GoalClash(Exception):  # noqa: N818 - an answer of the registry, told as one sentence
    """Another goal of the agent is active: there is one at a time (W19). The message is one sentence."""


@dataclass(slots=True)
class _State:
    """The log up to *offset*, folded: the last line of an id is the goal (T81)."""

    offset: int = 0
    tail: tuple[int, str] = (0, "")
    """Length and digest of the line that ends at *offset*, by which the log is known again."""
    open: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Active goals in the order in which they came; only the first is worked on."""
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The newest of the others, newest last."""
    fallback: str = ""
    """Source of the latest fallback goal."""

    def apply(self, record: dict[str, Any], keep: int) -> None:
        """Take in *record*, the next line of the log; at most *keep* ended goals are held."""
        goal_id = record.get("goal_id")
        if not isinstance(goal_id, str) or not goal_id or not isinstance(record.get("objective"), str):
            return
        self.ended.pop(goal_id, None)
        if status(record.get("status")) is GoalStatus.ACTIVE:
            self.open[goal_id] = record
        else:
            self.open.pop(goal_id, None)
            if self.ended:
                # Only the newest may be opened again, and needs to know what its progress is made of.
                self.ended[next(reversed(self.ended))].pop("credits", None)
            self.ended[goal_id] = record
            if len(self.ended) > keep:
                del self.ended[next(iter(self.ended))]
        if str(record.get("source")).startswith(PREFIX):
            self.fallback = str(record["source"])


class GoalBook:
    """The goals of all agents, in *files*, below ``goals/<agent>/`` with the seeds' names of fields (S26, T80)."""

    def __init__(self, files: Files) -> None:
        self._files = files

    # --- Reading ------------------------------------------------------------------------------------------------------

    def active(self, agent: str) -> Goal | None:
        """Return the goal that *agent* is after, or None. Of several placed by hand the oldest; the others wait."""
        return next((decoded(each, agent) for each in self._state(agent).open.values()), None)

    def recent(self, agent: str, n: int) -> tuple[Goal, ...]:
        """Return the last *n* goals of *agent* that have ended, newest last."""
        state = self._state(agent) if n <= KEPT else self._folded(agent, n)
        rows = list(state.ended.values())[-n:] if n > 0 else []
        return tuple(decoded(each, agent) for each in rows)

    def get(self, agent: str, goal_id: str) -> Goal | None:
        """Return the goal *goal_id* of *agent* however old it is, or None."""
        for state in self._near_and_far(agent):
            found = state.open.get(goal_id) or state.ended.get(goal_id)
            if found:
                return decoded(found, agent)
        return None

    def last_fallback(self, agent: str) -> str:
        """Return the source of the latest fallback goal of *agent*, or "": where the rotation stands (T83)."""
        return self._state(agent).fallback

    def last_outcome(self, agent: str) -> str:
        """Return how the last goal of *agent* ended, in at most :data:`OUTCOME` characters."""
        try:
            data = (self._files.root / f"goals/{agent}/last_outcome.txt").read_bytes()
        except OSError:
            return ""
        return data.decode("utf-8", "replace").strip()[:OUTCOME]

    # --- Changing -----------------------------------------------------------------------------------------------------

    def put(self, goal: Goal, event: str) -> None:
        """Write *goal* as it is after *event*, a word such as ``progressed``; it is on disk when this returns.

        Raises :class:`GoalClash` for a new active goal while another one is.
        """
        with self._files.hold():
            state = self._state(goal.agent)
            first = next(iter(state.open), goal.goal_id)
            if goal.status is GoalStatus.ACTIVE and goal.goal_id not in state.open and first != goal.goal_id:
                raise GoalClash(f"{goal.agent} is after {first} already; one goal at a time.")
            before = state.open.get(goal.goal_id) or state.ended.get(goal.goal_id) or {}
            self._files.append(_log(goal.agent), {**before, **encoded(goal), "event": event})
            if event in _ON_THE_WAY:
                return
            state = self._state(goal.agent)
            if state.offset > LARGEST:
                state = self._reduced(goal.agent)
            # It follows from the log, and is not believed where it does not fit it.
            self._files.write_bytes(_snapshot(goal.agent), _dumped(state), durable=False)

    def set_outcome(self, agent: str, text: str) -> None:
        """Keep *text*, cut to :data:`OUTCOME` characters, as how the last goal of *agent* ended."""
        with self._files.hold():
            data = text.strip()[:OUTCOME].encode("utf-8", "replace")
            self._files.write_bytes(f"goals/{agent}/last_outcome.txt", data)

    # --- The log and its snapshot -------------------------------------------------------------------------------------

    def _near_and_far(self, agent: str) -> Iterator[_State]:
        yield self._state(agent)
        yield self._folded(agent, _EVERYTHING)

    def _state(self, agent: str) -> _State:
        """The log folded, from the snapshot on where that fits it, else from its beginning."""
        state = _restored(self._files.read(_snapshot(agent)).value)
        added = self._after(agent, state) if state else None
        if state is None or added is None or not _fold(state, added, KEPT):
            return self._folded(agent, KEPT)
        return state

    def _after(self, agent: str, state: _State) -> bytes | None:
        """What follows *state* in the log, or None where it is not the log that the snapshot was made of."""
        length, digest = state.tail
        try:
            with (self._files.root / _log(agent)).open("rb") as file:
                file.seek(state.offset - length)
                data = file.read()
        except OSError:
            return None
        return data[length:] if _digest(data[:length]) == digest else None

    def _folded(self, agent: str, keep: int) -> _State:
        state = _State(tail=(0, _digest(b"")))
        try:
            data = (self._files.root / _log(agent)).read_bytes()
        except OSError:
            return state
        if not _fold(state, data, keep):
            self._files.lines(_log(agent))  # says which lines are damaged (T21)
        return state

    def _reduced(self, agent: str) -> _State:
        state = self._folded(agent, GOALS_KEPT)
        self._files.compact(_log(agent), [*state.ended.values(), *state.open.values()])
        return self._folded(agent, KEPT)


def _log(agent: str) -> str:
    return f"goals/{agent}/registry.jsonl"


def _snapshot(agent: str) -> str:
    return f"goals/{agent}/snapshot.json"


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]


def _fold(state: _State, data: bytes, keep: int) -> bool:
    """Apply the whole lines of *data*, which follow *state* in the log; returns whether all of them are records."""
    whole = data[: data.rfind(b"\n") + 1]
    good = True
    for each in whole.split(b"\n")[:-1]:
        line = each + b"\n"
        try:
            record = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            state.apply(record, keep)
        else:
            good = False
        state.tail = (len(line), _digest(line))
    state.offset += len(whole)
    return good


def _dumped(state: _State) -> bytes:
    rows = list(state.open.values())
    value = {
        "schema": _SCHEMA, "offset": state.offset, "tail": list(state.tail), "active": rows[0] if rows else None,
        "waiting": rows[1:], "recent": list(state.ended.values()), "last_fallback": state.fallback,
    }  # fmt: skip
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _restored(value: Any) -> _State | None:
    """The state in a snapshot, or None where it is none of ours: then the log is read."""
    try:
        length, digest = value["tail"]
        offset = value["offset"]
        if value["schema"] != _SCHEMA or not 0 <= int(length) <= int(offset):
            return None
        state = _State(int(offset), (int(length), str(digest)), fallback=str(value["last_fallback"]))
        for each in (*value["recent"], value["active"] or {}, *value["waiting"]):
            state.apply(dict(each), KEPT)
    except (KeyError, TypeError, ValueError):
        return None
    return state
