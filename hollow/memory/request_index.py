"""A derived index over the two logs of the request queue, so that a cycle costs the same after 10,000 requests."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3

from essentials.digests import sha256
from hollow.parsing import plain
from hollow.substrate.requests import ANSWERS, PENDING, request_of, response_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Any, Final, Self

    from hollow.substrate.model import Request, Response

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS logs (name TEXT PRIMARY KEY, upto INTEGER NOT NULL, mark TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS requests (
    id TEXT PRIMARY KEY, agent TEXT NOT NULL, print TEXT NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL,
    status TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS responses (id TEXT PRIMARY KEY, at INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS by_agent ON requests (agent, at);
CREATE INDEX IF NOT EXISTS by_print ON requests (print);
"""
_VERSION: Final = 1
_TAIL: Final = 4096
"""Bytes before the end of what is indexed whose hash tells whether the log is still the one that was indexed."""
_OWN: Final = "r.agent IN (?, '')"
"""Whose a request is. The seed's own entries name nobody (Q13): such a one is everybody's, as it was there."""
_ANSWERED: Final = "(r.status != 'pending' OR r.id IN (SELECT id FROM responses))"


class RequestIndex:
    """The index *path* over the logs *requests* and *responses*; use it in a ``with``, under the memory's lock.

    It holds places in the logs, never the only copy of anything: one that does not fit the logs is made anew, and one
    that is damaged may be thrown away with :meth:`discard`. *malformed* is called with the name of a log in which new
    lines could not be read.
    """

    def __init__(self, path: Path, requests: Path, responses: Path, malformed: Callable[[Path], None]) -> None:
        self._path = path
        self._requests = requests
        self._responses = responses
        self._malformed = malformed

    def __enter__(self) -> Self:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._base = sqlite3.connect(self._path, isolation_level=None)
        try:
            self._open()
        except BaseException:
            self._base.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._base.close()

    def _open(self) -> None:
        # It can be made anew from the logs at any time: nothing of it has to survive a power cut.
        self._base.execute("PRAGMA synchronous = OFF")
        version = self._base.execute("PRAGMA user_version").fetchone()[0]
        if version not in {0, _VERSION}:
            raise sqlite3.DatabaseError("of another version")
        self._base.executescript(_SCHEMA)
        self._base.execute(f"PRAGMA user_version = {_VERSION}")
        self.catch_up()

    @staticmethod
    def discard(path: Path) -> None:
        """Throw the index *path* away; the next one is made from the logs. Where it stays, using it fails as before."""
        # Its journal too: played back into another database it would spoil that one.
        for each in (path, path.with_name(f"{path.name}-journal")):
            with contextlib.suppress(OSError):
                each.unlink()

    # --- Following the logs -------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Take in the lines that were added to the logs since."""
        self._follow(self._requests, "requests", self._add_request)
        self._follow(self._responses, "responses", self._add_response)

    def _follow(self, log: Path, table: str, add: Callable[[dict[str, Any], int, int], None]) -> None:
        upto, mark = self._known(table)
        if upto and _mark(log, upto) != mark:
            # Somebody has rewritten it by hand: what is known of it is worth nothing.
            self._base.execute(f"DELETE FROM {table}")  # noqa: S608 - one of two names of our own
            upto = 0
        if _size(log) <= upto:
            return
        with self._step():
            end, bad = upto, 0
            for at, line in _lines(log, upto):
                end = at + len(line)
                bad += not self._take(line, at, add)
            self._base.execute("INSERT OR REPLACE INTO logs VALUES (?, ?, ?)", (table, end, _mark(log, end)))
        if bad:
            self._malformed(log)

    def _known(self, table: str) -> tuple[int, str]:
        row = self._base.execute("SELECT upto, mark FROM logs WHERE name = ?", (table,)).fetchone()
        return (int(row[0]), str(row[1])) if row else (0, "")

    @contextlib.contextmanager
    def _step(self) -> Iterator[None]:
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

    @staticmethod
    def _take(line: bytes, at: int, add: Callable[[dict[str, Any], int, int], None]) -> bool:
        value = _decoded(line)
        if value is None:
            return not line.strip()
        add(value, at, len(line))
        return True

    def _add_request(self, line: dict[str, Any], at: int, size: int) -> None:
        request = request_of(line)
        if request is None:
            return
        status = line.get("status")
        # An entry may say by itself that it is over (Q17); the first line of an id is the request.
        over = status if isinstance(status, str) and status in ANSWERS else PENDING
        values = (request.request_id, request.agent, request.fingerprint, at, size, over)
        self._base.execute("INSERT OR IGNORE INTO requests VALUES (?, ?, ?, ?, ?, ?)", values)

    def _add_response(self, line: dict[str, Any], at: int, size: int) -> None:
        response = response_of(line)
        if response is not None:
            # The last valid answer wins (Q15).
            self._base.execute("INSERT OR REPLACE INTO responses VALUES (?, ?, ?)", (response.request_id, at, size))

    # --- Questions ----------------------------------------------------------------------------------------------------

    def request(self, name: str) -> Request | None:
        """Return the request with the id *name*."""
        found = self._select("r.id = ?", (name,), "r.at")
        return found[0] if found else None

    def response(self, name: str) -> Response | None:
        """Return the answer to the request *name*, also where the request itself is not there (T14)."""
        row = self._base.execute("SELECT at, size FROM responses WHERE id = ?", (name,)).fetchone()
        line = _record(self._responses, *row) if row else None
        if line is not None:
            return response_of(line)
        query = "SELECT at, size FROM requests WHERE id = ? AND status != 'pending'"
        row = self._base.execute(query, (name,)).fetchone()
        return response_of(_record(self._requests, *row) or {}) if row else None

    def alike(self, fingerprint: str) -> Request | None:
        """Return the oldest request with *fingerprint*."""
        found = self._select("r.print = ?", (fingerprint,), "r.at LIMIT 1")
        return found[0] if found else None

    def open(self, agent: str, most: int) -> list[Request]:
        """Return the newest *most* open requests of *agent*, oldest first; every agent's for an empty name."""
        where = f"(? = '' OR {_OWN}) AND NOT {_ANSWERED}"
        return self._select(where, (agent, agent), f"r.at DESC LIMIT {most}")[::-1]

    def count_open(self, agent: str) -> int:
        """Return how many requests of *agent* are open."""
        where = f"SELECT count(*) FROM requests r WHERE r.agent = ? AND NOT {_ANSWERED}"  # noqa: S608 - all words are ours
        return int(self._base.execute(where, (agent,)).fetchone()[0])

    def newest(self, agent: str, most: int) -> list[Request]:
        """Return the newest *most* requests of *agent*, oldest first; every agent's for an empty name."""
        return self._select(f"(? = '' OR {_OWN})", (agent, agent), f"r.at DESC LIMIT {most}")[::-1]

    def answered(self, agent: str, most: int) -> list[tuple[Request, Response]]:
        """Return the *most* requests of *agent* that were answered last, with their answers, oldest answer first."""
        query = (
            "SELECT r.at, r.size, a.at, a.size FROM responses a JOIN requests r ON r.id = a.id "  # noqa: S608 - all words are ours
            f"WHERE {_OWN} ORDER BY a.at DESC LIMIT ?"
        )
        found = []
        for at, size, there, length in self._base.execute(query, (agent, most)):
            request = request_of(_record(self._requests, at, size) or {})
            response = response_of(_record(self._responses, there, length) or {})
            if request is not None and response is not None:
                found.append((request, response))
        return found[::-1]

    def _select(self, where: str, values: tuple[str, ...], order: str) -> list[Request]:
        query = f"SELECT r.at, r.size FROM requests r WHERE {where} ORDER BY {order}"  # noqa: S608 - all words are ours
        places = self._base.execute(query, values).fetchall()
        found = (request_of(_record(self._requests, at, size) or {}) for at, size in places)
        return [each for each in found if each is not None]


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def _mark(log: Path, upto: int) -> str:
    """Hash of the end of what lies before *upto*; empty where the log is shorter than that."""
    start = max(0, upto - _TAIL)
    data = _read(log, start, upto - start)
    return sha256(data).hexdigest() if len(data) == upto - start else ""


def _read(log: Path, at: int, size: int) -> bytes:
    try:
        handle = os.open(log, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(handle, size, at)
    finally:
        os.close(handle)


def _lines(log: Path, start: int) -> Iterator[tuple[int, bytes]]:
    """Every whole line of *log* from *start* on, with its place; one without its end was never said to be there."""
    at = start
    with log.open("rb") as file:
        file.seek(start)
        for line in file:
            if line.endswith(b"\n"):
                yield at, line
                at += len(line)


def _record(log: Path, at: int, size: int) -> dict[str, Any] | None:
    return _decoded(_read(log, at, size))


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    # Half a character of a hand-placed line is no text that a database takes.
    return plain(value) if isinstance(value, dict) else None
