"""Time limits of a run as values: which one is over, and how long until the next."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.timers import Due, Limits, Timers

LIMITS = Limits(stall_after=300, linger=60, timeout=1000)
ENDLESS = Limits(stall_after=math.inf, linger=math.inf, timeout=None)
START = Timers(started=100, last_sign=100)


@pytest.mark.parametrize(
    ("timers", "limits", "now", "due", "wait"),
    [
        ("fresh", LIMITS, 100, None, 300),
        ("fresh", LIMITS, 399.9, None, 0.1),
        ("fresh", LIMITS, 400, Due.SILENCE, 0),
        ("fresh", LIMITS, 5000, Due.SILENCE, 0),
        ("signed at 1099", LIMITS, 1099.5, None, 0.5),
        ("signed at 1099", LIMITS, 1100, Due.TIMEOUT, 0),
        ("done at 150", LIMITS, 209, None, 1),
        ("done at 150", LIMITS, 210, Due.LINGER, 0),
        ("done at 150", LIMITS, 450, Due.LINGER, 0),
        ("done at 1090", LIMITS, 1100, Due.TIMEOUT, 0),
        ("fresh", Limits(stall_after=300, timeout=None), 10_000_000, Due.SILENCE, 0),
        ("fresh", ENDLESS, 10_000_000, None, math.inf),
        ("done at 150", ENDLESS, 10_000_000, None, math.inf),
        ("fresh", Limits(stall_after=50, timeout=50), 150, Due.TIMEOUT, 0),
    ],
)
def test_the_limit_that_is_over_first_is_due(
    timers: str, limits: Limits, now: float, due: Due | None, wait: float
) -> None:
    """T141: P11, P12, P13: silence before the result, lingering after it, the whole run."""
    which = {
        "fresh": START,
        "signed at 1099": START.sign(1099),
        "done at 150": START.sign(150).result(150),
        "done at 1090": START.sign(1090).result(1090),
    }[timers]
    assert which.due(limits, now) is due
    assert which.wait(limits, now) == pytest.approx(wait)


def test_after_the_result_silence_is_no_matter() -> None:
    done = START.result(120)
    assert set(done.deadlines(LIMITS)) == {Due.TIMEOUT, Due.LINGER}
    assert set(START.deadlines(LIMITS)) == {Due.TIMEOUT, Due.SILENCE}


def test_the_first_result_starts_the_grace_and_no_later_one_extends_it() -> None:
    """P13: an agent that repeats its result does not live for ever."""
    done = START.result(120)
    assert done.result(170) is done
    assert done.sign(170).due(LIMITS, 180) is Due.LINGER


def test_a_sign_of_life_postpones_silence_and_not_the_timeout() -> None:
    assert START.sign(350).due(LIMITS, 649) is None
    assert START.sign(350).deadlines(LIMITS)[Due.TIMEOUT] == 1100
    assert START.last_sign == 100


def test_the_defaults_are_the_designs() -> None:
    """T141: five minutes; sixty seconds after the result; ten between TERM and KILL; no timeout."""
    usual = Limits()
    assert (usual.stall_after, usual.linger, usual.grace, usual.timeout) == (300, 60, 10, None)
    assert (usual.max_output, usual.on_stall) == (2 * 1024**3, "reap")
    assert (usual.max_turns, usual.max_usd, usual.max_tokens) == (None, None, None)
    assert (usual.min_free, usual.loop_after) == (64 * 1024**2, 12)


spans = st.floats(0.001, 10_000)


@settings(max_examples=150, deadline=None)
@given(
    limits=st.builds(Limits, stall_after=spans, linger=spans, timeout=st.none() | spans),
    signs=st.lists(st.floats(0, 10_000), max_size=3),
    result_at=st.none() | st.floats(0, 10_000),
    now=st.floats(0, 30_000),
)
def test_waiting_as_long_as_it_says_leads_to_a_limit_and_not_before(
    limits: Limits, signs: list[float], result_at: float | None, now: float
) -> None:
    timers = Timers(0, 0)
    for sign in sorted(signs):
        timers = timers.sign(sign)
    if result_at is not None:
        timers = timers.result(result_at)
    wait = timers.wait(limits, now)
    assert wait >= 0
    assert (timers.due(limits, now) is not None) == (wait == 0)
    if 0 < wait < math.inf:
        assert timers.due(limits, now + wait * 0.999) is None
        assert timers.due(limits, now + wait * 1.001 + 1e-6) is not None
