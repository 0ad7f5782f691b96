"""Claude Code as an engine: one call that holds the run's whole envelope, at the start and again at every resume."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

from agents import plugin
from agents.engines import foreign
from agents.engines.base import Brief, Command
from agents.engines.stream_json import AGENT_JSON
from agents.layout import COMMANDS, DATA, TREES
from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Final, Literal

# The program's own key and settings (design, section 8).
_PASSED: Final = (*foreign.REACHING_ENV, "ANTHROPIC_*", "CLAUDE_CODE_*", "DISABLE_*", "NODE_EXTRA_CA_CERTS")
_SET: Final = MappingProxyType({
    # It must stay the program that was started, and tell nobody else of the run.
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # What one run wrote into them would be instructions to the next one, unseen by anybody.
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    # The program's own skills cost 8 KB of every request and were not asked for.
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    # In the background a tool would outlive the answer.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
})  # fmt: skip
_MODE: Final = (
    "-p", "--output-format", "stream-json", "--verbose",
    # Neither the repository's settings (hooks, variables, another endpoint) nor its servers: they are a stranger's.
    "--setting-sources", "", "--strict-mcp-config",
    # Nobody is there to ask, so what is not allowed is refused.
    "--permission-mode", "dontAsk",
)  # fmt: skip
_NEWER: Final = (
    # The one switch that holds file tools to the folder whatever else is allowed.
    ("--restricted",),
    # Otherwise a resumed session goes on with the system prompt that it began with.
    ("--system-prompt-snapshot", "off"),
    # The specification's own (T131); no version is known that has it.
    ("--ignore-patterns", f"{DATA}/"),
)
"""Options that only some versions have."""
_CREDENTIALS: Final = Path("~/.claude/.credentials.json")
"""Where a login of the operator's is kept; ``~`` is the operator's home."""
_SECRETS: Final = (".env", ".env.local", ".env.*.local", ".env.development", ".env.production", ".env.staging")
# Rules are globs in a grammar of their own; a character that could mean something there becomes "anything".
_ODD: Final = late(r"[^A-Za-z0-9_./@+=%~-]+")


class Claude:
    """``claude -p``; every option was tried on the real program (versions 2.0.50, 2.1.197, 2.1.330)."""

    name = "claude"
    # In a pipe with a slow reader it loses its last events, the result first, and still ends with 0.
    output: Literal["pipe", "spool"] = "spool"
    confined = False
    dialect = AGENT_JSON
    # GitDiff has no counterpart but a shell, and a shell sees what the rules for files hide.
    tools: Mapping[str, str] = MappingProxyType({
        "Grep": "Grep", "Ls": "Glob", "ReadFile": "Read", "cat": "Read", "EditFile": "Edit,Write",
    })  # fmt: skip
    program = "claude"
    version_argv: tuple[str, ...] = ("--version",)
    help_argv: tuple[str, ...] = ("--help",)
    # By session alone: the folder's name is made of the working folder's path in a way that versions change.
    session_files = ".claude/projects/*/{session}.jsonl"

    def command(self, brief: Brief) -> Command:
        """How to start or resume it for *brief*, with every restriction each time: it remembers none of them (T131).

        Raises HostError where the program was not found, OperatorError for a program after ``--``.
        """
        program = foreign.program_of(self, brief, "@anthropic-ai/claude-code")
        session = ("--resume" if brief.resume else "--session-id", brief.session_id)
        newer = (word for option in _NEWER if foreign.knows(program, option[0]) for word in option)
        return Command(
            argv=(program.path, *_MODE, *session, *_fence(brief), *_offer(brief), *_limits(brief), *newer),
            # It runs no tests; and a stranger's variables must not reach whoever holds the key.
            env_test=False,
            env=_SET,
            pass_env=_PASSED,
            stdin=foreign.stdin_of(brief),
            read=(brief.private / plugin.FOLDER,) if brief.commands else (),
            lend=((".claude/.credentials.json", _CREDENTIALS),),
            files=plugin.plugin_files(brief.meta.short_id, brief.commands) if brief.commands else {},
        )


def _fence(brief: Brief) -> Iterator[str]:
    """What it may never touch, said twice: settings that it finds wrong are dropped as a whole without a word."""
    denied = list(denials(brief.root, brief.checkout))
    yield from ("--settings", json.dumps({"permissions": {"deny": denied}, "autoMemoryEnabled": False}))
    yield from ("--disallowedTools", ",".join(denied))
    yield from ("--append-system-prompt", brief.prompt)


def denials(root: Path, checkout: Path) -> Iterator[str]:
    """The rules that keep an agent in *root* from the box's data, other runs' work, git's folder and secrets (T131).

    A rule for Read also covers Grep, Glob and mentions; edits need one of their own in older versions.
    """
    here = _pattern(root)
    for place in dict.fromkeys((_pattern(checkout), here)):
        for folder in (DATA, f"{COMMANDS}/run_*"):
            yield from (f"Read({place}/{folder}/**)", f"Edit({place}/{folder}/**)")
    if root == checkout:
        yield f"Read({here}/{TREES}/**)"
    yield from (f"Edit({here}/.git)", f"Edit({here}/.git/**)")
    yield from (f"Read({here}/**/{name})" for name in _SECRETS)


def _pattern(path: Path) -> str:
    # Two slashes stand for the root of the file system; one for the folder of the settings.
    return "/" + _ODD.sub("*", str(path))


def _offer(brief: Brief) -> Iterator[str]:
    """The tools that exist at all, and what of them needs no question; nobody could answer one."""
    real = [Claude.tools[name] for name in brief.meta.tools_allowlist if name in Claude.tools]
    skills = plugin.skills(brief.meta.short_id, brief.commands)
    offered = dict.fromkeys(",".join((*real, *(["Skill"] if skills else []))).split(","))
    # Never a bare Read, Grep or Glob here: that would open the whole disk. Inside the folder they need no rule.
    allowed = [*(["Edit(./**)"] if brief.mutates else []), *(f"Skill({name})" for name in skills)]
    yield from ("--tools", ",".join(offered))
    if allowed:
        yield from ("--allowedTools", ",".join(allowed))
    if brief.commands:
        yield from ("--plugin-dir", str(brief.private / plugin.FOLDER))


def _limits(brief: Brief) -> Iterator[str]:
    if brief.budget.max_turns is not None:
        yield from ("--max-turns", str(brief.budget.max_turns))
    if brief.budget.max_usd is not None:
        yield from ("--max-budget-usd", f"{brief.budget.max_usd:.6f}")
    if brief.meta.model:
        yield from ("--model", brief.meta.model)
