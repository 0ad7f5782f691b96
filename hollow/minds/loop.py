"""The tool loop: ask the model, do what it asks for, until it answers. Knows nothing of HTTP."""

from __future__ import annotations

import json

from essentials.records import dataclass, field
from hollow import prompts
from hollow.mind import Answer, Usage
from hollow.minds.conversation import Message, Meter, TooLong, fit
from hollow.parsing import Call, step, strip_thinking
from hollow.tools import Outcome, Toolbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final, Protocol

    from hollow.mind import Assignment
    from hollow.stream import Talk
else:
    Protocol = object  # its meaning is a type checker's

MAX_REPEATS: Final = 4
"""Calls already made, in a row, after which the model is going in circles and is asked for its report."""

MAX_CALLS: Final = 16
"""Calls of one message that are done; a model that asks for more has lost its way."""

MAX_MISHAPS: Final = 2
"""Unreadable or empty messages in a row that are asked about before giving up."""


CROWDED: Final = 0.98
"""Share of the context window from which a prompt must be taken for cut: the server stops counting at its edge."""


class Failure(Exception):  # noqa: N818 - it becomes an error answer
    """The model cannot be asked, or not any more; the message is a sentence for the operator."""


class NoToolSupport(Failure):
    """The model knows no tool calls."""


class Garbled(Failure):
    """The server could not read the tool call that the model wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One generation."""

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    prompt_tokens: int = 0
    """As the server counted; 0 if it did not say."""
    output_tokens: int = 0
    cut: bool = False
    """Whether the model stopped because it reached its output limit."""


class Model(Protocol):
    """Something that generates."""

    num_ctx: int
    """Context window in tokens."""
    num_predict: int
    """Tokens of one generation at most; they share the window with the prompt."""

    def generate(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> Reply:
        """Return the next message; raises :class:`Failure`."""


@dataclass(slots=True)
class _Tally:
    """What happened so far."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    mishaps: int = 0
    repeats: int = 0
    seen: set[str] = field(default_factory=set)


class ToolLoop:
    """One assignment given to one *model*, with the tools of *toolbox*, told on *talk*."""

    def __init__(self, model: Model, toolbox: Toolbox, assignment: Assignment, talk: Talk) -> None:
        self._model = model
        self._toolbox = toolbox
        self._assignment = assignment
        self._talk = talk
        self._tally = _Tally()
        self._meter = Meter()
        self._native = True
        self._messages = self._opening()

    def run(self) -> Answer:
        """Ask until there is an answer; failures are answers."""
        try:
            text, subtype = self._converse()
        except TooLong as why:
            text = (
                f"The task needs about {why.tokens} tokens, more than the context window of {self._model.num_ctx}"
                " leaves room for; shorten it or give a larger --num-ctx."
            )
            subtype = "error_during_execution"
        except Failure as why:
            text, subtype = str(why), "error_during_execution"
        usage = Usage(input_tokens=self._tally.input_tokens, output_tokens=self._tally.output_tokens)
        return Answer(text=text, subtype=subtype, turns=self._tally.turns, usage=usage)

    def _opening(self) -> list[Message]:
        forms = () if self._native else self._toolbox.forms
        system = prompts.system_prompt(self._assignment, forms)
        return [
            Message(role="system", content=system, pinned=True),
            Message(role="user", content=prompts.opening(self._assignment), pinned=True),
        ]

    def _converse(self) -> tuple[str, str]:
        # One turn is kept back for the report, whatever happens before.
        while self._tally.turns < self._assignment.max_turns - 1 and self._tally.repeats < MAX_REPEATS:
            try:
                reply = self._generate(with_tools=True)
            except Garbled:
                self._mishap(prompts.UNREADABLE)
                continue
            calls, text, broken = self._meant(reply)
            if calls:
                self._act(reply, calls, text)
            elif text:
                return self._report(reply, text), "success"
            else:
                self._mishap(prompts.UNREADABLE if broken else prompts.EMPTY)
        return self._last_word()

    def _meant(self, reply: Reply) -> tuple[tuple[Call, ...], str, bool]:
        """Return the calls, the text and whether a call could not be read; calls may stand in the text too."""
        if reply.calls:
            # Text beside calls is a remark, not the report: the model goes on.
            return reply.calls[:MAX_CALLS], strip_thinking(reply.text), False
        found = step(reply.text, self._toolbox.names)
        return ((found.call,) if found.call else ()), found.answer, found.broken

    def _last_word(self) -> tuple[str, str]:
        """Ask for the report without tools, because turns or patience are used up."""
        self._messages.append(Message(role="user", content=prompts.LAST_TURN))
        reply = self._generate(with_tools=False)
        calls, text, _ = self._meant(reply)
        if text and not calls:
            return self._report(reply, text), self._ending()
        return f"The model gave no report within {self._tally.turns} turns.", "error_max_turns"

    def _ending(self) -> str:
        """What a report stands for that had to be asked for."""
        # What was read so far is an answer; a change that was cut short is not done, and may go on with more turns.
        spent = self._tally.turns >= self._assignment.max_turns
        return "error_max_turns" if spent and self._assignment.run_type == "fix" else "success"

    def _report(self, reply: Reply, text: str) -> str:
        if reply.cut:
            text += "\n\n[The model reached its output limit here; the report is incomplete.]"
        self._talk.say(text)
        return text

    def _mishap(self, request: str) -> None:
        self._tally.mishaps += 1
        if self._tally.mishaps > MAX_MISHAPS or (request == prompts.EMPTY and self._tally.mishaps > 1):
            raise Failure("The model gave an empty or unreadable answer again after it was asked to mend it.")
        self._messages.append(Message(role="user", content=request))

    def _generate(self, *, with_tools: bool, again: bool = False) -> Reply:
        tools = self._toolbox.schemas() if with_tools and self._native else []
        # The tools' schemas stand in the same window as the messages and are never shortened.
        extra = len(json.dumps(tools))
        self._trim(extra)
        self._tally.turns += 1
        try:
            reply = self._model.generate([m.wire() for m in self._messages], tools)
        except NoToolSupport:
            return self._in_text(with_tools=with_tools)
        self._tally.input_tokens += reply.prompt_tokens
        self._tally.output_tokens += reply.output_tokens
        self._talk.generation({"input_tokens": reply.prompt_tokens, "output_tokens": reply.output_tokens})
        self._weigh(reply, extra)
        if reply.prompt_tokens < CROWDED * self._model.num_ctx or again:
            return reply
        # The server has cut the beginning of the prompt without a word: rules and task may be gone. Now that the meter
        # has learned from the count, a shorter prompt is asked instead.
        self._talk.fact("context.overrun", prompt_tokens=reply.prompt_tokens, num_ctx=self._model.num_ctx)
        return self._generate(with_tools=with_tools, again=True)

    def _in_text(self, *, with_tools: bool) -> Reply:
        """Start again with the tools described in text: this model knows no tool calls."""
        if not self._native:
            raise Failure("The model refuses tools although none were offered.")
        self._native = False
        self._messages = self._opening()
        # The refused request was no turn: the model has not seen it.
        self._tally.turns -= 1
        self._talk.fact("model.no_tools", note="The model knows no tool calls; they are asked for in text.")
        return self._generate(with_tools=with_tools)

    def _trim(self, extra: int) -> None:
        budget = self._model.num_ctx - self._model.num_predict
        kept = fit(self._messages, budget, self._meter, extra)
        changed = sum(old is not new for old, new in zip(self._messages, kept, strict=True))
        if changed:
            # What was dropped may be asked for again.
            self._tally.seen -= {m.key for m in self._messages} - {m.key for m in kept}
            self._talk.fact("context.trimmed", messages=changed, num_ctx=self._model.num_ctx)
        self._messages = kept

    def _weigh(self, reply: Reply, extra: int) -> None:
        if not reply.prompt_tokens:  # the server did not count
            return
        self._meter = self._meter.learned([m.size for m in self._messages], extra, reply.prompt_tokens)

    def _act(self, reply: Reply, calls: tuple[Call, ...], text: str) -> None:
        # Mishaps count in a row: a model that calls a tool has found its way again.
        self._tally.mishaps = 0
        # A call that stood in the text must stay in the text, or the model loses its own words.
        own = reply.calls[:MAX_CALLS]
        said = Message(
            role="assistant",
            content=reply.text if not own else text,
            thinking=reply.thinking,
            calls=tuple(Call(c.name, c.arguments if isinstance(c.arguments, dict) else {}) for c in own),
        )
        self._messages.append(said)
        if text:
            self._talk.say(text)
        for call in calls:
            self._do(call)

    def _do(self, call: Call) -> None:
        name = self._toolbox.proper_name(call.name) or call.name
        shown = call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}
        call_id = self._talk.call(name, shown)
        # Sorted, so that the same arguments in another order are the same call.
        key = f"{name} {json.dumps(call.arguments, sort_keys=True)}"
        repeated = key in self._tally.seen
        self._tally.repeats = self._tally.repeats + 1 if repeated else 0
        self._tally.seen.add(key)
        outcome = _ALREADY if repeated else self._toolbox.call(name, call.arguments)
        if outcome.changed:
            # Tests are run again after an edit, files read again: only this very call is still a repetition.
            self._tally.seen = {key}
        self._talk.outcome(call_id, outcome.content, is_error=outcome.is_error)
        result = Message(role="tool", content=outcome.content, tool=name, key=key, native=self._native)
        self._messages.append(result)


_ALREADY: Final = Outcome(
    "You already made exactly this call; its result stands above. Make another call or write the report.", is_error=True
)
