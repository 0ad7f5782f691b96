"""Errors by fault: whose it is, the exit code that says so, and what to type next."""

from __future__ import annotations


class BoxError(Exception):
    """A failure that reaches the operator as one sentence, a hint and an exit code.

    *message* is a full sentence; *hint* is what to type next, or empty. Only the children are raised: each says whose
    fault it is. Exit code 1 is never used on purpose (Python itself ends with it), so that a script can tell an
    accident from an answer.
    """

    code = 4

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class OperatorError(BoxError):
    """The request cannot be fulfilled as typed: exit code 2."""

    code = 2


class AgentError(BoxError):
    """The agent failed or broke its contract: exit code 3."""

    code = 3


class HostError(BoxError):
    """The machine failed: git, disk, permissions, a missing program. Exit code 4."""

    code = 4


class Tampered(BoxError):  # noqa: N818 - it names what was found, not that something went wrong here
    """Evidence, ledger or envelope is not what was recorded: exit code 5."""

    code = 5
