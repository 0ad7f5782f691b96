"""The one place that knows where every file of the box lies (design, section 4)."""

from __future__ import annotations

# The name alone tells type checkers; importing `typing` would cost `status` 4 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Final

DATA: Final = ".agents"
RUNS: Final = "runs"
ACTIVE: Final = "active"
IDS: Final = "ids"
POINTERS: Final = "pointers"
LATEST: Final = "latest"
LEDGER: Final = "INDEX.jsonl"
DASHBOARD: Final = "INDEX.md"
STATE: Final = "state.json"
OWNER_LOCK: Final = "private/owner.lock"
COMMANDS: Final = ".claude/commands"
TREES: Final = "agent_box/trees"
STAGED: Final = "staging"
STALE: Final = 600.0  # seconds after which what a start has left without a run counts as a dead one's
STAGING: Final = ".new-"

# What the box writes into the operator's repository, kept out of sight through .git/info/exclude (T121).
EXCLUDED: Final = ("/.agents", "/agent_box", "/.claude/commands/run_*/")

# The files of a box whose hashes a finishing ledger entry seals, in the order in which `show` names them.
EVIDENCE: Final = (
    "meta.yaml",
    "report.md",
    "plan.md",
    "changes.patch",
    "raw/stream.jsonl",
    "raw/stderr.log",
    "raw/launch.json",
)


class Box:
    """Paths inside one run's folder."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """The run name, which is the folder's name."""
        return self.path.name

    @property
    def meta(self) -> Path:
        """Request and envelope; written once."""
        return self.path / "meta.yaml"

    @property
    def state(self) -> Path:
        """The supervisor's truth."""
        return self.path / STATE

    @property
    def report(self) -> Path:
        """The agent's final answer, redacted."""
        return self.path / "report.md"

    @property
    def plan(self) -> Path:
        """The final answer of a plan run."""
        return self.path / "plan.md"

    @property
    def stream(self) -> Path:
        """Every byte of the agent's stdout."""
        return self.path / "raw" / "stream.jsonl"

    @property
    def stderr(self) -> Path:
        """The agent's stderr, capped."""
        return self.path / "raw" / "stderr.log"

    @property
    def launch(self) -> Path:
        """How the agent was launched: argv, prompt, names (not values) of its environment (T154)."""
        return self.path / "raw" / "launch.json"

    @property
    def patch(self) -> Path:
        """What the agent changed, as ``git apply`` takes it: a view of the tree that the state names."""
        return self.path / "changes.patch"

    @property
    def patches(self) -> Path:
        """The patches of several agents that worked on one task."""
        return self.path / "patches"

    @property
    def verified(self) -> Path:
        """What the `verify:` commands said of the merged result."""
        return self.path / "verify.json"

    @property
    def private(self) -> Path:
        """Locks, clean room and what else no agent sees."""
        return self.path / "private"

    @property
    def landing(self) -> Path:
        """The journal of a merge and the files that it stages."""
        return self.private / "landing"

    @property
    def room(self) -> Path:
        """The git directory through which the supervisor looks at the airlock."""
        return self.private / "room.git"

    @property
    def bench(self) -> Path:
        """The git directory of one look of the gate."""
        return self.private / "gate.git"

    @property
    def home(self) -> Path:
        """The HOME that the agent gets: kept for resume, because some programs keep their sessions there."""
        return self.private / "home"

    @property
    def spool(self) -> Path:
        """Where an engine that wants a file for its stdout writes."""
        return self.path / "private" / "spool"

    @property
    def reserve(self) -> Path:
        """Disk space that is given back when the run is over, so that its end can be written on a full disk (C17)."""
        return self.path / "private" / "reserve"

    @property
    def outbox(self) -> Path:
        """The RUN_DIR that the agent is told of."""
        return self.path / "outbox"

    @property
    def owner_lock(self) -> Path:
        """Held by the supervisor for the life of the run: that is how anyone knows it lives."""
        return self.path / OWNER_LOCK

    @property
    def state_lock(self) -> Path:
        """Guards every read-modify-write of state.json."""
        return self.path / "private" / "state.lock"


class Layout:
    """Paths of the data folder of one repository; *root* is the top of its work tree."""

    __slots__ = ("root",)

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def data(self) -> Path:
        """``.agents``."""
        return self.root / DATA

    @property
    def runs(self) -> Path:
        """All boxes."""
        return self.data / RUNS

    @property
    def active(self) -> Path:
        """One small file per ACTIVE run, so that a sweep costs O(active)."""
        return self.data / ACTIVE

    @property
    def ids(self) -> Path:
        """One small file per short id ever given, so that ids are exclusive and found at once."""
        return self.data / IDS

    @property
    def staging(self) -> Path:
        """What is being made or removed: looked through by every sweep, so it lies apart from the boxes."""
        return self.data / STAGED

    @property
    def pointers(self) -> Path:
        """``last-fail`` and its like."""
        return self.data / POINTERS

    @property
    def latest(self) -> Path:
        """Link to the newest box."""
        return self.data / LATEST

    @property
    def ledger(self) -> Path:
        """What happened, in order."""
        return self.data / LEDGER

    @property
    def dashboard(self) -> Path:
        """The ledger's picture."""
        return self.data / DASHBOARD

    @property
    def quarantine(self) -> Path:
        """What was found damaged and set aside; nothing is ever deleted for being damaged."""
        return self.data / "quarantine"

    @property
    def ledger_lock(self) -> Path:
        """Serialises appends to the ledger."""
        return self.data / "locks" / "ledger.lock"

    @property
    def anchor_lock(self) -> Path:
        """Serialises the keeping of the ledger's head in the repository's ref."""
        return self.data / "locks" / "anchor.lock"

    @property
    def dashboard_lock(self) -> Path:
        """Serialises the drawing of the dashboard; its date is the moment at which the last drawing began."""
        return self.data / "locks" / "dashboard.lock"

    @property
    def repo_lock(self) -> Path:
        """Serialises changes to the repository's own files (exclude list, command folders)."""
        return self.data / "locks" / "repo.lock"

    @property
    def memory(self) -> Path:
        """What the hollow agents' environment remembers; of all agents only hollow's own process sees it."""
        return self.data / "hollow"

    @property
    def search_index(self) -> Path:
        """The reflex mind's index."""
        return self.memory / "index"

    def box(self, name: str) -> Box:
        """The box of the run called *name*."""
        return Box(self.runs / name)

    @property
    def trees(self) -> Path:
        """All airlocks."""
        return self.root / TREES

    def tree(self, name: str) -> Path:
        """The airlock of the run called *name* (seed 003, phase 1, step 3)."""
        return self.trees / name

    @property
    def merge_lock(self) -> Path:
        """Serialises merges."""
        return self.data / "locks" / "merge.lock"

    @property
    def live_lock(self) -> Path:
        """Held by `agent live`: the agents of a repository live once."""
        return self.data / "locks" / "live.lock"

    def agent_lock(self, agent: str) -> Path:
        """Held for the time of a cycle: an agent lives one at a time."""
        return self.data / "locks" / f"agent-{agent}.lock"

    def commands(self, short_id: str) -> Path:
        """The run's slash commands (seed 003, phase 1, step 4)."""
        return self.root / COMMANDS / f"run_{short_id}"
