"""Bytecode of modules that an agent imports from where it cannot write: compiled beforehand, not by every run anew."""

from __future__ import annotations

import contextlib
import os
import sys

from agents import answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Final

_PATIENCE: Final = 60.0


def keep(folder: Path) -> None:
    """Have bytecode beside every module below *folder* that has none, or an older one; of this very Python.

    A sandbox shows an agent its own modules, but takes no bytecode from it: compiling all of hollow costs a third of a
    short run. Whatever stands in the way (a folder of somebody else, a full disk) only leaves the run slower.
    """
    if sys.dont_write_bytecode or sys.pycache_prefix or not os.access(folder, os.W_OK):
        return
    with contextlib.suppress(OSError):
        stale = [module.path for module, compiled in _modules(str(folder)) if _is_stale(module, compiled)]
        if stale:
            # Forced: by itself it would look at whole seconds, and leave what was changed just now as it is.
            words = [sys.executable, "-IS", "-m", "compileall", "-q", "-f", *stale]
            answers.ask(words, {"LC_ALL": "C.UTF-8"}, patience=_PATIENCE)


def _modules(folder: str) -> Iterator[tuple[os.DirEntry[str], str]]:
    """The modules below *folder*, each with the path of its bytecode."""
    with os.scandir(folder) as entries:
        for each in entries:
            if each.is_dir(follow_symlinks=False) and each.name != "__pycache__":
                yield from _modules(each.path)
            elif each.name.endswith(".py"):
                name = f"{each.name[:-3]}.{sys.implementation.cache_tag}.pyc"
                yield each, os.path.join(folder, "__pycache__", name)  # noqa: PTH118 - of texts, for each of a hundred


def _is_stale(module: os.DirEntry[str], compiled: str) -> bool:
    try:
        return os.stat(compiled).st_mtime_ns < module.stat().st_mtime_ns  # noqa: PTH116 - likewise
    except FileNotFoundError:
        return True
