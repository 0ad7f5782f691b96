"""The scripted mind of a cycle: plays answers from a JSON file in order, over as many processes as it takes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time

from hollow.mind import Away, Thought, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any, Final

    from hollow.mind import Question

PURPOSES: Final = frozenset({"existence", "plan", "semantic", "fact", "evaluate", "chat"})
"""What a cycle asks for (:attr:`hollow.mind.Question.purpose`)."""


class BadScript(Exception):  # noqa: N818 - it is the caller's fault
    """The script cannot be played; the message is one sentence."""


class ScriptedThinker:
    """Plays the entries of the file *script* for *agent*.

    An entry is ``{"for": PURPOSE, "answer": object or text}`` or ``{"for": PURPOSE, "away": sentence}``, with an
    optional ``agent`` whom alone it concerns and an optional ``wait`` in seconds, taken with *sleep*. The entries of
    one purpose are played in order, for each agent by itself; the last one is repeated for ever. How far each has come
    stands in the file *cursor*, so that the next process goes on from there; without one every process begins anew.
    Raises :class:`BadScript`.
    """

    name = "scripted"
    model: str | None = None

    def __init__(
        self, script: Path, *, agent: str, cursor: Path | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._script = script
        self._entries = _read(script)
        self._agent = agent
        self._cursor = cursor
        self._sleep = sleep
        self._played: dict[str, int] = {}

    def think(self, question: Question) -> Thought:
        """Return the next answer for the purpose of *question*; raises :class:`Away` where the script says so."""
        chosen = [
            entry
            for entry in self._entries
            if entry["for"] == question.purpose and entry.get("agent") in {None, self._agent}
        ]
        if not chosen:
            raise Away(f"The script has no answer for {question.purpose}.")
        entry = chosen[min(self._next(question.purpose), len(chosen) - 1)]
        if "wait" in entry:
            self._sleep(float(entry["wait"]))
        if "away" in entry:
            raise Away(str(entry["away"]))
        answer = entry["answer"]
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        return Thought(text=text, usage=Usage())

    def embed(self, texts: Sequence[str]) -> list[list[float]] | None:  # noqa: ARG002 - the protocol's shape
        """Return None: a script knows no vectors."""
        return None

    def close(self) -> None:
        """Nothing is open."""

    def _next(self, purpose: str) -> int:
        """How many answers for *purpose* this agent has had; one more from now on."""
        with _held(self._cursor) as handle:
            played = self._played if handle is None else _position(handle)
            key = f"{self._agent} {purpose}"
            number = played.get(key, 0)
            self._played = {**played, key: number + 1}
            if handle is not None:
                _store(handle, self._played)
        return number


@contextlib.contextmanager
def _held(cursor: Path | None) -> Iterator[int | None]:
    """The *cursor* file, open and locked: agents that live side by side share one script."""
    if cursor is None:
        yield None
        return
    handle = os.open(cursor, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


_LARGEST_CURSOR: Final = 1 << 20


def _position(handle: int) -> dict[str, int]:
    try:
        found = json.loads(os.pread(handle, _LARGEST_CURSOR, 0))
    except ValueError:
        # A new file is empty; a torn one belongs to a test that was killed, and begins anew.
        return {}
    named = found if isinstance(found, dict) else {}
    return {str(key): value for key, value in named.items() if isinstance(value, int)}


def _store(handle: int, played: Mapping[str, int]) -> None:
    data = json.dumps(played).encode()
    os.pwrite(handle, data, 0)
    os.ftruncate(handle, len(data))


def _read(script: Path) -> list[dict[str, Any]]:
    try:
        entries = json.loads(script.read_bytes())
    except OSError as why:
        raise BadScript(f"The script {script} cannot be read: {why.strerror}.") from None
    except (ValueError, RecursionError):
        raise BadScript(f"The script {script} is no JSON.") from None
    if not isinstance(entries, list):
        raise BadScript(f"The script {script} is no list of answers.")
    for number, entry in enumerate(entries, 1):
        if not _is_entry(entry):
            raise BadScript(f"Entry {number} of the script {script} needs “for” and either “answer” or “away”.")
    return entries


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("for") not in PURPOSES or ("answer" in entry) == ("away" in entry):
        return False
    return isinstance(entry.get("wait", 0), int | float) and isinstance(entry.get("agent", ""), str)
