"""Has the box open an airlock, started as the box starts itself; beside what other programs' drivers have them make.

    python -IS benchmarks/drivers/opening.py NAME

It is for the run NAME of the repository that is the current folder.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(name: str) -> None:
    """Open the airlock of the run *name*, as a run does before its agent is started there."""
    from agents import airlock, files, git, layout

    repo = git.locate(Path.cwd())
    places = layout.Layout(repo.root)
    box = places.box(name)
    files.make_folder(box.private)
    print(airlock.open_airlock(repo, places, box, repo.head or "").path)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main(sys.argv[1])
