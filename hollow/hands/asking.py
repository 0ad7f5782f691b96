"""ollama_chat and self_evaluate: the agent asks its own mind once more, in a step of its plan."""

from __future__ import annotations

import json

from hollow.confine import Refusal
from hollow.hands.call import Failed, done
from hollow.hands.paths import readable
from hollow.mind import Away, Question
from hollow.parsing import find_object, plain, prose, strip_thinking
from hollow.substrate.model import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from hollow.hands.call import Call
    from hollow.substrate.model import Result

CHAT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"reply": {"type": "string"}},
    "required": ["reply"],
}
"""Schema of a chat's answer."""
VERDICT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"accomplished": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["accomplished", "reason"],
}
"""Schema of a judgement of one's own work."""

MOST_PATHS, MOST_KEYS = 5, 5
"""Files and keys that are judged at once."""
FILE_CHARS, KEY_CHARS = 1000, 300
"""Characters of each that are shown to the mind."""
_MOST_MESSAGE: Final = 16_000
_MOST_REPLY: Final = 8_000


def ollama_chat(reach: Call, message: str, system: str = "") -> Result:
    """Ask your own model a question outside of your plan, and get its reply.

    message: what you want to know or have thought through
    system: how it should see itself while it answers
    """
    if not message.strip():
        raise Failed(Trouble.USAGE, "The message is empty.")
    parts = [_introduced(reach), system.strip()[:_MOST_MESSAGE], message.strip()[:_MOST_MESSAGE]]
    found, text = _ask(reach, "chat", "\n\n".join(filter(None, parts)), CHAT, {"message": message, "system": system})
    # A mind without a schema may simply say it.
    reply = prose(found["reply"]) if found and "reply" in found else strip_thinking(text)
    if not reply.strip():
        raise Failed(Trouble.FAILED, "The model gave an empty reply.")
    return done(reply[:_MOST_REPLY])


def self_evaluate(reach: Call, paths: Sequence[str] = (), keys: Sequence[str] = ()) -> Result:
    """Judge your own work so far against your goal. It is your opinion: it completes no goal by itself.

    paths: files that hold the work, at most 5
    keys: memory keys that hold it, at most 5
    """
    evidence = {**_files(reach, paths[:MOST_PATHS]), **_kept(reach, keys[:MOST_KEYS])}
    if not evidence:
        raise Failed(Trouble.USAGE, "Name at least one file in paths or one key in keys.")
    shown = "\n\n".join(f"{name}:\n{text}" for name, text in evidence.items())
    prompt = (
        f"{_introduced(reach)}\n\nYOUR GOAL: {reach.goal.objective}\n\nWHAT YOU HAVE MADE\n{shown}\n\n"
        "Does this accomplish the goal? Judge only what stands above; what is missing is missing. "
        'Answer as JSON: {"accomplished": true or false, "reason": "one or two sentences"}.'
    )
    found, _ = _ask(reach, "evaluate", prompt, VERDICT, {"objective": reach.goal.objective, "evidence": evidence})
    # Only a plain yes is one.
    verdict = found is not None and found.get("accomplished") is True
    reason = prose(found.get("reason"))[:1000] if found else "The model's judgement could not be read."
    return done({"accomplished": verdict, "reason": reason, "evidence": list(evidence)})


def _introduced(reach: Call) -> str:
    """How every prompt begins."""
    return reach.rules or f"You are {reach.agent}."


def _ask(
    reach: Call, purpose: str, prompt: str, schema: Mapping[str, Any], facts: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, str]:
    """The object that the mind answered with, if it can be read, and its whole text."""
    question = Question(
        purpose=purpose, prompt=prompt, schema=schema, facts={"agent": reach.agent, **facts}, seconds=reach.seconds
    )
    try:
        # It keeps the time itself: every mind ends what takes longer than the question's seconds.
        thought = reach.thinker.think(question)
    except Away as why:
        raise Failed(Trouble.HOST, f"The model is away: {why}") from None
    text = str(plain(thought.text))
    return find_object(strip_thinking(text)), text


def _files(reach: Call, paths: Sequence[str]) -> dict[str, str]:
    found = {}
    for path in paths:
        real = readable(reach.place.border, path)
        with reach.place.border.file(real) as descriptor, open(descriptor, "rb", closefd=False) as file:
            # Four bytes are the most that a character takes.
            found[real] = _cut(file.read(FILE_CHARS * 4 + 4).decode("utf-8", "replace"), FILE_CHARS)
    return found


def _kept(reach: Call, keys: Sequence[str]) -> dict[str, str]:
    found = {}
    for key in keys:
        try:
            value = reach.memory.keys.get(reach.agent, key)
        except KeyError:
            raise Refusal(f"You remember nothing under {key[:200]!r}.") from None
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        found[f"memory:{key}"] = _cut(text, KEY_CHARS)
    return found


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} [… cut]"
