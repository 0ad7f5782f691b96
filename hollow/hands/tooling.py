"""synthesize_capability and retire_capability: an agent makes and puts away tools of its own."""

from __future__ import annotations

from hollow.hands.call import Failed, done
from hollow.substrate.model import Kind, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hollow.hands.call import Call
    from hollow.substrate.model import Result


def synthesize_capability(
    reach: Call, name: str, description: str = "", implementation: str = "", code: str = ""
) -> Result:
    """Make a new tool from Python code. It is tested first; if it passes, all agents can call it at the next step.

    name: letters, digits and underscores
    description: what it does and gives back, in one sentence
    implementation: a function definition of that name that returns a value
    code: another name for implementation
    """
    answer = reach.forge.synthesize(name, description, implementation, code, agent=reach.agent)
    made = str(answer.get("capability", name))
    if answer.get("ok"):
        return done(answer, left=(f"tool:{made}",), happenings=(reach.happened(Kind.DEPLOYED, name=made),))
    raise Failed(Trouble.USAGE, _why(answer), answer)


def retire_capability(reach: Call, name: str) -> Result:
    """Put away a synthesized tool that is of no use; nobody can call it any more.

    name: the tool's name
    """
    answer = reach.forge.retire(name, reach.agent)
    if answer.get("ok"):
        return done(answer)
    raise Failed(Trouble.USAGE, _why(answer), answer)


def _why(answer: dict[str, Any]) -> str:
    return str(answer.get("error") or answer.get("message") or answer.get("status") or "It was refused.")
