"""The verdict over a run: a table of states and of what the machine knows; clocks that jump are no silence."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.model import Phase, RunState, Status
from agents.times import iso
from agents.watchdog import Facts, Verdict, judge, silence
from essentials import records
from tests.support.plans import BOOT, HOST, NOW, running

STALL_AFTER = 300.0
MONO = 5000.0
"""Monotonic time when the wall shows NOW."""
OFFSET = NOW - MONO
HOUR = 3600.0


def facts(**changes: Any) -> Facts:
    """A machine on which owner and agent live, at NOW, with *changes*."""
    usual: dict[str, Any] = {
        "host_id": HOST, "boot_id": BOOT, "owner_alive": True, "child_alive": True, "wall": NOW, "mono": MONO,
    }  # fmt: skip
    return Facts(**{**usual, **changes})


def quiet(seconds: float, **changes: Any) -> RunState:
    """A running run whose last sign of life was *seconds* ago."""
    return running(**{"last_heartbeat": iso(NOW - seconds), "clock_offset": OFFSET, **changes})


LIVE, ORPHAN, DEAD = {}, {"owner_alive": False}, {"owner_alive": False, "child_alive": False}

TABLE = [
    # The rows of the seed.
    ("T139: dead owner, dead pid", quiet(1), DEAD, Verdict.CRASHED),
    ("T140: dead owner, the pid is somebody else's now", quiet(1), DEAD, Verdict.CRASHED),
    ("T141: 299 s of silence", quiet(299), LIVE, Verdict.FINE),
    ("T141: 300 s of silence", quiet(300), LIVE, Verdict.FINE),
    ("T141: 301 s of silence with a live pid", quiet(301), LIVE, Verdict.STALLED),
    ("T141: marked already, left alone by its owner", quiet(301, status=Status.STALLED), LIVE, Verdict.FINE),
    ("T141: marked, speaking again", quiet(1, status=Status.STALLED), LIVE, Verdict.FINE),
    # Owner and agent, alive and dead.
    ("all is well", quiet(1), LIVE, Verdict.FINE),
    ("the agent ended, its owner is at work", quiet(1), {"child_alive": False}, Verdict.FINE),
    ("the agent ended long ago, its owner hangs", quiet(301), {"child_alive": False}, Verdict.STALLED),
    ("an orphan that speaks", quiet(1), ORPHAN, Verdict.CRASHED),
    ("an orphan that is silent", quiet(301), ORPHAN, Verdict.STALLED),
    ("dead and silent", quiet(301), DEAD, Verdict.CRASHED),
    # Before and after the agent runs nothing is expected of it.
    ("a start that takes long", quiet(HOUR, phase=Phase.STARTING), LIVE, Verdict.FINE),
    ("an end that takes long", quiet(HOUR, phase=Phase.FINALIZING), LIVE, Verdict.FINE),
    ("a start that died", quiet(1, phase=Phase.CREATED, pid=None), DEAD, Verdict.CRASHED),
    ("an end that died", quiet(1, phase=Phase.FINALIZING), DEAD, Verdict.CRASHED),
    # Stalled runs.
    ("stalled, owner died, agent lives", quiet(1, status=Status.STALLED), ORPHAN, Verdict.STALLED),
    ("stalled, owner died, agent dead, not settled", quiet(1, status=Status.STALLED), DEAD, Verdict.STALLED),
    ("stalled and settled", quiet(1, status=Status.STALLED, phase=Phase.SETTLED), DEAD, Verdict.SETTLED),
    ("stalled, settled, yet alive", quiet(1, status=Status.STALLED, phase=Phase.SETTLED), ORPHAN, Verdict.STALLED),
    ("stalled and settled before a restart", quiet(1, status=Status.STALLED, phase=Phase.SETTLED), {**DEAD, "boot_id": "b"}, Verdict.SETTLED),
    # Another boot, another machine.
    ("C31: another boot", quiet(1), {**DEAD, "boot_id": "boot-2"}, Verdict.REBOOTED),
    ("C31: another boot, and the pid is alive again", quiet(1), {**ORPHAN, "boot_id": "boot-2"}, Verdict.REBOOTED),
    ("C31: marked before another boot", quiet(1, status=Status.STALLED), {**DEAD, "boot_id": "boot-2"}, Verdict.REBOOTED),
    ("P02: another host", quiet(1), {**DEAD, "host_id": "host-2"}, Verdict.FOREIGN),
    ("P02: another host, long silent, other boot", quiet(HOUR), {**DEAD, "host_id": "host-2", "boot_id": "b"}, Verdict.FOREIGN),
    ("no host on record", quiet(1, host_id=None), LIVE, Verdict.FINE),
    ("no boot on record", quiet(1, boot_id=None), DEAD, Verdict.CRASHED),
    # Clocks: the wall may jump, and both stand apart after the machine slept.
    ("C30: the wall jumped an hour ahead", quiet(1), {"wall": NOW + HOUR}, Verdict.FINE),
    ("C30: the wall jumped an hour back", quiet(1), {"wall": NOW - HOUR}, Verdict.FINE),
    ("C30: silent while the wall jumped back", quiet(0), {"wall": NOW - HOUR, "mono": MONO + 301}, Verdict.STALLED),
    ("C26: the machine slept for ten hours", quiet(1), {"wall": NOW + 10 * HOUR, "mono": MONO + 5}, Verdict.FINE),
    ("C26: it slept, and the agent is silent since", quiet(0), {"wall": NOW + HOUR, "mono": MONO + 301}, Verdict.STALLED),
    ("C26: it slept, and the wall was set right afterwards", quiet(1), {"wall": NOW - 3 * HOUR, "mono": MONO + 5}, Verdict.FINE),
    ("C26: its supervisor was stopped for ten minutes and nobody read the agent", quiet(600), LIVE, Verdict.STALLED),
    ("C26: that one goes on, reaped and marked already", quiet(900, status=Status.STALLED), {"child_alive": False}, Verdict.FINE),
    ("C26: that one was killed instead", quiet(900, status=Status.STALLED), DEAD, Verdict.STALLED),
    ("C30: a heartbeat from the future, by a wall that was set back", quiet(-HOUR), LIVE, Verdict.FINE),
    # Before the first heartbeat silence counts from the start.
    ("no heartbeat yet, 299 s", running(started_at=iso(NOW - 299), clock_offset=OFFSET), LIVE, Verdict.FINE),
    ("no heartbeat yet, 301 s", running(started_at=iso(NOW - 301), clock_offset=OFFSET), LIVE, Verdict.STALLED),
    ("no heartbeat yet, the wall jumped", running(started_at=iso(NOW - 1), clock_offset=OFFSET), {"wall": NOW + HOUR}, Verdict.FINE),
    ("a state without an offset, 299 s", running(last_heartbeat=iso(NOW - 299)), LIVE, Verdict.FINE),
    ("a state without an offset, 301 s", running(last_heartbeat=iso(NOW - 301)), LIVE, Verdict.STALLED),
    ("a state without an offset, the wall went back", running(last_heartbeat=iso(NOW + HOUR)), LIVE, Verdict.FINE),
    ("neither heartbeat nor start", running(started_at=None), LIVE, Verdict.FINE),
    ("a heartbeat that is no instant", running(started_at=iso(NOW - 1), last_heartbeat="soon"), LIVE, Verdict.FINE),
]  # fmt: skip


@pytest.mark.parametrize(("state", "known", "verdict"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_verdict_follows_the_table(state: RunState, known: dict[str, Any], verdict: Verdict) -> None:
    """T139: a dead pid is CRASHED. T140: so is one that was started at another time. T141: 301 s are STALLED."""
    assert judge(state, facts(**known), STALL_AFTER) is verdict


OVER = [status for status in Status if status not in {Status.ACTIVE, Status.STALLED}]


@pytest.mark.parametrize("status", OVER)
@pytest.mark.parametrize("known", [LIVE, ORPHAN, DEAD, {**DEAD, "boot_id": "boot-2"}])
def test_a_run_that_ended_is_only_tidied_up(status: Status, known: dict[str, Any]) -> None:
    assert judge(quiet(HOUR, status=status), facts(**known), STALL_AFTER) is Verdict.SETTLED


@pytest.mark.parametrize("stall_after", [1.0, 60.0, 301.0])
def test_the_limit_of_silence_is_the_settings(stall_after: float) -> None:
    """T141: five minutes are only the default."""
    assert judge(quiet(stall_after), facts(), stall_after) is Verdict.FINE
    assert judge(quiet(stall_after + 0.1), facts(), stall_after) is Verdict.STALLED


@pytest.mark.parametrize(
    ("state", "wall", "mono", "seconds"),
    [
        (quiet(7), NOW, MONO, 7),
        (quiet(7), NOW + HOUR, MONO, 7),
        (quiet(7), NOW - HOUR, MONO + 3, 10),
        (running(last_heartbeat=iso(NOW - 7)), NOW + 1, MONO, 8),
        (running(started_at=iso(NOW - 9)), NOW, MONO, 9),
        (running(started_at=iso(NOW - 9), last_heartbeat="1970-01-01T00:00:00.000Z"), NOW, MONO, NOW),
        (running(started_at=None), NOW, MONO, None),
    ],
)
def test_silence_is_measured_with_the_clock_that_never_jumps(
    state: RunState, wall: float, mono: float, seconds: float | None
) -> None:
    assert silence(state, wall, mono) == (None if seconds is None else pytest.approx(seconds))


seconds = st.floats(0, 10 * HOUR, allow_nan=False)


@settings(max_examples=100, deadline=None)
@given(silent=seconds, jump=st.floats(-10 * HOUR, 10 * HOUR), orphan=st.booleans(), child=st.booleans())
def test_no_jump_of_the_wall_changes_a_verdict(silent: float, jump: float, orphan: bool, child: bool) -> None:
    """C30: whatever the wall shows."""
    state = quiet(silent)
    still = facts(owner_alive=not orphan, child_alive=child)
    jumped = records.replace(still, wall=NOW + jump)
    assert judge(state, still, STALL_AFTER) is judge(state, jumped, STALL_AFTER)


def test_every_combination_has_a_verdict_and_a_living_owner_is_never_robbed() -> None:
    """P01: only silence is judged against a live owner, and nothing ever against another host's."""
    for status, phase, owner, child, boot, host in itertools.product(
        Status, Phase, (True, False), (True, False), (BOOT, "b"), (HOST, "h")
    ):
        known = facts(owner_alive=owner, child_alive=child, boot_id=boot, host_id=host)
        verdict = judge(quiet(1, status=status, phase=phase), known, STALL_AFTER)
        assert (verdict is Verdict.FOREIGN) == (host == "h")
        if owner and boot == BOOT and host == HOST:
            assert verdict in {Verdict.FINE, Verdict.SETTLED}
