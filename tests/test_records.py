"""Records mean what `dataclasses` means: every class here is made twice, by the original and by ours, and compared."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import itertools
import pickle
import pkgutil
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

import agents
import essentials
import hollow
from essentials import records

BOTH = pytest.mark.parametrize("by", [dataclasses, records], ids=["dataclasses", "records"])


def made(by: ModuleType) -> SimpleNamespace:
    """Classes that use all that our records use, made by *by*."""

    @by.dataclass(frozen=True, slots=True)
    class Point:
        """A place."""

        KINDS: ClassVar[int] = 2
        x: int
        y: int = 1
        marks: list[str] = by.field(default_factory=list)
        secret: str = by.field(default="s", repr=False)

        @property
        def sum(self) -> int:
            return self.x + self.y

    @by.dataclass(frozen=True, slots=True)
    class Spot(Point):
        y: int = 5
        height: float = 0.5

    @by.dataclass(slots=True, kw_only=True)
    class Open:
        name: str = "a"
        inside: Any = None

    @by.dataclass(frozen=True, slots=True)
    class Pair:
        one: tuple[int, ...]
        two: str = "b"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    return SimpleNamespace(Point=Point, Spot=Spot, Open=Open, Pair=Pair)


def outcome(of: Any) -> object:
    """What calling *of* gives: the value as text, or the kind of the error."""
    try:
        return repr(of()).replace("made.<locals>.", "")
    except (TypeError, ValueError, AttributeError) as why:
        return type(why).__name__


@pytest.mark.parametrize(
    "act",
    [
        lambda c, by: c.Point(1),
        lambda c, by: c.Point(1, 2, ["m"], "t"),
        lambda c, by: c.Point(x=3, secret="u"),
        lambda c, by: c.Point(1, x=2),
        lambda c, by: c.Point(1, z=2),
        lambda c, by: c.Point(),
        lambda c, by: c.Point(1, 2, [], "s", 5),
        lambda c, by: c.Point(1) == c.Point(1, 1, [], "s"),
        lambda c, by: c.Point(1) == c.Point(2),
        lambda c, by: c.Point(1) == c.Spot(1, 1),
        lambda c, by: c.Point(1) == (1, 1, [], "s"),
        lambda c, by: c.Point(1).marks is c.Point(1).marks,
        lambda c, by: c.Point(2).sum,
        lambda c, by: c.Point.KINDS,
        lambda c, by: c.Point.__doc__,
        lambda c, by: c.Point.__match_args__,
        lambda c, by: c.Spot.__match_args__,
        lambda c, by: c.Open.__match_args__,
        lambda c, by: c.Spot(1),
        lambda c, by: c.Spot(1, height=2.0).y,
        lambda c, by: c.Spot.__slots__,
        lambda c, by: setattr(c.Point(1), "x", 2),
        lambda c, by: delattr(c.Point(1), "x"),
        lambda c, by: c.Point(1).__dict__,
        lambda c, by: c.Open("a"),
        lambda c, by: c.Open(name="b"),
        lambda c, by: hash(c.Open()),
        lambda c, by: hash(c.Pair((1,))),
        lambda c, by: hash(c.Point(1)),
        lambda c, by: {c.Pair((1,)): 1}[c.Pair((2,))],
        lambda c, by: by.replace(c.Point(1), y=9),
        lambda c, by: by.replace(c.Point(1), z=9),
        lambda c, by: [each.name for each in by.fields(c.Spot)],
        lambda c, by: [(each.name, each.type) for each in by.fields(c.Point(1))],
        lambda c, by: by.asdict(c.Open(inside={"k": [c.Point(1), (c.Pair((1, 2)),)]})),
        lambda c, by: copy.copy(c.Point(4, marks=["k"])),
        lambda c, by: copy.deepcopy(c.Open(inside=c.Point(4))),
        lambda c, by: by.field(default=1, default_factory=list),
    ],
)  # fmt: skip
def test_a_record_is_what_the_original_would_be(act: Any) -> None:
    """Issue 5: what makes the start cheaper changes no meaning."""
    assert outcome(lambda: act(made(records), records)) == outcome(lambda: act(made(dataclasses), dataclasses))


def test_records_of_an_open_kind_are_assigned_to() -> None:
    one = made(records).Open()
    one.name = "changed"
    assert repr(one).endswith("Open(name='changed', inside=None)")


@BOTH
def test_a_default_that_all_would_share_is_refused(by: Any) -> None:
    with pytest.raises(ValueError, match="default_factory"):

        @by.dataclass(slots=True)
        class _Shared:
            names: list[str] = []  # noqa: RUF012 - that is the point


@BOTH
def test_a_field_that_is_needed_stands_before_those_that_are_not(by: Any) -> None:
    with pytest.raises(TypeError, match="non-default argument 'second' follows default argument"):

        @by.dataclass(slots=True)
        class _Backwards:
            first: int = 1
            second: int


def test_a_record_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="slots=True"):
        records.dataclass(frozen=True)


def test_frozen_says_what_was_not_assigned() -> None:
    with pytest.raises(records.FrozenInstanceError, match="cannot assign to field 'x'"):
        made(records).Point(1).x = 2


def test_a_record_of_a_module_can_be_pickled() -> None:
    from agents.events import Progress

    seen = Progress(session_id="s")
    assert pickle.loads(pickle.dumps(seen)) == seen


def test_nothing_that_a_command_loads_imports_the_original() -> None:
    """Issue 5: one import of it anywhere would cost every command what this saves."""
    found = (pkgutil.walk_packages(each.__path__, f"{each.__name__}.") for each in (agents, essentials, hollow))
    names = [each.name for each in itertools.chain.from_iterable(found)]
    # What a forged tool runs in stands alone.
    loaded = [importlib.import_module(name) for name in names if not name.endswith(("__main__", "forge_child"))]
    using = [module.__name__ for module in loaded if vars(module).get("dataclasses") is dataclasses]
    assert using == []
