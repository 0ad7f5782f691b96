from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.minds.bounded import Overdue, within
from hollow.minds.conversation import Message, Meter, TooLong, fit
from hollow.parsing import Call

SYSTEM = Message(role="system", content="rules " * 20, pinned=True)
TASK = Message(role="user", content="task " * 20, pinned=True)


def exchange(number: int, size: int, *, native: bool = True) -> list[Message]:
    call = Call("ReadFile", {"path": f"f{number}"})
    return [
        Message(role="assistant", content="I read. " * 40, thinking="hm " * 50, calls=(call,) if native else ()),
        Message(role="tool", content=f"{number} " * size, tool="ReadFile", key=f"k{number}", native=native),
    ]


def needed(messages) -> int:
    return Meter().tokens([m.size for m in messages])


def test_what_fits_is_left_alone():
    messages = [SYSTEM, TASK, *exchange(1, 10)]
    assert fit(messages, needed(messages), Meter()) == messages


def test_thinking_goes_first_then_the_oldest_results_then_old_words():
    messages = [SYSTEM, TASK, *(m for n in range(4) for m in exchange(n, 400))]
    full = needed(messages)
    slightly = fit(messages, full - 10, Meter())
    assert (slightly[2].thinking, slightly[3].content) == ("", messages[3].content)
    more = fit(messages, full - 300, Meter())
    assert more[3].content.startswith("[This result of 800 characters was dropped")
    assert more[5].content == messages[5].content
    most = fit(messages, full - 880, Meter())
    assert most[2].content.endswith("[shortened]")
    assert most[-1] == messages[-1]
    assert most[-2] == messages[-2]


def test_the_newest_result_is_cut_at_its_end_when_nothing_else_is_left():
    messages = [SYSTEM, TASK, *exchange(1, 5000)]
    kept = fit(messages, 1500, Meter())
    assert kept[3].content.startswith("1 1 1")
    assert "did not fit the context window" in kept[3].content
    assert needed(kept) <= 1500


def test_pinned_messages_that_do_not_fit_are_an_error_with_the_number():
    with pytest.raises(TooLong) as why:
        fit([SYSTEM, TASK], 20, Meter())
    assert why.value.tokens == needed([SYSTEM, TASK])


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 3000), max_size=6),
    budget=st.integers(100, 3000),
    native=st.booleans(),
    filler=st.sampled_from(["", "\n", '"', "é", "漢", "\x00"]),
)
def test_the_budget_holds_and_what_is_pinned_stays(sizes, budget, native, filler):
    messages = [SYSTEM, TASK]
    for number, size in enumerate(sizes):
        said, result = exchange(number, size, native=native)
        messages += [
            said,
            Message(role="tool", content=result.content + filler * size, tool="Ls", key=result.key, native=native),
        ]
    try:
        kept = fit(messages, budget, Meter())
    except TooLong:
        # Only if what is pinned, and what the agent needs to go on, is too large by itself.
        assert budget < needed(messages)
        return
    assert needed(kept) <= budget
    assert kept[:2] == [SYSTEM, TASK]
    assert [m.role for m in kept] == [m.role for m in messages]


def test_the_meter_learns_upwards_only_and_never_beyond_a_token_a_byte():
    meter = Meter()
    assert meter.learned([900], 100, 600).per_byte == pytest.approx(0.592)
    assert meter.learned([900], 100, 50) == meter
    assert meter.learned([900], 100, 99_999).per_byte == 1.0
    assert meter.learned([], 0, 5).per_byte <= 1.0


def test_within_gives_what_the_work_gives():
    assert within(5, lambda: 7, lambda: None) == 7
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0, lambda: None)


def test_a_timeout_of_the_work_itself_is_the_works():
    def work():
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        within(5, work, lambda: None)


def test_within_gives_up_in_time_and_tells_the_work():
    """T158: whether the work listens or not."""
    aborted, ticks = [], []
    started = time.monotonic()
    with pytest.raises(Overdue):
        within(0.3, lambda: time.sleep(1.5), lambda: aborted.append(1), tick=ticks.append, every=0.1)
    assert time.monotonic() - started < 1
    assert aborted == [1]
    assert len(ticks) >= 1
    assert ticks == sorted(ticks)


def test_a_failing_tick_ends_the_wait_and_the_work():
    """A closed stream is noticed while the model computes."""
    aborted = []

    def tick(_passed):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        within(5, lambda: time.sleep(0.5), lambda: aborted.append(1), tick=tick, every=0.05)
    assert aborted == [1]
