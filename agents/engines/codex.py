"""Codex as an engine: its tools cannot be listed, so the sandbox alone says what a run may do."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

from agents.engines import foreign
from agents.engines.base import Brief, Command
from agents.engines.codex_events import CODEX_JSON
from agents.errors import OperatorError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Final, Literal

    from agents.engines.base import Program

_PASSED: Final = (*foreign.REACHING_ENV, "OPENAI_*", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CA_CERTIFICATE")
_LENT: Final = (
    (".codex/auth.json", Path("~/.codex/auth.json")),
    # Not the operator's own ~/.codex/config.toml: the servers that it starts are tools beyond the tier.
    (".codex/config.toml", Path("~/.config/agent-box/codex.toml")),
)
_SETTINGS: Final = (
    # The repository's AGENTS.md is a stranger's text with the authority of instructions.
    "project_doc_max_bytes=0",
    'web_search="disabled"',
    # Variables that look like keys do not reach the commands that the model writes.
    "shell_environment_policy.ignore_default_excludes=false",
    # Its own sandbox would otherwise let it write there.
    "sandbox_workspace_write.exclude_slash_tmp=true",
    "sandbox_workspace_write.exclude_tmpdir_env_var=true",
)


class Codex:
    """``codex exec --json`` (tried with version 0.169.0)."""

    name = "codex"
    output: Literal["pipe", "spool"] = "pipe"
    confined = False
    dialect = CODEX_JSON
    tools: Mapping[str, str] = MappingProxyType({})
    program = "codex"
    version_argv: tuple[str, ...] = ("--version",)
    help_argv: tuple[str, ...] = ("exec", "--help")
    session_files = ".codex/sessions/*/*/*/rollout-*-{session}.jsonl"

    def command(self, brief: Brief) -> Command:
        """How to start or resume it for *brief*; the same restrictions each time.

        Raises HostError where the program was not found, OperatorError for a program after ``--`` and for a budget in
        dollars, which nothing that it prints would let anybody keep.
        """
        program = foreign.program_of(self, brief, "@openai/codex")
        if brief.budget.max_usd is not None:
            hint = "Use --max-tokens or --timeout."
            raise OperatorError("Codex tells no prices, so a budget in dollars cannot be kept.", hint)
        resumed = ("resume", brief.session_id) if brief.resume else ()
        return Command(
            # What restricts it stands before the word resume: after it, it is an unknown option.
            argv=(
                program.path,
                "exec",
                "--json",
                *_fence(brief, program),
                *_settings(brief),
                *_choices(brief),
                *resumed,
                "-",
            ),
            pass_env=_PASSED,
            stdin=foreign.stdin_of(brief),
            lend=_LENT,
        )


def _fence(brief: Brief, program: Program) -> Iterator[str]:
    """The sandbox, and where the agent works.

    Inside ours its own cannot be built: no user namespaces are left to it, and every command would fail while the run
    ends with 0. There ours is the wall, and a narrower one.
    """
    own = "workspace-write" if brief.mutates else "read-only"
    yield from ("-s", own if brief.isolation == "none" else "danger-full-access", "-C", str(brief.root))
    # What git's folder is to the agent is not always what Codex takes for a repository.
    yield "--skip-git-repo-check"
    if foreign.knows(program, "--ignore-rules"):
        yield "--ignore-rules"


def _settings(brief: Brief) -> Iterator[str]:
    # A JSON string is a TOML string, but for the escapes of half characters, which are therefore not made.
    prompt = json.dumps(brief.prompt, ensure_ascii=False)
    for setting in (*_SETTINGS, f"developer_instructions={prompt}"):
        yield from ("-c", setting)


def _choices(brief: Brief) -> Iterator[str]:
    # Its result event has no words; the outbox is where the report is looked for then.
    yield from ("-o", str(brief.run_dir / "report.md"))
    if brief.meta.model:
        yield from ("-m", brief.meta.model)
