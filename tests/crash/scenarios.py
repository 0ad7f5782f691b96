"""What is struck: the commands of a run's life, of its gate and of its keeping, each with what must be true afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.crash import worlds
from tests.crash.hollow_scenarios import SCENARIOS
from tests.crash.model import Scenario, World

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIX: Final = ("fix", "mend it")
_SETTLED: Final = ("rename runs/<run>/state.json (*settled)", "write INDEX.jsonl (run.*)", "start git update-ref")
_GATE: Final = ("rename runs/<run>/state.json (*)", "write INDEX.jsonl (*)", "start git update-ref")


def _fix(world: World) -> Sequence[str]:
    return [*_FIX, *worlds.program(world, "agent.py")]


def _stop_what_runs(world: World) -> None:
    """The struck command was another one than the run's supervisor, which therefore rightly lives."""
    if worlds.state(world)["status"] == "ACTIVE":
        world.agent("stop", "latest")


def _stopped(world: World) -> list[str]:
    """It was stopped; or its own supervisor found the disk full as well, which then is what ended it, and says so."""
    full = (worlds.state(world)["failure"] or {}).get("kind") == "enospc"
    return [] if full else worlds.is_("STOPPED")(world)


def _collected(world: World) -> list[str]:
    """Nothing that has ended is left, and what waits for review is."""
    names = [worlds.state(world, box.name)["status"] for box in worlds.support.boxes(world.repo)]
    return [] if names == ["REVIEW"] else [f"the runs left are {names}."]


RUNS: Final = (
    Scenario(
        "scout", "a question is answered, and the run settles as DONE", worlds.fresh,
        lambda world: ["scout", "look", *worlds.program(world, "scout.py")],
        expects=("rename runs/<run>", "link active/<id>", "unlink active/<id>", "start guard.py", *_SETTLED),
        again=worlds.goes_on("scout", "look", name="scout.py"), end=worlds.is_("DONE"),
    ),
    Scenario(
        "fix", "a change is made in an airlock, exported, and waits for review", worlds.fresh, _fix,
        expects=("mkdir .git/worktrees/<run>", "start git checkout-index", "rename runs/<run>/changes.patch", "link ids/<id>", *_SETTLED),
        again=worlds.goes_on(*_FIX, name="agent.py"), end=worlds.whole_work,
    ),
    Scenario(
        "fix, check fails", "the agent's work does not pass `check:`, and the run settles as CRASHED", worlds.failing, _fix,
        expects=_SETTLED, truth=worlds.is_("CRASHED", "none"), exits=frozenset({3}),
    ),
    Scenario(
        "fix, stopped", "its operator interrupts the supervisor while the agent is at work", worlds.fresh,
        lambda world: [*_FIX, *worlds.program(world, "stopper.py")],
        expects=_SETTLED, truth=worlds.is_("CRASHED", "STOPPED", "none"), exits=frozenset({2}),
    ),
    Scenario(
        "team", "two agents try one task side by side, and their patches are compared", worlds.fresh,
        lambda world: ["fix", "mend it", "--agents", "2", *worlds.program(world, "agent.py")],
        expects=("rename runs/<run>/patches/*", *_SETTLED),
    ),
    Scenario(
        "detach", "a run is given to a supervisor of its own, and the command returns", worlds.fresh,
        lambda world: ["scout", "look", "--detach", *worlds.program(world, "scout.py")],
        expects=("start *",), truth=worlds.is_("DONE", "CRASHED", "none"),
    ),
    Scenario(
        "resume", "a run that crashed goes on in its airlock, to its review", worlds.crashed,
        lambda _world: ["resume", "last-fail"],
        expects=("link active/<id>", "write INDEX.jsonl (run.resumed)", *_SETTLED),
        again=worlds.goes_on(), end=worlds.whole_work,
    ),
    Scenario(
        "stop", "a command ends a run that another process supervises", worlds.fresh,
        lambda _world: ["stop", "latest"], arm=worlds.waiting, calm=_stop_what_runs,
        expects=("signal a process",), truth=_stopped,
    ),
    Scenario(
        "sweep", "the next command finds a fix whose supervisor was killed, and carries its work over", worlds.abandoned,
        lambda _world: ["status"], expects=("write INDEX.jsonl (run.crashed)", "start git write-tree", *_SETTLED),
        truth=worlds.is_("CRASHED"),
    ),
)  # fmt: skip
"""Commands that begin, end, or bring to its end, a run."""

GATE: Final = (
    Scenario(
        "merge", "what waits for review is merged into the operator's branch and checkout", worlds.fixed,
        worlds.merging(), expects=("link .git/index.lock", "rename .git/index", *_GATE),
        truth=worlds.merged_or_not, again=worlds.once_more(worlds.merging(), "REVIEW"), end=worlds.merged_or_not,
    ),
    Scenario(
        "merge to a branch", "it is merged into a new branch, and the checkout is left alone", worlds.fixed,
        worlds.merging("--branch", "result"), expects=_GATE,
        truth=worlds.on_a_branch, again=worlds.once_more(worlds.merging("--branch", "result"), "REVIEW"),
        end=worlds.is_("MERGED"),
    ),
    Scenario(
        "merge, conflict", "the operator has changed the same lines, and the merge is refused", worlds.conflicting,
        worlds.merging(), expects=("write INDEX.jsonl (gate.conflict)",),
        truth=worlds.is_("REVIEW"), again=worlds.once_more(worlds.merging(), "REVIEW"), end=worlds.is_("REVIEW"),
        exits=frozenset({2}),
    ),
    Scenario(
        "undo", "a merge is taken back", worlds.merged, lambda _world: ["undo", "latest"],
        expects=("link .git/index.lock", "rename .git/index", *_GATE),
        truth=worlds.merged_or_not, again=worlds.once_more(lambda _world: ["undo", "latest"], "MERGED"),
        end=worlds.is_("REVIEW"),
    ),
    Scenario(
        "reject", "what waits for review is refused, and its airlock goes", worlds.fixed,
        lambda _world: ["reject", "latest", "no"], expects=("write INDEX.jsonl (run.rejected)", *_GATE),
        truth=worlds.is_("REVIEW", "REJECTED"),
        again=worlds.once_more(lambda _world: ["reject", "latest", "no"], "REVIEW"), end=worlds.is_("REJECTED"),
    ),
    Scenario(
        "reject, large airlock", "what is in it is removed by a process of its own", worlds.built,
        lambda _world: ["reject", "latest", "no"], expects=("start sh",), truth=worlds.is_("REVIEW", "REJECTED"),
        again=worlds.once_more(lambda _world: ["reject", "latest", "no"], "REVIEW"), end=worlds.is_("REJECTED"),
    ),
    Scenario(
        "append to a torn ledger", "the ledger ends in half a line when a run is rejected", worlds.torn,
        lambda _world: ["reject", "latest", "no"], expects=("truncate INDEX.jsonl", "rename quarantine/*"),
        truth=worlds.is_("REVIEW", "REJECTED"),
        again=worlds.once_more(lambda _world: ["reject", "latest", "no"], "REVIEW"), end=worlds.is_("REJECTED"),
    ),
    Scenario(
        "merge cut off", "the next command finds a merge that was killed when the branch had moved", worlds.fixed,
        lambda _world: ["status"],
        arm=lambda world: worlds.cut(world, "rename .git/index", *worlds.merging()(world)),
        expects=("rename .git/index", "write INDEX.jsonl (run.merged)"), truth=worlds.merged_or_not,
        again=worlds.once_more(worlds.merging(), "REVIEW"), end=worlds.is_("MERGED"),
    ),
)  # fmt: skip
"""Commands of the human gate."""

_REFUSE: Final = worlds.of_whole("reject", "neither")
_UNDO: Final = worlds.of_whole("undo")

PICKING: Final = (
    Scenario(
        "pick", "of what two agents made one patch is merged, and the other is refused", worlds.compared, worlds.picking,
        expects=("rename .git/index", "write INDEX.jsonl (run.rejected)", "write INDEX.jsonl (run.merged)"),
        truth=worlds.of_one_mind, again=worlds.unless_whole("MERGED", worlds.picking), end=worlds.wholly("MERGED"),
    ),
    Scenario(
        "undo a pick", "the merge of one of two agents is taken back", worlds.picked, _UNDO,
        expects=("write INDEX.jsonl (run.undone)",),
        truth=worlds.of_one_mind, again=worlds.unless_whole("REVIEW", _UNDO), end=worlds.wholly("REVIEW"),
    ),
    Scenario(
        "reject a team", "what two agents made is refused", worlds.compared, _REFUSE,
        expects=("write INDEX.jsonl (run.rejected)",),
        truth=worlds.of_one_mind, again=worlds.unless_whole("REJECTED", _REFUSE), end=worlds.wholly("REJECTED"),
    ),
)  # fmt: skip
"""A human's word on what several agents made."""

KEEPING: Final = (
    Scenario(
        "first use", "the data folder and agent.yaml are made", worlds.fresh, lambda _world: ["init"],
        expects=("mkdir .agents", "link agent.yaml"), brings=frozenset({"?? agent.yaml"}),
        again=lambda _world: ["init"],
        end=lambda world: [] if (world.repo / "agent.yaml").stat().st_size else ["agent.yaml is empty."],
    ),
    Scenario(
        "gc", "finished boxes and their airlocks are removed", worlds.old, lambda _world: ["gc", "--keep-runs", "0"],
        expects=("write INDEX.jsonl (run.collected)", "rename staging/*", "unlinkat *"),
        again=lambda _world: ["gc", "--keep-runs", "0"], end=_collected,
    ),
)  # fmt: skip
"""Commands that keep house."""


ALL: Final = (*RUNS, *GATE, *PICKING, *KEEPING, *SCENARIOS)
"""Every scenario of the matrix."""


def named(name: str) -> Scenario:
    """The scenario called *name*; raises KeyError."""
    return {each.name: each for each in ALL}[name]
