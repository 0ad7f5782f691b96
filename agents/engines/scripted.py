"""Plays a recorded history instead of an agent: for the demo, for users' CI, for tests."""

from __future__ import annotations

from types import MappingProxyType

from agents.engines.base import BASE_ENV, Brief, Command
from agents.engines.stream_json import STREAM_JSON
from agents.errors import OperatorError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal


class Scripted:
    """``--engine scripted -- HISTORY``: *HISTORY* is a file of events and directions (see :mod:`agents.play`)."""

    name = "scripted"
    output: Literal["pipe", "spool"] = "pipe"
    confined = False
    dialect = STREAM_JSON
    tools: Mapping[str, str] = MappingProxyType({})
    program = ""
    version_argv: tuple[str, ...] = ()
    help_argv: tuple[str, ...] = ()
    session_files = ""

    def command(self, brief: Brief) -> Command:
        """The player with the run's history."""
        if len(brief.meta.argv) != 1:
            example = f'./agent {brief.meta.run_type} "…" --engine scripted -- history.jsonl'
            raise OperatorError("The engine “scripted” needs one history after --.", f"Type: {example}")
        player = brief.home / "agents" / "play.py"
        argv = (brief.python, "-IS", str(player), brief.meta.argv[0], brief.session_id)
        return Command(argv=argv, pass_env=BASE_ENV)
