"""What the agent of a run may see and do, as the cell of its sandbox (design, section 8)."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agents import files, git, journal, roots, sandbox
from agents.layout import DATA, TREES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    outside = (*roots.tool_roots(environ), *roots.program_roots(made.command.argv, environ, root))
    chosen = (*made.command.read, *map(Path, context.config.read), *linked, *_certificates(environ))
    seen = (root, context.repo.common_dir) if not made.mutates else (context.repo.common_dir,)
    mine = (made.root,) if made.mutates else ()
    return sandbox.Cell(
        level=made.state.isolation,
        cwd=made.root,
        read=(*seen, *outside, *chosen),
        write=(*mine, box.outbox, box.home, *made.command.write),
        freeze=(made.root / ".git",) if made.mutates else (),
        hide=_hidden(context, made),
        instead={**_config_instead(context, box.private), **_lent(box.home, made)},
        network=context.config.network == "on" or (made.command.network and context.config.network == "auto"),
        nested=made.command.nested,
    )


def command_cell(context: Context, level: str, tree: Path, private: Path, linked: tuple[Path, ...] = ()) -> Cell:
    """The cell of a `setup:`, `check:` or `verify:` command that works in *tree*, with *private* as its own folder.

    These commands are the repository's own, and what they run is the agent's work.
    """
    home = private / "command-home"
    files.make_folder(home)
    frozen = (tree / ".git",) if (tree / ".git").exists() else ()
    return sandbox.Cell(
        level=level, cwd=tree, freeze=frozen, instead=_config_instead(context, private),
        read=(context.repo.common_dir, *roots.tool_roots(context.environ), *map(Path, context.config.read), *linked),
        write=(tree, home), hide=roots.secrets_in(tree), network=context.config.network == "on",
    )  # fmt: skip


# Where programs look for the certificates that the operator has chosen; none of them is a secret.
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def _certificates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Files of certificates that the agent's own environment names."""
    for name in _CERTIFICATES:
        given = environ.get(name, "")
        if given.startswith("/"):
            yield Path(given)


def _hidden(context: Context, made: RunPlan) -> tuple[Path, ...]:
    root = context.layout.root
    if made.mutates:
        return roots.secrets_in(made.root)
    own = (root / DATA, root / Path(TREES).parent, *(root / ".claude" / "commands").glob("run_*"))
    return (*own, *roots.secrets_in(root))


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
            lent[target] = source
            if made.state.isolation != "full":
                # Without mounts a link has to do.
                with contextlib.suppress(FileExistsError):
                    target.symlink_to(source)
    return lent
