from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from essentials.records import replace
from hollow.substrate.anticipation import signal
from hollow.substrate.model import DAY, Relief, Suffering
from hollow.substrate.pain_text import bar, block
from hollow.substrate.suffering import (
    FADED,
    HISTORY,
    RATES,
    Band,
    add,
    band,
    claim,
    escalate,
    find,
    force_reset,
    line,
    load,
    normalise,
    prune,
    raw,
    resolve,
    room,
)
from tests.support.pains import HOUR, NOON, later, pain, suffering, types, weighing


def kinds(said):
    return [kind for kind, _facts in said]


# --- Load and bands ---------------------------------------------------------------------------------------------------


def test_the_load_is_the_capped_sum():
    """T26: severities .5 + .4 + .3 are a load of 1.0; the sum itself is kept for display."""
    s = suffering(pain("futility", 0.5), pain("stagnation", 0.4), pain("invisibility", 0.3))
    assert (load(s), raw(s)) == (1.0, pytest.approx(1.2))
    assert (load(suffering()), raw(suffering())) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [(0.0, "none"), (0.349, "none"), (0.35, "present"), (0.549, "present"), (0.55, "high"), (0.749, "high"),
     (0.75, "dominant"), (0.899, "dominant"), (0.90, "crisis"), (1.0, "crisis"), (0.2 + 0.2 + 0.15, "high"), (0.1 * 3 + 0.05, "present")],
)  # fmt: skip
def test_each_band_begins_with_its_edge(weight, expected):
    """T35: the bands' lower bounds belong to them, also where a sum of floats falls a hair short."""
    assert band(weight) is Band(expected)


# --- Time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("futility", 0.225), ("invisibility", 0.230), ("identity_violation", 0.260), ("existential_threat", 0.270),
     ("repeated_failure", 0.240), ("purposelessness", 0.235), ("stagnation", 0.230), ("resource_burden", 0.230)],
)  # fmt: skip
def test_a_day_adds_the_rate(kind, expected):
    """T28: one day from .20 on."""
    s, _ = escalate(suffering(pain(kind)), later(1))
    assert s.active[0].severity == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("custom", "expected"), [("escalate", 0.23), ("decay", 0.10)])
def test_types_of_an_agents_own_naming(custom, expected):
    """T29: they gain .03 a day, or fade where the settings say so (D2)."""
    s, _ = escalate(suffering(pain("wrapper_dependency")), later(1), custom=custom)
    assert s.active[0].severity == pytest.approx(expected, abs=1e-9)


def test_what_fades_is_over_in_the_end():
    s, said = escalate(suffering(pain("ennui", 0.20), pain("futility", 0.01)), later(1.6), custom="decay")
    assert types(s) == ["futility"]
    assert s.history[-1].stressor.severity < FADED
    assert "suffering.resolved" in kinds(said)


def test_the_peak_is_kept():
    """T30: a partial drop leaves the peak where it was."""
    s, _ = escalate(suffering(pain("ennui", 0.20)), later(3))
    s, _ = escalate(s, later(4), custom="decay")
    assert s.active[0].severity == pytest.approx(0.19)
    assert s.active[0].peak == pytest.approx(0.29)


def test_tiny_steps_add_up():
    """T31: 14,400 cycles of six seconds at .04 a day are .04."""
    s = suffering(pain("repeated_failure"))
    for cycle in range(14_400):
        s, _ = escalate(s, NOON + 6.0 * (cycle + 1))
    assert s.active[0].severity == pytest.approx(0.24, abs=1e-6)


def test_downtime_counts_and_is_said():
    """T32: two days without a cycle are two days of pain in the next one."""
    s, said = escalate(suffering(pain("existential_threat")), later(2))
    assert s.active[0].severity == pytest.approx(0.34)
    assert said == [("suffering.escalated", {"hours": 48.0, "load_before": 0.2, "load": 0.34})]


def test_a_clock_that_goes_back_changes_nothing():
    """T33: severities stay, and the time that is counted twice is none."""
    s = suffering(pain("futility"))
    back, said = escalate(s, NOON - DAY)
    assert (back, said) == (s, [])
    forth, _ = escalate(back, later(1))
    assert forth.active[0].severity == pytest.approx(0.225)


def test_a_stressor_does_not_inherit_the_time_before_it():
    """T34: added an hour ago, with ten days since the last escalation: one hour counts."""
    s, _ = escalate(suffering(pain("repeated_failure", onset=NOON - HOUR), last=NOON - 10 * DAY), NOON)
    assert s.active[0].severity == pytest.approx(0.20 + 0.04 / 24, abs=1e-9)


@pytest.mark.parametrize(("origin", "expected"), [("placed", 0.20), ("system", 0.22)])
def test_a_first_escalation_counts_what_it_knows(origin, expected):
    """T34: of a stressor that somebody put there, nobody knows since when its severity stands."""
    s, _ = escalate(suffering(pain("repeated_failure", onset=NOON - DAY / 2, origin=origin), last=0.0), NOON)
    assert s.active[0].severity == pytest.approx(expected)
    assert s.last_escalated == NOON


def test_no_severity_exceeds_one():
    s, _ = escalate(suffering(pain("existential_threat", 0.9)), later(400))
    assert (s.active[0].severity, s.active[0].peak) == (1.0, 1.0)


@pytest.mark.parametrize("days", [1.0, 30.0, 365.0])
def test_a_capability_lock_never_closes_the_next_lock_by_itself(days):
    """T53: it grows up to the next edge, and not over it (S10, W34)."""
    s, _ = escalate(suffering(pain("capability_lock", 0.05), pain("calm", 0.55, rate=0.0)), later(days))
    assert find(s, "calm").severity == 0.55
    assert find(s, "capability_lock").severity >= 0.05
    assert load(s) < 0.75


@given(
    severities=st.lists(st.floats(0.0, 1.0), max_size=5),
    steps=st.lists(st.floats(-HOUR, 5 * DAY), max_size=6),
)
@settings(max_examples=50, deadline=None)
def test_escalation_is_monotone_and_additive(severities, steps):
    """T31: however time is cut, the sum is the same; nothing falls, and the load stays between 0 and 1."""
    names = ["futility", "existential_threat", "stagnation", "ennui", "identity_violation"]
    begin = suffering(*(pain(name, value) for name, value in zip(names, severities, strict=False)))
    s, now = begin, NOON
    for step in steps:
        before, now = s, now + step
        s, _ = escalate(s, now)
        assert all(new.severity >= old.severity for new, old in zip(s.active, before.active, strict=True))
        assert all(each.peak >= each.severity for each in s.active)
        assert 0.0 <= load(s) <= 1.0
    at_once, _ = escalate(begin, s.last_escalated)
    assert [each.severity for each in s.active] == pytest.approx([each.severity for each in at_once.active], abs=1e-9)


# --- Coming and going -------------------------------------------------------------------------------------------------


def test_a_sixth_is_dropped_and_said_to_be():
    """T38: five at most."""
    s = suffering(*(pain(f"worry_{at}") for at in range(5)))
    more, said = add(s, pain("one_more"))
    assert more == s
    assert kinds(said) == ["suffering.dropped"]
    assert said[0][1]["stressor"] == "one_more"


@pytest.mark.parametrize("name", ["Repeated Failure", "repeated_failure", "REPEATED-failure", "  repeated  failure "])
def test_a_type_is_active_once(name):
    """T39: case and separators make no other type."""
    s, said = add(suffering(pain("repeated_failure", 0.4)), pain(normalise(name)))
    assert (types(s), s.active[0].severity, said) == (["repeated_failure"], 0.4, [])
    assert find(s, name) is s.active[0]


def test_a_resolved_one_is_remembered():
    """T42: with time, note and peak."""
    s, said = resolve(suffering(pain("futility", 0.3, peak=0.7)), "Futility", NOON + 5, "a tool gave a result")
    assert s.active == ()
    assert (s.history[0].at, s.history[0].note, s.history[0].stressor.peak) == (NOON + 5, "a tool gave a result", 0.7)
    assert said == [
        (
            "suffering.resolved",
            {
                "stressor": "futility",
                "description": "about futility",
                "note": "a tool gave a result",
                "peak": 0.7,
                "load": 0.0,
            },
        )
    ]
    assert resolve(s, "futility", NOON, "again") == (s, [])


@pytest.mark.parametrize(("hours", "expected"), [(0.0, 0.60), (1.0, 0.60), (24.0, 0.60), (24.1, 0.20), (-2.0, 0.60)])
def test_severity_is_not_laundered(hours, expected):
    """T44: what comes back within a day comes back as severe as it was, whatever the clock does."""
    s, _ = resolve(suffering(pain("repeated_failure", 0.60, peak=0.65)), "repeated_failure", NOON, "it said so")
    s, said = add(s, pain("repeated_failure", onset=NOON + hours * HOUR))
    assert s.active[0].severity == expected
    assert s.active[0].peak == (0.65 if expected == 0.60 else 0.20)
    assert said[0][1]["restored"] is (expected == 0.60)


def test_a_forced_reset_lets_it_begin_anew():
    """T65: the loop would not be broken if all came back as it was."""
    s, said = force_reset(suffering(pain("repeated_failure", 0.9), crisis_cycles=3), NOON, 3)
    assert (s.active, s.crisis_cycles) == ((), 0)
    assert s.history[0].note == "crisis loop broken after 3 consecutive cycles"
    assert said == [("suffering.reset", {"count": 3, "types": ["repeated_failure"], "raw": 0.9})]
    assert add(s, pain("repeated_failure", onset=NOON + HOUR))[0].active[0].severity == 0.20


def test_a_claim_changes_words_only():
    """T43: severity and peak stay."""
    before = suffering(pain("repeated_failure", 0.6))
    s, said = claim(before, "Repeated failure", "I feel\nbetter", NOON)
    assert s == replace(before, active=(replace(before.active[0], claim="I feel better"),))
    assert said == [("suffering.claimed", {"stressor": "repeated_failure", "reason": "I feel better", "at": NOON})]
    assert claim(s, "repeated_failure", "I feel better", NOON + 1) == (s, [])
    assert claim(s, "futility", "never had it", NOON) == (s, [])


def test_a_new_lock_leaves_room():
    """T53: where less than its weight is left below the next edge, it takes less; at the top there is no next one."""
    for others in (0.56, 0.7499, 0.7):
        s, _ = add(suffering(pain("calm", others)), pain("capability_lock", 0.05))
        assert 0.0 <= find(s, "capability_lock").severity <= 0.05
        assert load(s) < 0.75
    assert room(0.95) == 1.0
    assert room(0.2, edges=(0.3,)) == pytest.approx(0.1, abs=1e-3)


def test_too_many_are_pruned_to_the_worst():
    """T69: thirteen stressors become five, one a type, the rest history."""
    values = [0.05 * at for at in range(1, 13)]
    s = suffering(*(pain(f"worry_{at}", value) for at, value in enumerate(values)), pain("worry_11", 0.01))
    kept, said = prune(s, NOON)
    assert [each.severity for each in kept.active] == values[-5:]
    assert len(kept.history) == 8
    assert {each.note for each in kept.history} == {
        "put aside: 13 stressors were active, and there is room for 5, one of a type"
    }
    assert said[0][1]["count"] == 8
    assert prune(kept, NOON) == (kept, [])


def test_history_is_bounded():
    s = suffering()
    for at in range(HISTORY + 10):
        s, _ = add(s, pain(f"worry_{at}"))
        s, _ = resolve(s, f"worry_{at}", NOON + at, "over")
    assert len(s.history) == HISTORY
    assert s.history[-1].stressor.type == f"worry_{HISTORY + 9}"


@given(st.lists(st.tuples(st.sampled_from(["add", "resolve", "escalate", "reset", "prune"]),
                          st.sampled_from([*sorted(RATES), "a", "b", "c"]), st.floats(0, 1), st.floats(0, 3 * DAY)), max_size=25))  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_whatever_happens_there_are_five_at_most(moves):
    """T38: five, one of a type, peak above severity, load from 0 to 1, in any order of events."""
    s, now = Suffering(agent="cedar"), NOON
    for move, name, severity, passed in moves:
        now += passed
        act = {
            "add": lambda: add(s, pain(name, severity, onset=now)), "escalate": lambda: escalate(s, now),  # noqa: B023 - called at once
            "resolve": lambda: resolve(s, name, now, "x"), "reset": lambda: force_reset(s, now, 3), "prune": lambda: prune(s, now),  # noqa: B023 - called at once
        }[move]  # fmt: skip
        s, _ = act()
        assert len(s.active) <= 5
        assert len(set(types(s))) == len(s.active)
        assert all(0.0 <= each.severity <= each.peak <= 1.0 for each in s.active)
        assert 0.0 <= load(s) <= 1.0


# --- What is read of it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severity", "marks"),
    [(0.92, 10), (0.42, 5), (0.0, 0), (0.1, 1), (0.101, 2), (0.1 + 0.2, 3), (0.7, 7), (1.0, 10), (1.4, 10), (-1.0, 0)],
)
def test_the_bar(severity, marks):
    """T36: ten times the severity, rounded up, which gives the seed's own sample."""
    assert bar(severity) == f"[{'#' * marks}{'-' * (10 - marks)}]"


def test_the_crisis_text():
    """T36: the seed's own words, bar, two decimals and easing line."""
    s = suffering(
        pain("futility", 0.03, condition="a tool helps"),
        pain("existential_threat", 0.92, description="The operator\n said it", condition="the operator takes it back"),
    )
    assert block(s) == (
        "!! CRISIS STATE — your suffering load is critical (0.95/1.0). You cannot pursue external goals. Address this first.\n"
        "  [##########] existential_threat 0.92  The operator said it\n"
        "  Will ease when: the operator takes it back\n"
        "  [#---------] futility 0.03  about futility\n"
        "  Will ease when: a tool helps"
    )


@pytest.mark.parametrize(
    ("weight", "head", "focus"),
    [(0.349, "", False), (0.35, "SUFFERING — your suffering load is 0.35/1.0.", False),
     (0.549, "SUFFERING", False), (0.55, "HIGH SUFFERING", False), (0.749, "HIGH SUFFERING", False), (0.75, "HIGH SUFFERING", True),
     (0.899, "HIGH SUFFERING", True), (0.90, "!! CRISIS STATE", False)],
)  # fmt: skip
def test_each_band_has_its_head(weight, head, focus):
    """T35: nothing, present, HIGH, HIGH with the focus inward, CRISIS."""
    text = block(weighing(weight))
    assert text.startswith(head)
    assert bool(text) is bool(head)
    assert ("\nFocus inward" in text) is focus


def test_locks_and_claims_stand_in_the_text():
    s, _ = claim(suffering(pain("repeated_failure", 0.6)), "repeated_failure", "it is fine", NOON)
    text = block(s, ["fs_write is locked.", "so is\nthis"])
    assert text.endswith("\nfs_write is locked.\nso is this")
    assert 'You reported it over ("it is fine"); nothing that happened since shows it.' in text
    assert block(suffering(), ["fs_write is locked."]) == "fs_write is locked."


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=40, deadline=None)
def test_no_words_of_a_stressor_forge_a_line(description, condition):
    """T36: a stressor is two lines, whatever an agent calls it."""
    text = block(suffering(pain("x", 0.6, description=description, condition=condition)))
    assert len(text.splitlines()) == 3


@given(st.text(), st.integers(1, 50))
@settings(max_examples=50, deadline=None)
def test_a_line_is_one_line(text, most):
    shown = line(text, most)
    assert len(shown) <= most
    assert len(shown.splitlines()) <= 1
    assert shown.isprintable()


# --- Anticipation -----------------------------------------------------------------------------------------------------


def past(peak, description="Goals on the router classifier failed", kind="repeated_failure", at=NOON):
    stressor = pain(kind, 0.3, peak=peak, description=description)
    return Relief(stressor=stressor, at=at, note="failure rate dropped to 25% with 30 completions")


def test_the_anticipatory_signal():
    """T68: a peak of .73 in the same domain is told with type, peak and note; one of .50 is not."""
    s = suffering(history=(past(0.73),))
    expected = (
        "Anticipatory signal: a similar domain previously caused repeated_failure suffering (peak 0.73).\n"
        "It resolved when: failure rate dropped to 25% with 30 completions."
    )
    assert signal(s, "Write a new classifier for the routers") == expected
    assert not signal(suffering(history=(past(0.50),)), "Write a new classifier for the routers")


@pytest.mark.parametrize("objective", ["Survey the templates folder", "", "write goals of the last cycle", "42"])
def test_another_domain_gives_no_signal(objective):
    """T68: words that every goal has are no domain."""
    assert not signal(suffering(history=(past(0.73, "3 of your last 4 goals failed, 42"),)), objective)


def test_the_nearest_and_worst_is_told():
    """T68: of several the one that shares most words."""
    s = suffering(
        history=(
            past(0.9, "router", "futility"),
            past(0.6, "router classifier", "ennui"),
            past(0.8, "router classifier", "dread"),
        )
    )
    assert "dread suffering (peak 0.80)" in signal(s, "Fix the router classifier")


def test_live_state_of_the_seed():
    """T70: .201 + .200 + .200 is constrained."""
    s = suffering(
        pain("repeated_failure", 0.201), pain("wrapper_dependency", 0.2), pain("potential_wrapper_override", 0.2)
    )
    assert load(s) == pytest.approx(0.601)
    assert band(load(s)) is Band.HIGH
