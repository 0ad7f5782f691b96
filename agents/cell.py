"""What a process may see, change and use: the vocabulary of the sandbox."""

from __future__ import annotations

from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Final

_GIB: Final = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a process and each of its children may use; core files are never written (S12)."""

    processes: int = 4096
    """Processes and threads at once: far above a parallel build, far below what stops a machine. Void for root."""
    file_size: int = 8 * _GIB
    """Bytes of one file."""
    open_files: int = 65_536
    """Open files of one process; watchers of large trees open tens of thousands."""
    scratch: int = 2 * _GIB
    """Bytes of each of the sandbox's own temporary folders, which are memory (T05)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What a process may see and do (design, section 8). Paths are absolute; those that are not there are skipped."""

    level: str
    """full (bubblewrap, seccomp, limits), partial (Landlock, seccomp, limits) or none (limits)."""
    cwd: Path
    """Where it starts."""
    read: tuple[Path, ...] = ()
    """Files and folders to read, at their own places, beside the system's."""
    write: tuple[Path, ...] = ()
    """Files and folders to write; they are there."""
    freeze: tuple[Path, ...] = ()
    """Files in a writable folder that stay as they are; full only."""
    hide: tuple[Path, ...] = ()
    """Seen as an empty folder or file; under partial not to be read, and in a writable folder not hidden at all."""
    instead: Mapping[Path, Path] = field(default_factory=dict)
    """Place to the file whose content is seen there; under partial the place cannot be read."""
    network: bool = True
    """Whether it has the machine's network; without, full gives it a loopback of its own and partial nothing."""
    nested: bool = False
    """Whether it makes sandboxes for children of its own."""
    limits: Limits = field(default_factory=Limits)
