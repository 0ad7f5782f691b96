"""The run-scoped slash commands of a box, as values; nothing is written here."""

from __future__ import annotations

import json

from agents.errors import OperatorError, Tampered
from essentials import digests
from essentials.patterns import late
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

BUDGET: Final = 15_000
"""Characters that all invokable commands together may add to a model's context (seed 003, section 0; T130)."""

LONGEST_DESCRIPTION: Final = 80
"""Characters of one description (seed 003, section 5: keep them tiny; T130)."""

HUMAN_ONLY: Final = ("merge_", "apply_")
"""How the names of commands begin that no model may invoke (seed 003, section 3; T129)."""

# The real tool names of the program that reads these files (D15).
# A bare `Read` would open the whole disk to the model that invokes the command.
_READ_ONLY: Final = "Read(./**)"
_SHORT_ID: Final = late(r"[0-9a-f]{4,64}")
_NAME: Final = late(r"[a-z]+_[0-9a-f]{4,64}")
_FRONTMATTER: Final = late(r"---\n(?P<fields>(?:[^\n]+\n)*?)---\n")
_GUARD_KEY: Final = "disable-model-invocation"


@dataclass(frozen=True, slots=True)
class CommandFile:
    """One slash command: a Markdown file with frontmatter (seed 003, phase 1, step 4)."""

    name: str
    """The slash name without the slash, unique to its run."""
    description: str
    """One line for the listing."""
    invokable: bool
    """Whether a model may invoke it."""
    text: str
    """The whole content of the file."""

    @property
    def filename(self) -> str:
        """The name of the file in the run's command folder."""
        return f"{self.name}.md"


@dataclass(frozen=True, slots=True)
class _Kind:
    """What one command of a set is made of."""

    verb: str
    description: str
    argument: str
    body: str


_SAFE: Final = (
    _Kind(
        "scout",
        "Read-only repo investigation",
        "[question]",
        "You are in the sandbox of run {id}. READ-ONLY: change nothing.\n"
        "Investigate: $ARGUMENTS\n\n"
        "Answer with the report: what you found, in order of relevance, each point with path and line.\n",
    ),
    _Kind(
        "plan",
        "Read-only plan of a change",
        "[change]",
        "You are in the sandbox of run {id}. READ-ONLY: change nothing.\n"
        "Plan this change: $ARGUMENTS\n\n"
        "Answer with the plan: the steps in order, the files each one touches, how to check it, what could go wrong.\n",
    ),
    _Kind(
        "summarize",
        "Summary of what the run found so far",
        "[focus]",
        "You are in the sandbox of run {id}. READ-ONLY: change nothing.\n"
        "Summarize what is known so far, with this focus: $ARGUMENTS\n\n"
        "Answer with the summary: what was asked, what is certain, what is open, what to do next.\n",
    ),
)
# The supervisor writes report.md from the answer: a read-only agent has no tool to do so (D14).
_HANDOVER: Final = (
    "Your answer is kept as the report. A file to hand over besides it goes to this folder (a JSON string): {dir}\n"
    "Never write reports to the repository root.\n"
)
_RISKY: Final = (
    _Kind(
        "merge",
        "Human-only patch merge",
        "[optional target]",
        "HUMAN ONLY. Do NOT invoke automatically, and do not merge or apply anything yourself.\n"
        "Asked for: merge of run {id} $ARGUMENTS\n",
    ),
    _Kind(
        "apply",
        "Human-only patch apply",
        "[optional target]",
        "HUMAN ONLY. Do NOT invoke automatically, and do not merge or apply anything yourself.\n"
        "Asked for: the patch of run {id} on a branch $ARGUMENTS\n",
    ),
)
# No tool that applies anything is offered: the gate would refuse it inside an agent in any case.
_GATE: Final = (
    "The patch lies in this folder (a JSON string): {dir}\n"
    "The only way is a human who types this in a terminal, outside of any agent:\n\n"
    "    ./agent merge {id}\n"
)


def safe_names(short_id: str) -> tuple[str, ...]:
    """Return the names of the commands that the agent of run *short_id* may invoke, such as ``scout_a1b2``."""
    return tuple(f"{kind.verb}_{_valid(short_id)}" for kind in _SAFE)


def human_only_names(short_id: str) -> tuple[str, ...]:
    """Return the names of the commands of run *short_id* that only a human may invoke, such as ``merge_a1b2``."""
    return tuple(f"{kind.verb}_{_valid(short_id)}" for kind in _RISKY)


def command_set(short_id: str, run_name: str, run_dir: str) -> tuple[CommandFile, ...]:
    """Return all commands of a run, safe ones first (seed 003, phase 1, step 4; T128).

    *run_dir* is the folder that the texts name, whatever characters it has. Only it and the short id get into the fixed
    texts; a task never does. Raises ValueError when *short_id* is no short id or not that of *run_name*.
    """
    if run_name.rpartition("__")[2] != _valid(short_id):
        raise ValueError(f"{short_id!r} is not the short id of {run_name!r}.")
    safe = tuple(_file(kind, _HANDOVER, short_id, run_dir, invokable=True) for kind in _SAFE)
    risky = tuple(_file(kind, _GATE, short_id, run_dir, invokable=False) for kind in _RISKY)
    render(safe + risky)
    return safe + risky


def render(files: Iterable[CommandFile]) -> dict[str, str]:
    """Return file name and content of every command in *files*, ready to be written.

    Raises Tampered when a human-only command is not kept from models, by its flag or by its text (T129), when a name is
    not that of a run's command, or when two have the same.
    """
    rendered: dict[str, str] = {}
    # Flag and text are checked apart: the flag is what we count with, the text is what the other program obeys.
    for file in files:
        if not _NAME.fullmatch(file.name) or file.filename in rendered:
            raise Tampered(f"{file.name!r} cannot be the name of a command here.")
        if file.name.startswith(HUMAN_ONLY) and (file.invokable or not _is_guarded(file.text)):
            raise Tampered(f"The command {file.name} is for humans only, but a model could invoke it.")
        rendered[file.filename] = file.text
    return rendered


def digest(files: Iterable[CommandFile]) -> str:
    """Return the SHA-256 (hex) of names and texts of *files*, in whatever order they come."""
    # JSON keeps the border between a name and its text; ASCII escapes make any string hashable.
    content = json.dumps(sorted((file.name, file.text) for file in files))
    return digests.sha256(content.encode("ascii")).hexdigest()


def cost(files: Iterable[CommandFile]) -> int:
    """Return the characters *files* add to a model's context: names and descriptions of the invokable ones."""
    return sum(len(file.name) + len(file.description) for file in files if file.invokable)


def check_budget(in_use: int, files: Iterable[CommandFile]) -> None:
    """Raise OperatorError when *files* do not fit beside the *in_use* characters of the active runs (T130)."""
    total = in_use + cost(files)
    if total > BUDGET:
        raise OperatorError(
            f"The commands of all active runs would take {total} characters of context; {BUDGET} are allowed.",
            "Wait for a run or stop one (./agent stop), or clear what is left over: ./agent gc "
            "(for a larger context see SLASH_COMMAND_TOOL_CHAR_BUDGET).",
        )


def _valid(short_id: str) -> str:
    if not _SHORT_ID.fullmatch(short_id):
        raise ValueError(f"{short_id!r} is not a short id.")
    return short_id


def _file(kind: _Kind, ending: str, short_id: str, run_dir: str, *, invokable: bool) -> CommandFile:
    """Fill in the fixed texts of *kind*, with *ending* as the last paragraph."""
    name = f"{kind.verb}_{short_id}"
    # A short id can be as long as a whole token; what the listing shows need not.
    description = f"{kind.description} (run {short_id[:16]})"
    # Strings as JSON are YAML too, whatever they hold: "[question]" unquoted would be a list.
    fields = (
        f"description: {json.dumps(description)}",
        f"{_GUARD_KEY}: {json.dumps(not invokable)}",
        f"allowed-tools: {json.dumps(_READ_ONLY)}",
        f"argument-hint: {json.dumps(kind.argument)}",
    )
    # Not str.format in one go over the whole: a folder named "{id}" must stay what it is.
    body = f"{kind.body}\n{ending}".replace("{id}", short_id).replace("{dir}", _quoted(run_dir))
    return CommandFile(name, description, invokable, "\n".join(("---", *fields, "---", body)))


def _quoted(path: str) -> str:
    """Return *path* as a JSON string without any character that the reader of a command file acts upon."""
    return '"' + "".join(_plain(char) for char in path) + '"'


def _plain(char: str) -> str:
    # "!`…`" runs a program, "@…" includes a file, "$…" is an argument, "<…>" a tag; the rest would break the line.
    if char.isprintable() and char not in '"\\`$!@<>{}':
        return char
    pairs = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pairs[at : at + 4]}" for at in range(0, len(pairs), 4))


def _is_guarded(text: str) -> bool:
    """Say whether the frontmatter of *text* forbids models to invoke it, once and for all."""
    # A second line for the same key would win in some YAML readers, quoted or not.
    found = _FRONTMATTER.match(text)
    fields = found["fields"].split("\n") if found else []
    return [line for line in fields if line.lower().lstrip("\"' ").startswith(_GUARD_KEY)] == [f"{_GUARD_KEY}: true"]
