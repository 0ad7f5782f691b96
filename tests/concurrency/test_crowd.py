"""A sample of the crowd: whole commands at once in one repository; all of it: ``python -m tests.concurrency``."""

from __future__ import annotations

import pytest

from tests.concurrency import crowd, truth


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_crowd_leaves_the_truth_and_nothing_else(walled, tmp_path):
    """T119: same task, same minute: distinct boxes and ids, one whole ledger, no deadlock, no lost update, no litter."""
    place = crowd.prepared(tmp_path, crowd.Size(20))
    storm = crowd.let_go(place, seed=1)
    truth.hold(place)
    # An operator who looks meanwhile gets an answer.
    assert storm.statuses
