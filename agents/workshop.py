"""The airlock's part in a run: made ready before the agent, checked after it, and its work carried into the box."""

from __future__ import annotations

import contextlib

from agents import airlock, checks, commons, enclosure, environment, files, furnish, policy, procs, settle
from agents.engines.base import BASE_ENV
from agents.errors import BoxError, HostError
from agents.redact import visible
from essentials import records
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any, Final

    from agents.airlock import Airlock, Export
    from agents.checks import Checked
    from agents.context import Context
    from agents.furnish import Furnished
    from agents.layout import Box
    from agents.model import RunMeta
    from agents.plan import RunPlan

LOG_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of what one command prints that are kept."""
_HANDED: Final = "handed"
"""File of the clean room that says that an agent may have worked in the airlock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A run's airlock, furnished."""

    airlock: Airlock
    furnished: Furnished | None
    """What was put into it before its agent came."""
    linked: tuple[Path, ...] = ()
    """Folders of the checkout that it has links to."""
    notes: tuple[str, ...] = field(default=())


def ready(context: Context, made: RunPlan, stop: Callable[[], bool]) -> Bench:
    """The airlock of *made*: opened at the first start, found again at a resume (T143).

    *stop* says whether the operator has asked to stop. Raises HostError where it cannot be made or set up.
    """
    box = context.store.box(made.meta.run_name)
    known = _found_again(context, made, box)
    if known is not None:
        return Bench(airlock=known, furnished=furnish.recall(box.room), linked=enclosure.linked(context))
    opened = airlock.open_airlock(context.repo, context.layout, box, made.meta.airlock_base)
    # One that was resumed after its airlock had gone begins where its patch left off.
    if made.state.attempt > 1:
        _restore(opened, box, made.meta)
    linked = enclosure.linked(context)
    given = _furnish(context, opened)
    bench = Bench(airlock=opened, furnished=given, linked=linked, notes=(*opened.notes, *given.notes))
    # A cycle is over before a tool chain is set up, and what its agent may change needs none.
    setup = () if made.meta.run_type == policy.CYCLE else context.config.setup
    for command in setup:
        if not stop():
            _set_up(context, made, bench, command, stop)
    # What stands in the airlock before its agent comes is not the agent's work. Looking costs, so only if need be.
    touched = given.paths or setup
    bench = records.replace(bench, furnished=given.record(opened)) if touched else bench
    if not stop():
        files.write(box.room / _HANDED, procs.boot_id().encode())
    return bench


def _found_again(context: Context, made: RunPlan, box: Box) -> Airlock | None:
    """The airlock that an earlier attempt at *made* left whole, or None."""
    known = _existing(context, made.meta) if made.state.attempt > 1 else None
    if known and not _is_handed(box):
        # Half furnished, its setup cut short or failed: the agent gets one that is set up as a whole.
        close(context, box.name, None, force=True)
        return None
    return known


def _is_handed(box: Box) -> bool:
    return (box.room / _HANDED).exists()


def _existing(context: Context, meta: RunMeta) -> Airlock | None:
    box = context.store.box(meta.run_name)
    opened = airlock.existing(context.repo, context.layout, box, meta.airlock_base)
    if opened is not None:
        _refilled(opened, box)
    return opened


def _refilled(opened: Airlock, box: Box) -> None:
    """Once after the machine went down: files of *opened* that a power cut has emptied are as in its base again.

    They had not come to the disk, and would be taken for the agent's work. What the agent itself had emptied cannot be
    told from that; it is as in the base too.
    """
    handed, now = files.read_capped(box.room / _HANDED, _BOOT_CAP), procs.boot_id().encode()
    if handed and handed != now:
        airlock.refill(opened)
        files.write(box.room / _HANDED, now)


_BOOT_CAP: Final = 100


def _restore(opened: Airlock, box: Box, meta: RunMeta) -> None:
    patch = files.read_capped(box.patch, settle.PATCH_LIMIT)
    if not patch:
        return
    tree = opened.room.apply(meta.repo_sha_start, patch)
    if opened.base != meta.repo_sha_start:
        tree = opened.room.with_changes(opened.base, opened.room.changes(meta.repo_sha_start, tree))
    for path in opened.path.iterdir():
        # Files of the base would be in the way of those that the patch has put in their place.
        if path.name != ".git":
            files.remove_tree(path)
    opened.room.seed(tree)
    opened.room.checkout(opened.path)
    opened.room.seed(opened.base)


def _furnish(context: Context, opened: Airlock) -> Furnished:
    include = files.read_capped(context.layout.root / ".worktreeinclude", 256 * 1024)
    return furnish.furnish(
        context.layout.root, opened.path, copy=context.config.copy, link=context.config.link,
        include_text=include.decode("utf-8", "replace") if include else None,
    )  # fmt: skip


def _set_up(context: Context, made: RunPlan, bench: Bench, command: str, stop: Callable[[], bool]) -> None:
    done = _command(context, made, bench, command, "setup", context.config.setup_timeout, stop)
    if done.exit_code != 0 and not done.stopped:
        how = "took too long" if done.timed_out else f"failed (exit code {done.exit_code})"
        raise HostError(f"The setup command “{command[:80]}” {how}.", "See raw/setup.log in the box.")


def _command(
    context: Context, made: RunPlan, bench: Bench, command: str, name: str, timeout: float, stop: Callable[[], bool]
) -> Checked:
    box = context.store.box(made.meta.run_name)
    cell = enclosure.command_cell(context, made.state.isolation, made.root, box.private, bench.linked)
    return checks.run_command(
        command, cell, command_environment(context, cell.write[-1]), timeout=timeout,
        log=box.path / "raw" / f"{name}.log", limit=LOG_LIMIT, stop=stop,
    )  # fmt: skip


def command_environment(context: Context, home: Path) -> dict[str, str]:
    """The environment of the repository's own commands: what any program needs, and .env.test (T151).

    *home* is the folder that their cell gives them in the private folder of a box. They carry the mark of its run:
    what they run is the agent's work, which must neither pass the gate nor outlive its supervisor (M01, P03).
    """
    text = files.read_capped(context.layout.root / ".env.test", settle.ENV_TEST_LIMIT)
    fixed = {
        "HOME": str(home),
        "CI": "true",
        "GIT_CONFIG_NOSYSTEM": "1",
        procs.RUN_MARK: procs.mark(home.parent.parent),
    }
    given = environment.allowed(context.environ, [name for name in BASE_ENV if name != "TMPDIR"])
    return {**environment.parse((text or b"").decode("utf-8", "replace")), **given, **fixed}


def checked(context: Context, made: RunPlan, bench: Bench, stop: Callable[[], bool]) -> str | None:
    """Run the `check:` commands in the airlock; returns a sentence about the first that fails, or None (T137).

    Of a cycle there is nothing to check but what the merge of its goal will check: agents write beside the code.
    """
    if made.meta.run_type == policy.CYCLE:
        return None
    for command in context.config.check:
        context.say(f"check: {command}")
        done = _command(context, made, bench, command, "check", context.config.verify_timeout, stop)
        if done.stopped:
            return None
        if done.exit_code != 0:
            how = "took too long" if done.timed_out else f"failed with exit code {done.exit_code}"
            return f"The check “{command[:80]}” {how}; see raw/check.log."
    return None


def export(
    context: Context, meta: RunMeta, bench: Bench | None = None, *, goal: str | None = None
) -> dict[str, Any] | None:
    """Carry what the agent changed into changes.patch; returns what the state says of it.

    *goal* is what a cycle has worked on.
    None without an airlock, and where no agent has had it yet. Can be repeated: the same airlock gives the same patch.
    Raises BoxError where it cannot be carried over.
    """
    box = context.store.box(meta.run_name)
    opened = bench.airlock if bench else _existing(context, meta)
    if opened is None:
        return None
    if not _is_handed(box):
        # What stands in it is the setup's, not an agent's; noted, so that the airlock can go with its run.
        furnish.Furnished().record(opened)
        return None
    given = bench.furnished if bench else furnish.recall(box.room)
    if meta.run_type == policy.CYCLE:
        cycle = commons.carry(context.repo, opened, meta, goal, given)
        strays = [visible(path.decode("utf-8", "replace"))[:_LONGEST_PATH] for path in cycle.strays[:_MOST_STRAYS]]
        carried, further = cycle.export, {"airlock": cycle.airlock, **({"strays": strays} if strays else {})}
    else:
        carried, further = airlock.export(opened, given=given), {}
    # What makes the state last that tells of it makes the names beside it last too.
    files.write(box.patch, carried.patch, durable=False, ordered=True)
    return patch_facts(carried, meta.repo_sha_start, settle.hash_file(box, "changes.patch")) | further


_MOST_STRAYS: Final = 20
_LONGEST_PATH: Final = 200


def patch_facts(carried: Export, base: str, digest: str | None) -> dict[str, Any]:
    """What state and ledger say of a patch."""
    return {
        "sha256": digest, "tree": carried.tree, "base": base, "files": carried.files, "added": carried.added,
        "removed": carried.removed, "binary": carried.binary, "findings": list(carried.findings),
    }  # fmt: skip


def salvage(context: Context, meta: RunMeta, *, goal: str | None = None) -> tuple[dict[str, Any] | None, str]:
    """Like :func:`export` for a run whose supervisor is dead; a failure is a sentence, not the end of the sweep."""
    try:
        return export(context, meta, goal=goal), ""
    except (BoxError, OSError) as why:
        return None, why.message if isinstance(why, BoxError) else f"its airlock cannot be read: {why.strerror}"


def close(context: Context, name: str, tree: str | None, *, force: bool = False) -> None:
    """Remove the airlock of the run *name*; raises HostError where it holds work that *tree* does not."""
    with contextlib.suppress(FileNotFoundError):
        airlock.close(context.repo, context.layout, name, exported_tree=tree, force=force)
