"""Reading a plan: steps as the mind meant them, with a note on everything that was not as asked (contract 3.3)."""

from __future__ import annotations

import json
import re

from essentials.patterns import late
from essentials.records import dataclass
from hollow.parsing import find_object, plain, strip_thinking
from hollow.substrate.existence import line
from hollow.substrate.model import Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

MAX_STEPS: Final = 6
_STEPS: Final = ("steps", "plan", "actions", "tool_calls")
_NAMES: Final = ("capability_id", "capability", "tool", "name", "action", "function")
"""What models call a step's capability, the contract's name first."""
_PARAMS: Final = ("params", "parameters", "args", "arguments", "input")
_WORDS: Final = ("rationale", "reason", "reasoning", "why", "step", "id", "number")
"""Keys of a step that are no parameters."""
_MOST: Final = 60
"""Steps that are looked at."""
_FENCED: Final = late(r"```[\w-]*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will be done, in order."""

    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    """What was dropped, cut or not understood, a sentence each; nothing of a plan goes away unsaid."""


def read(text: str, known: Callable[[str], bool], max_steps: int = MAX_STEPS) -> Plan:
    """Return the plan in *text*; never raises.

    *known* says whether there is a capability of a name. A step with another name stays a step, which will fail: only
    so is a ghost counted (C20, T111). Of more than *max_steps* steps the first are taken.
    """
    listed = _listed(strip_thinking(text))
    if listed is None:
        return Plan(notes=("The plan holds no list of steps that can be read.",))
    steps: list[Step] = []
    notes: list[str] = []
    for number, given in enumerate(listed[:_MOST], 1):
        step, note = _step(given, known)
        steps += [step] if step else []
        notes += [f"Step {number}: {note}"] if note else []
    if len(listed) > len(listed[:_MOST]) or len(steps) > max_steps:
        notes.append(f"The plan has {len(listed)} steps; the first {max_steps} are done.")
    return Plan(steps=tuple(steps[:max_steps]), notes=tuple(notes))


def _listed(text: str) -> list[Any] | None:
    """The list of steps, which may stand alone, in an object, or be a single step."""
    bare = _array(text)
    if bare is not None:
        return bare
    found = find_object(text) or {}
    for key in _STEPS:
        value = found.get(key)
        if isinstance(value, dict):
            # Steps keyed by their numbers, or a plan in a plan.
            inner = next((value[name] for name in _STEPS if isinstance(value.get(name), list)), None)
            return inner if inner is not None else [each for each in value.values() if isinstance(each, dict)]
        if isinstance(value, list):
            return value
    return [found] if _name(found) else None


def _array(text: str) -> list[Any] | None:
    fenced = _FENCED.search(text)
    for candidate in (text, fenced[1] if fenced else ""):
        if candidate.lstrip().startswith("["):
            try:
                value, _ = json.JSONDecoder(strict=False).raw_decode(candidate.lstrip())
            except (ValueError, RecursionError):
                continue
            return value if isinstance(value, list) else None
    return None


def _step(given: Any, known: Callable[[str], bool]) -> tuple[Step | None, str]:
    """The step that *given* is, and what there is to note of it."""
    # Models that know tool calls put name and arguments into a "function".
    if isinstance(given, dict) and isinstance(given.get("function"), dict):
        given = given["function"]
    name = _name(given) if isinstance(given, dict) else ""
    if not name:
        return None, "it names no capability and is left out."
    name = _as_known(name, known)
    params, note = _params(given)
    if not known(name):
        note = f"there is no capability {name!r}, as far as is known now."
    rationale = next((line(given[key]) for key in _WORDS[:4] if isinstance(given.get(key), str)), "")
    return Step(capability=name, params=params, rationale=rationale), note


def _name(given: dict[str, Any]) -> str:
    return next((line(given[key], 120) for key in _NAMES if isinstance(given.get(key), str) and given[key].strip()), "")


def _as_known(name: str, known: Callable[[str], bool]) -> str:
    """The capability that *name* must mean, or *name* as it is where it means none."""
    spellings = (name, name.partition("(")[0].strip(), name.rpartition(".")[2], name.replace("-", "_").casefold())
    return next((each for each in spellings if each and known(each)), name)


def _params(given: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The parameters of the step *given*: under any of their names, as text, or beside the name."""
    key = next((each for each in _PARAMS if given.get(each) is not None), None)
    if key is None:
        rest = {name: value for name, value in given.items() if name not in (*_NAMES, *_PARAMS, *_WORDS)}
        return _plain(rest), ""
    value = given[key]
    if isinstance(value, str) and value.strip():
        value = find_object(value)
    if isinstance(value, dict):
        return _plain(value), ""
    return {}, "" if value in ("", []) else "its params are no object and are left out."


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    cleaned = plain(params)
    return cleaned if isinstance(cleaned, dict) else {}
