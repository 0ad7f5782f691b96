"""A tenth of the load table; the whole of it: ``python -m tests.load``."""

from __future__ import annotations

import shutil

import pytest

from tests.load import histories, repositories, streams, table
from tests.load.meter import Place
from tests.load.worlds import Ground
from tests.support import needs

TENTH = 0.1
COMPARED = ("scout, a run that does nothing", "status --json", "fix, a run that changes a file", "merge")
"""What is looked at here: of each kind of verb the one that does most, in an order in which each finds what it needs."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def ground(tmp_path):
    return Ground(tmp_path / "load")


@pytest.fixture
def traced():
    """A machine on which system calls can be counted."""
    if not shutil.which("strace"):
        needs.lacking("strace is not installed")


def hold(rows, count):
    """Every one of *count* rows keeps its promise."""
    found = list(rows)
    assert len(found) == count
    assert not [row for row in found if row.faults], "\n" + table.drawn(found)


def test_a_flood_is_recorded_to_the_byte_in_bounded_memory(ground):
    """T134: 100 MB from one agent (P14), one that fills the disk (C17), and one that wants to print more than it may."""
    hold(streams.flood(ground, TENTH, kinds=("typical",)), 3)


def test_ten_streams_at_once_lose_no_line(ground):
    hold(streams.many(ground, TENTH), 1)


def test_no_verb_costs_more_with_ten_thousand_runs(ground, traced):
    """T152: status, runs, merge: as many looks at files, as many bytes read as with a thousand."""
    few, many = ground.history(histories.SMALL), ground.history(int(histories.RUNS * TENTH))
    hold(histories.compared(few, many, "", COMPARED), len(COMPARED))
    hold(histories.whole(few, many, "", (("list", "--all"),)), 1)


def test_a_ledger_of_a_hundred_thousand_lines_is_read_in_bounded_memory(ground, traced):
    """T152: and a run, the dashboard and the status do not read it."""
    hold(histories.ledger(ground, TENTH, brief=True), 5)


def test_a_repository_of_ten_thousand_files_costs_what_git_needs(ground):
    hold(repositories.repository(ground, TENTH), 4)


# --- The instruments: what measures must notice -----------------------------------------------------------------------


def test_a_look_at_every_box_would_be_noticed(ground, traced):
    few, many = (ground.history(runs) for runs in (20, 400))
    calls = [place.touched("gc", "--dry-run", "--keep-for", "1d") for place in (few, many)]
    assert calls[1].calls - calls[0].calls > 400 - 20
    assert histories.more("gc", *calls)


def test_a_process_that_needs_memory_is_noticed(tmp_path):
    (tmp_path / "here").mkdir()
    place = Place(tmp_path / "here", tmp_path / "home")
    spent = place.run("python3", "-c", "x = b'x' * 150_000_000; raise SystemExit(7)")
    assert spent.code == 7
    assert table.small(spent, 140 * 10**6)
    assert table.ended(spent)
    assert not table.small(place.run("true"), 40 * 10**6)
