"""The tools that are known to be broken, and those on their way there: ``broken_tools.json``."""

from __future__ import annotations

from essentials.records import replace
from hollow.memory.moments import iso, seconds
from hollow.substrate import ghosts
from hollow.substrate.ghosts import Broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from hollow.memory.files import Files
    from hollow.substrate.ghosts import Said

FILE: Final = "broken_tools.json"
MOST: Final = 500
"""Records that are kept; those that failed last stay."""


class BrokenTools:
    """The records below *files*. They survive restarts, and are everybody's: what failed for one fails for all."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def records(self) -> dict[str, Broken]:
        """Return what is held against each tool by name, whether it is broken yet or not."""
        value = self._files.read(FILE).value
        return _decoded(value) if isinstance(value, dict) else {}

    def failed(self, name: str, *, cycle: str, reason: str, sha: str, now: float) -> tuple[Said, ...]:
        """Count a ghost or null of *name* in *cycle*, once a cycle, and return what is to be said.

        *sha* is that of the code that failed, empty where there is none; *now* is in seconds since the epoch. The
        third cycle makes it broken (T113).
        """
        with self._files.hold():
            records = self.records()
            record, said = ghosts.failed(records.get(name), name, cycle=cycle, reason=reason, sha=sha, now=now)
            if records.get(name) != record:
                self._write({**records, name: record})
        return said

    def worked(self, name: str) -> None:
        """Forget the failures of *name*, which has just given a value.

        The count is of cycles without a success between: ghosts and null stubs never have one, and a tool that has
        one is neither. A tool that is broken already is not called, so it cannot come here.
        """
        # Looked at without the lock first: this is asked after every call of a tool, and is almost never so.
        if name not in self.records():
            return
        with self._files.hold():
            records = self.records()
            if records.pop(name, None) is not None:
                self._write(records)

    def redeployed(self, name: str, sha: str) -> tuple[Said, ...]:
        """Forgive *name*, for which the code *sha* was deployed, if that is new code; return what is to be said."""
        with self._files.hold():
            records = self.records()
            said = ghosts.redeployed(records[name], sha) if name in records else None
            if said is None:
                return ()
            del records[name]
            self._write(records)
        return said

    def _write(self, records: dict[str, Broken]) -> None:
        kept = sorted(records.values(), key=lambda each: each.last_seen)[-MOST:]
        self._files.write(
            FILE,
            {
                "broken": [_encoded(each) for each in kept if each.is_broken],
                "watched": [_encoded(each) for each in kept if not each.is_broken],
                "cross_cycle_failures": {each.name: each.failures for each in kept},
            },
        )


def _encoded(record: Broken) -> dict[str, Any]:
    return {
        "name": record.name,
        "failures": record.failures,
        "reason": record.reason,
        "first_seen": iso(record.first_seen),
        "last_seen": iso(record.last_seen),
        "code_sha": record.code_sha,
        "last_cycle": record.last_cycle,
    }


def _decoded(value: dict[str, Any]) -> dict[str, Broken]:
    """The records of a file; older ones hold names and counts alone, and what is no record is passed over."""
    counts = value.get("cross_cycle_failures")
    given = {
        name: Broken(name=name, failures=times, reason="")
        for name, times in (counts.items() if isinstance(counts, dict) else ())
        if isinstance(times, int) and times > 0
    }
    for key in ("watched", "broken"):
        for record in _listed(value.get(key), given):
            # Who stands among the broken is broken, whatever the count beside it says.
            least = ghosts.THRESHOLD if key == "broken" else 1
            given[record.name] = replace(record, failures=max(least, record.failures))
    return {each.name: each for each in map(ghosts.cleaned, given.values()) if each.name}


def _listed(items: Any, given: dict[str, Broken]) -> Iterable[Broken]:
    for item in items if isinstance(items, list) else ():
        if isinstance(item, str):
            yield given.get(item, Broken(name=item, failures=0, reason=""))
        elif isinstance(item, dict) and isinstance(item.get("name"), str):
            times = item.get("failures")
            yield Broken(
                name=item["name"],
                failures=times if isinstance(times, int) else 0,
                reason=str(item.get("reason", "")),
                first_seen=seconds(item.get("first_seen")) or 0.0,
                last_seen=seconds(item.get("last_seen")) or 0.0,
                code_sha=str(item.get("code_sha", "")),
                last_cycle=str(item.get("last_cycle", "")),
            )
