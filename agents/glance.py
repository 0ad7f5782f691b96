"""`status` and `list` at a glance: the ledger's tail and the markers of live runs, nothing else.

It answers where no run needs a watchdog; otherwise :class:`NotLean` leaves it to the full command line, which then says
the same in the same words.
"""

from __future__ import annotations

import os
import stat
import time

from agents import plainjson, views
from agents.layout import ACTIVE, DASHBOARD, DATA, LEDGER, OWNER_LOCK, RUNS, STAGED, STALE, STATE
from agents.times import epoch

# The name alone tells type checkers; importing `typing` would cost `status` 4 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

TAIL: Final = 256 * 1024  # as agents.journal.TAIL, whose import is not cheap; a test compares them
ROWS: Final = 30
STALL_AFTER: Final = 300.0
"""Seconds, where a run's state does not say."""

COMMONS_LOCK: Final = "refs/heads/agent-box/commons.lock"
"""git's lock on the branch of the commons, below the git directory; a test compares it with the branch's name."""

_DECIDING: Final = ("GIT_DIR", "GIT_WORK_TREE")
"""Variables that change the answer in ways that only the full command line knows."""


class NotLean(Exception):  # noqa: N818 - it is no error, it is the other way
    """The full command line has to do it."""


def table(verb: str) -> str | None:
    """What `agent VERB` (status or list) prints here and now, or None where the full command line has to say it."""
    try:
        root = _root(os.getcwd())
        rows = _rows(os.path.join(root, DATA))
    except (NotLean, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    now = time.time()
    return views.status(rows, now) if verb == "status" else views.listing(rows, now)


def _root(folder: str) -> str:
    """Top of the work tree around *folder*; only the ordinary case, git knows the others."""
    if any(os.environ.get(name) for name in _DECIDING):
        raise NotLean
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        # A git directory or a bare repository: let git find the words.
        if parent == folder or os.path.exists(os.path.join(folder, "HEAD")):
            raise NotLean
        folder = parent
    return folder


def _rows(data: str) -> list[dict[str, Any]]:
    if os.path.exists(os.path.join(os.path.dirname(data), ".git", COMMONS_LOCK)):
        # Moved this moment, or the power was cut while it was: a sweep knows.
        raise NotLean
    rows = views.fold(_entries(os.path.join(data, LEDGER)))[:ROWS]
    live = _live(data)
    return [{**row, **live.get(str(row.get("run")), {})} for row in rows]


def _entries(path: str) -> list[Mapping[str, Any]]:
    try:
        handle = _open(path)
    except FileNotFoundError:
        return []
    try:
        end = os.fstat(handle).st_size
        tail = os.pread(handle, TAIL, max(0, end - TAIL))
    finally:
        os.close(handle)
    lines = tail[tail.find(b"\n") + 1 :] if end > TAIL else tail
    if lines and not lines.endswith(b"\n"):
        raise NotLean
    return views.newest(lines.split(b"\n")[:-1], ROWS, plainjson.loads)[0]


def _live(data: str) -> dict[str, dict[str, Any]]:
    """Every run with a marker; raises NotLean where one needs a watchdog."""
    found: dict[str, dict[str, Any]] = {}
    if not os.path.isdir(data):
        return found
    _check_kept(data)
    folder = os.path.join(data, ACTIVE)
    for short_id in os.listdir(folder) if os.path.isdir(folder) else ():
        name = _read(os.path.join(folder, short_id)).decode()
        box = os.path.join(data, RUNS, name)
        state = plainjson.loads(_read(os.path.join(box, STATE)))
        last = epoch(state.get("last_heartbeat") or state.get("started_at"))
        # From four fifths of its silence on the full way is asked to look.
        patience = 0.8 * (state.get("stall_after") or STALL_AFTER)
        if not _is_owned(os.path.join(box, OWNER_LOCK)) or last is None or time.time() - last > patience:
            raise NotLean
        found[name] = {"status": state["status"], "phase": state.get("phase")}
    return found


def _check_kept(data: str) -> None:
    """Raise NotLean where a writer that was killed has left something for a sweep: half a file, or an old dashboard."""
    staged = os.path.join(data, STAGED)
    names = os.listdir(staged) if os.path.isdir(staged) else ()
    if any(time.time() - os.lstat(os.path.join(staged, name)).st_mtime > STALE for name in names):
        raise NotLean
    if is_behind(os.path.join(data, LEDGER), os.path.join(data, DASHBOARD)) or set_aside(data):
        raise NotLean


def set_aside(data: str) -> list[str]:
    """Names of the folders that a `hollow restore` which was killed, or is going on, has in the data folder *data*."""
    names = os.listdir(data) if os.path.isdir(data) else ()
    return sorted(name for name in names if name.startswith((".hollow.restore.", ".hollow.between.")))


def is_behind(ledger: str, dashboard: str) -> bool:
    """Whether the *dashboard* lacks the last entry of the *ledger*: its writer was killed before it was drawn."""
    try:
        told = os.stat(ledger)
        # Drawn after every entry, and dated by the moment at which that began. Where both are of one tick of the
        # kernel's clock it may have been drawn for the entry before: drawing once more than needed costs little.
        return told.st_size > 0 and told.st_mtime_ns >= os.stat(dashboard).st_mtime_ns
    except FileNotFoundError:
        return os.path.exists(ledger)


def _is_owned(path: str) -> bool:
    import fcntl

    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _read(path: str) -> bytes:
    handle = _open(path)
    try:
        return os.read(handle, 1024 * 1024)
    finally:
        os.close(handle)


def _open(path: str) -> int:
    # Not blocking: a pipe that somebody put in the file's place has no writer.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotLean
    return handle
