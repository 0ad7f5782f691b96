"""The built-in engine: hollow in a process of its own."""

from __future__ import annotations

from types import MappingProxyType

from agents import __version__, policy
from agents.engines.base import BASE_ENV, Brief, Command
from agents.engines.stream_json import STREAM_JSON
from agents.errors import OperatorError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Final, Literal

# Settings that hollow's command line takes as options of the same name.
_OPTIONS: Final = ("num_ctx", "keep_alive", "call_timeout", "max_turns", "substrate")


def program(python: str, home: Path) -> tuple[str, ...]:
    """The words that start hollow by the interpreter *python*; *home* is the folder that holds the packages."""
    # -I: neither the repository's own modules nor the user's may stand in for hollow's. -S: most of what it does needs
    # no package of others, and looking for them costs as much as Python itself.
    return (python, "-IS", "-X", "utf8", str(home / "hollow" / "__main__.py"))


class Hollow:
    """A cycle of hollow; the default."""

    name = "hollow"
    output: Literal["pipe", "spool"] = "pipe"
    confined = True
    dialect = STREAM_JSON
    tools: Mapping[str, str] = MappingProxyType({
        "Grep": "Grep", "Ls": "Ls", "ReadFile": "ReadFile", "cat": "ReadFile", "GitDiff": "GitDiff",
        "EditFile": "EditFile, WriteFile, Shell",
    })  # fmt: skip
    program = ""
    version_argv: tuple[str, ...] = ()
    help_argv: tuple[str, ...] = ()
    session_files = ""
    lives = True
    """Its agents have a life of their own: it knows the run type ``cycle``."""

    def command(self, brief: Brief) -> Command:
        """How to start a cycle for the agent of the run's role, with the mind that was chosen for it."""
        meta = brief.meta
        if meta.argv:
            hint = f'Type: ./agent {meta.run_type} "…" --engine command -- {" ".join(meta.argv)[:80]}'
            raise OperatorError("The engine “hollow” takes no program after --.", hint)
        argv = [
            *program(brief.python, brief.home), "cycle",
            "--mind", meta.mind or "reflex", "--run-type", meta.run_type, "--agent", meta.agent or "cedar",
            "--repo", str(brief.root), "--index", str(brief.index), "--session-id", brief.session_id,
            "--system-prompt", brief.prompt, "--sandbox", brief.isolation,
            "--state", str(brief.memory), "--run", meta.run_name,
        ]  # fmt: skip
        modules = (brief.home / "hollow", brief.home / "essentials")
        return Command(
            # It runs no tests, and libraries that it loads listen to variables that nobody can list.
            env_test=False,
            argv=(*argv, *_further(brief)),
            pass_env=(*BASE_ENV, "OLLAMA_*"),
            stdin=meta.task.encode("utf-8", "replace"),
            read=modules,
            modules=modules,
            # Of all agents its own process alone may see the memory; what it starts may not (design, section 10).
            write=(brief.memory,),
            # Only a model is asked over the network; the commands that an editing agent runs have none of their own.
            network=meta.mind == "ollama",
            nested=brief.mutates,
        )

    @property
    def version(self) -> str:
        """Version of the engine: hollow is released with the box."""
        return __version__


def _further(brief: Brief) -> Iterator[str]:
    """The options that not every cycle is given."""
    meta = brief.meta
    # A cycle takes its airlock as it finds it: what it was after stands in its memory.
    if brief.mutates and brief.resume and meta.run_type != policy.CYCLE:
        yield "--resume"
    if meta.mind == "ollama" and meta.model:
        yield from ("--model", meta.model)
    for name in _OPTIONS:
        if name in brief.options:
            yield from (f"--{name.replace('_', '-')}", brief.options[name])
