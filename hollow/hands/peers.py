"""agent_message and read_peer: contact with the other agents."""

from __future__ import annotations

from hollow.confine import Refusal
from hollow.hands.call import Failed, done
from hollow.hands.filing import fs_read
from hollow.hands.paths import WORKSPACE, here
from hollow.substrate.model import AGENTS, Kind, Trouble
from hollow.toolbox.reading import ls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from hollow.hands.call import Call
    from hollow.substrate.model import Result

MAX_MESSAGE: Final = 4_000
"""Characters of a message; what is longer is a document, whose path one sends (W17: refused, never cut)."""


def agent_message(reach: Call, to: str, message: str) -> Result:
    """Send a message to another agent; it stands in its next prompt.

    to: cedar, cipher or vault
    message: what you want to say, at most 4,000 characters
    """
    peer = _peer(reach, to)
    if not message.strip() or len(message) > MAX_MESSAGE:
        raise Failed(
            Trouble.USAGE, f"A message has 1 to {MAX_MESSAGE} characters; write a document and send its path instead."
        )
    refused = reach.memory.mail.send(reach.agent, peer, message.strip(), reach.now())
    if refused:
        raise Failed(Trouble.FAILED, refused)
    happenings = (
        reach.happened(Kind.PEER, peer=peer, how="message"),
        reach.happened(Kind.PEER, peer=reach.agent, how="message", of=peer),
    )
    return done({"sent_to": peer}, left=(f"message:{peer}",), happenings=happenings)


def read_peer(reach: Call, agent: str, path: str = "") -> Result:
    """Look at what another agent has made: its files without a path, one of them with it.

    agent: cedar, cipher or vault
    path: file or folder relative to that agent's workspace
    """
    peer = _peer(reach, agent)
    top = f"{WORKSPACE}/{peer}"
    asked = here(path).removeprefix(f"{top}/") if here(path) != top else ""
    named = "/".join(reach.place.border.name(f"{top}/{asked}"))
    # By its name and, in fs_read, by where it leads: another's work is meant, not the way through it.
    if named != top and not named.startswith(f"{top}/"):
        raise Refusal(f"{path} is not in the workspace of {peer}; use fs_read for other files.")
    folder = reach.place.root.joinpath(named)
    if named == top and not folder.is_dir():
        return done(f"{peer} has made nothing yet.")
    if folder.is_dir():
        happenings = (reach.happened(Kind.PEER, peer=peer, how="read"),)
        return done(ls(reach.place, named), happenings=happenings)
    return fs_read(reach, named)


def _peer(reach: Call, name: str) -> str:
    meant = name.strip().casefold()
    others = [each for each in AGENTS if each != reach.agent]
    if meant not in others:
        told = "that is yourself" if meant == reach.agent else f"{name[:40]!r} is none"
        raise Failed(Trouble.USAGE, f"The other agents are {' and '.join(others)}; {told}.")
    return meant
