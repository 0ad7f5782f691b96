"""A soak: three agents live side by side in processes of their own, which are killed at any moment and begin again."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import resource
import select
import signal
import sqlite3
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hollow.forge import Forge
from hollow.hands.registry import BUILT_IN
from hollow.living.cycle import turn
from hollow.living.entry import own_folders
from hollow.living.life import Life
from hollow.memory.memory import Memory
from hollow.stream import Talk
from hollow.substrate.model import AGENTS, GoalStatus
from hollow.substrate.settings import Settings
from hollow.toolbox.workspace import workspace
from tests.support.living import FILES, START, steps, wants
from tests.support.repos import git, make_repo
from tests.support.thinkers import PEERS, ThinkerOf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hollow.mind import Question

SECONDS = 900.0
"""What passes on the agents' clock between two cycles: some days in a soak, so that what hurts grows."""
RULES = (
    "Verify that a folder exists before listing it.", "Check the exit code of every command.",
    "Confirm spelling of identifiers inside quotations.", "Avoid repeating identical searches twice.",
    "Read licence headers before copying anything.", "Never cite numbers without measuring them.",
    "Prefer short paragraphs over long tables.", "Use absolute dates rather than weekdays.",
)  # fmt: skip
"""What a check may teach; no two share their words, so none is taken for another."""
_MOMENT = 0.1
"""Seconds of which a part passes before a kill: some cycle is anywhere then."""
NOUNS = ("wick", "flame", "oil", "glass", "handle", "smoke", "shade", "burner", "hook", "valve", "mantle", "chimney")


class Script:
    """The mind of one agent: what it answers follows from *seed*, the agent and the number of the cycle alone."""

    def __init__(self, agent: str, seed: int) -> None:
        self._agent, self._seed = agent, seed

    def thinker(self, number: int) -> ThinkerOf:
        """The mind for cycle *number*."""
        chance = random.Random(f"{self._seed} {self._agent} {number}")
        answers = {"existence": self._existence, "plan": self._plan, "semantic": self._verdict}

        def answer(question: Question) -> Any:
            return answers.get(question.purpose, self._agrees)(chance, number)

        return ThinkerOf(answer)

    def _existence(self, chance: random.Random, number: int) -> Any:
        if chance.random() < 0.05:
            return "no json at all"
        goal = f"Describe the {chance.choice(NOUNS)} and the {chance.choice(NOUNS)} of src/app.py, part {number}"
        asks = [f"What does the {chance.choice(NOUNS)} cost?"]
        hurts = [{"type": f"fear_of_{chance.choice(NOUNS)}", "description": "it may go out", "condition": "it burns"}]
        felt = {"new_stressors": hurts if chance.random() < 0.01 else [], "resolved": []}
        return wants(goal, reasoning=f"Cycle {number}.", new_open_questions=asks, suffering_assessment=felt)

    def _plan(self, chance: random.Random, number: int) -> Any:
        noun, peer = chance.choice(NOUNS), PEERS[self._agent]
        text = f"Page {number} of {self._agent}, on the {noun}.\n" * 12
        menu: list[tuple[str, dict[str, Any]]] = [
            ("memory_set", {"key": f"key-{number % 20}", "value": number}),
            ("agent_message", {"to": peer, "message": f"{self._agent} {number}: the {noun} is described."}),
            ("invoke_claude", {"description": f"Write the module of the {noun}", "spec": f"The {noun}, in full."}),
            ("fs_read", {"path": "README.md", "offset": number % 3}),
            ("fs_read", {"path": f"missing/{number}.md"}),
        ]
        page = ("fs_write", {"path": f"workspace/{self._agent}/page-{number % 20}.md", "content": text})
        return steps(page, *chance.sample(menu, chance.choice((0, 1, 1, 2))))

    def _verdict(self, chance: random.Random, _number: int) -> Any:
        lesson = chance.choice(RULES) if chance.random() < 0.5 else ""
        return {"accomplished": chance.random() < 0.8, "reason": "So it seems.", "lesson": lesson}

    def _agrees(self, _chance: random.Random, _number: int) -> Any:
        return {"accurate": True, "reason": "It is so."}


# --- The process that lives -------------------------------------------------------------------------------------------


def live_on(folder: Path, agent: str, numbers: range, seed: int, out: Any) -> None:
    """Have *agent* live the cycles *numbers* in *folder*; what it says, and what each cycle took, goes to *out*."""
    repo = folder / agent
    base = git(repo, "rev-parse", "HEAD")
    script = Script(agent, seed)
    for number in numbers:
        before = _spent()
        mind = script.thinker(number)
        mind.asked = _Nothing()
        turn(_life(folder / "hollow", repo, base, agent, number, mind, out))
        spent = {what: now - before[what] for what, now in _spent().items()}
        took = {"type": "took", "number": number, "rss": _rss(), **spent}
        out.write(json.dumps(took).encode() + b"\n")
        out.flush()


class _Nothing(list[Any]):
    """A list that keeps nothing: what a mind was asked would weigh more than the process."""

    def append(self, _item: Any) -> None:
        """Forget it."""


def _life(root: Path, repo: Path, base: str, agent: str, number: int, mind: Any, out: Any) -> Life:
    talk = Talk(out, session_id="soak", model="test")
    memory = Memory(root, warn=functools.partial(talk.fact, agent=agent))
    own_folders(repo, agent)
    at = START + SECONDS * number
    no_cell: Callable[[bool], None] = lambda _writing: None  # noqa: E731 - a value like the others
    forge = Forge(memory.shelf, memory.broken, no_cell, lambda: at, fact=talk.fact,
                  builtins={name: each.description for name, each in BUILT_IN.items()})  # fmt: skip
    return Life(
        agent=agent, cycle=f"{agent}-{number}", memory=memory, thinker=mind, settings=Settings(), talk=talk,
        now=lambda: at, cell=no_cell, place=workspace(repo), forge=forge, base=base,
    )  # fmt: skip


def _spent() -> dict[str, float]:
    """What this process has taken so far: CPU seconds (with those it waited for), bytes read, and calls to read and write."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    counted = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    cpu = time.process_time() + children.ru_utime + children.ru_stime
    return {"cpu": cpu, "read": int(counted["rchar"]), "calls": int(counted["syscr"]) + int(counted["syscw"])}


def _rss() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- What was acknowledged --------------------------------------------------------------------------------------------


@dataclass
class Acks:
    """What one agent's stream has said to be done and was not looked up yet; only what cannot be taken back."""

    agent: str
    goals: dict[str, str] = field(default_factory=dict)
    """Id to the last word on it."""
    progress: dict[str, float] = field(default_factory=dict)
    requests: set[str] = field(default_factory=set)
    letters: set[str] = field(default_factory=set)
    keys: dict[str, int] = field(default_factory=dict)
    pains: set[str] = field(default_factory=set)
    calls: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)

    def hear(self, event: dict[str, Any]) -> None:
        """Take in one *event* of the stream."""
        if event.get("subtype") == "hollow":
            self._fact(event["kind"], event)
        elif event["type"] == "assistant" and event["message"]["content"][0]["type"] == "tool_use":
            block = event["message"]["content"][0]
            self.calls[block["id"]] = (block["name"], block["input"])
        elif event["type"] == "user":
            block = event["message"]["content"][0]
            name, given = self.calls.pop(block["tool_use_id"])
            if not block["is_error"]:
                self._done(name, given)

    def _fact(self, kind: str, facts: dict[str, Any]) -> None:
        if kind in {"goal.created", "goal.completed", "goal.abandoned"}:
            self.goals[facts["goal_id"]] = kind
        elif kind == "goal.progressed":
            self.progress[facts["goal_id"]] = facts["progress"]
        elif kind == "request.submitted":
            self.requests.add(facts["request_id"])
        elif kind == "suffering.added":
            self.pains.add(facts["stressor"])

    def _done(self, name: str, given: dict[str, Any]) -> None:
        if name == "memory_set":
            self.keys[given["key"]] = given["value"]
        elif name == "agent_message":
            self.letters.add(given["message"])

    def lost(self, memory: Memory) -> list[str]:
        """What of it *memory* does not know, a phrase each."""
        found = [*self._lost_goals(memory)]
        found += [f"request {name}" for name in self.requests if memory.requests.entry(name) is None]
        box = memory.files.lines(f"messages/{PEERS[self.agent]}/inbox.jsonl")
        found += [f"message {text}" for text in self.letters - {each["message"] for each in box}]
        kept = {key: memory.keys.get(self.agent, key) for key in memory.keys.names(self.agent)}
        found += [f"key {key}" for key, value in self.keys.items() if kept.get(key, -1) < value]
        felt = memory.sufferings.load(self.agent)[0]
        known = {each.type for each in felt.active} | {each.stressor.type for each in felt.history}
        found += [f"stressor {name}" for name in self.pains - known]
        return [f"{self.agent}: {each}" for each in found]

    def _lost_goals(self, memory: Memory) -> Iterator[str]:
        ends = {"goal.completed": GoalStatus.COMPLETED, "goal.abandoned": GoalStatus.ABANDONED}
        for goal_id, kind in self.goals.items():
            goal = memory.goals.get(self.agent, goal_id)
            if goal is None or (kind in ends and goal.status is not ends[kind]):
                yield f"{kind} of {goal_id}: {goal and goal.status}"
        for goal_id, progress in self.progress.items():
            goal = memory.goals.get(self.agent, goal_id)
            # A failed check takes it back to 0.85; nothing else does here.
            if goal is None or goal.progress / 1000 < min(progress, 0.85):
                yield f"progress {progress} of {goal_id}"


# --- The soak ---------------------------------------------------------------------------------------------------------


@dataclass
class _Child:
    """A process in which one agent lives."""

    pid: int
    pipe: int
    rest: bytes = b""


class Soak:
    """*each* cycles of every agent in *folder*, with kills at moments that follow from *seed*.

    *steady* is the agent whose process is not killed any more after its first *spared* cycles: it is weighed and timed.
    """

    def __init__(self, folder: Path, *, each: int, seed: int, steady: str = "cedar", spared: int = 60) -> None:
        self.folder, self.each, self.seed, self.steady, self.spared = folder, each, seed, steady, spared
        for agent in AGENTS:
            make_repo(folder / agent, {**FILES})
        self.root = folder / "hollow"
        self.kills = 0
        self.lost: list[str] = []
        self.kinds: Counter[str] = Counter()
        self.rules: set[str] = set()
        """Lessons that were said to be believed."""
        self.took: dict[str, list[dict[str, Any]]] = {agent: [] for agent in AGENTS}
        """What each cycle took, by agent."""
        self._acks = {agent: Acks(agent) for agent in AGENTS}
        self._next = dict.fromkeys(AGENTS, 1)
        self._children: dict[str, _Child] = {}
        self._memory = Memory(self.root)

    def run(self, pause: tuple[int, int]) -> None:
        """Have them all live to the end, with a kill every *pause* cycles (least, most), at a moment within one."""
        chance = random.Random(self.seed)
        try:
            for agent in AGENTS:
                self._begin(agent)
            kill = chance.randint(*pause)
            while self._children:
                self._read(1.0)
                if self.cycles >= kill:
                    time.sleep(chance.uniform(0.0, _MOMENT))
                    self._kill(chance)
                    kill = self.cycles + chance.randint(*pause)
        finally:
            for child in self._children.values():
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
        self._look_up()

    @property
    def cycles(self) -> int:
        """Cycles that came to their end."""
        return sum(map(len, self.took.values()))

    # --- Children -----------------------------------------------------------------------------------------------------

    def _begin(self, agent: str) -> None:
        # The cycle that was cut off is never taken up again: a new one begins, as with the supervisor.
        left = self.each - len(self.took[agent])
        numbers = range(self._next[agent], self._next[agent] + left)
        ours, theirs = os.pipe()
        with warnings.catch_warnings():
            # Other threads of the test's process hold nothing that the child uses.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            os.close(ours)
            _as_child(functools.partial(live_on, self.folder, agent, numbers, self.seed), theirs)
        os.close(theirs)
        self._children[agent] = _Child(pid, ours)

    def _kill(self, chance: random.Random) -> None:
        spared = self.steady if len(self.took[self.steady]) >= self.spared else ""
        agents = sorted(agent for agent in self._children if agent != spared)
        if not agents:
            return
        agent = chance.choice(agents)
        os.kill(self._children[agent].pid, signal.SIGKILL)
        self.kills += 1
        while agent in self._children:
            self._read(1.0)
        self._look_up()
        if len(self.took[agent]) < self.each:
            self._begin(agent)

    def _read(self, wait: float) -> None:
        """Take in what the children say; one that has said its last is over."""
        by_pipe = {child.pipe: agent for agent, child in self._children.items()}
        for pipe in select.select(list(by_pipe), [], [], wait)[0]:
            agent = by_pipe[pipe]
            child = self._children[agent]
            data = os.read(pipe, 1 << 16)
            *lines, child.rest = (child.rest + data).split(b"\n")
            for line in lines:
                self._hear(agent, json.loads(line))
            if not data:
                self._over(agent, child)

    def _over(self, agent: str, child: _Child) -> None:
        del self._children[agent]
        os.close(child.pipe)
        status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        self._next[agent] += 1
        self._acks[agent].calls.clear()
        assert status in {0, -signal.SIGKILL}, f"{agent} ended with {status}: {child.rest.decode()}"

    def _hear(self, agent: str, event: dict[str, Any]) -> None:
        if event["type"] == "took":
            self.took[agent].append(event)
            self._next[agent] = event["number"] + 1
            return
        self._acks[agent].hear(event)
        kind = event.get("kind", "")
        self.kinds[kind] += 1
        if kind == "lesson.promoted":
            self.rules.add(event["text"])
        elif kind == "lesson.dropped":
            self.rules.discard(event["text"])

    def _look_up(self) -> None:
        for agent, acks in self._acks.items():
            self.lost += acks.lost(self._memory)
            # What was looked up is done with; a call that is not over yet keeps its name.
            self._acks[agent] = Acks(agent, calls=acks.calls)


def _as_child(act: Callable[[Any], None], pipe: int) -> None:
    """Do *act* and end this process, whatever happens: nothing of the test's own may run in it."""
    code = 1
    with os.fdopen(pipe, "wb") as out:
        try:
            act(out)
            code = 0
        except BaseException:  # noqa: BLE001 - told to the parent as its last words, without an end of line
            out.write(traceback.format_exc().replace("\n", " | ").encode())
        with contextlib.suppress(OSError):
            out.flush()
        os._exit(code)


# --- What lies on the disk --------------------------------------------------------------------------------------------


def unreadable(root: Path) -> list[str]:
    """Files below *root* that cannot be read as what their names say, and those that should not be there."""
    found = [path for path in root.rglob("*") if path.is_file() and not _is_leftover(path) and not _fine(path)]
    return sorted(str(path.relative_to(root)) for path in found)


def leftovers(root: Path) -> list[Path]:
    """Files below *root* that a process was about to put in place when it was killed; nobody reads them."""
    return [path for path in root.rglob("*") if _is_leftover(path)]


def _is_leftover(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(".tmp")


def _fine(path: Path) -> bool:
    name = path.name.removesuffix(".last")
    try:
        if name.endswith(".json"):
            json.loads(path.read_bytes())
        elif name.endswith(".jsonl"):
            data = path.read_bytes()
            assert data.endswith(b"\n")
            for line in data.splitlines():
                json.loads(line)
        elif name.endswith(".db"):
            with contextlib.closing(sqlite3.connect(path)) as index:
                assert index.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        else:
            return name in {".lock", "last_outcome.txt"} or name.endswith((".md", "-wal", "-shm", "-journal"))
    except (ValueError, AssertionError, sqlite3.Error):
        return False
    return True
