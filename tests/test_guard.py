"""The guard: nothing runs before its release, nothing of its tree is left after its end, whoever dies first."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from agents import guard, procs, sandbox
from tests.support import fakes, world
from tests.support.wards import hear, output, ward

if TYPE_CHECKING:
    from pathlib import Path

READY = 'print("ready", flush=True); time.sleep(300)'


def evil(folder: Path, mark: str, *, stays: bool) -> list[str]:
    return fakes.program(folder / "evil.py", fakes.EVIL_TREE + (READY if stays else 'print("ready", flush=True)'), mark)


@pytest.mark.parametrize("end", ["normal", "T", "K", "close"])
def test_nothing_of_an_evil_tree_survives_any_end(end: str, tmp_path: Path, mark: str) -> None:
    """P03: same group, own session, deaf to TERM, double-forked daemon with no environment: none is left."""
    with ward(tmp_path, evil(tmp_path, mark, stays=end != "normal"), grace=0.3) as child:
        child.release()
        output(child, b"ready")
        assert len(world.tree_of(mark)) >= fakes.EVIL_COUNT
        if end == "normal":
            assert hear(child, "exit") == {"exit": 0}
        if end != "close":
            child.end(politely=end != "K")
            hear(child, "reaped")
            # The guard has the agent's argv in its own; it is about to go.
            assert set(world.tree_of(mark)) <= {child.process.pid}
    assert world.tree_of(mark) == []


def test_nothing_survives_the_supervisors_own_sigkill(tmp_path: Path, background, mark: str) -> None:
    """P03: the lifeline breaks, the guard ends the tree and goes."""
    supervisor = background("scout", "x", "--engine", "command", "--", *evil(tmp_path, mark, stays=True))
    world.eventually(lambda: len(world.tree_of(mark)) >= fakes.EVIL_COUNT + 2)  # the supervisor's own argv has the mark
    supervisor.kill()
    supervisor.wait()
    world.eventually(lambda: not world.tree_of(mark))


def test_a_second_word_cuts_the_grace_short(tmp_path: Path, mark: str) -> None:
    """C23: an agent that is deaf to TERM is killed at the second request, not after its grace."""
    deaf = fakes.program(tmp_path / "deaf.py", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY, mark)
    with ward(tmp_path, deaf, grace=300) as child:
        child.release()
        output(child, b"ready")
        child.end(politely=True)
        assert world.tree_of(mark), "it ignores TERM"
        child.end(politely=False)
        hear(child, "reaped")
        assert hear(child, "exit") == {"exit": -signal.SIGKILL}


def test_a_supervisor_that_dies_during_the_grace_cuts_it_short(tmp_path: Path, mark: str) -> None:
    deaf = fakes.program(tmp_path / "deaf.py", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY, mark)
    with ward(tmp_path, deaf, grace=300) as child:
        child.release()
        output(child, b"ready")
        child.end(politely=True)
        child.line.close()
        world.eventually(lambda: not world.tree_of(mark))


def test_a_polite_end_lets_the_agent_say_goodbye(tmp_path: Path) -> None:
    polite = "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'bye'), sys.exit(7)))\n" + READY
    with ward(tmp_path, fakes.program(tmp_path / "polite.py", polite), grace=30) as child:
        child.release()
        output(child, b"ready")
        child.end(politely=True)
        assert b"bye" in output(child, b"bye")
        assert hear(child, "exit") == {"exit": 7}


def test_a_stopped_agent_hears_the_polite_end_too(tmp_path: Path) -> None:
    """P28: an agent that has stopped itself goes on to be ended; it does not cost the whole grace."""
    source = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\nprint('ready', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(300)"
    with ward(tmp_path, fakes.program(tmp_path / "stopped.py", source), grace=300) as child:
        child.release()
        output(child, b"ready")
        world.eventually(lambda: guard.stat_fields(child.pid)[:1] == [b"T"])
        child.end(politely=True)
        assert hear(child, "exit") == {"exit": 7}


class TestGate:
    def test_nothing_runs_before_the_release(self, tmp_path: Path) -> None:
        """C06: the agent's identity can be put on disk before its first instruction."""
        with ward(tmp_path, ["/bin/sh", "-c", "echo ran; touch ran"]) as child:
            assert procs.is_alive(child.pid, child.start)
            time.sleep(0.2)
            assert not (tmp_path / "ran").exists()
            child.release()
            hear(child, "exit")
            assert (tmp_path / "ran").exists()

    @pytest.mark.parametrize("died", ["guard", "supervisor"])
    def test_a_gate_whose_holder_died_never_opens(self, died: str, tmp_path: Path) -> None:
        with ward(tmp_path, ["/bin/sh", "-c", "touch ran"]) as child:
            held = (child.pid, child.start)
            if died == "guard":
                child.process.kill()
            else:
                child.line.close()
            world.eventually(lambda: not procs.is_alive(*held))
        assert not (tmp_path / "ran").exists()

    def test_an_agent_killed_at_its_gate_is_told_like_any_other(self, tmp_path: Path) -> None:
        with ward(tmp_path, ["/bin/true"]) as child:
            os.kill(child.pid, signal.SIGKILL)
            assert hear(child, "exit") == {"exit": -signal.SIGKILL}
            child.release()
            child.end(politely=True)
            hear(child, "reaped")


@pytest.mark.parametrize(
    ("argv", "number"),
    [(["/no/such/program"], 2), (["no-such-program-anywhere"], 2), (["/etc/passwd"], 13), (["/"], 13)],
)
def test_a_program_that_cannot_be_run_is_reported(argv: list[str], number: int, tmp_path: Path) -> None:
    """P26: missing or not executable, told with the reason."""
    with ward(tmp_path, argv) as child:
        child.release()
        said = hear(child, "error")
        assert said["error"] == number
        assert os.strerror(number) in said["message"]
        assert hear(child, "exit") == {"exit": 127}


@pytest.mark.parametrize(
    ("source", "code"),
    [("", 0), ("sys.exit(3)", 3), ("os._exit(255)", 255), ("os.kill(os.getpid(), 9)", -9), ("os.kill(os.getpid(), 15)", -15), ("os.abort()", -6)],
)  # fmt: skip
def test_the_end_is_told_as_the_kernel_gave_it(source: str, code: int, tmp_path: Path) -> None:
    """P25: exit codes as they are, signals as negative numbers."""
    with ward(tmp_path, fakes.program(tmp_path / "a.py", source)) as child:
        child.release()
        assert hear(child, "exit") == {"exit": code}


LOOK = """
import json
signals = {n: signal.getsignal(n) == signal.SIG_DFL for n in (1, 3, 15, 17)}
status = open("/proc/self/status").read()
masks = {line.split(":")[0]: int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigIgn", "SigBlk"))}
# One more is open while the folder of open files is read.
fds = sorted(int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}"))
print(json.dumps({"fds": fds, "signals": signals, **masks, "stdin": sys.stdin.read(), "env": dict(os.environ), "session": os.getsid(0) == os.getpid()}), "END", flush=True)
"""


def test_what_the_agent_finds_when_it_wakes(tmp_path: Path) -> None:
    """P30: its three standard files and no other, the input it was given and then its end, and only its own environment."""
    look = ["/usr/bin/env", *fakes.program(tmp_path / "look.py", LOOK)]
    ignored = [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGQUIT)]
    try:
        with ward(tmp_path, look, env={"PATH": os.defpath, "ONLY": "this"}, stdin=b"the task\n") as child:
            child.release()
            found = json.loads(output(child, b"END").partition(b"END")[0])
    finally:
        signal.signal(signal.SIGHUP, ignored[0])
        signal.signal(signal.SIGQUIT, ignored[1])
    assert found["fds"] == [0, 1, 2]
    assert found["stdin"] == "the task\n"
    assert {name: value for name, value in found["env"].items() if name not in {"LC_CTYPE", "PWD"}} == {"PATH": os.defpath, "ONLY": "this"}  # fmt: skip
    assert found["session"]
    assert all(found["signals"].values())
    # Python itself ignores SIGPIPE (13) and SIGXFSZ (25) when it starts; nothing else is ignored, nothing is blocked.
    assert found["SigIgn"] & ~(1 << 12 | 1 << 24) == 0
    assert found["SigBlk"] == 0


def test_the_guard_itself_holds_no_pipe_of_the_agent(tmp_path: Path) -> None:
    """P07: the end of the agent's output is the end of its tree, so the guard must not keep it open."""
    with ward(tmp_path, ["/bin/true"]) as child:
        child.release()
        hear(child, "exit")
        assert child.stdout is not None
        world.eventually(lambda: os.read(child.stdout, 10) == b"")
        assert child.process.poll() is None


def test_orphans_become_the_guards_children_and_are_reaped(tmp_path: Path, mark: str) -> None:
    """P04: a zombie is not left in the process table while the agent goes on."""
    source = """
if os.fork() == 0:
    pid = os.fork()
    if pid:
        print(pid, "forked", flush=True)
        os._exit(0)
    time.sleep(0.1)
    os._exit(0)
os.wait()
time.sleep(300)
"""
    with ward(tmp_path, fakes.program(tmp_path / "a.py", source, mark)) as child:
        child.release()
        orphan = int(output(child, b"forked").split()[0])
        world.eventually(lambda: not os.path.exists(f"/proc/{orphan}"))  # noqa: PTH110 - a process, not a file
        assert procs.is_alive(child.pid, child.start)


def test_facts_about_processes_that_are_not_there() -> None:
    assert guard.stat_fields(2**22 + 1) == []
    assert guard.start_ticks(2**22 + 1) is None
    assert guard.descendants(2**22 + 1) == []
    guard.signal_all([2**22 + 1], signal.SIGKILL)


class TestSpec:
    """What is done before the first instruction, as the sandbox asks for it."""

    def test_descriptors_are_open_with_what_was_given(self, tmp_path: Path) -> None:
        """P30: those and no other, in whatever order the numbers come, beside those the guard itself has in use."""
        wanted = {number: os.urandom(200_000 if number == 9 else 5) for number in (9, 3, 301, 4, 300)}
        spec = {"files": {str(number): content.hex() for number, content in wanted.items()}}
        source = (
            "import json\nfds = {n: os.pread(int(n), 10**6, 0).hex() for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.isfile(f'/proc/self/fd/{n}')}\n"
            "print(json.dumps(fds))"
        )
        assert json.loads(alone(fakes.program(tmp_path / "a.py", source), spec)) == spec["files"]

    def test_limits_are_set_and_never_lifted(self, tmp_path: Path) -> None:
        """S12: a limit above what this process may have is what it may have."""
        source = "import resource\nprint(*resource.getrlimit(resource.RLIMIT_NOFILE), *resource.getrlimit(resource.RLIMIT_CORE))"
        look = fakes.program(tmp_path / "a.py", source)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        assert alone(look, {"limits": {"nofile": [64, 128], "core": [0, 0]}}).split() == ["64", "128", "0", "0"]
        assert alone(look, {"limits": {"nofile": [10**9, 10**9], "core": [0, 0]}}).split()[1] == str(most)

    def test_a_refusal_is_given_for_the_program(self, tmp_path: Path) -> None:
        spec = sandbox.in_memory(guard.packed({"refused": [2, "No such file or directory: x"]}))
        command = guard.command("-", 0, spec, ["/bin/echo", "ran"])
        done = subprocess.run(command, pass_fds=[spec], capture_output=True, text=True, check=False)
        os.close(spec)
        assert done.returncode == 1
        assert done.stdout == ""
        assert "No such file or directory" in done.stderr


def alone(argv: list[str], spec: dict[str, object]) -> str:
    """What *argv* prints, run by the guard unwatched."""
    given = sandbox.in_memory(guard.packed(spec))
    command = guard.command("-", 0, given, argv)
    try:
        return subprocess.run(command, pass_fds=[given], capture_output=True, text=True, check=True).stdout
    finally:
        os.close(given)


def test_the_wrapper_is_spared_while_it_holds_somebody(tmp_path: Path) -> None:
    """C23: TERM goes to those inside of a sandbox; a sandbox that is still empty hears it itself."""
    inner = "signal.signal(15, lambda *_: (os.write(1, b'heard'), os._exit(0)))\nprint('ready', flush=True)\ntime.sleep(300)"
    argv = fakes.program(tmp_path / "inner.py", inner)
    outer = f"signal.signal(15, lambda *_: os.write(1, b'outer'))\nsubprocess.run({argv!r})\nprint('over', flush=True)"
    code = (
        f"import sys, socket, subprocess; sys.path.insert(0, {str(world.PROJECT)!r}); from agents import guard; import os\n"
        f"held = subprocess.Popen({fakes.program(tmp_path / 'outer.py', outer)!r}, stdout=subprocess.PIPE)\n"
        "assert held.stdout.readline() == b'ready\\n'\nline, other = socket.socketpair()\n"
        "guard.end_tree(os.getpid(), 30, line, held.pid)\nprint(held.stdout.read())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "b'heardover\\n'\n"
    empty = (
        "signal.signal(15, lambda *_: (os.write(1, b'told'), os._exit(0)))\nprint('ready', flush=True)\ntime.sleep(300)"
    )
    code = code.replace("outer.py", "empty.py")
    fakes.program(tmp_path / "empty.py", empty)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "b'told'\n"
