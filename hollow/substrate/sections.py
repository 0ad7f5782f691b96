"""The sections of a prompt, one function each; what comes from outside is put in so that it cannot pass for ours."""

from __future__ import annotations

from essentials.records import dataclass
from hollow.prompts import ROLES
from hollow.substrate import identity
from hollow.substrate.existence import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final

    from hollow.substrate.model import Goal, Profile

RULES: Final = "RULES OF YOUR ENVIRONMENT"
BROKEN: Final = "KNOWN BROKEN TOOLS"
PENDING: Final = "YOUR PENDING CLAUDE REQUESTS"
IDENTITY: Final = "WHO YOU HAVE BECOME"
STORY: Final = "YOUR STORY SO FAR"
GOAL: Final = "CURRENT GOAL"
RESULTS: Final = "WHAT YOUR LAST STEPS GAVE"
PEERS: Final = "PEERS"
MESSAGES: Final = "MESSAGES FROM PEERS"
WORKSPACE: Final = "WORKSPACE"
OUTCOME: Final = "LAST OUTCOME"
HOST: Final = "HOST MESSAGES"
TOOLS: Final = "CAPABILITIES"
ANSWER: Final = "ANSWER"
HEADERS: Final = (
    RULES, BROKEN, PENDING, IDENTITY, STORY, GOAL, RESULTS, PEERS, MESSAGES, WORKSPACE, OUTCOME, HOST, TOOLS, ANSWER,
    "YOUR ANSWERED CLAUDE", "CRISIS STATE", "!! CRISIS STATE", "HIGH SUFFERING", "SUFFERING",
)  # fmt: skip
"""What begins a section; no line of anybody else's text may begin with one of these."""

MESSAGES_SHOWN: Final = 6
"""Unread messages that one prompt shows, those first that have waited longest; the others wait for the next (T160)."""
HOST_SHOWN: Final = 6
_MESSAGE: Final = 600
_RESULTS: Final = 8
"""Results that are shown, the newest."""
_RESULT: Final = (3000, 600)
"""Characters of each at level 0 and 1."""
_FILES: Final = 24
_FEWER: Final = 6
_PATH: Final = 160
_BROKEN_SHOWN: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What an agent can see of another."""

    name: str
    load: float | None = None
    """0.0 to 1.0; None where it is not known."""
    goal: str = ""
    files: tuple[str, ...] = ()
    """Paths below ``workspace/<name>/``, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that was said to the agent."""

    sender: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What an earlier step for the same goal gave."""

    step: str
    """The step in a few words, as ``fs_read src/parser.py``."""
    text: str
    """What it gave, or why it failed; lines stay lines."""
    ok: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A tool that has failed too often (T114)."""

    name: str
    failures: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The situation of an agent: everything that its prompts are made of."""

    agent: str
    profile: Profile
    rules: Sequence[str] = ()
    broken: Sequence[Broken] = ()
    suffering: str = ""
    """The block of pain_text, with the locks; empty in calm."""
    signal: str = ""
    """The anticipatory signal."""
    pending: str = ""
    """The block of open requests, with its header."""
    answered: str = ""
    """The block of newly answered requests, with its header."""
    goal: Goal | None = None
    results: Sequence[Given] = ()
    """What the last steps for this goal gave, oldest first: the next plan can rest on what was read."""
    peers: Sequence[Peer] = ()
    messages: Sequence[Note] = ()
    """Unread messages of peers, oldest first."""
    workspace: Sequence[str] = ()
    """The agent's own documents, newest first."""
    repository: Sequence[str] = ()
    """Some files of the repository: what a goal can be about."""
    outcome: str = ""
    host: Sequence[Note] = ()
    """Unread words of the operator, oldest first."""
    tools: Sequence[str] = ()
    """Lines of the manifest: form, then what it does; locked ones say so."""
    max_steps: int = 6
    tokens: int = 12_000
    """What the prompt may take, at four characters each."""


def head(agent: str, rules: Sequence[str]) -> str:
    """Return how every prompt begins: who the agent is, then the rules (S23, T77)."""
    role = ROLES.get(agent, f"You are {line(agent, 40)}.")
    return f"{role}\n\n{RULES}\n" + (_list(rules) or "- none learned yet")


def broken(view: View, _level: int) -> str:
    """Tools that are not to be planned with: name, count, reason (T114)."""
    shown = [f"{each.name} ({each.failures} failures, {line(each.reason, 160)})" for each in view.broken]
    return _titled(f"{BROKEN}:", _list(shown[-_BROKEN_SHOWN:]))


def suffering(view: View, _level: int) -> str:
    """The agent's pain, raw (seed 004): it is not announced."""
    return guarded(view.suffering)


def signal(view: View, _level: int) -> str:
    """What a similar domain did before (F21)."""
    return guarded(view.signal)


def requests(view: View, _level: int) -> str:
    """What the agent waits for, and what has been answered (T18, T19)."""
    return "\n\n".join(guarded(each) for each in (view.answered, view.pending) if each.strip())


def who(view: View, level: int) -> str:
    """Identity without its narrative; at level 1 traits and worldview alone."""
    # Traits and worldview come first in them: they say most in the least room.
    shown = identity.lines(view.profile)
    return _titled(IDENTITY, _list(shown[:2] if level else shown))


def narrative(view: View, level: int) -> str:
    """The agent's story; gone at level 1."""
    return "" if level else _titled(STORY, _list(identity.story(view.profile)))


def goal(view: View, _level: int) -> str:
    """The goal that the agent has."""
    held = view.goal
    if held is None:
        return f"{GOAL}\n- none"
    shown = [
        f"{line(held.objective, 600)} ({held.goal_id})",
        f"progress {held.progress / 1000:.2f} of 1.00 after {held.steps} steps in {held.cycles} cycles",
    ]
    shown += [f"has written {line(each.path, _PATH)}" for each in held.artifacts[-_FEWER:]]
    # A request has a section of its own, as long as there is something to say of it (T19).
    left = [each for each in held.outputs if not each.startswith("request:")]
    shown += [f"has left {line(each, _PATH)}" for each in left[-_FEWER:]]
    if held.failures:
        shown.append(f"failed validation {held.failures} times, last because: {line(held.reason, 300)}")
    return _titled(GOAL, _list(shown))


def results(view: View, level: int) -> str:
    """What earlier steps gave, set apart line by line; shortened at level 1, gone at level 2."""
    if level > 1:
        return ""
    return _titled(RESULTS, "\n".join(_given(each, _RESULT[level]) for each in view.results[-_RESULTS:]))


def _given(given: Given, most: int) -> str:
    """One result; a bar before each of its lines keeps it from passing for a section."""
    whole = given.text.strip()
    shown = [
        "".join(char if char.isprintable() or char == "\t" else " " for char in each)
        for each in whole[:most].splitlines()
    ]
    shown += [f"[… {len(whole) - most} characters more]"] if len(whole) > most else []
    failed = "" if given.ok else " (failed)"
    return "\n".join([f"- {line(given.step, 200)}{failed}", *(f"  | {each}".rstrip() for each in shown)])


def peers(view: View, level: int) -> str:
    """The other agents: load, goal, documents; at level 1 without documents."""
    return _titled(PEERS, _list(_peer(each, level) for each in view.peers))


def _peer(peer: Peer, level: int) -> str:
    load = "" if peer.load is None else f", load {peer.load:.2f}"
    after = f', after "{line(peer.goal, 200)}"' if peer.goal else ""
    files = "" if level or not peer.files else f"; documents: {_paths(peer.files, _FEWER)}"
    return f"{peer.name}{load}{after}{files}"


def messages(view: View, level: int) -> str:
    """Unread messages, the longest waiting first; at level 1 a single one."""
    most = shown_messages(view, level)
    shown = [f"from {line(each.sender, 40)}: {line(each.text, _MESSAGE)}" for each in view.messages[:most]]
    shown += [f"{len(view.messages) - most} more wait for your next cycle"] if len(view.messages) > most else []
    return _titled(MESSAGES, _list(shown))


def shown_messages(view: View, level: int) -> int:
    """Return how many of the messages a prompt shows at *level*: only these may be acknowledged (W12)."""
    return min(len(view.messages), 1 if level else MESSAGES_SHOWN)


def workspace(view: View, level: int) -> str:
    """The agent's documents and some of the repository's files; fewer at level 1, their number alone at level 2."""
    # The number stays at every level: an agent that sees no documents would write them again.
    most = (_FILES, _FEWER, 0)[level]
    own = f"{len(view.workspace)} documents of your own, in workspace/{view.agent}/ and design/"
    shown = [own + (f": {_paths(view.workspace, most)}" if most and view.workspace else "")]
    if view.repository and most:
        shown.append(f"the repository holds, among others: {_paths(view.repository, most)}")
    return _titled(WORKSPACE, _list(shown))


def outcome(view: View, level: int) -> str:
    """What came of the last goal or cycle; gone at level 1."""
    return "" if level or not view.outcome.strip() else _titled(OUTCOME, _list([line(view.outcome, 500)]))


def host(view: View, _level: int) -> str:
    """The operator's words."""
    return _titled(HOST, _list(line(each.text, 4000) for each in view.host[:HOST_SHOWN]))


def tools(view: View, level: int) -> str:
    """What a plan may name; at level 1 without the longer words."""
    return _titled(TOOLS, _list(line(each, 90 if level else 400) for each in view.tools))


def guarded(block: str) -> str:
    """Return *block*, whose first line is its own header, with no other line in it that begins like one.

    Blocks are made by us, but of texts that others wrote.
    """
    first, *others = "\n".join(block.strip().splitlines()).split("\n")
    return "\n".join([first, *(f"  {each}" if each.lstrip("# ").startswith(HEADERS) else each for each in others)])


def _paths(paths: Sequence[str], most: int) -> str:
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(line(each, _PATH) for each in paths[:most]) + more


def _list(lines: Iterable[str]) -> str:
    """One list item a line: a text with line ends of its own would make lines of its own."""
    return "\n".join(f"- {' '.join(each.split())}" for each in lines)


def _titled(header: str, body: str) -> str:
    return f"{header}\n{body}" if body else ""
