"""The clean room: a private git directory through which files are looked at without running anything of an agent's."""

from __future__ import annotations

import contextlib
import os

from agents import copies, files, git
from agents.errors import HostError, Tampered
from agents.fittings import fittings
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Final

    from agents.answers import Answer

ABSENT: Final = "000000"
"""Mode of the side of a change on which there is no file."""

BOX_IDENTITY: Final = {
    "GIT_AUTHOR_NAME": "Agent Box", "GIT_AUTHOR_EMAIL": "agent-box@localhost",
    "GIT_COMMITTER_NAME": "Agent Box", "GIT_COMMITTER_EMAIL": "agent-box@localhost",
}  # fmt: skip
"""Who commits where the operator has no identity (design, section 7)."""

# Replacement refs and attributes of the system would stand between the objects and what is seen of them.
_ENVIRON: Final = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_ATTR_NOSYSTEM": "1", "GIT_NO_LAZY_FETCH": "1"}
_PATIENCE: Final = 1800.0
_DIFF: Final = ("diff-tree", "-r", "--no-renames", "--ignore-submodules=none", "--no-ext-diff", "--no-textconv")
_PATCH: Final = ("-p", "--binary", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
_BLOB_CAP: Final = 16 * 1024**2


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs between two trees; ``ABSENT`` is the mode of a side without it."""

    path: bytes
    old_mode: str
    new_mode: str
    old_id: str
    new_id: str


@dataclass(frozen=True, slots=True)
class Merged:
    """What a three-way merge came to: a tree, or the paths in conflict."""

    tree: str | None
    conflicts: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """Size of a change: files, lines added and removed, and how many of the files are binary."""

    files: int
    added: int
    removed: int
    binary: int


@dataclass(frozen=True, slots=True)
class Survey:
    """A change from all sides."""

    changes: tuple[Change, ...]
    counts: Counts
    patch: bytes
    """As of :meth:`CleanRoom.difference`."""


@dataclass(frozen=True, slots=True)
class CleanRoom:
    """A private bare git directory at *path* that borrows the objects of *repo* (design, section 7; G21, G36, G37).

    It has its own configuration, attributes, exclusions and index, so nothing that an agent wrote is ever obeyed. New
    objects stay in it until :meth:`send`.
    """

    path: Path
    repo: git.Repository

    @property
    def index(self) -> Path:
        """The room's own index, seeded before the agent ran."""
        return self.path / "index"

    @classmethod
    def make(cls, path: Path, repo: git.Repository, *, passing: bool = False) -> CleanRoom:
        """Make the room at *path*, which must not exist, for *repo* as it is now; raises HostError.

        Exclusions and sparse patterns of the operator are copied here, before any agent runs. One that is *passing*
        goes with this process: nothing in it is made to survive a power cut.
        """
        fitted = fittings(repo, passing=passing)
        with files.reported("make the clean room"):
            for folder in ("objects/info", "objects/pack", "refs", "info"):
                (path / folder).mkdir(mode=files.DIR_MODE, parents=True, exist_ok=True)
            for name, content in fitted.items():
                (path / name).write_bytes(content)
        return cls(path, repo)

    def keep(self) -> None:
        """Make the room as it is now survive a power cut, but for its objects: git sees to those (``core.fsync``).

        It does when a file in its folder has been made to.
        """
        with files.reported("keep the clean room"):
            for folder in (self.path / "objects" / "info", self.path / "info", self.path):
                for path in folder.iterdir():
                    if path.is_file():
                        files.sync_file(path)
                # The room's own with the note that is going to lie in it.
                if folder != self.path:
                    files.sync_folder(folder)

    def run(
        self, *arguments: str, stdin: bytes = b"", tree: Path | None = None, index: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Answer:  # fmt: skip
        """Run git on the room and return how it ended; *tree* is the work tree, *index* another index than its own.

        The current folder is the room's, so that relative paths and discovery never lead into a tree of an agent.
        """
        extra = {**_ENVIRON, "GIT_DIR": str(self.path), "GIT_INDEX_FILE": str(index or self.index)}
        if tree is not None:
            extra["GIT_WORK_TREE"] = str(tree)
        return git.run(
            self.path, *arguments, stdin=stdin, sealed=True, env={**extra, **(env or {})}, patience=_PATIENCE
        )

    def output(
        self, *arguments: str, stdin: bytes = b"", tree: Path | None = None, index: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> bytes:  # fmt: skip
        """What git printed; raises HostError with git's last words where it failed."""
        done = self.run(*arguments, stdin=stdin, tree=tree, index=index, env=env)
        if done.returncode:
            raise self._failed(arguments[0], done)
        return done.stdout

    def _failed(self, verb: str, done: Answer) -> HostError:
        words = git.last_words(done)
        if is_partial(self.repo) and any(
            each in done.stderr for each in (b"unable to read", b"bad object", b"missing")
        ):
            # Fetching them from here would obey the repository's own transport configuration (G10).
            return HostError(
                f"This partial clone lacks objects that are needed: {words}", "Type: git fetch --refetch --no-filter"
            )
        return HostError(f"git {verb} failed in the clean room: {words}", "Type: git fsck")

    # --- Files ----------------------------------------------------------------------------------------------------

    def seed(self, commit: str) -> None:
        """Make the room's index that of *commit* (or tree); raises HostError."""
        self.output("read-tree", commit)

    def checkout(self, tree: Path) -> None:
        """Write the index's files byte for byte into the empty folder *tree*; their stat data go to the index.

        Sparse patterns of the operator are respected: what is outside of them is not written, and not missed either.
        """
        if not (self.path / "info" / "sparse-checkout").exists():
            self.output("checkout-index", "--all", "--index", tree=tree)
            return
        # Only a read-tree that updates files applies the patterns.
        whole = self._text("write-tree")
        self.output("read-tree", "--reset", "-u", whole, tree=tree)

    def snapshot(self, tree: Path, *, leave: Sequence[bytes] = (), refused: list[bytes] | None = None) -> str:
        """Id of the tree object that holds the files of *tree* as they are now; raises HostError.

        Paths in *leave* (files or folders) stay as the index has them. Files with names that git does not take
        (``.GIT``, ``git~1``) are left out: what git said of them is appended to *refused*, or is an error without it.
        """
        with self.scratch_index(warm=True) as index:
            self.stage(tree, index, leave=leave, refused=refused)
            return self._text("write-tree", index=index)

    def stage(
        self, tree: Path, index: Path, *, leave: Sequence[bytes] = (), refused: list[bytes] | None = None
    ) -> None:
        """Make *index* agree with the files of *tree*; see :meth:`snapshot`."""
        done = self.run(
            "add", "--all", "--sparse", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul",
            stdin=_all_but(leave), tree=tree, index=index,
        )  # fmt: skip
        names = _refused_names(done.stderr)
        # Without --ignore-errors one such name would keep everything else from being exported.
        if done.returncode and (names is None or (names and refused is None)):
            raise self._failed("add", done)
        if refused is not None:
            refused += names or []

    @contextlib.contextmanager
    def scratch_index(self, *, warm: bool = False) -> Iterator[Path]:
        """Path of an index that is gone afterwards: empty, or with *warm* a copy of the room's own."""
        path = self.path / f"scratch-{os.urandom(8).hex()}"
        try:
            if warm and self.index.exists():
                # git compares an entry's time with the index's own to know what may have changed unseen within one
                # tick of the clock: a copy with a younger time would hide such a change.
                copies.copy(self.index, path)
            yield path
        finally:
            for each in (path, path.with_name(f"{path.name}.lock")):
                each.unlink(missing_ok=True)

    def with_entries(self, base: str, entries: Iterable[tuple[str, str, bytes]]) -> str:
        """Id of *base* with *entries* (mode, object id, path) put in; mode ``ABSENT`` takes the path out."""
        lines = b"".join(f"{mode} {oid}\t".encode() + path + b"\0" for mode, oid, path in entries)
        with self.scratch_index() as index:
            self.output("read-tree", base, index=index)
            self.output("update-index", "-z", "--index-info", stdin=lines, index=index)
            return self._text("write-tree", index=index)

    def with_changes(self, base: str, changes: Iterable[Change]) -> str:
        """Id of *base* with the new side of *changes* put in, whatever is in their places there."""
        entries = [(change.new_mode, change.new_id, change.path) for change in changes]
        # What goes out goes first: a file may come where a folder was.
        return self.with_entries(base, sorted(entries, key=lambda entry: entry[0] != ABSENT))

    # --- Trees ----------------------------------------------------------------------------------------------------

    def tree_of(self, *names: str) -> tuple[str, ...]:
        """Tree ids of commits or trees; raises HostError for one that is not there."""
        return tuple(self._text("rev-parse", *(f"{name}^{{tree}}" for name in names)).split())

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """What differs between two commits or trees, renames as a deletion and an addition."""
        words = self.output(*_DIFF, "--raw", "--no-abbrev", "-z", old, new).split(b"\0")
        return tuple(_change(head.decode(), path) for head, path in zip(words[0::2], words[1::2], strict=False))

    def survey(self, old: str, new: str) -> Survey:
        """What differs between two commits or trees, how large that is, and the patch, by one look of git's."""
        told = self.output(*_DIFF, "--raw", "--no-abbrev", "--numstat", *_PATCH, "-z", old, new)
        changes: list[Change] = []
        rows: list[bytes] = []
        place = 0
        while told.startswith(b":", place):
            middle = told.index(b"\0", place)
            end = told.index(b"\0", middle + 1)
            changes.append(_change(told[place:middle].decode(), told[middle + 1 : end]))
            place = end + 1
        # A row of numbers for every change, then an empty word, then the patch.
        while place < len(told) and told[place]:
            end = told.index(b"\0", place)
            rows.append(told[place:end])
            place = end + 1
        return Survey(tuple(changes), _counts(rows), told[place + 1 :])

    def numstat(self, old: str, new: str) -> Counts:
        """How large the difference of two commits or trees is."""
        return _counts(self.output(*_DIFF, "--numstat", "-z", old, new).split(b"\0")[:-1])

    def difference(self, old: str, new: str) -> bytes:
        """The difference as a patch that plain ``git apply`` takes and rebuilds *new* from *old* exactly (T127)."""
        return self.output(*_DIFF, *_PATCH, old, new)

    def apply(self, base: str, patch: bytes) -> str:
        """Id of the tree that *patch* makes of *base*; raises Tampered where it does not apply.

        That it applies proves nothing: git accepts some damaged patches in part. Compare the id.
        """
        with self.scratch_index() as index:
            self.output("read-tree", base, index=index)
            if patch:
                done = self.run("apply", "--cached", "--binary", "--whitespace=nowarn", stdin=patch, index=index)
                if done.returncode:
                    raise Tampered(
                        f"The patch does not apply to the commit it was made for: {git.last_words(done)}",
                        "Type: ./agent verify",
                    )
            return self._text("write-tree", index=index)

    def merge(self, base: str, ours: str, theirs: str) -> Merged:
        """Three-way merge of commits or trees in memory, no file is touched; raises HostError with a git before 2.38.

        The merge base is *base* whatever history says: the three trees become commits of their own (G28, G29).
        """
        old, mine, other = self.tree_of(base, ours, theirs)
        if old == mine:
            return Merged(other)
        root = self.commit(old, (), "base")
        sides = [self.commit(side, (root,), "side") for side in (mine, other)]
        done = self.run("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", *sides)
        if done.returncode not in {0, 1} or not done.stdout:
            raise self._no_merge(done)
        tree, *paths = done.stdout.removesuffix(b"\0").split(b"\0")
        return Merged(None, tuple(paths)) if done.returncode else Merged(tree.decode())

    def _no_merge(self, done: Answer) -> HostError:
        if b"usage:" in done.stderr:
            return HostError("This git cannot merge without a checkout.", "Install git 2.38 or newer.")
        return self._failed("merge-tree", done)

    def commit(
        self, tree: str, parents: Sequence[str], message: str, *,
        identity: Mapping[str, str] = BOX_IDENTITY, when: str | None = None,
    ) -> str:  # fmt: skip
        """Make a commit in the room and return its id.

        *identity* holds ``GIT_AUTHOR_NAME`` and its like, *when* is a date as git reads it (default: now).
        """
        env = {**BOX_IDENTITY, **identity}
        if when is not None:
            env |= {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        words = [word for parent in parents for word in ("-p", parent)]
        return self._text("commit-tree", *words, "-F", "-", f"{tree}^{{tree}}", stdin=message.encode(), env=env)

    def blob(self, oid: str, limit: int = _BLOB_CAP) -> bytes:
        """The first *limit* bytes of the blob *oid*; raises HostError where there is none."""
        return self.output("cat-file", "blob", oid)[:limit]

    def send(self, oid: str, parents: Sequence[str] | None = None) -> None:
        """Put what the room alone has of the commit or tree *oid* into the repository's own store, checked.

        *parents* are those of the commit, asked of git where they are not given. Raises HostError where an object is
        malformed or leads to one that is in neither (G36).
        """
        if parents is None:
            asked = self.run("rev-parse", f"{oid}^@")
            # A tree has no parents, and git repeats the question.
            parents = [] if asked.returncode else asked.stdout.decode().split()
        wanted = "\n".join([oid, *(f"^{each}" for each in parents)]) + "\n"
        pack = self.output("pack-objects", "--revs", "--local", "--stdout", "-q", stdin=wanted.encode())
        # A partial clone lacks siblings of what was changed, and to look for them would fetch.
        strict = () if is_partial(self.repo) else ("--strict",)
        guard = ("-c", "protocol.allow=never", "-c", "core.fsync=committed,loose-object")
        done = git.run(self.repo.root, *guard, "unpack-objects", "-q", *strict, stdin=pack, sealed=True, env=_ENVIRON)
        if done.returncode:
            raise HostError(f"The repository refuses the objects: {git.last_words(done)}", "Type: git fsck")

    def _text(self, *arguments: str, stdin: bytes = b"", index: Path | None = None,
              env: Mapping[str, str] | None = None) -> str:  # fmt: skip
        return self.output(*arguments, stdin=stdin, index=index, env=env).decode().strip()


def _change(head: str, path: bytes) -> Change:
    old_mode, new_mode, old_id, new_id, _ = head.removeprefix(":").split(" ")
    return Change(path, old_mode, new_mode, old_id, new_id)


def _counts(rows: Sequence[bytes]) -> Counts:
    """The sum of *rows* of ``--numstat``; of a binary file there are no lines to count."""
    told = [row.split(b"\t", 2) for row in rows]
    lines = [(int(added), int(removed)) for added, removed, _ in told if added != b"-"]
    return Counts(len(told), sum(a for a, _ in lines), sum(r for _, r in lines), len(told) - len(lines))


def _all_but(leave: Sequence[bytes]) -> bytes:
    return b"\0".join([b":/", *(b":(top,exclude,literal)" + path for path in leave)])


def _refused_names(stderr: bytes) -> list[bytes] | None:
    """Names that `git add` would not take, quoted as it said them; None where it complained of anything else.

    Up to 2.39 at least it also complains where a path that it is told to pass over is an ignored one.
    """
    complaints = [line for line in stderr.splitlines() if line.startswith((b"error:", b"fatal:"))]
    names = [line.removeprefix(_INVALID) for line in complaints if line.startswith(_INVALID)]
    known = all(line.startswith((_INVALID, b"error: unable to add ")) for line in complaints)
    return names if known and (names or _IGNORED in stderr) else None


_INVALID: Final = b"error: invalid path "
_IGNORED: Final = b"The following paths are ignored by one of your .gitignore files"


def is_partial(repo: git.Repository) -> bool:
    """Whether *repo* is a partial clone, in which objects may be missing on purpose (G10)."""
    return any((repo.common_dir / "objects" / "pack").glob("*.promisor"))
