"""Everything a verb works with in one repository: where it is, its settings, store and ledger, clock and voice."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from agents import config, files, git, locks
from agents.errors import HostError, OperatorError
from agents.journal import Journal, state_home
from agents.layout import EXCLUDED, Layout
from agents.lockorder import Rank
from agents.store import Store
from agents.times import Clock
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from agents.config import Config
    from agents.git import Repository

HOME = Path(__file__).resolve().parent.parent
"""Folder that holds the packages of Agent Box."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every verb gets; tests build their own with another clock, environment and voice."""

    repo: Repository
    layout: Layout
    store: Store
    journal: Journal
    config: Config
    clock: Clock
    environ: Mapping[str, str]
    say: Callable[[str], None]
    """Says one line to the operator while work goes on."""
    token: Callable[[], str] = lambda: os.urandom(32).hex()

    def head(self) -> str:
        """The commit at HEAD; raises OperatorError before the first one."""
        if self.repo.head is None:
            raise OperatorError("This repository has no commit yet.", "Type: git add -A && git commit -m start")
        return self.repo.head


def open_context(
    cwd: Path,
    *,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    say: Callable[[str], None] | None = None,
) -> Context:
    """The context of the repository around *cwd*; raises OperatorError outside one. Nothing is written."""
    environ = os.environ if environ is None else environ
    clock = clock or Clock()
    repo = git.locate(cwd)
    layout = Layout(repo.root)
    return Context(
        repo=repo,
        layout=layout,
        store=Store(layout),
        journal=Journal(layout, repo, clock, state_home(environ)),
        config=config.resolve(flags or {}, environ, _settings(repo.root / "agent.yaml"), own=_own_settings(environ)),
        clock=clock,
        environ=environ,
        say=say or _to_stderr,
    )


def _own_settings(environ: Mapping[str, str]) -> str | None:
    """The operator's own settings, from the configuration folder of the XDG rules."""
    given, home = environ.get("XDG_CONFIG_HOME", ""), environ.get("HOME", "")
    folder = Path(given) if given.startswith("/") else Path(home) / ".config" if home.startswith("/") else None
    return _settings(folder / config.OWN_FILE) if folder else None


def _settings(path: Path) -> str | None:
    if not path.exists() and not path.is_symlink():
        return None
    try:
        # Its operator may keep it elsewhere and link it; nothing but a file is waited for.
        data = files.read_capped(path, _LARGEST_SETTINGS, follow=True)
        if data is None:
            os.close(files.open_regular(path, follow=True))
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as why:
        raise OperatorError(f"{path.name} is not UTF-8 text.", "Save it as UTF-8.") from why
    except OSError as why:
        raise OperatorError(f"{path.name} cannot be read: {why.strerror}.", f"Type: ls -l {path}") from why


_LARGEST_SETTINGS = 1024 * 1024


def _to_stderr(line: str) -> None:
    # A terminal that was closed or a reader that had enough costs the words, never the run.
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def prepare(context: Context) -> None:
    """Make the data folder and keep it out of git's sight; raises HostError where the disk says no."""
    data = context.layout.data
    if data.is_symlink() and git.run(context.repo.root, "ls-files", "-z", "--", data.name, sealed=True).stdout:
        # The operator may keep it elsewhere; a repository may not choose where that is.
        raise HostError(f"{data.name} is a link that the repository brings.", f"Remove it: git rm {data.name}")
    context.store.prepare()
    if files.free(context.layout.data) < _RESERVE:
        raise HostError("The disk is nearly full.", "Free some space; `./agent gc` removes old runs.")
    with files.reported("keep .agents out of git's sight"):
        if not context.layout.repo_lock.exists():
            # The lock is the first file in there, and git must never see it. Lines that two add at once do no harm.
            git.exclude(context.repo, EXCLUDED)
        with locks.Lock(context.layout.repo_lock, Rank.REPO):
            git.exclude(context.repo, EXCLUDED)


_RESERVE = 16 * 1024 * 1024
"""Bytes below which no run is started: its end could not be recorded."""
