"""No progress: whether an agent does the same again and again with the same result while nothing changes."""

from __future__ import annotations

import json

from agents import redact
from agents.events import Said, ToolCall, ToolResult, Unread
from essentials import digests, records
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from agents.events import Event

LONGEST: Final = 3
"""Actions of the longest cycle that is looked for: edit, test, undo."""
WAITED: Final = 5.0
"""Seconds of an answer from which on the agent is taken to wait for something, which is no loop whatever it is told."""
_FEWEST: Final = 3
"""Repetitions that can be judged: one to notice, one to look at the tree, one to compare."""
_PENDING: Final = 16
"""Calls whose answers are awaited at the same time."""
_SHOWN: Final = 80
_ENCODER: Final = json.JSONEncoder(sort_keys=True)
"""Made once: json.dumps would make another one for every line that an agent says."""
_NOT_LOOKED: Final = object()
"""Stands where the tree has not been looked at yet; equal to nothing else."""


def digest(value: object) -> str:
    """A short digest of *value*, a JSON value; the empty text, which equals nothing, for what cannot be written."""
    try:
        written = _ENCODER.encode(value)
    # Nested more deeply than can be written, or no JSON after all: another engine's reader may call this.
    except (TypeError, ValueError, RecursionError):
        return ""
    return digests.blake2b(written.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Step:
    """One action with its result, or one thing said."""

    key: str
    """Equal for equal steps; empty for one that equals no other."""
    words: tuple[str, ...]
    """The beginning of what was said, or of the name of what was called and of its argument, as they came."""

    @property
    def label(self) -> str:
        """The step for people, with secrets taken out: only a loop is shown, and to look for them costs."""
        name, *arguments = map(_shown, self.words)
        return f"{name}({arguments[0]})" if arguments else f"“{name}”"


@dataclass(frozen=True, slots=True)
class _Cycles:
    """How long the newest steps have been going in circles, by the length of the circle."""

    recent: tuple[Step, ...] = ()
    runs: tuple[int, ...] = (0,) * LONGEST
    """For every length: how many of the newest steps in a row equal the one that many steps before."""
    stamps: tuple[object, ...] = (_NOT_LOOKED,) * LONGEST
    """What the tree was when the circle closed for the first time."""

    def then(self, step: Step) -> _Cycles:
        """The circles after one more *step*."""
        recent = (*self.recent, step)[-LONGEST:]
        if all(each.key != step.key for each in self.recent):
            return _Cycles(recent)
        runs = tuple(run + 1 if self._is_again(step, back) else 0 for back, run in enumerate(self.runs, 1))
        stamps = tuple(stamp if run else _NOT_LOOKED for stamp, run in zip(self.stamps, runs, strict=True))
        return _Cycles(recent, runs, stamps)

    def _is_again(self, step: Step, back: int) -> bool:
        return bool(step.key) and len(self.recent) >= back and self.recent[-back].key == step.key

    def is_suspicious(self, after: int) -> bool:
        """Whether the tree has to be looked at, for the first time in a circle or to compare."""
        if not any(self.runs):
            return False
        rows = zip(self.runs, self.stamps, range(1, LONGEST + 1), strict=True)
        return any(
            run >= length * (after - 1) or (run >= length and stamp is _NOT_LOOKED) for run, stamp, length in rows
        )

    def judged(self, after: int, stamp: object) -> tuple[_Cycles, tuple[Step, ...]]:
        """The cycles now that the tree is *stamp*, and the steps of the circle if it is a loop."""
        runs, stamps = list(self.runs), list(self.stamps)
        for at in range(LONGEST):
            length = at + 1
            closed = runs[at] >= length * (after - 1)
            if closed and stamps[at] == stamp:
                return self, self.recent[-length:]
            if closed and stamps[at] is not _NOT_LOOKED:
                # Something did change, so it was progress: the circle begins anew from what the tree is now.
                runs[at], stamps[at] = 0, stamp
            elif runs[at] >= length and stamps[at] is _NOT_LOOKED:
                stamps[at] = stamp
        return records.replace(self, runs=tuple(runs), stamps=tuple(stamps)), ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    """What has been done and said so far, as far as it repeats itself; a value, bounded whatever the agent does."""

    after: int = 12
    """Repetitions that are a loop; 0 for none."""
    actions: _Cycles = field(default_factory=_Cycles)
    words: _Cycles = field(default_factory=_Cycles)
    """Since the last call of a tool."""
    pending: tuple[tuple[ToolCall, float], ...] = ()
    """Calls without an answer yet, and when they were heard."""

    def heard(self, event: Event, now: float) -> Loops:
        """What is known after *event*, heard at *now* (monotonic seconds)."""
        if not self.after:
            return self
        match event:
            case ToolCall():
                return records.replace(self, pending=(*self.pending, (event, now))[-_PENDING:], words=_Cycles())
            case ToolResult():
                return self._answered(event, now)
            case Said(text) if text.strip():
                return records.replace(self, words=self.words.then(Step(digest(text), _beginnings(text))))
            case Unread():
                # Nobody knows what stood there, so nothing before it can be repeated after it.
                return Loops(after=self.after)
        return self

    def _answered(self, answer: ToolResult, now: float) -> Loops:
        waiting = next(
            (each for each in self.pending if each[0].id == answer.id), self.pending[-1:] and self.pending[0]
        )
        if not waiting:
            return self
        call, since = waiting
        known = call.digest and answer.digest and now - since < WAITED
        key = f"{call.digest} {answer.digest}" if known else ""
        step = Step(key, _beginnings(call.name, call.argument))
        pending = tuple(each for each in self.pending if each is not waiting)
        return records.replace(self, actions=self.actions.then(step), pending=pending)

    @property
    def is_suspicious(self) -> bool:
        """Whether :meth:`judged` has to be asked: looking at the tree costs, so it is looked at no more often."""
        after = max(self.after, _FEWEST)
        return bool(self.after) and (self.actions.is_suspicious(after) or self.words.is_suspicious(after))

    def judged(self, stamp: object) -> tuple[Loops, str | None]:
        """What is known now that the tree is *stamp*, and the sentence that names the loop if it is one (P12).

        *stamp* equals an earlier one where nothing has changed in between.
        """
        after = max(self.after, _FEWEST)
        actions, done = self.actions.judged(after, stamp)
        words, said = self.words.judged(after, stamp)
        seen = records.replace(self, actions=actions, words=words)
        return seen, _sentence(after, "did", done) or _sentence(after, "said", said)


def _sentence(times: int, verb: str, steps: tuple[Step, ...]) -> str | None:
    if not steps:
        return None
    what = "; ".join(step.label for step in steps)
    end = ", each time with the same result," if verb == "did" else ""
    return f"It {verb} the same {times} times in a row{end} and nothing changed: {what}."


def _beginnings(*texts: str) -> tuple[str, ...]:
    # More than is shown: where a cut word ends is not known, and it may be a secret.
    return tuple(text[: 4 * _SHOWN + redact.MARGIN + 1] for text in texts)


def _shown(text: str) -> str:
    line = redact.visible(redact.beginning(text, 4 * _SHOWN)).strip()
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
