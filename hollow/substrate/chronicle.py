"""The recent past of one agent, as typed happenings, and the questions that detectors ask of it."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile

from essentials.records import dataclass
from hollow.substrate.model import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

    from hollow.substrate.model import Happening

WINDOW: Final = 40
"""Goals that ended last, over which rates are taken (seed 004: 40 of 40 recent goals; F14)."""

PATTERN: Final = 3
"""Goals of one family without a completed one that make a pattern (S3)."""


_EVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class Chronicle:
    """A window of what happened to an agent. Nothing it prints can get in here, only what was done (F15, W27)."""

    happenings: tuple[Happening, ...] = ()
    """Oldest first."""

    def since(self, at: float) -> Chronicle:
        """Return what happened later than *at* (seconds since the epoch)."""
        # What never was relieved is looked for in all of it, which is most of what is asked.
        return self if at == _EVER else Chronicle(tuple(each for each in self.happenings if each.at > at))

    def of(self, *kinds: Kind) -> tuple[Happening, ...]:
        """Return the happenings of *kinds*, oldest first."""
        return tuple(each for each in self.happenings if each.kind in kinds)

    def last(self, kind: Kind) -> Happening | None:
        """Return the newest happening of *kind*, or None."""
        return next((each for each in reversed(self.happenings) if each.kind is kind), None)

    # --- Goals --------------------------------------------------------------------------------------------------------

    def ended(self) -> tuple[Happening, ...]:
        """Return how the newest :data:`WINDOW` goals ended; one that the operator called off is nobody's failure."""
        ends = self.of(Kind.GOAL_COMPLETED, Kind.GOAL_ABANDONED)
        # Cut after the operator's are out: they must not push the agent's own ends out of the window.
        return tuple(each for each in ends if each.facts.get("why") != "operator")[-WINDOW:]

    def completed(self) -> int:
        """Return how many of the recent goals were completed."""
        return sum(1 for each in self.ended() if each.kind is Kind.GOAL_COMPLETED)

    def failed(self) -> tuple[Happening, ...]:
        """Return the recent goals that were abandoned."""
        return tuple(each for each in self.ended() if each.kind is Kind.GOAL_ABANDONED)

    def stalled(self) -> int:
        """Return how many of the recent goals were abandoned because nothing moved."""
        return sum(1 for each in self.failed() if each.facts.get("why") == "stalled")

    def fruitless(self) -> str:
        """Return the family that was begun :data:`PATTERN` times or more without a completed goal, or nothing (S3)."""
        done = {each.facts.get("family") for each in self.of(Kind.GOAL_COMPLETED)}
        begun = Counter(str(each.facts.get("family") or "") for each in self.of(Kind.GOAL_CREATED)[-WINDOW:])
        # One that was completed once can be done: trying it again is work, not futility.
        tried = [(count, family) for family, count in begun.items() if family and family not in done]
        count, family = max(tried, default=(0, ""))
        return family if count >= PATTERN else ""

    # --- Cycles -------------------------------------------------------------------------------------------------------

    def aimless(self) -> int:
        """Return how many of the newest cycles, in a row, gave no usable goal (S8)."""
        # A cycle that says nothing about its goal is none to hold against the agent.
        return sum(1 for _ in takewhile(lambda each: not each.facts.get("usable", True), self._cycles_back()))

    def purposeful(self) -> int:
        """Return how many of the newest cycles, in a row, gave a usable goal and got further with one."""
        return sum(1 for _ in takewhile(_got_further, self._cycles_back()))

    def _cycles_back(self) -> Iterator[Happening]:
        return reversed(self.of(Kind.CYCLE))

    def without_pass(self) -> int:
        """Return how many cycles ended since a goal last passed the completion gate (S11)."""
        judged = self.of(Kind.CYCLE, Kind.GATE)
        passes = [at for at, each in enumerate(judged) if each.kind is Kind.GATE and each.facts.get("passed")]
        if not passes:
            return len(self.of(Kind.CYCLE))
        # The cycle of the pass ends after it, and is no cycle without one.
        own = judged[passes[-1]].cycle
        return sum(1 for each in judged[passes[-1] :] if each.kind is Kind.CYCLE and (not own or each.cycle != own))

    # --- Others -------------------------------------------------------------------------------------------------------

    def unseen(self, agent: str) -> tuple[str, ...]:
        """Return the documents that *agent* made since a peer last referred to anything of it (S4)."""
        seen = [each for each in self.of(Kind.REFERENCE) if each.facts.get("by") != agent]
        # A peer that looked once may look again: only what came after that look waits for one.
        made = self.since(seen[-1].at) if seen else self
        return tuple(dict.fromkeys(str(each.facts.get("path", "")) for each in made.of(Kind.ARTIFACT)))

    def seen_by(self, agent: str) -> str:
        """Return the newest peer of *agent* that referred to its work, or nothing."""
        peers = (str(each.facts.get("by") or "") for each in reversed(self.of(Kind.REFERENCE)))
        return next((peer for peer in peers if peer and peer != agent), "")

    def called(self) -> str:
        """Return the name of the newest synthesized tool that gave a result in a plan, or nothing (F15)."""
        for each in reversed(self.of(Kind.CALLED, Kind.STEP)):
            if each.facts.get("ok") and (each.kind is Kind.CALLED or each.facts.get("dynamic")):
                return str(each.facts.get("name") or each.facts.get("capability") or "a tool")
        return ""

    def uncalled(self) -> tuple[str, ...]:
        """Return the tools that the agent published and that gave nobody a result so far (F15, S9)."""
        used = {each.facts.get("name") for each in self.of(Kind.CALLED) if each.facts.get("ok")}
        made = dict.fromkeys(str(each.facts.get("name", "")) for each in self.of(Kind.DEPLOYED))
        return tuple(name for name in made if name not in used)


def _got_further(cycle: Happening) -> bool:
    return bool(cycle.facts.get("usable")) and bool(cycle.facts.get("progressed"))
