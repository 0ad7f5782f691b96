"""Airlocks for tests: repositories with odd files, a model of a tree, and a plain git to compare with."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from agents import git
from agents.airlock import Airlock, open_airlock
from agents.layout import Box, Layout
from tests.support.repos import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NAME = "26-11-22_0300__try__ab12"
RESET = "* -text -ident -filter !eol !working-tree-encoding !diff !merge\n"


@dataclass(frozen=True)
class File:
    """A regular file of a model tree."""

    content: bytes = b""
    run: bool = False


@dataclass(frozen=True)
class Link:
    """A symbolic link of a model tree."""

    target: bytes


Model = dict[bytes, File | Link]


@dataclass(frozen=True)
class Place:
    """A repository and a run in it."""

    repo: git.Repository
    layout: Layout
    box: Box

    @property
    def base(self) -> str:
        assert self.repo.head
        return self.repo.head

    def open(self, **more: int) -> Airlock:
        return open_airlock(self.repo, self.layout, self.box, self.base, **more)


def place(root: Path, name: str = NAME) -> Place:
    """The run *name* in the repository at *root*."""
    layout = Layout(root)
    return Place(git.locate(root), layout, layout.box(name))


def plain(root: Path, *words: str, stdin: bytes = b"", **env: str) -> bytes:
    """What the operator's git says in *root*, in bytes; raises where it fails."""
    done = subprocess.run(["git", *words], cwd=root, env={**ENVIRONMENT, **env}, input=stdin, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(root: Path, model: Mapping[bytes, File | Link]) -> None:
    """Write the files of *model* below *root*."""
    for name, entry in model.items():
        path = root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(entry, Link):
            path.symlink_to(os.fsdecode(entry.target))
        else:
            path.write_bytes(entry.content)
            path.chmod(0o755 if entry.run else 0o644)


def clear(root: Path) -> None:
    """Remove everything below *root* but ``.git``."""
    subprocess.run(
        ["find", root, "-mindepth", "1", "-maxdepth", "1", "!", "-name", ".git", "-exec", "rm", "-rf", "{}", "+"]
    )


def make_exact(root: Path, model: Mapping[bytes, File | Link], *, form: str = "sha1") -> Path:
    """A repository at *root* with *model* in its one commit byte for byte, whatever its attributes say."""
    root.mkdir(parents=True)
    plain(root, "init", "-q", "-b", "main", f"--object-format={form}")
    write(root, model)
    attributes = root / ".git" / "info" / "attributes"
    attributes.write_text(RESET)
    plain(root, "add", "-A", "-f")
    plain(root, "commit", "-q", "--allow-empty", "-m", "first")
    attributes.unlink()
    return root


def listing(airlock: Airlock, tree: str) -> dict[bytes, tuple[str, str]]:
    """Path to mode and object id of everything in *tree*."""
    rows = (row.partition(b"\t")[::2] for row in airlock.room.output("ls-tree", "-r", "-z", tree).split(b"\0") if row)
    return {path: (head.split()[0].decode(), head.split()[2].decode()) for head, path in rows}


def expected(model: Mapping[bytes, File | Link]) -> dict[bytes, tuple[str, str]]:
    """What :func:`listing` must say of *model*, computed without git."""
    return {
        name: (_mode(entry), _blob(entry.target if isinstance(entry, Link) else entry.content))
        for name, entry in model.items()
    }


def _mode(entry: File | Link) -> str:
    if isinstance(entry, Link):
        return "120000"
    return "100755" if entry.run else "100644"


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def applied(root: Path, patch: bytes, where: Path, *, exact: bool = False) -> str:
    """Tree that plain `git apply` makes of *patch* in a fresh clone of *root*; *exact* without the clone's conversions."""
    plain(root, "clone", "-q", "--no-checkout", str(root), str(where))
    if exact:
        (where / ".git" / "info").mkdir(exist_ok=True)
        (where / ".git" / "info" / "attributes").write_text(RESET)
    plain(where, "reset", "-q", "--hard")
    if patch:
        # `git apply` asks the disk what a new path leads through while the link that stands in its way is still there,
        # and gives up where that one leads to itself. Its index knows better.
        loops = any(link.is_symlink() and _leads_to_itself(link) for link in where.iterdir())
        plain(where, "apply", "--cached" if loops else "--index", "-", stdin=patch)
    return plain(where, "write-tree").decode().strip()


def _leads_to_itself(link: Path) -> bool:
    try:
        link.stat()
    except OSError as why:
        return why.errno == errno.ELOOP
    return False


# --- Random trees -----------------------------------------------------------------------------------------------------

COMPONENTS = [
    b"a", b"b", b"with space", b"-dash", b"new\nline", b'quo"te', b"back\\slash", b"tab\there", b"\xff\xfe", b"\x1b[31m",
    "é".encode(), "e\u0301".encode(), "\u202etxt".encode(), b"A", b"con", b"x" * 255, b"...", b"#c", b"!n", b"*", b"[z]", b":(top)",
]  # fmt: skip
CONTENTS = [
    b"", b"\n", b"one\ntwo\nthree\n", b"one\r\ntwo\r\n", b"no newline", b"\0\1\2\3", b"$Id$\n", b"\xff\xfeh\0i\0",
    b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", b"one\nTWO\nthree\n", "ä\n".encode(), bytes(range(256)) * 20, b"-- \n2.39\n",
]  # fmt: skip
ATTRIBUTES = [
    b"* text=auto\n", b"* text eol=crlf\n", b"* ident\n", b"* filter=evil diff=evil merge=evil\n",
    b"* working-tree-encoding=UTF-16\n", b"* -diff\n", b"* binary\n", b"[attr]m text eol=crlf\n* m\n",
]  # fmt: skip

_names = st.lists(st.sampled_from(COMPONENTS), min_size=1, max_size=3).map(b"/".join)
_files = st.builds(File, st.sampled_from(CONTENTS) | st.binary(max_size=40), st.booleans())
_links = st.builds(Link, st.sampled_from([b"a", b"/etc/passwd", b"../..", b"\xff", b"no\nwhere"]))


def _without_clashes(model: Model) -> Model:
    """*model* without files in the place of a folder."""
    folders = {b"/".join(name.split(b"/")[:depth]) for name in model for depth in range(1, name.count(b"/") + 1)}
    return {name: entry for name, entry in model.items() if name not in folders}


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A tree of odd files, at times with attributes that would convert them."""
    model = _without_clashes(draw(st.dictionaries(_names, _files | _links, max_size=8)))
    attributes = draw(st.none() | st.sampled_from(ATTRIBUTES))
    return model if attributes is None else {**model, b".gitattributes": File(attributes)}


@st.composite
def edits(draw: st.DrawFn) -> tuple[Model, Model]:
    """A tree and what an agent made of it: some of it kept, changed, renamed or gone, something added."""
    old, added = draw(models()), draw(models())
    kept = {name: entry for name, entry in old.items() if draw(st.integers(0, 3))}
    moved = {draw(_names) if draw(st.booleans()) else name: entry for name, entry in kept.items()}
    return old, _without_clashes({**moved, **added})
