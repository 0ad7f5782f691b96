"""The run's slash commands in the checkout: there while the run lives, gone after any end (seed 003, phase 1)."""

from __future__ import annotations

import contextlib
import os
import re

from agents import commands, files, locks
from agents.errors import HostError
from agents.layout import COMMANDS, STAGING
from agents.lockorder import Rank
from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Final

    from agents.commands import CommandFile
    from agents.layout import Layout

_FOLDER: Final = late(r"run_([0-9a-f]{4,64})(?:\.new-[0-9a-f]+)?")
# Also one that a killed start has left half made.
_FILE: Final = late(r"\.?(scout|plan|summarize|merge|apply)_([0-9a-f]{4,64})\.md(?:\.[0-9a-f]+\.tmp)?")


@contextlib.contextmanager
def published(layout: Layout, short_id: str, set_: Iterable[CommandFile]) -> Iterator[Path]:
    """Have the commands of a run in their folder for the time of the ``with``; OperatorError over budget (T130)."""
    target = layout.commands(short_id)
    with files.reported("write the run's slash commands"), locks.Lock(layout.repo_lock, Rank.REPO):
        _inside(layout, target.parent)
        commands.check_budget(in_use(layout), tuple(set_))
        # Built under a name that git is told to ignore, so that a kill in between leaves nothing in the operator's
        # sight; and on the same disk (.agents may be on another one).
        staging = target.with_name(f"{target.name}{STAGING}{os.urandom(8).hex()}")
        try:
            files.make_folder(staging)
            for each in set_:
                files.write(staging / each.filename, each.text.encode(), durable=False)
            remove(layout, short_id)
            staging.rename(target)
        except BaseException:
            files.remove_tree(staging)
            raise
    try:
        yield target
    finally:
        remove(layout, short_id)


def _inside(layout: Layout, folder: Path) -> None:
    """Make *folder*, refusing one that a link leads out of the repository: nothing is made out there either."""
    if not folder.resolve().is_relative_to(layout.root.resolve()):
        raise HostError(f"{COMMANDS} leads out of the repository.", f"Look at it: ls -ld .claude {COMMANDS}")
    folder.mkdir(parents=True, exist_ok=True)


def in_use(layout: Layout) -> int:
    """Characters of the command budget that live runs have taken (names and descriptions of what a model may call)."""
    taken = 0
    for path in _published_files(layout):
        text = (files.read_capped(path, 64 * 1024) or b"").decode("utf-8", "replace")
        described = re.search(r"^description: *(.*)$", text, re.MULTILINE)
        if described and "disable-model-invocation: true" not in text:
            taken += len(path.stem) + len(described[1].strip('"'))
    return taken


def _published_files(layout: Layout) -> Iterator[Path]:
    for folder in sorted((layout.root / COMMANDS).glob("run_*")):
        # Another run may end, and take its folder away, between the two looks.
        with contextlib.suppress(OSError):
            yield from sorted(path for path in folder.iterdir() if path.suffix == ".md")


def remove(layout: Layout, short_id: str) -> None:
    """Remove a run's commands: only files by the names that we give, then the folder if nothing else is in it (K03)."""
    _clear(layout.commands(short_id), short_id)


def _clear(folder: Path, short_id: str) -> None:
    if folder.is_symlink() or not folder.is_dir():
        return
    with contextlib.suppress(OSError):
        for path in list(folder.iterdir()):
            match = _FILE.fullmatch(path.name)
            if match and match[2] == short_id:
                path.unlink()
        folder.rmdir()


def collect(layout: Layout, active: Iterable[str]) -> list[str]:
    """Remove the commands of every run of ours that is not *active*; returns their short ids (T142)."""
    parent, live, gone = layout.root / COMMANDS, set(active), []
    for path in sorted(parent.iterdir()) if parent.is_dir() else []:
        match = _FOLDER.fullmatch(path.name)
        # The id must have been given by us: a folder of that form may still be somebody's own. And a run that was
        # started after *active* was read has its marker by the time that its commands are there.
        ours = match and match[1] not in live and (layout.ids / match[1]).is_file()
        if match and ours and not (layout.active / match[1]).exists():
            _clear(path, match[1])
            gone.append(match[1])
    return gone
