"""Where an agent may write, and how: below the root, by descriptor, a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from essentials.records import dataclass
from hollow.confine import Refusal, looks_secret, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

    from hollow.confine import Confinement

MAX_FILE: Final = 2 * 1024 * 1024
"""Bytes of a file that can be edited or written; larger ones are data or generated, not text that somebody edits."""

_READ_ONLY_AT_TOP: Final = ".claude"
"""The operator's own commands lie there; nothing below it is ever part of a patch (design, section 7)."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One file, there or not yet, held by the folder that it lies in."""

    folder: int
    """Descriptor of the folder."""
    name: str
    """Name in that folder; never a link."""
    path: str
    """Relative to the top of the repository, as it is shown."""
    mode: int | None
    """Permission bits, or None where there is no file yet."""

    def read(self) -> bytes:
        """Return its bytes; raises :class:`Refusal` if there is none or it is larger than :data:`MAX_FILE`."""
        if self.mode is None:
            raise Refusal(f"{self.path} does not exist; use WriteFile to create it, or Ls to see what is there.")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(self.name, flags, dir_fd=self.folder), "rb") as file:
            data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise Refusal(f"{self.path} is larger than {MAX_FILE} bytes; such a file cannot be edited.")
        return data

    def replace(self, data: bytes) -> None:
        """Put *data* in its place: whoever reads it sees the old bytes or the new ones, and its permissions stay.

        Raises :class:`OSError` where the disk refuses, and leaves the old file then.
        """
        if len(data) > MAX_FILE:
            raise Refusal(f"{self.path} would be larger than {MAX_FILE} bytes; write less.")
        # In the same folder, or the rename could not be one step. Random, so that nobody can have put a link there.
        temporary = f".{os.urandom(8).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=self.folder), "wb") as file:
                if self.mode is not None:
                    os.fchmod(file.fileno(), self.mode)
                file.write(data)
            os.rename(temporary, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        except BaseException:  # a signal counts too: nothing half written may be left for the patch
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=self.folder)
            raise


@contextlib.contextmanager
def spot(border: Confinement, path: str, *, make: bool = False) -> Iterator[Spot]:
    """Yield the file that *path* means, for writing; with *make* missing folders are made.

    Links are followed as far as they stay inside. Raises :class:`Refusal` if it leads out, is closed or is no regular
    file (T147).
    """
    parts = _target(border, path)
    folder = border.walk(parts[:-1], path, make=make)
    try:
        yield Spot(folder, parts[-1], shown(parts), _mode(folder, parts[-1], path))
    finally:
        os.close(folder)


def _target(border: Confinement, path: str) -> tuple[str, ...]:
    """The parts below the root that *path* leads to; the last ones need not exist."""
    named = border.name(path)
    # Judged by where it leads, too: a link may have an innocent name. Not strict: what is to be made is not there yet.
    parts = border.inside(Path(os.path.realpath(border.root.joinpath(*named))), path)
    if not parts:
        raise Refusal(f"{path} is a folder, not a file.")
    for each in (named, parts):
        if each[0].casefold() == _READ_ONLY_AT_TOP:
            raise Refusal(f"{path} is closed to agents.")
    if looks_secret(parts[-1]) and not border.tracked("/".join(parts)):
        raise Refusal(f"{path} has a name that keys and passwords are kept under; such files are closed to agents.")
    return parts


def _mode(folder: int, name: str, asked: str) -> int | None:
    """Permission bits of the regular file *name*, or None if nothing is there."""
    try:
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(facts.st_mode):
        raise Refusal(f"{asked} is a folder or a special file; only regular files can be written.")
    # Without the bits that lend somebody's rights: they are not for an agent to keep.
    return stat.S_IMODE(facts.st_mode) & 0o777
