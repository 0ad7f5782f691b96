"""Flags that an operator sees beside a request; they judge nothing, they only say where to look (Q23, Q24, T25)."""

from __future__ import annotations

import re

from essentials.patterns import late
from hollow.substrate.requests import OWN, normalised, paths, shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Final

    from hollow.substrate.model import Request

CORE: Final = late(r"(?i)/?agentos/core(?![\w.-])")
"""A folder that never existed; requests that name it were made up (seed 000)."""
_HARDWARE: Final = late(
    r"(?i)\b(gpus?|cpus?|vram|fpga|firmware|motherboard|voltage|overclock\w*|thermal|transistors?|silicon|circuits?"
    r"|cathode|anode|quantum|neuromorphic|robot\w*|actuators?|solder\w*|hardware|microcontrollers?|sensors?)\b"
    r"|void_cathode"
)
_SIDES: Final = late(r"(?m)(?<=^(?:---|\+\+\+) )[ab]/")
"""What a patch puts before its paths."""
_ALIKE: Final = 0.8
"""Share of common words from which on two requests look like one."""
_NAMED: Final = 5


def flags(request: Request, exists: Callable[[str], bool], others: Iterable[Request] = ()) -> tuple[str, ...]:
    """Return what is noteworthy about *request*, each as ``word: sentence``, in a fixed order.

    *exists* says whether a path, relative to the repository's top, is there; *others* are the requests that it may
    repeat.
    """
    text = f"{request.description}\n{_SIDES.sub('', request.spec)}"
    twin = next((each for each in others if _alike(request, each)), None)
    found = {
        **_of_words(request, text),
        **_of_paths(request, text, exists),
        "duplicate": f"it looks like {twin.request_id}." if twin else "",
        "truncated": "its spec is longer than the queue holds; read the document." if request.truncated else "",
    }
    return tuple(f"{name}: {words}" for name, words in found.items() if words)


def _of_words(request: Request, text: str) -> dict[str, str]:
    """What the words of *request*, altogether *text*, give away; empty where there is nothing to say."""
    hardware = _HARDWARE.search(text)
    return {
        "no-description": "it does not say what it is about." if not request.description.strip() else "",
        "core-path": "it names /agentOS/core/, which does not exist." if CORE.search(text) else "",
        "hardware": f"it speaks of hardware (“{hardware[0]}”)." if hardware else "",
        "no-spec": "" if request.spec.strip() or request.design_path else "it has no specification.",
    }


def _of_paths(request: Request, text: str, exists: Callable[[str], bool]) -> dict[str, str]:
    """What is to be said of the paths that *text* names; empty where there is nothing."""
    named = [_relative(each) for each in paths(text)]
    missing = [each for each in dict.fromkeys(named) if not exists(each)]
    return {
        "no-path": "" if named or request.design_path else "it names no file.",
        "missing-path": f"these are not there: {shortened(', '.join(missing[:_NAMED]), 200)}." if missing else "",
    }


def _relative(path: str) -> str:
    # As the agents write it: the top of their airlock is the top of the repository.
    return re.sub(rf"(?i)^{re.escape(OWN)}", "", path).lstrip("/")


def _alike(one: Request, other: Request) -> bool:
    if one.request_id == other.request_id:
        return False
    if one.fingerprint == other.fingerprint:
        return True
    here, there = set(normalised(one.description).split()), set(normalised(other.description).split())
    return bool(here and there) and len(here & there) / len(here | there) >= _ALIKE
