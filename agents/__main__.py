"""The way in: the lean answer where there is one, else the full command line, with the environment repaired at need."""

import gc
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_HOME = os.path.dirname(_HERE)
# A broken environment is mended once and tried again once.
_MENDED = "AGENT_BOX_MENDED"
_MANY = 50_000
"""Objects after which a search for cycles among them pays. What is imported makes none that could be freed."""


def main() -> None:
    """Run the command line of this process and exit with its code."""
    gc.set_threshold(_MANY)
    # Run by path without isolation, Python puts this folder first, and our modules would stand in for others of the
    # same name (git, for one). With isolation it adds none, and the one that is needed is missing.
    _open_streams()
    sys.path[:] = [_HOME, *(entry for entry in sys.path if entry not in {_HERE, _HOME})]
    from agents import lean

    code = lean.main(sys.argv[1:])
    sys.exit(_full() if code is None else code)


def _open_streams() -> None:
    """Have somewhere to write: a stream that the caller closed would be missing, and its number be given to a file."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


def _full() -> int:
    from essentials import packages

    # The launcher starts Python without site packages, which most verbs do not need.
    packages.defer()
    try:
        from agents.cli import run

        return run(sys.argv[1:])
    except ImportError as why:
        return _mend(why)


def _mend(why: ImportError) -> int:
    """A package is missing: build the environment of the launcher anew; a wheel's is its installer's business."""
    launched = sys.flags.no_site and (why.name or "").partition(".")[0] not in {"agents", "essentials", "hollow"}
    if not launched or _MENDED in os.environ:
        print(f"agent: {why}\n  Type: pip install --force-reinstall agent-box", file=sys.stderr)
        return 4
    from agents import bootstrap

    code = bootstrap.main(["--force", _HOME])
    if code == 0:
        os.execve(sys.executable, [sys.executable, "-IS", __file__, *sys.argv[1:]], {**os.environ, _MENDED: "1"})  # noqa: S606
    return code


if __name__ == "__main__":
    main()
