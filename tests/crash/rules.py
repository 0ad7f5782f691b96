"""What has to be true of every world, whatever was struck: of its runs, its ledger, its airlocks, its checkout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from agents import audit, settle
from agents.errors import BoxError
from agents.model import Status, is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from agents.context import Context
    from agents.model import RunMeta, RunState
    from tests.crash.model import Before, Scenario, World

ONCE: Final = frozenset({"run.finished", "run.crashed", "run.stopped", "run.rejected", "run.collected"})
"""What happens to one attempt of a run once, and so is told once."""


def standing(scenario: Scenario, world: World, before: Before) -> list[str]:
    """What is wrong in *world* after the next command: sentences, each led by the name of the rule that is broken."""
    context = world.context()
    rules: dict[str, Callable[[], Iterator[str]]] = {
        "runs": lambda: _runs(context, world, before),
        "ledger": lambda: _ledger(context, world, before),
        "dashboard": lambda: _dashboard(context),
        "airlocks": lambda: _airlocks(context, world),
        "checkout": lambda: _checkout(scenario, world, before),
    }
    return [f"{name}: {sentence}" for name, rule in rules.items() for sentence in rule()]


def _runs(context: Context, world: World, before: Before) -> Iterator[str]:
    """Every box can be read and has come to an end, and none is lost."""
    names = context.store.names()
    for name in names:
        try:
            meta, state = context.store.meta(name), context.store.load(name)
        except BoxError as why:
            yield f"{name} cannot be read: {why.message}"
            continue
        if state.status in {Status.ACTIVE, Status.MERGING}:
            yield f"{name} is {state.status}, and its supervisor is dead."
        else:
            yield from (f"{name}: {each}" for each in _run(context, world, meta, state))
    collected = {entry["run"] for entry in context.journal.entries() if entry["event"] == "run.collected"}
    yield from (f"{name} is lost." for name in before.runs - set(names) - collected)
    latest = context.layout.latest
    if latest.is_symlink() and not latest.exists() and latest.readlink().name not in collected:
        yield "latest leads nowhere."


def _run(context: Context, world: World, meta: RunMeta, state: RunState) -> Iterator[str]:
    """The end of a run is borne out by its evidence, and the ledger knows of it."""
    box = context.store.box(meta.run_name)
    known = context.journal.last(meta.run_name).get("status")
    told = [entry["event"] for entry in context.journal.story(meta.run_name)]
    # A box on its way out is told of before it goes, and goes with the next `gc`.
    if known != str(state.status) and not ("run.collected" in told and is_terminal(state.status)):
        yield f"it is {state.status}, and the ledger says {known}."
    if state.patch and settle.hash_file(box, "changes.patch") != state.patch.get("sha256"):
        yield "its changes.patch is not the one that its state tells of."
    if state.status is Status.DONE and not box.report.exists():
        yield "it is DONE without a report."
    if state.status is Status.REVIEW and not state.workers:
        yield from _reviewable(world, meta, box.patch, state.patch)


def _reviewable(world: World, meta: RunMeta, file: Path, patch: Mapping[str, Any] | None) -> Iterator[str]:
    """The patch of a run that waits for review gives, on its base, the tree that its state names."""
    if not patch:
        yield "it waits for review, and there is nothing to review."
        return
    scratch = world.path / "scratch.index"
    env = {**world.environment(), "GIT_INDEX_FILE": str(scratch)}
    world.run(["git", "read-tree", meta.repo_sha_start], env=env)
    applied = world.run(["git", "apply", "--cached", str(file)], env=env)
    tree = world.run(["git", "write-tree"], env=env).stdout.strip()
    scratch.unlink(missing_ok=True)
    if applied.returncode or tree != patch.get("tree"):
        yield f"its patch gives the tree {tree} and not {patch.get('tree')}. {applied.stderr}".rstrip()


def _ledger(context: Context, _world: World, before: Before) -> Iterator[str]:
    """What was in the ledger is in it still, its chain and its seals hold, and nothing is told twice."""
    path = context.layout.ledger
    now = path.read_bytes() if path.exists() else b""
    if not now.startswith(before.ledger[: before.ledger.rfind(b"\n") + 1]):
        yield "entries are lost."
    found = audit.audit(context)
    yield from (f"verify: {flaw.kind}: {flaw.message}" for flaw in found.flaws)
    if found.torn:
        yield f"{found.torn} bytes of a torn end are left."
    entries = [json.loads(line) for line in now.splitlines(keepends=True) if line.endswith(b"\n")]
    told = [(each["run"], each["event"], each["facts"].get("attempt")) for each in entries if each["event"] in ONCE]
    yield from (
        f"{each} is told {told.count(each)} times." for each in sorted(set(told), key=str) if told.count(each) > 1
    )


def _dashboard(context: Context) -> Iterator[str]:
    """INDEX.md shows what the ledger says."""
    path = context.layout.dashboard
    if context.journal.lines():
        shown = path.read_bytes() if path.exists() else b""
        context.journal.redraw()
        if shown != path.read_bytes():
            yield "INDEX.md is not what the ledger says."


def _airlocks(context: Context, world: World) -> Iterator[str]:
    """Every airlock is registered, every registration has its airlock, and each belongs to a run."""
    folder = context.layout.trees
    trees = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    listed = world.git("worktree", "list", "--porcelain").splitlines()
    registered = {line.rpartition("/")[2] for line in listed if line.startswith("worktree") and "/agent_box/" in line}
    runs = set(context.store.names())
    if trees != registered:
        yield f"{sorted(trees)} are there, and {sorted(registered)} are registered."
    if not registered <= runs:
        yield f"{sorted(registered - runs)} belong to no run."
    if any(line.startswith("prunable") for line in listed):
        yield "a registration has lost its folder."


def _checkout(scenario: Scenario, world: World, before: Before) -> Iterator[str]:
    """What the operator had not committed is as it was, no lock of ours is on his index, and his objects are sound."""
    now, then = set(world.porcelain().splitlines()), set(before.porcelain.splitlines())
    if now - then - scenario.brings or then - now:
        yield f"git status says {sorted(now)} instead of {sorted(then)}."
    if (world.repo / ".git" / "index.lock").exists():
        yield "the index is still locked."
    done = world.run(["git", "fsck", "--strict", "--no-dangling", "--connectivity-only"])
    if done.returncode:
        yield f"git fsck: {done.stdout}{done.stderr}".strip()
