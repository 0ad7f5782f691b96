"""The `verify:` commands on the result of a merge, in a tree that is thrown away, also with the tests as they were."""

from __future__ import annotations

import contextlib
import json

from agents import files, plan
from agents.errors import HostError
from agents.redact import redact, visible
from agents.risk import Flag, touching
from essentials import records
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Final

    from agents.checks import Checked
    from agents.cleanroom import Change, CleanRoom
    from agents.context import Context

    Runner = Callable[[str, Path], Checked]
    """Runs a shell command in a folder, under the sandbox, and says how it ended."""

RESULT: Final = "result"
BASE: Final = "base tests"
_TAIL: Final = 4000
"""Characters of a command's last words that are kept."""
_INCLUDE_LIMIT: Final = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """How one command ended."""

    command: str
    tree: str
    """Which files it saw: ``result``, or ``base tests`` for the result with the touched tests as they were."""
    exit_code: int | None
    """None where it did not end by itself."""
    seconds: float
    timed_out: bool
    tail: str
    """Its last words, without secrets and control characters."""

    @property
    def passed(self) -> bool:
        """Whether the command says that all is well."""
        return self.exit_code == 0 and not self.timed_out

    def __str__(self) -> str:
        """One line: the command and how it ended."""
        end = "ran out of time" if self.timed_out else f"exit code {self.exit_code}"
        return f"{self.command} ({end}, {self.seconds:.1f} s)"


def bare(_folder: Path) -> None:
    """The tree to verify as it was committed, with nothing laid beside it."""


def verify(
    room: CleanRoom,
    tree: str,
    changes: Sequence[Change],
    commands: Sequence[str],
    folder: Path,
    run: Runner,
    furnish: Callable[[Path], None] = bare,
) -> tuple[Verified, ...]:
    """Run *commands* on *tree*, the result of *changes*, in *folder*, which is made for it and gone afterwards.

    *furnish* lays beside its files what no commit holds. Where the changes touch tests, what passes is run again with
    those tests as they were before: an agent may have made a test agree with its mistake (design, section 7). Raises
    HostError where the files cannot be written.
    """
    if not commands:
        return ()

    def everything(seen: str, name: str) -> tuple[Verified, ...]:
        """How all commands end on the tree *seen*, told as *name*."""
        with _thrown_away(room, seen, folder):
            furnish(folder)
            return tuple(_told(run(command, folder), name) for command in commands)

    for above in (folder.parent, folder.parent.parent):
        if above.is_symlink():
            raise HostError(f"{above} is a link.", f"Remove it: rm {above}")
    first = everything(tree, RESULT)
    # Where the result itself fails, old tests have nothing to add.
    tests = touching(changes, "tests")
    if not tests or not all(each.passed for each in first):
        return first
    before = room.with_entries(tree, [(change.old_mode, change.old_id, change.path) for change in tests])
    return (*first, *everything(before, BASE))


@contextlib.contextmanager
def _thrown_away(room: CleanRoom, tree: str, folder: Path) -> Iterator[None]:
    """Have the files of *tree* in *folder*; commands share it, as builds come before tests."""
    files.remove_tree(folder)
    try:
        with files.reported("make the tree to verify"):
            files.make_folder(folder)
            # Byte for byte and without filters: what is verified is what is committed.
            room.seed(tree)
            room.checkout(folder)
        yield
    finally:
        files.remove_tree(folder)


def _told(checked: Checked, tree: str) -> Verified:
    # Cut before it is looked through: what a command prints may be long and odd.
    tail = visible(redact(checked.tail[-_TAIL:]), newlines=True)
    return Verified(
        command=checked.command, tree=tree, exit_code=checked.exit_code, seconds=checked.seconds,
        timed_out=checked.timed_out, tail=tail,
    )  # fmt: skip


def failures(found: Iterable[Verified]) -> tuple[Verified, ...]:
    """What failed on the result itself: it stops a merge."""
    return tuple(each for each in found if each.tree == RESULT and not each.passed)


def flags(found: Sequence[Verified]) -> tuple[Flag, ...]:
    """What the operator is told of commands that failed.

    With the tests as they were a failure is no proof: a change of behaviour changes its tests. It is shown.
    """
    told = {
        "verify": ("These commands fail on the result.", failures(found)),
        "base tests": (
            "These commands pass only with the tests that it changed.",
            [each for each in found if each.tree == BASE and not each.passed],
        ),
    }
    return tuple(
        Flag(kind, message, tuple(visible(str(each)) for each in failed))
        for kind, (message, failed) in told.items()
        if failed
    )


def record(path: Path, tree: str, found: Sequence[Verified]) -> None:
    """Write how the commands ended on the result *tree* to *path* (verify.json)."""
    results = [{**records.asdict(each), "passed": each.passed} for each in found]
    with files.reported("write verify.json"):
        files.write(path, json.dumps({"tree": tree, "commands": results}, indent=1).encode() + b"\n")


def in_cell(context: Context, name: str) -> Runner:
    """Runs commands for the run *name* under the isolation that this machine offers: it is the agent's code (M18)."""
    # Loaded where a command is to be run: most merges verify nothing, and the sandbox is a large module.
    from agents import checks, enclosure, workshop

    offer, box = enclosure.offered(context), context.store.box(name)
    linked, had = enclosure.linked(context), context.store.load(name).isolation
    plan.check_isolation(context.config, offer.level)
    if plan.LEVELS.index(offer.level) < plan.LEVELS.index(had):
        raise HostError(
            f"Its agent had isolation “{had}”; the verify commands would run its work with “{offer.level}”.",
            "See ./agent doctor; it can still be merged to a branch of its own where no `verify:` is set.",
        )

    def run(command: str, folder: Path) -> Checked:
        """How *command* ends in *folder*, behind the wall that the agent had."""
        context.say(f"verify: {command}")
        cell = enclosure.command_cell(context, offer.level, folder, box.path / "private", linked)
        return checks.run_command(
            command, cell, workshop.command_environment(context, cell.write[-1]), timeout=context.config.verify_timeout,
            log=box.path / "raw" / "verify.log", limit=workshop.LOG_LIMIT,
        )  # fmt: skip

    return run


def furnisher(context: Context) -> Callable[[Path], None]:
    """Lays into a tree what the airlocks of *context* get as well: copied files and linked folders."""
    from agents import furnish

    def lay(folder: Path) -> None:
        """Lay them into *folder*."""
        include = files.read_capped(context.layout.root / ".worktreeinclude", _INCLUDE_LIMIT)
        text = include.decode("utf-8", "replace") if include else None
        given = context.config
        furnish.furnish(context.layout.root, folder, copy=given.copy, link=given.link, include_text=text)

    return lay
