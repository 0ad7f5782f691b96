"""The scripted mind: plays a list of turns from a JSON file, with the real tools; for tests and demos."""

from __future__ import annotations

import json
import time

from hollow.mind import Answer, Usage
from hollow.parsing import prose
from hollow.tools import toolbox_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from hollow.mind import Assignment
    from hollow.stream import Talk
    from hollow.tools import Toolbox


class _BadScript(Exception):  # noqa: N818 - it becomes an answer
    pass


class Scripted:
    """Plays the turns of the file *script*; *sleep* takes seconds.

    A turn is an object with one of these keys: ``say`` (text), ``call`` (``{"name": …, "arguments": {…}}``, really
    done), ``fact`` (``{"kind": …, …}``), ``wait`` (seconds), or, last, ``answer`` (text) with an optional ``subtype``
    and ``usage``. Beside ``say`` or ``call``, ``usage`` begins a new message that took so many tokens.
    """

    name = "scripted"
    acts = True
    model: str | None = None

    def __init__(self, script: Path, sleep: Callable[[float], None] = time.sleep) -> None:
        self._script = script
        self._sleep = sleep

    def answer(self, assignment: Assignment, talk: Talk) -> Answer:
        """Play the script on *talk* and return its answer; a script that cannot be played is an error answer."""
        try:
            return self._play(_read(self._script), toolbox_of(assignment, talk), talk)
        except _BadScript as why:
            return Answer(text=f"The script {self._script} cannot be played: {why}.", subtype="error_during_execution")

    def _play(self, turns: list[Any], toolbox: Toolbox, talk: Talk) -> Answer:
        for number, turn in enumerate(turns, 1):
            if not isinstance(turn, dict):
                raise _BadScript(f"turn {number} is no object")
            if "answer" in turn:
                return _answer(turn, number)
            try:
                self._turn(turn, toolbox, talk)
            except (KeyError, TypeError, ValueError, AttributeError) as why:
                raise _BadScript(f"turn {number} is not understood ({why!r})") from None
        raise _BadScript("it has no answer")

    def _turn(self, turn: dict[str, Any], toolbox: Toolbox, talk: Talk) -> None:
        if "usage" in turn:
            talk.generation(turn["usage"])
        match turn:
            case {"say": str(text)}:
                talk.say(text)
            case {"call": {"name": str(name)}}:
                arguments = turn["call"].get("arguments") or {}
                call = talk.call(name, arguments)
                outcome = toolbox.call(name, arguments)
                talk.outcome(call, outcome.content, is_error=outcome.is_error)
            case {"fact": {"kind": str(kind)}}:
                talk.fact(kind, **{key: value for key, value in turn["fact"].items() if key != "kind"})
            case {"wait": int() | float() as seconds}:
                self._sleep(seconds)
            case _:
                raise ValueError(", ".join(turn))


def _read(script: Path) -> list[Any]:
    try:
        turns = json.loads(script.read_bytes())
    except OSError as why:
        raise _BadScript(why.strerror or str(why)) from None
    except (ValueError, RecursionError):
        raise _BadScript("it is no JSON") from None
    if not isinstance(turns, list):
        raise _BadScript("it is no list of turns")
    return turns


def _answer(turn: dict[str, Any], number: int) -> Answer:
    usage = turn.get("usage") or {}
    return Answer(
        text=prose(turn["answer"]),
        subtype=str(turn.get("subtype") or "success"),
        turns=number,
        usage=Usage(input_tokens=usage.get("input_tokens", 0), output_tokens=usage.get("output_tokens", 0)),
    )
