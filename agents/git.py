"""The door to git: bytes, explicit paths, nothing inherited from the environment or planted by an agent."""

from __future__ import annotations

import functools
import os
import stat
import time
from pathlib import Path

from agents import answers
from agents.errors import HostError, OperatorError
from essentials import digests
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from agents.answers import Answer

# What redirects git to another repository, index or program (`git rev-parse --local-env-vars` and the injected
# configuration). Author and committer are the operator's own business and stay.
_KEPT: Final = frozenset({
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
})  # fmt: skip

LEDGER_REF: Final = "refs/agent-box/ledger"
# A linked work tree has a ledger of its own, so its head needs a ref that the others do not share.
LINKED_REF: Final = "refs/worktree/agent-box-ledger"
COMMONS_REF: Final = "refs/heads/agent-box/commons"
"""The branch of what the hollow agents have made together; only the supervisor moves it."""
_OWN_REFS: Final = (b"refs/agent-box/", b"refs/worktree/agent-box-", f"{COMMONS_REF} ".encode())


LASTING: Final = ("-c", "core.fsync=all")
"""Has git bring to the disk whatever it writes."""


def environ(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment git runs with: *base* (default: this process's) without what would redirect it."""
    source = os.environ if base is None else base
    clean = {name: value for name, value in source.items() if not name.startswith("GIT_") or name in _KEPT}
    return {**clean, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat"}


def run(cwd: Path, *arguments: str, stdin: bytes = b"", sealed: bool = False, env: Mapping[str, str] | None = None,
        patience: float = 120, lasting: bool = False) -> Answer:  # fmt: skip
    """Run git in *cwd* and return what it said; raises HostError only where there is no git to run.

    *sealed* leaves out the user's and the system's configuration, hooks and the file system monitor. *env* is added to
    the environment last; *patience* is the number of seconds after which git is given up. What is *lasting* survives
    a power cut: by itself git brings neither a ref nor a loose object to the disk, and leaves an empty file.
    """
    extra = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"} if sealed else {}
    guard = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", *(LASTING if lasting else ()))
    if not cwd.is_dir():
        raise HostError(f"The folder {cwd} is gone.", "cd to a folder that exists.")
    try:
        return answers.ask(
            [program(os.environ.get("PATH", os.defpath)), "-C", str(cwd), "--no-pager", *guard, *arguments],
            environ() | extra | dict(env or {}), stdin, patience=patience,
        )  # fmt: skip
    except TimeoutError as why:
        # A pipe in the place of .git/config would be waited for without end.
        raise HostError(f"git {arguments[0]} did not answer for {patience:g} s.", "Type: ls -l .git") from why
    except OSError as why:
        raise HostError(f"git cannot be run: {why.strerror}.", "Type: git --version") from why


@functools.cache
def program(path: str) -> str:
    """The git program on the search *path*, by its absolute name; raises HostError where there is none.

    Entries that are relative are passed over: from within a repository they would find the repository's own `git`.
    """
    for folder in filter(os.path.isabs, path.split(os.pathsep)):
        found = os.path.join(folder, "git")  # noqa: PTH118 - no Path is needed for what is tried and forgotten
        if os.path.isfile(found) and os.access(found, os.X_OK):  # noqa: PTH113 - as above
            return found
    raise HostError("git is not installed.", "Type: apt install git")


def output(cwd: Path, *arguments: str, stdin: bytes = b"", sealed: bool = False, lasting: bool = False) -> bytes:
    """What git printed; raises HostError with git's own last words where it failed."""
    done = run(cwd, *arguments, stdin=stdin, sealed=sealed, lasting=lasting)
    if done.returncode:
        raise HostError(f"git {arguments[0]} failed: {last_words(done)}", f"Try it yourself: git {arguments[0]}")
    return done.stdout


def last_words(done: Answer) -> str:
    """The last line that git wrote to stderr, or its exit code."""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (lines[-1] if lines else f"exit code {done.returncode}")[:200]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """Where a repository lies."""

    root: Path
    """Top of the work tree that the command was typed in."""
    common_dir: Path
    """The git directory that all work trees share."""
    head: str | None
    """Commit at HEAD, or None before the first commit."""


def locate(cwd: Path) -> Repository:
    """The repository around *cwd*; raises OperatorError outside one, in a bare one, or where git distrusts it."""
    # The question in the middle separates the two paths: a folder's name may hold line breaks.
    done = run(cwd, "rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--path-format=absolute",
               "--git-common-dir", "--is-inside-work-tree", "--show-toplevel", "HEAD")  # fmt: skip
    # Without a commit git prints all but the last and fails on HEAD.
    lines = done.stdout.split(b"\n")
    if lines[0] == b"true" or (len(lines) > 1 and lines[1] == b"false"):
        raise OperatorError("This is a bare repository or a git directory.", "cd to a work tree of it.")
    if len(lines) < _REV_PARSE_LINES:
        raise _refusal(done)
    middle = lines.index(b"true", 2)
    return Repository(
        root=Path(os.fsdecode(b"\n".join(lines[middle + 1 : -2]))),
        common_dir=Path(os.fsdecode(b"\n".join(lines[2:middle]))),
        head=lines[-2].decode() if done.returncode == 0 else None,
    )


_REV_PARSE_LINES: Final = 7


def _refusal(done: Answer) -> OperatorError:
    words = last_words(done)
    if b"dubious ownership" in done.stderr:
        return OperatorError(
            "This repository belongs to another user.", 'Type: git config --global --add safe.directory "$PWD"'
        )
    if b"not a git repository" in done.stderr:
        return OperatorError(
            "This is not a git repository.", "cd to one, or type: git init && git commit --allow-empty -m start"
        )
    return OperatorError(f"git does not open this repository: {words}", "Type: git status")


def is_dirty(repo: Repository) -> bool:
    """Whether the checkout differs from HEAD, untracked files included."""
    listed = output(repo.root, *_unfiltered(repo), "status", "--porcelain", "-z", "--untracked-files=normal", *_SHALLOW)
    return bool(listed.strip(b"\0"))


# Looking into a submodule would obey its own configuration.
_SHALLOW: Final = ("--ignore-submodules=dirty",)


def _unfiltered(repo: Repository) -> tuple[str, ...]:
    """Options that keep `git status` from running the filters of this repository's own configuration.

    An agent of an earlier run may have planted them. Without them a file that was touched may count as changed.
    """
    if not _speaks_of_filters(repo):
        return ()
    listed = run(repo.root, "config", "--name-only", "-z", "--get-regexp", r"^filter\.", sealed=True).stdout
    names = {line.rpartition(b".")[0] for line in filter(None, listed.split(b"\0"))}
    # A name with "=" or a line break cannot be said on the command line: such a filter is nobody's honest one.
    odd = [name for name in names if b"=" in name or b"\n" in name]
    if odd:
        raise HostError("A filter with an odd name stands in the git configuration.", "Look: git config -l --local")
    keys = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    return tuple(
        word for name in sorted(names) for key, value in keys for word in ("-c", f"{os.fsdecode(name)}.{key}={value}")
    )


def _speaks_of_filters(repo: Repository) -> bool:
    """Whether the configuration may name a filter: asking git costs a process, and most have none."""
    if (repo.common_dir / "config.worktree").exists() or (repo.root / ".git").is_file():
        return True
    path = repo.common_dir / "config"
    text = path.read_bytes().lower() if path.is_file() else b""
    return b"filter" in text or b"include" in text


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What must not change in the operator's repository while an agent runs."""

    parts: Mapping[str, str] = field(default_factory=dict)
    """Name of a thing (``config``, ``hooks/…``, ``refs``, ``file …``) to its hash or stamp."""
    index: str = ""
    """Stamp of the index, empty where a stamp would not tell every change; no part of the comparison."""

    def changes(self, later: Fingerprint) -> tuple[str, ...]:
        """Names of the things that differ in *later*."""
        names = {*self.parts, *later.parts}
        return tuple(sorted(name for name in names if self.parts.get(name) != later.parts.get(name)))


def fingerprint(repo: Repository, before: Fingerprint | None = None) -> Fingerprint:
    """Fingerprint of the checkout, its configuration, hooks and refs (design, section 7; T147).

    Configuration and hooks are read without git. Where they differ from *before* git is not asked for the rest: what
    was planted there would run in the supervisor.
    """
    parts = _config_parts(repo)
    if before and any(before.parts.get(name) != value for name, value in parts.items()):
        return Fingerprint({**before.parts, **parts})
    # Before its flags are asked for: what changes in between makes another stamp.
    index = _index_stamp(repo)
    unchanged = before is not None and index == before.index != ""
    flags = before.parts["index flags"] if before and unchanged else _index_flags(repo)
    return Fingerprint({**parts, **_ref_parts(repo), **_file_parts(repo), "index flags": flags}, index)


def _config_parts(repo: Repository) -> dict[str, str]:
    found = [repo.common_dir / name for name in ("config", "config.worktree", "info/attributes", "info/exclude")]
    hooks = repo.common_dir / "hooks"
    found += sorted(hooks.iterdir()) if hooks.is_dir() else []
    # In a linked work tree or a submodule `.git` is a file, and what it leads to says where git reads its settings.
    link = repo.root / ".git"
    if link.is_file():
        own = repo.root / os.fsdecode(link.read_bytes().removeprefix(b"gitdir:").strip())
        found += [link, own / "commondir", own / "config.worktree"]
    return {os.path.relpath(path, repo.common_dir): _hash_file(path) for path in found}


def _hash_file(path: Path) -> str:
    try:
        seen = path.lstat()
        target = os.fsdecode(path.readlink()) if stat.S_ISLNK(seen.st_mode) else ""
        # A pipe planted here would be waited for without end.
        content = digests.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    except OSError as why:
        return f"absent ({why.errno})"
    return f"{seen.st_mode:o} {target} {content}"


def _ref_parts(repo: Repository) -> dict[str, str]:
    listed = output(repo.root, "for-each-ref", "--format=%(refname) %(objectname)", sealed=True).splitlines()
    theirs = b"\n".join(line for line in listed if not line.startswith(_OWN_REFS))
    return {"refs": digests.sha256(theirs).hexdigest(), "HEAD": _head(repo, listed)}


def _head(repo: Repository, listed: Sequence[bytes]) -> str:
    """Where HEAD is: its file, and the line of *listed* (name and commit) of the branch that it names."""
    path = own_dir(repo) / "HEAD"
    if (repo.common_dir / "reftable").exists() or path.is_symlink() or not path.is_file():
        # There the file says nothing, or it is none that may be read without a look.
        told = run(repo.root, "rev-parse", "HEAD", "--symbolic-full-name", "HEAD", sealed=True).stdout
        return told.decode("ascii", "replace")
    text = path.read_bytes().strip()
    start = text.removeprefix(b"ref:").strip() + b" "
    lines = [text, *(line for line in listed if line.startswith(start))]
    return b"\n".join(lines).decode("utf-8", "replace")


def own_dir(repo: Repository) -> Path:
    """The git directory of this work tree: where its HEAD and its index are."""
    link = repo.root / ".git"
    if not link.is_file():
        return repo.common_dir
    return repo.root / os.fsdecode(link.read_bytes().removeprefix(b"gitdir:").strip())


def _file_parts(repo: Repository) -> dict[str, str]:
    # In a submodule git would obey settings that are not part of the fingerprint, so only its commit is compared.
    listed = output(repo.root, *_unfiltered(repo), "status", "--porcelain=v1", "-z", "--untracked-files=all",
                    "--no-renames", *_SHALLOW, sealed=True)  # fmt: skip
    parts = {}
    for entry in filter(None, listed.split(b"\0")):
        state, name = entry[:2].decode("ascii", "replace"), os.fsdecode(entry[3:])
        parts[f"file {name}"] = f"{state} {_stamp(repo.root / name)}"
    return parts


def _index_flags(repo: Repository) -> str:
    """Hash of the flags in the index: a file that git was told to assume unchanged is not listed as changed."""
    flagged = [
        each for each in output(repo.root, "ls-files", "-v", "-z", sealed=True).split(b"\0") if each[:2] != b"H "
    ]
    return digests.sha256(b"\0".join(flagged)).hexdigest()


def _index_stamp(repo: Repository) -> str:
    folder = own_dir(repo)
    # A split index is in two files.
    if any(folder.glob("sharedindex.*")):
        return ""
    try:
        seen = (folder / "index").lstat()
    except OSError:
        return ""
    # Whoever sets the other times back cannot set back when that was done.
    return f"{seen.st_mode:o} {seen.st_size} {seen.st_ino} {seen.st_mtime_ns} {seen.st_ctime_ns}"


def _stamp(path: Path) -> str:
    try:
        seen = path.lstat()
    except OSError:
        return "absent"
    return f"{seen.st_mode:o} {seen.st_size} {seen.st_mtime_ns}"


def exclude(repo: Repository, patterns: Sequence[str]) -> None:
    """Have git ignore *patterns* in this repository alone, through its info/exclude (T121)."""
    path = repo.common_dir / "info" / "exclude"
    present = path.read_text("utf-8", "surrogateescape") if path.is_file() else ""
    missing = [pattern for pattern in patterns if pattern not in present.splitlines()]
    if not missing:
        return
    if path.exists() and not path.is_file():
        raise HostError(f"{path} is not a file.", "Move it away.")
    path.parent.mkdir(exist_ok=True)
    start = "" if not present or present.endswith("\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{start}# Agent Box\n" + "".join(f"{pattern}\n" for pattern in missing))
        file.flush()
        # What follows is made to survive a power cut, and git must not see it then either.
        os.fsync(file.fileno())


def ledger_ref(repo: Repository) -> str:
    """The ref that keeps the head of the ledger of this work tree."""
    link = repo.root / ".git"
    if not link.is_file():
        return LEDGER_REF
    # A submodule's git directory is all its own.
    return LEDGER_REF if own_dir(repo).resolve() == repo.common_dir.resolve() else LINKED_REF


def write_anchor(repo: Repository, head: bytes) -> None:
    """Keep *head* (of the ledger) in a ref of the repository's own, where no airlock can write."""
    blob = output(repo.root, "hash-object", "-w", "--stdin", stdin=head, lasting=True).decode().strip()
    unlock(repo, ledger_ref(repo))
    output(repo.root, "update-ref", ledger_ref(repo), blob, lasting=True)


def unlock(repo: Repository, ref: str, commit: str | None = None) -> None:
    """Remove the lock that a git of ours has left on *ref*, which was moving it to *commit* when the power was cut.

    For who knows that no git of ours is alive. A lock with anything else in it, or nothing, is somebody else's. Without
    *commit* the ref is one that only we move: any whole object id will do, and so will a lock that has been empty for
    longer than the `git pack-refs` of anybody takes over one ref.
    """
    lock = (own_dir(repo) if ref == LINKED_REF else repo.common_dir) / f"{ref}.lock"
    try:
        content, age = lock.read_bytes().removesuffix(b"\n"), time.time() - lock.stat().st_mtime
    except OSError:
        return
    whole = len(content) in IDS and not content.strip(b"0123456789abcdef")
    if content == commit.encode() if commit else whole or (not content and age > _ABANDONED):
        lock.unlink(missing_ok=True)


_ABANDONED: Final = 60.0
IDS: Final = frozenset({40, 64})
"""Hex digits of an object id."""


def anchored(repo: Repository) -> str | None:
    """The object id that :func:`write_anchor` kept last, read without git; None where it has no file of its own."""
    ref = ledger_ref(repo)
    try:
        found = ((own_dir(repo) if ref == LINKED_REF else repo.common_dir) / ref).read_bytes().removesuffix(b"\n")
    except OSError:
        return None
    return found.decode("ascii", "replace") if len(found) in IDS else None


def blob_ids(data: bytes) -> tuple[str, str]:
    """The object ids that git gives *data*, by either of its hashes."""
    whole = b"blob %d\0%s" % (len(data), data)
    return digests.sha1(whole, usedforsecurity=False).hexdigest(), digests.sha256(whole).hexdigest()


def read_anchor(repo: Repository) -> bytes | None:
    """What :func:`write_anchor` kept last, or None."""
    done = run(repo.root, "cat-file", "blob", ledger_ref(repo))
    return None if done.returncode else done.stdout


def make_repository(path: Path, files: Mapping[str, str], message: str) -> None:
    """Make a repository at *path* with *files* in one commit; what `agent demo` plays in."""
    import git

    actor = git.Actor("Agent Box", "agent-box@localhost")
    with git.Repo.init(path, initial_branch="main") as repo:
        for name, text in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text, "utf-8")
        repo.index.add(list(files))
        repo.index.commit(message, author=actor, committer=actor)
