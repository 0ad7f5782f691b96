"""What goes wrong at the operator's desk: whose fault it is, as an exit code, and what to type next."""

from __future__ import annotations


class Trouble(Exception):  # noqa: N818 - an answer to the operator, told as one sentence
    """*message* is one sentence, *hint* what to type next or empty; the exit code says whose fault it is."""

    code = 2
    """The operator's: what was asked for cannot be."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Broken(Trouble):
    """The machine's: a disk, a file that cannot be read."""

    code = 4


class Forged(Trouble):
    """What was given is not what was once written."""

    code = 5
