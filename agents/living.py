"""`agent live`: each agent's cycles one after the other, all agents side by side, each cycle with its own supervisor.

A cycle's supervisor is a process like the one that `agent cycle` starts in a terminal: it has the signals, the sweep
and the one thread that a run needs, and a fault in it costs one cycle. This process only decides when the next begins.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from agents import locks, probe, procs, pulse, views
from agents.context import prepare
from agents.errors import OperatorError
from agents.interrupts import end_with_parent, interrupts
from agents.lockorder import Rank
from agents.model import Status
from agents.pulse import Ended, Pulse, Sight
from agents.sweep import sweep
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO, Any, Final

    from agents.context import Context
    from agents.interrupts import Interrupts

VARIABLE: Final = "AGENT_BOX_LIVE"
"""Environment variable that tells a cycle's supervisor which process lets the agents live: it does not outlive it."""
_LOOK: Final = 0.1
"""Seconds between two looks at the cycles."""
_WORDS: Final = 64 * 1024
"""Bytes of what a cycle's supervisor says that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """How the agents are to live."""

    agents: tuple[str, ...]
    heartbeat: float = pulse.HEARTBEAT
    """Seconds between the beginnings of an agent's cycles."""
    cycles: int | None = None
    """Cycles of all agents together after which it is over; None for no end."""
    mind: str = "reflex"
    """What thinks, decided once: a server that goes away must not make another mind of the agents."""
    model: str | None = None
    words: tuple[str, ...] = ()
    """Further options of every cycle."""


@dataclass(slots=True)
class _Beat:
    """A cycle at work."""

    pulse: Pulse
    process: subprocess.Popen[bytes]
    began: float
    out: IO[bytes]
    err: IO[bytes]


@dataclass(slots=True)
class _Scene:
    """What the loop remembers."""

    pulses: dict[str, Pulse]
    beats: dict[str, _Beat] = field(default_factory=dict)
    sight: Sight = field(default_factory=Sight)
    begun: int = 0
    ended: list[tuple[str, Ended]] = field(default_factory=list)


def follow_parent() -> None:
    """Have this process, a cycle's supervisor, asked to stop when the one that lets the agents live is gone."""
    parent = os.environ.pop(VARIABLE, "")
    if not parent:
        return
    end_with_parent()
    if str(os.getppid()) != parent:
        raise OperatorError("Whoever let this agent live is gone.", "Type: ./agent live")


def choose(context: Context) -> probe.Choice:
    """The mind of all agents for their whole life: a server that goes away must not make others of them."""
    wanted, model = context.config.mind, context.config.model or probe.MODEL
    server = None if wanted == "reflex" else probe.ask(probe.url_of(context.environ))
    return probe.choose(wanted, model, server)


def live(context: Context, life: Life) -> dict[str, Any]:
    """Let the agents of *life* live until its cycles are done or somebody asks to stop; returns the sum of it.

    Raises OperatorError where they live already, HostError where the disk says no. Whatever was cut off before is
    brought to its end first.
    """
    prepare(context)
    lock = locks.Lock(context.layout.live_lock, Rank.LIVE)
    if not lock.acquire(timeout=0):
        raise OperatorError("The agents of this repository live already.", "Type: ./agent status")
    try:
        context.journal.check_head()
        sweep(context)
        with interrupts() as pending:
            scene = _Scene({agent: Pulse(agent=agent) for agent in life.agents})
            try:
                _loop(context, life, scene, pending)
            finally:
                _wind_up(context, life, scene, pending)
            return _sum(scene, stopped=pending.count > 0)
    finally:
        lock.release()


def _loop(context: Context, life: Life, scene: _Scene, pending: Interrupts) -> None:
    while not pending.count and (scene.beats or _is_more(life, scene)):
        now = time.monotonic()
        _reap(context, life, scene)
        if _is_more(life, scene):
            _begin_due(context, life, scene, now)
        select.select([pending.wakeup], [], [], _LOOK)


def _is_more(life: Life, scene: _Scene) -> bool:
    return life.cycles is None or scene.begun < life.cycles


def _begin_due(context: Context, life: Life, scene: _Scene, now: float) -> None:
    """Begin the cycle that is due, if the mind is there for it; one a look, so that all get their turn."""
    waiting = [each for agent, each in scene.pulses.items() if agent not in scene.beats]
    due = pulse.next_due(waiting, now)
    if due is None or now < scene.sight.until:
        return
    if life.mind == "ollama" and not _is_there(context, life):
        _lost_sight(context, scene, now)
        return
    scene.beats[due.agent] = _begin(context, life, due)
    scene.begun += 1


def _is_there(context: Context, life: Life) -> bool:
    server = probe.ask(probe.url_of(context.environ))
    return server.reachable and server.has(life.model or probe.MODEL)


def _lost_sight(context: Context, scene: _Scene, now: float) -> None:
    if not scene.sight.misses:
        # Said once: whoever looks later sees that nothing happens, and this is why.
        context.say(f"the model is away; it is asked again, from {pulse.AWAY:g} s up to every {pulse.LONGEST_AWAY:g} s")
    scene.sight = scene.sight.away(now)


def _begin(context: Context, life: Life, due: Pulse) -> _Beat:
    """Start the supervisor of one cycle in a session of its own: the terminal's Ctrl-C is for this process."""
    import tempfile

    words = ["cycle", due.agent, "--json", "--mind", life.mind, *(["--model", life.model] if life.model else [])]
    main = str(Path(__file__).with_name("__main__.py"))
    program = [sys.executable, *(("-IS",) if sys.flags.no_site else ()), main, *words, *life.words]
    # They are closed when the cycle is over, long after this function.
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - see above
    process = subprocess.Popen(
        program, cwd=context.layout.root, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
        env={**os.environ, VARIABLE: str(os.getpid())},
    )  # fmt: skip
    return _Beat(pulse=due, process=process, began=time.monotonic(), out=out, err=err)


# --- How cycles end ---------------------------------------------------------------------------------------------------


def _reap(context: Context, life: Life, scene: _Scene) -> None:
    """Take in the cycles that are over."""
    for agent, beat in list(scene.beats.items()):
        if beat.process.poll() is None:
            continue
        del scene.beats[agent]
        with beat.out, beat.err:
            ended = _ended(beat)
        scene.ended.append((agent, ended))
        scene.pulses[agent], rest = pulse.after(beat.pulse, ended, beat.began, time.monotonic(), life.heartbeat)
        _see(context, scene, ended)
        context.say(_line(agent, ended, time.monotonic() - beat.began))
        if rest:
            until = datetime.fromtimestamp(context.clock.wall() + rest, UTC)
            context.say(f"{agent}: {pulse.CRASHES} cycles in a row failed; it rests until {until:%H:%M:%S} UTC")


def _see(context: Context, scene: _Scene, ended: Ended) -> None:
    """Learn from a cycle whether the model is there."""
    if ended.waited:
        _lost_sight(context, scene, time.monotonic())
    elif ended.status is Status.DONE or ended.status is Status.REVIEW:
        if scene.sight.misses:
            context.say("the model is back")
        scene.sight = Sight()


def _ended(beat: _Beat) -> Ended:
    """How the cycle of *beat* ended, from what its supervisor said last."""
    told = _read(beat.out)
    try:
        facts = json.loads(told)
        status = Status(facts["status"])
    except (ValueError, KeyError, TypeError, RecursionError):
        words = " ".join(_read(beat.err).decode("utf-8", "replace").split()) or f"exit code {beat.process.returncode}"
        return Ended(status=None, why=words)
    failure, cycle = facts.get("failure") or {}, facts.get("cycle") or {}
    return Ended(
        status=status, outcome=cycle.get("outcome"), run=facts.get("run"), why=str(failure.get("message") or "")
    )


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(_WORDS)


def _line(agent: str, ended: Ended, lasted: float) -> str:
    """One line for people on a cycle that is over."""
    short_id = (ended.run or "").rpartition("__")[2]
    outcome = f" · {ended.outcome}" if ended.outcome else ""
    why = f": {views.plain(ended.why, 200)}" if ended.why else ""
    head = " ".join(filter(None, [f"{agent:7}", short_id, str(ended.status or "refused")]))
    return f"{head} in {views.span(lasted)}{outcome}{why}"


# --- The end of it ----------------------------------------------------------------------------------------------------


def _wind_up(context: Context, life: Life, scene: _Scene, pending: Interrupts) -> None:
    """Stop the cycles that are still at work, wait for them, and let the server have its memory back."""
    heard = -1
    while scene.beats:
        if pending.count > heard:
            # Each time that somebody asks: the second time means at once.
            heard = pending.count
            for beat in scene.beats.values():
                procs.interrupt(beat.process.pid, procs.start_of(beat.process.pid))
        _reap(context, life, scene)
        time.sleep(_LOOK / 2)
    if life.mind == "ollama":
        probe.unload(probe.url_of(context.environ), life.model or probe.MODEL)


def _sum(scene: _Scene, *, stopped: bool) -> dict[str, Any]:
    """What there is to say of it all, for ``--json`` and for the last line."""
    agents = {
        agent: {
            "cycles": len(mine),
            "failed": sum(ended.failed for ended in mine),
            "review": [ended.run for ended in mine if ended.status is Status.REVIEW],
        }
        for agent in scene.pulses
        for mine in [[ended for who, ended in scene.ended if who == agent]]
    }
    return {"cycles": len(scene.ended), "stopped": stopped, "agents": agents}


def told(found: dict[str, Any]) -> Sequence[str]:
    """The sum *found* as lines for people."""
    head = f"{found['cycles']} cycles{', stopped' if found['stopped'] else ''}"
    waiting = [run.rpartition("__")[2] for each in found["agents"].values() for run in each["review"]]
    return [head, *(f"  merge ./agent merge {short_id}" for short_id in waiting)]
