"""Makes, checks and repairs the virtual environment that ``./agent`` runs in.

Runs before anything is installed, with whatever ``python3`` the machine has: the syntax stays that of Python 3.6, so
that an old interpreter gets as far as saying so, and only the standard library is imported.

A venv counts as ready when its stamp ``.ready`` says so. The stamp is written last and taken away before anything is
changed, so a kill or a full disk at any moment leaves a venv that the next start makes anew.

It is run by its path alone, and finds the two modules that it needs by that path. Of what is imported here and there
the same is true as of this file.
"""

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Iterator, Sequence, TextIO  # noqa: UP035 - where Python 3.6 has them

if __name__ == "__main__":
    # Before all else: a package of the machine may have the name of ours.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agents.pythons import NEEDED, SetupError, find_python
from agents.venvs import (
    Place,
    Wanted,
    contents,
    endorse,
    is_intact,
    is_ready,
    locate,
    read_stamp,
    read_wanted,
    write_stamp,
)

# What would make pip or venv act for another Python or another place than ours. The rest of PIP_* is the user's word.
HOSTILE = (
    *("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"),
    *("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_DRY_RUN", "PIP_PYTHON", "PIP_REQUIREMENT"),
)
NETWORK = "check network, proxy and `pip config list`, then start again; packages in a folder: PIP_FIND_LINKS=DIR"
ELSEWHERE = "set AGENT_BOX_VENV to a folder that can be written, for example AGENT_BOX_VENV=~/.cache/agent-box-venv"


def ensure(
    home: "str | os.PathLike[str]",
    extras: "Sequence[str]" = (),
    force: bool = False,
    out: "TextIO | None" = None,
) -> None:
    """Make sure that the environment of the checkout *home* stands, with the dependencies of *extras* too.

    With *force* it is made anew, unless somebody else did so while we waited. Progress goes to *out* (stderr).
    Raises SetupError.
    """
    try:
        place = locate(Path(home), os.environ.get("AGENT_BOX_VENV", ""))
        _ensure(place, tuple(extras), force, out or sys.stderr)
    except (OSError, RuntimeError) as why:  # Path.resolve answers a loop of links with a RuntimeError
        raise SetupError(f"The environment cannot be set up: {_reason(why)}.", ELSEWHERE) from why


def repair(home: "str | os.PathLike[str]", out: "TextIO | None" = None) -> None:
    """Make the environment anew because an import failed in it; the caller then starts over with exec. SetupError."""
    ensure(home, force=True, out=out)


def _ensure(place: Place, extras: "tuple[str, ...]", force: bool, out: TextIO) -> None:
    before = read_stamp(place)
    wanted = read_wanted(place.home, extras, before)
    if not force and is_ready(place, wanted, before):
        with contextlib.suppress(OSError):  # a checkout that cannot be written is still good to run
            endorse(place, wanted)
        return
    place.venv.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place, out) as lock:
        now = read_stamp(place)
        wanted = read_wanted(place.home, extras, now)
        # Ten starts that found the same wreck need one repair: the stamp carries the time of its making.
        anew = force and now == before
        if anew or not is_ready(place, wanted, now):
            Maker(place, wanted, lock, out).make(fresh=anew or not is_intact(place, now))
        endorse(place, wanted)


class Maker:
    """Makes an environment while holding its lock; *lock* is handed to the children.

    A child that outlives us (we were killed, pip was not) thus keeps the lock, and nobody builds while it still writes.
    """

    def __init__(self, place: Place, wanted: Wanted, lock: "IO[str]", out: TextIO) -> None:
        self.place = place
        self.wanted = wanted
        self.lock = lock
        self.out = out

    def make(self, fresh: bool) -> None:
        """Bring the environment to what is wanted: by pip alone, or *fresh* from nothing. SetupError."""
        place = self.place
        if fresh:
            python = find_python(os.environ.get("PATH", ""))
            self._clear()
            self._run([python, "-I", "-m", "venv", str(place.venv)], f"making {place.venv}, once")
        with contextlib.suppress(FileNotFoundError):
            place.stamp.unlink()
        self._install()
        write_stamp(place, self.wanted)

    def _clear(self) -> None:
        """Leave an empty folder of ours at the place; what is not ours is moved aside, never deleted."""
        place, new, old = self.place, self.place.beside(".agent-box-new"), self.place.beside(".agent-box-old")
        for leftover in (new, old):  # of a start that was killed between two of the steps below
            shutil.rmtree(str(leftover), ignore_errors=True)
        if place.mark.is_file() and not place.venv.is_symlink():
            place.venv.rename(old)
        elif os.path.lexists(str(place.venv)) and not _is_empty(place.venv):
            self._move_aside()
        new.mkdir()
        (new / place.mark.name).write_text("Agent Box made this folder and may delete it.\n", "utf-8")
        new.rename(place.venv)  # never without its mark, so a later start knows that it may delete it
        shutil.rmtree(str(old), ignore_errors=True)

    def _move_aside(self) -> None:
        venv = self.place.venv
        if venv != self.place.home / ".venv":  # the operator named it, perhaps by mistake: it may be a home folder
            raise SetupError(f"AGENT_BOX_VENV names {venv}, which holds something else.", "name a new folder", 2)
        aside = next(path for path in map(self.place.beside, _endings()) if not os.path.lexists(str(path)))
        venv.rename(aside)
        self._say(f"{venv} was not made by Agent Box: moved to {aside}")

    def _install(self) -> None:
        """Install the requirements by name, as the user's own pip configuration says."""
        lines = self.wanted.requirements
        if not lines:
            return
        pip = [str(self.place.python), "-I", "-m", "pip", "--no-input", "--disable-pip-version-check", "install"]
        self._run([*pip, "--no-user", *lines], f"installing {len(lines)} packages and what they need")
        have = {_normal(name.split("-")[0]) for name in contents(self.place) if name.endswith(".dist-info")}
        # A line with a marker may ask for nothing on this machine.
        names = [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines if ";" not in line]
        missing = [name for name in names if _normal(name) not in have]
        if missing:
            hint = "look for `target` or `prefix` in `pip config list`"
            raise SetupError(f"pip installed {', '.join(missing)} somewhere else than {self.place.venv}.", hint)

    def _run(self, argv: "list[str]", what: str) -> None:
        """Run one program silently, its output into the log; raise SetupError with its last lines when it fails."""
        began = time.monotonic()
        env = {name: value for name, value in os.environ.items() if name not in HOSTILE}
        self._say(f"{what} ...")
        with self.place.log.open("ab") as log:
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, pass_fds=(self.lock.fileno(),)
            )
            self._watch(child, began)
        if child.returncode:
            self._explain(what, child.returncode)
        self._say(f"  done in {time.monotonic() - began:.1f} s")

    def _watch(self, child: "subprocess.Popen[bytes]", began: float) -> None:
        """Wait for *child*; count the seconds where somebody looks, else say once in half a minute that it goes on."""
        live = self.out.isatty()
        try:
            while True:
                try:
                    child.wait(timeout=1 if live else 30)
                    break
                except subprocess.TimeoutExpired:
                    spent = f"  {time.monotonic() - began:.0f} s"
                    _tell(self.out, f"\r{spent}" if live else f"agent: {spent.strip()} so far\n")
        except BaseException:
            child.terminate()  # interrupted: nothing of ours stays behind
            child.wait()
            raise
        finally:
            if live:
                _tell(self.out, "\r\x1b[K")

    def _explain(self, what: str, status: int) -> None:
        lines = [line.strip() for line in self.place.log.read_text("utf-8", "replace").splitlines() if line.strip()]
        for line in lines[-6:]:
            self._say(f"  | {line}")
        reason = next(
            (line for line in reversed(lines) if line.startswith("ERROR")),
            "".join(lines[-1:]) or f"exit status {status}",
        )
        hint = ELSEWHERE if "No space left" in reason else NETWORK
        raise SetupError(f"Failed at {what}: {reason} (all of it: {self.place.log})", hint)

    def _say(self, text: str) -> None:
        _tell(self.out, f"agent: {text}\n")


def _tell(out: TextIO, text: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads it any more: no reason to leave the work half done
        out.write(text)
        out.flush()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def _reason(why: Exception) -> str:
    if isinstance(why, OSError) and why.strerror:
        return f"{why.filename}: {why.strerror}" if why.filename else why.strerror
    return str(why)


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def _endings() -> "Iterator[str]":
    number = 0
    while True:
        number += 1
        yield f".aside-{number}"


@contextlib.contextmanager
def _locked(place: Place, out: TextIO) -> "Iterator[IO[str]]":
    """Hold the lock on the environment; say so when somebody else has it. The file stays: unlinking it would race."""
    with place.beside(".lock").open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _tell(out, f"agent: another start is setting up {place.venv}: waiting for it ...\n")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def main(argv: "Sequence[str]") -> int:
    """Run ``bootstrap.py [--test] [--force] HOME``; return the exit code (0 ready, 2 wrong arguments, 4 machine)."""
    parser = argparse.ArgumentParser(prog="bootstrap.py", description="Make or repair the environment of a checkout.")
    parser.add_argument("--test", action="store_true", help="with what the tests need")
    parser.add_argument("--force", action="store_true", help="make it anew")
    parser.add_argument("home", metavar="HOME", help="the checkout")
    given = parser.parse_args(argv)
    try:
        if sys.version_info[:2] < NEEDED:
            python = find_python(os.environ.get("PATH", ""))
            os.execv(python, [python, "-I", __file__, *argv])  # noqa: S606 - the same program, by a Python that can
        ensure(given.home, ("test",) if given.test else (), given.force)
    except SetupError as why:
        sys.stderr.write(f"agent: {why.message}\n" + (f"agent: {why.hint}\n" if why.hint else ""))
        return why.code
    except KeyboardInterrupt:
        sys.stderr.write("agent: interrupted; the next start goes on\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
