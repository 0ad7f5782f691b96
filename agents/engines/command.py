"""Any program as an agent: what follows ``--``, without a shell; its output is the report, its exit code the result."""

from __future__ import annotations

from types import MappingProxyType

from agents.engines.base import BASE_ENV, Brief, Command
from agents.engines.stream_json import TEXT_OR_JSON
from agents.errors import OperatorError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal


class AnyCommand:
    """``--engine command -- PROGRAM [ARGUMENT ...]``."""

    name = "command"
    output: Literal["pipe", "spool"] = "pipe"
    confined = False
    dialect = TEXT_OR_JSON
    # A strange program has no named tools: what it may do is what the sandbox lets it.
    tools: Mapping[str, str] = MappingProxyType({})
    program = ""
    version_argv: tuple[str, ...] = ()
    help_argv: tuple[str, ...] = ()
    session_files = ""

    def command(self, brief: Brief) -> Command:
        """The operator's argv, unchanged; the task is on its standard input and in ``AGENT_BOX_TASK``."""
        if not brief.meta.argv:
            example = f'./agent {brief.meta.run_type} "…" --engine command -- PROGRAM ARGUMENT …'
            raise OperatorError("The engine “command” needs a program after --.", f"Type: {example}")
        task = brief.meta.task
        return Command(
            argv=brief.meta.argv,
            # The kernel bounds one variable at 128 KiB; a longer task is on standard input alone.
            env={"AGENT_BOX_TASK": task} if len(task.encode("utf-8", "replace")) < _MAX_VARIABLE else {},
            pass_env=BASE_ENV,
            stdin=task.encode("utf-8", "replace"),
        )


_MAX_VARIABLE = 100_000
