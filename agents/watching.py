"""Looks at what the agents are at: the ledger's tail, the streams of their runs, the state files; it writes nothing."""

from __future__ import annotations

import os

from agents import files, naming, sightings, tally
from agents.errors import BoxError
from agents.policy import AGENTS
from agents.sightings import Scene, Seen, Step
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any, Final

    from agents.layout import Layout
    from agents.store import Store

LEDGER_TAIL: Final = 256 * 1024
"""Bytes of the ledger that are looked at: a look costs the same whatever its history."""
STREAM_TAIL: Final = 128 * 1024
STATE: Final = 1 << 20
"""Bytes of one state file."""
NEWS: Final = 40
"""Facts kept of the ledger, the newest."""

_OPEN: Final = frozenset({"goal.created", "goal.progressed", "goal.gate_failed", "goal.withdrawn", "goal.reopened"})
_CLOSED: Final = frozenset({"goal.completed", "goal.abandoned"})


@dataclass(slots=True)
class _Draft:
    """What is told of one agent in the course of a look."""

    goal: str = ""
    progress: float | None = None
    run: str = ""
    """Name of its latest run."""
    load: float | None = None
    known: bool = False
    """Whether anything was told of its goal."""

    def hear(self, event: str, facts: Mapping[str, Any]) -> None:
        """Take in the fact *event*; later ones win."""
        if event in _CLOSED:
            self.goal, self.progress, self.known = "", None, True
        elif event in _OPEN and isinstance(facts.get("objective"), str):
            self.goal, self.known = sightings.clean(facts["objective"]), True
            self.progress = tally.share(facts.get("progress"))
        if event.startswith("suffering."):
            self.load = tally.share(facts.get("load")) if "load" in facts else self.load


@dataclass(slots=True)
class Watcher:
    """Looks at the data folder of *layout* again and again, and reads only what has changed; it writes nothing."""

    layout: Layout
    store: Store
    _kept: dict[str, tuple[tuple[int, ...], Any]] = field(default_factory=dict)

    def look(self, now: float) -> Scene:
        """Return the scene at *now*; a file that is gone, damaged or half written costs what it would have told."""
        drafts = {agent: _Draft() for agent in AGENTS}
        entries = self._read(self.layout.ledger, LEDGER_TAIL, sightings.entries) or ()
        runs: dict[str, str] = {}
        for entry in entries:
            _hear(drafts, runs, entry)
        alive = self._alive(drafts)
        seen = [self._seen(agent, draft, alive) for agent, draft in drafts.items()]
        # More than are kept, because some are told twice and most entries are no news.
        news = [told for entry in entries[-4 * NEWS :] if (told := sightings.news(entry))]
        return Scene(
            at=now,
            agents=tuple(seen),
            running=len(self.store.active()),
            pending=self._pending(),
            news=sightings.distinct(news)[-NEWS:],
        )

    def _alive(self, drafts: Mapping[str, _Draft]) -> frozenset[str]:
        """Names of the runs under way, and each agent's latest run: what its marker says is newer than the ledger."""
        names = frozenset(filter(None, self.store.active().values()))
        for name in sorted(names):
            agent = self._read(self.layout.box(name).meta, STATE, sightings.agent_of)
            # An envelope may name anybody: it was written for a run of any kind.
            if agent in drafts:
                drafts[agent].run = name
        return names

    def _seen(self, agent: str, draft: _Draft, alive: frozenset[str]) -> Seen:
        steps: tuple[Step, ...] = ()
        if draft.run:
            steps, facts = self._read(self.layout.box(draft.run).stream, STREAM_TAIL, sightings.stream) or ((), ())
            for fact in facts if draft.run in alive else ():
                # What a run under way has said is not in the ledger yet.
                draft.hear(fact.kind, fact.facts)
        pain = self.layout.memory / "identity" / agent / "suffering.json"
        load, stressors = self._read(pain, STATE, sightings.suffering) or (None, ())
        # The ledger is newer than the snapshot wherever it says anything.
        if not draft.known:
            snapshot = self._read(self.layout.memory / "goals" / agent / "snapshot.json", STATE, sightings.snapshot)
            draft.goal, draft.progress = snapshot or ("", None)
        return Seen(
            agent=agent, load=load if load is not None else draft.load, stressors=stressors, goal=draft.goal,
            progress=draft.progress, run=_short(draft.run), alive=draft.run in alive, steps=steps,
        )  # fmt: skip

    def _pending(self) -> int:
        """Requests without an answer."""
        asked, answered = (
            self._read(self.layout.memory / name, STATE, sightings.request_ids) or frozenset()
            for name in ("claude_requests.jsonl", "claude_responses.jsonl")
        )
        return len(asked - answered)

    def _read(self, path: Path, limit: int, parse: Callable[[bytes, bool], Any]) -> Any:
        """What *parse* makes of the last *limit* bytes of *path*, None without it; it is told whether they are cut."""
        try:
            handle = files.open_regular(path)
        except OSError:
            return None
        try:
            facts = os.fstat(handle)
            # Of the open file, not of the path: what is replaced in between is another file.
            mark = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
            kept = self._kept.get(str(path))
            if kept and kept[0] == mark:
                return kept[1]
            start = max(0, facts.st_size - limit)
            value = _parsed(parse, os.pread(handle, limit, start), cut=start > 0)
        except OSError:
            return None
        finally:
            os.close(handle)
        if len(self._kept) > _MOST_KEPT:
            self._kept.clear()
        self._kept[str(path)] = (mark, value)
        return value


_MOST_KEPT: Final = 64
"""Files remembered; runs come and go."""


def _parsed(parse: Callable[[bytes, bool], Any], data: bytes, *, cut: bool) -> Any:
    """What *parse* makes of *data*; None where it is of no shape that we know: it may be another version's."""
    try:
        return parse(data, cut)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, BoxError):
        return None


def _hear(drafts: Mapping[str, _Draft], runs: dict[str, str], entry: Mapping[str, Any]) -> None:
    """Let *entry* tell of its agent; *runs* remembers whose a run is, because an agent may name another one."""
    event, facts = sightings.told(entry)
    run = str(entry.get("run") or "")
    agent = runs.get(run) or str(facts.get("agent"))
    draft = drafts.get(agent)
    if draft is None:
        return
    if event == "run.started" and naming.parse(run):
        draft.run = run
        runs[run] = agent
    draft.hear(event, facts)


def _short(run: str) -> str:
    parsed = naming.parse(run) if run else None
    return parsed.short_id if parsed else ""
