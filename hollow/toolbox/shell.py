"""Shell: a command in the repository, in a sandboxed child that leaves nothing running."""

from __future__ import annotations

from essentials.patterns import late
from hollow import children
from hollow.confine import Refusal
from hollow.toolbox.workspace import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from hollow.children import Ended
    from hollow.toolbox.workspace import Workspace

MAX_TIMEOUT: Final = 600.0
"""Seconds a command may ask for: a test suite, not a server."""

MAX_COMMAND: Final = 100_000
"""Bytes of a command; the kernel takes no argument of more than 131,072, and WriteFile is there for long texts."""

_ESCAPE: Final = late(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
"""Terminal sequences: colours and cursor moves, titles and links."""

_KEEP: Final = 20_000
"""Bytes of output that are shown: about 6,000 tokens."""


def shell(place: Workspace, command: str, timeout: float = 120.0) -> str:
    """Run a command with /bin/sh in the top folder of the repository; returns its exit code and output. There is no
    network, it can write in the repository and in /tmp alone, and whatever it started is ended with it.

    command: what to type, such as python -m pytest -q tests
    timeout: seconds after which it is ended, at most 600
    """
    if place.cell is None:
        raise Refusal("There is no safe way to run commands here; say in the report what should be run.")
    if not command.strip() or "\0" in command or len(command.encode()) > MAX_COMMAND:
        raise Refusal(f"A command has 1 to {MAX_COMMAND} bytes and no NUL; write long texts with WriteFile.")
    # A model that asks for no time at all means: no limit of its own.
    seconds = min(timeout, MAX_TIMEOUT) if timeout > 0 else 120.0
    cell = place.cell
    ended = children.run(cell.argv(command), cwd=cell.repo, env=cell.env, timeout=seconds, keep=_KEEP, beat=place.beat)
    if ended.code is None:
        raise Refusal(f"The command {_why(ended, seconds)}. All it had started was ended.\n{output(ended)}")
    return f"Exit code {exit_code(ended.code)}\n{output(ended)}"


def _why(ended: Ended, seconds: float) -> str:
    return f"timed out after {seconds:g} s" if ended.late else f"printed more than {children.MAX_OUTPUT} bytes"


def exit_code(code: int) -> int:
    """Return *code*, negative for a signal, as it is shown."""
    # As a shell says it: bubblewrap speaks so too, and one spelling is enough for a model to learn.
    return 128 - code if code < 0 else code


def output(ended: Ended) -> str:
    """Return what the command printed, as text; what was left out of its middle is said."""
    if not ended.left_out:
        return _plain(ended.head + ended.tail) or "(no output)"
    return f"{_plain(ended.head)}\n[… {ended.left_out} bytes are left out here …]\n{_plain(ended.tail)}"


def _plain(data: bytes) -> str:
    """*data* as lines of text, without what moves a terminal's cursor or colours it."""
    lines = _ESCAPE.sub("", text(data)).replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c for c in lines if c.isprintable() or c in "\n\t").strip("\n")
