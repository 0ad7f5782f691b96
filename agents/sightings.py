"""What one file tells of the agents: bytes of the ledger, a stream or a state file in, values out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from agents import ledger, redact
from agents.engines.stream_json import STREAM_JSON
from agents.events import Fact, ToolCall, ToolResult, decode
from agents.tally import share
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Final

STEPS: Final = 6
"""Steps kept of an agent's run, the newest."""
STRESSORS: Final = 5
_TEXT: Final = 300
"""Characters of one text that are shown at most."""
_TOLD: Final = ("goal.", "suffering.", "lesson.", "capability.", "request.", "run.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A tool call of an agent."""

    name: str
    argument: str = ""
    """The telling one."""
    ok: bool | None = None
    """None while its answer is awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One agent as it stands now; what nobody has told is empty."""

    agent: str
    load: float | None = None
    """0 to 1."""
    stressors: tuple[tuple[str, float], ...] = ()
    """Type and severity, the worst first."""
    goal: str = ""
    progress: float | None = None
    """0 to 1."""
    run: str = ""
    """Short id of the latest run."""
    alive: bool = False
    """Whether that run is under way."""
    steps: tuple[Step, ...] = ()
    """Oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """One fact of the ledger."""

    time: str
    """ISO 8601, UTC."""
    event: str
    agent: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that `agent watch` shows, at the instant *at* (seconds since the epoch)."""

    at: float
    agents: tuple[Seen, ...]
    running: int = 0
    pending: int = 0
    """Requests that wait for the operator."""
    news: tuple[News, ...] = ()
    """Oldest first."""


def _lines(data: bytes, cut: bool) -> list[bytes]:
    """The whole lines of *data*, whose first is a rest where it was *cut*."""
    whole = data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]
    return whole[1:] if cut else whole


def entries(data: bytes, cut: bool) -> tuple[Mapping[str, Any], ...]:
    """The entries in the ledger's bytes *data*; with *cut* their beginning is missing."""
    return tuple(entry for line in _lines(data, cut) if (entry := ledger.read(line)))


def told(entry: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The event of *entry* and its facts: an agent's own words stand one level deeper than the supervisor's."""
    facts = entry.get("facts")
    facts = facts if isinstance(facts, Mapping) else {}
    said = facts.get("said")
    return str(entry.get("event") or ""), said if isinstance(said, Mapping) else facts


def news(entry: Mapping[str, Any]) -> News | None:
    """What is shown of *entry*, None for one that tells nothing of agents or runs."""
    event, facts = told(entry)
    if not event.startswith(_TOLD):
        return None
    words = (facts.get(name) for name in ("objective", "stressor", "name", "text", "request_id", "task", "reason"))
    text = next((word for word in words if isinstance(word, str) and word), "")
    shown = f"{_measure(event, facts)} {text}".strip()
    return News(time=clean(entry.get("time")), event=clean(event), agent=clean(facts.get("agent")), text=clean(shown))


_MEASURED: Final = (("goal.", "progress"), ("suffering.", "load"), ("suffering.", "severity"))
"""What says how far a fact has come, by its family."""


def _measure(event: str, facts: Mapping[str, Any]) -> str:
    """The number or word that matters most in *facts*; empty where there is none."""
    if event.startswith("run."):
        status = facts.get("status")
        return status if isinstance(status, str) else ""
    shares = (share(facts.get(name)) for family, name in _MEASURED if event.startswith(family))
    return next((f"{each:.2f}" for each in shares if each is not None), "")


def distinct(told: Sequence[News]) -> tuple[News, ...]:
    """*told* without what is repeated at once: of several steps towards one goal only the last is news."""
    last: dict[int, News] = {}
    group = 0
    for before, one in zip([None, *told], told, strict=False):
        group += before is None or _subject(before) != _subject(one)
        last[group] = one
    return tuple(last.values())


def _subject(one: News) -> tuple[str, str, str]:
    return one.agent, one.event, one.text.lstrip("0123456789. ")


def stream(data: bytes, cut: bool) -> tuple[tuple[Step, ...], tuple[Fact, ...]]:
    """The last steps in the stream *data*, and the facts it holds."""
    steps: dict[str, Step] = {}
    facts = []
    for number, line in enumerate(_lines(data, cut)):
        event = decode(line, STREAM_JSON)
        if isinstance(event, ToolCall):
            name = event.id or str(number)
            steps[name] = Step(name=clean(event.name), argument=clean(event.argument))
        elif isinstance(event, ToolResult) and event.id in steps:
            before = steps[event.id]
            steps[event.id] = Step(name=before.name, argument=before.argument, ok=not event.is_error)
        elif isinstance(event, Fact):
            facts.append(event)
    return tuple(steps.values())[-STEPS:], tuple(facts)


def suffering(data: bytes, cut: bool) -> tuple[float, tuple[tuple[str, float], ...]] | None:
    """Load and stressors by the file of seed 004: the sum of the severities, at most 1 (F9)."""
    if cut:
        return None
    given = json.loads(data)["active_stressors"]
    found = [
        (clean(one.get("type")), share(one.get("severity")))
        for one in given
        if isinstance(one, Mapping) and not one.get("resolved")
    ]
    known = sorted(((name, hurt) for name, hurt in found if hurt is not None), key=lambda one: (-one[1], one[0]))
    return min(1.0, math.fsum(hurt for _, hurt in known)), tuple(known[:STRESSORS])


def snapshot(data: bytes, cut: bool) -> tuple[str, float | None] | None:
    """The active goal in the snapshot of an agent's registry, as far as it can be found there."""
    goal = None if cut else next(_active_goals(json.loads(data)), None)
    if goal is None:
        return None
    metrics = goal.get("metrics")
    progress = metrics.get("progress") if isinstance(metrics, Mapping) else goal.get("progress")
    return clean(goal["objective"]), share(progress)


def _active_goals(value: Any, depth: int = 5) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping) and value.get("status") == "active" and isinstance(value.get("objective"), str):
        yield value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for each in inner if depth else ():
        yield from _active_goals(each, depth - 1)


def request_ids(data: bytes, cut: bool) -> frozenset[str]:
    """The requests that the lines of *data* speak of, by id."""
    rows = (_object(line) for line in _lines(data, cut))
    return frozenset(row["request_id"] for row in rows if isinstance(row.get("request_id"), str))


def _object(line: bytes) -> Mapping[str, Any]:
    """Return the JSON object on *line*, an empty one where it is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, Mapping) else {}


def agent_of(data: bytes, cut: bool) -> str:
    """The agent that an envelope names; its one line is enough, and YAML costs more than a look may."""
    del cut
    line = next((each for each in data.split(b"\n") if each.startswith(b"agent:")), b"")
    return line.partition(b":")[2].strip().decode("utf-8", "replace")


def clean(value: object) -> str:
    """*value* as one line without secrets and without anything that could drive a terminal."""
    # Bounded first: whoever writes a novel into a fact must not make every look slow.
    text = str(value if value is not None else "")[: 10 * _TEXT]
    return redact.visible(redact.redact(text)[:_TEXT])
