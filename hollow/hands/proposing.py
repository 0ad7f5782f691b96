"""invoke_claude, check_claude_status, propose_change: what an agent asks of the operator, one way, in its own time."""

from __future__ import annotations

import os
import re

from essentials.patterns import late
from hollow.confine import Refusal
from hollow.hands.call import Failed, done
from hollow.hands.filing import speaking_our_words
from hollow.hands.paths import DESIGN, here, readable
from hollow.placing import spot
from hollow.replacing import decoded, replaced
from hollow.substrate.model import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from hollow.hands.call import Call
    from hollow.substrate.model import Result

CHANGE: Final = "change"
"""Type of a request that carries a patch."""
MAX_DIFF: Final = 256 * 1024
"""Characters of a proposed patch; an operator is to read it."""
_MAX_DOCUMENT: Final = 512 * 1024
"""Bytes of a design document that are sent along with a request."""
_HUNK: Final = late(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_HEADER: Final = late(r"^(?:---|\+\+\+) (?:[ab]/)?([^\t\n]+)", re.MULTILINE)
_NO_FILE: Final = "/dev/null"


def invoke_claude(
    reach: Call, description: str = "", spec: str = "", design_path: str = "", request_type: str = "implement"
) -> Result:
    """Ask the operator for a change that you cannot make yourself. It is a queue: you get an id, and the answer comes
    when it comes. Asking twice for the same gives the same id, or the answer.

    description: what is wanted, in one or two sentences
    spec: the whole specification
    design_path: a document in design/ that says more
    request_type: a label; it changes nothing about the order
    """
    return _submitted(reach, description, spec, design_path, request_type)


def check_claude_status(reach: Call, request_id: str = "") -> Result:
    """See what became of your requests to the operator.

    request_id: the id of one, or nothing for all of yours
    """
    return _answer(reach.memory.requests.status(reach.agent, request_id.strip()))


def propose_change(reach: Call, path: str, description: str, diff: str = "", old: str = "", new: str = "") -> Result:
    """Propose a change of a file that you may not write: the operator gets it as a patch. Give old and new, or a diff.

    path: the file to change
    description: why
    diff: a unified diff of that file, instead of old and new
    old: the exact passage to replace; empty for a file that is not there yet
    new: what stands there afterwards
    """
    with speaking_our_words():
        real = "/".join(reach.place.border.name(here(path)))
        patch = _checked(diff, real) if diff.strip() else _compared(reach, real, old, new)
    # The patch is the whole spec: the queue keeps that of a change beside it, uncut, for the operator to apply.
    return _submitted(reach, description, patch, "", CHANGE)


def _submitted(reach: Call, description: str, spec: str, design_path: str, kind: str) -> Result:
    answer = reach.memory.requests.submit(
        reach.agent, description, spec, design_path, kind,
        token=os.urandom(6).hex(), now=reach.now(), look=lambda asked: _document(reach, asked),
    )  # fmt: skip
    result = _answer(answer)
    request = answer.get("request_id", "")
    if answer.get("duplicate_of"):
        # What was asked before is nothing new that this goal has left.
        return result
    reach.fact(
        "request.submitted", request_id=request, agent=reach.agent, request_type=kind, goal_id=reach.goal.goal_id
    )
    return done(result.output, left=(f"request:{request}",))


def _answer(answer: dict[str, Any]) -> Result:
    if answer.get("ok"):
        return done(answer)
    why = answer.get("message") or answer.get("error") or f"The request is {answer.get('status', 'refused')}."
    raise Failed(Trouble.USAGE, str(why), answer)


def _document(reach: Call, path: str) -> str | None:
    """The design document at *path*, or None where there is none in ``design/``."""
    try:
        real = readable(reach.place.border, path)
        if not real.startswith(f"{DESIGN}/"):
            return None
        with reach.place.border.file(real) as descriptor, open(descriptor, "rb", closefd=False) as file:
            return file.read(_MAX_DOCUMENT).decode("utf-8", "replace")
    except (Refusal, OSError):
        return None


def _checked(diff: str, path: str) -> str:
    """*diff*, if it is a patch of the file *path* alone."""
    if len(diff) > MAX_DIFF:
        raise Refusal(f"A proposed diff has at most {MAX_DIFF} characters; propose one change at a time.")
    named = {found[1].strip() for found in _HEADER.finditer(diff)} - {_NO_FILE}
    if not _HUNK.search(diff):
        raise Refusal("diff is no unified diff (it has no @@ line); or give old and new instead.")
    if named - {path}:
        raise Refusal(
            f"diff changes {', '.join(sorted(named - {path}))[:200]}, and path is {path}; one file at a time."
        )
    text = diff if diff.endswith("\n") else f"{diff}\n"
    return text if named else f"--- a/{path}\n+++ b/{path}\n{text}"


def _compared(reach: Call, path: str, old: str, new: str) -> str:
    """The patch that replaces *old* by *new* in the file *path*, or makes it with *new* where it is not there."""
    if not old.strip() and not reach.place.root.joinpath(path).exists():
        before, after = "", new
    else:
        with spot(reach.place.border, path) as file:
            before = decoded(file.read(), file.path)
        after = replaced(before, old, new, path).text
    if before == after or len(after) - len(before) > MAX_DIFF:
        raise Refusal(f"Nothing would change in {path}, or far too much; give old and new, or a diff.")
    import difflib

    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True),
        f"a/{path}" if before else _NO_FILE, f"b/{path}",
    )  # fmt: skip
    # As diff and git write a last line without its end.
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
