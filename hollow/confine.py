"""Path confinement: which files of the repository an agent may see, and how they are opened without being tricked."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Final

CLOSED_AT_TOP: Final = frozenset({".agents", "agent_box"})
"""The supervisor's own folders; a package of that name deeper down is ordinary code (design, sections 3 and 4)."""

SECRET_NAMES: Final = (
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc", "id_rsa*", "id_dsa*",
    "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".htpasswd",
    "credentials", "credentials.*", "secret.*", "secrets.*", "*.tfstate", "*.tfvars", "service-account*.json",
)  # fmt: skip
"""Names that usually hold a secret. They are closed unless git tracks the file: what is committed is no secret here."""


class Refusal(Exception):  # noqa: N818 - it is an answer to the agent, not an error of ours
    """A path or an argument is not for the agent; the message is one sentence that says why."""


def _closed_part(part: str) -> bool:
    # Compared without case: `.GIT/config` is the same file where the file system says so.
    name = part.casefold()
    return name in {".git", ".env"} or (name.startswith(".env.") and name != ".env.test")


def closed(parts: tuple[str, ...]) -> bool:
    """Whether a path, given as its *parts* below the root, is closed by name alone.

    Closed are ``.git`` at any depth, the supervisor's folders at the top, and ``.env`` with its variants except
    ``.env.test`` (T147, T151).
    """
    return bool(parts) and (parts[0].casefold() in CLOSED_AT_TOP or any(map(_closed_part, parts)))


def looks_secret(name: str) -> bool:
    """Whether a file's *name* (no folders) is one under which keys and passwords are usually kept."""
    return any(fnmatchcase(name.casefold(), pattern) for pattern in SECRET_NAMES)


class Confinement:
    """The border around one repository.

    *root* is its top folder. *tracked* tells for a path relative to it, in POSIX form, whether git tracks that file;
    it is asked for secret-looking names only.
    """

    def __init__(self, root: Path, tracked: Callable[[str], bool]) -> None:
        self.root = Path(os.path.realpath(root))
        self._given = Path(os.path.abspath(root))  # noqa: PTH100 - links must stay: it is compared with what a prompt says
        self.tracked = tracked

    def name(self, path: str) -> tuple[str, ...]:
        """Return *path* as parts below the root, judged by its name only: it need not exist.

        Raises :class:`Refusal` if the path leads out or is closed.
        """
        if "\0" in path:
            raise Refusal("A path cannot hold a NUL character.")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise Refusal("A path cannot hold half of a character.") from None
        return self.inside(Path(os.path.normpath(self._absolute(path))), path)

    def resolve(self, path: str) -> tuple[str, ...]:
        """Return the parts below the root that *path* really leads to, symbolic links followed.

        Raises :class:`Refusal` if it does not exist, leads out of the repository, or is closed under either name.
        """
        self.name(path)
        try:
            real = Path(os.path.realpath(self._absolute(path), strict=True))
        except OSError as why:
            raise Refusal(f"{path} cannot be opened: {os.strerror(why.errno or errno.ENOENT)}.") from None
        # Judged again by where it leads: a link may have an innocent name.
        parts = self.inside(real, path)
        if parts and looks_secret(parts[-1]) and not real.is_dir() and not self.tracked("/".join(parts)):
            raise Refusal(f"{path} looks like a secret that git does not track; it is closed to agents.")
        return parts

    def allows(self, path: str) -> bool:
        """Whether :meth:`resolve` would accept *path*."""
        try:
            self.resolve(path)
        except Refusal:
            return False
        return True

    @contextlib.contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """Open the folder *path* and yield its descriptor; raises :class:`Refusal` if it is none."""
        parts = self.resolve(path)
        descriptor = self.walk(parts, path)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def file(self, path: str) -> Iterator[int]:
        """Open the regular file *path* for reading and yield its descriptor; raises :class:`Refusal` if it is none."""
        parts = self.resolve(path)
        if not parts:
            raise Refusal(f"{path} is a folder, not a file; use Ls to look into it.")
        parent = self.walk(parts[:-1], path)
        try:
            descriptor = _open_regular(parts[-1], parent, path)
        finally:
            os.close(parent)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _absolute(self, path: str) -> Path:
        asked = Path(path.strip() or ".")
        # A model may well quote an absolute path from its prompt, where the root may be spelled with a link in it.
        return self.root / (asked.relative_to(self._given) if asked.is_relative_to(self._given) else asked)

    def inside(self, absolute: Path, asked: str) -> tuple[str, ...]:
        """Return the parts of *absolute*, a path without links, below the root.

        Raises :class:`Refusal`, speaking of it as *asked*, if it lies outside or is closed by its name.
        """
        try:
            parts = absolute.relative_to(self.root).parts
        except ValueError:
            raise Refusal(f"{asked} leads out of the repository; only what lies inside is open to agents.") from None
        if closed(parts):
            raise Refusal(f"{asked} is closed to agents.")
        return parts

    def walk(self, parts: tuple[str, ...], asked: str, *, make: bool = False) -> int:
        """Return a descriptor of the folder *parts* below the root; with *make* what is missing is made.

        It goes part by part: they hold no link, so one found now was planted. Raises :class:`Refusal` if one is no
        folder; the caller closes the descriptor.
        """
        here = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in parts:
            try:
                below = _below(here, part, make=make)
            except OSError as why:
                raise _refused(why, asked, "is no folder") from None
            finally:
                os.close(here)
            here = below
        return here


def _below(here: int, part: str, *, make: bool) -> int:
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, dir_fd=here)
    return os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)


def _open_regular(name: str, parent: int, asked: str) -> int:
    try:
        before = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISREG(before.st_mode):
            raise Refusal(f"{asked} is {_kind(before.st_mode)}, not a regular file.")
        # O_NONBLOCK: were it swapped for a FIFO since, opening it would otherwise wait for a writer for ever.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=parent)
    except OSError as why:
        raise _refused(why, asked, "is no regular file") from None
    # Between the look and the opening the name may have been given to another file.
    after = os.fstat(descriptor)
    if (after.st_dev, after.st_ino) != (before.st_dev, before.st_ino):
        os.close(descriptor)
        raise Refusal(f"{asked} changed while it was being opened; try again.")
    return descriptor


def _refused(why: OSError, asked: str, wrong_kind: str) -> Refusal:
    if why.errno in {errno.ELOOP, errno.ENOTDIR}:
        return Refusal(f"{asked} {wrong_kind}.")
    return Refusal(f"{asked} cannot be opened: {os.strerror(why.errno or errno.EIO)}.")


_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _kind(mode: int) -> str:
    return next((words for test, words in _KINDS if test(mode)), "a special file")


def shown(parts: tuple[str, ...]) -> str:
    """Return *parts* as the relative POSIX path that is shown to the agent; bytes that are no UTF-8 are replaced."""
    return os.fsencode(PurePosixPath(*parts)).decode("utf-8", "replace")
