"""The environment of a checkout as a value: where it is, what is wanted of it, what it says that it holds.

Runs before anything is installed: the syntax is that of Python 3.6, and only its standard library is imported, but
for what reads pyproject.toml.
"""

import hashlib
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

from agents.pythons import SetupError, version_of


class Place(NamedTuple):
    """Where things are: *home* is the real path of the checkout, *venv* that of its environment."""

    home: Path
    venv: Path

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.venv / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """The file whose presence makes the environment ready; as old as pyproject.toml, for the launcher's test."""
        return self.venv / ".ready"

    @property
    def mark(self) -> Path:
        """The file that says that we made this folder and may delete it."""
        return self.venv / ".made-by-agent-box"

    @property
    def log(self) -> Path:
        """What venv and pip said."""
        return self.venv / "setup.log"

    def beside(self, ending: str) -> Path:
        """Return the neighbour of the environment with *ending* added to its name."""
        return self.venv.with_name(self.venv.name + ending)


class Wanted(NamedTuple):
    """What pyproject.toml asks for: requirement lines for *extras*, and its modification time (ns)."""

    requirements: "tuple[str, ...]"
    extras: "tuple[str, ...]"
    mtime: int

    @property
    def digest(self) -> str:
        """The SHA-256 of the requirement lines: a touched pyproject.toml with the same lines installs nothing."""
        return hashlib.sha256("\n".join(self.requirements).encode()).hexdigest()


class Stamp(NamedTuple):
    """What an environment was made for, as the JSON of ``.ready``."""

    venv: str
    """Its real path: scripts and links inside hold it, so an environment that was moved is not believed."""
    python: str
    """``major.minor`` of its interpreter, which names the folder of the packages."""
    extras: "list[str]"
    digest: str
    """Wanted.digest of what was installed."""
    holds: "list[str]"
    """Names of modules and packages that were there: one that is gone is a reason to make it anew."""
    made: int
    """When (ns since the epoch): tells one making from the next."""


def locate(home: Path, chosen: str) -> Place:
    """Return where the environment of checkout *home* belongs: *chosen* (AGENT_BOX_VENV) if any, else ``.venv``."""
    home = home.resolve()
    if not (home / "pyproject.toml").is_file():
        raise SetupError(f"{home} is no checkout of Agent Box: it has no pyproject.toml.", code=2)
    if chosen and not (Path(chosen).is_absolute() and Path(chosen).name):
        raise SetupError(f"AGENT_BOX_VENV must be the absolute path of a folder, not {chosen!r}.", code=2)
    venv = Path(chosen) if chosen else home / ".venv"
    # Only the parent is resolved: the venv itself may be a link, and a link is not ours.
    return Place(home, venv.parent.resolve() / venv.name)


def read_wanted(home: Path, extras: "tuple[str, ...]", stamp: "Stamp | None") -> Wanted:
    """Return what pyproject.toml of *home* asks for, with *extras* and those that *stamp* has already."""
    import tomllib

    path = home / "pyproject.toml"
    mtime = path.stat().st_mtime_ns  # before reading: an edit from now on is seen by the next start
    wanted = sorted({*extras, *(stamp.extras if stamp else ())})
    try:
        project = tomllib.loads(path.read_text("utf-8"))["project"]
        optional = project.get("optional-dependencies", {})
        lines = [*project.get("dependencies", ()), *(line for extra in wanted for line in optional.get(extra, ()))]
    except (ValueError, KeyError, AttributeError, TypeError) as why:
        raise SetupError(f"{path} cannot be understood: {why}.") from why
    return Wanted(tuple(lines), tuple(wanted), mtime)


def read_stamp(place: Place) -> "Stamp | None":
    """Return the stamp of an environment made for this very place, or None when there is none that can be believed."""
    try:
        stamp = Stamp(**json.loads(place.stamp.read_text("utf-8")))
        sound = all(isinstance(name, str) for name in (*stamp.extras, *stamp.holds))
    except (OSError, ValueError, TypeError, RecursionError):  # cut off, of another version, or no stamp at all
        return None
    return stamp if sound and stamp.venv == str(place.venv) else None


def is_intact(place: Place, stamp: "Stamp | None") -> bool:
    """Tell whether the environment still has all that *stamp* lists, and an interpreter of that version which runs."""
    if stamp is None or stamp.python != version_of(str(place.python)):
        return False
    return set(stamp.holds) <= set(contents(place))


def is_ready(place: Place, wanted: Wanted, stamp: "Stamp | None") -> bool:
    """Tell whether the environment is intact and was made for just the requirements *wanted*."""
    return stamp is not None and stamp.digest == wanted.digest and is_intact(place, stamp)


def contents(place: Place) -> "list[str]":
    """Return the names in the environment's site-packages that an import could need."""
    found = place.venv.glob("lib/python3*/site-packages/*")
    return sorted(path.name for path in found if path.name != "__pycache__")


def write_stamp(place: Place, wanted: Wanted) -> None:
    """Say, in one step and to outlast a power cut, that the environment at *place* stands as *wanted*. OSError."""
    stamp = Stamp(
        venv=str(place.venv),
        python=version_of(str(place.python)) or "",
        extras=list(wanted.extras),
        digest=wanted.digest,
        holds=[name for name in contents(place) if not name.endswith(".dist-info")],
        made=time.time_ns(),
    )
    new = place.venv / ".ready.new"
    with new.open("w", encoding="utf-8") as file:
        json.dump(stamp._asdict(), file)
        file.flush()
        os.fsync(file.fileno())
    new.rename(place.stamp)


def endorse(place: Place, wanted: Wanted) -> None:
    """Tell the launcher that the environment is ready for this checkout and this state of pyproject.toml."""
    link = place.venv / ".home"
    if not (link.is_symlink() and link.samefile(place.home)):
        new = place.venv / f".home.{os.getpid()}"
        new.symlink_to(place.home)
        new.rename(link)
    os.utime(str(place.stamp), ns=(wanted.mtime, wanted.mtime))
