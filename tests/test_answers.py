"""Programs that are asked: what they say comes back whole, and none outlives its question."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.answers import Answer, ask

PROJECT = Path(__file__).resolve().parents[1]
ENV = {"PATH": os.environ.get("PATH", os.defpath)}


def shell(script: str, stdin: bytes = b"", *, patience: float = 60):
    return ask(["/bin/sh", "-c", script], ENV, stdin, patience=patience)


def descriptors() -> set[str]:
    return {each.name for each in Path("/proc/self/fd").iterdir()}


def test_what_it_says_and_how_it_ends():
    assert shell("echo out; echo err >&2; exit 3") == Answer(3, b"out\n", b"err\n")
    assert shell("kill -9 $$").returncode == -signal.SIGKILL


def test_without_a_question_there_is_nothing_to_read():
    assert shell("cat").stdout == b""


@pytest.mark.parametrize("size", [1, 65536, 3_000_001])
def test_much_goes_through_both_ways_at_once(size):
    """More than the pipes hold: who only wrote, or only read, would wait for ever."""
    data = os.urandom(size)
    answer = shell("tee /dev/stderr", data)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, data, data)


def test_one_that_does_not_want_to_hear_it_all_is_no_error():
    assert shell("head -c 3", b"abc" * 1_000_000) == Answer(0, b"abc", b"")
    assert shell("exec 0<&-; echo done", b"abc" * 1_000_000).stdout == b"done\n"


def test_patience_ends_and_so_does_the_program(tmp_path):
    """Slow to answer, slow to listen: it is killed and waited for."""
    before = descriptors()
    for stdin in (b"", b"x" * 1_000_000):
        with pytest.raises(TimeoutError):
            shell(f"echo $$ > '{tmp_path}/pid'; exec sleep 600", stdin, patience=0.5)
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)
    assert descriptors() == before


def test_a_program_that_is_not_there_leaves_nothing_open():
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        ask(["/nowhere/git"], ENV, b"x", patience=5)
    assert descriptors() == before


def test_its_environment_and_files_are_what_it_is_given(tmp_path):
    """Nothing of this process's: no variable, no open file."""
    names = {line.partition(b"=")[0] for line in shell("env").stdout.splitlines()}
    assert names <= {b"PATH", b"PWD", b"OLDPWD", b"SHLVL", b"_"}
    with (tmp_path / "secret").open("w"):
        assert str(tmp_path).encode() not in shell("ls -l /proc/self/fd").stdout


def test_a_broken_pipe_ends_it_as_it_would_anywhere():
    """Python ignores SIGPIPE; a program that did so too would complain and go on."""
    assert shell("yes | head -n 1; exit 0") == Answer(0, b"y\n", b"")


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_without_standard_files_of_its_own(tmp_path, closed):
    """What began without them gets pipes in their place, which must not be mistaken for one another."""
    code = (
        "from agents.answers import ask; from pathlib import Path\n"
        "told = ask(['/bin/sh', '-c', 'cat; echo err >&2'], {}, b'in', patience=60)\n"
        f"Path({str(tmp_path / 'told')!r}).write_text(repr((told.returncode, told.stdout, told.stderr)))"
    )
    subprocess.run(["/bin/sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code], cwd=PROJECT, check=True)
    assert (tmp_path / "told").read_text() == "(0, b'in', b'err\\n')"


def test_an_interrupt_ends_it_too(tmp_path):
    """Ctrl-C while a program is asked: nothing of it is left. It has heard all, so it is certainly being waited for."""
    code = (
        "import signal\n"
        # Whoever starts the tests in the background has them ignore it, and their children with them.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from agents.answers import ask\n"
        f"ask(['/bin/sh', '-c', 'cat > /dev/null; echo $$ > {tmp_path}/pid; exec sleep 600'], {ENV!r}, b'x' * 300_000,\n"
        "    patience=600)"
    )
    asker = subprocess.Popen([sys.executable, "-c", code], cwd=PROJECT, stderr=subprocess.DEVNULL)
    pid = tmp_path / "pid"
    deadline = time.monotonic() + 60
    while not (pid.exists() and pid.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    asker.send_signal(signal.SIGINT)
    assert asker.wait(60) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
