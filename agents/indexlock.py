"""The index of the operator's checkout, locked in git's own way with a content that says whose lock it is."""

from __future__ import annotations

import os
import time

from agents import files
from agents.errors import OperatorError
from essentials import digests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Final

PATIENCE: Final = 5.0
"""Seconds that a git command of the operator's may hold the index before a merge gives up (G30)."""


class IndexLock:
    """The lock on *index*; *folder* keeps the words that it is known by, and the ``index`` that will be.

    After a crash only a lock with those words, or with the bytes of that index, is ours and may be touched.
    """

    def __init__(self, index: Path, folder: Path) -> None:
        self._index = index
        self._lock = index.with_name(index.name + ".lock")
        self._token = folder / "lock"
        self._new = folder / "index"

    def take(self, patience: float) -> None:
        """Take the lock, waiting *patience* seconds; raises OperatorError where another git keeps it (G30)."""
        token = f"agent-box {os.urandom(16).hex()}\n".encode()
        # On disk before the lock is there: after a crash in between nobody has to guess whose it is.
        files.write(self._token, token)
        deadline = time.monotonic() + patience
        # Exclusive and whole at once: a lock of ours never lacks the words that it is known by.
        while not files.create(self._lock, token, aside=self._token):
            if time.monotonic() > deadline:
                raise OperatorError(
                    "Another git command is at work in this checkout.",
                    f"Wait for it; if there is none, type: rm {self._lock}",
                )
            time.sleep(0.05)

    def is_held(self) -> bool:
        """Whether the lock is there and ours."""
        # A lock that another git took meanwhile has other bytes, or none.
        token = files.read_capped(self._token, 100)
        return token is not None and files.read_capped(self._lock, 100) == token

    def is_publishing(self) -> bool:
        """Whether the lock is already the new index."""
        return self._new.exists() and _hash(self._lock) == _hash(self._new)

    def is_published(self) -> bool:
        """Whether the index is already the new one."""
        return self._new.exists() and not self._lock.exists() and _hash(self._index) == _hash(self._new)

    def publish(self, step: Callable[[str], None]) -> None:
        """Make the new index the operator's and give the lock back: two renames, as git itself does it."""
        with files.reported("write the index"):
            if not self.is_publishing():
                # Always the same, so that a recovery replaces what was cut off: only who has the lock comes here.
                temporary = self._lock.with_name(f"{self._lock.name}.agent-box")
                try:
                    temporary.write_bytes(self._new.read_bytes())
                    # core.sharedRepository may have given the index other permissions than ours.
                    temporary.chmod((self._index if self._index.exists() else self._new).stat().st_mode & 0o7777)
                    files.sync_file(temporary)
                    temporary.replace(self._lock)
                finally:
                    temporary.unlink(missing_ok=True)
            step("unlock the index")
            self._lock.replace(self._index)
            # The run is going to be called merged, and the journal to be removed.
            files.sync_folder(self._index.parent)

    def release(self) -> None:
        """Give the lock back if it is ours."""
        # Never by name alone: a lock in the same place may be a live git's.
        if self.is_held():
            self._lock.unlink(missing_ok=True)


def _hash(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return digests.of_file(file)
    except OSError:
        return None
