"""Where tools are made, tested, called and retired; their code runs in sandboxed children and nowhere else."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

from essentials.records import dataclass, replace
from hollow import children
from hollow.substrate import ghosts, lexical, synthesis, toolcode
from hollow.substrate.model import Trouble
from hollow.substrate.synthesis import Refused
from hollow.toolroots import tool_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from hollow.memory.broken import BrokenTools
    from hollow.memory.shelf import Shelf
    from hollow.sandbox import Cell
    from hollow.substrate.synthesis import Tool

EXEC_SECONDS: Final = 8.0
"""Seconds in which a tool must load (seed 002, step 8; T105)."""
CALL_SECONDS: Final = 12.0
"""Seconds in which its first call must end (seed 002, step 9; T106)."""
STEP_SECONDS: Final = 30.0
"""Seconds of a later call, where the caller sets none."""

FOLDER: Final = "/agentOS/tools/dynamic"
"""Where tools lie, as agents are told; the place on the disk is nobody's business in there."""

NULL_STUB: Final = "null stub detected — function returned None"
_NO_CELL: Final = "There is no safe way to run code here, so no tool can be made or called."
_KEEP: Final = 4 * 64 * 1024
"""Bytes of output that are kept: a value has 64 KiB at most, and stands on one line."""

_HOPELESS: Final = frozenset({"NameError", "ImportError", "ModuleNotFoundError", "SyntaxError", "SystemExit"})
"""What no argument can mend; a first call that ends in another error may have lacked arguments."""


@dataclass(frozen=True, slots=True)
class Called:
    """What a call gave."""

    ok: bool
    value: Any
    """A JSON value; None where it failed."""
    error: str
    """One sentence where it failed."""
    trouble: Trouble | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a child said."""

    value: Any = None
    trouble: Trouble | None = None
    error: str = ""
    kind: str = ""
    """Name of the exception, where there was one."""


def _silent(_kind: str, **_facts: object) -> None:
    """Nobody listens."""


class Forge:
    """The one way in which capabilities come and go at run time (C2).

    *shelf* and *broken* remember. *cell* gives the sandbox of a child, True for one that may write the agent's own
    folders; where it gives None nothing is run. *now* gives seconds since the epoch, *builtins* the names and
    descriptions that are taken, *similar* how alike two descriptions are (0 to 1), *fact* is told what happens, *beat*
    now and then how many seconds a child has taken, *forget* the name of what was retired, *python* is the interpreter.
    *strict* refuses tools without code.

    The memory's lock is never held while a child runs: others go on meanwhile.
    """

    def __init__(
        self,
        shelf: Shelf,
        broken: BrokenTools,
        cell: Callable[[bool], Cell | None],
        now: Callable[[], float],
        *,
        builtins: Mapping[str, str] | None = None,
        similar: Callable[[str, str], float] = lexical.likeness,
        strict: bool = False,
        fact: Callable[..., None] = _silent,
        beat: Callable[[float], None] = lambda _seconds: None,
        forget: Callable[[str], None] = lambda _name: None,
        python: str = sys.executable,
        exec_seconds: float = EXEC_SECONDS,
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        self._shelf, self._broken, self._cell, self._now = shelf, broken, cell, now
        self._builtins, self._similar, self._strict = builtins or {}, similar, strict
        self._fact, self._beat, self._forget = fact, beat, forget
        # The interpreter behind a virtual environment: its folder is the one that holds the library.
        self._python = os.path.realpath(python)
        self._exec_seconds, self._call_seconds = exec_seconds, call_seconds

    # --- What there is ------------------------------------------------------------------------------------------------

    def loaded(self) -> dict[str, Tool]:
        """Return the tools that can be called now, by name; what was put away meanwhile is said as a fact."""
        tools = self._shelf.loaded()
        self._say(self._shelf.news())
        return tools

    def _say(self, said: tuple[tuple[str, dict[str, Any]], ...]) -> None:
        for kind, facts in said:
            self._fact(kind, **facts)

    # --- Making -------------------------------------------------------------------------------------------------------

    def synthesize(
        self, name: str, description: str = "", implementation: str = "", code: str = "", *, agent: str
    ) -> dict[str, Any]:
        """Make the tool *name* for *agent*: gate, test, publish; returns one of the seven shapes of seed 002 (C17).

        *code* is another word for *implementation* (T99). Nothing is on the disk before all tests are passed, so a
        failure leaves nothing, and nobody can call what was not tested (T107).
        """
        try:
            tool = synthesis.prepare(
                name, description, implementation or code, by=agent, now=self._now(),
                builtins=self._builtins, similar=self._similar, strict=self._strict,
            )  # fmt: skip
            self._refuse_known(tool)
            self._guard(tool.name)
            tool = self._tested(tool)
            self._publish(tool)
        except Refused as why:
            told = why.answer.get("error") or why.answer.get("status", "")
            self._fact("capability.refused", name=name[:80], agent=agent, why=str(told)[:300])
            return why.answer
        return {"ok": True, "capability": tool.name, "path": f"{FOLDER}/{tool.name}.py", "status": "deployed",
                **({"stub": True} if tool.stub else {}), **({"untested": True} if tool.untested else {})}  # fmt: skip

    def _refuse_known(self, tool: Tool) -> None:
        """Refuse code that is known to be broken: deployed again it would fail again (C23)."""
        held = self._broken.records().get(tool.name)
        if held is not None and held.is_broken and held.code_sha == tool.sha:
            raise synthesis.rejected(f"this very code is known to be broken ({held.reason}); write it anew")

    def _guard(self, name: str) -> None:
        """Refuse a name that was deployed just now (seed 002, step 5; T101)."""
        if self._shelf.guarded(name, self._now()):
            raise _already(name)

    def _tested(self, tool: Tool) -> Tool:
        """Steps 8 and 9 of seed 002, before anything is published; returns the tool, flagged if it is untested."""
        loading = self._run(tool, None, self._exec_seconds, writable=False)
        if loading.trouble is not None:
            raise _failed_test(loading.error)
        tree = toolcode.parsed(tool.code)
        if not toolcode.returns_value(tree, tool.name):
            # It need not be called for that, and could not be if it wants arguments.
            raise Refused(error=NULL_STUB)
        first = self._run(tool, {}, self._call_seconds, writable=False)
        if first.trouble is Trouble.NULL:
            raise Refused(error=NULL_STUB)
        if first.trouble is Trouble.FAILED and first.kind and toolcode.reads_arguments(tree, tool.name):
            untested = first.kind not in _HOPELESS
        else:
            untested = first.trouble is Trouble.USAGE
        if first.trouble is not None and not untested:
            raise _failed_test(first.error)
        return replace(tool, untested=untested)

    def _publish(self, tool: Tool) -> None:
        # Dated now and not when it was asked for: the tests took their time.
        tool = replace(tool, activated_at=self._now())
        if not self._shelf.publish(tool):
            raise _already(tool.name)
        self._fact("capability.deployed", name=tool.name, agent=tool.by, description=tool.description[:300],
                   stub=tool.stub, untested=tool.untested, sha=tool.sha)  # fmt: skip
        self._say(self._broken.redeployed(tool.name, tool.sha))

    def retire(self, name: str, agent: str) -> dict[str, Any]:
        """Take the tool *name* out of use for everybody, its files kept aside; built-ins stay (T116)."""
        clean = synthesis.sanitized(name.strip())
        if not self._shelf.retire(clean):
            kind = "a built-in capability" if clean in self._builtins else "no tool that is deployed"
            return {"ok": False, "error": f"{clean} is {kind}; nothing was retired"}
        self._forget(clean)
        self._fact("capability.retired", name=clean, agent=agent)
        return {"ok": True, "capability": clean, "status": "retired"}

    # --- Calling ------------------------------------------------------------------------------------------------------

    def call(
        self, name: str, params: Mapping[str, Any], *, timeout: float = STEP_SECONDS, writable: bool = False
    ) -> Called:
        """Call the tool *name* with *params* for *timeout* seconds at most, in a child of its own.

        *writable*: whether it may write the agent's own folders. None for a value is a failure like an exception
        (C21, T112); ``{"ok": true}`` is a value like any other (W15).
        """
        tool = self.loaded().get(name)
        if tool is None:
            return Called(False, None, f"{name} has no implementation.", Trouble.GHOST)
        answer = self._run(tool, dict(params), timeout, writable=writable)
        if answer.trouble is None:
            return Called(True, answer.value, "", None)
        return Called(False, None, answer.error, answer.trouble)

    def _run(self, tool: Tool, params: dict[str, Any] | None, timeout: float, *, writable: bool) -> _Answer:
        """Load *tool* in a child and, with *params*, call it."""
        cell = self._cell(writable)
        if cell is None:
            return _Answer(trouble=Trouble.HOST, error=_NO_CELL)
        mark = f"{os.urandom(16).hex()} "
        try:
            order = json.dumps({"mark": mark, "name": tool.name, "code": tool.code, "params": params}).encode()
        except (TypeError, ValueError):
            return _Answer(trouble=Trouble.USAGE, error="The parameters are no JSON value.")
        ended = children.run(
            _open_to(cell, self._python).argv(self._command()),
            cwd=cell.repo, env=cell.env, timeout=timeout, keep=_KEEP, beat=self._beat, stdin=order,
        )  # fmt: skip
        if ended.late:
            return _Answer(trouble=Trouble.TIMEOUT, error=f"{tool.name} took longer than {timeout:g} s and was ended.")
        return _read(tool.name, ended, mark)

    def _command(self) -> str:
        # Isolated, and without what is installed beside the standard library: a tool works the same everywhere, and
        # finds no module that an agent has put into its folders.
        text = Path(__file__).with_name("forge_child.py").read_text("utf-8")
        return f"exec {shlex.join([self._python, '-I', '-S', '-B', '-X', 'utf8', '-c', text])}"


def _already(name: str) -> Refused:
    message = f"{name} was deployed less than {synthesis.GUARD_SECONDS:g} s ago; call it instead of deploying it again."
    return Refused(status="already_deployed", message=message)


def _failed_test(detail: str) -> Refused:
    return Refused(error=f"auto-test failed: {detail}")


def _open_to(cell: Cell, python: str) -> Cell:
    """*cell* with the interpreter's own folder readable, wherever it was installed."""
    if cell.bwrap is None:
        return cell
    more = tool_roots(str(Path(python).parent), cell.repo, Path(cell.env["HOME"]))
    missing = tuple(each for each in more if not any(each.is_relative_to(root) for root in cell.roots))
    return replace(cell, roots=(*cell.roots, *missing)) if missing else cell


def _read(name: str, ended: children.Ended, mark: str) -> _Answer:
    """What the child that *ended* has said on the line with *mark*."""
    output = ended.head + ended.tail
    before, found, line = output.rpartition(mark.encode())
    try:
        said = json.loads(line) if found else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        last = " ".join((before or output).decode("utf-8", "replace").split())[-200:]
        error = f"{name} ended without an answer (exit code {ended.code}). {last}".strip()
        return _Answer(trouble=Trouble.FAILED, error=error)
    if (trouble := said.get("trouble")) is not None:
        kind = Trouble.USAGE if trouble == "usage" else Trouble.FAILED
        return _Answer(trouble=kind, error=str(said.get("error", "")), kind=str(said.get("kind", "")))
    if said.get("loaded") is True:
        return _Answer()
    value = said.get("value")
    if value is None or value == {"output": None}:
        return _Answer(trouble=Trouble.NULL, error=ghosts.NULL)
    return _Answer(value=value)
