"""The box on disk: claim, load, save, markers and pointers; every step leaves what the next start can read."""

from __future__ import annotations

import contextlib
import os

from agents import files, locks, metafile, naming
from agents.errors import HostError, OperatorError, Tampered
from agents.layout import LATEST, RUNS, Layout
from agents.lockorder import Rank
from agents.model import RunMeta, RunState
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Final

    from agents.layout import Box

META_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of meta.yaml or state.json that are read at most; a task may be a megabyte."""


class Store:
    """Boxes of one repository; *layout* says where they are."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def prepare(self) -> None:
        """Make the folders that every command needs; raises HostError where it may not."""
        with files.reported("write to .agents"):
            here = self.layout
            for folder in (
                here.data,
                here.runs,
                here.active,
                here.ids,
                here.staging,
                here.pointers,
                here.search_index,
                here.ledger_lock.parent,
            ):
                files.make_folder(folder)

    def reserve(self, short_id: str, name: str) -> bool:
        """Take *short_id* for the run *name*, once and for all time; returns whether it was free (T119)."""
        with files.reported("reserve a run id"):
            return files.create(self.layout.ids / short_id, name.encode())

    def claim(self, meta: RunMeta, state: RunState, extra: Mapping[str, bytes]) -> locks.Lock:
        """Make the box of *meta*, whole or not at all; returns its owner lock, held.

        It is built in a staging folder that is renamed when everything in it is on disk. The marker in ``active/``
        comes first, so that no ACTIVE run is ever without one. *extra* are further files, relative to the box.
        """
        name = meta.run_name
        staging = self.layout.staging / os.urandom(8).hex()
        with files.reported("make a box"):
            try:
                lock = _build(self.layout, staging, meta, state, extra)
                files.create(self.layout.active / meta.short_id, name.encode())
                staging.rename(self.layout.runs / name)
                files.sync_folder(self.layout.runs)
            except BaseException:
                files.remove_tree(staging)
                (self.layout.active / meta.short_id).unlink(missing_ok=True)
                raise
        return lock

    def own(self, name: str, timeout: float = 0) -> locks.Lock | None:
        """The owner lock of the run *name*, held, or None where its owner lives (waiting *timeout* seconds).

        Raises OperatorError where there is no such run (any more).
        """
        lock = locks.Lock(self.box(name).owner_lock, Rank.OWNER)
        return lock if self._take(name, lock, timeout) else None

    def _take(self, name: str, lock: locks.Lock, timeout: float = -1) -> bool:
        """Take *lock*, which lies in the box of the run *name*; raises OperatorError where there is no box."""
        try:
            with contextlib.suppress(FileNotFoundError):
                return lock.acquire(timeout)
            # An agent without a wall may have removed the folder. Of a box that was collected nothing is made anew.
            self.box(name).private.mkdir(mode=files.DIR_MODE, exist_ok=True)
            return lock.acquire(timeout)
        except (FileNotFoundError, NotADirectoryError) as why:
            raise _gone(name) from why

    def box(self, name: str) -> Box:
        """The box of the run *name*."""
        return self.layout.box(name)

    def load(self, name: str) -> RunState:
        """State of the run *name*; raises OperatorError where there is none, Tampered where it cannot be read."""
        data = files.read_capped(self.box(name).state, META_LIMIT)
        if data is None:
            raise _gone(name)
        return RunState.from_json(data)

    def meta(self, name: str) -> RunMeta:
        """Envelope of the run *name*; raises Tampered where it cannot be read."""
        data = files.read_capped(self.box(name).meta, META_LIMIT)
        if data is None:
            raise Tampered(f"meta.yaml of {name} is gone.", "Type: ./agent verify")
        return RunMeta.from_dict(metafile.load(data, name))

    def update(self, name: str, change: Callable[[RunState], RunState], *, durable: bool = True) -> RunState:
        """Read, change and write the state of the run *name* under its lock; returns what was written."""
        box = self.box(name)
        with self._alone(name):
            state = self.load(name)
            changed = change(state)
            if changed == state:
                return state
            written = records.replace(changed, revision=state.revision + 1)
            files.write(box.state, written.to_json(), durable=durable, ordered=True)
        return written

    @contextlib.contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Hold the lock on the state of the run *name*; raises OperatorError where there is no box."""
        lock = locks.Lock(self.box(name).state_lock, Rank.STATE)
        self._take(name, lock)
        try:
            yield
        finally:
            lock.release()

    def restore(self, meta: RunMeta, state: RunState) -> None:
        """Write *meta* and *state* anew where an agent has removed or spoiled them; the rest of the box stays."""
        box = self.box(meta.run_name)
        for folder in (box.path, box.path / "raw", box.path / "private"):
            files.make_folder(folder)
        with self._alone(meta.run_name):
            files.write(box.meta, metafile.dump(meta.to_dict()))
            files.write(box.state, records.replace(state, revision=state.revision + 1).to_json())

    def active(self) -> dict[str, str]:
        """Short id to run name of every run that may be ACTIVE."""
        try:
            # A hidden name is a marker that is being made.
            markers = sorted(path for path in self.layout.active.iterdir() if not path.name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        found = {path.name: files.read_capped(path, 300) for path in markers}
        named = {short_id: text.decode("utf-8", "replace") for short_id, text in found.items() if text is not None}
        # What a marker says is used as a path: only a run's own name will do, under its own id.
        return {short_id: name for short_id, name in named.items() if not name or _id_of(name) == short_id}

    def deactivate(self, short_id: str) -> None:
        """Remove the marker of a run that has settled."""
        (self.layout.active / short_id).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Names of all runs, oldest first; costs a look at every one."""
        try:
            found = os.listdir(self.layout.runs)  # noqa: PTH208 - a hundred thousand names, no Path objects
        except FileNotFoundError:
            return []
        return sorted(name for name in found if naming.parse(name))

    def point(self, pointer: str, name: str) -> None:
        """Make ``latest`` or a pointer lead to the run *name*."""
        link = self.layout.latest if pointer == LATEST else self.layout.pointers / pointer
        depth = f"{RUNS}/{name}" if pointer == LATEST else f"../{RUNS}/{name}"
        files.point(link, depth)

    def pointers(self) -> dict[str, str]:
        """Every pointer that leads to a run, ``latest`` included, by name."""
        links = [self.layout.latest]
        with contextlib.suppress(OSError):
            links += sorted(path for path in self.layout.pointers.iterdir() if not path.name.startswith("."))
        return {link.name: name for link in links if (name := self._target(link))}

    def _target(self, link: Path) -> str | None:
        """Name of the run that *link* leads to; a link that leads anywhere else is not followed."""
        try:
            target = link.readlink()
        except OSError:
            return None
        inside = target.parent.name == RUNS and naming.parse(target.name)
        return target.name if inside and self.box(target.name).state.exists() else None

    def resolve(self, target: str) -> str:
        """Run name for what the operator typed: ``latest``, a pointer, a name, a short id or a prefix (T146).

        The common ones cost a look at one file; only a prefix reads the list of runs. Raises OperatorError.
        """
        pointers = self.pointers()
        if target in pointers:
            return pointers[target]
        if naming.parse(target) and self.box(target).state.exists():
            return target
        if target.isalnum() and (given := files.read_capped(self.layout.ids / target, 300)):
            name = given.decode("utf-8", "replace")
            if naming.parse(name) and self.box(name).state.exists():
                return name
        return naming.resolve(target, self.names(), pointers)


def _gone(name: str) -> OperatorError:
    return OperatorError(f"There is no run {name}.", "Type: ./agent list")


def _id_of(name: str) -> str | None:
    parsed = naming.parse(name)
    return parsed.short_id if parsed else None


def _build(layout: Layout, staging: Path, meta: RunMeta, state: RunState, extra: Mapping[str, bytes]) -> locks.Lock:
    box = type(layout.box("x"))(staging)
    for folder in (staging, staging / "raw", staging / "private", box.outbox):
        files.make_folder(folder)
    lock = locks.Lock(box.owner_lock, Rank.OWNER)
    if not lock.acquire(timeout=0):
        raise HostError("A new box is already owned by somebody.", "Type: ./agent doctor")
    contents = {"meta.yaml": metafile.dump(meta.to_dict()), "state.json": state.to_json(), **extra}
    for relative, data in contents.items():
        files.write(staging / relative, data, durable=False)
    for relative in contents:
        files.sync_file(staging / relative)
    for folder in (staging / "raw", staging / "private", staging):
        files.sync_folder(folder)
    return lock
