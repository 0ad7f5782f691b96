"""The spine of one cycle: say who speaks, let the mind answer, say how it ended, leave with the exit code that fits."""

from __future__ import annotations

import os
import signal
import sys
import time

from essentials.records import dataclass, replace
from hollow import __version__
from hollow.interrupts import Interrupts, Stopped, private_stdout
from hollow.mind import Answer, Away
from hollow.resuming import earlier
from hollow.sandbox import offered
from hollow.stream import Talk
from hollow.tools import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import IO, Final

    from hollow.mind import Assignment, Mind, Thinker
    from hollow.sandbox import Cell

SUCCESS, AGENT_FAILED, BAD_REQUEST, MACHINE_FAILED = 0, 3, 2, 4
"""Exit codes; 128 plus the number of the signal when one ended the cycle."""

MAX_TASK: Final = 8 * 1024 * 1024
"""Bytes of a task that are accepted; no context window holds more."""


class BadRequest(Exception):  # noqa: N818 - it is the caller's fault
    """The cycle cannot start as asked; the message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Everything a cycle needs, as the command line gave it."""

    assignment: Assignment
    """Its task is still empty: it comes on standard input."""
    session_id: str
    mind: Callable[[], Mind]
    """Makes the mind; called once, after the arguments are known to be good."""
    surroundings: str = "none"
    """The isolation that the supervisor has put around this process: full, partial or none (design, section 8)."""
    resumed: bool = False
    """Whether an earlier session of this run may have left work in the repository."""
    state: Path | None = None
    """What the environment remembers (``.agents/hollow``); None for a run without a memory."""
    run: str = ""
    """The run's name; stands in what is remembered."""
    substrate: str = ""
    """Settings of the environment as a JSON object."""
    thinker: Callable[[Callable[..., None]], Thinker] | None = None
    """Makes the mind of a cycle of the agent's own life; it is given what hears its signs of life."""


def read_task(source: IO[bytes] | None) -> str:
    """Return the task from *source*; invalid UTF-8 is replaced. Raises :class:`BadRequest` if empty or too large."""
    # One byte more than allowed tells "too large" from "just fits" without reading the rest.
    data = source.read(MAX_TASK + 1) if source is not None else b""
    if len(data) > MAX_TASK:
        raise BadRequest(f"The task on standard input is larger than {MAX_TASK} bytes.")
    task = data.decode("utf-8", "replace")
    if not task.strip():
        raise BadRequest("There is no task on standard input.")
    return task


def run(order: Order, source: IO[bytes] | None) -> int:
    """Run one cycle on the process's standard output, with the task from *source*; returns the exit code.

    Exactly one ``result`` ends the stream, whatever happens, unless nobody reads the stream any more.
    """
    started = time.monotonic()
    with Interrupts() as interrupts:
        try:
            out = private_stdout(interrupts)
        except OSError as why:
            return _leave(MACHINE_FAILED, f"There is no standard output to speak on: {why.strerror}.")
        try:
            answer, code = _answer(order, source, out, interrupts)
            return _end(order, out, answer, code, started)
        except BrokenPipeError:
            return _leave(MACHINE_FAILED, "Nobody reads the stream any more.")
        except Stopped as stop:  # a second signal while the first was being answered
            return 128 + stop.number


def _end(order: Order, out: IO[bytes], answer: Answer, code: int, started: float) -> int:
    talk = Talk(out, session_id=order.session_id, model="")
    try:
        talk.result(answer, round((time.monotonic() - started) * 1000))
    except BrokenPipeError:
        raise
    except OSError as why:
        return _leave(MACHINE_FAILED, f"The result could not be written: {why.strerror}.")
    return _leave(code, answer.text if code else "")


def _leave(code: int, sentence: str) -> int:
    if sentence and sys.stderr is not None:
        # One line: standard error is for a person who looks why; the whole answer is in the stream.
        print(" ".join(sentence.split())[:500], file=sys.stderr)
    return code


def _answer(order: Order, source: IO[bytes] | None, out: IO[bytes], interrupts: Interrupts) -> tuple[Answer, int]:
    """Return the answer and the exit code; every failure but a closed stream is an answer too."""
    try:
        answer = _think(order, source, out)
        # The answer is complete: a signal from here on would only lose it.
        interrupts.ignore()
    except Stopped as stop:
        interrupts.ignore()
        name = signal.Signals(stop.number).name
        return _failure(f"The cycle was stopped by {name} before it had an answer."), 128 + stop.number
    except BadRequest as why:
        return _failure(str(why)), BAD_REQUEST
    except Away as why:
        return _failure(str(why)), MACHINE_FAILED
    except BrokenPipeError:
        raise
    except OSError as why:
        return _failure(f"The machine failed: {why}."), MACHINE_FAILED
    except Exception as why:  # noqa: BLE001 - the last boundary: a fault of ours must still end in a result event
        return _failure(f"The agent failed: {type(why).__name__}: {why}."), MACHINE_FAILED
    if not answer.is_error and not answer.text.strip():
        answer = replace(answer, text="The mind gave an empty answer.", subtype="error_during_execution")
    return answer, AGENT_FAILED if answer.is_error else SUCCESS


def _failure(sentence: str) -> Answer:
    return Answer(text=sentence, subtype="error_during_execution", turns=0)


def _think(order: Order, source: IO[bytes] | None, out: IO[bytes]) -> Answer:
    if order.assignment.run_type == "cycle":
        return _live(order, out)
    mind = order.mind()
    assignment = replace(order.assignment, cell=_cell(order, mind))
    talk = Talk(out, session_id=order.session_id, model=mind.model or mind.name)
    talk.init(
        cwd=str(assignment.repo),
        mind=mind.name,
        agent=assignment.agent,
        run_type=assignment.run_type,
        tools=names_of(assignment.run_type, commands=assignment.cell is not None),
        hollow_version=__version__,
    )
    talk.fact("mind.chosen", mind=mind.name, model=mind.model)
    # After the first events, so that whoever reads the stream knows who failed.
    if not assignment.repo.is_dir():
        raise BadRequest(f"{assignment.repo} is no folder.")
    task = read_task(source)
    left = earlier(assignment.repo) if order.resumed else ""
    ready = replace(assignment, task=task, earlier=left)
    return mind.answer(ready, talk) if order.state is None else _remembered(order, mind, ready, talk)


def _remembered(order: Order, mind: Mind, ready: Assignment, talk: Talk) -> Answer:
    """The answer of an agent that has a life beside its task: what it knows and suffers counts, the gate judges."""
    from hollow.living import assigned
    from hollow.memory.files import MemoryFault
    from hollow.substrate.settings import Contradiction

    state, made = order.state, order.thinker
    if state is None:
        raise BadRequest("There is no --state DIR.")
    # Only a model is asked for its judgement: the reflex mind has nothing to add to what was looked up.
    judge = (lambda: made(talk.fact)) if made is not None and mind.name == "ollama" else None
    try:
        return assigned.answer(
            ready, mind, state=state, run=order.run or order.session_id, substrate=order.substrate, talk=talk,
            judge=judge,
        )  # fmt: skip
    except Contradiction as why:
        raise BadRequest(str(why)) from None
    except MemoryFault as why:
        raise OSError(str(why).rstrip(".")) from None


def _live(order: Order, out: IO[bytes]) -> Answer:
    """One cycle of the agent's own life; it needs no task, and what it remembers lies outside of the airlock."""
    # What only a cycle needs is loaded by a cycle alone: a scout starts for every question.
    from hollow.hands.registry import BUILT_IN
    from hollow.living.entry import live
    from hollow.memory.files import MemoryFault
    from hollow.minds.scripted_think import BadScript
    from hollow.substrate.settings import Contradiction

    asked, state = order.assignment, order.state
    if state is None or order.thinker is None:
        raise BadRequest("A cycle needs --state DIR, where its environment remembers.")
    talk = Talk(out, session_id=order.session_id, model="")
    try:
        thinker = order.thinker(talk.fact)
        talk = Talk(out, session_id=order.session_id, model=thinker.model or thinker.name)
        talk.init(
            cwd=str(asked.repo), mind=thinker.name, agent=asked.agent, run_type=asked.run_type, tools=list(BUILT_IN),
            hollow_version=__version__,
        )  # fmt: skip
        talk.fact("mind.chosen", mind=thinker.name, model=thinker.model)
        if not asked.repo.is_dir():
            raise BadRequest(f"{asked.repo} is no folder.")
        return live(
            agent=asked.agent, repo=asked.repo, state=state, run=order.run or order.session_id,
            substrate=order.substrate, surroundings=order.surroundings, thinker=thinker, talk=talk,
        )  # fmt: skip
    except Away as why:
        # Time has passed for the agent and nothing else: nobody is to be blamed, and whoever starts cycles waits.
        talk.fact("cycle.ended", agent=asked.agent, goal_id="", outcome="waiting", reason=str(why)[:300])
        return Answer(text=f"The mind was away, so nothing was done: {why}", turns=0)
    except (Contradiction, BadScript) as why:
        raise BadRequest(str(why)) from None
    except MemoryFault as why:
        raise OSError(str(why).rstrip(".")) from None


def _cell(order: Order, mind: Mind) -> Cell | None:
    """How the mind's commands are run; looked into only where there can be any, because the probe takes a moment."""
    asked = order.assignment
    if asked.run_type != "fix" or not mind.acts or not asked.repo.is_dir():
        return None
    return offered(asked.repo, asked.index, order.surroundings, os.environ)
