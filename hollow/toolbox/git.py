"""The tools' door to git: bounded in time and size, nothing inherited, no program of the repository started."""

from __future__ import annotations

import subprocess
import threading

from essentials.records import dataclass
from hollow.confine import Refusal
from hollow.gitenv import environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import IO, Final

TIMEOUT: Final = 20.0
"""Seconds one git command may take: a hostile regular expression must not hold the agent."""

MAX_BYTES: Final = 4 * 1024 * 1024
"""Bytes of output that are read at most; far more than a tool shows, so that it can say how much there was."""

_MAX_ERROR: Final = 2000
"""Bytes of standard error that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a git command gave."""

    data: bytes
    """Standard output, :data:`MAX_BYTES` at most."""
    code: int
    """Exit code; negative when it was stopped."""
    error: str
    """First line of standard error."""
    cut: bool
    """Whether there was more output than was read."""
    late: bool
    """Whether it was stopped because it took longer than :data:`TIMEOUT`."""

    @property
    def broken(self) -> bool:
        """Whether it failed, other than by being stopped with enough output in hand."""
        return self.code != 0 and not self.cut


def run(
    root: Path, arguments: Sequence[str], *, settings: Mapping[str, str] | None = None, timeout: float = TIMEOUT
) -> Output:
    """Run git with *arguments* in *root* and return what it gave; *settings* are set above the usual ones.

    *timeout* is in seconds. Raises :class:`Refusal` if git cannot be started.
    """
    argv = ["git", "--no-pager", *arguments]
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            argv, cwd=root, env=environment(settings), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
    except (OSError, ValueError) as why:
        raise Refusal(f"git cannot be started: {why}.") from None
    data, error, late = _drain(process, timeout)
    return Output(
        data=data[:MAX_BYTES],
        code=process.returncode,
        error=(error.decode("utf-8", "replace").strip().splitlines() or [""])[0],
        cut=len(data) > MAX_BYTES,
        late=late,
    )


def _drain(process: subprocess.Popen[bytes], timeout: float) -> tuple[bytes, bytes, bool]:
    """Read up to one byte more than :data:`MAX_BYTES`; returns it, the errors, and whether the time was up."""
    late = threading.Event()
    errors: list[bytes] = []

    def stop() -> None:
        """End git because its time is up."""
        late.set()
        process.kill()

    # A pipe and a thread, not a temporary file: a sandbox need not have a place to write.
    listener = threading.Thread(target=_listen, args=(process.stderr, errors), daemon=True)
    timer = threading.Timer(timeout, stop)
    timer.daemon = True
    with process:
        listener.start()
        timer.start()
        try:
            data = process.stdout.read(MAX_BYTES + 1) if process.stdout else b""
            if len(data) <= MAX_BYTES:
                process.wait()
        finally:
            # Also when a signal ends the cycle here: no git may survive the agent that asked.
            timer.cancel()
            process.kill()
            listener.join()
    return data, b"".join(errors), late.is_set()


def _listen(source: IO[bytes] | None, errors: list[bytes]) -> None:
    """Keep the beginning of *source* in *errors* and read the rest away, so that the writer never waits."""
    if source is not None:
        errors.append(source.read(_MAX_ERROR))
        while source.read(65536):
            pass


def literal(path: str) -> str:
    """Return the pathspec that means exactly *path*, whatever ``*`` or ``:`` it holds.

    It is relative to the workspace, not to git's top folder: a workspace may be a part of a larger repository.
    """
    return f":(literal){path}"


def tracks(root: Path, path: str) -> bool:
    """Whether git tracks the file *path* (relative to *root*); False as well when git cannot say."""
    try:
        return run(root, ["ls-files", "--error-unmatch", "-z", "--", literal(path)]).code == 0
    except Refusal:
        return False
