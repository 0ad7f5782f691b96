"""The full-text index of the tracked files: SQLite FTS5, keyed by content, incremental, shared by processes."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections import Counter

from essentials.records import dataclass
from hollow.documents import FIELDS, fields
from hollow.kinds import language
from hollow.tracked import contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Final, Self

    from hollow.tracked import Snapshot, Tracked

SCHEMA: Final = 1
"""Raise it when what the tables hold changes; an index of another number is rebuilt."""
# One file for words and history: they are discarded together when it is damaged.
_FILE: Final = "survey.sqlite3"
_SLICE: Final = 400
"""Files per transaction: a second's work, so that processes take turns and an interruption loses little."""
# Several branches' worth of what one survey looks back on; the file stays small however long the history is.
_MOST_COMMITS: Final = 20_000
# Longer than the first indexing of a very large repository: whoever comes second waits for it, and reads nothing again.
_BUSY_SECONDS: Final = 600.0
_TABLES: Final = (
    # The language belongs to the key: the same bytes have other symbols as a.py than as a.txt.
    """CREATE TABLE IF NOT EXISTS blob (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL, language TEXT NOT NULL,
        symbols INTEGER NOT NULL, docs INTEGER NOT NULL, body INTEGER NOT NULL, UNIQUE (key, language))""",
    # ascii, not unicode61: the tokens are already folded and stemmed, and must come back as they went in.
    "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (symbols, docs, body, tokenize = 'ascii')",
    "CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary USING fts5vocab (words, 'row')",
    # Messages and paths are compressed, for they are most of the file; they are read whole or not at all.
    """CREATE TABLE IF NOT EXISTS entry (
        oid TEXT PRIMARY KEY, time INTEGER NOT NULL, message BLOB NOT NULL, paths BLOB NOT NULL)""",
)


@dataclass(frozen=True, slots=True)
class Document:
    """The indexed terms of one file's content."""

    lengths: tuple[int, int, int]
    """Tokens in symbols, docs and body."""
    counts: tuple[Counter[str], Counter[str], Counter[str]]
    """How often each token occurs in each of the three."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What is known of all contents together."""

    documents: int
    averages: tuple[float, float, float]
    """Mean number of tokens in symbols, docs and body."""


class Index:
    """An open index; use it as a context manager.

    Where *folder* is None, cannot be written or is broken beyond rebuilding, a private temporary database serves:
    slower, never wrong.
    """

    def __init__(self, folder: Path | None) -> None:
        self._db = _opened(folder)
        self._ids: dict[tuple[str, str], int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def refresh(self, snap: Snapshot, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the index hold exactly the contents of *snap*; returns how many files had to be read.

        *progress* is told ``(read so far, to read)`` after every slice. Contents that are tracked no more are
        forgotten, so that the same state of a repository always gives the same answers.
        """
        wanted = {(file.key, language(file.path)): file for file in snap.files}
        known = self._known()
        missing = [file for key, file in wanted.items() if key not in known]
        for start in range(0, len(missing), _SLICE):
            self._add(snap, missing[start : start + _SLICE])
            if progress is not None:
                progress(min(start + _SLICE, len(missing)), len(missing))
        # Asked again, because another process may have indexed some of them first, under numbers of its own.
        known = self._known() if missing else known
        self._forget([number for key, number in known.items() if key not in wanted])
        self._ids = {key: number for key, number in known.items() if key in wanted}
        return len(missing)

    def id_of(self, file: Tracked) -> int | None:
        """Return the number under which *file*'s content is indexed; valid after :meth:`refresh`."""
        return self._ids.get((file.key, language(file.path)))

    def search(self, terms: Iterable[str], limit: int) -> dict[int, float]:
        """Return the *limit* contents that match any of *terms* best, by SQLite's own BM25 (higher is better)."""
        # Quoted, because a term may be a word of FTS5's query language (or, near); none holds a quote.
        asked = " OR ".join(f'"{term}"' for term in terms)
        if not asked:
            return {}
        rows = self._db.execute(
            # Rough weights are enough: this only chooses who is ranked precisely. Equal scores by number, never by
            # chance.
            "SELECT rowid, bm25(words, 6.0, 2.0, 1.0) AS score FROM words WHERE words MATCH ?"
            " ORDER BY score, rowid LIMIT ?",
            (asked, limit),
        )
        return {number: -score for number, score in rows}

    def documents(self, ids: Iterable[int]) -> dict[int, Document]:
        """Return the indexed terms of the contents *ids*; those that another process removed are absent."""
        found = {}
        query = f"SELECT {', '.join(FIELDS)} FROM words WHERE rowid = ?"  # noqa: S608 - our own column names
        for number in ids:
            for row in self._db.execute(query, (number,)):
                counts = [Counter(field.split()) for field in row]
                lengths = [sum(count.values()) for count in counts]
                found[number] = Document((lengths[0], lengths[1], lengths[2]), (counts[0], counts[1], counts[2]))
        return found

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """Return in how many contents each of *terms* occurs."""
        query = "SELECT doc FROM vocabulary WHERE term = ?"
        return {term: next((row[0] for row in self._db.execute(query, (term,))), 0) for term in terms}

    def totals(self) -> Totals:
        """Return the number of contents and the mean length of their fields."""
        row = self._db.execute(
            "SELECT count(*), avg(symbols), avg(docs), avg(body) FROM blob WHERE body > 0"
        ).fetchone()
        return Totals(row[0], (row[1] or 0.0, row[2] or 0.0, row[3] or 0.0))

    def commits(self, oids: list[str]) -> dict[str, tuple[int, str, bytes]]:
        """Return the remembered commits among *oids*: ``(seconds since the epoch, message, NUL-separated paths)``."""
        # The whole table: three thousand ids are more variables than older SQLites allow in a statement.
        rows = self._db.execute("SELECT oid, time, message, paths FROM entry")
        asked = set(oids)
        return {
            oid: (time, zlib.decompress(message).decode("utf-8", "replace"), zlib.decompress(paths))
            for oid, time, message, paths in rows
            if oid in asked
        }

    def remember(self, commits: Iterable[tuple[str, int, str, bytes]]) -> None:
        """Keep *commits* (oid, seconds, message, NUL-separated paths), which never change, for the next time."""
        rows = [
            (oid, time, zlib.compress(message.encode("utf-8", "replace"), 1), zlib.compress(paths, 1))
            for oid, time, message, paths in commits
        ]
        with self._writing():
            self._db.executemany("INSERT OR IGNORE INTO entry VALUES (?, ?, ?, ?)", rows)
            self._db.execute(
                "DELETE FROM entry WHERE oid NOT IN (SELECT oid FROM entry ORDER BY time DESC, oid LIMIT ?)",
                (_MOST_COMMITS,),
            )

    def _known(self) -> dict[tuple[str, str], int]:
        return {(key, spoken): number for number, key, spoken in self._db.execute("SELECT id, key, language FROM blob")}

    def _add(self, snap: Snapshot, files: list[Tracked]) -> None:
        """Read and index *files*, except what another process indexed meanwhile."""
        with self._writing():
            known = "SELECT 1 FROM blob WHERE key = ? AND language = ?"
            # Within the transaction: what another process adds from here on has to wait for us.
            absent = [f for f in files if not self._db.execute(known, (f.key, language(f.path))).fetchone()]
            for file, content in contents(snap, absent):
                found = fields(file.path, content)
                row = (file.key, language(file.path), *found.lengths)
                number = self._db.execute(
                    "INSERT INTO blob (key, language, symbols, docs, body) VALUES (?, ?, ?, ?, ?)", row
                ).lastrowid
                self._db.execute(
                    "INSERT INTO words (rowid, symbols, docs, body) VALUES (?, ?, ?, ?)",
                    (number, found.symbols, found.docs, found.body),
                )

    def _forget(self, stale: list[int]) -> None:
        rows = [(number,) for number in stale]
        if rows:
            with self._writing():
                self._db.executemany("DELETE FROM words WHERE rowid = ?", rows)
                self._db.executemany("DELETE FROM blob WHERE id = ?", rows)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One write transaction; waits for its turn among other processes."""
        # IMMEDIATE takes the write lock now; a lock taken halfway could fail at once instead of waiting its turn.
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


def _opened(folder: Path | None) -> sqlite3.Connection:
    """The database of *folder*, rebuilt if it is corrupt or of another schema; else a private temporary one."""
    if folder is not None:
        for _ in range(2):
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                return _prepared(folder / _FILE)
            except OSError:
                break
            except sqlite3.DatabaseError as why:
                if not is_damage(why):
                    break  # not writable, no space, locked for ten minutes: removing the file would mend nothing
                discard(folder)
    return _prepared(None)


def _prepared(path: Path | None) -> sqlite3.Connection:
    """A connection with our tables. Raises :class:`sqlite3.DatabaseError` if *path* holds something else."""
    # An empty name is SQLite's private temporary database, which spills to disk instead of filling memory.
    db = sqlite3.connect(path or "", timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        # Readers go on while another process writes.
        db.execute("PRAGMA journal_mode = WAL")
        # A lost index is rebuilt, so waiting for the disk at every commit buys nothing.
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = -32000")
        _create(db)
        # Some damage shows only when the full-text tables are read; better here, where it can still be mended, than
        # later.
        db.execute("SELECT count(*) FROM words WHERE words MATCH 'probe'").fetchone()
    except sqlite3.Error:
        db.close()
        raise
    return db


def _schema(db: sqlite3.Connection) -> tuple[int, int]:
    """The schema number of *db* and how many objects it holds."""
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return db.execute("PRAGMA user_version").fetchone()[0], tables


def _create(db: sqlite3.Connection) -> None:
    """Make our tables in an empty *db*. Raises :class:`sqlite3.DatabaseError` if it holds other ones."""
    if _schema(db)[0] == SCHEMA:
        return
    db.execute("BEGIN IMMEDIATE")
    found, tables = _schema(db)  # again, now that nobody else can be creating them
    if found != SCHEMA and tables:
        raise sqlite3.DatabaseError(f"The index has schema {found}, not {SCHEMA}.")
    for statement in _TABLES:
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {SCHEMA}")
    db.execute("COMMIT")


def is_damage(why: sqlite3.DatabaseError) -> bool:
    """Whether *why* means that the file itself is broken or not ours, so that making it anew helps."""
    code = getattr(why, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


def discard(folder: Path) -> None:
    """Remove the database files of *folder*; another process that has them open keeps its own copy."""
    for ending in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(OSError):
            (folder / (_FILE + ending)).unlink()
