"""The command line: what is typed finds its verb, and the one boundary where errors become sentences and exit codes."""

from __future__ import annotations

import os
import sys

from agents import quick
from agents.errors import BoxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

USAGE: Final = 2
INTERRUPTED: Final = 2
INTERNAL: Final = 4


def run(arguments: Sequence[str]) -> int:
    """Run the command line *arguments*; returns the exit code.

    Only an ImportError leaves it: the environment lacks a package, which :mod:`agents.__main__` mends.
    """
    try:
        result = _called(arguments)
        sys.stdout.flush()
    except BoxError as why:
        return _explain(why.message, why.hint, why.code)
    except SystemExit as end:
        # Typer's way of saying that the reader of our output has had enough.
        return end.code if isinstance(end.code, int) and end.code != 1 else 0
    except (KeyboardInterrupt, EOFError):
        # The terminal's echo of Ctrl-C stands at the beginning of this line.
        print(file=sys.stderr)
        return _explain("Interrupted.", "", INTERRUPTED)
    except BrokenPipeError:
        # The reader has had enough (`agent list | head`); nothing must be written to it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ImportError:
        raise
    except Exception as why:  # noqa: BLE001 - no traceback reaches an operator
        return _usage(why)
    return result if isinstance(result, int) else 0


def _called(arguments: Sequence[str]) -> object:
    """Have the verb that *arguments* ask for do its work; returns what it did."""
    plain = quick.understood(arguments)
    if plain:
        verb, values = plain
        return verb(**values)
    from agents.parser import app

    return app(list(arguments), prog_name="agent", standalone_mode=False)


def _usage(why: Exception) -> int:
    """A mistake in the command line (Typer's own exceptions), or a fault of this program."""
    if type(why).__name__ == "Abort":
        return _explain("Interrupted.", "", INTERRUPTED)
    if hasattr(why, "format_message"):
        path = getattr(getattr(why, "ctx", None), "command_path", "agent")
        return _explain(why.format_message(), f"Type: ./{path} --help", USAGE)
    if isinstance(why, OSError):
        return _explain(f"{why.strerror or why}: {why.filename or ''}".rstrip(": "), "Type: ./agent doctor", INTERNAL)
    return _explain(f"Agent Box itself failed: {type(why).__name__}: {why}", _keep_traceback(why), INTERNAL)


def _keep_traceback(why: Exception) -> str:
    """Keep the traceback where a bug report can be made of it; returns the hint that says where."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="agent-box-", suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exception(why, file=file)
    return f"The details are in {file.name}; please report them."


def _explain(message: str, hint: str, code: int) -> int:
    from agents.redact import visible

    print(f"agent: {visible(message)}", file=sys.stderr)
    if hint:
        print(f"  {visible(hint)}", file=sys.stderr)
    return code
