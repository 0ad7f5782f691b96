"""shell_exec and test_exec: commands and Python in a sandboxed child that can do no more than the agent may now."""

from __future__ import annotations

from hollow import children
from hollow.hands.call import Failed, done
from hollow.hands.traces import noticing
from hollow.substrate.model import Trouble
from hollow.toolbox.shell import MAX_COMMAND, exit_code, output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from hollow.children import Ended
    from hollow.hands.call import Call
    from hollow.substrate.model import Result

MAX_CODE: Final = 256 * 1024
"""Bytes of Python that test_exec takes; a program of more is a file."""
_KEEP: Final = 20_000
"""Bytes of output that are kept: about 6,000 tokens."""
_PYTHON: Final = "exec python3 -B - 2>&1"
"""Reads the program from standard input, so that its length is no matter; it finds modules from the top."""


def shell_exec(reach: Call, command: str) -> Result:
    """Run a command with /bin/sh at the top of the repository; gives its exit code and output. There is no network; it
    can write your own folders alone, and nothing while writing is locked.

    command: what to type, such as grep -rn retry src
    """
    if not command.strip() or "\0" in command or len(command.encode()) > MAX_COMMAND:
        raise Failed(Trouble.USAGE, f"A command has 1 to {MAX_COMMAND} bytes and no NUL.")
    return _run(reach, command)


def test_exec(reach: Call, code: str) -> Result:
    """Run Python code at the top of the repository, with the same bounds as shell_exec; gives its exit code and output.

    code: the program; print what you want to see
    """
    if not code.strip() or len(code.encode()) > MAX_CODE:
        raise Failed(Trouble.USAGE, f"The code has 1 to {MAX_CODE} bytes.")
    return _run(reach, _PYTHON, code.encode())


def _run(reach: Call, command: str, stdin: bytes = b"") -> Result:
    cell = reach.child()
    argv = cell.argv(command)
    with noticing(reach) as wrote:
        ended = children.run(
            argv, cwd=cell.repo, env=cell.env, timeout=reach.seconds, keep=_KEEP, beat=reach.beat, stdin=stdin
        )
    if ended.code is None:
        trouble, sentence = _cut_off(ended, reach.seconds)
        raise Failed(trouble, sentence, {"exit_code": None, "output": output(ended)}, wrote=tuple(wrote))
    return done({"exit_code": exit_code(ended.code), "output": output(ended)}, wrote=tuple(wrote))


def _cut_off(ended: Ended, seconds: float) -> tuple[Trouble, str]:
    if ended.late:
        return Trouble.TIMEOUT, f"It took longer than {seconds:g} s; it and all it had started was ended."
    return Trouble.FAILED, f"It printed more than {children.MAX_OUTPUT} bytes; it and all it had started was ended."
