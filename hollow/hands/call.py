"""One call of a capability: the reach of the agent, and what bounds this call."""

from __future__ import annotations

from essentials import records
from essentials.records import dataclass
from hollow.hands.reach import Reach
from hollow.substrate.locks import may_write
from hollow.substrate.model import Happening, Result, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hollow.forge import Forge
    from hollow.sandbox import Cell
    from hollow.substrate.model import Kind
    from hollow.substrate.settings import Settings


class Failed(Exception):  # noqa: N818 - an answer to the agent, not an error of ours
    """A capability did not do what it was asked; the message is one sentence. *output* is what it gave all the same.

    *more* are further fields of the result: what failed may have left something in the world before it did.
    """

    def __init__(self, trouble: Trouble, sentence: str, output: Any = None, **more: Any) -> None:
        super().__init__(sentence)
        self.trouble = trouble
        self.result = Result(ok=False, output=output, error=sentence, trouble=trouble, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Reach):
    """What a capability is given for one step."""

    seconds: float
    """Wall clock that it may take (T158)."""
    settings: Settings
    forge: Forge
    rules: str = ""
    """How every prompt of the agent begins: who it is, then the rules of its environment."""

    @property
    def writes(self) -> bool:
        """Whether a child may write the agent's own folders."""
        return may_write(self.load, self.settings)

    def child(self) -> Cell:
        """Return the sandbox for a child, which writes the agent's own folders only while writing is not locked (T57).

        Raises :class:`Failed` where there is no safe way to run one.
        """
        cell = self.cell(self.writes)
        if cell is None:
            raise Failed(
                Trouble.HOST,
                "There is no safe way to run code here: no sandbox that can hold it away from everything else.",
            )
        return cell

    def happened(self, kind: Kind, **facts: Any) -> Happening:
        """Return that *kind* happened now, in this cycle. With ``of`` among *facts* it happened to that peer."""
        return Happening(kind=kind, at=self.now(), cycle=self.cycle, facts=facts)


def called(reach: Reach, *, number: int, **more: Any) -> Call:
    """Return the call that *reach* makes with step *number* of its goal; *more* are a call's further fields."""
    given = {each.name: getattr(reach, each.name) for each in records.fields(reach)}
    return Call(**{**given, "number": number, **more})


def done(output: Any, **more: Any) -> Result:
    """Return the result of a call that did what it was asked; *more* are further fields of it."""
    return Result(ok=True, output=output, **more)
