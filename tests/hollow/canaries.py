"""Programs that a repository can name in its settings, planted so that any that starts leaves a mark."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.support.surveys import commit, empty, run_git, write

if TYPE_CHECKING:
    from pathlib import Path

# Every setting whose value git runs while somebody looks at a repository.
SETTINGS = (
    "diff.external", "diff.evil.command", "diff.evil.textconv",
    "filter.evil.clean", "filter.evil.process", "filter.evil.smudge", "filter.a=b.clean",
    "core.fsmonitor", "core.pager", "pager.grep", "pager.log", "pager.diff", "pager.show", "core.editor",
    "gpg.program", "gpg.ssh.program", "gpg.x509.program", "core.sshCommand", "core.askPass",
    "core.alternateRefsCommand", "remote.origin.uploadpack", "credential.helper", "alias.grep", "alias.log",
)  # fmt: skip
HOOKS = (
    "post-index-change",
    "post-checkout",
    "pre-commit",
    "fsmonitor-watchman",
    "query-watchman",
    "reference-transaction",
)


def program(folder: Path) -> tuple[Path, Path]:
    """A program below *folder* and the file that it makes when it runs."""
    mark, made = folder / "ran", folder / "program"
    made.write_text(f"#!{sys.executable}\nimport sys\nopen({str(mark)!r}, 'a').write(' '.join(sys.argv) + chr(10))\n")
    made.chmod(0o755)
    return made, mark


def plant(repo: Path, folder: Path) -> Path:
    """Have *repo* name a program for everything, with changed files that it applies to; returns its mark."""
    run, mark = program(folder)
    _submodule(repo, run)
    write(repo, {".gitattributes": "*.py diff=evil filter=evil\n*.js filter=a=b\n*.ts filter=a=b\n"})
    for name in SETTINGS:
        run_git(repo, "config", name, str(run))
    # A protocol that is a program, and what would allow it.
    for name, value in (
        ("filter.evil.required", "true"), ("log.showSignature", "true"), ("diff.submodule", "diff"),
        ("protocol.allow", "always"), ("protocol.ext.allow", "always"), ("submodule.recurse", "true"),
        ("remote.origin.url", f"ext::{run}"), ("remote.origin.promisor", "true"), ("extensions.partialClone", "origin"),
        ("core.repositoryFormatVersion", "1"), ("core.hooksPath", str(folder / "hooks")),
        ("core.excludesFile", "~/ignored"),
    ):  # fmt: skip
        run_git(repo, "config", name, value)
    for place in (folder / "hooks", repo / ".git/hooks"):
        place.mkdir(exist_ok=True)
        for hook in HOOKS:
            (place / hook).write_bytes(run.read_bytes())
            (place / hook).chmod(0o755)
    mark.unlink(missing_ok=True)
    return mark


def _submodule(repo: Path, run: Path) -> None:
    """A submodule with a newer commit: ``diff.submodule=diff`` starts a second git in there."""
    inner = empty(repo / "sub")
    commit(inner, "one", {"a.py": "inner = 1\n"})
    run_git(repo, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
    run_git(repo, "commit", "-qm", "Take the submodule in")
    commit(inner, "two", {"a.py": "inner = 2\n"})
    write(inner, {"a.py": "inner = 3\n"})
    for name in ("diff.external", "core.fsmonitor"):
        run_git(inner, "config", name, str(run))
