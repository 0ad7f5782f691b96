"""How an ending becomes a status: exit codes, results, and whoever ended it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.engines.stream_json import STREAM_JSON
from agents.events import PLAIN, Progress, Result
from agents.model import Actor, FailureKind, Phase, RunState, Status, step
from agents.pump import Ending
from agents.settle import decide

K = FailureKind
DONE = (Status.DONE, None)


def crashed(kind: FailureKind) -> tuple[Status, FailureKind]:
    return Status.CRASHED, kind


GOOD = Result(text="All is well.")
# What a program says with its exit code alone, and what the same code means behind a good result.
CODES = [
    (0, DONE),
    (1, crashed(K.TOOL_ERROR)),
    (2, crashed(K.TOOL_ERROR)),
    (126, crashed(K.TOOL_ERROR)),
    (127, crashed(K.TOOL_ERROR)),
    (128, crashed(K.TOOL_ERROR)),
    (255, crashed(K.TOOL_ERROR)),
    (-9, crashed(K.OOM)),
    (137, crashed(K.OOM)),
    (-2, crashed(K.AGENT_ABORT)),
    (130, crashed(K.AGENT_ABORT)),
    (-15, crashed(K.AGENT_ABORT)),
    (143, crashed(K.AGENT_ABORT)),
    (-1, crashed(K.AGENT_ABORT)),
    (129, crashed(K.AGENT_ABORT)),
    (-11, crashed(K.TOOL_ERROR)),
    (139, crashed(K.TOOL_ERROR)),
    (None, crashed(K.AGENT_ABORT)),
]


def ending(result: Result | None = None, **changes: Any) -> Ending:
    return Ending(progress=Progress(result=result), **changes)


@pytest.mark.parametrize(("code", "outcome"), CODES)
def test_a_program_without_events_is_judged_by_its_exit_code(code: int | None, outcome: tuple) -> None:
    """T136: exit 0 of a run that only reads is DONE. T137: 137 is oom, SIGINT agent_abort."""
    status, kind, message = decide(ending(exit_code=code), PLAIN)
    assert (status, kind) == outcome
    assert bool(message) == (status is not Status.DONE)


@pytest.mark.parametrize(("code", "outcome"), CODES)
def test_a_good_result_does_not_hide_a_bad_exit(code: int | None, outcome: tuple) -> None:
    """T136: T137: also not where the supervisor noted something else, such as too much on stderr."""
    for notes in ([], ["3 bytes of stderr were not kept"]):
        assert decide(ending(GOOD, exit_code=code, notes=notes), STREAM_JSON)[:2] == outcome


@pytest.mark.parametrize("code", [code for code, _ in CODES])
def test_what_we_ended_after_its_good_result_is_done(code: int | None) -> None:
    """T136: P13: one that hangs after its result is ended by us, so its exit code is ours."""
    assert decide(ending(GOOD, exit_code=code, lingered=True), STREAM_JSON) == (Status.DONE, None, "")


@pytest.mark.parametrize(("code", "outcome"), CODES)
def test_without_a_result_nothing_is_done(code: int | None, outcome: tuple) -> None:
    """T137: P24: exit 0 without a result is no success."""
    expected = crashed(K.AGENT_ABORT) if code == 0 else outcome
    assert decide(ending(exit_code=code), STREAM_JSON)[:2] == expected
    assert decide(ending(exit_code=code), STREAM_JSON)[2]


RESULTS = [
    ({}, DONE, ""),
    ({"subtype": "error_max_turns", "is_error": True}, crashed(K.BUDGET), "Its budget was spent (error_max_turns)."),
    ({"subtype": "error_max_turns"}, crashed(K.BUDGET), "Its budget was spent (error_max_turns)."),
    ({"subtype": "error_max_budget_usd", "is_error": True}, crashed(K.BUDGET), "Its budget was spent (error_max_budget_usd)."),
    ({"is_error": True, "text": "API Error: 529\nmore"}, crashed(K.TOOL_ERROR), "API Error: 529"),
    ({"is_error": True, "text": " \n\n"}, crashed(K.TOOL_ERROR), "The agent reported success."),
    ({"subtype": "error_during_execution", "is_error": True}, crashed(K.TOOL_ERROR), "The agent reported error_during_execution."),
    ({"is_error": True, "text": "\x1b[2Jgone"}, crashed(K.TOOL_ERROR), "\\x1b[2Jgone"),
    ({"is_error": True, "text": "password=hunter2secret9"}, crashed(K.TOOL_ERROR), "password=[redacted]"),
    ({"is_error": True, "text": "x" * 5_000_000}, crashed(K.TOOL_ERROR), "x" * 300),
    ({"turns": 1}, DONE, ""),
    ({"turns": None}, DONE, ""),
    ({"turns": 0}, crashed(K.TOOL_ERROR), "The agent ended without a single turn of its model."),
    ({"turns": 0, "is_error": True, "text": "no"}, crashed(K.TOOL_ERROR), "no"),
]  # fmt: skip


@pytest.mark.parametrize("code", [0, 1, None])
@pytest.mark.parametrize(("result", "outcome", "message"), RESULTS, ids=range(len(RESULTS)))
def test_a_result_says_how_it_went_whatever_the_exit_code(
    code: int | None, result: dict[str, Any], outcome: tuple, message: str
) -> None:
    """T137: is_error is tool_error; a spent budget is called by its name."""
    if outcome == DONE and code != 0:
        return
    assert decide(ending(Result(**result), exit_code=code), STREAM_JSON) == (*outcome, message)


def test_an_answer_that_no_model_gave_is_no_success_however_we_ended_it() -> None:
    """T129: a task that was taken for an unknown command ends well by the program's own account."""
    found = decide(ending(Result(turns=0), exit_code=-15, lingered=True), STREAM_JSON)
    assert found[:2] == crashed(K.TOOL_ERROR)


@pytest.mark.parametrize("dialect", [PLAIN, STREAM_JSON], ids=["plain", "stream"])
@pytest.mark.parametrize(
    ("changes", "result", "outcome"),
    [
        ({"exit_code": 0}, GOOD, (Status.REVIEW, None)),
        ({"lingered": True, "exit_code": -15}, GOOD, (Status.REVIEW, None)),
        ({"exit_code": 1}, GOOD, crashed(K.TOOL_ERROR)),
        ({"exit_code": 137}, GOOD, crashed(K.OOM)),
        ({"exit_code": 0}, Result(is_error=True, text="no"), crashed(K.TOOL_ERROR)),
        ({"exit_code": 0}, Result(turns=0), crashed(K.TOOL_ERROR)),
        ({"stopped": True}, GOOD, (Status.STOPPED, None)),
        ({"cause": K.TESTS_FAILED, "exit_code": 0}, GOOD, crashed(K.TESTS_FAILED)),
        ({"cause": K.EXPORT, "exit_code": 0}, GOOD, crashed(K.EXPORT)),
        ({"cause": K.STALLED}, GOOD, (Status.STALLED, K.STALLED)),
    ],
)
def test_only_a_good_end_with_a_change_waits_for_a_review(
    dialect: Any, changes: dict[str, Any], result: Result, outcome: tuple
) -> None:
    """T136: a change does not make a bad end good, and a good one without a change is DONE."""
    assert decide(ending(result, **changes), dialect, patch=True)[:2] == outcome
    without = (Status.DONE, None) if outcome[0] is Status.REVIEW else outcome
    assert decide(ending(result, **changes), dialect)[:2] == without
    assert decide(ending(result, **changes), dialect, ("x",), patch=True)[:2] == crashed(K.AIRLOCK_BREACH)


@pytest.mark.parametrize("dialect", [PLAIN, STREAM_JSON], ids=["plain", "stream"])
@pytest.mark.parametrize("result", [None, GOOD, Result(is_error=True, text="no")])
@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"stopped": True}, (Status.STOPPED, None)),
        ({"stopped": True, "exit_code": 0}, (Status.STOPPED, None)),
        ({"stopped": True, "exit_code": -9}, (Status.STOPPED, None)),
        ({"cause": K.TIMEOUT, "exit_code": -15}, crashed(K.TIMEOUT)),
        ({"cause": K.STALLED, "exit_code": -15}, (Status.STALLED, K.STALLED)),
        ({"cause": K.OUTPUT_LIMIT, "exit_code": -9}, crashed(K.OUTPUT_LIMIT)),
        ({"cause": K.SPAWN}, crashed(K.SPAWN)),
        ({"cause": K.ENOSPC, "exit_code": -9}, crashed(K.ENOSPC)),
        ({"cause": K.INTERNAL, "exit_code": 0}, crashed(K.INTERNAL)),
        ({"cause": K.TIMEOUT, "stopped": True}, crashed(K.TIMEOUT)),
    ],
)
def test_whoever_ended_it_says_why(
    dialect: Any, result: Result | None, changes: dict[str, Any], outcome: tuple
) -> None:
    """T137: a limit is timeout; what the operator or the supervisor did is never put on the agent's exit code."""
    said = decide(ending(result, message="Because." if "cause" in changes else "", **changes), dialect)
    assert said == (*outcome, "Because." if "cause" in changes else "You stopped it.")


@pytest.mark.parametrize("dialect", [PLAIN, STREAM_JSON], ids=["plain", "stream"])
@pytest.mark.parametrize(
    "changes",
    [
        {"exit_code": 0},
        {"stopped": True},
        {"cause": K.TIMEOUT},
        {"cause": K.STALLED},
        {"exit_code": -9},
        {"lingered": True},
    ],
)
def test_a_breach_beats_everything(dialect: Any, changes: dict[str, Any]) -> None:
    """T137: T147: a change of the main tree is reported, however the run ended."""
    status, kind, message = decide(ending(GOOD, **changes), dialect, ("shop/db.py", "a\x1b[2Jb"))
    assert (status, kind) == crashed(K.AIRLOCK_BREACH)
    assert message == "It changed the repository: shop/db.py, a\\x1b[2Jb."


def test_a_long_breach_is_named_in_part() -> None:
    message = decide(ending(exit_code=0), PLAIN, tuple(f"f{n}" for n in range(9)))[2]
    assert message == "It changed the repository: f0, f1, f2, f3, f4 and 4 more."


@settings(max_examples=150, deadline=None)
@given(
    code=st.none() | st.integers(-64, 255),
    cause=st.none() | st.sampled_from(FailureKind),
    stopped=st.booleans(),
    lingered=st.booleans(),
    result=st.none()
    | st.builds(
        Result, text=st.text(max_size=20), subtype=st.sampled_from(["success", "error_x"]), is_error=st.booleans()
    ),
    dialect=st.sampled_from([PLAIN, STREAM_JSON]),
    patch=st.booleans(),
)
def test_every_ending_has_a_legal_status_and_every_failure_a_reason(
    code: int | None,
    cause: FailureKind | None,
    stopped: bool,
    lingered: bool,
    result: Result | None,
    dialect: Any,
    patch: bool,
) -> None:
    """T136: a run without a change never waits for a review, and one with a change is never simply done."""
    said = "It had to end." if cause else ""
    ended = ending(result, exit_code=code, cause=cause, stopped=stopped, lingered=lingered, message=said)
    status, kind, message = decide(ended, dialect, patch=patch)
    assert status is not (Status.DONE if patch else Status.REVIEW)
    assert step(RunState(phase=Phase.FINALIZING), status, Actor.OWNER).status is status
    assert (kind is None) == (status in {Status.DONE, Status.REVIEW, Status.STOPPED})
    assert bool(message) == (status not in {Status.DONE, Status.REVIEW})
    assert message.isprintable()
