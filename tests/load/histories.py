"""Long pasts: a hundred thousand finished runs, a ledger of a million lines; what they may cost and what they must not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.load import worlds
from tests.load.meter import MIB
from tests.load.table import Row, ended, small, unless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.load.meter import Place, Spent, Touched
    from tests.load.worlds import Ground

RUNS: Final = 100_000
LINES: Final = 1_000_000
SMALL: Final = 1000
"""Runs of the small case: as many as fill a dashboard and what is read of the ledger to draw it."""
SLACK: Final = 1.03
"""How much more often files may be touched: a run's processes do not always meet in the same order."""
GROWING: Final = 1.6
"""How much more than in proportion the cost of a whole look may grow: shared machines disturb a long look more."""
BOUNDED: Final = 64 * MIB
"""Memory of a whole look at a ledger."""
A_BOX: Final = 2500
"""Bytes of memory for each box where every one is looked at or shown."""

_NO_OP: Final = ("scout", "x", "--engine", "command", "--", "true")
_EDIT: Final = ("fix", "x", "--engine", "command", "--", "sh", "-c", "date +%N >> main.py")
_FAIL: Final = ("fix", "x", "--engine", "command", "--", "sh", "-c", "echo >> main.py; exit 3")

VERBS: Final[Mapping[str, Callable[[Place], tuple[str, ...]]]] = {
    "scout, a run that does nothing": lambda _: _NO_OP,
    "status": lambda _: ("status",),
    "status --json": lambda _: ("status", "--json"),
    "list": lambda _: ("list",),
    "show ID": lambda place: ("show", _latest_id(place)),
    "logs": lambda _: ("logs", "latest"),
    "stop": lambda _: ("stop", "latest"),
    "fix, a run that changes a file": lambda _: _EDIT,
    "diff": lambda _: ("diff", "latest"),
    "merge": lambda place: ("merge", "latest", "--approve", worlds.patch_hash(place)),
    "fix, a run that fails": lambda _: _FAIL,
    "resume": lambda _: ("resume", "latest"),
    "reject": lambda _: ("reject", "latest"),
}
"""What does not ask for the whole history, in an order in which each finds what it needs."""


def _latest_id(place: Place) -> str:
    return (place.root / ".agents" / "latest").resolve().name.rpartition("__")[2]


def history(ground: Ground, scale: float) -> Iterator[Row]:
    """What every verb costs with a hundred thousand finished runs, beside a thousand."""
    few, many = ground.history(SMALL), ground.history(int(RUNS * scale))
    size = f"{int(RUNS * scale):,} runs"
    yield from compared(few, many, size)
    sweeps = [_swept(place) for place in (few, many)]
    yield Row(
        operation="sweep of a dead run", size=size, spent=sweeps[1],
        beside=f"{sweeps[1].cpu / sweeps[0].cpu:.2f} × CPU", promise="the run ends CRASHED",
        faults=(*ended(sweeps[1]), *unless(worlds.state(many)["status"] == "CRASHED", "it is not CRASHED")),
    )  # fmt: skip
    yield from whole(few, many, size, _WHOLE)


_GC: Final = ("gc", "--dry-run", "--keep-for", "1d")
_WHOLE: Final = (("list", "--all"), _GC, ("verify",))


def whole(few: Place, many: Place, size: str, looks: Sequence[tuple[str, ...]]) -> Iterator[Row]:
    """One row for each of *looks* at everything; of these histories `verify` finds that nothing sealed is there."""
    less, more_ = (len(list((place.root / ".agents" / "runs").iterdir())) for place in (few, many))
    for words in looks:
        yield _linear(few, many, words, 5 if words == ("verify",) else 0, size, less, more_, BOUNDED + A_BOX * more_)


def compared(few: Place, many: Place, size: str, names: Sequence[str] = tuple(VERBS)) -> Iterator[Row]:
    """One row for each of *names* of :data:`VERBS`: what it touches of the files of *many* beside those of *few*."""
    for place in (few, many):
        # What a first run leaves behind (a cached answer, a compiled module) is there for all others.
        place.agent(*_NO_OP)
    for name in names:
        there, here = (place.touched(*VERBS[name](place)) for place in (few, many))
        yield Row(
            operation=name, size=size, beside=f"{here.calls} calls, {there.calls}", promise="as with a thousand runs",
            faults=more(name, there, here),
        )  # fmt: skip


_CODES: Final[Mapping[str, int]] = {"stop": 2, "fix, a run that fails": 3, "resume": 3}
"""Exit codes of those that do not end with 0: a run that is over cannot be stopped."""


def more(name: str, there: Touched, here: Touched) -> tuple[str, ...]:
    """What of the verb *name* costs more *here*, with a long history, than *there*."""
    code = _CODES.get(name, 0)
    return (
        *unless({there.code, here.code} == {code}, f"they ended with {there.code} and {here.code}"),
        *unless(here.calls <= there.calls * SLACK + 12, f"{here.calls} calls on files, {there.calls} with few"),
        *unless(here.read <= there.read * SLACK + MIB // 4, f"{here.read} bytes read, {there.read} with few"),
    )


def _swept(place: Place) -> Spent:
    """The next command's cost after the supervisor of a run was killed."""
    with place.running(*place.command("scout", "x", "--engine", "command", "--", "sleep", "600")):
        place.until_running()
    return place.agent("status", "--json")


def _linear(
    few: Place, many: Place, words: tuple[str, ...], code: int, size: str, less: int, more: int, memory: int
) -> Row:
    """A look at everything: time in proportion, memory bounded by *memory* bytes."""
    start = few.agent("show").cpu
    cheap, dear = few.agent(*words), many.agent(*words)
    ratio = (dear.cpu - start) / max(cheap.cpu - start, 0.05)
    return Row(
        operation=" ".join(words), size=size, spent=dear, beside=f"{ratio:.1f} × CPU for {more / less:.0f} × as much",
        promise=f"in proportion, at most {memory // MIB} MiB",
        faults=(*ended(dear, code), *small(dear, memory),
                *unless(ratio <= more / less * GROWING, f"{ratio:.1f} × the time")),
    )  # fmt: skip


def ledger(ground: Ground, scale: float, *, brief: bool = False) -> Iterator[Row]:
    """What a ledger of a million lines costs beside one of a tenth of it; *brief* leaves out what a history shows too."""
    count = int(LINES * scale)
    few, many = ground.ledger(count // 10), ground.ledger(count)
    bytes_ = (many.root / ".agents" / "INDEX.jsonl").stat().st_size
    size = f"{count:,} lines, {bytes_ / 1e6:,.0f} MB"
    picked = ("scout, a run that does nothing", "status", "list", "fix, a run that changes a file", "merge")
    for name in picked[:2] if brief else picked:
        words = VERBS[name]
        there, here = (place.touched(*words(place)) for place in (few, many))
        yield Row(
            operation=name, size=size, beside=f"{here.calls} calls, {there.calls}; {here.read} bytes, {there.read}",
            promise="as with a tenth of it", faults=more(name, there, here),
        )  # fmt: skip
    for words in (("verify",), ("list", "--all"), _GC, ("doctor",))[: 2 if brief else None]:
        yield _linear(few, many, words, 0, size, 1, 10, BOUNDED)
    yield _cut(many, size)


def _cut(place: Place, size: str) -> Row:
    """A ledger that lost its end: an append does not read all of it to see that, and a look finds it."""
    path = place.root / ".agents" / "INDEX.jsonl"
    with path.open("rb") as file:
        file.seek(-200_000, 2)
        file.readline()
        end = file.tell()
    with path.open("r+b") as file:
        file.truncate(end)
    append, found = place.agent(*_NO_OP), place.agent("verify")
    return Row(
        operation="an append to a ledger that lost its end", size=size, spent=append,
        beside=f"{append.read / MIB:.0f} MiB read of {end / MIB:.0f}",
        promise="not read as a whole; found by verify",
        faults=(*ended(append), *ended(found, 5),
                *unless(append.read < 32 * MIB or append.read < end // 4, f"{append.read} bytes were read")),
    )  # fmt: skip
