"""Has cli-agent-orchestrator make a work tree; run by the interpreter of its environment, needs nothing else.

    python benchmarks/drivers/cao.py NAME

It is for the worker NAME of the repository that is the current folder.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(name: str) -> None:
    """Make the work tree of the worker *name*, as its server does before it opens a terminal there."""
    from cli_agent_orchestrator.services.worktree_service import (  # type: ignore[import-not-found]
        create_worktree,
        find_repo_root,
    )

    print(create_worktree(find_repo_root(str(Path.cwd())), name))


if __name__ == "__main__":
    main(sys.argv[1])
