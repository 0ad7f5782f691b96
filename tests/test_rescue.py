"""What an agent said and its supervisor had not recorded when it was killed: the guard, which outlives it, does."""

from __future__ import annotations

import mmap
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from agents import guard
from tests.support import fakes, world

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# A supervisor that records nothing: all that its agent says is left to the guard.
DEAF = """
    import time
    from pathlib import Path
    sys.path.insert(0, {project!r})
    from agents import procs
    here = Path({here!r})
    out, err = (os.open(here / name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC) for name in ("out", "err"))
    spool = here / "spool" if {spooled} else None
    source = os.open(spool, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) if spool else None
    before = os.fstat(out).st_size
    copied = {copied}
    child = procs.spawn(
        {argv!r}, cwd=here, env=dict(PATH=os.defpath), stdin=Path(os.devnull), spool=spool, grace=1,
        rescue=(procs.Rescue(out, {limit}, source, before), procs.Rescue(err, 100)),
    )
    child.release()
    while not (here / "written").exists():
        time.sleep(0.01)
    if copied:
        os.lseek(out, 0, os.SEEK_END)
        os.write(out, os.read(source if spool else child.stdout, copied))
    print(child.process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
SAYS = """
    os.write(1, b'said' * 5000); os.write(2, b'e' * 150)
    open('given', 'w').write(' '.join(sorted(n for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}'))))
    open('written', 'w').close(); time.sleep(300)"""


def die(folder: Path, *, spooled: bool, copied: int = 0, limit: int = 10**9) -> tuple[bytes, bytes]:
    """What is in the box after the death of a supervisor that has recorded the first *copied* bytes alone."""
    folder.mkdir(exist_ok=True)
    argv = fakes.program(folder / "agent.py", SAYS)
    source = DEAF.format(
        project=str(world.PROJECT), here=str(folder), argv=argv, spooled=spooled, copied=copied, limit=limit
    )
    deaf = fakes.program(folder / "deaf.py", source)
    with subprocess.Popen(deaf, stdout=subprocess.PIPE) as process:
        assert process.stdout
        keeper = int(process.stdout.readline())
    world.eventually(lambda: guard.start_ticks(keeper) is None)
    return (folder / "out").read_bytes(), (folder / "err").read_bytes()


@pytest.mark.parametrize("spooled", [False, True])
def test_what_nobody_has_recorded_is_in_the_box(spooled: bool, tmp_path: Path) -> None:
    """C06: all of it, behind what an earlier attempt left there; of stderr as much as may be kept."""
    (tmp_path / "out").write_bytes(b"before\n")
    out, err = die(tmp_path, spooled=spooled)
    assert out == b"before\n" + b"said" * 5000
    assert err == b"e" * 100


def test_the_agent_is_given_none_of_it(tmp_path: Path) -> None:
    """P30: neither the read ends of its pipes nor the files of the box are open in it."""
    die(tmp_path, spooled=False)
    assert (tmp_path / "given").read_text() == "0 1 2 3", "and the file that it writes this to"


@pytest.mark.parametrize("spooled", [False, True])
def test_nothing_is_recorded_twice(spooled: bool, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"before\n")
    assert die(tmp_path, spooled=spooled, copied=10_001)[0] == b"before\n" + b"said" * 5000


@pytest.mark.parametrize("spooled", [False, True])
def test_the_limit_of_the_output_holds(spooled: bool, tmp_path: Path) -> None:
    assert die(tmp_path, spooled=spooled, limit=9_999)[0] == (b"said" * 5000)[:9_999]


COUNTS = """
    import mmap
    with open({count!r}, "r+b") as file:
        count = mmap.mmap(file.fileno(), 8)
    number = 0
    while True:
        os.write(1, b"%07d\\n" % number)
        number += 1
        count[:] = number.to_bytes(8, "little")
        if number % 10 == 0:
            time.sleep(0.002)
"""
TRIES = 4


def test_every_line_that_was_written_before_a_kill_is_in_the_box(
    repo: Path, agent: Callable[..., object], background: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """C06: the supervisor dies at any moment; the stream holds all that the agent's write(2) had accepted, in order."""
    chance = random.Random(5)
    for attempt in range(TRIES):
        counter = tmp_path / f"count{attempt}"
        counter.write_bytes(bytes(8))
        with counter.open("r+b") as file, mmap.mmap(file.fileno(), 8) as count:
            process = background("scout", "x", *fakes.command(tmp_path / "a.py", COUNTS.format(count=str(counter))))
            world.eventually(lambda count=count: any(count[:]))
            time.sleep(chance.random() / 5)
            process.send_signal(signal.SIGKILL)
            process.wait(30)
            agent("status")
            written = int.from_bytes(count[:], "little")
        kept = (repo / ".agents" / "latest" / "raw" / "stream.jsonl").read_bytes()
        assert written > 0
        assert len(kept) // 8 >= written, f"{written - len(kept) // 8} of {written} lines are lost"
        assert kept == b"".join(b"%07d\n" % number for number in range(len(kept) // 8))


def test_an_unread_word_of_the_guard_does_not_save_its_tree(tmp_path: Path) -> None:
    """P03: a socket whose end was closed with something unread in it fails instead of ending; that is an end as well."""
    argv = fakes.program(tmp_path / "agent.py", "subprocess.Popen(['sleep', '301'])\nopen('gone', 'w').close()")
    code = (
        f"import os, sys, time; sys.path.insert(0, {str(world.PROJECT)!r})\nfrom pathlib import Path\nfrom agents import guard, procs\n"
        f"here = Path({str(tmp_path)!r})\n"
        f"child = procs.spawn({argv!r}, cwd=here, env=dict(PATH=os.defpath), stdin=Path(os.devnull), spool=None, grace=1)\n"
        "child.release()\nimport select; select.select([child.line], [], [])\nprint(child.process.pid, *guard.descendants(child.process.pid), flush=True)\nos.kill(os.getpid(), 9)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout
        keeper, *below = map(int, process.stdout.readline().split())
    world.eventually(lambda: not any(map(guard.start_ticks, [keeper, *below])))
    assert below, "it left a child behind"
    assert (tmp_path / "gone").exists()
