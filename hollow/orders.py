"""From words to a cycle: the supervisor's are understood here, without Typer, whose import no agent need pay for.

Whatever is not a plain row of options with good values (help, a slip) is left to :mod:`hollow.cli`, which finds the
words for it; a test holds the two against each other.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from essentials.patterns import late
from hollow import cycle
from hollow.mind import Assignment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Final

    from hollow.mind import Mind, Thinker


class MindName(StrEnum):
    """What may think."""

    OLLAMA = "ollama"
    REFLEX = "reflex"
    SCRIPTED = "scripted"


class RunType(StrEnum):
    """What a cycle is for."""

    SCOUT = "scout"
    PLAN = "plan"
    REVIEW = "review"
    BENCHMARK = "benchmark"
    FIX = "fix"
    CYCLE = "cycle"
    """The agent's own life: no task is given, it finds its goal itself."""


class Agent(StrEnum):
    """Who does it."""

    CEDAR = "cedar"
    CIPHER = "cipher"
    VAULT = "vault"


class Surroundings(StrEnum):
    """What confines this process."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


LEAST_CTX: Final = 2048
"""Tokens of a context window below which no prompt fits."""
LEAST_TIMEOUT: Final = 0.1
"""Seconds that one model call may at least take."""

_SESSION: Final = late(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER: Final = late(r"[0-9]{1,9}(\.[0-9]{1,6})?")


def _session(word: str) -> str:
    if not _SESSION.fullmatch(word):
        raise ValueError(word)
    return word


def _number(kind: Callable[[str], Any], least: float) -> Callable[[str], Any]:
    def read(word: str) -> Any:
        if not _NUMBER.fullmatch(word) or kind(word) < least:
            raise ValueError(word)
        return kind(word)

    return read


_READ: Final[Mapping[str, Callable[[str], Any]]] = MappingProxyType({
    "mind": MindName, "run_type": RunType, "agent": Agent, "repo": Path, "index": Path, "session_id": _session,
    "model": str, "system_prompt": str, "num_ctx": _number(int, LEAST_CTX), "keep_alive": str,
    "call_timeout": _number(float, LEAST_TIMEOUT), "max_turns": _number(int, 1), "sandbox": Surroundings,
    "script": Path, "state": Path, "run": str, "substrate": str,
})  # fmt: skip
_NEEDED: Final = frozenset({"mind", "run_type", "agent", "repo", "index", "session_id"})


def plain(words: Sequence[str]) -> dict[str, Any] | None:
    """The values that the command line *words* gives to :func:`begin`, or None for one that is not a plain cycle."""
    if not words or words[0] != "cycle":
        return None
    values: dict[str, Any] = {}
    rest = iter(words[1:])
    for word in rest:
        name = word.removeprefix("--").replace("-", "_")
        if word == "--resume":
            values["resume"] = True
            continue
        read, value = _READ.get(name), next(rest, None)
        if read is None or value is None or word != "--" + name.replace("_", "-"):
            return None
        try:
            values[name] = read(value)
        except ValueError:
            return None
    return values if values.keys() >= _NEEDED else None


def begin(
    mind: MindName, run_type: RunType, agent: Agent, repo: Path, index: Path, session_id: str, *,
    model: str = "qwen3.5:9b", system_prompt: str = "", num_ctx: int = 32768, keep_alive: str = "10m",
    call_timeout: float = 600.0, max_turns: int = 24, sandbox: Surroundings = Surroundings.NONE, resume: bool = False,
    script: Path | None = None, state: Path | None = None, run: str = "", substrate: str = "",
) -> int:  # fmt: skip
    """Run the cycle that these values of :mod:`hollow.cli` ask for; returns the exit code."""
    makers: dict[MindName, Callable[[], Mind]] = {
        MindName.OLLAMA: lambda: _ollama(model, num_ctx, keep_alive, call_timeout),
        MindName.REFLEX: _reflex,
        MindName.SCRIPTED: lambda: _scripted(script),
    }
    assignment = Assignment(
        task="", run_type=run_type.value, agent=agent.value, repo=repo.absolute(), index=index.absolute(),
        system_prompt=system_prompt, max_turns=max_turns,
    )  # fmt: skip
    order = cycle.Order(
        assignment=assignment, session_id=session_id, mind=makers[mind], surroundings=sandbox.value,
        resumed=resume, state=state.absolute() if state else None, run=run, substrate=substrate,
        thinker=_thinker(mind, agent, repo, index, model, num_ctx, keep_alive, call_timeout, script, state),
    )  # fmt: skip
    return cycle.run(order, sys.stdin.buffer if sys.stdin is not None else None)


def _thinker(
    mind: MindName, agent: Agent, repo: Path, index: Path, model: str, num_ctx: int, keep_alive: str,
    call_timeout: float, script: Path | None, state: Path | None,
) -> Callable[[Callable[..., None]], Thinker]:  # fmt: skip
    def made(fact: Callable[..., None]) -> Thinker:
        """The mind of a cycle, which says signs of life through *fact*."""
        from hollow.minds import thinking

        return thinking.make(
            mind.value, agent=agent.value, repo=repo.absolute(), index=index.absolute(), fact=fact, model=model,
            num_ctx=num_ctx, keep_alive=keep_alive, call_timeout=call_timeout, script=script,
            cursor=state / "script.json" if state else None,
        )  # fmt: skip

    return made


def _ollama(model: str, num_ctx: int, keep_alive: str, call_timeout: float) -> Mind:
    from hollow.minds.ollama import Ollama, Settings

    return Ollama(Settings(model=model, num_ctx=num_ctx, keep_alive=keep_alive, call_timeout=call_timeout))


def _reflex() -> Mind:
    from hollow.minds.reflex import Reflex

    return Reflex()


def _scripted(script: Path | None) -> Mind:
    from hollow.minds.scripted import Scripted

    if script is None:
        raise cycle.BadRequest("The scripted mind needs --script PATH.")
    return Scripted(script)
