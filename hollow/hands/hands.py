"""The choke point: every step of every plan goes through :meth:`Hands.call`, and nothing else calls a capability."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from essentials.records import dataclass, replace
from hollow.confine import Refusal
from hollow.hands import dynamic
from hollow.hands.call import Failed, called
from hollow.hands.manifest import bind
from hollow.hands.references import resolved
from hollow.hands.registry import BUILT_IN
from hollow.memory.files import MemoryFault
from hollow.substrate import earned, locks
from hollow.substrate.model import Happening, Kind, Result, Trouble
from hollow.toolbox.workspace import MAX_CHARS, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any, Final

    from hollow.forge import Forge
    from hollow.hands.call import Call
    from hollow.hands.manifest import Capability
    from hollow.hands.reach import Reach
    from hollow.substrate.model import Effect, Step
    from hollow.substrate.settings import Settings

_MORE: Final = "Ask for a part of it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A capability as a plan's prompt lists it."""

    name: str
    form: str
    """How to call it."""
    description: str
    builtin: bool
    output: bool
    """Whether it leaves something."""
    stub: bool = False
    locked: str = ""
    """Why it cannot be called now; empty where it can."""

    @property
    def line(self) -> str:
        """The one line of it."""
        return f"{self.form}: {self.description}" + (f" [LOCKED: {self.locked}]" if self.locked else "")


class Hands:
    """What one agent can do in one cycle.

    *window* is what happened to it lately, oldest first; *blacklist* the tools that are not tried in this cycle, to
    which those that turn out to be ghosts are added; *rules* is how its prompts begin: who it is, then the rules of its
    environment.
    """

    def __init__(
        self,
        reach: Reach,
        forge: Forge,
        settings: Settings,
        window: Sequence[Happening] = (),
        blacklist: Collection[str] = (),
        *,
        rules: str = "",
        built_in: Mapping[str, Capability] = BUILT_IN,
    ) -> None:
        self._reach, self._forge, self._settings = reach, forge, settings
        self._happened = list(window)
        self._results: list[Result] = []
        self._rules = rules
        self._built_in = built_in
        self.blacklist: set[str] = set(blacklist)

    @property
    def results(self) -> tuple[Result, ...]:
        """What the steps so far gave, in their order."""
        return tuple(self._results)

    def proper_name(self, name: str) -> str:
        """Return the name that *name* means: ``functions.FS-Read`` is fs_read; any other is returned as it is."""
        asked = name.strip()
        plain = asked.rpartition(".")[2].casefold().replace("-", "_")
        return plain if plain in self._built_in else asked

    def call(self, step: Step, number: int) -> Result:
        """Do *step*, which is number *number* of its goal; whatever goes wrong is a result with one sentence.

        The order is fixed: what is it, do its parameters fit, is it open now, and only then is anything done. Where one
        of these cannot be answered nothing is done: the gate fails closed (S16, W9). *step* may refer to what earlier
        steps gave (see :func:`hollow.hands.references.resolved`).
        """
        started = time.monotonic()
        name = self.proper_name(step.capability)
        result = self._guarded(name, step, number)
        happenings = (*result.happenings, self._stepped(name, result))
        self._happened += [each for each in happenings if "of" not in each.facts]
        told = replace(
            result, output=_bounded(result.output), happenings=happenings, seconds=time.monotonic() - started
        )
        self._results.append(told)
        return told

    def catalog(self, load: float | None) -> tuple[Listed, ...]:
        """Return what a plan can call at *load*, what is locked marked as such, built-ins first; no broken tools."""
        mine = [self._listed(each, load) for each in self._built_in.values() if self._there(each)]
        broken = self._reach.memory.broken.records()
        others = [
            Listed(
                name=tool.name, form=dynamic.form(tool.name, tool.code), description=tool.description, builtin=False,
                output=False, stub=tool.stub, locked=self._shut(tool.name, dynamic.EFFECTS, load),
            )
            for name, tool in sorted(self._forge.loaded().items())
            if not (name in broken and broken[name].is_broken)
        ]  # fmt: skip
        return (*mine, *others)

    # --- One step -----------------------------------------------------------------------------------------------------

    def _guarded(self, name: str, step: Step, number: int) -> Result:
        try:
            return self._done(name, step, number)
        except Failed as why:
            return why.result
        except Refusal as why:
            return _failed(Trouble.USAGE, str(why))
        except MemoryFault as why:
            return _failed(Trouble.HOST, str(why))
        except OSError as why:
            return _failed(Trouble.HOST, f"{name} failed: {why.strerror or why}.")
        except Exception as why:  # noqa: BLE001 - a fault of ours is told to the agent; it must not end its life
            return _failed(Trouble.FAILED, f"{name} failed: {type(why).__name__}: {str(why)[:200]}.")

    def _done(self, name: str, step: Step, number: int) -> Result:
        call = called(
            self._reach, number=number, seconds=self._settings.step_seconds, settings=self._settings,
            forge=self._forge, rules=self._rules,
        )  # fmt: skip
        if not isinstance(step.params, Mapping):
            raise Failed(Trouble.USAGE, f"The params of {name[:80]} are no JSON object.")
        params = resolved(dict(step.params), self._results)
        capability = self._built_in.get(name)
        if capability is None:
            tool = dynamic.found(call, name, self.blacklist)
            self._admit(call, name, dynamic.EFFECTS)
            return dynamic.used(call, tool, params, self.blacklist)
        bound = bind(capability, params)
        self._admit(call, name, capability.effects)
        return capability.function(call, **bound)

    def _admit(self, call: Call, name: str, effects: Collection[Effect]) -> None:
        """Raise :class:`Failed` (denied) where *name* is locked or not earned; the wish is a happening of its own."""
        denial = self._denial(name, effects, call.load)
        if denial is None:
            return
        call.fact("capability.denied", agent=call.agent, capability=name, lock=denial.lock, load=call.load)
        wished = call.happened(Kind.DENIED, capability=name, lock=denial.lock, load=call.load)
        raise Failed(Trouble.DENIED, denial.sentence, happenings=(wished,))

    def _denial(self, name: str, effects: Collection[Effect], load: float | None) -> locks.Denial | None:
        denial = locks.denied(name, effects, load, self._settings)
        if denial is not None:
            return denial
        if name not in earned.EARNED:
            return None
        contacts = earned.interactions(self._happened, self._reach.agent)
        sentence = earned.unearned(name, load, contacts)
        return locks.Denial(lock="earned", sentence=sentence) if sentence else None

    def _stepped(self, name: str, result: Result) -> Happening:
        facts = {
            "goal": self._reach.goal.goal_id, "capability": name[:80], "ok": result.ok,
            "dynamic": name not in self._built_in, "error": str(result.trouble or ""),
        }  # fmt: skip
        return Happening(kind=Kind.STEP, at=self._reach.now(), cycle=self._reach.cycle, facts=facts)

    # --- The catalogue ------------------------------------------------------------------------------------------------

    def _there(self, capability: Capability) -> bool:
        # A search without a source would only be tried in vain.
        return capability.name != "research_topic" or bool(self._settings.research)

    def _listed(self, capability: Capability, load: float | None) -> Listed:
        return Listed(
            name=capability.name,
            form=capability.form,
            description=capability.description,
            builtin=True,
            output=capability.output,
            locked=self._shut(capability.name, capability.effects, load),
        )

    def _shut(self, name: str, effects: Collection[Effect], load: float | None) -> str:
        denial = self._denial(name, effects, load)
        return denial.sentence if denial else ""


def _failed(trouble: Trouble, sentence: str) -> Result:
    return Result(ok=False, error=sentence, trouble=trouble)


def _bounded(output: Any) -> Any:
    """*output*, or its beginning as text where it is too long for a prompt; the cut says so."""
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
    return output if len(text) <= MAX_CHARS else cut(text, _MORE)
