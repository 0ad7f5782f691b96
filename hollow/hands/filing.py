"""fs_read, fs_write, fs_edit: files of the airlock; all of it for reading, the agent's own folders for writing."""

from __future__ import annotations

import contextlib
import re

from essentials.patterns import late
from hollow.confine import Refusal
from hollow.hands.call import done
from hollow.hands.paths import peer_of, readable, writable
from hollow.substrate.model import Kind
from hollow.toolbox.editing import edit_file, write_file
from hollow.toolbox.reading import ls, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

    from hollow.hands.call import Call
    from hollow.substrate.model import Happening, Result

_OUR_WORDS: Final = {
    "ReadFile": "fs_read", "WriteFile": "fs_write", "EditFile": "fs_edit", "Ls": "fs_read", "Grep": "shell_exec",
    "old_text": "old", "new_text": "new", ", or set replace_all to true": "",
}  # fmt: skip
"""What the toolbox of other runs calls things, to what they are called here."""
_THEIR_WORDS: Final = late("|".join(re.escape(word) if word[0] == "," else rf"\b{word}\b" for word in _OUR_WORDS))


def fs_read(reach: Call, path: str, offset: int = 1, limit: int = 400) -> Result:
    """Read a text file with line numbers, or list a folder. The whole repository is open for reading.

    path: file or folder relative to the top
    offset: number of the first line wanted, from 1
    limit: how many lines at most
    """
    with speaking_our_words():
        real = readable(reach.place.border, path)
        if reach.place.root.joinpath(real).is_dir():
            return done(ls(reach.place, real))
        text = read_file(reach.place, real, offset, limit)
    # The last line may be the toolbox's own, which says how to get more; the others are the file's.
    body, line, last = text.rpartition("\n")
    return done(body + line + _said_our_way(last) if last.startswith("[") else text, happenings=looked_at(reach, real))


def fs_write(reach: Call, path: str, content: str) -> Result:
    """Create a text file in your own folders, or replace the whole content of one; missing folders are made.

    path: file below your workspace or design/
    content: the whole new content
    """
    with speaking_our_words():
        real = writable(reach.place.border, path, reach.agent)
        return done({"path": real, "result": write_file(reach.place, real, content)}, wrote=(real,))


def fs_edit(reach: Call, path: str, old: str, new: str) -> Result:
    """Replace a passage of a file in your own folders. Read the file first; old must stand there exactly once.

    path: file below your workspace or design/
    old: the exact passage to replace, with its indentation, without line numbers
    new: what stands there afterwards; empty to remove the passage
    """
    with speaking_our_words():
        real = writable(reach.place.border, path, reach.agent)
        return done({"path": real, "result": edit_file(reach.place, real, old, new)}, wrote=(real,))


def looked_at(reach: Call, path: str) -> tuple[Happening, ...]:
    """Return what it means that the agent read the file *path*: a peer's work has been seen by somebody (S4)."""
    peer = peer_of(path, reach.agent)
    if peer is None:
        return ()
    return (
        reach.happened(Kind.PEER, peer=peer, how="read"),
        reach.happened(Kind.REFERENCE, what=path, by=reach.agent, of=peer),
    )


@contextlib.contextmanager
def speaking_our_words() -> Iterator[None]:
    """Say refusals of the shared tools in the words of the capabilities."""
    try:
        yield
    except Refusal as why:
        raise Refusal(_said_our_way(str(why))) from None


def _said_our_way(sentence: str) -> str:
    return _THEIR_WORDS.sub(lambda found: _OUR_WORDS[found[0]], sentence)
