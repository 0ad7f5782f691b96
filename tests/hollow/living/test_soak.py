"""A soak: two thousand cycles of three agents, cut off at any moment; nothing is lost, and nothing grows."""

from __future__ import annotations

import os
import statistics
from typing import TYPE_CHECKING, Any

import pytest

from hollow.memory import chronicles, goals
from hollow.memory.memory import Memory
from hollow.memory.numbered import KEPT
from hollow.substrate import suffering
from hollow.substrate.model import AGENTS
from tests.support.soaking import Acks, Soak, leftovers, unreadable

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = 2001
ALL = int(os.environ.get("AGENT_BOX_SOAK", WHOLE))
"""Cycles in all: `tests/run` takes a sample that fits its time, and whoever types `pytest -m slow` has the whole."""
EACH = ALL // 3
"""Cycles of each agent."""
SPARE = 1.0 if ALL >= WHOLE else 2.0
"""A short life has not come to its bounds yet, so what it costs is still growing towards them."""
GROWTH = 16 << 20
"""Bytes by which a process may grow that lives for 2,000 cycles."""


@pytest.fixture(scope="module")
def soak(tmp_path_factory: pytest.TempPathFactory) -> Soak:
    made = Soak(tmp_path_factory.mktemp("soak"), each=EACH, seed=7)
    made.run((10, 40))
    return made


def window(soak: Soak, what: str, first: int, last: int) -> float:
    """The median of *what* over the cycles *first* to *last* of all agents, in the process that was never killed."""
    # Three agents live side by side: its own hundredth cycle is the world's three hundredth.
    cycles = soak.took[soak.steady]
    return statistics.median(each[what] for each in cycles[first * EACH // WHOLE : last * EACH // WHOLE])


@pytest.mark.slow
@pytest.mark.timeout(900)
class TestSoak:
    """One soak, looked at from all sides."""

    def test_it_lived_and_was_killed(self, soak: Soak) -> None:
        """Much happened: goals of all ends, lessons, requests, pains; or the rest of these tests would show nothing."""
        assert soak.cycles == 3 * EACH
        assert soak.kills >= 40 * ALL // WHOLE
        assert min(soak.kinds[f"goal.{end}"] for end in ("created", "completed", "gate_failed")) >= 100 * ALL // WHOLE
        assert min(soak.kinds[kind] for kind in ("request.submitted", "suffering.added", "goal.abandoned")) >= 1
        assert len(soak.rules) >= 4

    def test_nothing_that_was_said_to_be_done_is_lost(self, soak: Soak) -> None:
        assert soak.lost == []
        believed = {each.text for each in Memory(soak.root).lessons.lessons()}
        assert soak.rules <= believed

    def test_every_file_can_be_read(self, soak: Soak) -> None:
        assert unreadable(soak.root) == []
        # A process that dies while it writes leaves at most the file that it was about to put in place.
        assert len(leftovers(soak.root)) <= soak.kills
        assert [each for each in soak.root.glob("quarantine/*") if each.suffix == ".shape"] == []

    @pytest.mark.parametrize("agent", AGENTS)
    def test_no_file_grows_beyond_its_bound(self, soak: Soak, agent: str) -> None:
        def size(name: str) -> int:
            return (soak.root / name).stat().st_size

        # A file is looked at after the record that takes it beyond its bound.
        assert size(f"chronicle/{agent}.jsonl") <= chronicles.LIMIT
        assert size(f"goals/{agent}/registry.jsonl") <= goals.LARGEST
        assert size(f"goals/{agent}/snapshot.json") <= 64 << 10
        assert size(f"identity/{agent}/suffering.json") <= 256 << 10
        assert size(f"identity/{agent}/profile.json") <= 16 << 10
        assert len((soak.root / f"messages/{agent}/inbox.jsonl").read_bytes().splitlines()) <= 2 * KEPT
        memory = Memory(soak.root)
        felt = memory.sufferings.load(agent)[0]
        assert len(felt.active) <= suffering.MOST
        assert len(felt.history) <= suffering.HISTORY
        assert len(memory.goals.recent(agent, goals.KEPT)) == goals.KEPT

    def test_a_process_does_not_grow(self, soak: Soak) -> None:
        grown = window(soak, "rss", 1900, 2000) - window(soak, "rss", 200, 300)
        assert grown < GROWTH

    # Processor time depends on who else is busy; what is read, and how often, does not. By the eight hundredth cycle what
    # is kept of the past has come to its bounds.
    @pytest.mark.parametrize(("what", "most"), [("read", 1.5), ("calls", 1.5), ("cpu", 2.0)])
    def test_a_cycle_costs_the_same_in_the_end(self, soak: Soak, what: str, most: float) -> None:
        assert window(soak, what, 1900, 2000) <= SPARE * most * window(soak, what, 800, 900)


# --- That the soak would see it ---------------------------------------------------------------------------------------


def fact(kind: str, **facts: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": "hollow", "kind": kind, **facts}


def did(name: str, **given: Any) -> list[dict[str, Any]]:
    """A step on the stream that went well."""
    call = {"type": "tool_use", "id": "call_1", "name": name, "input": given}
    outcome = {"type": "tool_result", "tool_use_id": "call_1", "content": "", "is_error": False}
    return [{"type": "assistant", "message": {"content": [call]}}, {"type": "user", "message": {"content": [outcome]}}]


@pytest.mark.parametrize(
    "events",
    [
        [fact("goal.created", goal_id="goal-1")],
        [fact("goal.progressed", goal_id="goal-1", progress=0.4)],
        [fact("request.submitted", request_id="req-000000000001")],
        [fact("suffering.added", stressor="dread")],
        did("memory_set", key="a", value=1),
        did("agent_message", to="cipher", message="the wick!"),
    ],
    ids=["goal", "progress", "request", "stressor", "key", "message"],
)
def test_what_was_acknowledged_and_is_not_there_is_missed(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    acks = Acks("cedar")
    for each in events:
        acks.hear(each)
    assert len(acks.lost(Memory(tmp_path))) == 1
    assert Acks("cedar").lost(Memory(tmp_path)) == []


def test_what_is_torn_or_left_over_is_found(tmp_path: Path) -> None:
    for name, text in {
        "a.json": "{",
        "b.jsonl": '{"a": 1}\n{"b"',
        "c.json": "{}",
        "d.txt": "",
        ".e.json.1.tmp": "{",
    }.items():
        (tmp_path / name).write_text(text)
    assert unreadable(tmp_path) == ["a.json", "b.jsonl", "d.txt"]
    assert [each.name for each in leftovers(tmp_path)] == [".e.json.1.tmp"]
