"""A question is asked on the operator's own terminal, or not at all."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.world import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

# The first word is the terminal that becomes the process's own, "-" for none.
ASKER = f"""
import fcntl, os, sys, termios
sys.path.insert(0, {str(PROJECT)!r})
if sys.argv[1] != "-":
    fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
from agents import terminal
from agents.errors import OperatorError
try:
    print("answer:", ascii(terminal.ask(sys.argv[2], "Type YES:")))
except OperatorError as why:
    print("refused", why.message, why.hint, sep="|")
"""
SHOWN = "2 files changed\n\x1b[31mred\x1b[0m é\n\n\n"


class Terminal:
    """Both ends of a terminal: what the operator sees and types, and what the program has."""

    def __init__(self) -> None:
        self.operator, self.program = pty.openpty()

    def seen(self, until: bytes) -> bytes:
        """What is on it up to and with *until*."""
        data, end = b"", time.monotonic() + 30
        while until not in data:
            assert time.monotonic() < end, data
            data += os.read(self.operator, 4096)
        return data

    def types(self, data: bytes) -> None:
        """The operator types *data*."""
        os.write(self.operator, data)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A terminal, closed at the end."""
    made = Terminal()
    try:
        yield made
    finally:
        os.close(made.operator)
        with contextlib.suppress(OSError):
            os.close(made.program)


def asker(terminal: Terminal, *, own: bool, stdin: int | None = None) -> subprocess.Popen[bytes]:
    """A process that asks; the *terminal* is its *own* or only its standard input."""
    word = str(terminal.program) if own else "-"
    return subprocess.Popen(
        [sys.executable, "-I", "-c", ASKER, word, SHOWN], stdin=terminal.program if stdin is None else stdin,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[terminal.program], start_new_session=True,
    )  # fmt: skip


def end(process: subprocess.Popen[bytes]) -> str:
    """What the *process* printed, once it has ended well."""
    with process:
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err.decode()
    return out.decode().strip()


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (b"YES\n", "YES"),
        (b"  no thanks \n", "no thanks"),
        (b"\n", ""),
        (b"\x04", ""),
        (b"a\xff\n", "a\\ufffd"),
        (b"3f2a\nmore\n", "3f2a"),
    ],
)
def test_it_shows_and_reads_on_the_terminal_whatever_standard_output_is(
    terminal: Terminal, typed: bytes, answer: str
) -> None:
    """M04: what is approved is what stands there; an end of file approves nothing."""
    process = asker(terminal, own=True)
    seen = terminal.seen(b"Type YES: ")
    terminal.types(typed)
    assert end(process) == f"answer: '{answer}'"
    assert seen == "2 files changed\r\n\x1b[31mred\x1b[0m é\r\n\r\nType YES: ".encode()


def test_an_answer_out_of_a_pipe_is_nobodys(terminal: Terminal) -> None:
    """M04: even though there is a terminal that could be asked."""
    read, write = os.pipe()
    os.write(write, b"YES\n")
    os.close(write)
    process = asker(terminal, own=True, stdin=read)
    os.close(read)
    said = end(process)
    assert said.startswith("refused|There is no terminal to ask for your approval.|")
    assert "--approve" in said


def test_without_a_terminal_of_its_own_nothing_is_asked(terminal: Terminal) -> None:
    """M04: a terminal that is merely handed in as standard input belongs to somebody else."""
    terminal.types(b"YES\n")
    said = end(asker(terminal, own=False))
    assert said.startswith("refused|There is no terminal to ask for your approval.|")
    assert "sha256sum .agents/latest/changes.patch" in said
