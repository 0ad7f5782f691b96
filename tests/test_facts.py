"""What an agent says of itself reaches the ledger as its claim, bounded, and cannot forge a row."""

from __future__ import annotations

import json

import pytest

from agents import facts, views
from agents.events import Fact


class Pages:
    """A ledger in memory: what `copy` needs of a journal."""

    def __init__(self):
        self.entries = []

    def append(self, event, run, said):
        self.entries.append({"event": event, "run": run, "facts": said})


def test_families_of_history_are_copied_and_chatter_is_not():
    pages = Pages()
    said = [Fact("goal.created", {"text": "survey"}), Fact("mind.waiting", {}), Fact("suffering.peak", {"load": 0.4})]
    assert facts.copy(pages, "run", said) == 2
    assert [entry["event"] for entry in pages.entries] == ["goal.created", "suffering.peak"]
    assert pages.entries[0]["facts"] == {"said": {"text": "survey"}}


@pytest.mark.parametrize(
    ("told", "said", "rest"),
    [
        ("", "abc", "abc"), ("ab", "abc", "c"), ("abc", "abc", ""), ("xyab", "abc", "c"), ("abcde", "cdefg", "fg"),
        ("aa", "aaa", "a"), ("abc", "xyz", "xyz"), ("abc", "", ""),
    ],
    ids=lambda value: value or "-",
)  # fmt: skip
def test_what_the_ledger_has_heard_is_not_told_twice(told, said, rest):
    """What is heard again begins with what the ledger ends with, or with a later part of it, as only the newest are kept."""
    story = [{"event": "run.started", "facts": {}}]
    story += [{"event": "goal.set", "facts": {"said": {"text": each}}} for each in told]
    pages = Pages()
    facts.copy(pages, "run", [Fact("goal.set", {"text": each}) for each in said], story)
    assert "".join(entry["facts"]["said"]["text"] for entry in pages.entries) == rest


def test_a_fact_that_would_fill_the_tail_stays_in_the_stream():
    pages = Pages()
    assert facts.copy(pages, "run", [Fact("goal.created", {"text": "x" * facts.LARGEST})]) == 0
    assert pages.entries == []


def test_an_agent_cannot_forge_a_row_by_what_it_says():
    pages = Pages()
    facts.copy(pages, "run", [Fact("goal.done", {"status": "MERGED", "task": "nice"})])
    entries = [{"event": "run.finished", "run": "run", "facts": {"status": "DONE"}}, *pages.entries]
    assert views.fold(entries) == [{"run": "run", "status": "DONE"}]
    assert json.dumps(entries)
