"""An agent that calls the gate itself is told apart from its operator: by mark, by ancestry, by namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agents import inside
from agents.inside import Ancestor
from tests.support.needs import needs_bwrap
from tests.support.world import PROJECT

MARK = b"HOME=/h\0AGENT_BOX_MARK=/w/.agents/runs/x\0"


def chain(*above):
    """A process table in which each process is the child of the next one; the first has pid 100."""
    found = [Ancestor(100 + at, 101 + at, 5, **each) for at, each in enumerate(above)]
    return {each.pid: each for each in found}.get


@pytest.mark.parametrize(
    ("environ", "above", "recorded", "word"),
    [
        ({}, [{}, {}], [], None),
        ({}, [], [], None),
        ({"AGENT_BOX_MARK": "x"}, [{}], [], "AGENT_BOX_MARK"),
        ({"AGENT_BOX_RUN": "x"}, [{}], [], "AGENT_BOX_RUN"),
        ({"AGENT_BOX_MARK": ""}, [{}], [], None),
        ({}, [{"environ": MARK}], [], "process 100"),
        ({}, [{}, {}, {"environ": MARK}], [], "process 102"),
        ({}, [{}, {"environ": b"NOT_AGENT_BOX_MARK=1\0X=AGENT_BOX_MARK=\0"}], [], None),
        ({}, [{}, {}], [(101, 5)], "process 101"),
        ({}, [{}, {}], [(101, 6), (None, None)], None),
    ],
)  # fmt: skip
def test_who_counts_as_inside(environ, above, recorded, word):
    """T149: in an agent's environment or process tree; M03: also above processes that shed their environment."""
    found = inside.reason(environ, 100, recorded, see=chain(*above))
    assert found is None if word is None else word in found


def test_the_first_process_of_a_sandbox_tells_it():
    """M01: in a pid namespace made by bubblewrap the first process is bubblewrap itself."""
    table = {7: Ancestor(7, 1, 5), 1: Ancestor(1, 0, 1, program="bwrap")}
    assert "bubblewrap" in inside.reason({}, 7, see=table.get)
    table[1] = Ancestor(1, 0, 1, program="systemd")
    assert inside.reason({}, 7, see=table.get) is None


def test_a_table_that_changes_while_it_is_read_does_not_hold_it_up():
    table = {7: Ancestor(7, 8, 5), 8: Ancestor(8, 7, 5)}
    assert inside.reason({}, 7, see=table.get) is None


def test_the_kernel_is_asked_for_what_is_real():
    me = inside.look(os.getpid())
    assert (me.pid, me.parent) == (os.getpid(), os.getppid())
    assert me.start > 0
    assert b"=" in me.environ
    assert me.program.startswith("python") or me.program == Path(sys.executable).name
    assert inside.look(2**22 + 1) is None


def asked(argv, **environ):
    """What a fresh process started by *argv* says of itself, its own environment left out of account."""
    code = "import os; from agents import inside; print(inside.reason({}, os.getpid()))"
    words = [*argv, sys.executable, "-c", code]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), **environ}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout.strip()


def test_a_process_with_the_mark_is_found_by_what_the_kernel_shows():
    """M03: a child that empties its own environment still has a parent that carries the mark."""
    env = shutil.which("env")
    shell = [env, "AGENT_BOX_MARK=x", "sh", "-c", 'env -u AGENT_BOX_MARK "$@"; exit $?', "sh"]
    assert "carries a run's mark" in asked(shell)
    plain = [env, "sh", "-c", '"$@"; exit $?', "sh"]
    assert asked(plain) == str(inside.reason({}, os.getpid()))


@needs_bwrap
def test_inside_of_a_sandbox_the_gate_knows_where_it_is():
    """M01: no mark, no recorded process, yet the namespace gives it away."""
    argv = [shutil.which("bwrap"), "--unshare-user", "--unshare-pid", "--bind", "/", "/", "--proc", "/proc", "--"]
    assert "sandbox" in asked(argv)
