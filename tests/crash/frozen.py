"""A command under strace that is frozen at its system calls, so that its disk can be looked at or filled meanwhile."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.crash.model import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.crash.model import World

_STOPPED: Final = re.compile(r"^(?:(\d+) +)?(?:--- stopped by SIGSTOP ---|.*\(DELAYED\))\n", re.MULTILINE)
_PAUSE: Final = 0.001
SPOKEN: Final = frozenset({0, 2, 3, 4, 5})
"""Exit codes that the manual knows: whatever fails has one of them, and a sentence."""
_TRACEBACK: Final = re.compile(r"Traceback|Agent Box itself failed|Exception ignored")


def ended(code: int, said: str, when: str) -> Iterator[str]:
    """What is wrong with an end with exit code *code* and the words *said*, *when* it was struck: sentences."""
    if code not in SPOKEN or _TRACEBACK.search(said):
        yield f"struck: {when} it ended with {code}: {said}"
    elif code and not said.strip():
        yield f"struck: {when} it ended with {code} and said nothing."


class Frozen:
    """The command *argv*, which is strace and what it traces, at work in *world*; its calls go to *log*.

    What is traced is expected to be sent SIGSTOP, or to be delayed after its call, by strace's own ``--inject``.
    """

    def __init__(self, world: World, argv: Sequence[str], log: Path) -> None:
        log.unlink(missing_ok=True)
        self._log, self._said = log, log.with_suffix(".said")
        self.stopped: list[int] = []
        """Pids of what is frozen at this moment."""
        self._read = 0
        self._rest = ""
        self._until = time.monotonic() + LONGEST
        with self._said.open("wb") as said:
            self._strace = subprocess.Popen(
                argv, cwd=world.repo, env=world.environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )

    def stops(self) -> Iterator[list[str]]:
        """The lines of the log since the last time, at each stop; after the last one the rest, with the command over.

        :attr:`stopped` goes on where the next is asked for. Raises AssertionError where the command does not come to
        an end.
        """
        fresh: list[str] = []
        while True:
            over = self._strace.poll() is not None
            fresh += self._lines()
            if self.stopped:
                yield fresh
                fresh = []
                self.go_on()
            elif over:
                yield fresh
                return
            else:
                assert time.monotonic() < self._until, f"hung: {self.said()}"
                time.sleep(_PAUSE)

    def go_on(self) -> None:
        """Let it go on."""
        for pid in self.stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped = []

    def over(self) -> bool:
        """Whether the command is over."""
        return self._strace.poll() is not None

    def end(self) -> int:
        """Exit code of the command, negative for a signal; it has to be over in time, or raises AssertionError."""
        try:
            return self._strace.wait(max(0.1, self._until - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"hung: {self.said()}") from None

    def kill(self) -> None:
        """End it, whatever it does; strace takes what it traces with it."""
        for pid in [*self._children(), self._strace.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._strace.wait()

    def _children(self) -> list[int]:
        try:
            listed = Path(f"/proc/{self._strace.pid}/task/{self._strace.pid}/children").read_text()
        except OSError:
            return []
        return [int(pid) for pid in listed.split()]

    def said(self) -> str:
        """What the command has said so far, the last of it, without the words of strace."""
        lines = self._said.read_text("utf-8", "replace").splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("strace: "))[-2000:]

    def _lines(self) -> list[str]:
        """The whole lines that came to the log since the last time, up to the first stop among them."""
        if self._log.exists():
            with self._log.open("rb") as log:
                log.seek(self._read)
                new = log.read()
            self._read += len(new)
            self._rest += new.decode("utf-8", "replace")
        if stop := _STOPPED.search(self._rest):
            whole, self._rest = self._rest[: stop.end()], self._rest[stop.end() :]
            # Without a pid before its line, the command itself is all that is traced.
            self.stopped = [int(stop[1])] if stop[1] else self._children()
            return whole.splitlines()
        whole, end, rest = self._rest.rpartition("\n")
        self._rest = rest
        return whole.splitlines() if end else []
