"""What lies in the airlock: the agent's own documents, its peers', and the files of the repository."""

from __future__ import annotations

import os

from essentials.digests import sha256
from essentials.records import dataclass
from hollow import gitread
from hollow.hands.paths import WORKSPACE, own_folders
from hollow.kinds import Kind, kind, language
from hollow.substrate.model import AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Final

MOST: Final = 2_000
"""Documents of one agent that are looked at; long before it is told that it carries too much."""
SHOWN: Final = 12
"""Documents of a peer that are named, the newest."""
SAMPLE: Final = 40
"""Files of the repository that are named."""
_TELLING: Final = frozenset({Kind.SOURCE, Kind.TEST, Kind.DOC})
_LARGEST: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """One file that an agent has left."""

    path: str
    """Relative to the top of the airlock."""
    size: int
    """Bytes."""
    stamp: tuple[int, int]
    """Time of change in nanoseconds, and inode."""


def own(root: Path, agent: str) -> dict[str, Document]:
    """Return the documents in the folders of *agent* below *root*, by path; links are none."""
    return {each.path: each for folder in own_folders(agent) for each in _below(root, folder)}


def of_peers(root: Path, agent: str) -> Mapping[str, tuple[str, ...]]:
    """Return the newest documents of each other agent below *root*, newest last."""
    found = {peer: list(_below(root, f"{WORKSPACE}/{peer}")) for peer in AGENTS if peer != agent}
    # By name where they are equally old, as all are in a fresh checkout.
    return {
        peer: tuple(each.path for each in sorted(files, key=lambda each: (each.stamp[0] // 10**9, each.path))[-SHOWN:])
        for peer, files in found.items()
    }


def of_repository(root: Path, seed: str) -> tuple[str, ...]:
    """Return some tracked files below *root* that no agent has made; *seed* decides which."""
    try:
        listed = gitread.git(root, "ls-files", "-z").split(b"\0")
    except gitread.GitReadError:
        return ()
    names = [os.fsdecode(each) for each in listed if each and not each.startswith((b"workspace/", b"design/"))]
    plain = [name for name in names if name.isprintable()]
    # What people wrote to be read, where there is any: a lock file or a picture makes no goal.
    plain = [name for name in plain if language(name) and kind(name) in _TELLING] or plain
    if len(plain) <= SAMPLE:
        return tuple(plain)
    drawn = sorted(plain, key=lambda name: sha256(f"{seed}\0{name}".encode()).digest())
    return tuple(sorted(drawn[:SAMPLE]))


def text(root: Path, path: str) -> str | None:
    """Return the text of the file *path* below *root*, or None where there is no such regular file or it is closed."""
    whole = root / path
    inside = os.path.realpath(whole).startswith(f"{os.path.realpath(root)}{os.sep}")
    if not inside or whole.is_symlink() or not whole.is_file() or whole.stat().st_size > _LARGEST:
        return None
    return whole.read_bytes().decode("utf-8", "replace")


def _below(root: Path, folder: str) -> Iterator[Document]:
    left, above = MOST, len(os.path.join(root, ""))  # noqa: PTH118 - os.walk speaks in text
    for path, folders, names in os.walk(root / folder):
        folders[:] = sorted(name for name in folders if name not in {".git", "__pycache__"})
        for name in sorted(names):
            whole = os.path.join(path, name)  # noqa: PTH118 - likewise
            facts = os.lstat(whole)
            if left and not os.path.islink(whole):  # noqa: PTH114 - likewise
                left -= 1
                yield Document(whole[above:], facts.st_size, (facts.st_mtime_ns, facts.st_ino))
