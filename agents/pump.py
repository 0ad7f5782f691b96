"""The event loop of a living run: record, follow, keep time, end the tree; nothing the agent does can raise here."""

from __future__ import annotations

import contextlib
import itertools
import math
import select

from agents.errors import BoxError
from agents.events import Progress, Result, reduce
from agents.model import FailureKind
from agents.recorder import BURST, CHUNK
from agents.referee import Referee, trouble, unchanging
from agents.timers import Due, Limits
from agents.vigil import Vigil
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Final

    from agents.events import Event
    from agents.follower import Follower
    from agents.interrupts import Interrupts
    from agents.procs import Child
    from agents.recorder import PipeRecorder, Recorder
    from agents.times import Clock
    from agents.vigil import Listener

_GATHER: Final = 0.25
"""Seconds for which wake-ups are gathered: an agent that writes a thousand short lines a second costs four looks, not a
thousand. What it says is safe meanwhile: the guard records it if this process dies."""
_GATHERED: Final = CHUNK // 4
"""Bytes that may gather: a pipe that is full would stop the agent."""
_LOOK: Final = 1.0
"""Seconds between two looks when nothing happens; also the beat of heartbeats and of a spool file."""
_SPOOL_LOOK: Final = 0.2
# After the agent's own end its pipe may still be held by a grandchild: that one is ended, not waited for.
_REAP_PATIENCE: Final = 15.0


@dataclass(slots=True)
class Ending:
    """How the agent's process ended."""

    exit_code: int | None = None
    """As the kernel gave it: negative is a signal; None if it never started."""
    cause: FailureKind | None = None
    """Why the supervisor ended it, or why it could not start; None if it ended by itself."""
    stopped: bool = False
    """Whether the operator asked for the end."""
    message: str = ""
    progress: Progress = field(default_factory=Progress)
    lines: int = 0
    lingered: bool = False
    """Whether it had given its result and was ended for not going: its exit code is then ours, not its own."""
    notes: list[str] = field(default_factory=list)


class Pump:
    """Drives one agent from its release to the end of its whole tree.

    *child* is held at its gate; *stream* and *stderr* record what it says; *follower* reads the stream behind the
    recorder; *limits* and *clock* say how long anything may take; *listener* is told about it. *stamp* returns what the
    agent's tree is now, as a value to compare (:class:`agents.referee.Referee`): without it the tree counts as one that
    cannot change. *free* returns the bytes of disk space that are left, by default those where the box is.
    """

    def __init__(
        self,
        child: Child,
        stream: Recorder,
        stderr: PipeRecorder,
        follower: Follower,
        limits: Limits,
        clock: Clock,
        listener: Listener,
        *,
        stamp: Callable[[], object] = unchanging,
        free: Callable[[], int] | None = None,
    ) -> None:
        self._child = child
        self._stream = stream
        self._stderr = stderr
        self._follower = follower
        self._limits = limits
        self._clock = clock
        self._listener = listener
        self._referee = Referee(limits, stamp, free or follower.free)
        self._vigil = Vigil(child, limits, listener, clock.mono())
        self._ending = Ending()
        self._ordered: float | None = None
        """When the end of the tree was ordered."""
        self._gone = False
        """Whether the tree is gone, as far as can be told."""
        self._reaped = False
        """Whether the guard has said so."""
        self._looked = self._beaten = clock.mono()
        self._unmeasured = 0
        """Bytes recorded since the disk was looked at."""
        self._crowded = False
        """Whether the disk had no room left: until the tree is gone its pipes hold what else it says."""
        self._broken = False

    def run(self, interrupts: Interrupts) -> Ending:
        """Release the agent and stay until nothing of it is left; returns how it ended."""
        poll = select.poll()
        for handle in (self._child.stdout, self._child.stderr, self._child.line.fileno(), interrupts.wakeup):
            if handle is not None:
                poll.register(handle, select.POLLIN)
        if interrupts.count:
            # Stopped before it ever ran: it never will.
            self._ending.stopped = True
            self._order(None, "", polite=False)
        else:
            self._child.release()
        while not self._gone:
            ready = {handle for handle, _ in poll.poll(self._patience() * 1000)}
            self._hear(ready)
            self._obey(interrupts)
            with self._evidence():
                # The time of before the look: who was stopped himself, here or anywhere, must not call that silence.
                now = self._clock.mono()
                taken = self._record(poll)
                self._keep_time(now)
                self._beat()
                self._gather(taken, now, interrupts)
        self._finish()
        return self._ending

    @contextlib.contextmanager
    def _evidence(self) -> Iterator[None]:
        """The disk may fail in here: without evidence no agent may go on."""
        try:
            yield
        except (OSError, BoxError) as why:
            self._lost(why)

    def _lost(self, why: OSError | BoxError) -> None:
        self._broken = True
        cause, message = trouble(why)
        # Said even if the end was ordered before: an end that cannot be recorded is no good one.
        self._ending.cause, self._ending.message = self._ending.cause or cause, self._ending.message or message
        self._order(cause, message, polite=False)

    def _patience(self) -> float:
        return max(min(_LOOK if self._child.stdout is not None else _SPOOL_LOOK, self._until_next()), 0.0)

    def _until_next(self) -> float:
        if self._ordered is not None:
            return math.inf
        return self._vigil.wait(self._clock.mono())

    def _gather(self, taken: int, now: float, interrupts: Interrupts) -> None:
        """Rest after a look at *now* that has *taken* little, so that wake-ups are few; no word is kept waiting."""
        passed, self._looked = now - self._looked, now
        if 0 < taken < _GATHERED and self._ordered is None:
            # No longer than until so much has come that the agent might have to wait for us.
            rest = min(_GATHER, passed * _GATHERED / taken, self._until_next())
            select.select([self._child.line.fileno(), interrupts.wakeup], [], [], max(rest, 0.0))

    def _record(self, poll: select.poll) -> int:
        """Take what is there and follow it; returns how many bytes it was."""
        taken = 0 if self._full() or self._crowded else self._stream.drain()
        self._unmeasured += taken + (0 if self._broken or self._crowded else self._stderr.drain())
        self._silence_ended(poll)
        if taken:
            self._follow(self._follower.advance())
            self._vigil.signed(self._clock.mono())
            self._judge()
        if self._unmeasured >= BURST:
            # A flood takes in a second more than what has to be left. Between two looks there is less than a burst, and
            # one more of each stream.
            self._spare()
        if self._full():
            self._order(FailureKind.OUTPUT_LIMIT, self._too_much(), polite=False)
        return taken

    def _too_much(self) -> str:
        return f"It printed {self._limits.max_output} bytes, which is all it may."

    def _full(self) -> bool:
        return self._broken or self._stream.full

    def _silence_ended(self, poll: select.poll) -> None:
        """A pipe whose writers are gone, or that is not to be read, is ready for ever: it is not to be asked again."""
        for handle, ended in (
            (self._child.stdout, self._stream.ended or self._full() or self._crowded),
            (self._child.stderr, self._stderr.ended or self._broken or self._crowded),
        ):
            if handle is not None and ended:
                with contextlib.suppress(KeyError):
                    poll.unregister(handle)

    def _follow(self, events: Iterable[Event]) -> None:
        for event in events:
            self._ending.progress = reduce(self._ending.progress, event)
            if isinstance(event, Result):
                self._vigil.resulted(self._clock.mono())
            if self._ordered is None:
                self._referee.heard(event, self._clock.mono())
            try:
                self._listener.event(event, self._ending.progress)
            except (OSError, BoxError) as why:
                # What else was said still counts.
                self._lost(why)

    def _judge(self) -> None:
        """End what oversteps its limits; judged by all that was said together, so that a result that came counts."""
        if self._ordered is not None or not self._referee.verdict(self._ending.progress):
            return
        # A result may lie in what was passed over.
        self._follow(self._follower.recall())
        if verdict := self._referee.verdict(self._ending.progress):
            self._order(*verdict, polite=True)

    def _hear(self, ready: set[int]) -> None:
        if self._child.line.fileno() not in ready:
            return
        if not self._child.listen():
            # The guard was killed or has done its work; whatever is left is ended when the child is closed.
            self._gone = True
        for said in self._child.told:
            self._heard(said)
        self._child.told.clear()

    def _heard(self, said: dict[str, object]) -> None:
        if "error" in said:
            self._ending.cause = FailureKind.SPAWN
            self._ending.message = f"The program cannot be run: {said.get('message')}"
        if "exit" in said and isinstance(said["exit"], int):
            self._ending.exit_code = said["exit"]
            self._order(None, "", polite=True)
        if said.get("reaped"):
            self._gone = self._reaped = True

    def _obey(self, interrupts: Interrupts) -> None:
        if not interrupts.count:
            return
        interrupts.clear()
        self._ending.stopped = self._ending.stopped or self._ordered is None
        self._order(None, "", polite=interrupts.count == 1)

    def _keep_time(self, now: float) -> None:
        """Look which limit was over at *now*, when everything that was said until then has been heard."""
        if self._ordered is not None:
            self._gone = self._gone or now - self._ordered > self._limits.grace + _REAP_PATIENCE
            return
        due = self._vigil.due(now)
        if due is Due.SILENCE:
            if not self._vigil.endures(self._ending.progress, now):
                self._order(FailureKind.STALLED, f"It said nothing for {self._limits.stall_after:g} s.", polite=True)
        elif due is Due.TIMEOUT:
            self._order(FailureKind.TIMEOUT, f"It ran longer than {self._limits.timeout:g} s.", polite=True)
        elif due is Due.LINGER:
            self._ending.lingered = True
            self._ending.notes.append(f"it was still running {self._limits.linger:g} s after its result and was ended")
            self._order(None, "", polite=True)

    def _order(self, cause: FailureKind | None, message: str, *, polite: bool) -> None:
        """Order the end of the tree, once politely and once at once; the first cause stands."""
        if self._ordered is None:
            self._ordered = self._clock.mono()
            self._ending.cause = self._ending.cause or cause
            self._ending.message = self._ending.message or message
            self._child.end(politely=polite)
        elif not polite:
            self._child.end(politely=False)

    def _beat(self) -> None:
        now = self._clock.mono()
        if now - self._beaten < _LOOK:
            return
        self._beaten = now
        self._catch_up()
        self._child.wake()
        progress = self._ending.progress
        self._listener.beat(progress, self._follower.lines, signs=self._vigil.watch(progress))
        # After the heartbeat: a disk that is full already is told by the error that it gives.
        self._spare()

    def _spare(self) -> None:
        """End what leaves no room on the disk."""
        self._unmeasured = 0
        shortage = self._referee.shortage() if self._ordered is None else None
        if shortage:
            # At once: the grace would let it fill what its own end needs.
            self._crowded = True
            self._order(FailureKind.QUOTA, shortage, polite=False)

    def _catch_up(self) -> None:
        """Look at what came too fast, as far as a second's worth goes; in a pause, for a result before that as well."""
        self._follower.rest()
        self._follow(self._follower.advance())
        if not self._vigil.signs:
            self._follow(self._follower.recall())
        self._judge()

    def _finish(self) -> None:
        """The tree is gone: what it left in the pipes is all there will ever be."""
        if not self._reaped:
            # A guard that was killed did not reap: the drain below might go on as long as the agent talks.
            self._child.reap()
        with self._evidence():
            while not self._full() and self._stream.drain():
                continue
            while not self._broken and self._stderr.drain():
                continue
        # Only now the guard may go: until then it would have recorded the rest for one who died.
        self._child.reap()
        self._follower.rest()
        self._follow(itertools.chain(self._follower.advance(), self._follower.finish()))
        self._ending.lines = self._follower.lines
        if self._stream.full and self._ending.cause is None:
            self._ending.cause, self._ending.message = FailureKind.OUTPUT_LIMIT, self._too_much()
        with self._evidence():
            # What an agent said in its last second is a sign of life too (T134).
            self._listener.beat(self._ending.progress, self._follower.lines, signs=self._vigil.signs)
        remark = self._referee.remark(self._ending.progress)
        self._ending.notes += [remark] if remark else []
        if self._stderr.dropped:
            self._ending.notes.append(f"{self._stderr.dropped} bytes of stderr were not kept")
