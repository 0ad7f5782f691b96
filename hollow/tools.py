"""The toolbox of one cycle: which tools a run type has, and the one place where they are called."""

from __future__ import annotations

from types import MappingProxyType

from essentials.records import dataclass, replace
from hollow.confine import Refusal
from hollow.toolbox import editing, history, reading, searching, shell
from hollow.toolbox.manifest import Tool, bind, describe, name_of, schema
from hollow.toolbox.workspace import workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any, Final

    from hollow.mind import Assignment
    from hollow.sandbox import Cell
    from hollow.stream import Talk

COMMON: Final = (searching.grep, reading.ls, reading.read_file, history.git_log)
"""Tools of every run type (design, section 8)."""

_DIFF: Final = (history.git_diff,)
_EDITING: Final = (editing.edit_file, editing.write_file)
_RUNNING: Final = (shell.shell,)

MORE: Final = {"review": _DIFF, "fix": (*_DIFF, *_EDITING)}
"""Tools that a run type has beside them; the run type alone decides whether anything can be edited."""

CHANGING: Final = frozenset(name_of(function) for function in (*_EDITING, *_RUNNING))
"""Tools after which another call may give something else than before."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool call gave."""

    content: str
    is_error: bool = False
    changed: bool = False
    """Whether the repository may have changed by it."""


def tools_of(run_type: str, *, commands: bool = False) -> tuple[Tool, ...]:
    """Return the tools that a run of *run_type* has, in the order they are shown; Shell only where *commands* can run.

    A run that may not edit has no Shell either.
    """
    return tuple(map(describe, _functions(run_type, commands)))


def names_of(run_type: str, *, commands: bool = False) -> list[str]:
    """Return the names of :func:`tools_of`, for who does not call them."""
    return [name_of(function) for function in _functions(run_type, commands)]


def _functions(run_type: str, commands: bool) -> tuple[Callable[..., str], ...]:
    running = _RUNNING if commands and run_type == "fix" else ()
    return (*COMMON, *MORE.get(run_type, ()), *running)


def toolbox_of(assignment: Assignment, talk: Talk) -> Toolbox:
    """Return the tools of *assignment*; while a command takes long, *talk* is told now and then."""

    def beat(passed: float) -> None:
        """Say that a command is still running: it must not look like a dead agent to the watchdog."""
        talk.fact("shell.waiting", seconds=round(passed))

    return Toolbox(assignment.repo, assignment.run_type, assignment.cell, beat, locked=assignment.locked)


class Toolbox:
    """The tools of one run, bound to the repository at *repo*; commands are run in *cell*, where there is one.

    *locked* are those that what the agent suffers has closed, each with the sentence that a call of it gets (T56).
    """

    def __init__(
        self,
        repo: Path,
        run_type: str,
        cell: Cell | None = None,
        beat: Callable[[float], None] | None = None,
        *,
        locked: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._locked = locked
        self._place = workspace(repo, cell, beat)
        self._tools = {tool.name: tool for tool in tools_of(run_type, commands=cell is not None)}

    @property
    def names(self) -> tuple[str, ...]:
        """Logical names of the tools."""
        return tuple(self._tools)

    @property
    def forms(self) -> tuple[str, ...]:
        """How to call each tool, with its description, one line a tool."""
        return tuple(f"{tool.form}: {tool.description}" for tool in self._tools.values())

    def schemas(self) -> list[dict[str, Any]]:
        """Return the JSON schemas for the model server."""
        return [schema(tool) for tool in self._tools.values()]

    def proper_name(self, name: str) -> str | None:
        """Return the logical name that *name* means (``read_file`` is ReadFile), or None."""
        # Models also prefix a namespace (functions.read_file); what stands after the last dot is the tool.
        plain = name.strip().replace("_", "").replace("-", "").casefold().rpartition(".")[2]
        return next((known for known in self._tools if known.casefold() == plain), None)

    def call(self, name: str, arguments: object) -> Outcome:
        """Call the tool *name*; whatever goes wrong is an outcome with one sentence, never an exception."""
        proper = self.proper_name(name)
        if proper is None:
            return Outcome(f"There is no tool {name!r}. The tools are {', '.join(self._tools)}.", is_error=True)
        if proper in self._locked:
            return Outcome(self._locked[proper], is_error=True)
        done = self._do(self._tools[proper], arguments)
        # A command that failed may have changed something all the same; an edit that failed has not.
        return replace(done, changed=proper in CHANGING and (not done.is_error or proper not in _ALL_OR_NOTHING))

    def _do(self, tool: Tool, arguments: object) -> Outcome:
        try:
            bound, note = bind(tool, arguments)
            content = tool.function(self._place, **bound)
        except Refusal as why:
            return Outcome(str(why), is_error=True)
        except OSError as why:
            return Outcome(f"{tool.name} failed: {why.strerror or why}.", is_error=True)
        except Exception as why:  # noqa: BLE001 - an agent whose tool has a fault must be told, not killed
            return Outcome(f"{tool.name} failed: {type(why).__name__}.", is_error=True)
        return Outcome(f"{content}\n{note}" if note else content)


_ALL_OR_NOTHING: Final = frozenset(name_of(function) for function in _EDITING)
