"""The toolbox of one cycle: which tools a run type has, and the one place where they are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hollow.confine import Refusal
from hollow.toolbox import history, reading, searching
from hollow.toolbox.manifest import Tool, bind, describe, schema
from hollow.toolbox.workspace import workspace

if TYPE_CHECKING:
    from pathlib import Path

COMMON: Final = (searching.grep, reading.ls, reading.read_file, history.git_log)
"""Tools of every run type (design, section 8)."""

FOR_REVIEW: Final = (history.git_diff,)
"""Tools that a review has beside them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool call gave."""

    content: str
    is_error: bool = False


def tools_of(run_type: str) -> tuple[Tool, ...]:
    """Return the tools that a run of *run_type* has, in the order they are shown."""
    functions = (*COMMON, *FOR_REVIEW) if run_type == "review" else COMMON
    return tuple(describe(function) for function in functions)


class Toolbox:
    """The tools of one run, bound to the repository at *repo*."""

    def __init__(self, repo: Path, run_type: str) -> None:
        self._place = workspace(repo)
        self._tools = {tool.name: tool for tool in tools_of(run_type)}

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
        tool = self._tools[proper]
        try:
            bound, note = bind(tool, arguments)
            content = tool.function(self._place, **bound)
        except Refusal as why:
            return Outcome(str(why), is_error=True)
        except OSError as why:
            return Outcome(f"{proper} failed: {why.strerror or why}.", is_error=True)
        except Exception as why:  # noqa: BLE001 - an agent whose tool has a fault must be told, not killed
            return Outcome(f"{proper} failed: {type(why).__name__}.", is_error=True)
        return Outcome(f"{content}\n{note}" if note else content)
