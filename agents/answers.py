"""Programs that are asked something: started, fed, heard to the end, and given up after a while."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import time

from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

_PIECE: Final = 1 << 16
_STANDARD: Final = 2
# What Python ignores, and a program that it starts would go on ignoring.
_USUAL: Final = (signal.SIGPIPE, signal.SIGXFSZ)


@dataclass(frozen=True, slots=True)
class Answer:
    """How a program ended, and what it said."""

    returncode: int
    """Its exit code, or the negative number of the signal that ended it."""
    stdout: bytes
    stderr: bytes


def ask(argv: Sequence[str], env: Mapping[str, str], stdin: bytes = b"", *, patience: float) -> Answer:
    """Run the program *argv*, whose first word is its absolute name, and return what it answered to *stdin*.

    It works in the folder of this process. Raises TimeoutError after *patience* seconds and OSError where it cannot be
    started; in no case does it outlive the call.
    """
    with contextlib.closing(_Talk(stdin)) as talk:
        # A third of what `subprocess` takes, which asks for more than is needed here.
        child = os.posix_spawn(argv[0], list(argv), env, file_actions=talk.handed(), setsigdef=_USUAL)
        try:
            talk.hold(time.monotonic() + patience)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        # It has closed what it spoke by, so it is at its end.
        status = os.waitpid(child, 0)[1]
        return Answer(os.waitstatus_to_exitcode(status), b"".join(talk.out), b"".join(talk.err))


class _Talk:
    """The pipes between this process and a program that is asked."""

    __slots__ = ("_given", "_heard", "_left", "_open", "_poll", "_theirs", "err", "out")

    def __init__(self, stdin: bytes) -> None:
        self._open: set[int] = set()
        self._left = memoryview(stdin)
        self.out: list[bytes] = []
        self.err: list[bytes] = []
        self._given = self._pipe() if stdin else None
        outs = (self._pipe(), self._pipe())
        self._theirs = tuple(write for _, write in outs)
        self._heard = {outs[0][0]: self.out, outs[1][0]: self.err}
        self._poll = select.poll()

    def _pipe(self) -> tuple[int, int]:
        read, write = (_high(each) for each in os.pipe())
        self._open |= {read, write}
        return read, write

    def _close(self, handle: int) -> None:
        self._open.remove(handle)
        os.close(handle)

    def close(self) -> None:
        """Close all that is still open."""
        for each in tuple(self._open):
            self._close(each)

    def handed(self) -> list[tuple[Any, ...]]:
        """What the program gets as its standard files."""
        first: tuple[Any, ...] = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
        if self._given:
            first = (os.POSIX_SPAWN_DUP2, self._given[0], 0)
        return [first, *((os.POSIX_SPAWN_DUP2, each, place) for place, each in enumerate(self._theirs, 1))]

    def hold(self, until: float) -> None:
        """Talk with the started program until it has closed its ends; raises TimeoutError *until* then."""
        for each in self._theirs:
            self._close(each)
        if self._given:
            read, write = self._given
            self._close(read)
            os.set_blocking(write, False)
            self._poll.register(write, select.POLLOUT)
        for each in self._heard:
            self._poll.register(each, select.POLLIN)
        while self._open:
            ready = self._poll.poll(max(0.0, until - time.monotonic()) * 1000)
            if not ready:
                raise TimeoutError
            for each, _ in ready:
                self._moved(each)

    def _moved(self, handle: int) -> None:
        if handle in self._heard:
            piece = os.read(handle, _PIECE)
            self._heard[handle].append(piece)
            done = not piece
        else:
            done = self._fed(handle)
        if done:
            self._poll.unregister(handle)
            self._close(handle)

    def _fed(self, handle: int) -> bool:
        """Whether the program has, or wants, no more of what it is given."""
        try:
            self._left = self._left[os.write(handle, self._left[:_PIECE]) :]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            return True
        return not self._left


def _high(handle: int) -> int:
    """*handle*, above the standard files: where this process has none of these, a pipe would be in their place."""
    if handle > _STANDARD:
        return handle
    moved = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, _STANDARD + 1)
    os.close(handle)
    return moved
