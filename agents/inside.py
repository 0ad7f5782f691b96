"""Whether this process runs inside of a run: a courtesy that keeps agents from the gate, beside the sandbox."""

from __future__ import annotations

import os
from pathlib import Path

from agents import guard
from agents.procs import RUN_MARK
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import Final

MARKS: Final = (RUN_MARK, "AGENT_BOX_RUN")
"""Variables that every process of a run carries."""
_INIT: Final = 1
_LONGEST_CHAIN: Final = 1000


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A process above this one."""

    pid: int
    parent: int
    start: int
    """Clock ticks since boot."""
    environ: bytes = b""
    """Empty where it may not be read."""
    program: str = ""


def look(pid: int) -> Ancestor | None:
    """The process *pid* as the kernel shows it, or None where it is dead."""
    fields = guard.stat_fields(pid)
    if not fields:
        return None
    # Each file may vanish between two looks; what cannot be read says nothing.
    here = Path("/proc") / str(pid)
    words = _read(here / "cmdline").split(b"\0")
    program = os.path.basename(os.fsdecode(words[0]))  # noqa: PTH119 - an argument, not a path of ours
    return Ancestor(pid, int(fields[1]), int(fields[19]), _read(here / "environ"), program)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def reason(
    environ: Mapping[str, str],
    pid: int,
    recorded: Collection[tuple[int | None, int | None]] = (),
    *,
    see: Callable[[int], Ancestor | None] = look,
) -> str | None:
    """Why the process *pid* with *environ* counts as part of a run, as a sentence; None where it does not (M01-M03).

    *recorded* are pid and start of the guards and agents of runs that are ACTIVE, *see* is the process table. An
    operator is refused too where he works inside of a bubblewrap sandbox of somebody else's.
    """
    carried = [name for name in MARKS if environ.get(name)]
    if carried:
        return f"This is inside of a run: {carried[0]} is set."
    for above in _chain(pid, see):
        if any(f"{name}=".encode() in _starts(above.environ) for name in MARKS):
            return f"This is inside of a run: process {above.pid} above it carries a run's mark."
        # The start time goes with the pid: a number that was given out anew is no agent.
        if (above.pid, above.start) in recorded:
            return f"This is inside of a run: process {above.pid} above it is a recorded agent."
        if above.pid == _INIT and above.program == "bwrap":
            return "This is inside of a sandbox: its first process is bubblewrap."
    return None


def _chain(pid: int, see: Callable[[int], Ancestor | None]) -> Iterator[Ancestor]:
    """The process *pid* and all above it, the nearest first; a table that changes meanwhile cannot make it endless."""
    for _ in range(_LONGEST_CHAIN):
        found = see(pid) if pid > 0 else None
        if found is None:
            return
        yield found
        # Orphans of a run hang below its guard, which carries the mark: shedding a parent does not help.
        pid = found.parent


def _starts(environ: bytes) -> set[bytes]:
    """The names of the variables of an environment, each with its equals sign."""
    return {entry.partition(b"=")[0] + b"=" for entry in environ.split(b"\0") if entry}
