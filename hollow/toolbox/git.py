"""The tools' door to git: bounded in time and size, nothing inherited, no program of the repository started."""

from __future__ import annotations

import os
import subprocess
import threading
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from hollow.confine import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TIMEOUT: Final = 20.0
"""Seconds one git command may take: a hostile regular expression must not hold the agent."""

MAX_BYTES: Final = 4 * 1024 * 1024
"""Bytes of output that are read at most; far more than a tool shows, so that it can say how much there was."""

_MAX_ERROR: Final = 2000
"""Bytes of standard error that are kept."""

_SETTINGS: Final = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    "log.showSignature": "false",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "safe.directory": "*",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "diff.renames": "true",
}
"""Settings of the repository that would start a program, reach the network or change the shape of the output."""


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


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    # Built from nothing: GIT_DIR, GIT_EXTERNAL_DIFF or GIT_CONFIG_* of whoever started us would redirect git.
    # LC_ALL=C, because in a UTF-8 locale `git grep -P` skips every line that is not valid UTF-8 (git 2.39).
    fixed = {
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    # Not as `-c name=value`: the name of a filter may hold an equals sign and would be split there.
    for number, (name, value) in enumerate(settings.items()):
        fixed |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {"PATH": os.environ.get("PATH", os.defpath), **fixed}


def run(
    root: Path, arguments: Sequence[str], *, settings: Mapping[str, str] | None = None, timeout: float = TIMEOUT
) -> Output:
    """Run git with *arguments* in *root* and return what it gave; *settings* are set beside the usual ones.

    *timeout* is in seconds. Raises :class:`Refusal` if git cannot be started.
    """
    argv = ["git", "--no-pager", *arguments]
    environment = _environment({**_SETTINGS, **(settings or {})})
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(argv, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
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
