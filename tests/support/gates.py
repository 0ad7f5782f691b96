"""Runs that wait for their human: real boxes, airlocks, patches and ledger entries, ready to be merged or attacked."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import airlock, gate, git, plan, settle
from agents.cleanroom import CleanRoom
from agents.context import open_context, prepare
from agents.model import Actor, Phase, Status, step
from essentials import records
from tests.support import repos
from tests.support.boxes import Hands, claimed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents.context import Context
    from agents.model import RunState

FILES: dict[str, str | bytes] = {
    "README.md": "a project\n",
    "src/app.py": "print('hello')\n",
    "src/old.py": "print('old')\n",
    "docs/guide.md": "".join(f"line {number}\n" for number in range(1, 21)),
    "data.bin": bytes(range(256)),
    "folder/one.txt": "one\n",
}


def make_context(tmp_path: Path, files: Mapping[str, str | bytes] = FILES, **flags: Any) -> Context:
    """The context of a new repository with *files*; the operator has told git no name."""
    root = repos.make_repo(tmp_path / "repo", dict(files))
    return reopened(root, **flags)


def reopened(root: Path, **flags: Any) -> Context:
    """The context that a new command in *root* would have."""
    environ = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]}
    context = open_context(root, flags=flags, environ=environ, clock=Hands().clock(), say=[].append)
    prepare(context)
    return context


def reviewed(
    context: Context,
    change: Callable[[Path], object],
    short_id: str = "a1b2",
    *,
    task: str = "tidy up",
    isolation: str = "full",
    findings: tuple[str, ...] = (),
) -> str:
    """A fix that made *change* in its airlock and is in REVIEW, as its supervisor leaves it; its name."""
    made, owner = claimed(context, short_id, run_type="fix", task=task)
    name, box = made.meta.run_name, context.store.box(made.meta.run_name)
    started = context.store.update(name, lambda now: records.replace(now, isolation=isolation))
    sealed = {"meta_sha256": settle.hash_file(box, "meta.yaml")}
    context.journal.append("run.started", name, {**plan.facts(made.meta, started), **sealed})
    opened = airlock.open_airlock(context.repo, context.layout, box, made.meta.repo_sha_start)
    change(opened.path)
    carried = airlock.export(opened, given=None)
    box.stream.write_text("every byte\n")
    (box.path / "changes.patch").write_bytes(carried.patch)
    patch = {
        "sha256": hashlib.sha256(carried.patch).hexdigest(), "tree": carried.tree, "base": made.meta.repo_sha_start,
        "files": carried.files, "added": carried.added, "removed": carried.removed, "binary": carried.binary,
        "findings": [*carried.findings, *findings],
    }  # fmt: skip
    settle_review(context, name, patch, worktree_path=str(opened.path))
    owner.release()
    return name


def settle_review(context: Context, name: str, patch: Mapping[str, Any], **more: Any) -> None:
    """Bring the ACTIVE run *name* to REVIEW with *patch*, state first, then the ledger."""
    changes = {"phase": Phase.SETTLED, "exit_code": 0, "patch": dict(patch), **more}
    state = context.store.update(name, lambda now: step(now, Status.REVIEW, Actor.OWNER, **changes))
    settle.record(context.store, context.journal, context.store.meta(name), state)


def digest(context: Context, name: str) -> str:
    """The hash that approves the run *name*."""
    return hashlib.sha256((context.store.box(name).path / "changes.patch").read_bytes()).hexdigest()


def nowhere(_context: Context) -> None:
    """Says that a test is no part of a run: it may itself be run inside of one, as a `verify:` command."""


def merge(context: Context, name: str, **how: Any) -> RunState:
    """Merge the run *name*."""
    return gate.merge(context, name, **{"within": nowhere, **how})


def reject(context: Context, name: str, why: str) -> RunState:
    """Reject the run *name*."""
    return gate.reject(context, name, why, within=nowhere)


def undo(context: Context, name: str, **how: Any) -> RunState:
    """Undo the merge of the run *name*."""
    return gate.undo(context, name, **{"within": nowhere, **how})


def approved(context: Context, name: str, **how: Any) -> RunState:
    """Merge the run *name* with the right hash."""
    return merge(context, name, approve=digest(context, name)[:12], **how)


def tree_at(root: Path, commit: str = "HEAD") -> str:
    """The tree of *commit*."""
    return repos.git(root, "rev-parse", f"{commit}^{{tree}}")


def disk(root: Path) -> dict[str, tuple[int, bytes]]:
    """Kind and mode, and content, of every file of the checkout, what Agent Box keeps there aside."""
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [each for each in folders if each not in {".git", ".agents", "agent_box"}]
        links = [each for each in folders if (Path(folder) / each).is_symlink()]
        for name in [*names, *links]:
            path = Path(folder) / name
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[os.path.relpath(path, root)] = (path.lstat().st_mode, content)
    return found


def snapshot(context: Context) -> tuple[Any, ...]:
    """Everything that a refused merge must leave alone: refs, HEAD, index, files, settings, statuses of the runs."""
    root = context.layout.root
    refs = repos.git(root, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags")
    staged = repos.git(root, "ls-files", "--stage", "-z")
    states = {name: context.store.load(name).status for name in context.store.names()}
    here = sorted(path.name for path in (root / ".git").iterdir())
    config = (root / ".git" / "config").read_bytes()
    return refs, (root / ".git" / "HEAD").read_bytes(), staged, disk(root), states, here, config


def status(root: Path) -> list[str]:
    """What `git status` says to the operator."""
    done = subprocess.run(
        ["git", "status", "--porcelain"], cwd=root, env=repos.ENVIRONMENT, capture_output=True, check=True
    )
    return done.stdout.decode().splitlines()


def room_of(context: Context, folder: Path) -> CleanRoom:
    """A clean room in *folder*."""
    return CleanRoom.make(folder, context.repo)


def planted(root: Path, canary: Path) -> None:
    """Give the repository at *root* hooks and settings that touch *canary* when any of them is obeyed."""
    script = f"#!/bin/sh\ntouch '{canary}'\nexit 1\n"
    for hook in ("pre-commit", "post-checkout", "post-index-change", "reference-transaction", "post-merge", "pre-merge-commit",
                 "prepare-commit-msg", "commit-msg", "post-commit", "update", "post-update", "pre-receive", "post-rewrite"):  # fmt: skip
        path = root / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(script)
        path.chmod(0o755)
    program = root.parent / "planted.sh"
    program.write_text(script)
    program.chmod(0o755)
    for key in ("core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "diff.external",
                "diff.evil.textconv", "merge.evil.driver", "core.pager", "core.editor", "gpg.program"):  # fmt: skip
        repos.git(root, "config", key, str(program))


def head(context: Context) -> str:
    """The commit at HEAD now."""
    return git.output(context.repo.root, "rev-parse", "HEAD").decode().strip()
