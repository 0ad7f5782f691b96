"""Keeps a run as a recording: ``python -m tests.replays NAME REPOSITORY RUN [WORD=INSTEAD ...]``.

Paths of the repository, of the home, of this checkout and of its Python are replaced by themselves; look through what
was kept for anything else that is nobody's business, and leave it out with ``WORD=INSTEAD``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from agents import procs, replaying
from tests.replays import FOLDER, add, place
from tests.support import world


def main(words: list[str]) -> int:
    """Keep what *words* name; returns the exit code of a replay of what was kept."""
    if len(words) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    name, root, run = words[0], Path(words[1]).resolve(), words[2]
    context = world.context_of(root)
    machine = {
        str(root): "/shop", str(Path.home()): "/home/ada", str(FOLDER.parents[1]): "/opt/agent-box", sys.prefix: "/opt/venv",
        procs.boot_id(): "boot", procs.host_id(): "host",
    }  # fmt: skip
    given = dict(word.split("=", 1) for word in words[3:])
    print(add(name, root, context.store.resolve(run), machine | given))
    return check(name)


def check(name: str) -> int:
    """Replay the recording *name* in a throw-away repository and say how it went; returns an exit code."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="agent-box-") as folder:
        root = Path(folder)
        subprocess.run(["git", "init", "-q", folder], check=True)
        done = replaying.replay(world.context_of(root), place(name, root))
    print(done.difference or f"{done.lines} lines match")
    return 5 if done.difference else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
