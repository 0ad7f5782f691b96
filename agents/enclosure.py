"""What the agent of a run may see and do, as the cell of its sandbox (design, section 8)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from agents import files, git, journal, roots, sandbox
from agents.errors import AgentError
from agents.layout import COMMANDS, DATA, TREES
from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Final

    from agents.context import Context
    from agents.plan import RunPlan
    from agents.sandbox import Cell, Offer

_SHOWN_KEYS: Final = (
    r"^(core\.(repositoryformatversion|bare|filemode|ignorecase|symlinks|precomposeunicode)|extensions\.|user\.)"
)
"""What an agent's own git needs of the configuration; the rest may hold credentials and programs."""


def offered(context: Context) -> Offer:
    """The isolation that this machine offers, at most what the operator wants."""
    home = journal.state_home(context.environ)
    cache = home / "agent-box" if home else None
    return sandbox.offered(context.environ, cache, context.config.isolation, (context.layout.root,))


def cell(context: Context, made: RunPlan, environ: Mapping[str, str], linked: tuple[Path, ...] = ()) -> Cell:
    """The cell of the run *made*, whose agent gets the environment *environ*.

    *linked* are the folders of the checkout that its airlock has links to. Read-only runs see the checkout without the
    box's own data and without secrets; runs that may edit see their airlock and the history, and the rest is absent.
    """
    box, root = context.store.box(made.meta.run_name), context.layout.root
    outside = (*roots.tool_roots(environ, root), *roots.program_roots(made.command.argv, environ, root))
    chosen = (*made.command.read, *map(Path, context.config.read), *linked, *_certificates(context))
    seen = (root, context.repo.common_dir) if not made.mutates else (context.repo.common_dir,)
    mine = (made.root,) if made.mutates else ()
    registered = _registration(context, made.root)
    kept = () if made.mutates else _own_commands(root)
    return sandbox.Cell(
        level=made.state.isolation,
        cwd=made.root,
        read=(*seen, *registered, *kept, *outside, *chosen),
        write=(*mine, box.outbox, box.home, *made.command.write),
        freeze=(made.root / ".git",) if made.mutates else (),
        hide=(*_hidden(context, made), *_private(context, linked, registered)),
        instead={**_config_instead(context, box.private), **_lent(box.home, made)},
        network=context.config.network == "on" or (made.command.network and context.config.network == "auto"),
        nested=made.command.nested,
    )


def command_cell(context: Context, level: str, tree: Path, private: Path, linked: tuple[Path, ...] = ()) -> Cell:
    """The cell of a `setup:`, `check:` or `verify:` command that works in *tree*, with *private* as its own folder.

    These commands are the repository's own, and what they run is the agent's work.
    """
    home = private / "command-home"
    # Made anew for every command: what one has left there, the agent's work among it, must not speak to the next.
    files.remove_tree(home)
    files.make_folder(home)
    frozen = (tree / ".git",) if (tree / ".git").exists() else ()
    registered = _registration(context, tree)
    return sandbox.Cell(
        level=level, cwd=tree, freeze=frozen, instead=_config_instead(context, private),
        read=(
            context.repo.common_dir, *registered, *roots.tool_roots(context.environ, context.layout.root),
            *map(Path, context.config.read), *linked,
        ),
        write=(tree, home), hide=(*roots.secrets_in(tree, links=False), *_private(context, linked, registered)),
        network=context.config.network == "on",
    )  # fmt: skip


# Where programs look for the certificates that the operator has chosen; none of them is a secret.
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def _certificates(context: Context) -> Iterator[Path]:
    """Files of certificates that the operator's own environment names; a repository's .env.test must not name any."""
    for name in _CERTIFICATES:
        given = context.environ.get(name, "")
        if given.startswith("/"):
            yield Path(given)


def linked(context: Context) -> tuple[Path, ...]:
    """The folders of `link:`, as far as they are what they are called: a link on the way could lead anywhere."""
    root = Path(os.path.realpath(context.layout.root))
    named = [root / name for name in context.config.link if not PRIVATE & set(Path(name).parts)]
    return tuple(path for path in named if path.is_dir() and os.path.realpath(path) == str(path))


PRIVATE: Final = frozenset({".git", DATA, "agent_box"})
"""Folders of a checkout that no agent is shown."""


def _registration(context: Context, tree: Path) -> tuple[Path, ...]:
    """Where the repository keeps HEAD and index of the work tree *tree*; nothing for the checkout that it belongs to.

    An agent may have written what its ``.git`` says: that counts only where it names a registration.
    """
    said = files.read_capped(tree / ".git", _LINK_CAP) or b""
    folder = Path(os.path.realpath(context.repo.common_dir / "worktrees"))
    found = Path(os.path.realpath(tree / os.fsdecode(said.removeprefix(b"gitdir:").strip().split(b"\0")[0])))
    return (found,) if found.parent == folder else ()


_LINK_CAP: Final = 4096


def _private(context: Context, linked: tuple[Path, ...], registered: tuple[Path, ...]) -> Iterator[Path]:
    """What stays hidden in every cell, whatever else makes the folder around it readable.

    The registrations of work trees are hidden as a whole, but for the cell's own: those of other runs come and go at
    any time, and a place that is gone by the time that it is hidden fails the sandbox.
    """
    root, common = context.layout.root, context.repo.common_dir
    yield from (root / DATA, root / Path(TREES).parent)
    yield from (secret for folder in linked for secret in roots.secrets_in(folder))
    # Settings of git that may hold credentials, besides the one that a harmless one is shown instead of.
    yield from (common / "config.worktree", *(own / "config.worktree" for own in registered))
    yield common / "worktrees"
    for folder, inner, names in os.walk(common / "modules"):
        inner[:] = [name for name in inner if name not in {"objects", "refs", "logs", "hooks"}]
        yield from (Path(folder, name) for name in names if name in {"config", "config.worktree"})


def _hidden(context: Context, made: RunPlan) -> tuple[Path, ...]:
    root = context.layout.root
    if made.mutates:
        return roots.secrets_in(made.root, links=False)
    own = (root / DATA, root / Path(TREES).parent, root / COMMANDS)
    return (*own, *roots.secrets_in(root))


def _own_commands(root: Path) -> tuple[Path, ...]:
    """The slash commands of the operator's own, which are shown in a folder that is hidden as a whole.

    Those of runs come and go at any time: a place that is gone by the time that it is hidden fails the sandbox.
    """
    folder = root / COMMANDS
    return tuple(path for path in sorted(folder.iterdir()) if not _OF_A_RUN.match(path.name)) if folder.is_dir() else ()


_OF_A_RUN: Final = late(r"run_[0-9a-f]{4}")


def _config_instead(context: Context, private: Path) -> dict[Path, Path]:
    """The repository's configuration without what is nobody's business: remotes with passwords, helpers, headers."""
    listed = git.run(context.repo.root, "config", "--local", "-z", "--get-regexp", _SHOWN_KEYS, sealed=True).stdout
    shown = private / "git-config"
    files.make_folder(private)
    files.write(shown, b"".join(_entry(each) for each in listed.split(b"\0") if each), durable=False)
    return {context.repo.common_dir / "config": shown}


def _entry(item: bytes) -> bytes:
    key, given, value = item.partition(b"\n")
    section, _, name = key.rpartition(b".")
    if not given:
        # To git a key alone is true, and one with an empty value is false.
        return b"[%s]\n\t%s\n" % (section, name)
    quoted = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'[%s]\n\t%s = "%s"\n' % (section, name, quoted)


def _lent(home: Path, made: RunPlan) -> dict[Path, Path]:
    """The operator's own files that the agent's program needs in its HOME, such as a login."""
    lent = {}
    for name, given in made.command.lend:
        target, source = home / name, given.expanduser()
        if source.is_file():
            files.make_folder(target.parent)
            if os.path.realpath(target.parent) != os.path.join(os.path.realpath(home), *Path(name).parent.parts):  # noqa: PTH118 - compared as text
                raise AgentError("A link stands in the home of the run, where a folder was.", "Start a new run.")
            lent[target] = source
            if made.state.isolation != "full":
                # Without mounts a link has to do.
                with contextlib.suppress(FileExistsError):
                    target.symlink_to(source)
    return lent
