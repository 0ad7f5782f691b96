"""The ledger on disk: append under a lock, repair a torn tail, keep the head elsewhere too, have it drawn."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from pathlib import Path

from agents import files, git, ledger, locks, views
from agents.dashboard import Dashboard
from agents.errors import Tampered
from agents.ledger import Head
from agents.lockorder import Rank
from agents.scroll import Scroll
from agents.times import iso
from essentials import digests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Final

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
        self._dashboard = Dashboard(layout, self.rows)
        own = digests.sha256(os.fsencode(repo.root)).hexdigest()[:16]
        self.head_file = state_home / "agent-box" / own / "head.json" if state_home else None

    def append(self, event: str, run: str | None, facts: Mapping[str, Any], *, anchor: bool = False) -> None:
        """Add one entry, durably; *anchor* also keeps the head in the repository's ref (two git processes).

        Who holds the ledger's lock keeps all others waiting, and on a busy machine long beyond what its own work takes:
        what needs other processes, or can be done for several entries at once, is done after it.
        Raises HostError where it cannot be written: a run whose end cannot be recorded has not ended well.
        """
        with files.reported("write the ledger"):
            with self._locked():
                self._repair()
                before = self._head()
                vouched = self._vouched(before, in_git=anchor)
                now = iso(self._clock.wall())
                line, head = ledger.link(before, time=now, event=event, run=run, facts=ledger.bounded(facts))
                told = self._write(line)
                if vouched:
                    self._keep(head)
            if vouched and anchor:
                self._anchor(head)
            self._dashboard.draw(told)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        # An entry may be the first thing that a repository gets of us.
        files.make_folder(self._layout.ledger_lock.parent)
        with locks.Lock(self._layout.ledger_lock, Rank.LEDGER):
            yield

    def _write(self, line: bytes) -> int:
        """Append *line*, durably; returns when by the file's own date (ns)."""
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
            told = os.fstat(handle).st_mtime_ns
        finally:
            os.close(handle)
        if not size:
            files.sync_folder(self._layout.data)
        return told

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
        return _last(self._tail(lines=2))

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
        if kept is None or kept == head or not kept.seq:
            return True
        # Looked for from the end: no more is read than what the witness is behind.
        return kept.seq < head.seq and self._digest_of(head.seq - kept.seq) == kept.sha256

    def _digest_of(self, behind: int) -> str | None:
        """Digest of the line that has *behind* lines after it, or None where there is none."""
        with self.scroll() as scroll:
            line = next(itertools.islice(scroll.backwards(), behind, None), None)
        return None if line is None else ledger.digest(line)

    def _keep(self, head: Head) -> None:
        """Keep the head where no airlock can write; a home that cannot be written costs that witness, not the run."""
        if self.head_file:
            with contextlib.suppress(OSError):
                files.make_folder(self.head_file.parent)
                files.write(self.head_file, head.to_json(), durable=False, alone=True)

    def _anchor(self, head: Head) -> None:
        """Keep *head*, or what follows it in the ledger by now, in the repository's ref.

        Of many that have written at once one keeps the newest for all who wait, and they find it there.
        """
        with locks.Lock(self._layout.anchor_lock, Rank.ANCHOR):
            heads = [each.to_json() for each in self._since(head)]
            if git.anchored(self._repo) not in {name for each in heads for name in git.blob_ids(each)}:
                git.write_anchor(self._repo, heads[-1])

    def _since(self, head: Head) -> list[Head]:
        """*head* and the heads of the entries that follow it by now, in their order."""
        found: list[Head] = []
        with self.scroll() as scroll:
            for each, _, _ in ledger.linked(scroll.backwards()):
                found.append(each)
                if each.seq <= head.seq:
                    break
        # Where it is not there any more, somebody has cut or rewritten the ledger: that it was there is to be known.
        return found[::-1] if found and found[-1] == head else [head]

    def check_head(self) -> None:
        """Raise Tampered where the ledger ends with something that is no entry; a torn end is no flaw."""
        if ledger.torn(data := self._tail(lines=2)):
            # It may be torn, or be written just now.
            with self._locked():
                self._repair()
                data = self._tail(lines=2)
        _last(data)

    @contextlib.contextmanager
    def moment(self) -> Iterator[tuple[Scroll, dict[str, Head]]]:
        """The ledger and its :meth:`anchors` of one moment; only taking them keeps writers waiting, not reading."""
        with contextlib.ExitStack() as stack:
            with locks.Lock(self._layout.anchor_lock, Rank.ANCHOR):
                # Git takes its time, and what its ref keeps is in the ledger for longer than that.
                in_git = self._anchor_in_git()
                with locks.Lock(self._layout.ledger_lock, Rank.LEDGER):
                    scroll = stack.enter_context(self.scroll())
                    kept = self._anchor_at_home()
            yield scroll, in_git | kept

    def anchors(self) -> dict[str, Head]:
        """Heads that are remembered outside the ledger, by place."""
        return self._anchor_in_git() | self._anchor_at_home()

    def _anchor_in_git(self) -> dict[str, Head]:
        head = Head.from_json(git.read_anchor(self._repo))
        return {f"the git ref {git.ledger_ref(self._repo)}": head} if head else {}

    def _anchor_at_home(self) -> dict[str, Head]:
        head = Head.from_json(files.read_capped(self.head_file, 4096)) if self.head_file else None
        return {"the user's state folder": head} if head else {}

    def accept(self) -> Head:
        """Take today's ledger for the true one: keep its head in every anchor."""
        anchor = locks.Lock(self._layout.anchor_lock, Rank.ANCHOR)
        files.make_folder(self._layout.anchor_lock.parent)
        with files.reported("keep the head of the ledger"), anchor, self._locked():
            self._repair()
            head = self._head()
            self._keep(head)
            git.write_anchor(self._repo, head.to_json())
        return head

    def mend(self) -> int:
        """Set a broken chain aside and keep its sound beginning; returns how many lines are gone from the ledger."""
        with files.reported("mend the ledger"), self._locked():
            self._repair()
            with self.scroll() as scroll:
                walk = ledger.Walk()
                for _ in walk.entries(scroll.forwards()):
                    pass
                if walk.flaw is None:
                    return 0
                # A change in a line shows at the next one, so the blamed line itself is not kept.
                sound = min(walk.head.seq, walk.flaw.line - 1)
                self._set_aside()
                files.write_parts(self._layout.ledger, _ended(itertools.islice(scroll.forwards(), sound)))
                return sum(1 for _ in scroll.forwards()) - sound

    def _set_aside(self) -> None:
        """Keep a copy of the whole ledger in the quarantine."""
        files.make_folder(self._layout.quarantine)
        stamp = iso(self._clock.wall()).replace(":", "")
        with self.scroll() as scroll:
            files.write_parts(self._layout.quarantine / f"ledger-{stamp}", scroll.copied())

    def rows(self) -> tuple[list[dict[str, Any]], bool]:
        """Rows of the newest runs, and whether there are older ones."""
        data = self._tail_bytes()
        cut = data.find(b"\n") + 1 if len(data) == TAIL else 0
        entries, more = views.newest(data[cut:].split(b"\n"), ROWS, ledger.read)
        return views.fold(entries), more or bool(cut)

    def last(self, run: str) -> Mapping[str, Any]:
        """What the ledger says of *run* by now; costs what :meth:`story` costs."""
        return next(iter(views.fold(self.story(run))), {})

    def story(self, run: str) -> list[Mapping[str, Any]]:
        """The entries of *run*, oldest first.

        Read from the end back to the run's start, so that the cost is the age of the run and not that of the ledger;
        only for a run whose start is not there all of it is read, in bounded memory.
        """
        name = json.dumps(run).encode()
        found: list[Mapping[str, Any]] = []
        with self.scroll() as scroll:
            for page in scroll.pages():
                lines = reversed(page.split(b"\n")) if name in page else ()
                for entry in filter(None, (ledger.read(line) for line in lines if name in line)):
                    if entry.get("run") == run:
                        found.append(entry)
                        if entry.get("event") == ledger.BEGINNING:
                            return found[::-1]
        return found[::-1]

    def scroll(self) -> Scroll:
        """The ledger's whole lines as they stand now, to be read line by line and closed."""
        return Scroll(self._layout.ledger)

    def each(self) -> Iterator[Mapping[str, Any]]:
        """All entries that can be read, oldest first, one at a time; costs a look at the whole ledger."""
        with self.scroll() as scroll:
            for line in scroll.forwards():
                if entry := ledger.read(line):
                    yield entry

    def entries(self) -> list[Mapping[str, Any]]:
        """All entries at once, where the ledger is known to be small."""
        return list(self.each())

    def lines(self) -> list[bytes]:
        """All whole lines at once, raw, without their ends, where the ledger is known to be small."""
        with self.scroll() as scroll:
            return list(scroll.forwards())

    def torn(self) -> int:
        """Bytes of a torn last line."""
        return ledger.torn(self._tail_bytes())

    def catch_up(self) -> None:
        """Do what a writer that was killed has left undone after its entry: the head's witness and the dashboard."""
        with files.reported("write INDEX.md"), contextlib.ExitStack() as undo:
            for lock in (
                locks.Lock(self._layout.anchor_lock, Rank.ANCHOR),
                locks.Lock(self._layout.ledger_lock, Rank.LEDGER),
            ):
                if not lock.acquire(timeout=0):
                    # A writer that lives is at it: an operator who looks need not wait for all that are at work.
                    return
                undo.callback(lock.release)
            self._repair()
            # The entry was anchored when the power was cut: a lock on the anchor is that git's, which is dead.
            git.unlock(self._repo, git.ledger_ref(self._repo))
            head = self._head()
            if self._vouched(head, in_git=False):
                self._keep(head)
            self._dashboard.draw(patient=False)

    def redraw(self) -> None:
        """Draw the dashboard anew from the ledger."""
        with files.reported("write INDEX.md"):
            files.make_folder(self._layout.dashboard_lock.parent)
            self._dashboard.draw()


def _last(tail: bytes) -> Head:
    """The head of a ledger that ends with the whole lines *tail*; raises Tampered where the last one is no entry."""
    line = tail.rstrip(b"\n").rpartition(b"\n")[2]
    if not line:
        return Head()
    entry = ledger.read(line)
    if entry is None:
        raise Tampered("The last line of the ledger is not an entry.", "Type: ./agent verify")
    return Head(entry["seq"], ledger.digest(line))


def _ended(lines: Iterator[bytes]) -> Iterator[bytes]:
    return (line + b"\n" for line in lines)


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


def is_told(fact: str) -> bool:
    """Whether a *fact* of a run is for people and their programs; the sealed hashes are not."""
    return fact != "evidence"


def as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows for `--json`, without the sealed hashes."""
    return "\n".join(json_texts(rows))


def json_texts(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of :func:`as_json`, some at a time: all rows as one text would be as large as they are."""
    if not rows:
        yield "[]"
        return
    for start in range(0, len(rows), _BATCH):
        some = [{name: row[name] for name in row if is_told(name)} for row in rows[start : start + _BATCH]]
        text = json.dumps(some, indent=1)
        yield ("" if start else "[\n") + text[2:-2] + ("\n]" if start + _BATCH >= len(rows) else ",")


_BATCH: Final = 500
