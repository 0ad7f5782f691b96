"""From what an agent asks for to a tool that may be tested: names, descriptions, the quality gate, and the spec."""

from __future__ import annotations

import json
import keyword
import re
from datetime import UTC, datetime

from essentials.digests import sha256
from essentials.patterns import late
from essentials.records import dataclass
from hollow.substrate import toolcode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

NAME_LENGTH: Final = 60
"""Characters of a tool's name (seed 002, step 1)."""
MAX_CODE: Final = 64 * 1024
"""Bytes of a tool's code; what is longer is a program, and belongs into a repository."""
MAX_DESCRIPTION: Final = 1000
"""Characters of a description: it stands in every prompt that lists the tool."""
LOOK_ALIKE: Final = 0.9
"""Similarity to a built-in's description from which on a new one is refused: it would take its calls (W3)."""
GUARD_SECONDS: Final = 90.0
"""Seconds in which the same name is not deployed again (seed 002, step 5; T101)."""

KEYS: Final = ("name", "description", "inputSchema", "activated_at", "proposed_by")
"""The five that every spec has (seed 002, step 6; T102)."""

_FENCE: Final = late(r"\A\s*```[a-zA-Z0-9]*[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_MISSING: Final = "name and code are required"


class Refused(Exception):  # noqa: N818 - an answer to the agent, not an error of ours
    """The tool is not deployed; *answer* is what the agent is told, in one of the shapes of seed 002."""

    def __init__(self, **answer: Any) -> None:
        self.answer: dict[str, Any] = {"ok": False, **answer}
        super().__init__(str(answer))


def rejected(reason: str) -> Refused:
    """Return the answer of the quality gate (C6)."""
    return Refused(error=f"rejected: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A synthesized capability."""

    name: str
    description: str
    """One line."""
    code: str
    """Python; the function called :attr:`name` is the tool."""
    by: str
    """The agent that made it."""
    activated_at: float
    """Seconds since the epoch."""
    stub: bool = False
    """Whether it came without code: it can be called, and is never routed to before a real tool (C9)."""
    untested: bool = False
    """Whether it could not be called without arguments, so that nothing is known of what it returns (C16)."""

    @property
    def sha(self) -> str:
        """SHA-256 of the code, in hex."""
        return sha_of(self.code)


def sha_of(code: str) -> str:
    """Return the SHA-256 of *code* in hex."""
    return sha256(code.encode("utf-8", "backslashreplace")).hexdigest()


def sanitized(name: str) -> str:
    """Return *name* as a tool may be called: seed 002's first step to the letter (D10, T92)."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)[:NAME_LENGTH].lower()


def prepare(
    name: str,
    description: str,
    code: str,
    *,
    by: str,
    now: float,
    builtins: Mapping[str, str],
    similar: Callable[[str, str], float],
    strict: bool = False,
) -> Tool:
    """Return the tool that the agent *by* asks for, judged by everything but running it (seed 002, steps 1 to 4).

    *builtins* are the names and descriptions that cannot be taken, *similar* says from 0 to 1 how close two
    descriptions are. With *strict* a tool must come with code (D6). Raises :class:`Refused`.
    """
    clean, code, line = sanitized(name.strip()), _unwrapped(code), " ".join(description.split())
    if not clean or not (line or code) or (strict and not code):
        raise Refused(error=_MISSING)
    if fault := name_fault(clean, builtins):
        raise rejected(fault)
    final = _gated(clean, code) if code else toolcode.stub(clean, line)
    # A tool without a description could not be routed to.
    line = line or _summary(final, clean)
    if fault := description_fault(line, builtins, similar):
        raise rejected(fault)
    return Tool(name=clean, description=line, code=final, by=by, activated_at=now, stub=not code)


def _summary(code: str, name: str) -> str:
    """What the tool says of itself, else its name in words."""
    return toolcode.summary(toolcode.parsed(code), name) or name.replace("_", " ").strip()


def name_fault(name: str, builtins: Mapping[str, str]) -> str | None:
    """Return why the sanitized *name* cannot be a tool's; None if it can (C4, T93)."""
    if not name.isidentifier() or not name.strip("_"):
        return f"{name} is no name: it must begin with a letter and hold letters, digits and underscores"
    if keyword.iskeyword(name):
        return f"{name} is a word of Python"
    # With other underscores a plan that means the built-in would find it in its place (W3).
    meant = next((each for each in builtins if each.replace("_", "") == name.replace("_", "")), None)
    return f"{meant} is a built-in capability" if meant else None


def description_fault(
    description: str, builtins: Mapping[str, str], similar: Callable[[str, str], float]
) -> str | None:
    """Return why *description* cannot be published; None if it can.

    A tool that is described like a built-in would be chosen in its place, as ``safe_file_executor`` was (W3).
    """
    if len(description) > MAX_DESCRIPTION:
        return f"the description has more than {MAX_DESCRIPTION} characters"
    close = next((name for name, other in builtins.items() if similar(description, other) >= LOOK_ALIKE), None)
    return f"the description says what {close} does; call that, or say what is different" if close else None


def _unwrapped(code: str) -> str:
    """*code* without the fence that models like to put around it, and at the left margin."""
    inside = _FENCE.match(code)
    code = inside[1] if inside else code
    if not code.strip():
        return ""
    first = next(line for line in code.splitlines() if line.strip())
    import textwrap

    # Only where it must be: textwrap also changes blank lines inside of strings.
    return textwrap.dedent(code) if first[0].isspace() else code


def _gated(name: str, code: str) -> str:
    """The quality gate of seed 002 (T94-T96, T108); returns what is to be published."""
    if len(code.encode("utf-8", "backslashreplace")) > MAX_CODE:
        raise rejected(f"the code has more than {MAX_CODE} bytes")
    if reason := toolcode.pattern_in(code):
        raise rejected(reason)
    try:
        final = toolcode.wrapped(name, code)
        tree = toolcode.parsed(final)
        fault = toolcode.outside_fault(tree) or toolcode.functions_fault(tree, name)
        if fault:
            raise rejected(fault)
        toolcode.compilable(final)
    except toolcode.Unparsable as why:
        raise Refused(error=str(why)) from None
    return final


def sealed(tool: Tool) -> bytes:
    """Return what a signature of *tool* is made over: everything that decides when it is called and what it does."""
    # A list, not a mapping: the order of keys must not decide whether a signature holds.
    return json.dumps([tool.name, tool.description, tool.code, tool.by, tool.stub, tool.untested]).encode()


def spec(tool: Tool, signature: str) -> dict[str, Any]:
    """Return the spec of *tool*: the five keys of seed 002, and what later readers need."""
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": True},
        "activated_at": datetime.fromtimestamp(tool.activated_at, UTC).isoformat(timespec="seconds"),
        "proposed_by": "agent",
        "synthesized_by": tool.by,
        "stub": tool.stub,
        "untested": tool.untested,
        "signature": signature,
    }


def from_spec(name: str, given: Any, code: str) -> Tool | str:
    """Return the tool whose files *name*.json and .py hold *given* and *code*, or why they are none."""
    if not isinstance(given, dict) or any(key not in given for key in KEYS):
        return "the spec lacks one of its five keys"
    # A copy under another name would answer to a name that nobody has judged.
    if given["name"] != name or sanitized(name) != name:
        return "the spec is of another name"
    try:
        at = datetime.fromisoformat(str(given["activated_at"])).timestamp()
    except (ValueError, OverflowError, OSError):
        return "the spec has no time"
    return Tool(
        name=name,
        description=str(given["description"]),
        code=code,
        by=str(given.get("synthesized_by", "")),
        activated_at=at,
        stub=given.get("stub") is True,
        untested=given.get("untested") is True,
    )
