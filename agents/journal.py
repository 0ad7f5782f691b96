"""The ledger on disk: append under a lock, repair a torn tail, keep the head elsewhere too, draw the dashboard."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agents import files, git, ledger, views
from agents.errors import Tampered
from agents.ledger import Head
from agents.portraits import Portraits
from agents.times import iso

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents.git import Repository
    from agents.layout import Layout
    from agents.times import Clock

TAIL: Final = 256 * 1024
"""Bytes of the ledger that the dashboard is drawn from: its cost does not depend on history."""
ROWS: Final = 30


class Journal:
    """The ledger of one repository; *state_home* is the user's state folder (outside every airlock), or None."""

    def __init__(self, layout: Layout, repo: Repository, clock: Clock, state_home: Path | None) -> None:
        self._layout = layout
        self._repo = repo
        self._clock = clock
        self._portraits = Portraits(layout)
        self.head_file = state_home / "agent-box" / _repo_id(repo) / "head.json" if state_home else None

    def append(self, event: str, run: str | None, facts: Mapping[str, Any], *, anchor: bool = False) -> None:
        """Add one entry, durably; *anchor* also keeps the head in the repository's ref (two git processes).

        Raises HostError where it cannot be written: a run whose end cannot be recorded has not ended well.
        """
        with files.reported("write the ledger"), files.Lock(self._layout.ledger_lock):
            self._repair()
            before = self._head()
            vouched = self._vouched(before, in_git=anchor)
            line, head = ledger.link(before, time=iso(self._clock.wall()), event=event, run=run, facts=_bounded(facts))
            self._write(line)
            if vouched:
                self._keep(head, in_git=anchor)
            self._draw()

    def _write(self, line: bytes) -> None:
        handle = files.open_regular(self._layout.ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            size = os.fstat(handle).st_size
            try:
                files.write_all(handle, line)
            except OSError:
                # A full disk takes a part of the line: take it back, so that the next append finds a whole tail.
                os.ftruncate(handle, size)
                raise
            os.fsync(handle)
        finally:
            os.close(handle)
        if not size:
            files.sync_folder(self._layout.data)

    def _repair(self) -> None:
        """Set a torn last line aside; called under the lock, before every append (C07, C15)."""
        data = self._tail(lines=1)
        cut = ledger.torn(data)
        if not cut:
            return
        files.make_folder(self._layout.quarantine)
        stamp = iso(self._clock.wall()).replace(":", "")
        end = self._layout.ledger.stat().st_size - cut
        files.write(self._layout.quarantine / f"ledger-tail-{stamp}-{end}", data[len(data) - cut :])
        os.truncate(self._layout.ledger, end)

    def _tail(self, lines: int) -> bytes:
        """The end of the ledger with that many line ends in it at least, if it has them."""
        size = TAIL
        while len(data := self._tail_bytes(size)) == size and data.count(b"\n") < lines:
            size *= 2
        return data

    def _tail_bytes(self, size: int = TAIL) -> bytes:
        try:
            handle = files.open_regular(self._layout.ledger)
        except FileNotFoundError:
            return b""
        try:
            end = os.fstat(handle).st_size
            return os.pread(handle, size, max(0, end - size))
        finally:
            os.close(handle)

    def _head(self) -> Head:
        lines = self._tail(lines=2).rstrip(b"\n").rpartition(b"\n")[2]
        if not lines:
            return Head()
        entry = ledger.read(lines)
        if entry is None:
            raise Tampered("The last line of the ledger is not an entry.", "Type: ./agent verify")
        return Head(entry["seq"], ledger.digest(lines))

    def _vouched(self, head: Head, *, in_git: bool) -> bool:
        """Whether the ledger up to *head* still holds what its witness remembers.

        Where it does not, the witnesses are left as they are: an append must not vouch for a ledger that somebody has
        cut or rewritten. Called under the lock.
        """
        kept = Head.from_json(files.read_capped(self.head_file, 4096)) if self.head_file else None
        if head == Head() and kept:
            # Another repository stood at this path before, unless git remembers a ledger of this one.
            return git.read_anchor(self._repo) is None
        if kept is None and in_git:
            kept = Head.from_json(git.read_anchor(self._repo))
        if kept is None or kept == head:
            return True
        behind = head.seq - kept.seq
        lines = self._tail(lines=1).split(b"\n")[1:-1]
        if 0 <= behind < len(lines):
            return ledger.digest(lines[-1 - behind]) == kept.sha256
        return ledger.compare(kept, self.lines(), "") is None

    def _keep(self, head: Head, *, in_git: bool) -> None:
        """Keep the head where no airlock can write; a home that cannot be written costs that witness, not the run."""
        if self.head_file:
            with contextlib.suppress(OSError):
                files.make_folder(self.head_file.parent)
                files.write(self.head_file, head.to_json(), durable=False)
        if in_git:
            git.write_anchor(self._repo, head.to_json())

    def check_head(self) -> None:
        """Raise Tampered where the ledger ends with something that is no entry; a torn end is no flaw."""
        with files.Lock(self._layout.ledger_lock):
            self._repair()
            self._head()

    def anchors(self) -> dict[str, Head]:
        """Heads that are remembered outside the ledger, by place."""
        kept = {f"the git ref {git.ledger_ref(self._repo)}": git.read_anchor(self._repo)}
        if self.head_file:
            kept["the user's state folder"] = files.read_capped(self.head_file, 4096)
        return {where: head for where, data in kept.items() if (head := Head.from_json(data))}

    def accept(self) -> Head:
        """Take today's ledger for the true one: keep its head in every anchor."""
        with files.reported("keep the head of the ledger"), files.Lock(self._layout.ledger_lock):
            self._repair()
            head = self._head()
            self._keep(head, in_git=True)
        return head

    def mend(self) -> int:
        """Set a broken chain aside and keep its sound beginning; returns how many lines are gone from the ledger."""
        with files.reported("mend the ledger"), files.Lock(self._layout.ledger_lock):
            self._repair()
            lines = self.lines()
            flaw, head, _ = ledger.check(lines)
            if flaw is None:
                return 0
            # A change in a line shows at the next one, so the blamed line itself is not kept.
            sound = min(head.seq, flaw.line - 1)
            files.make_folder(self._layout.quarantine)
            stamp = iso(self._clock.wall()).replace(":", "")
            files.write(self._layout.quarantine / f"ledger-{stamp}", b"".join(line + b"\n" for line in lines))
            files.write(self._layout.ledger, b"".join(line + b"\n" for line in lines[:sound]))
        return len(lines) - sound

    def rows(self) -> tuple[list[dict[str, Any]], bool]:
        """Rows of the newest runs, and whether there are older ones."""
        data = self._tail_bytes()
        cut = data.find(b"\n") + 1 if len(data) == TAIL else 0
        entries, more = views.newest(data[cut:].split(b"\n"), ROWS, ledger.read)
        return views.fold(entries), more or bool(cut)

    def last(self, run: str) -> Mapping[str, Any]:
        """What the ledger says of *run* by now; usually found in its tail, else costs a look at the whole ledger."""
        name = json.dumps(run).encode()
        for lines in (self._tail_bytes().split(b"\n")[1:], self.lines()):
            rows = views.fold(entry for line in lines if name in line and (entry := ledger.read(line)))
            found = [row for row in rows if row["run"] == run]
            if found:
                return found[0]
        return {}

    def entries(self) -> list[Mapping[str, Any]]:
        """All entries that can be read, oldest first; costs a look at the whole ledger."""
        return [entry for line in self.lines() if (entry := ledger.read(line))]

    def lines(self) -> list[bytes]:
        """All whole lines, raw, without their ends."""
        try:
            with os.fdopen(files.open_regular(self._layout.ledger), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return []
        return data[: len(data) - ledger.torn(data)].split(b"\n")[:-1]

    def torn(self) -> int:
        """Bytes of a torn last line."""
        return ledger.torn(self._tail_bytes())

    def _draw(self) -> None:
        rows, older = self.rows()
        # A picture that cannot be hung must not cost the entry that it shows: the next one draws it again.
        with contextlib.suppress(OSError):
            files.write(
                self._layout.dashboard,
                views.index_md(rows, older=older, lives=self._portraits.lines()).encode(),
                durable=False,
            )

    def redraw(self) -> None:
        """Draw the dashboard anew from the ledger."""
        with files.reported("write INDEX.md"), files.Lock(self._layout.ledger_lock):
            self._draw()


def _bounded(value: Any) -> Any:
    """*value* without endless texts and lists: parts of it come from the agent, and every entry is read again often."""
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, dict):
        return {str(key)[:_LONGEST]: _bounded(part) for key, part in list(value.items())[:_MOST]}
    if isinstance(value, list | tuple):
        return [_bounded(part) for part in value[:_MOST]]
    if isinstance(value, int) and abs(value) > _GREATEST:
        return _GREATEST
    return value


_LONGEST: Final = 2000
_MOST: Final = 100
_GREATEST: Final = 2**63


def _repo_id(repo: Repository) -> str:
    return hashlib.sha256(os.fsencode(repo.root)).hexdigest()[:16]


def state_home(environ: Mapping[str, str]) -> Path | None:
    """The user's state folder by the XDG rules, or None where there is no home."""
    given = environ.get("XDG_STATE_HOME", "")
    if given.startswith("/"):
        return Path(given)
    home = environ.get("HOME", "")
    return Path(home) / ".local" / "state" if home.startswith("/") else None


def evidence(entry: Mapping[str, Any]) -> Mapping[str, str]:
    """The sealed hashes of a finishing *entry*, by file of the box; empty for any other."""
    facts = entry.get("facts")
    sealed = facts.get("evidence") if isinstance(facts, dict) else None
    return sealed if isinstance(sealed, dict) else {}


def as_json(rows: list[dict[str, Any]]) -> str:
    """Rows for `--json`, without the sealed hashes."""
    return json.dumps([{name: value for name, value in row.items() if name != "evidence"} for row in rows], indent=1)
